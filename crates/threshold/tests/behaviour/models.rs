//! The rules once more, slowly: each model keeps every result and works out
//! afresh, from the prose of the documentation, what is to be reported.

use evenkeel_threshold::{AnyStrategy, FirstResult, Observation, Status, Strategy};
use proptest::prelude::*;

use crate::generators::{any_first, any_status, any_strategy, at_least, observations};
use crate::support::NOW;

struct Model {
    rule: AnyStrategy,
    reported: Status,
    believe_next: bool,
    /// Each result, and what was reported after it. The leaky model and the
    /// consecutive one start over at a flip.
    history: Vec<(Status, Status)>,
}

impl Model {
    fn new(rule: AnyStrategy, reported: Status, first: FirstResult) -> Self {
        let history = match rule {
            AnyStrategy::Consul(_) => vec![(reported, reported); 100],
            _ => Vec::new(),
        };
        Self {
            rule,
            reported,
            believe_next: first == FirstResult::Believed,
            history,
        }
    }

    fn observe(&mut self, observation: Observation) {
        let result = observation.status;
        let believed = observation.immediate || self.believe_next;
        self.believe_next = false;
        let to = match self.rule {
            AnyStrategy::Consul(_) if believed => {
                // As many results of this kind as any threshold asks for.
                self.history.extend([(result, result); 100]);
                result
            }
            _ if believed => {
                self.history.clear();
                result
            }
            AnyStrategy::Leaky(rule) => {
                let surplus = |counts: fn(&Status, &Status) -> bool| {
                    let results = self.history.iter().map(|(result, _)| result);
                    largest_surplus(
                        results
                            .chain([&result])
                            .map(|result| counts(result, &self.reported)),
                    )
                };
                let failures = surplus(Status::gt);
                let recoveries = surplus(Status::lt);
                let worse = failures > i64::from(rule.critical_threshold());
                let better = recoveries > i64::from(rule.passing_threshold());
                if worse || better {
                    self.history.clear();
                    self.reported = result;
                    return;
                }
                self.reported
            }
            AnyStrategy::Consecutive(rule) => {
                let counts = rule.counts();
                let critical = counts.failures_before_critical;
                let warning = counts.failures_before_warning.unwrap_or(critical);
                let before = |counts: fn(&Status, &Status) -> bool| {
                    let run = self.history.iter().rev();
                    1 + run
                        .take_while(|(result, reported)| counts(result, reported))
                        .count() as u32
                };
                if result > self.reported && before(Status::gt) >= critical {
                    result
                } else if result > self.reported && before(Status::gt) >= warning {
                    Status::Warning
                } else if result < self.reported
                    && before(Status::lt) >= counts.success_before_passing
                {
                    result
                } else {
                    self.reported
                }
            }
            AnyStrategy::Consul(rule) => {
                let counts = rule.counts();
                let critical = counts.failures_before_critical;
                let warning = counts.failures_before_warning.unwrap_or(critical);
                let failed = result == Status::Critical;
                let run = self.history.iter().rev();
                let run = 1 + run
                    .take_while(|(earlier, _)| (*earlier == Status::Critical) == failed)
                    .count() as u32;
                match failed {
                    true if run >= critical => Status::Critical,
                    true if run >= warning => Status::Warning,
                    false if run >= counts.success_before_passing => result,
                    _ => self.reported,
                }
            }
            _ => unreachable!("no model for {:?}", self.rule),
        };
        self.reported = to;
        self.history.push((result, to));
    }
}

/// The surplus of yes over no in the latest results, over however many of them
/// it is largest. That is where a count ends that goes up with each yes and down
/// with each no but never below 0.
fn largest_surplus(results: impl DoubleEndedIterator<Item = bool>) -> i64 {
    results
        .rev()
        .scan(0_i64, |sum, yes| {
            *sum += if yes { 1 } else { -1 };
            Some(*sum)
        })
        .fold(0, i64::max)
}

proptest! {
    #![proptest_config(at_least(2048))]

    #[test]
    fn every_rule_reports_what_its_prose_says(
        rule in any_strategy(),
        initial in any_status(),
        first in any_first(),
        observations in observations(),
    ) {
        let mut model = Model::new(rule, initial, first);
        let mut state = rule.start(initial, first, NOW);
        for (number, observation) in observations.into_iter().enumerate() {
            model.observe(observation);
            rule.observe(&mut state, observation, NOW);
            prop_assert_eq!(
                rule.reported(&state),
                model.reported,
                "after result {}, {:?}", number, observation
            );
        }
    }
}
