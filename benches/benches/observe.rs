//! What one result costs: `cargo bench -p evenkeel-benches --bench observe`.
//!
//! Each figure is one call of `observe`, the fetching of the next result from a
//! recorded series included. The series flips now and then, as a target does
//! that goes up and down.

use std::hint::black_box;

use divan::Bencher;
use evenkeel_threshold::{
    AnyStrategy, Consecutive, Consul, ConsulEsm, Counts, Cusum, Dwell, Ewma, FirstResult, Flap,
    Heartbeat, Hold, Leaky, Observation, Penalty, Phi, Status, Strategy, Timestamp, Window,
};

fn main() {
    divan::main();
}

/// A power of two, so that the next index is a mask and not a division.
const RESULTS: usize = 4096;

/// Mostly passing, with single failures and outages, in no pattern that a
/// branch predictor could learn (xorshift, seeded).
fn results() -> Vec<Observation> {
    let mut seed = 0x2545_f491_4f6c_dd1d_u64;
    let mut random = move || {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        seed
    };
    let mut down = false;
    (0..RESULTS)
        .map(|_| {
            down ^= random() % 20 == 0;
            let status = match random() % 20 {
                0 => Status::Warning,
                1 if !down => Status::Critical,
                _ if down => Status::Critical,
                _ => Status::Passing,
            };
            Observation::counted(status)
        })
        .collect()
}

fn counts() -> Counts {
    Counts {
        failures_before_critical: 3,
        failures_before_warning: None,
        success_before_passing: 2,
    }
}

fn observe<S: Strategy>(bencher: Bencher<'_, '_>, strategy: S) {
    let strategy = black_box(strategy);
    let results = results();
    let now = Timestamp::from_millis(1_700_000_000_000);
    let mut state = strategy.start(Status::Passing, FirstResult::Counted, now);
    let mut next = 0;
    bencher.bench_local(|| {
        let observation = results[next];
        next = (next + 1) % RESULTS;
        // In place, as whoever keeps many checks does it.
        strategy.observe(&mut state, observation, now)
    });
}

#[divan::bench]
fn leaky(bencher: Bencher<'_, '_>) {
    observe(bencher, Leaky::new(2, 1));
}

#[divan::bench]
fn consecutive(bencher: Bencher<'_, '_>) {
    observe(bencher, Consecutive::new(counts()).expect("valid counts"));
}

#[divan::bench]
fn consul(bencher: Bencher<'_, '_>) {
    observe(bencher, Consul::new(counts()).expect("valid counts"));
}

#[divan::bench]
fn window(bencher: Bencher<'_, '_>) {
    observe(bencher, Window::default());
}

#[divan::bench]
fn any_leaky(bencher: Bencher<'_, '_>) {
    observe(bencher, AnyStrategy::from(Leaky::new(2, 1)));
}

#[divan::bench]
fn any_consecutive(bencher: Bencher<'_, '_>) {
    let rule = Consecutive::new(counts()).expect("valid counts");
    observe(bencher, AnyStrategy::from(rule));
}

#[divan::bench]
fn any_window(bencher: Bencher<'_, '_>) {
    observe(bencher, AnyStrategy::from(Window::default()));
}

#[divan::bench]
fn any_ewma(bencher: Bencher<'_, '_>) {
    observe(bencher, AnyStrategy::from(Ewma::default()));
}

#[divan::bench]
fn any_cusum(bencher: Bencher<'_, '_>) {
    observe(bencher, AnyStrategy::from(Cusum::default()));
}

#[divan::bench]
fn any_hold(bencher: Bencher<'_, '_>) {
    observe(bencher, AnyStrategy::from(Hold::default()));
}

#[divan::bench]
fn any_dwell(bencher: Bencher<'_, '_>) {
    observe(bencher, AnyStrategy::from(Dwell::default()));
}

#[divan::bench]
fn any_penalty(bencher: Bencher<'_, '_>) {
    observe(bencher, AnyStrategy::from(Penalty::default()));
}

#[divan::bench]
fn any_flap(bencher: Bencher<'_, '_>) {
    observe(bencher, AnyStrategy::from(Flap::default()));
}

#[divan::bench]
fn any_consul_esm(bencher: Bencher<'_, '_>) {
    observe(bencher, AnyStrategy::from(ConsulEsm::default()));
}

#[divan::bench]
fn any_heartbeat(bencher: Bencher<'_, '_>) {
    observe(bencher, AnyStrategy::from(Heartbeat::default()));
}

#[divan::bench]
fn any_phi(bencher: Bencher<'_, '_>) {
    observe(bencher, AnyStrategy::from(Phi::default()));
}
