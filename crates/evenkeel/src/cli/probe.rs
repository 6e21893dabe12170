//! `probe`: one check, run once, with what came of it and how long it took.
//!
//! A target on the command line becomes an entry of the file catalog, so each
//! kind and each key of it is there without a line here.

use std::fmt::Write as _;
use std::path::Path;
use std::time::SystemTime;

use evenkeel_probe::{Outcome, Report};
use evenkeel_threshold::Status;
use serde_json::{Map, Value as Json, json};

use super::{ProbeArguments, output};
use crate::catalog::file::{Entry, FileFault, KINDS, parse, shape};
use crate::clock::rfc3339;
use crate::config::{self, Settings};
use crate::document::{Format, Shape, read_file};
use crate::environment::Environment;
use crate::exit::{Exit, Failure};

/// Runs the probe. The exit codes are those of Nagios plugins.
pub(super) fn run(
    arguments: &ProbeArguments,
    json: bool,
    environment: &Environment,
) -> Result<Exit, Failure> {
    let loaded = config::load(&arguments.layers.inputs(), environment);
    if !loaded.faults.is_empty() {
        return Err(Failure {
            exit: Exit::Config,
            messages: loaded.faults.iter().map(ToString::to_string).collect(),
        });
    }
    let settings = loaded.settings;
    let entry = match (&arguments.target, &arguments.check, &settings.file.path) {
        (Some(target), None, _) => typed(target, &arguments.keys)?,
        (None, Some(name), Some(path)) => listed(path, name, &settings)?,
        (None, Some(_), None) => return Err(usage("--check needs --file FILE")),
        (None, None, _) => return Err(usage("give a target, or --file FILE and --check NAME")),
        (Some(_), Some(_), _) => {
            return Err(usage(
                "give either a target or --file FILE and --check NAME",
            ));
        }
    };
    let definition = entry
        .definition(settings.probe.default_timeout)
        .map_err(|error| Failure::new(Exit::Usage, error.to_string()))?;
    let Some(definition) = definition.probe() else {
        let kind = definition.kind();
        return Err(usage(&format!("a check of the kind {kind} is not probed")));
    };
    let prober = crate::daemon::prober(&settings.probe, None)?;
    let report = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::new(Exit::Internal, format!("no runtime: {error}")))?
        .block_on(prober.run(definition));
    if json {
        output::print_json(&as_json(definition.kind(), definition.target(), &report))?;
    } else {
        output::print(&as_text(definition.kind(), definition.target(), &report))?;
    }
    Ok(match report.status() {
        Some(Status::Passing) => Exit::Ok,
        Some(Status::Warning) => Exit::NotSo,
        Some(Status::Critical) => Exit::Critical,
        None => Exit::Unprobed,
    })
}

fn usage(text: &str) -> Failure {
    Failure::new(Exit::Usage, text)
}

/// The check of that name, or id, in the file.
fn listed(path: &Path, name: &str, settings: &Settings) -> Result<Entry, Failure> {
    let told = path.display();
    let refused = |text: String| Failure::new(Exit::Config, format!("{told}: {text}"));
    let bytes = read_file(path, settings.file.max_size.0).map_err(refused)?;
    let parsed = parse(&bytes, Format::of(path)).map_err(|faults| Failure {
        exit: Exit::Config,
        messages: faults
            .iter()
            .map(|fault| format!("{told}: {fault}"))
            .collect(),
    })?;
    let mut found = parsed
        .checks
        .into_iter()
        .map(|(_, entry)| entry)
        .filter(|entry| entry.name == name || entry.id() == name);
    match (found.next(), found.next()) {
        (Some(entry), None) => Ok(entry),
        (None, _) => Err(refused(format!("there is no check {name:?}"))),
        (Some(_), Some(_)) => Err(refused(format!(
            "several checks are called {name:?}: give one of them an id, and name that"
        ))),
    }
}

/// The check that the command line describes.
fn typed(target: &str, keys: &[String]) -> Result<Entry, Failure> {
    let (kind, target) = kind_of(target)?;
    let mut check = Map::new();
    check.insert("name".to_owned(), "probe".into());
    for pair in keys {
        let (key, text) = pair
            .split_once('=')
            .ok_or_else(|| usage(&format!("{pair:?} is not KEY=VALUE")))?;
        let path: Vec<&str> = key.split('.').collect();
        put(&mut check, &path, value(&path, text))
            .map_err(|()| usage(&format!("{key}: given twice, once as a table")))?;
    }
    match (check.get_mut(kind), shape_of(&[kind])) {
        (Some(Json::Object(table)), Some(shape)) => {
            let field = target_field(shape)
                .ok_or_else(|| usage(&format!("{kind} has no keys of its own")))?;
            table.insert(field.to_owned(), target.into());
        }
        (Some(_), _) => return Err(usage(&format!("{kind}: given twice"))),
        (None, _) => {
            check.insert(kind.to_owned(), target.into());
        }
    }
    let text = json!({ "check": [check] }).to_string();
    let parsed = parse(text.as_bytes(), Format::Json).map_err(|faults| Failure {
        exit: Exit::Usage,
        messages: faults.iter().map(FileFault::told_of_one).collect(),
    })?;
    let entry = parsed.checks.into_iter().next();
    entry.map_or_else(
        || Err(Failure::new(Exit::Internal, "the check got lost")),
        |(_, entry)| Ok(entry),
    )
}

