//! Status writes that change nothing but Status and Output: the pure part.
//!
//! There are two ways, since `/v1/txn` stores only some fields of a check's
//! definition and silently drops the others (seen on Consul 1.8.7):
//!
//! * **Transaction**: a check-and-set with the index that a list delivered, up
//!   to [`MAX_OPERATIONS`] in one request. For definitions made of
//!   [`TRANSACTION_FIELDS`] alone. All or nothing: after a refusal none of the
//!   operations has happened, whichever was at fault (P022).
//! * **Register**: read consistently, compare the index, send the record back
//!   through `/v1/catalog/register` as it came with Status and Output changed,
//!   read back. Not atomic: an edit by somebody else in the milliseconds
//!   between read and write is overwritten. One that comes after the write is
//!   noticed in the read-back.
//!
//! [`WriteForm::of`] decides which; the client's `write_statuses` does it.

mod form;
mod plan;
mod record;
mod reply;
mod verdict;

pub use form::{Extras, TRANSACTION_FIELDS, WriteForm};
pub use plan::{Chunk, MAX_BODY, MAX_OPERATIONS, operation, plan};
pub use record::{Loss, Record};
pub use reply::{OpError, TxnReply, get_operations};
pub use verdict::{AfterTransaction, ReadBack, after_transaction, read_back};

use std::sync::Arc;

use crate::error::Error;
use crate::types::{CheckRef, Status};

/// One status to be written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StatusWrite {
    /// The check.
    pub check: CheckRef,
    /// Its new status.
    pub status: Status,
    /// Its new output.
    pub output: Arc<str>,
    /// The `ModifyIndex` at which the caller knows it.
    pub index: u64,
    /// How it can be written, of the record at that index.
    pub form: WriteForm,
}

/// What became of one [`StatusWrite`].
#[derive(Debug, Clone)]
pub enum WriteOutcome {
    /// It is in the catalog, as sent.
    Written {
        /// The check's `ModifyIndex` now.
        index: u64,
        /// How it can be written next.
        form: WriteForm,
    },
    /// Nothing was written for it: the check is no longer, or may not be, as
    /// it was at the index; or somebody wrote after us. Here is what it is
    /// now. Decide again, and send again with this index.
    Stale {
        /// The check's `ModifyIndex` now.
        index: u64,
        /// How it can be written next.
        form: WriteForm,
        /// Its status in the catalog; `None` if it is none of the three.
        status: Option<Status>,
        /// Its output in the catalog.
        output: String,
    },
    /// The check is not in the catalog any more.
    Gone,
    /// It is not known to be written. `Error::is_retryable` tells whether the
    /// same write may succeed later.
    Failed(Arc<Error>),
}

impl WriteOutcome {
    /// [`Stale`](Self::Stale), with what the record in the catalog says.
    pub fn stale(record: &Record) -> Self {
        Self::Stale {
            index: record.modify_index(),
            form: record.form(),
            status: record.status(),
            output: record.output().to_owned(),
        }
    }

    /// Whether it is in the catalog, as sent.
    pub fn is_written(&self) -> bool {
        matches!(self, Self::Written { .. })
    }
}
