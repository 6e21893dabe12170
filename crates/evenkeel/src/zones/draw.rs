//! What a terminal shows of a split.

use std::collections::HashMap;
use std::fmt::Write as _;

use super::{CallerZone, PairReport, Place, ZoneName};
use crate::columns::columns;
use crate::status::Style;

const BOLD: &str = "\u{1b}[1m";
const DIM: &str = "\u{1b}[2m";
const RESET: &str = "\u{1b}[0m";

/// Between the columns of a table.
const GAP: &str = "   ";

/// Width of the bar for all requests.
const BAR: usize = 40;

/// Who sends how much to where: a bar for each flow, its length the share of all
/// requests, and a matrix of the same.
pub fn draw_split(report: &PairReport, style: Style) -> String {
    let mut text = String::new();
    head(&mut text, report);
    if report.zones.is_empty() {
        text.push_str("no caller and no endpoint is known\n");
        return text;
    }
    flows(&mut text, report, style);
    text.push('\n');
    matrix(&mut text, report);
    for zone in &report.zones {
        if let Some(reason) = &zone.reason {
            let name = zone.zone.to_string();
            let _ = writeln!(
                text,
                "\n{}: not routed by zone: {}\n  {}",
                shown(&name),
                reason.text,
                reason.remedy
            );
        }
    }
    text
}

fn head(text: &mut String, report: &PairReport) {
    let PairReport {
        callers,
        upstream,
        rule,
        ..
    } = report;
    let (callers, upstream) = (shown(callers), shown(upstream));
    let _ = writeln!(text, "{callers} → {upstream}   rule {rule}\n");
    let whole = [report.degraded.as_ref(), report.failure.as_ref()];
    for line in whole.into_iter().flatten().chain(&report.faults) {
        let _ = writeln!(text, "! {}", shown(line));
    }
}

/// A name as it may go to a terminal: without what would command it.
pub(crate) fn shown(name: &str) -> String {
    match name {
        "" => "(no zone)".to_owned(),
        name => name.replace(char::is_control, "\u{fffd}"),
    }
}

/// The places of a report, found by their names.
pub(super) struct Places<'a> {
    places: &'a [Place],
    numbers: HashMap<&'a ZoneName, usize>,
    callers: u64,
}

impl<'a> Places<'a> {
    pub(super) fn of(report: &'a PairReport) -> Self {
        let places = report.places.as_slice();
        Self {
            places,
            numbers: places.iter().map(|place| &place.zone).zip(0..).collect(),
            callers: places.iter().map(|place| place.callers.healthy).sum(),
        }
    }

    /// Healthy callers in a zone.
    fn callers(&self, zone: &CallerZone) -> u64 {
        let number = self.numbers.get(&zone.zone);
        number.map_or(0, |number| self.places[*number].callers.healthy)
    }

    /// Callers of a zone, by their part of all; requests are in proportion.
    pub(super) fn share_of_callers(&self, zone: &CallerZone) -> f64 {
        match self.callers {
            0 => 0.0,
            all => self.callers(zone) as f64 / all as f64,
        }
    }

    /// What `zone` sends to each of the places, of its own requests.
    pub(super) fn row(&self, zone: &CallerZone) -> Vec<f64> {
        let mut row = vec![0.0; self.places.len()];
        for weight in &zone.weights {
            if let Some(number) = self.numbers.get(&weight.zone) {
                row[*number] += weight.fraction();
            }
        }
        row
    }
}

fn flows(text: &mut String, report: &PairReport, style: Style) {
    let width = report
        .places
        .iter()
        .map(|place| shown(&place.zone.to_string()).chars().count())
        .max()
        .unwrap_or(0);
    let (bold, dim, reset) = match style {
        Style::Colour => (BOLD, DIM, RESET),
        Style::Plain => ("", "", ""),
    };
    let places = Places::of(report);
    for zone in &report.zones {
        let part = places.share_of_callers(zone);
        let from = zone.zone.to_string();
        for (place, share) in report.places.iter().zip(places.row(zone)) {
            let of_all = part * share;
            if of_all <= 0.0 {
                continue;
            }
            let local = place.zone == zone.zone;
            // At least one, at most all.
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "a share is between 0 and 1"
            )]
            let length = ((of_all * BAR as f64).round() as usize).clamp(1, BAR);
            let (line, colour) = if local { ("━", bold) } else { ("╌", dim) };
            let to = place.zone.to_string();
            let _ = writeln!(
                text,
                "{:>width$} {colour}{}▶{reset} {:<width$} {} {:>6}",
                shown(&from),
                line.repeat(length),
                shown(&to),
                " ".repeat(BAR - length),
                percent(of_all),
            );
        }
    }
    let (mut local, mut all) = (0.0, 0.0);
    for zone in &report.zones {
        let part = places.share_of_callers(zone);
        local += part * zone.local;
        all += part;
    }
    if all > 0.0 {
        let _ = writeln!(
            text,
            "\n{} of these requests stay in their zone",
            percent(local / all)
        );
    }
}

