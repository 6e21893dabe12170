//! Durations in texts.

use core::fmt;
use core::time::Duration;

/// `30s`, or `1500ms` if there is a part of a second.
pub(crate) struct Text(pub(crate) Duration);

impl fmt::Display for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.subsec_millis() == 0 {
            write!(f, "{}s", self.0.as_secs())
        } else {
            write!(f, "{}ms", self.0.as_millis())
        }
    }
}

/// A duration as a number of milliseconds.
#[cfg(feature = "serde")]
pub(crate) mod serialised {
    use core::time::Duration;

    use serde::{Deserialize, Deserializer, Serializer};

    // serde asks for a reference.
    pub(crate) fn serialize<S: Serializer>(
        duration: &Duration,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.serialize_u64(duration.as_millis().min(u128::from(u64::MAX)) as u64)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Duration, D::Error> {
        u64::deserialize(deserializer).map(Duration::from_millis)
    }
}
