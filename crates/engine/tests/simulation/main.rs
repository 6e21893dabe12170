//! The engine in a simulated world, in virtual time, over many seeds.
//!
//! A run takes 90 s in which everything goes wrong that can: flaky and silent
//! targets, lists that fail, lag, come empty or come back, writes that fail, are
//! refused, lose races or of which the answer is lost, other writers, edits of
//! definitions, intervals and thresholds, checks that go and come, a leader that
//! is lost, a process that is paused, late, stopped and killed. Then 90 s of
//! peace, after which the catalog must show what is true. At every step the
//! engine is compared with [`spec`], the same rules written down a second time.
//!
//! `EVENKEEL_SIMULATION_SEEDS=N` sets how many seeds are run (300), and
//! `EVENKEEL_SIMULATION_FIRST=N` the first of them (0). A
//! single seed tells its story.

mod catalog;
mod random;
mod spec;
mod world;

use std::panic::{AssertUnwindSafe, catch_unwind};

fn number(variable: &str, otherwise: u64) -> u64 {
    match std::env::var(variable) {
        Ok(text) => text.parse().expect("a number"),
        Err(_) => otherwise,
    }
}

#[test]
fn simulation_of_everything_that_goes_wrong() {
    let first = number("EVENKEEL_SIMULATION_FIRST", 0);
    let seeds = number("EVENKEEL_SIMULATION_SEEDS", 300);
    for seed in first..first + seeds {
        let run = catch_unwind(AssertUnwindSafe(|| {
            world::World::new(seed, seeds == 1).run();
        }));
        if let Err(panic) = run {
            eprintln!(
                "seed {seed} fails; again with: EVENKEEL_SIMULATION_FIRST={seed} \
                 EVENKEEL_SIMULATION_SEEDS=1 cargo test -p evenkeel-engine --test simulation"
            );
            std::panic::resume_unwind(panic);
        }
    }
}
