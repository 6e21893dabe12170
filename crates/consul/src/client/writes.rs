use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use futures_util::StreamExt as _;
use futures_util::stream;
use serde_json::{Value, json};

use super::Client;
use crate::error::{Error, ErrorKind, Excerpt};
use crate::request::{self, Consistency, Query};
use crate::types::CheckRef;
use crate::write::{
    Chunk, Loss, MAX_OPERATIONS, OpError, Record, StatusWrite, TxnReply, WriteForm, WriteOutcome,
    get_operations, plan,
};

/// Requests for one call of `write_statuses` under way at the same time.
const IN_FLIGHT: usize = 4;

/// Names that an operation cannot do without: a server that calls one of them
/// unknown cannot be written to.
const ESSENTIAL: [&str; 11] = [
    "Check",
    "Verb",
    "Node",
    "CheckID",
    "ServiceID",
    "Namespace",
    "Partition",
    "Status",
    "Output",
    "Definition",
    "ModifyIndex",
];

/// What the client has learned of its server, and what it has counted.
#[derive(Default)]
pub(super) struct State {
    learned: Mutex<Learned>,
    transactions: AtomicU64,
    refused: AtomicU64,
    registers: AtomicU64,
    lost_races: AtomicU64,
    repaired: AtomicU64,
}

#[derive(Default, Clone)]
struct Learned {
    /// Fields that the server calls unknown.
    refused: BTreeSet<String>,
    /// Fields of a definition that the server drops from a transaction.
    lost: BTreeSet<String>,
}

/// What `write_statuses` has done since the client was made.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct WriteCounters {
    /// Transactions sent.
    pub transactions: u64,
    /// Transactions refused, all their operations rolled back.
    pub refused: u64,
    /// Requests to `/v1/catalog/register`.
    pub registers: u64,
    /// Writes by register during which somebody else wrote the same check.
    pub lost_races: u64,
    /// Definitions put back after a transaction had lost a field of them.
    pub repaired: u64,
    /// Fields that the server calls unknown; they are not sent any more.
    pub refused_fields: BTreeSet<String>,
    /// Fields of a definition that the server drops from transactions; checks
    /// that set one are written by register.
    pub lost_fields: BTreeSet<String>,
}

impl State {
    fn learned(&self) -> Learned {
        self.learned
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    fn learn(&self, add: impl FnOnce(&mut Learned)) {
        add(&mut self.learned.lock().unwrap_or_else(PoisonError::into_inner));
    }

    fn counters(&self) -> WriteCounters {
        let Learned { refused, lost } = self.learned();
        let get = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        WriteCounters {
            transactions: get(&self.transactions),
            refused: get(&self.refused),
            registers: get(&self.registers),
            lost_races: get(&self.lost_races),
            repaired: get(&self.repaired),
            refused_fields: refused,
            lost_fields: lost,
        }
    }
}

fn count(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}

impl Client {
    /// Writes the statuses of checks, changing nothing but Status and Output;
    /// see [`write`](crate::write) for how. The outcomes are in the order of
    /// the writes. A check must not be in one call twice.
    ///
    /// Nothing is tried again here but what the server made impossible in that
    /// form; the caller decides on [`WriteOutcome::Stale`] and
    /// [`WriteOutcome::Failed`].
    pub async fn write_statuses(&self, writes: &[StatusWrite]) -> Vec<WriteOutcome> {
        let Learned { refused, lost } = self.inner.writes.learned();
        let chunks = plan(writes, &refused, &lost);
        let done: Vec<Vec<(usize, WriteOutcome)>> = stream::iter(chunks)
            .map(|chunk| Box::pin(self.write_chunk(writes, chunk, &refused)))
            .buffer_unordered(IN_FLIGHT)
            .collect()
            .await;
        let mut outcomes: Vec<Option<WriteOutcome>> = writes.iter().map(|_| None).collect();
        for (index, outcome) in done.into_iter().flatten() {
            outcomes[index] = Some(outcome);
        }
        // The plan has each write exactly once.
        outcomes
            .into_iter()
            .map(|outcome| outcome.unwrap_or_else(fail_unplanned))
            .collect()
    }

    /// What `write_statuses` has done, and learned of the server.
    pub fn write_counters(&self) -> WriteCounters {
        self.inner.writes.counters()
    }

