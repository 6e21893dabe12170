use std::fmt::Write as _;

use evenkeel_threshold::Status;

use crate::events::CheckName;
use crate::status::{CheckStatus, Parameter, Pending, StatusReport, ThresholdStatus};

/// Whether colours may be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Style {
    /// Letters only.
    Plain,
    /// With ANSI colours, for a terminal.
    Colour,
}

const RESET: &str = "\u{1b}[0m";

/// The report as a table for people.
pub fn render(report: &StatusReport, style: Style) -> String {
    let mut text = String::new();
    let out = &mut text;
    if !report.checks.is_empty() {
        let mut rows = vec![
            [
                "CHECK",
                "REPORTED",
                "LAST RESULT",
                "PENDING",
                "LAST CHANGE",
                "THRESHOLDS",
            ]
            .map(Cell::plain),
        ];
        rows.extend(report.checks.iter().map(|check| row(check, report.at)));
        write_rows(out, &rows, style);
    }
    let faults: Vec<(String, &str)> = report
        .checks
        .iter()
        .flat_map(|check| {
            let name = name(&check.check);
            check
                .thresholds
                .faults
                .iter()
                .map(move |fault| (name.clone(), fault.as_str()))
        })
        .chain(report.faults.iter().map(|fault| {
            let name = fault.check.as_ref().map_or_else(|| "catalog".into(), name);
            (name, fault.text.as_str())
        }))
        .collect();
    section(out, "FAULTS", &faults);
    let unsupported: Vec<(String, &str)> = report
        .unsupported
        .iter()
        .map(|check| (name(&check.check), check.reason.as_str()))
        .collect();
    section(out, "NOT PROBED", &unsupported);
    if !report.readiness.ready {
        let reasons: Vec<(String, &str)> = report
            .readiness
            .reasons
            .iter()
            .map(|reason| (String::new(), reason.as_str()))
            .collect();
        section(out, "NOT READY", &reasons);
    }
    summary(out, report);
    text
}

struct Cell {
    text: String,
    colour: Option<Status>,
}

impl Cell {
    fn plain(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            colour: None,
        }
    }
}

fn row(check: &CheckStatus, now: u64) -> [Cell; 6] {
    let mut reported = check.reported.to_string();
    if let Some(mark) = &check.mark {
        let _ = write!(reported, " ({mark})");
    }
    if let Some(catalog) = check.in_catalog {
        let _ = write!(reported, " (catalog: {catalog})");
    }
    let last = match (check.observed, check.unprobed_run) {
        (_, run @ 1..) => format!("could not probe ({run}×)"),
        (Some(observed), 0) => format!("{} {} ago", observed.status, age(now, observed.at)),
        (None, 0) => "none yet".into(),
    };
    [
        Cell::plain(name(&check.check)),
        Cell {
            text: reported,
            colour: Some(check.reported),
        },
        Cell {
            text: last,
            colour: check.observed.map(|observed| observed.status),
        },
        Cell::plain(check.pending.map(|it| pending(it, now)).unwrap_or_default()),
        Cell::plain(check.last_change.map_or_else(
            || "none".into(),
            |change| format!("from {}, {} ago", change.from, age(now, change.at)),
        )),
        Cell::plain(thresholds(&check.thresholds)),
    ]
}

/// "2 of 4 failures", or what time will do.
fn pending(pending: Pending, now: u64) -> String {
    match (pending.seen, pending.needed, pending.until) {
        (Some(seen), Some(needed), _) => {
            let noun = match pending.toward {
                Status::Passing => "successes",
                Status::Warning => "warnings",
                Status::Critical => "failures",
            };
            format!("{seen} of {needed} {noun}")
        }
        (_, _, Some(until)) => format!("{} in {}", pending.toward, age(until, now)),
        _ => pending.toward.to_string(),
    }
}

