//! Nothing is allocated, counted by the process's allocator.

use allocation_counter::measure;
use evenkeel_threshold::{
    AnyStrategy, Consecutive, Consul, ConsulEsm, Counts, Cusum, Dwell, Ewma, FirstResult, Flap,
    Heartbeat, Hold, Leaky, Penalty, Record, Status, Strategy, Timestamp, Window,
};

#[test]
fn nothing_is_allocated_for_a_check() {
    let counts = Counts {
        failures_before_critical: 4,
        failures_before_warning: Some(2),
        success_before_passing: 2,
    };
    let strategies: [AnyStrategy; 12] = [
        Leaky::new(3, 1).into(),
        Consecutive::new(counts).expect("valid").into(),
        Consul::new(counts).expect("valid").into(),
        Window::default().into(),
        Ewma::default().into(),
        Cusum::default().into(),
        Hold::default().into(),
        Dwell::default().into(),
        Heartbeat::default().into(),
        ConsulEsm::default().into(),
        Flap::default().into(),
        Penalty::default().into(),
    ];
    let start = Timestamp::ZERO;
    let mut flips = 0;
    let allocated = measure(|| {
        for strategy in strategies {
            let mut state = strategy.start(Status::Passing, FirstResult::Counted, start);
            for number in 0..10_000_usize {
                let now = Timestamp::from_millis(number as u64 * 10_000);
                let result = Status::ALL[number / 7 % 3];
                flips += usize::from(strategy.observe(&mut state, result.into(), now).is_some());
                let _ = strategy.outlook(&state, now);
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
