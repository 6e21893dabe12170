use std::collections::BTreeMap;
use std::fs;
use std::future::Future;
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use evenkeel_probe::{Prober, Report};
use futures_util::StreamExt as _;
use tokio::runtime::Runtime;

use crate::kinds::{Case, End, Kind};

/// Probes under way at once.
const AT_ONCE: usize = 64;

/// What a prober holds for good, at most: the socket of ICMP, connections to
/// the Docker daemon.
const HELD_DESCRIPTORS: usize = 70;

/// By how much the memory of the probing thread may grow from the end of the
/// warm-up on, in bytes that are allocated and not freed. Ten thousand probes
/// that lose one byte each are over it.
const LIVE: i64 = 8 * 1024;

/// By how much resident memory may grow: the allocator's own ways included, and
/// what targets use, which are in this process.
const RESIDENT: u64 = 4 * 1024 * 1024;

/// What the system knows of this process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Traces {
    descriptors: usize,
    threads: usize,
    /// Zombies included.
    children: usize,
}

impl Traces {
    fn now() -> Self {
        let entries = |path| fs::read_dir(path).unwrap().count();
        Self {
            // One is the directory that is read.
            descriptors: entries("/proc/self/fd") - 1,
            threads: entries("/proc/self/task"),
            children: children(),
        }
    }
}

fn children() -> usize {
    let own = std::process::id().to_string();
    let is_child = |stat: String| {
        let fields = stat.rsplit_once(')').map(|(_, fields)| fields);
        fields.and_then(|fields| fields.split_whitespace().nth(1)) == Some(&*own)
    };
    fs::read_dir("/proc")
        .unwrap()
        .filter_map(|entry| fs::read_to_string(entry.ok()?.path().join("stat")).ok())
        .filter(|stat| is_child(stat.clone()))
        .count()
}

fn resident() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("RssAnon:"));
    let kib = line.and_then(|line| line.split_whitespace().nth(1)?.parse::<u64>().ok());
    kib.unwrap() * 1024
}

