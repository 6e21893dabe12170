use alloc::boxed::Box;
use core::fmt;
use core::sync::atomic::{AtomicU64, Ordering};

use crate::envoy::Decision;

/// Envoy's counters of a cluster that concern zones and panic
/// (docs/root/configuration/upstream/cluster_manager/cluster_stats.rst).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Counter {
    /// Requests to a priority in panic.
    HealthyPanic,
    /// Recalculations without a caller in the local zone, and requests while the
    /// callers are in panic.
    LocalClusterNotOk,
    /// Recalculations.
    RecalculateZoneStructures,
    /// Recalculations with too few healthy endpoints.
    ZoneClusterTooSmall,
    /// Requests across zones for which no zone had room.
    ZoneNoCapacityLeft,
    /// Requests that stayed in the zone because all of them do.
    ZoneRoutingAllDirectly,
    /// Requests that left the zone.
    ZoneRoutingCrossZone,
    /// Requests that stayed in the zone while others had to leave it.
    ZoneRoutingSampled,
    /// Requests for which no host was found.
    NoneHealthy,
}

impl Counter {
    /// All of them, in the order of their names.
    pub const ALL: [Self; 9] = [
        Self::HealthyPanic,
        Self::LocalClusterNotOk,
        Self::RecalculateZoneStructures,
        Self::ZoneClusterTooSmall,
        Self::ZoneNoCapacityLeft,
        Self::ZoneRoutingAllDirectly,
        Self::ZoneRoutingCrossZone,
        Self::ZoneRoutingSampled,
        Self::NoneHealthy,
    ];

    /// Envoy's name of it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::HealthyPanic => "lb_healthy_panic",
            Self::LocalClusterNotOk => "lb_local_cluster_not_ok",
            Self::RecalculateZoneStructures => "lb_recalculate_zone_structures",
            Self::ZoneClusterTooSmall => "lb_zone_cluster_too_small",
            Self::ZoneNoCapacityLeft => "lb_zone_no_capacity_left",
            Self::ZoneRoutingAllDirectly => "lb_zone_routing_all_directly",
            Self::ZoneRoutingCrossZone => "lb_zone_routing_cross_zone",
            Self::ZoneRoutingSampled => "lb_zone_routing_sampled",
            Self::NoneHealthy => "upstream_cx_none_healthy",
        }
    }
}

/// Lanes of the counters: a power of two, more than most proxies have threads.
const LANES: usize = 64;

/// One thread's share of the counters. As large as two cache lines, since some
/// processors fetch them in pairs.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Lane([AtomicU64; Counter::ALL.len()]);

/// The counters of one called service, for all threads.
///
/// They live longer than a picker: hand the same ones to the next. Threads count
/// in different places, so that they do not wait for each other; 8 KiB.
#[derive(Debug)]
pub struct Counters(Box<[Lane; LANES]>);

impl Default for Counters {
    fn default() -> Self {
        Self(Box::new(core::array::from_fn(|_| Lane::default())))
    }
}

impl Counters {
    /// All at 0.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds `count` to one of them.
    pub fn add(&self, counter: Counter, count: u64) {
        self.0[lane()].0[counter as usize].fetch_add(count, Ordering::Relaxed);
    }

    /// Counts a recalculation as Envoy does, on each of `threads` threads; Envoy
    /// has its workers and its main thread.
    pub fn count_recalculation(&self, decision: &Decision, threads: u64) {
        for counter in decision.recalculation_counters() {
            self.add(counter, threads);
        }
    }

    /// What it has come to. Wraps around at 64 bits.
    #[must_use]
    pub fn get(&self, counter: Counter) -> u64 {
        self.0
            .iter()
            .map(|lane| lane.0[counter as usize].load(Ordering::Relaxed))
            .fold(0, u64::wrapping_add)
    }

    /// The counters as Envoy's admin shows them at `/stats`: a line each,
    /// `cluster.NAME.COUNTER: VALUE`, in order of their names. A colon or a
    /// control character in the cluster's name is shown as `_`, as Envoy does
    /// with the colon.
    #[must_use]
    pub fn stats<'a>(&'a self, cluster: &'a str) -> impl fmt::Display + 'a {
        Stats {
            counters: self,
            cluster,
        }
    }
}

struct Stats<'a> {
    counters: &'a Counters,
    cluster: &'a str,
}

impl fmt::Display for Stats<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        use fmt::Write as _;
        for counter in Counter::ALL {
            f.write_str("cluster.")?;
            for character in self.cluster.chars() {
                f.write_char(match character {
                    ':' => '_',
                    other if other.is_control() => '_',
                    other => other,
                })?;
            }
            writeln!(f, ".{}: {}", counter.name(), self.counters.get(counter))?;
        }
        Ok(())
    }
}

/// A lane for the calling thread. Without `std` a thread has no name; what sets
/// it apart is where its stack is. Threads that share a lane count just as well,
/// only slower.
#[inline]
fn lane() -> usize {
    let marker = 0_u8;
    // Stacks are at least 64 KiB apart; a multiplication by the golden ratio
    // spreads what follows each other (Knuth, TAOCP 3, 6.4).
    let stack = (core::ptr::from_ref(&marker).addr() >> 16) as u64;
    (stack.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - LANES.trailing_zeros())) as usize
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;

    #[test]
    fn the_text_is_that_of_envoys_stats() {
        let counters = Counters::new();
        counters.add(Counter::ZoneRoutingSampled, 3);
        counters.add(Counter::NoneHealthy, 1);
        assert_eq!(
            counters.stats("a:b\n").to_string(),
            "cluster.a_b_.lb_healthy_panic: 0\n\
             cluster.a_b_.lb_local_cluster_not_ok: 0\n\
             cluster.a_b_.lb_recalculate_zone_structures: 0\n\
             cluster.a_b_.lb_zone_cluster_too_small: 0\n\
             cluster.a_b_.lb_zone_no_capacity_left: 0\n\
             cluster.a_b_.lb_zone_routing_all_directly: 0\n\
             cluster.a_b_.lb_zone_routing_cross_zone: 0\n\
             cluster.a_b_.lb_zone_routing_sampled: 3\n\
             cluster.a_b_.upstream_cx_none_healthy: 1\n"
        );
    }

    #[test]
    fn order_is_by_name() {
        assert!(Counter::ALL.is_sorted_by_key(|counter| counter.name()));
        for (index, counter) in Counter::ALL.into_iter().enumerate() {
            assert_eq!(counter as usize, index);
        }
    }
}
