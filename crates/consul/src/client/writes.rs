use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use futures_util::StreamExt as _;
use futures_util::stream;

use super::Client;
use super::register::Sending;
use crate::error::{Error, ErrorKind, Excerpt};
use crate::request::Query;
use crate::types::CheckRef;
use crate::write::{
    AfterTransaction, Chunk, MAX_OPERATIONS, OpError, StatusWrite, TxnReply, WriteForm,
    WriteOutcome, after_transaction, plan,
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
    pub(super) transactions: AtomicU64,
    pub(super) refused: AtomicU64,
    pub(super) registers: AtomicU64,
    pub(super) lost_races: AtomicU64,
    pub(super) repaired: AtomicU64,
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

pub(super) fn count(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}

impl Client {
    /// Writes the statuses of checks, changing nothing but Status and Output;
    /// see [`write`](mod@crate::write) for how. The outcomes are in the order of
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
            let record = reply.records.get(place);
            outcomes.push(match after_transaction(write, record, left_out) {
                AfterTransaction::Written { index } => {
                    // What was sent stays the form, whatever the server derives.
                    WriteOutcome::Written {
                        index,
                        form: write.form.clone(),
                    }
                }
                AfterTransaction::Lost {
                    fields,
                    stored,
                    whole,
                } => {
                    self.inner
                        .writes
                        .learn(|learned| learned.lost.extend(fields));
                    count(&self.inner.writes.repaired);
                    let record = Sending {
                        write,
                        before: stored,
                        record: whole,
                    };
                    let repaired = self.register_records(&[record], partition).await;
                    repaired.into_iter().next().unwrap_or_else(fail_unplanned)
                }
                AfterTransaction::Unnamed => {
                    let reason = "the answer does not name every operation's check".to_owned();
                    failed(ErrorKind::Decode { offset: 0, reason })
                }
            });
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
                // Whoever may not write may not read either, and is told nothing.
                (Some(error), None) if is_denied(error) => failed(operation_failed(error)),
                (_, None) => WriteOutcome::Gone,
                (Some(error), Some(_)) => failed(operation_failed(error)),
                (None, Some(record)) => WriteOutcome::stale(&record),
            })
            .collect()
    }

    pub(super) fn scope(&self, partition: &str) -> Query {
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

fn is_denied(error: &OpError) -> bool {
    error.what.contains("Permission denied") || error.what.contains("ACL not found")
}

pub(super) fn operation_failed(error: &OpError) -> ErrorKind {
    // Consul says 409 for the transaction; what matters is the operation.
    let denied = is_denied(error);
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

pub(super) fn failed(kind: ErrorKind) -> WriteOutcome {
    WriteOutcome::Failed(Arc::new(Error::new("PUT /v1/txn", kind)))
}

pub(super) fn all_failed(writes: &[&StatusWrite], error: Error) -> Vec<WriteOutcome> {
    let error = Arc::new(error);
    writes
        .iter()
        .map(|_| WriteOutcome::Failed(Arc::clone(&error)))
        .collect()
}

pub(super) fn fail_unplanned() -> WriteOutcome {
    failed(ErrorKind::Request("the write was in no request".to_owned()))
}
