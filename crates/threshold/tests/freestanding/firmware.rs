//! A user of the crate on a machine without an operating system; compiled by
//! `tests/freestanding.rs`.
#![no_std]

use evenkeel_threshold::{AnyState, AnyStrategy, Record, Status, Strategy, Timestamp};

/// Keeps a check in `state` and its record in flash.
pub fn tick(strategy: &AnyStrategy, state: &mut AnyState, ok: bool, millis: u64) -> Record {
    let result = if ok { Status::Passing } else { Status::Critical };
    strategy.observe(state, result.into(), Timestamp::from_millis(millis));
    strategy.save(state)
}

#[panic_handler]
fn halt(_: &core::panic::PanicInfo<'_>) -> ! {
    loop {}
}