/// The strategy and what was set of it, each source after what it set. What
/// nobody set is left out: `--json` has it.
fn thresholds(thresholds: &ThresholdStatus) -> String {
    let mut text = thresholds.strategy.clone();
    let set: Vec<&Parameter> = thresholds
        .parameters
        .iter()
        .filter(|parameter| parameter.source != "default")
        .collect();
    if set.is_empty() {
        text.push_str(" (default)");
    }
    for (number, parameter) in set.iter().enumerate() {
        let _ = write!(text, " {}={}", parameter.key, parameter.value);
        let next = set.get(number + 1);
        if next.is_none_or(|next| next.source != parameter.source) {
            let _ = write!(text, " ({})", parameter.source);
        }
    }
    if !thresholds.faults.is_empty() {
        text.push_str(" FAULT");
    }
    text
}

/// Partition and namespace where there are any, then node/service/check.
fn name(check: &CheckName) -> String {
    [
        &check.partition,
        &check.namespace,
        &check.node,
        &check.service_id,
        &check.check_id,
    ]
    .into_iter()
    .filter(|part| !part.is_empty())
    .map(|part| printable(part))
    .collect::<Vec<_>>()
    .join("/")
}

/// Names come from the catalog; control characters in them could drive the
/// terminal.
fn printable(text: &str) -> String {
    text.chars()
        .map(|c| if c.is_control() { '\u{FFFD}' } else { c })
        .collect()
}

/// The time from `then` to `now` in one or two units.
fn age(now: u64, then: u64) -> String {
    let seconds = now.saturating_sub(then) / 1000;
    match seconds {
        0 => "<1 s".to_owned(),
        1..60 => format!("{seconds} s"),
        60..3600 => format!("{} min {} s", seconds / 60, seconds % 60),
        3600..86_400 => format!("{} h {} min", seconds / 3600, seconds / 60 % 60),
        _ => format!("{} d {} h", seconds / 86_400, seconds / 3600 % 24),
    }
}

fn write_rows<const N: usize>(out: &mut String, rows: &[[Cell; N]], style: Style) {
    let widths: [usize; N] = std::array::from_fn(|column| {
        rows.iter()
            .map(|row| row[column].text.chars().count())
            .max()
            .unwrap_or(0)
    });
    for row in rows {
        for (column, cell) in row.iter().enumerate() {
            let last = column + 1 == N;
            let pad = if last {
                0
            } else {
                widths[column] - cell.text.chars().count() + 2
            };
            let colour = match (style, cell.colour) {
                (Style::Colour, Some(Status::Passing)) => "\u{1b}[32m",
                (Style::Colour, Some(Status::Warning)) => "\u{1b}[33m",
                (Style::Colour, Some(Status::Critical)) => "\u{1b}[31m",
                _ => "",
            };
            let reset = if colour.is_empty() { "" } else { RESET };
            let _ = write!(out, "{colour}{}{reset}{:pad$}", cell.text, "");
        }
        out.push('\n');
    }
}

fn section(out: &mut String, title: &str, lines: &[(String, &str)]) {
    if lines.is_empty() {
        return;
    }
    if !out.is_empty() {
        out.push('\n');
    }
    out.push_str(title);
    out.push('\n');
    for (name, text) in lines {
        let colon = if name.is_empty() { "" } else { ": " };
        let _ = writeln!(out, "  {name}{colon}{}", printable(text));
    }
}