/// Measures all kinds, one after the other, and fails with all that is wrong.
pub(crate) fn all(kinds: Vec<Kind>, probes: usize) {
    let mut faults = Vec::new();
    // The first runtime of a process opens what all share, for signals.
    drop(runtime());
    println!(
        "{:10} {:>6} {:>7} {:>12} {:>6} {:>8} {:>8} {:>12} {:>12} {:>7}",
        "kind",
        "probes",
        "dropped",
        "descriptors",
        "tasks",
        "threads",
        "children",
        "live bytes",
        "resident",
        "seconds"
    );
    for kind in kinds {
        let probes = probes.min(kind.most);
        measure(kind, probes, &mut faults);
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

fn runtime() -> Runtime {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        // Threads for what blocks are to be gone when they are counted.
        .thread_keep_alive(Duration::from_millis(10))
        .build()
        .unwrap()
}

fn measure(mut kind: Kind, probes: usize, faults: &mut Vec<String>) {
    let before = Traces::now();
    let begin = tokio::time::Instant::now();
    let runtime = runtime();
    let with_runtime = Traces::now();
    let prober = (kind.prober)();
    // Enough that everything has grown to its size.
    let warm_up = (2 * AT_ONCE).max(probes / 5);
    let mut tally = Tally::default();
    runtime.block_on(run(&prober, &kind, warm_up, &mut tally));
    settled(&runtime, with_runtime, HELD_DESCRIPTORS);
    let warm = resident();
    let memory = allocation_counter::measure(|| {
        runtime.block_on(run(&prober, &kind, probes, &mut tally));
        settled(&runtime, with_runtime, HELD_DESCRIPTORS);
    });
    let grown = resident().saturating_sub(warm);
    let held = Traces::now();
    let unseen: Vec<_> = tally.unseen(&kind).collect();
    // Checks may keep a connection.
    kind.cases.clear();
    drop(prober);
    let after = settled(&runtime, with_runtime, 0);
    let tasks = runtime.metrics().num_alive_tasks();
    drop(runtime);
    println!(
        "{:10} {probes:>6} {:>7} {:>5} → {:>4} {tasks:>6} {:>8} {:>8} {:>12} {:>10} K {:>7.1}",
        kind.name,
        tally.dropped,
        with_runtime.descriptors,
        after.descriptors,
        format!("{} → {}", with_runtime.threads, after.threads),
        format!("{} → {}", with_runtime.children, after.children),
        memory.bytes_current,
        grown / 1024,
        begin.elapsed().as_secs_f64(),
    );
    let name = kind.name;
    let mut fault = |text: String| faults.push(format!("{name}: {text}"));
    for (case, seen) in unseen {
        fault(format!("no probe of \"{case}\" ended as it should: {seen}"));
    }
    if after != with_runtime {
        fault(format!("{with_runtime:?} has become {after:?}"));
    }
    if tasks != 0 {
        fault(format!("{tasks} tasks are left"));
    }
    if held.descriptors > with_runtime.descriptors + HELD_DESCRIPTORS {
        fault(format!("the prober holds too much: {held:?}"));
    }
    if !kind.has_threads && memory.bytes_current > LIVE {
        fault(format!("{} bytes are lost", memory.bytes_current));
    }
    if grown > RESIDENT {
        fault(format!("{grown} bytes more are resident"));
    }
    let end = Traces::now();
    if end != before {
        fault(format!(
            "without the runtime, {before:?} has become {end:?}"
        ));
    }
}

/// Waits for the ends of what ends by itself: connections on the targets' side,
/// idle threads, processes that were killed. What does not end is in the result.
fn settled(runtime: &Runtime, goal: Traces, held: usize) -> Traces {
    let fits = |now: &Traces| {
        now.descriptors <= goal.descriptors + held
            && now.threads <= goal.threads
            && now.children <= goal.children
    };
    let settled = evenkeel_testkit::wait_for(Duration::from_secs(20), || {
        // Its tasks go on, too.
        runtime.block_on(async {
            for _ in 0..10 {
                tokio::task::yield_now().await;
            }
        });
        Some(Traces::now()).filter(fits)
    });
    settled.unwrap_or_else(Traces::now)
}

/// How the probes of each case ended.
#[derive(Default)]
struct Tally {
    /// As they should.
    good: BTreeMap<&'static str, usize>,
    /// Otherwise: the last one's text. On a busy machine a short deadline may
    /// come in an earlier phase.
    bad: BTreeMap<&'static str, String>,
    dropped: usize,
}

impl Tally {
    fn count(&mut self, case: &Case, report: Option<&Report>) {
        let Some(report) = report else {
            self.dropped += 1;
            *self.good.entry(case.name).or_default() += 1;
            return;
        };
        match case.end {
            End::At(status, phase) if (report.status(), report.failed_phase) != (status, phase) => {
                self.bad.insert(case.name, format!("{report:?}"));
            }
            End::Dropped(_) => {}
            End::At(..) => *self.good.entry(case.name).or_default() += 1,
        }
    }

    fn unseen<'a>(&'a self, kind: &'a Kind) -> impl Iterator<Item = (&'static str, String)> + 'a {
        let unseen = kind
            .cases
            .iter()
            .filter(|case| !self.good.contains_key(case.name));
        unseen.map(|case| {
            let seen = self.bad.get(case.name).cloned();
            (case.name, seen.unwrap_or_else(|| "none ran".to_owned()))
        })
    }
}

async fn run(prober: &Prober, kind: &Kind, probes: usize, tally: &mut Tally) {
    let mut running = futures_util::stream::iter(0..probes)
        .map(|index| async move {
            let case = &kind.cases[index % kind.cases.len()];
            let probe = prober.run(&case.definition);
            let report = match case.end {
                End::At(..) => Some(probe.await),
                // Here and there on its way.
                End::Dropped(most) => polled(probe, 1 + index / kind.cases.len() % most).await,
            };
            (case, report)
        })
        .buffer_unordered(kind.at_once.min(AT_ONCE));
    while let Some((case, report)) = running.next().await {
        tally.count(case, report.as_ref());
    }
}

/// Drops `future` when it has been polled so often, unless it has ended.
async fn polled<F: Future>(future: F, times: usize) -> Option<F::Output> {
    let mut future = pin!(future);
    let mut polled = 0;
    std::future::poll_fn(|cx| {
        polled += 1;
        match future.as_mut().poll(cx) {
            Poll::Ready(output) => Poll::Ready(Some(output)),
            Poll::Pending if polled >= times => Poll::Ready(None),
            Poll::Pending => Poll::Pending,
        }
    })
    .await
}