    async fn write_chunk(
        &self,
        writes: &[StatusWrite],
        chunk: Chunk,
        refused: &BTreeSet<String>,
    ) -> Vec<(usize, WriteOutcome)> {
        match chunk {
            Chunk::Transaction {
                writes: indexes,
                body,
                partition,
            } => {
                let outcomes = self
                    .transact(writes, &indexes, body, &partition, refused.clone())
                    .await;
                indexes.into_iter().zip(outcomes).collect()
            }
            Chunk::Register {
                writes: indexes,
                partition,
            } => {
                let chosen: Vec<&StatusWrite> =
                    indexes.iter().map(|index| &writes[*index]).collect();
                let outcomes = self.write_by_register(&chosen, &partition).await;
                indexes.into_iter().zip(outcomes).collect()
            }
        }
    }

    /// One transaction; again without a field that the server calls unknown.
    async fn transact(
        &self,
        writes: &[StatusWrite],
        indexes: &[usize],
        mut body: Vec<u8>,
        partition: &str,
        mut left_out: BTreeSet<String>,
    ) -> Vec<WriteOutcome> {
        let chosen: Vec<&StatusWrite> = indexes.iter().map(|index| &writes[*index]).collect();
        let scope = self.scope(partition);
        loop {
            count(&self.inner.writes.transactions);
            let error = match self.txn(body.into(), &scope).await {
                Ok(reply) if reply.errors.is_empty() => {
                    return self.transacted(&chosen, &reply, partition, &left_out).await;
                }
                Ok(reply) => {
                    count(&self.inner.writes.refused);
                    return self.refused(&chosen, &reply.errors, partition).await;
                }
                Err(error) => error,
            };
            let unknown = error
                .unknown_field()
                .filter(|name| !ESSENTIAL.contains(name))
                .map(str::to_owned);
            let Some(name) = unknown else {
                return all_failed(&chosen, error);
            };
            if !left_out.insert(name.clone()) {
                // It was not sent, and is refused all the same.
                return all_failed(&chosen, error);
            }
            self.inner.writes.learn(|learned| {
                learned.refused.insert(name);
            });
            let Some(again) = plan_again(&chosen, &left_out) else {
                return all_failed(&chosen, error);
            };
            body = again;
        }
    }

    /// Compares what the server stored with what was sent.
    async fn transacted(
        &self,
        writes: &[&StatusWrite],
        reply: &TxnReply,
        partition: &str,
        left_out: &BTreeSet<String>,
    ) -> Vec<WriteOutcome> {
        let mut outcomes = Vec::with_capacity(writes.len());
        for (place, write) in writes.iter().enumerate() {
            let record = reply
                .records
                .get(place)
                .filter(|record| record.is_of(&write.check));
            let (Some(record), WriteForm::Transaction(extras)) = (record, &write.form) else {
                let reason = "the answer does not name every operation's check".to_owned();
                outcomes.push(failed(ErrorKind::Decode { offset: 0, reason }));
                continue;
            };
            let lost = record.losses_from(extras, left_out);
            if lost.is_empty() {
                // What is sent stays the form, whatever the server derives.
                outcomes.push(WriteOutcome::Written {
                    index: record.modify_index(),
                    form: write.form.clone(),
                });
                continue;
            }
            self.inner.writes.learn(|learned| {
                learned
                    .lost
                    .extend(lost.into_iter().filter_map(|loss| match loss {
                        Loss::Definition(name) => Some(name),
                        Loss::Field(_) => None,
                    }));
            });
            let whole = record.repaired(extras, left_out);
            let outcome = self
                .register_records(&[(write, record.clone(), whole)], partition)
                .await;
            count(&self.inner.writes.repaired);
            outcomes.extend(outcome);
        }
        outcomes
    }

    /// Nothing of the transaction has happened: every operation is read again.
    async fn refused(
        &self,
        writes: &[&StatusWrite],
        errors: &[OpError],
        partition: &str,
    ) -> Vec<WriteOutcome> {
        let checks: Vec<&CheckRef> = writes.iter().map(|write| &write.check).collect();
        let now = match self.read_records(&checks, partition).await {
            Ok(now) => now,
            Err(error) => return all_failed(writes, error),
        };
        let faults: BTreeMap<usize, &OpError> = errors
            .iter()
            .filter(|error| !error.is_stale())
            .map(|error| (error.op_index, error))
            .collect();
        now.into_iter()
            .enumerate()
            .map(|(place, record)| match (faults.get(&place), record) {
                (_, None) => WriteOutcome::Gone,
                (Some(error), Some(_)) => failed(operation_failed(error)),
                (None, Some(record)) => stale(&record),
            })
            .collect()
    }

