//! What the daemon counts, for Prometheus.
//!
//! Labels are bounded: kinds, statuses, outcomes, never a check's name. Every
//! handle is looked up once, at the start; counting is an atomic addition.
//! `docs/metrics.md` lists them all, and a test keeps it complete.

mod xds;

use std::fmt;
use std::sync::atomic::AtomicU64;

use evenkeel_threshold::Status;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::{Registry, Unit};

type Label1 = [(&'static str, &'static str); 1];
type Label2 = [(&'static str, &'static str); 2];
type FloatGauge = Gauge<f64, AtomicU64>;

/// The kinds of probe that have a label of their own; any other is `other`.
pub const PROBE_KINDS: [&str; 11] = [
    "http", "tcp", "tls", "grpc", "h2ping", "docker", "script", "icmp", "udp", "dns", "other",
];

/// The lists that are read from Consul.
pub const LISTS: [&str; 5] = ["checks", "nodes", "services", "service", "health"];

/// The kinds of check that are reported as unsupported; any other is `other`.
pub const UNSUPPORTED_KINDS: [&str; 10] = [
    "alias",
    "docker",
    "grpc",
    "h2ping",
    "none",
    "os_service",
    "other",
    "script",
    "ttl",
    "udp",
];

/// What a strategy can remark on a status.
const MARKS: [&str; 2] = ["flapping", "suppressed"];

/// What a probe can come to: the three statuses by number, then `unprobed`.
const OUTCOMES: [&str; 4] = ["passing", "warning", "critical", "unprobed"];

/// Probe durations in seconds: from a tenth of a millisecond, which loopback
/// takes, to ten seconds, the default timeout.
const DURATION_BUCKETS: [f64; 12] = [
    0.000_25, 0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.025, 0.1, 0.5, 1.0, 5.0, 10.0,
];

/// Loop lag in seconds.
const LAG_BUCKETS: [f64; 8] = [0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.25, 1.0];

/// All metrics of one daemon.
pub struct Metrics {
    registry: Registry,
    probes: [[Counter; OUTCOMES.len()]; PROBE_KINDS.len()],
    probe_seconds: [Histogram; PROBE_KINDS.len()],
    /// Probes under way.
    pub probes_running: Gauge,
    /// Probes that are due but wait: `probe.max_concurrent` run at once.
    pub probes_waiting: Gauge,
    /// Lookups that had no answer and went on with addresses that were held.
    pub held_addresses: Counter,
    /// ICMP messages that belonged to no round of echoes.
    pub stray_echoes: Counter,
    /// How late the loop woke up.
    pub loop_lag: Histogram,
    /// Gaps in which the process stood still.
    pub pauses: Counter,
    transitions: [Counter; 3],
    /// Raw changes that did not become a transition.
    pub suppressed: Counter,
    /// Remarks that began: flapping, suppressed.
    pub marks: [Counter; 2],
    /// Results that came after their check was gone or restarted.
    pub late_observations: Counter,
    /// Turns of a check that were left out: its last probe still ran, or the
    /// loop was late.
    pub skipped_ticks: Counter,
    writes: Family<Label2, Counter>,
    /// Batches of writes sent; one is one transaction, or the registers of up to
    /// 64 checks.
    pub write_batches: Counter,
    /// Writes refused because the check had changed since it was read.
    pub lost_races: Counter,
    /// Statuses in the catalog that are not the one we wrote.
    pub drifts: Counter,
    deregistrations: Family<Label1, Counter>,
    checks: [Gauge; 3],
    /// Checks whose released status is not in the catalog yet.
    pub checks_unwritten: Gauge,
    /// Checks whose latest three probes or more could not be run.
    pub checks_unprobed: Gauge,
    unsupported: [Gauge; UNSUPPORTED_KINDS.len()],
    /// Checks with a fault in a source of their thresholds.
    pub threshold_faults: Gauge,
    catalog_reads: Family<Label2, Counter>,
    catalog_read_seconds: Family<Label1, Histogram, fn() -> Histogram>,
    /// Whether the catalog is degraded: 1 if its last list is kept.
    pub catalog_degraded: Gauge,
    /// Whether writes go through: 0 while Consul has no leader.
    pub writable: Gauge,
    /// Whether another monitor is seen on the same checks.
    pub other_monitor: Gauge,
    /// Services that are followed for their zones.
    pub zone_services: Gauge,
    /// Pairs of a called and a calling service that are followed.
    pub zone_pairs: Gauge,
    /// Calculations of the split between zones.
    pub zone_recalculations: Counter,
    xds: xds::XdsMetrics,
    /// Lines that did not get into the event log.
    pub events_lost: Counter,
    state_saves: Family<Label1, Counter>,
    /// Whether `/ready` says yes.
    pub ready: Gauge,
    /// When the process started, in Unix seconds.
    pub started: FloatGauge,
}

