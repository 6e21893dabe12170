use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;

use evenkeel_benches::{cpu, process};
use evenkeel_probe::{Definition, Prober};
use evenkeel_threshold::Status;
use tokio::time::{Instant, MissedTickBehavior};

use crate::Failable;

/// So many probes at so many a second.
#[derive(Clone, Copy)]
pub(crate) struct Run {
    pub(crate) probes: u32,
    pub(crate) rate: u32,
    /// Programs are run, whose time counts, too. It is told in hundredths of a
    /// second.
    pub(crate) with_children: bool,
}

impl Run {
    /// Fewer and slower by a divisor, for kinds that are dear.
    pub(crate) fn over(self, divisor: u32) -> Self {
        Self {
            probes: (self.probes / divisor).max(1),
            rate: (self.rate / divisor).max(1),
            ..self
        }
    }

    /// What the prober takes, in turn over the definitions.
    pub(crate) fn prober(&self, prober: &Prober, definitions: &[Rc<Definition>]) -> Failable<f64> {
        self.measure(|index| {
            let definition = Rc::clone(&definitions[index as usize % definitions.len()]);
            let prober = prober.clone();
            async move {
                let report = prober.run(&definition).await;
                let good = report.status() == Some(Status::Passing);
                if !good {
                    println!("{}", report.output);
                }
                good
            }
        })
    }

    /// CPU microseconds per probe, of this thread's runtime with all that it
    /// does: ticks, tasks, exchanges.
    pub(crate) fn measure<F: Future<Output = bool> + 'static>(
        &self,
        probe: impl Fn(u32) -> F,
    ) -> Failable<f64> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        let local = tokio::task::LocalSet::new();
        let (probes, rate) = (self.probes, self.rate);
        let before = self.used()?;
        let good = local.block_on(&runtime, async {
            let good = Rc::new(Cell::new(0));
            let done = Rc::new(Cell::new(0));
            let begin = Instant::now();
            let mut ticks = tokio::time::interval(Duration::from_millis(1));
            ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
            let mut started = 0;
            while done.get() < probes {
                ticks.tick().await;
                let due = (begin.elapsed().as_secs_f64() * f64::from(rate)) as u32;
                while started < due.min(probes) {
                    let probe = probe(started);
                    let (good, done) = (good.clone(), done.clone());
                    tokio::task::spawn_local(async move {
                        let passed = probe.await;
                        good.set(good.get() + u32::from(passed));
                        done.set(done.get() + 1);
                    });
                    started += 1;
                }
            }
            good.get()
        });
        let used = self.used()? - before;
        if good != probes {
            return Err(format!("{good} of {probes} probes were passing").into());
        }
        Ok(used.as_secs_f64() * 1e6 / f64::from(probes))
    }

    fn used(&self) -> Failable<Duration> {
        Ok(if self.with_children {
            process::cpu_with_children(std::process::id())?
        } else {
            cpu::used(None)?
        })
    }
}
