use bytes::Bytes;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::Record;
use crate::types::CheckRef;

/// What `/v1/txn` answers, with 200 or with 409.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct TxnReply {
    /// The records after the transaction, in the order of the operations; one
    /// for each where all are reads or check-and-sets. Empty after a refusal.
    pub records: Vec<Record>,
    /// Why it was refused. Empty after a success.
    pub errors: Vec<OpError>,
}

/// Why a transaction was refused.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct OpError {
    /// The operation at fault, by its place.
    pub op_index: usize,
    /// What Consul says.
    pub what: String,
}

impl OpError {
    /// Whether the operation came too late: the record has another index, or
    /// is no longer there.
    pub fn is_stale(&self) -> bool {
        self.what.contains("index is stale")
    }

    /// Whether a read found no such record.
    pub fn is_missing(&self) -> bool {
        self.what.contains("doesn't exist")
    }
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "PascalCase", default)]
struct Raw {
    results: Option<Vec<Map<String, Value>>>,
    errors: Option<Vec<OpError>>,
}

impl TxnReply {
    /// Reads the answer.
    ///
    /// # Errors
    /// Where in the body and why, if it is not of the documented form.
    pub fn from_json(body: &[u8]) -> Result<Self, (u64, String)> {
        let raw: Raw = serde_json::from_slice(body)
            .map_err(|error| (error.column() as u64, error.to_string()))?;
        let records = raw
            .results
            .unwrap_or_default()
            .into_iter()
            .map(|mut result| match result.remove("Check") {
                Some(Value::Object(check)) => Record(check),
                _ => Record(Map::new()),
            })
            .collect();
        Ok(Self {
            records,
            errors: raw.errors.unwrap_or_default(),
        })
    }
}

/// The body of a transaction that reads these checks; at most
/// [`MAX_OPERATIONS`](super::MAX_OPERATIONS) of them.
///
/// One request instead of one per node, and it answers the whole definition
/// (seen on 1.8.7), even those fields that a writing transaction loses.
pub fn get_operations<'a>(checks: impl IntoIterator<Item = &'a CheckRef>) -> Bytes {
    let operations: Vec<Value> = checks
        .into_iter()
        .map(|check| {
            let mut wanted = json!({"Node": check.node, "CheckID": check.check_id});
            for (key, value) in [
                ("Namespace", &check.namespace),
                ("Partition", &check.partition),
            ] {
                if !value.is_empty() {
                    wanted[key] = value.as_str().into();
                }
            }
            json!({"Check": {"Verb": "get", "Check": wanted}})
        })
        .collect();
    Value::from(operations).to_string().into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_refusal_names_the_operation() {
        // Text of Consul 1.8.7.
        let reply = TxnReply::from_json(
            br#"{"Results":null,"Errors":[{"OpIndex":2,"What":"failed to set check \"c\" on node \"n\", index is stale"}]}"#,
        )
        .unwrap();
        assert!(reply.records.is_empty());
        assert_eq!(reply.errors[0].op_index, 2);
        assert!(reply.errors[0].is_stale());
    }

    #[test]
    fn a_missing_check_is_told_from_other_errors() {
        let error = OpError {
            op_index: 0,
            what: r#"check "z" on node "n" doesn't exist"#.into(),
        };
        assert!(error.is_missing() && !error.is_stale());
    }

    #[test]
    fn a_read_names_namespace_and_partition() {
        let check = CheckRef {
            namespace: "ns".into(),
            node: "n".into(),
            check_id: "c".into(),
            ..CheckRef::default()
        };
        assert_eq!(
            serde_json::from_slice::<Value>(&get_operations([&check])).unwrap(),
            json!([{"Check": {"Verb": "get",
                              "Check": {"Node": "n", "CheckID": "c", "Namespace": "ns"}}}])
        );
    }

    proptest! {
        #[test]
        fn garbage_never_panics(body in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = TxnReply::from_json(&body);
        }
    }
}