/// `http://…` and `https://…` as they are; `KIND://REST` or `KIND:REST` else.
fn kind_of(target: &str) -> Result<(&'static str, &str), Failure> {
    let unknown = || {
        usage(&format!(
            "{target:?} is no target: give a URL, or KIND:TARGET with one of {}",
            KINDS.join(", ")
        ))
    };
    let (scheme, rest) = target.split_once(':').ok_or_else(unknown)?;
    if scheme == "http" || scheme == "https" {
        return Ok(("http", target));
    }
    // What people would try: `tls` in a file is the table of how it is spoken.
    let scheme = if scheme == "tls" { "handshake" } else { scheme };
    let kind = KINDS.iter().find(|kind| **kind == scheme);
    let kind = kind.ok_or_else(unknown)?;
    Ok((kind, rest.strip_prefix("//").unwrap_or(rest)))
}

/// What may stand under a key of a check.
fn shape_of(path: &[&str]) -> Option<&'static Shape> {
    match shape().find(&["check"])? {
        Shape::List(check) => check.find(path),
        _ => None,
    }
}

/// The key of a kind's table that the text stands for: the first that must be
/// given.
fn target_field(shape: &Shape) -> Option<&str> {
    let table = match shape {
        Shape::TextOr(table) => table,
        other => other,
    };
    let Shape::Table(fields) = table else {
        return None;
    };
    let field = fields.iter().find(|field| field.required);
    Some(&field.or(fields.first())?.name)
}

/// A value as its key wants it: text as it is, all else as JSON.
fn value(path: &[&str], text: &str) -> Json {
    let is_list = text.starts_with('[');
    match shape_of(path) {
        Some(Shape::Text(_) | Shape::Choice(_)) => text.into(),
        Some(Shape::Texts | Shape::TextOr(_)) if !is_list => text.into(),
        _ => serde_json::from_str(text).unwrap_or_else(|_| text.into()),
    }
}

fn put(table: &mut Map<String, Json>, path: &[&str], value: Json) -> Result<(), ()> {
    match path {
        [] => Err(()),
        [key] => {
            table.insert((*key).to_owned(), value);
            Ok(())
        }
        [key, rest @ ..] => {
            let inner = table
                .entry((*key).to_owned())
                .or_insert_with(|| Json::Object(Map::new()));
            put(inner.as_object_mut().ok_or(())?, rest, value)
        }
    }
}

fn verdict(report: &Report) -> String {
    match report.outcome {
        Outcome::Observed(observation) => observation.status.as_str().to_owned(),
        Outcome::Unprobed(cause) => format!("unprobed ({})", cause.as_str()),
    }
}

fn as_text(kind: &str, target: &str, report: &Report) -> String {
    let mut text = format!("{}: {kind} {}\n", verdict(report), plain(target));
    for (phase, took) in report.phases.iter() {
        let failed = match report.failed_phase == Some(phase) {
            true => "  ended here",
            false => "",
        };
        let took = took.as_secs_f64() * 1e3;
        // Writing to a string cannot fail.
        let _ = writeln!(text, "  {:<10} {took:>9.3} ms{failed}", phase.as_str());
    }
    let took = report.took.as_secs_f64() * 1e3;
    let _ = writeln!(text, "  {:<10} {took:>9.3} ms", "total");
    if let Some(trips) = &report.round_trips {
        let milliseconds = |took: Option<std::time::Duration>| {
            took.map_or("-".to_owned(), |took| {
                format!("{:.3} ms", took.as_secs_f64() * 1e3)
            })
        };
        let (sent, answered) = (trips.sent, trips.answered);
        let shortest = milliseconds(trips.shortest);
        let (average, longest) = (milliseconds(trips.average), milliseconds(trips.longest));
        let _ = writeln!(
            text,
            "  echoes     {answered} of {sent} answered, round trip {shortest} / {average} / {longest} (least, average, most)"
        );
    }
    if let Some(certificate) = &report.certificate {
        let (ends, left) = (date(certificate.chain_not_after), certificate.days_left);
        let _ = writeln!(text, "  certificate  ends {ends}, days left: {left}");
    }
    text.push_str(&plain(&report.output));
    text.push('\n');
    text
}

fn date(time: SystemTime) -> String {
    let since = time.duration_since(SystemTime::UNIX_EPOCH);
    let millis = since.map_or(0, |since| {
        u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
    });
    rfc3339(millis)
}

/// Without what a terminal would take for a command; lines stay lines.
fn plain(text: &str) -> String {
    text.chars()
        .map(|c| match c {
            '\n' | '\t' => c,
            c if c.is_control() => '\u{FFFD}',
            c => c,
        })
        .collect()
}

fn as_json(kind: &str, target: &str, report: &Report) -> Json {
    let phases: Map<String, Json> = report
        .phases
        .iter()
        .map(|(phase, took)| (phase.as_str().to_owned(), took.as_secs_f64().into()))
        .collect();
    let cause = match report.outcome {
        Outcome::Observed(_) => None,
        Outcome::Unprobed(cause) => Some(cause.as_str()),
    };
    let seconds = |took: Option<std::time::Duration>| took.map(|took| took.as_secs_f64());
    let echoes = report.round_trips.map(|trips| {
        json!({
            "sent": trips.sent,
            "answered": trips.answered,
            "shortest": seconds(trips.shortest),
            "average": seconds(trips.average),
            "longest": seconds(trips.longest),
        })
    });
    let certificate = report.certificate.as_ref().map(|certificate| {
        json!({
            "not_after": date(certificate.not_after),
            "chain_not_after": date(certificate.chain_not_after),
            "days_left": certificate.days_left,
        })
    });
    json!({
        "kind": kind,
        "target": target,
        "status": report.status().map(Status::as_str),
        "unprobed": cause,
        "output": report.output,
        "failed_phase": report.failed_phase.map(|phase| phase.as_str()),
        "phases": phases,
        "echoes": echoes,
        "certificate": certificate,
        "seconds": report.took.as_secs_f64(),
    })
}