    /// Reads checks as they are now; `None` for each that is not there.
    async fn read_records(
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
    async fn write_by_register(
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
                    outcomes[place] = Some(stale(&record));
                }
                Some(record) => {
                    current.push((*write, record.clone(), record));
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

    /// Registers each `(write, record in the catalog, record to send)` with
    /// the write's status, and reads it back.
    async fn register_records(
        &self,
        records: &[(&StatusWrite, Record, Record)],
        partition: &str,
    ) -> Vec<WriteOutcome> {
        if records.is_empty() {
            return Vec::new();
        }
        let mut by_node: BTreeMap<(&str, &str), Vec<usize>> = BTreeMap::new();
        for (place, (write, _, _)) in records.iter().enumerate() {
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
        records: &[(&StatusWrite, Record, Record)],
        places: &[usize],
    ) -> Result<(), Error> {
        let checks: Vec<Value> = places
            .iter()
            .map(|place| {
                let (write, _, record) = &records[*place];
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
        records: &[(&StatusWrite, Record, Record)],
        partition: &str,
        errors: &BTreeMap<usize, Arc<Error>>,
    ) -> Vec<WriteOutcome> {
        let checks: Vec<&CheckRef> = records.iter().map(|(write, _, _)| &write.check).collect();
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
        for (place, ((write, before, sent), now)) in records.iter().zip(now).enumerate() {
            if let Some(error) = errors.get(&place) {
                outcomes.push(WriteOutcome::Failed(Arc::clone(error)));
                continue;
            }
            let Some(now) = now else {
                count(&self.inner.writes.lost_races);
                outcomes.push(WriteOutcome::Gone);
                continue;
            };
            let ours = now.same_but_status(sent)
                && now.status() == Some(write.status)
                && now.output() == &*write.output;
            let created_again = now.create_index() != before.create_index();
            if created_again && ours && now.create_index() == now.modify_index() {
                // It had been removed between our read and our write, and our
                // write has brought it back.
                count(&self.inner.writes.lost_races);
                self.take_back(&write.check, &now, partition).await;
                outcomes.push(WriteOutcome::Gone);
            } else if ours && !created_again {
                outcomes.push(WriteOutcome::Written {
                    index: now.modify_index(),
                    form: now.form(),
                });
            } else {
                count(&self.inner.writes.lost_races);
                outcomes.push(stale(&now));
            }
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

    fn scope(&self, partition: &str) -> Query {
        Query {
            partition: Some(partition.to_owned()),
            ..Query::default()
        }
    }
}

/// The body without the refused fields; it only gets shorter, so that it is
/// within the limits.
fn plan_again(writes: &[&StatusWrite], refused: &BTreeSet<String>) -> Option<Vec<u8>> {
    let operations: Option<Vec<String>> = writes
        .iter()
        .map(|write| match &write.form {
            WriteForm::Transaction(extras) => Some(crate::write::operation(write, extras, refused)),
            WriteForm::Register => None,
        })
        .collect();
    debug_assert!(writes.len() <= MAX_OPERATIONS);
    Some(format!("[{}]", operations?.join(",")).into_bytes())
}

fn stale(record: &Record) -> WriteOutcome {
    WriteOutcome::Stale {
        index: record.modify_index(),
        form: record.form(),
        status: record.status(),
        output: record.output().to_owned(),
    }
}

fn operation_failed(error: &OpError) -> ErrorKind {
    // Consul says 409 for the transaction; what matters is the operation.
    let denied = error.what.contains("Permission denied") || error.what.contains("ACL not found");
    ErrorKind::Status {
        code: if denied {
            http::StatusCode::FORBIDDEN
        } else {
            http::StatusCode::CONFLICT
        },
        text: Excerpt::new(error.what.as_bytes()),
        retry_after: None,
    }
}

fn failed(kind: ErrorKind) -> WriteOutcome {
    WriteOutcome::Failed(Arc::new(Error::new("PUT /v1/txn", kind)))
}

fn all_failed(writes: &[&StatusWrite], error: Error) -> Vec<WriteOutcome> {
    let error = Arc::new(error);
    writes
        .iter()
        .map(|_| WriteOutcome::Failed(Arc::clone(&error)))
        .collect()
}

fn fail_unplanned() -> WriteOutcome {
    failed(ErrorKind::Request("the write was in no request".to_owned()))
}
