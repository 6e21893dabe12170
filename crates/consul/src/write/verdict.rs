use std::collections::BTreeSet;

use super::{Loss, Record, StatusWrite, WriteForm};

/// What the answer to a transaction says of one of its operations.
#[derive(Debug, Clone, PartialEq)]
pub enum AfterTransaction {
    /// It is stored as sent.
    Written {
        /// The check's `ModifyIndex` now.
        index: u64,
    },
    /// The status is stored, but the server has dropped something of the rest,
    /// as it was not known to do: register `whole` at once.
    Lost {
        /// The fields of the definition that it has dropped.
        fields: Vec<String>,
        /// The record as the server has it now.
        stored: Record,
        /// The record as it should be.
        whole: Record,
    },
    /// The answer does not speak of this check.
    Unnamed,
}

/// Compares what a transaction stored with what was sent. `left_out` are the
/// fields that were not sent since the server had called them unknown.
pub fn after_transaction(
    write: &StatusWrite,
    stored: Option<&Record>,
    left_out: &BTreeSet<String>,
) -> AfterTransaction {
    let stored = stored.filter(|record| record.is_of(&write.check));
    let (Some(stored), WriteForm::Transaction(extras)) = (stored, &write.form) else {
        return AfterTransaction::Unnamed;
    };
    let lost = stored.losses_from(extras, left_out);
    if lost.is_empty() {
        return AfterTransaction::Written {
            index: stored.modify_index(),
        };
    }
    let fields = lost
        .into_iter()
        .filter_map(|loss| match loss {
            Loss::Definition(name) => Some(name),
            Loss::Field(_) => None,
        })
        .collect();
    let whole = stored.repaired(extras, left_out);
    AfterTransaction::Lost {
        fields,
        stored: stored.clone(),
        whole,
    }
}

/// What the read-back after a register says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReadBack {
    /// The record is as it was sent.
    Written,
    /// Somebody has written after us: it is another one now.
    Overwritten,
    /// It had been removed between our read and our write, and only our write
    /// has brought it back. It has to go again.
    BroughtBack,
    /// It was removed after our write.
    Gone,
}

/// Compares a record after its register with what was there `before` and what
/// was `sent` (but for the status).
pub fn read_back(
    write: &StatusWrite,
    before: &Record,
    sent: &Record,
    now: Option<&Record>,
) -> ReadBack {
    let Some(now) = now else {
        return ReadBack::Gone;
    };
    let ours = now.same_but_status(sent)
        && now.status() == Some(write.status)
        && now.output() == &*write.output;
    if !ours {
        ReadBack::Overwritten
    } else if now.create_index() == before.create_index() {
        ReadBack::Written
    } else if now.create_index() == now.modify_index() {
        ReadBack::BroughtBack
    } else {
        // Removed, registered anew by somebody, and then written by us: the
        // caller should know that it is another check.
        ReadBack::Overwritten
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::{CheckRef, HealthCheck, Status};
    use serde_json::json;

    fn record(create: u64, modify: u64, status: &str, notes: &str) -> Record {
        let record = json!({
            "Node": "n", "CheckID": "c", "Status": status, "Output": "ok", "Notes": notes,
            "Definition": {"HTTP": "h", "Method": "PUT"},
            "CreateIndex": create, "ModifyIndex": modify
        });
        Record(record.as_object().unwrap().clone())
    }

    fn write() -> StatusWrite {
        let mut check = HealthCheck {
            notes: "a".into(),
            ..HealthCheck::default()
        };
        check.definition.http = "h".into();
        check.definition.method = "PUT".into();
        StatusWrite {
            check: CheckRef {
                node: "n".into(),
                check_id: "c".into(),
                ..CheckRef::default()
            },
            status: Status::Passing,
            output: "ok".into(),
            index: 5,
            form: WriteForm::of(&check),
        }
    }

    #[test]
    fn a_lost_field_makes_a_record_to_register() {
        let none = BTreeSet::new();
        let kept = record(3, 7, "passing", "a");
        assert_eq!(
            after_transaction(&write(), Some(&kept), &none),
            AfterTransaction::Written { index: 7 }
        );
        let mut lossy = kept.clone();
        lossy.0.insert("Definition".into(), json!({"HTTP": "h"}));
        let after = after_transaction(&write(), Some(&lossy), &none);
        let AfterTransaction::Lost {
            fields,
            stored,
            whole,
        } = after
        else {
            panic!("{after:?}")
        };
        assert_eq!(fields, ["Method"]);
        assert_eq!(stored, lossy);
        assert!(whole.same_but_status(&kept));
    }

    #[test]
    fn an_answer_of_another_check_says_nothing() {
        let mut other = record(3, 7, "passing", "a");
        other.0.insert("CheckID".into(), "d".into());
        let none = BTreeSet::new();
        for stored in [None, Some(&other)] {
            assert_eq!(
                after_transaction(&write(), stored, &none),
                AfterTransaction::Unnamed
            );
        }
    }

    #[test]
    fn the_read_back_tells_whose_the_last_word_was() {
        let before = record(3, 5, "critical", "a");
        for (now, verdict) in [
            (Some(record(3, 7, "passing", "a")), ReadBack::Written),
            (Some(record(3, 8, "critical", "a")), ReadBack::Overwritten),
            (Some(record(3, 8, "passing", "b")), ReadBack::Overwritten),
            (Some(record(7, 7, "passing", "a")), ReadBack::BroughtBack),
            (Some(record(6, 7, "passing", "a")), ReadBack::Overwritten),
            (None, ReadBack::Gone),
        ] {
            assert_eq!(
                read_back(&write(), &before, &before, now.as_ref()),
                verdict,
                "{now:?}"
            );
        }
    }
}
