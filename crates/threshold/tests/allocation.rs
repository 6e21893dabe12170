//! Nothing is allocated, counted by the process's allocator.

use allocation_counter::measure;
use evenkeel_threshold::{AnyStrategy, FirstResult, Record, Status, Strategy, Timestamp};

#[test]
fn nothing_is_allocated_for_a_check() {
    let damped = "consecutive:down=4,failures-before-warning=2,up=2";
    let strategies: Vec<AnyStrategy> = AnyStrategy::NAMES
        .iter()
        .copied()
        .chain([damped, "leaky:critical-threshold=3"])
        .map(|text| AnyStrategy::parse(text).expect("valid"))
        .collect();
    let start = Timestamp::ZERO;
    let mut flips = 0;
    let allocated = measure(|| {
        for strategy in &strategies {
            let mut state = strategy.start(Status::Passing, FirstResult::Counted, start);
            for number in 0..10_000_usize {
                let now = Timestamp::from_millis(number as u64 * 10_000);
                let result = Status::ALL[number / 7 % 3];
                flips += usize::from(strategy.observe(&mut state, result.into(), now).is_some());
                let _ = strategy.outlook(&state, now);
                let _ = strategy
                    .deadline(&state)
                    .map(|at| strategy.elapse(&mut state, at));
                let (bytes, len) = strategy.save(&state).write();
                if let Some(record) = Record::read(&bytes[..len]) {
                    state = strategy.load(&record, now).into_state();
                }
            }
        }
    });
    assert!(flips > 1000, "the strategies had something to do");
    assert_eq!(allocated.count_total, 0);
}

#[test]
fn the_counter_counts() {
    assert!(measure(|| drop(std::hint::black_box(vec![1_u8]))).count_total > 0);
}
