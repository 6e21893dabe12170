//! Recorded check histories: what would each strategy have done with them?
//!
//! Thresholds are mostly guessed. This crate reads recorded results, runs any
//! strategies of [`evenkeel_threshold`] over them side by side, and measures what
//! they would have reported: how many status writes, how many of them false, how
//! late, for how long something wrong. `evenkeel simulate` is a thin shell around
//! it.
//!
//! | part | what it is |
//! |---|---|
//! | [`History`] | a reader: CSV, JSON lines, evenkeel's event log; plain or gzip; each bad row told by its line |
//! | [`Replay`] | strategies over rows, from any source; an embedder's own strategy, too |
//! | [`Outcome`], [`Tally`] | what came out, per strategy and per check |
//! | [`advise()`] | from measured noise to proposals |
//! | [`draw`] | pictures as SVG |
//! | [`sample`] | a made-up history |
//!
//! # What it counts against
//!
//! The truth about a target is judged with hindsight, see [`TruthWindow`]: it
//! changes at a result if four fifths of the results from there on agree. A change
//! to a status that was not the truth at any moment while it was reported is a
//! *false flip*. A *delay* runs from a change of the truth, thus from the first
//! result that shows it, to the report. A silence in which nobody watched is cut
//! out, see [`Gaps`].
//!
//! # What it does not do
//!
//! It opens no file, prints nothing, reads no clock and starts no thread. It does
//! not sort: a row earlier than the one before it of the same check is a bad row.
//! It does not look at latencies, since no strategy sees them. It makes one pass,
//! in memory that grows with the number of checks and not with that of rows, so it
//! has no percentiles of delays.
//!
//! # Examples
//!
//! From a file to figures:
//!
//! ```
//! use std::ops::ControlFlow;
//!
//! use evenkeel_replay::{Candidate, History, Replay, ReplaySettings};
//!
//! let file = "1730248200,web,up\n1730248210,web,down\n1730248220,web,up\nnonsense\n";
//! let candidates = vec![Candidate::parse("raw")?, Candidate::parse("consecutive:down=2,up=2")?];
//! let mut replay = Replay::new(ReplaySettings::default(), candidates);
//! let mut bad_rows = Vec::new();
//! let _ = replay.read(&mut History::new(file.as_bytes())?, |row| {
//!     bad_rows.push(row.to_string());
//!     ControlFlow::Continue(())
//! })?;
//! let outcome = replay.finish();
//! let writes: Vec<u64> = outcome.strategies.iter().map(|it| it.tally.writes).collect();
//! assert_eq!(writes, [2, 0]);
//! assert_eq!(bad_rows, ["line 4: 1 fields, 3 are needed"]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Advice and a picture, on the made-up history:
//!
//! ```
//! # use std::ops::ControlFlow;
//! use evenkeel_replay::{Candidate, History, Replay, ReplaySettings, Wish, advise, draw, sample};
//!
//! let mut file = Vec::new();
//! sample::write(sample::Sample { results: 2000, ..Default::default() }, &mut file)?;
//! let replayed = |candidates| {
//!     let mut settings = ReplaySettings::default();
//!     settings.timelines = 1;
//!     let mut replay = Replay::new(settings, candidates);
//!     let mut history = History::new(&file[..])?;
//!     let _ = replay.read(&mut history, |_| ControlFlow::Continue(()))?;
//!     Ok::<_, evenkeel_replay::ReadError>(replay.finish())
//! };
//! let advice = advise(&replayed(Vec::new())?, Wish::default())?;
//! let proposed = advice.proposals.iter().map(|it| it.candidate.clone()).collect();
//! let outcome = replayed(proposed)?;
//! let names: Vec<&str> = outcome.strategies.iter().map(|it| it.name.as_str()).collect();
//! let picture = draw::timeline(&outcome.checks[0], &names).expect("one timeline was kept");
//! assert!(picture.starts_with("<svg"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Features
//!
//! None is on by default.
//!
//! * `gzip`: packed histories are read.
//! * `json`: JSON lines and event logs are read.

mod advise;
mod candidate;
mod csv;
pub mod draw;
#[cfg(feature = "json")]
mod events;
mod history;
#[cfg(feature = "json")]
mod json;
mod lines;
mod replay;
mod row;
pub mod sample;
mod source;
mod tally;
mod time;
mod timeline;
mod truth;
mod word;

pub use advise::{Advice, CheckAdvice, NoAdvice, Proposed, Wish, advise};
pub use candidate::{Candidate, CandidateError};
pub(crate) use history::Parsed;
pub use history::{EVENT_INTERVAL, Entry, History};
pub use replay::{CheckOutcome, Gaps, Outcome, Replay, ReplaySettings, StrategyOutcome};
pub use row::{BadRow, Fault, LONGEST_NAME, Row, Snippet};
pub use source::ReadError;
pub use tally::{Delays, NoiseCounts, Tally};
pub use time::civil;
pub use timeline::{Seen, Timeline};
pub use truth::{TruthWindow, WindowError};