impl fmt::Debug for Metrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Metrics").finish_non_exhaustive()
    }
}

impl Default for Metrics {
    fn default() -> Self {
        Self::new()
    }
}

impl Metrics {
    /// All metrics at zero.
    pub fn new() -> Self {
        let mut registry = Registry::with_prefix("evenkeel");
        let r = &mut registry;

        let probes = Family::<Label2, Counter>::default();
        r.register("probes", "Probes that ended", probes.clone());
        let probe_seconds =
            Family::<Label1, Histogram>::new_with_constructor(|| Histogram::new(DURATION_BUCKETS));
        r.register_with_unit(
            "probe_duration",
            "How long probes took",
            Unit::Seconds,
            probe_seconds.clone(),
        );
        let probes_running = gauge(r, "probes_running", "Probes under way");
        let probes_waiting = gauge(
            r,
            "probes_waiting",
            "Probes that are due but wait for a place",
        );
        let held_addresses = counter(
            r,
            "held_addresses",
            "Lookups that had no answer and went on with the last good addresses",
        );
        let stray_echoes = counter(
            r,
            "stray_echoes",
            "ICMP messages that belonged to no round of echoes",
        );
        let loop_lag = Histogram::new(LAG_BUCKETS);
        r.register_with_unit(
            "loop_lag",
            "How late the daemon's loop woke up",
            Unit::Seconds,
            loop_lag.clone(),
        );
        let pauses = counter(
            r,
            "pauses",
            "Times the process stood still for over a second",
        );
        let transitions = Family::<Label1, Counter>::default();
        r.register(
            "transitions",
            "Changes of a reported status",
            transitions.clone(),
        );
        let marks = Family::<Label1, Counter>::default();
        r.register(
            "marks",
            "Times a strategy began to call a check flapping, or to suppress its changes",
            marks.clone(),
        );
        let suppressed = counter(
            r,
            "suppressed_changes",
            "Changes of the raw result that were not reported",
        );
        let late_observations = counter(
            r,
            "late_observations",
            "Results for a check that was gone or restarted by then",
        );
        let skipped_ticks = counter(r, "skipped_ticks", "Turns of a check that were left out");
        let writes = Family::<Label2, Counter>::default();
        r.register("writes", "Statuses written to the catalog", writes.clone());
        let write_batches = counter(
            r,
            "write_batches",
            "Batches of statuses sent to the catalog",
        );
        let lost_races = counter(
            r,
            "lost_races",
            "Writes refused since the check had changed after it was read",
        );
        let drifts = counter(r, "drifts", "Statuses in the catalog that were not ours");
        let deregistrations = Family::<Label1, Counter>::default();
        r.register(
            "deregistrations",
            "Services removed after being critical for too long",
            deregistrations.clone(),
        );
        let checks = Family::<Label1, Gauge>::default();
        r.register("checks", "Checks by reported status", checks.clone());
        let checks_unwritten = gauge(
            r,
            "checks_unwritten",
            "Checks whose reported status is not in the catalog yet",
        );
        let checks_unprobed = gauge(
            r,
            "checks_unprobed",
            "Checks whose latest three probes or more could not be run",
        );
        let unsupported = Family::<Label1, Gauge>::default();
        r.register(
            "checks_unsupported",
            "Checks of a kind that is not probed",
            unsupported.clone(),
        );
        let threshold_faults = gauge(
            r,
            "threshold_faults",
            "Checks with a fault in a source of their thresholds",
        );
        let catalog_reads = Family::<Label2, Counter>::default();
        r.register(
            "catalog_reads",
            "Lists read from the catalog",
            catalog_reads.clone(),
        );
        let catalog_read_seconds =
            Family::<Label1, Histogram, fn() -> Histogram>::new_with_constructor(
                (|| Histogram::new(DURATION_BUCKETS)) as fn() -> Histogram,
            );
        r.register_with_unit(
            "catalog_read",
            "How long a list took from its first byte to its last",
            Unit::Seconds,
            catalog_read_seconds.clone(),
        );
        let catalog_degraded = gauge(
            r,
            "catalog_degraded",
            "1 while the catalog cannot be read or believed and the last one is kept",
        );
        let writable = gauge(
            r,
            "writable",
            "0 while writes are held since Consul has no leader",
        );
        let other_monitor = gauge(
            r,
            "other_monitor",
            "1 while another monitor is seen on these checks",
        );
        let zone_services = gauge(
            r,
            "zone_services",
            "Services that are followed for their zones",
        );
        let zone_pairs = gauge(
            r,
            "zone_pairs",
            "Pairs of a called and a calling service, by rule, that are followed",
        );
        let zone_recalculations = counter(
            r,
            "zone_recalculations",
            "Calculations of the split of requests between zones",
        );
        let xds = xds::XdsMetrics::new(r);
        let events_lost = counter(r, "events_lost", "Lines that are missing in the event log");
        let state_saves = Family::<Label1, Counter>::default();
        r.register("state_saves", "Snapshots of the state", state_saves.clone());
        let ready = gauge(r, "ready", "1 if /ready says so");
        let started = FloatGauge::default();
        r.register_with_unit(
            "process_start_time",
            "When the process started, since the Unix epoch",
            Unit::Seconds,
            started.clone(),
        );
        let build = Family::<Label1, Gauge>::default();
        r.register("build", "The running version", build.clone());
        build
            .get_or_create(&[("version", env!("CARGO_PKG_VERSION"))])
            .set(1);

        let metrics = Self {
            probes: PROBE_KINDS.map(|kind| {
                OUTCOMES.map(|outcome| {
                    probes.get_or_create_owned(&[("kind", kind), ("outcome", outcome)])
                })
            }),
            probe_seconds: PROBE_KINDS
                .map(|kind| probe_seconds.get_or_create_owned(&[("kind", kind)])),
            transitions: Status::ALL
                .map(|to| transitions.get_or_create_owned(&[("to", to.as_str())])),
            checks: Status::ALL
                .map(|status| checks.get_or_create_owned(&[("status", status.as_str())])),
            unsupported: UNSUPPORTED_KINDS
                .map(|kind| unsupported.get_or_create_owned(&[("kind", kind)])),
            registry,
            probes_running,
            probes_waiting,
            held_addresses,
            stray_echoes,
            loop_lag,
            pauses,
            marks: MARKS.map(|mark| marks.get_or_create_owned(&[("mark", mark)])),
            suppressed,
            late_observations,
            skipped_ticks,
            writes,
            write_batches,
            lost_races,
            drifts,
            deregistrations: deregistrations.clone(),
            checks_unwritten,
            checks_unprobed,
            threshold_faults,
            catalog_reads: catalog_reads.clone(),
            catalog_read_seconds: catalog_read_seconds.clone(),
            catalog_degraded,
            writable,
            other_monitor,
            zone_services,
            zone_pairs,
            zone_recalculations,
            xds,
            events_lost,
            state_saves: state_saves.clone(),
            ready,
            started,
        };
        // A series that is at zero from the start can be alerted on.
        for outcome in ["written", "stale", "gone", "failed", "refused"] {
            for way in ["transaction", "register"] {
                metrics.writes(way, outcome, 0);
            }
        }
        for outcome in ["done", "failed"] {
            drop(deregistrations.get_or_create(&[("outcome", outcome)]));
            drop(state_saves.get_or_create(&[("outcome", outcome)]));
        }
        for list in LISTS {
            for outcome in ["ok", "error"] {
                drop(catalog_reads.get_or_create(&[("list", list), ("outcome", outcome)]));
            }
            drop(catalog_read_seconds.get_or_create(&[("list", list)]));
        }
        metrics.writable.set(1);
        metrics
    }