fn summary(out: &mut String, report: &StatusReport) {
    let count = |status| {
        report
            .checks
            .iter()
            .filter(|check| check.reported == status)
            .count()
    };
    let pending = report
        .checks
        .iter()
        .filter(|check| check.pending.is_some())
        .count();
    if !out.is_empty() {
        out.push('\n');
    }
    let _ = writeln!(
        out,
        "{} checks: {} passing, {} warning, {} critical; {pending} with a change pending; {} not probed",
        report.checks.len(),
        count(Status::Passing),
        count(Status::Warning),
        count(Status::Critical),
        report.unsupported.len(),
    );
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::status::{Change, Fault, Observed, Readiness, UnsupportedCheck, VERSION};

    fn check() -> CheckStatus {
        CheckStatus {
            check: CheckName {
                node: "ext-1".into(),
                service_id: "web".into(),
                check_id: "web-http".into(),
                ..CheckName::default()
            },
            kind: "http".into(),
            target: "http://10.0.0.1/".into(),
            interval_ms: 10_000,
            reported: Status::Passing,
            in_catalog: None,
            observed: Some(Observed {
                status: Status::Critical,
                at: 98_000,
            }),
            pending: Some(Pending {
                toward: Status::Critical,
                seen: Some(2),
                needed: Some(4),
                until: None,
            }),
            mark: None,
            unprobed_run: 0,
            thresholds: ThresholdStatus {
                strategy: "leaky".into(),
                parameters: [
                    ("critical-threshold", "3", "notes"),
                    ("passing-threshold", "1", "notes"),
                    ("first-result", "counted", "default"),
                ]
                .map(|(key, value, source)| Parameter {
                    key: key.into(),
                    value: value.into(),
                    source: source.into(),
                })
                .into(),
                ..ThresholdStatus::default()
            },
            last_change: Some(Change {
                at: 20_000,
                from: Status::Critical,
            }),
            critical_since: None,
            next_probe: None,
            raw_changes: 0,
            changes: 0,
        }
    }

    fn report(checks: Vec<CheckStatus>) -> StatusReport {
        StatusReport {
            v: VERSION,
            version: "0".into(),
            at: 100_000,
            readiness: Readiness {
                ready: true,
                reasons: Vec::new(),
            },
            checks,
            unsupported: Vec::new(),
            faults: Vec::new(),
        }
    }

    #[test]
    fn a_row_tells_status_result_pending_source_and_change() {
        let text = render(&report(vec![check()]), Style::Plain);
        let mut lines = text.lines();
        let columns = |line: Option<&str>| -> Vec<String> {
            let cells = line.unwrap().split("  ").map(str::trim);
            cells
                .filter(|cell| !cell.is_empty())
                .map(ToOwned::to_owned)
                .collect()
        };
        let heads = lines.next();
        let row = lines.next();
        assert_eq!(
            columns(heads),
            [
                "CHECK",
                "REPORTED",
                "LAST RESULT",
                "PENDING",
                "LAST CHANGE",
                "THRESHOLDS"
            ]
        );
        assert_eq!(
            columns(row),
            [
                "ext-1/web/web-http",
                "passing",
                "critical 2 s ago",
                "2 of 4 failures",
                "from critical, 1 min 20 s ago",
                "leaky critical-threshold=3 passing-threshold=1 (notes)"
            ]
        );
        let place = |line: Option<&str>, word| line.unwrap().find(word).unwrap();
        assert_eq!(place(heads, "PENDING"), place(row, "2 of 4"));
        assert_eq!(
            lines.collect::<Vec<_>>().join("\n"),
            "\n1 checks: 1 passing, 0 warning, 0 critical; 1 with a change pending; 0 not probed"
        );
    }

    #[test]
    fn faults_and_what_is_not_probed_stand_below() {
        let mut report = report(Vec::new());
        report.readiness = Readiness {
            ready: false,
            reasons: vec!["Consul has no leader".into()],
        };
        report.unsupported = vec![UnsupportedCheck {
            check: check().check,
            kind: "grpc".into(),
            reason: "gRPC checks are not supported yet".into(),
        }];
        report.faults = vec![Fault {
            check: None,
            text: "it\u{1b}[2J".into(),
        }];
        assert_eq!(
            render(&report, Style::Plain),
            "FAULTS\n  catalog: it\u{FFFD}[2J\n\n\
             NOT PROBED\n  ext-1/web/web-http: gRPC checks are not supported yet\n\n\
             NOT READY\n  Consul has no leader\n\n\
             0 checks: 0 passing, 0 warning, 0 critical; 0 with a change pending; 1 not probed\n"
        );
    }

    #[test]
    fn what_could_not_be_probed_says_so_and_not_the_old_result() {
        let mut check = check();
        check.unprobed_run = 3;
        let text = render(&report(vec![check]), Style::Plain);
        assert!(text.contains("could not probe (3×)"), "{text}");
        assert!(!text.contains("critical 2 s ago"), "{text}");
    }
}
