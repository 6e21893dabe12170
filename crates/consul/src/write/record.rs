use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::form::is_unset;
use super::{Extras, WriteForm};
use crate::duration::GoDuration;
use crate::types::{CheckRef, HealthCheck, Status};

/// A check's record as JSON, with every field that the server gave.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Record(pub Map<String, Value>);

/// A field that a server did not keep.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Loss {
    /// Of the record itself.
    Field(String),
    /// Of its definition.
    Definition(String),
}

/// What changes with every write, and what servers fill in themselves.
const NOT_COMPARED: [&str; 8] = [
    "Status",
    "Output",
    "CreateIndex",
    "ModifyIndex",
    // Derived by the server at a registration, emptied by a transaction.
    "Type",
    // Copied by the server from the service.
    "ServiceName",
    "ServiceTags",
    // Part of the key.
    "Node",
];

impl Record {
    fn text(&self, key: &str) -> &str {
        self.0.get(key).and_then(Value::as_str).unwrap_or_default()
    }

    fn number(&self, key: &str) -> u64 {
        self.0.get(key).and_then(Value::as_u64).unwrap_or_default()
    }

    /// The index at which it last changed.
    pub fn modify_index(&self) -> u64 {
        self.number("ModifyIndex")
    }

    /// The index at which it was created.
    pub fn create_index(&self) -> u64 {
        self.number("CreateIndex")
    }

    /// The status, if it is one of the three.
    pub fn status(&self) -> Option<Status> {
        self.text("Status").parse().ok()
    }

    /// The output.
    pub fn output(&self) -> &str {
        self.text("Output")
    }

    /// Whether it is the record of that check. The namespace and partition
    /// are compared only if the record names them.
    pub fn is_of(&self, check: &CheckRef) -> bool {
        let same = |key: &str, wanted: &str| {
            let text = self.text(key);
            text == wanted || text.is_empty() || wanted.is_empty()
        };
        self.text("Node") == check.node
            && self.text("CheckID") == check.check_id
            && same("Namespace", &check.namespace)
            && same("Partition", &check.partition)
    }

    /// How it can be written next.
    pub fn form(&self) -> WriteForm {
        serde_json::from_value::<HealthCheck>(Value::Object(self.0.clone()))
            // What cannot be understood is sent back as it is.
            .map_or(WriteForm::Register, |check| WriteForm::of(&check))
    }

    /// The record to send to `/v1/catalog/register`: as it is, with another
    /// status and output.
    #[must_use]
    pub fn with_status(&self, status: Status, output: &str) -> Self {
        let mut record = self.clone();
        record.0.insert("Status".into(), status.as_str().into());
        record.0.insert("Output".into(), output.into());
        record
    }

    /// The record with the members that a transaction sent put back, whatever
    /// the server made of them. `left_out` were not sent.
    #[must_use]
    pub fn repaired(&self, extras: &Extras, left_out: &BTreeSet<String>) -> Self {
        let mut record = self.clone();
        record.0.extend(sent(extras, left_out));
        record
    }

    /// Whether both are the same but for what every write changes.
    pub fn same_but_status(&self, other: &Self) -> bool {
        self.losses_to(other).is_empty() && other.losses_to(self).is_empty()
    }

    /// What is set here and missing or different there.
    pub fn losses_to(&self, other: &Self) -> Vec<Loss> {
        losses(&self.0, &other.0)
    }

    /// What a transaction sent and the record does not have.
    pub fn losses_from(&self, extras: &Extras, left_out: &BTreeSet<String>) -> Vec<Loss> {
        losses(&sent(extras, left_out), &self.0)
    }
}

fn sent(extras: &Extras, left_out: &BTreeSet<String>) -> Map<String, Value> {
    let mut fields = extras.fields();
    fields.retain(|key, _| !left_out.contains(key));
    fields
}

fn losses(sent: &Map<String, Value>, kept: &Map<String, Value>) -> Vec<Loss> {
    let empty = Map::new();
    let mut lost = Vec::new();
    for (key, value) in sent {
        if key == "Definition" {
            let sent = value.as_object().unwrap_or(&empty);
            let kept = kept.get(key).and_then(Value::as_object).unwrap_or(&empty);
            lost.extend(
                sent.iter()
                    .filter(|(key, value)| differs(key, value, kept.get(*key)))
                    .map(|(key, _)| Loss::Definition(key.clone())),
            );
        } else if !NOT_COMPARED.contains(&key.as_str()) && differs(key, value, kept.get(key)) {
            lost.push(Loss::Field(key.clone()));
        }
    }
    lost
}

fn differs(key: &str, sent: &Value, kept: Option<&Value>) -> bool {
    let kept = kept.unwrap_or(&Value::Null);
    if sent == kept || (is_unset(sent) && is_unset(kept)) {
        return false;
    }
    if !matches!(
        key,
        "TTL" | "Interval" | "Timeout" | "DeregisterCriticalServiceAfter"
    ) {
        return true;
    }
    // "90s" and "1m30s" and 90000000000 are the same duration; "0s" is none.
    let duration = |value: &Value| serde_json::from_value::<GoDuration>(value.clone()).ok();
    match (duration(sent), duration(kept)) {
        (Some(sent), Some(kept)) => sent != kept,
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn record(value: &Value) -> Record {
        Record(value.as_object().unwrap().clone())
    }

    #[test]
    fn only_status_and_output_change_in_what_is_sent_back() {
        let before = record(&json!({
            "Node": "n", "CheckID": "c", "Status": "critical", "Output": "", "FromTheFuture": [1],
            "Definition": {"GRPC": "h:1", "AlsoNew": {"x": 1}}, "ModifyIndex": 7
        }));
        let after = before.with_status(Status::Passing, "ok");
        assert_eq!(after.status(), Some(Status::Passing));
        assert_eq!(after.output(), "ok");
        assert!(before.same_but_status(&after));
        let mut undone = after.clone();
        undone.0.insert("Status".into(), "critical".into());
        undone.0.insert("Output".into(), "".into());
        assert_eq!(undone, before);
    }

    #[test]
    fn a_lost_field_is_named() {
        let sent = record(&json!({
            "Name": "x", "Notes": "n", "ExposedPort": 1, "Type": "http",
            "Definition": {"HTTP": "h", "Interval": "90s", "GRPC": "g", "Header": {}}
        }));
        let kept = record(&json!({
            "Name": "x", "Notes": "other", "Type": "",
            "Definition": {"HTTP": "h", "Interval": "1m30s"}
        }));
        let mut lost = sent.losses_to(&kept);
        lost.sort();
        assert_eq!(
            lost,
            [
                Loss::Field("ExposedPort".into()),
                Loss::Field("Notes".into()),
                Loss::Definition("GRPC".into())
            ]
        );
    }

    #[test]
    fn unset_and_missing_are_the_same() {
        let one = record(&json!({
            "Notes": "", "ServiceTags": null, "Definition": {"Body": "", "Interval": "0s"}
        }));
        let other = record(&json!({"ServiceTags": [], "Definition": {"Header": null}}));
        assert!(one.same_but_status(&other));
    }

    #[test]
    fn a_record_is_found_by_its_whole_identity() {
        let mut check = CheckRef {
            node: "n".into(),
            check_id: "c".into(),
            ..CheckRef::default()
        };
        let plain = record(&json!({"Node": "n", "CheckID": "c"}));
        assert!(plain.is_of(&check));
        let scoped = record(&json!({"Node": "n", "CheckID": "c", "Namespace": "ns1"}));
        assert!(scoped.is_of(&check));
        check.namespace = "ns2".into();
        assert!(!scoped.is_of(&check));
    }
}
