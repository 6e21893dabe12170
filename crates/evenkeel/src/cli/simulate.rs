//! `simulate`: from the arguments to a table, JSON and pictures.

use std::io::{self, IsTerminal as _};
use std::path::Path;
use std::time::Duration;

use evenkeel_replay::{Candidate, Gaps, ReplaySettings, TruthWindow, Wish};

use super::{SimulateArguments, output};
use crate::config::duration;
use crate::exit::{Exit, Failure};
use crate::simulate::{
    DEFAULT_STRATEGIES, Input, OnBadRows, Pictures, Progress, Simulation, as_json, as_table,
};

/// Replays the history and shows what came out.
pub(super) fn run(arguments: &SimulateArguments, json: bool) -> Result<Exit, Failure> {
    let simulation = accept(arguments)?;
    let stderr = io::stderr();
    let mut progress = match stderr.is_terminal() && !json {
        true => Progress::to(stderr),
        false => Progress::none(),
    };
    let simulated = simulation.run(&mut progress)?;
    if json {
        output::print_json(&as_json(&simulated))?;
        return Ok(Exit::Ok);
    }
    for message in simulated.bad_rows.messages() {
        output::tell(&format!("evenkeel: {message}\n"));
    }
    output::print(&as_table(&simulated))?;
    Ok(Exit::Ok)
}

/// What the arguments mean; all that is wrong with them at once.
fn accept(arguments: &SimulateArguments) -> Result<Simulation, Failure> {
    let mut faults = Vec::new();
    let mut time = |flag: &str, text: &str| match duration::parse(text) {
        Ok(time) if time.is_zero() => {
            faults.push(format!("{flag}: more than 0s is wanted"));
            time
        }
        Ok(time) => time,
        Err(error) => {
            faults.push(format!("{flag}: {error}"));
            Duration::ZERO
        }
    };
    let gaps = match arguments.gap.as_str() {
        "auto" => Gaps::TenIntervals,
        "never" => Gaps::Never,
        text => Gaps::LongerThan(time("--gap", text)),
    };
    let event_interval = time("--event-interval", &arguments.event_interval);
    let wish = Wish {
        between_false_alarms: time("--between-false-alarms", &arguments.between_false_alarms),
        timeout: time("--timeout", &arguments.timeout),
    };
    let mut replay = ReplaySettings::default();
    replay.gaps = gaps;
    match TruthWindow::new(arguments.truth) {
        Ok(window) => replay.truth = window,
        Err(error) => faults.push(format!("--truth: {error}")),
    }
    let candidates = candidates(&arguments.strategy, &mut faults);
    let inputs: Vec<Input> = arguments
        .files
        .iter()
        .map(|path| match path.as_path() == Path::new("-") {
            true => Input::Stdin,
            false => Input::File(path.clone()),
        })
        .collect();
    let from_stdin = inputs
        .iter()
        .filter(|input| **input == Input::Stdin)
        .count();
    if from_stdin > 1 {
        faults.push("-: standard input can be read once".to_owned());
    }
    if from_stdin > 0 && arguments.advise {
        faults.push(
            "--advise reads the history twice, which standard input cannot be: give a file"
                .to_owned(),
        );
    }
    if !faults.is_empty() {
        return Err(Failure {
            exit: Exit::Usage,
            messages: faults,
        });
    }
    Ok(Simulation {
        inputs,
        candidates,
        replay,
        event_interval,
        on_bad_rows: OnBadRows {
            refuse: arguments.bad_rows == super::BadRowsRule::Refuse,
            named: arguments.show_bad_rows,
        },
        advise: arguments.advise.then_some(wish),
        pictures: arguments.svg.clone().map(|directory| Pictures {
            directory,
            timelines: arguments.timelines,
        }),
    })
}

fn candidates(texts: &[String], faults: &mut Vec<String>) -> Vec<Candidate> {
    let mut candidates: Vec<Candidate> = Vec::new();
    let texts: Vec<&str> = match texts.is_empty() {
        true => DEFAULT_STRATEGIES.to_vec(),
        false => texts.iter().map(String::as_str).collect(),
    };
    for text in texts {
        match Candidate::parse(text) {
            Ok(new) if candidates.iter().any(|known| known.name == new.name) => {
                faults.push(format!("--strategy {text}: given twice"));
            }
            Ok(new) => candidates.push(new),
            Err(error) => faults.push(format!("--strategy {text}: {error}")),
        }
    }
    candidates
}
