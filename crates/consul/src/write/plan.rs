use super::form::member;
use super::{Extras, StatusWrite, WriteForm};
use std::collections::BTreeSet;

/// Operations in one transaction, at most; Consul refuses more with a 413.
pub const MAX_OPERATIONS: usize = 64;

/// Bytes of a transaction's body, at most (`txn_max_req_len`, by default raft's
/// suggested size); Consul refuses more with a 413.
pub const MAX_BODY: usize = 512 << 10;

/// The writes of one request, by their place in the list that was planned.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Chunk {
    /// One transaction.
    Transaction {
        /// Which writes, in the order of the operations.
        writes: Vec<usize>,
        /// The body to send.
        body: Vec<u8>,
        /// Consul Enterprise: the partition of all of them; empty elsewhere.
        partition: String,
    },
    /// Writes by read, register and read-back.
    Register {
        /// Which writes.
        writes: Vec<usize>,
        /// The partition of all of them.
        partition: String,
    },
}

/// Distributes writes to requests, in their order as far as possible.
///
/// `refused` are fields that the server has called unknown; they are not sent.
/// `lost` are fields of a definition that the server has dropped from a
/// transaction; checks that set one of them go by register.
pub fn plan(
    writes: &[StatusWrite],
    refused: &BTreeSet<String>,
    lost: &BTreeSet<String>,
) -> Vec<Chunk> {
    let partitions: BTreeSet<&str> = writes
        .iter()
        .map(|write| write.check.partition.as_str())
        .collect();
    let mut chunks = Vec::new();
    for partition in partitions {
        let mut open = Open::default();
        let mut register = Vec::new();
        for (index, write) in writes.iter().enumerate() {
            if write.check.partition != partition {
                continue;
            }
            let operation = match &write.form {
                WriteForm::Transaction(extras) if !extras.defines_any(lost) => {
                    operation(write, extras, refused)
                }
                _ => {
                    register.push(index);
                    continue;
                }
            };
            // Brackets around, a comma between.
            if operation.len() + 2 > MAX_BODY {
                register.push(index);
                continue;
            }
            if open.writes.len() == MAX_OPERATIONS
                || open.body.len() + operation.len() + 2 > MAX_BODY
            {
                chunks.extend(std::mem::take(&mut open).close(partition));
            }
            open.push(index, &operation);
        }
        chunks.extend(open.close(partition));
        chunks.extend(
            register
                .chunks(MAX_OPERATIONS)
                .map(|writes| Chunk::Register {
                    writes: writes.to_vec(),
                    partition: partition.to_owned(),
                }),
        );
    }
    chunks
}

#[derive(Default)]
struct Open {
    writes: Vec<usize>,
    body: String,
}

impl Open {
    fn push(&mut self, index: usize, operation: &str) {
        self.body
            .push(if self.writes.is_empty() { '[' } else { ',' });
        self.body.push_str(operation);
        self.writes.push(index);
    }

    fn close(mut self, partition: &str) -> Option<Chunk> {
        if self.writes.is_empty() {
            return None;
        }
        self.body.push(']');
        Some(Chunk::Transaction {
            writes: self.writes,
            body: self.body.into_bytes(),
            partition: partition.to_owned(),
        })
    }
}