    /// One probe of the kind `PROBE_KINDS[kind]` ended; `status` is none if it
    /// could not be run.
    pub fn probe_ended(&self, kind: usize, status: Option<Status>, seconds: f64) {
        let outcome = status.map_or(OUTCOMES.len() - 1, |status| status as usize);
        self.probes[kind][outcome].inc();
        self.probe_seconds[kind].observe(seconds);
    }

    /// A reported status changed.
    pub fn transition(&self, to: Status) {
        self.transitions[to as usize].inc();
    }

    /// `count` statuses went to the catalog by `way` with `outcome`.
    pub fn writes(&self, way: &'static str, outcome: &'static str, count: u64) {
        self.writes
            .get_or_create(&[("way", way), ("outcome", outcome)])
            .inc_by(count);
    }

    /// A service was removed, or could not be.
    pub fn deregistered(&self, done: bool) {
        let outcome = if done { "done" } else { "failed" };
        self.deregistrations
            .get_or_create(&[("outcome", outcome)])
            .inc();
    }

    /// Checks per reported status.
    pub fn set_checks(&self, counts: [u64; 3]) {
        for (gauge, count) in self.checks.iter().zip(counts) {
            set(gauge, count);
        }
    }

    /// Checks that are not probed, by the kind of each.
    pub fn set_unsupported<'a>(&self, kinds: impl IntoIterator<Item = &'a str>) {
        let mut counts = [0; UNSUPPORTED_KINDS.len()];
        for kind in kinds {
            let known = UNSUPPORTED_KINDS.iter().position(|known| *known == kind);
            let other = UNSUPPORTED_KINDS.iter().position(|known| *known == "other");
            if let Some(count) = known.or(other).and_then(|at| counts.get_mut(at)) {
                *count += 1;
            }
        }
        for (gauge, count) in self.unsupported.iter().zip(counts) {
            set(gauge, count);
        }
    }

    /// One list of the catalog was read in `seconds`, or could not be.
    pub fn catalog_read(&self, list: &'static str, ok: bool, seconds: f64) {
        let outcome = if ok { "ok" } else { "error" };
        self.catalog_reads
            .get_or_create(&[("list", list), ("outcome", outcome)])
            .inc();
        if ok {
            self.catalog_read_seconds
                .get_or_create(&[("list", list)])
                .observe(seconds);
        }
    }

    /// Brings what is counted of proxies up to date.
    pub fn follow_xds(&self, server: &evenkeel_xds::Server) {
        self.xds.follow(server);
    }

    /// A snapshot was written, or could not be.
    pub fn state_saved(&self, done: bool) {
        let outcome = if done { "done" } else { "failed" };
        self.state_saves
            .get_or_create(&[("outcome", outcome)])
            .inc();
    }

    /// Everything in the OpenMetrics text format.
    pub fn encode(&self) -> String {
        let mut text = String::new();
        // Writing to a string does not fail.
        let _ = prometheus_client::encoding::text::encode(&mut text, &self.registry);
        text
    }
}

