//! What `/v1/status` answers and `evenkeel status` shows.

mod report;
mod table;

pub use report::{
    Change, CheckStatus, Fault, Observed, Parameter, Pending, Readiness, StatusFilter,
    StatusReport, ThresholdStatus, UnsupportedCheck, VERSION,
};
pub use table::{Style, render};
