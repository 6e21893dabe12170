use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bytes::Bytes;
use serde_json::{Value, json};

use super::Client;
use super::writes::{all_failed, count, fail_unplanned, operation_failed};
use crate::error::Error;
use crate::request::{self, Consistency, Query};
use crate::types::CheckRef;
use crate::write::{ReadBack, Record, StatusWrite, WriteOutcome, get_operations, read_back};

/// A record on its way to `/v1/catalog/register`.
pub(super) struct Sending<'a> {
    pub(super) write: &'a StatusWrite,
    /// The record as it is in the catalog.
    pub(super) before: Record,
    /// The record to send, but for its status.
    pub(super) record: Record,
}

/// Writing by read, register and read-back; see [`write`](mod@crate::write).
impl Client {
    /// Reads checks as they are now; `None` for each that is not there.
    pub(super) async fn read_records(
        &self,
        checks: &[&CheckRef],
        partition: &str,
    ) -> Result<Vec<Option<Record>>, Error> {
        let mut records: Vec<Option<Record>> = checks.iter().map(|_| None).collect();
        let mut wanted: Vec<usize> = (0..checks.len()).collect();
        let query = Query {
            consistency: Consistency::Consistent,
            ..self.scope(partition)
        };
        // Each round leaves out what the one before has called missing.
        while !wanted.is_empty() {
            let reply = self
                .txn(
                    get_operations(wanted.iter().map(|place| checks[*place])),
                    &query,
                )
                .await?;
            if reply.errors.is_empty() {
                for (place, record) in wanted.iter().zip(reply.records) {
                    records[*place] = Some(record).filter(|record| record.is_of(checks[*place]));
                }
                break;
            }
            if let Some(error) = reply.errors.iter().find(|error| !error.is_missing()) {
                return Err(Error::new("PUT /v1/txn", operation_failed(error)));
            }
            let missing: BTreeSet<usize> =
                reply.errors.iter().map(|error| error.op_index).collect();
            let mut place = 0;
            wanted.retain(|_| {
                place += 1;
                !missing.contains(&(place - 1))
            });
        }
        Ok(records)
    }

    /// Read, compare the index, register, read back.
    pub(super) async fn write_by_register(
        &self,
        writes: &[&StatusWrite],
        partition: &str,
    ) -> Vec<WriteOutcome> {
        let checks: Vec<&CheckRef> = writes.iter().map(|write| &write.check).collect();
        let now = match self.read_records(&checks, partition).await {
            Ok(now) => now,
            Err(error) => return all_failed(writes, error),
        };
        let mut outcomes: Vec<Option<WriteOutcome>> = writes.iter().map(|_| None).collect();
        let mut current = Vec::new();
        let mut places = Vec::new();
        for (place, (write, record)) in writes.iter().zip(now).enumerate() {
            match record {
                None => outcomes[place] = Some(WriteOutcome::Gone),
                Some(record) if record.modify_index() != write.index => {
                    outcomes[place] = Some(WriteOutcome::stale(&record));
                }
                Some(record) => {
                    current.push(Sending {
                        write,
                        before: record.clone(),
                        record,
                    });
                    places.push(place);
                }
            }
        }
        let written = self.register_records(&current, partition).await;
        for (place, outcome) in places.into_iter().zip(written) {
            outcomes[place] = Some(outcome);
        }
        outcomes
            .into_iter()
            .map(|outcome| outcome.unwrap_or_else(fail_unplanned))
            .collect()
    }

