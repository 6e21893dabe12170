//! Compiled by the test beside it: no `std`, and an allocator that has nothing.

#![no_std]

extern crate alloc;

use core::alloc::{GlobalAlloc, Layout};

use evenkeel_zone_weights::envoy::{Settings, decide};
use evenkeel_zone_weights::{Counters, Upstream};

struct Nothing;

// SAFETY: it never hands out memory.
unsafe impl GlobalAlloc for Nothing {
    unsafe fn alloc(&self, _: Layout) -> *mut u8 {
        core::ptr::null_mut()
    }

    unsafe fn dealloc(&self, _: *mut u8, _: Layout) {}
}

#[global_allocator]
static NOTHING: Nothing = Nothing;

#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    loop {}
}

#[unsafe(no_mangle)]
extern "C" fn zones() -> usize {
    let decision = decide(&Settings::ENVOY, None, None, &Upstream::new());
    Counters::new().count_recalculation(&decision, 1);
    decision.zones().len()
}
