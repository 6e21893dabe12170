//! A circuit breaker around a client: after enough failures the server is spared,
//! and asked again now and then until it has recovered.
//!
//! The strategy decides when the circuit opens and closes; any will do. The
//! server of this program fails for a while, on a clock that is played.

#![expect(clippy::print_stdout, reason = "what a program prints is its result")]

use std::time::Duration;

use evenkeel_threshold::{
    Consecutive, Counts, FirstResult, ParameterError, Status, Strategy, Timestamp,
};

/// A circuit between us and one server. Closed while `passing` is reported.
struct Breaker<S: Strategy> {
    strategy: S,
    state: S::State,
    /// While the circuit is open: from one trial to the next.
    pause: Duration,
    next_trial: Timestamp,
}

/// Why there is no answer.
#[derive(Debug, PartialEq)]
enum CallError<E> {
    /// The circuit is open; the server was not asked.
    Open,
    /// The server was asked, and failed.
    Failed(E),
}

impl<S: Strategy> Breaker<S> {
    fn new(strategy: S, pause: Duration, now: Timestamp) -> Self {
        let state = strategy.start(Status::Passing, FirstResult::Counted, now);
        Self {
            strategy,
            state,
            pause,
            next_trial: now,
        }
    }

    fn is_open(&self) -> bool {
        self.strategy.reported(&self.state) != Status::Passing
    }

    fn call<T, E>(
        &mut self,
        now: Timestamp,
        ask: impl FnOnce() -> Result<T, E>,
    ) -> Result<T, CallError<E>> {
        if self.is_open() && now < self.next_trial {
            return Err(CallError::Open);
        }
        let answer = ask();
        let result = match answer {
            Ok(_) => Status::Passing,
            Err(_) => Status::Critical,
        };
        self.strategy.observe(&mut self.state, result.into(), now);
        // A server that has just failed is left alone for a while; one that answers
        // a trial is asked again at once.
        if result != Status::Passing {
            self.next_trial = now.saturating_add(self.pause);
        }
        answer.map_err(CallError::Failed)
    }
}

fn main() -> Result<(), ParameterError> {
    let strategy = Consecutive::new(Counts {
        failures_before_critical: 3,
        success_before_passing: 2,
        ..Counts::default()
    })?;
    let mut breaker = Breaker::new(strategy, Duration::from_secs(5), Timestamp::ZERO);

    let (mut asked, mut spared) = (0, 0);
    let mut changes = Vec::new();
    // Each second a request; the server is down from second 10 to 29.
    for second in 0..60 {
        let now = Timestamp::from_millis(second * 1000);
        let was_open = breaker.is_open();
        let answer = breaker.call(now, || {
            asked += 1;
            match second {
                10..30 => Err("connection refused"),
                _ => Ok("hello"),
            }
        });
        spared += u32::from(answer == Err(CallError::Open));
        if breaker.is_open() != was_open {
            let change = if was_open { "closes" } else { "opens" };
            println!("second {second}: the circuit {change}");
            changes.push((second, change));
        }
    }
    println!("{asked} requests reached the server, {spared} were spared");

    // Open at the third failure; three more trials fail, the fourth does not.
    assert_eq!(changes, [(12, "opens"), (33, "closes")]);
    assert_eq!((asked, spared), (44, 16));
    Ok(())
}
