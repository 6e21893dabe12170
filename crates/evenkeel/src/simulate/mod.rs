//! `simulate`: what strategies would have done with a recorded history. Reads
//! files and writes pictures; what is counted, and how, is in
//! [`evenkeel_replay`].

mod bad_rows;
mod json;
mod pictures;
mod read;
mod table;

pub use bad_rows::{BadRows, OnBadRows};
pub use json::as_json;
pub use read::{Input, Progress};
pub use table::as_table;

use std::path::PathBuf;
use std::time::Duration;

use evenkeel_replay::{Advice, Candidate, NoAdvice, Outcome, Replay, ReplaySettings, Wish, advise};

use crate::exit::{Exit, Failure};
use read::Reading;

/// The strategies that are compared if none are named: what results alone would
/// do, and the usual rules with the same patience.
pub const DEFAULT_STRATEGIES: [&str; 6] = [
    "raw",
    "consecutive:down=3,up=3",
    "leaky:down=3,up=3",
    "window:m=3,n=5,l=1",
    "ewma",
    "cusum",
];

/// Timelines are kept for so many checks, in which those with the most changes
/// are looked for.
const MOST_TIMELINES: usize = 5000;

/// What is to be simulated.
#[derive(Debug, Clone)]
pub struct Simulation {
    /// The history, one file after the other.
    pub inputs: Vec<Input>,
    /// What is compared.
    pub candidates: Vec<Candidate>,
    /// How it is replayed.
    pub replay: ReplaySettings,
    /// For event logs: how often a check is taken to have been probed.
    pub event_interval: Duration,
    /// What becomes of rows that cannot be used.
    pub on_bad_rows: OnBadRows,
    /// Proposals are wanted.
    pub advise: Option<Wish>,
    /// Pictures are wanted.
    pub pictures: Option<Pictures>,
}

/// Where pictures go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pictures {
    /// The directory; it is made if it is not there.
    pub directory: PathBuf,
    /// Timelines of so many checks, those with the most changes.
    pub timelines: usize,
}

/// What came out.
#[derive(Debug)]
pub struct Simulated {
    /// What was counted.
    pub outcome: Outcome,
    /// Rows that were not used.
    pub bad_rows: BadRows,
    /// Lines of event logs among the input.
    pub events: u64,
    /// How the truth was found.
    pub replay: ReplaySettings,
    /// What is proposed, where it was asked for.
    pub advice: Option<Result<Advice, NoAdvice>>,
    /// The pictures that were written.
    pub pictures: Vec<PathBuf>,
}

impl Simulation {
    /// Reads the history, twice if advice is wanted, and replays it.
    ///
    /// # Errors
    ///
    /// A file cannot be read, holds no history or a row that is refused; a picture
    /// cannot be written.
    pub fn run(mut self, progress: &mut Progress) -> Result<Simulated, Failure> {
        let mut advice = None;
        if let Some(wish) = self.advise {
            // Without strategies: how results fail shows in the results alone.
            let measured = self.replayed(Vec::new(), self.replay, progress)?;
            let given = advise(&measured.outcome, wish);
            for proposed in given.iter().flat_map(|advice| &advice.proposals) {
                let known = |it: &Candidate| it.strategy == proposed.candidate.strategy;
                if !self.candidates.iter().any(known) {
                    self.candidates.push(proposed.candidate.clone());
                }
            }
            advice = Some(given);
        }
        let mut settings = self.replay;
        if self.pictures.is_some() {
            settings.timelines = MOST_TIMELINES;
        }
        let candidates = std::mem::take(&mut self.candidates);
        let mut simulated = self.replayed(candidates, settings, progress)?;
        simulated.advice = advice;
        if let Some(pictures) = &self.pictures {
            simulated.pictures = pictures::write(&simulated.outcome, pictures)?;
        }
        Ok(simulated)
    }

    fn replayed(
        &self,
        candidates: Vec<Candidate>,
        settings: ReplaySettings,
        progress: &mut Progress,
    ) -> Result<Simulated, Failure> {
        let mut reading = Reading {
            replay: Replay::new(settings, candidates),
            bad_rows: BadRows::new(self.on_bad_rows),
            events: 0,
            event_interval: self.event_interval,
        };
        for input in &self.inputs {
            reading.read(input, progress)?;
        }
        progress.done();
        let Reading {
            replay,
            bad_rows,
            events,
            ..
        } = reading;
        bad_rows.verdict()?;
        let outcome = replay.finish();
        if outcome.results == 0 {
            let mut messages = bad_rows.messages();
            let names: Vec<String> = self.inputs.iter().map(ToString::to_string).collect();
            messages.push(format!("no result in {}", names.join(", ")));
            return Err(Failure {
                exit: Exit::Data,
                messages,
            });
        }
        Ok(Simulated {
            outcome,
            bad_rows,
            events,
            replay: settings,
            advice: None,
            pictures: Vec::new(),
        })
    }
}
