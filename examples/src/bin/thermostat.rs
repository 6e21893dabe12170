//! Two levels of alarm over a temperature: numbers become observations by two
//! pairs of thresholds, and a strategy in time keeps short spikes out.
//!
//! A single threshold would chatter: at 70.0 the noise of the sensor alone makes
//! an alarm come and go. So each level is entered at one number and left at a
//! lower one, and what lies between agrees with whatever is reported.

#![expect(clippy::print_stdout, reason = "what a program prints is its result")]

use std::time::Duration;

use evenkeel_threshold::{FirstResult, Hold, Status, Strategy, Timestamp};

/// A level that is entered at or above `enter`, and left below `leave`.
struct Level {
    enter: f64,
    leave: f64,
}

/// Degrees Celsius.
const WARNING: Level = Level {
    enter: 70.0,
    leave: 65.0,
};
const CRITICAL: Level = Level {
    enter: 85.0,
    leave: 80.0,
};

impl Level {
    fn holds(&self, entered: bool, value: f64) -> bool {
        value >= if entered { self.leave } else { self.enter }
    }
}

/// What a reading says, given what is reported.
fn status(reported: Status, celsius: f64) -> Status {
    if CRITICAL.holds(reported == Status::Critical, celsius) {
        Status::Critical
    } else if WARNING.holds(reported >= Status::Warning, celsius) {
        Status::Warning
    } else {
        Status::Passing
    }
}

fn main() {
    // Hot for 3 s before anything is said, cool for 5 s before it is taken back.
    let strategy = Hold {
        failing_for: Duration::from_secs(3),
        passing_for: Duration::from_secs(5),
        ..Hold::default()
    };
    let mut state = strategy.start(Status::Passing, FirstResult::Counted, Timestamp::ZERO);

    let mut changes = Vec::new();
    for second in 0_u32..180 {
        // Warms up for a minute, stays hot for one, and cools down; the sensor is
        // off by up to 2 degrees, and once it shows nonsense.
        let true_value = match second {
            0..60 => 40.0 + f64::from(second) * 0.8,
            60..120 => 88.0,
            _ => 88.0 - f64::from(second - 120) * 0.8,
        };
        let noise = [0.0, 1.9, -1.7, 0.6, -0.4][second as usize % 5];
        let celsius = if second == 20 {
            150.0
        } else {
            true_value + noise
        };

        let now = Timestamp::from_millis(u64::from(second) * 1000);
        let observed = status(strategy.reported(&state), celsius);
        if let Some(change) = strategy.observe(&mut state, observed.into(), now) {
            println!(
                "second {second}: {celsius:.1} °C, {} to {}",
                change.from, change.to
            );
            changes.push(change.to);
        }
    }

    // Each level once up and once down, in spite of the noise and the spike.
    use Status::{Critical, Passing, Warning};
    assert_eq!(changes, [Warning, Critical, Warning, Passing]);
}