/// The check-and-set of one write, as JSON text.
pub fn operation(write: &StatusWrite, extras: &Extras, refused: &BTreeSet<String>) -> String {
    let check = &write.check;
    let mut text = String::from(r#"{"Check":{"Verb":"cas","Check":{"#);
    for (key, value) in [
        ("Node", check.node.as_str()),
        ("CheckID", &check.check_id),
        ("ServiceID", &check.service_id),
        ("Namespace", &check.namespace),
        ("Partition", &check.partition),
        ("Status", write.status.as_str()),
        ("Output", &write.output),
    ] {
        if !value.is_empty() {
            member(&mut text, key, value);
        }
    }
    // At least the status is there, so that a comma comes before the rest,
    // and the rest has at least a name.
    text.push(',');
    text.push_str(&extras.members(refused));
    member(&mut text, "ModifyIndex", &write.index);
    text.push_str("}}}");
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::{CheckRef, HealthCheck, Status};
    use proptest::prelude::*;
    use serde_json::{Value, json};

    fn write(node: &str, output: String, register: bool) -> StatusWrite {
        let mut check = HealthCheck {
            name: "x".into(),
            ..HealthCheck::default()
        };
        check.definition.tcp = "127.0.0.1:1".into();
        check.definition.output_max_size = register.into();
        StatusWrite {
            check: CheckRef {
                node: node.into(),
                check_id: "c".into(),
                ..CheckRef::default()
            },
            status: Status::Critical,
            output: output.into(),
            index: 7,
            form: WriteForm::of(&check),
        }
    }

    fn none() -> BTreeSet<String> {
        BTreeSet::new()
    }

    #[test]
    fn an_operation_sends_what_the_server_gave_plus_status_and_output() {
        let chunks = plan(&[write("n", "bad \"x\"".into(), false)], &none(), &none());
        let [Chunk::Transaction { body, .. }] = chunks.as_slice() else {
            panic!("{chunks:?}")
        };
        assert_eq!(
            serde_json::from_slice::<Value>(body).unwrap(),
            json!([{"Check": {"Verb": "cas", "Check": {
                "Node": "n", "CheckID": "c", "Status": "critical", "Output": "bad \"x\"",
                "Name": "x", "Definition": {"TCP": "127.0.0.1:1"}, "ModifyIndex": 7
            }}}])
        );
    }

    #[test]
    fn a_namespace_is_named_in_the_operation() {
        // P064
        let mut in_namespace = write("n", String::new(), false);
        in_namespace.check.namespace = "ns1".into();
        let chunks = plan(&[in_namespace], &none(), &none());
        let [Chunk::Transaction { body, .. }] = chunks.as_slice() else {
            panic!("{chunks:?}")
        };
        let sent: Value = serde_json::from_slice(body).unwrap();
        assert_eq!(sent[0]["Check"]["Check"]["Namespace"], "ns1");
    }

    #[test]
    fn what_a_server_has_lost_once_goes_by_register() {
        let lost = BTreeSet::from(["TCP".to_owned()]);
        let chunks = plan(&[write("n", String::new(), false)], &none(), &lost);
        assert!(
            matches!(chunks.as_slice(), [Chunk::Register { .. }]),
            "{chunks:?}"
        );
    }

    #[test]
    fn a_thousand_writes_are_sixteen_transactions() {
        // P023
        let writes: Vec<_> = (0..1000)
            .map(|n| write(&format!("n{n}"), String::new(), false))
            .collect();
        let chunks = plan(&writes, &none(), &none());
        assert_eq!(chunks.len(), 16);
    }

    proptest! {
        #[test]
        fn every_write_is_in_one_request_within_the_limits(
            sizes in prop::collection::vec((0_usize..300_000, any::<bool>(), 0..3_u8), 0..100),
        ) {
            let writes: Vec<_> = sizes
                .iter()
                .map(|(size, register, partition)| {
                    // Few of them huge.
                    let size = if size % 50 == 0 { *size } else { size % 1_000 };
                    let mut write = write("n", "o".repeat(size), *register);
                    write.check.partition = ["", "p", "q"][usize::from(*partition)].to_owned();
                    write
                })
                .collect();
            let mut seen = vec![0; writes.len()];
            for chunk in plan(&writes, &none(), &none()) {
                let (in_chunk, partition) = match chunk {
                    Chunk::Transaction { writes: in_chunk, body, partition } => {
                        prop_assert!(body.len() <= MAX_BODY);
                        let sent: Vec<Value> = serde_json::from_slice(&body).unwrap();
                        prop_assert_eq!(sent.len(), in_chunk.len());
                        prop_assert!(in_chunk.is_sorted());
                        (in_chunk, partition)
                    }
                    Chunk::Register { writes, partition } => (writes, partition),
                };
                prop_assert!((1..=MAX_OPERATIONS).contains(&in_chunk.len()));
                for index in in_chunk {
                    seen[index] += 1;
                    prop_assert_eq!(&writes[index].check.partition, &partition);
                }
            }
            prop_assert!(seen.iter().all(|times| *times == 1));
        }
    }
}