pub(super) fn percent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}

fn matrix(text: &mut String, report: &PairReport) {
    let mut rows = Vec::new();
    let mut first = vec!["FROM \\ TO".to_owned()];
    first.extend(
        report
            .places
            .iter()
            .map(|place| shown(&place.zone.to_string())),
    );
    first.extend(["CALLERS".to_owned(), "MODE".to_owned()]);
    rows.push(first);
    let places = Places::of(report);
    for zone in &report.zones {
        let mut cells = vec![shown(&zone.zone.to_string())];
        cells.extend(places.row(zone).into_iter().map(|share| match share {
            0.0 => "·".to_owned(),
            share => percent(share),
        }));
        cells.extend([places.callers(zone).to_string(), zone.mode.clone()]);
        rows.push(cells);
    }
    let mut last = vec!["endpoints".to_owned()];
    last.extend(report.places.iter().map(|place| {
        let tally = place.endpoints;
        format!("{} of {}", tally.healthy, tally.all())
    }));
    rows.push(last);
    text.push_str(&columns(&rows, GAP));
}

/// All rules side by side.
pub fn draw_comparison(reports: &[PairReport]) -> String {
    let mut text = String::new();
    let Some(one) = reports.first() else {
        return text;
    };
    let _ = writeln!(text, "{} → {}\n", shown(&one.callers), shown(&one.upstream));
    let mut rows = vec![vec![
        "RULE".to_owned(),
        "STAYS LOCAL".to_owned(),
        "FULLEST ENDPOINT".to_owned(),
        "NO ENDPOINT".to_owned(),
    ]];
    rows[0].extend(one.zones.iter().map(|zone| shown(&zone.zone.to_string())));
    for report in reports {
        let (local, fullest, no_host) = totals(report);
        let mut cells = vec![
            report.rule.to_string(),
            percent(local),
            fullest.map_or_else(|| "·".to_owned(), |times| format!("{times:.2} × mean")),
            percent(no_host),
        ];
        cells.extend(report.zones.iter().map(|zone| {
            let reason = zone
                .reason
                .as_ref()
                .map(|reason| format!(" ({})", reason.name));
            format!("{}{}", percent(zone.local), reason.unwrap_or_default())
        }));
        rows.push(cells);
    }
    text.push_str(&columns(&rows, GAP));
    text.push_str("\nUnder a zone: the share of its own requests that stays there.\n");
    text
}

/// Over all callers: what stays local, the load of the fullest endpoint for its
/// fair part, and what finds no endpoint.
fn totals(report: &PairReport) -> (f64, Option<f64>, f64) {
    let (mut local, mut no_host) = (0.0, 0.0);
    let mut loads = vec![0.0; report.places.len()];
    let places = Places::of(report);
    for zone in &report.zones {
        let part = places.share_of_callers(zone);
        local += part * zone.local;
        no_host += part * zone.no_host;
        for (load, share) in loads.iter_mut().zip(places.row(zone)) {
            *load += part * share;
        }
    }
    let healthy: u64 = report
        .places
        .iter()
        .map(|place| place.endpoints.healthy)
        .sum();
    let fullest = report
        .places
        .iter()
        .zip(loads)
        .filter(|(place, _)| place.endpoints.healthy > 0)
        .map(|(place, load)| load * healthy as f64 / place.endpoints.healthy as f64)
        .reduce(f64::max);
    (local, fullest, no_host)
}

/// The conditions of Envoy's rule, for callers in each zone.
pub fn draw_gates(report: &PairReport) -> String {
    let mut text = String::new();
    for zone in &report.zones {
        let name = zone.zone.to_string();
        let _ = writeln!(text, "\n{}:", shown(&name));
        if zone.gates.is_empty() {
            let _ = writeln!(text, "  rule {} has no conditions", report.rule);
        }
        for gate in &zone.gates {
            let mark = if gate.closed { "✗" } else { "✓" };
            let _ = writeln!(text, "  {mark} {:<30} {}", gate.name, gate.text);
            if gate.closed {
                let _ = writeln!(text, "    {:<30} → {}", "", gate.remedy);
            }
        }
    }
    text
}
