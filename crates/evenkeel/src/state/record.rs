use evenkeel_threshold::{Record, Status};
use serde::{Deserialize, Serialize};

/// The version of the file's format.
pub const VERSION: u32 = 1;

/// The first line of the file.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Header {
    pub(super) format: String,
    pub(super) version: u32,
    /// Unix milliseconds.
    pub(super) saved_at: u64,
}

/// The last line of the file.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Footer {
    pub(super) checks: u64,
}

/// What is saved of one check. Times are Unix milliseconds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SavedLine {
    /// Admin partition.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub partition: String,
    /// Namespace.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub namespace: String,
    /// Node.
    pub node: String,
    /// Service id; empty for a check of the node itself.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub service_id: String,
    /// Check id.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub check_id: String,
    /// The strategy's state.
    #[serde(with = "hex")]
    pub record: Record,
    /// Since when the check is critical.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub critical_since: Option<u64>,
    /// When the reported status last changed, and from what.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_transition: Option<(u64, Status)>,
    /// When the next probe is due: the check's phase.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_due: Option<u64>,
}

mod hex {
    use std::fmt::Write as _;

    use evenkeel_threshold::Record;
    use serde::{Deserialize, Deserializer, Serializer, de::Error};

    pub(super) fn serialize<S: Serializer>(
        record: &Record,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        let (bytes, len) = record.write();
        let mut text = String::with_capacity(len * 2);
        for byte in &bytes[..len] {
            // Writing to a string does not fail.
            let _ = write!(text, "{byte:02x}");
        }
        serializer.serialize_str(&text)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Record, D::Error> {
        let text = String::deserialize(deserializer)?;
        decode(&text).ok_or_else(|| D::Error::custom("not a strategy's record"))
    }

    fn decode(text: &str) -> Option<Record> {
        let digits = text.as_bytes();
        let mut bytes = [0; Record::MAX_PAYLOAD + 3];
        if !digits.len().is_multiple_of(2) || digits.len() / 2 > bytes.len() {
            return None;
        }
        for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
            let pair = std::str::from_utf8(pair).ok()?;
            *byte = u8::from_str_radix(pair, 16).ok()?;
        }
        Record::read(&bytes[..digits.len() / 2])
    }
}