    /// Registers each record with its write's status, and reads it back.
    pub(super) async fn register_records(
        &self,
        records: &[Sending<'_>],
        partition: &str,
    ) -> Vec<WriteOutcome> {
        if records.is_empty() {
            return Vec::new();
        }
        let mut by_node: BTreeMap<(&str, &str), Vec<usize>> = BTreeMap::new();
        for (place, Sending { write, .. }) in records.iter().enumerate() {
            let scope = (write.check.node.as_str(), write.check.namespace.as_str());
            by_node.entry(scope).or_default().push(place);
        }
        let mut errors: BTreeMap<usize, Arc<Error>> = BTreeMap::new();
        for ((node, namespace), places) in by_node {
            // One request for the checks of a node: one raft entry, and the
            // shortest time between the read and the write.
            if let Err(error) = self
                .register_on(node, namespace, partition, records, &places)
                .await
            {
                if places.len() == 1 || error.is_retryable() && error.status().is_none() {
                    let error = Arc::new(error);
                    errors.extend(places.iter().map(|place| (*place, Arc::clone(&error))));
                    continue;
                }
                // One of them may be at fault: each for itself.
                for place in places {
                    let alone = self
                        .register_on(node, namespace, partition, records, &[place])
                        .await;
                    if let Err(error) = alone {
                        errors.insert(place, Arc::new(error));
                    }
                }
            }
        }
        self.read_back(records, partition, &errors).await
    }

    async fn register_on(
        &self,
        node: &str,
        namespace: &str,
        partition: &str,
        records: &[Sending<'_>],
        places: &[usize],
    ) -> Result<(), Error> {
        let checks: Vec<Value> = places
            .iter()
            .map(|place| {
                let Sending { write, record, .. } = &records[*place];
                Value::Object(record.with_status(write.status, &write.output).0)
            })
            .collect();
        let mut body = json!({"Node": node, "SkipNodeUpdate": true, "Checks": checks});
        if !partition.is_empty() {
            body["Partition"] = partition.into();
        }
        let scope = Query {
            namespace: Some(namespace.to_owned()),
            ..self.scope(partition)
        };
        count(&self.inner.writes.registers);
        self.put(request::register_json(
            Bytes::from(body.to_string()),
            &scope,
        ))
        .await
    }

    async fn read_back(
        &self,
        records: &[Sending<'_>],
        partition: &str,
        errors: &BTreeMap<usize, Arc<Error>>,
    ) -> Vec<WriteOutcome> {
        let checks: Vec<&CheckRef> = records.iter().map(|record| &record.write.check).collect();
        let now = match self.read_records(&checks, partition).await {
            Ok(now) => now,
            Err(error) => {
                let error = Arc::new(error);
                return records
                    .iter()
                    .map(|_| WriteOutcome::Failed(Arc::clone(&error)))
                    .collect();
            }
        };
        let mut outcomes = Vec::with_capacity(records.len());
        for (place, (sent, now)) in records.iter().zip(now).enumerate() {
            if let Some(error) = errors.get(&place) {
                outcomes.push(WriteOutcome::Failed(Arc::clone(error)));
                continue;
            }
            let verdict = read_back(sent.write, &sent.before, &sent.record, now.as_ref());
            if verdict != ReadBack::Written {
                count(&self.inner.writes.lost_races);
            }
            outcomes.push(match (verdict, now) {
                (ReadBack::Written, Some(now)) => WriteOutcome::Written {
                    index: now.modify_index(),
                    form: now.form(),
                },
                (ReadBack::Overwritten, Some(now)) => WriteOutcome::stale(&now),
                (ReadBack::BroughtBack, Some(now)) => {
                    self.take_back(&sent.write.check, &now, partition).await;
                    WriteOutcome::Gone
                }
                (_, None) | (ReadBack::Gone, _) => WriteOutcome::Gone,
            });
        }
        outcomes
    }

    /// Removes a check that only our write has brought back, and the empty node
    /// that Consul makes for a check without one (seen on 1.8.7), each unless
    /// it has changed since.
    async fn take_back(&self, check: &CheckRef, record: &Record, partition: &str) {
        let mut wanted = json!({
            "Node": check.node, "CheckID": check.check_id, "ModifyIndex": record.modify_index()
        });
        for (key, value) in [
            ("Namespace", &check.namespace),
            ("Partition", &check.partition),
        ] {
            if !value.is_empty() {
                wanted[key] = value.as_str().into();
            }
        }
        let operations = json!([{"Check": {"Verb": "delete-cas", "Check": wanted}}]);
        let scope = self.scope(partition);
        // If this fails the check stays until its owner removes it again; the
        // outcome is Gone all the same, and the race was counted.
        let removed = self.txn(Bytes::from(operations.to_string()), &scope).await;
        if removed.is_ok_and(|reply| reply.errors.is_empty()) {
            let query = Query {
                consistency: Consistency::Consistent,
                ..scope.clone()
            };
            let Ok(node) = self.catalog_node(&check.node, &query).await else {
                return;
            };
            let Some(node) = node.value else { return };
            let made_by_us = node.node.create_index == record.create_index()
                && node.node.modify_index == record.create_index()
                && node.services.is_empty();
            if made_by_us {
                let wanted = json!({
                    "Node": check.node, "ModifyIndex": node.node.modify_index
                });
                let operations = json!([{"Node": {"Verb": "delete-cas", "Node": wanted}}]);
                let _ = self.txn(Bytes::from(operations.to_string()), &scope).await;
            }
        }
    }
}
