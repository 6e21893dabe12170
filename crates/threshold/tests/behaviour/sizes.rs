//! What the documentation says of the bytes that a state takes.

use evenkeel_threshold::{
    AnyState, ConsulEsmState, CusumState, DwellState, EwmaState, FlapState, HeartbeatState,
    HoldState, LeakyState, PenaltyState, PhiState, RunState, WindowState,
};

const CRATE: &str = include_str!("../../src/lib.rs");

#[test]
fn the_table_of_the_crate_has_the_size_of_each_state() {
    for (name, size) in [
        ("Leaky", size_of::<LeakyState>()),
        ("Consecutive", size_of::<RunState>()),
        ("Window", size_of::<WindowState>()),
        ("Ewma", size_of::<EwmaState>()),
        ("Cusum", size_of::<CusumState>()),
        ("Hold", size_of::<HoldState>()),
        ("Dwell", size_of::<DwellState>()),
        ("Penalty", size_of::<PenaltyState>()),
        ("Flap", size_of::<FlapState>()),
        ("Heartbeat", size_of::<HeartbeatState>()),
        ("Phi", size_of::<PhiState>()),
        ("Consul", size_of::<RunState>()),
        ("ConsulEsm", size_of::<ConsulEsmState>()),
    ] {
        let row = CRATE
            .lines()
            .find(|line| line.starts_with(&format!("//! | [`{name}`] |")))
            .unwrap_or_else(|| panic!("{name} has no row"));
        assert!(row.ends_with(&format!("| {size} bytes |")), "{size}: {row}");
    }
    let any = size_of::<AnyState>();
    assert!(
        CRATE.contains(&format!("with a state of {any} bytes")),
        "{any}"
    );
}
