use evenkeel_probe::{Silence, UdpCheck};

use super::Kind;

/// As Consul's agent does it: an empty datagram, and only what says that nobody
/// listens is critical. (P052)
pub(super) const KIND: Kind = Kind {
    word: "udp",
    made: |definition, timeout| {
        let made = || {
            let check = UdpCheck::new(&definition.udp)?;
            Ok(check
                .with_silence(Silence::Passing)
                .with_timeout(timeout)
                .into())
        };
        (!definition.udp.is_empty()).then(made)
    },
    fields: &["UDP"],
};