/// Sets a gauge to a count.
pub fn set(gauge: &Gauge, count: u64) {
    gauge.set(i64::try_from(count).unwrap_or(i64::MAX));
}

/// Brings a counter up to `total`, a number that somebody else counts.
pub fn raise_to(counter: &Counter, total: u64) {
    counter.inc_by(total.saturating_sub(counter.get()));
}

fn counter(registry: &mut Registry, name: &str, help: &str) -> Counter {
    let counter = Counter::default();
    registry.register(name, help, counter.clone());
    counter
}

fn gauge(registry: &mut Registry, name: &str, help: &str) -> Gauge {
    let gauge = Gauge::default();
    registry.register(name, help, gauge.clone());
    gauge
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    const DOCS: &str = include_str!("../../../docs/metrics.md");

    #[test]
    fn the_page_lists_exactly_the_metrics_there_are() {
        let text = Metrics::new().encode();
        let real: BTreeSet<&str> = text
            .lines()
            .filter_map(|line| line.strip_prefix("# TYPE ")?.split(' ').next())
            .collect();
        let listed: BTreeSet<&str> = DOCS
            .lines()
            .filter_map(|line| line.strip_prefix("| `")?.split(['`', '{']).next())
            .map(|name| name.strip_suffix("_total").unwrap_or(name))
            .collect();
        assert_eq!(listed, real);
    }

    /// The meaning in the page begins with the help text, so that neither says
    /// what the other does not.
    #[test]
    fn the_page_means_what_the_help_text_says() {
        let text = Metrics::new().encode();
        for line in text.lines().filter_map(|line| line.strip_prefix("# HELP ")) {
            let (name, help) = line.split_once(' ').unwrap();
            let help = help.trim_end_matches('.').to_lowercase();
            let row = DOCS
                .lines()
                .find(|row| {
                    let told = row
                        .strip_prefix("| `")
                        .and_then(|row| row.split(['`', '{']).next());
                    told.map(|told| told.strip_suffix("_total").unwrap_or(told)) == Some(name)
                })
                .unwrap();
            let meaning = row.split(" | ").nth(2).unwrap().to_lowercase();
            assert!(
                meaning.starts_with(&help),
                "{name}: {help:?} is not how {meaning:?} begins"
            );
        }
    }

    // P071: counters that exist from the start, at zero, can be alerted on.
    #[test]
    fn what_matters_is_there_before_it_first_happens() {
        let text = Metrics::new().encode();
        for line in [
            "evenkeel_probes_total{kind=\"http\",outcome=\"critical\"} 0",
            "evenkeel_writes_total{way=\"transaction\",outcome=\"failed\"} 0",
            "evenkeel_suppressed_changes_total 0",
            "evenkeel_transitions_total{to=\"critical\"} 0",
        ] {
            assert!(text.contains(line), "{line} is not in\n{text}");
        }
    }

    #[test]
    fn a_counter_that_follows_another_never_goes_back() {
        let counter = Counter::default();
        raise_to(&counter, 5);
        raise_to(&counter, 3);
        raise_to(&counter, 6);
        assert_eq!(counter.get(), 6);
    }
}
