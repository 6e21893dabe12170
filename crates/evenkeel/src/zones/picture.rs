//! A picture of who sends how much to where.

use std::collections::HashMap;

use evenkeel_replay::draw::{Anchor, Picture, Style};

use super::PairReport;
use super::draw::{Places, percent, shown};

const WIDTH: f64 = 820.0;
const TOP: f64 = 84.0;
const BOTTOM: f64 = 24.0;
/// Height that all requests have, without the gaps.
const FLOW: f64 = 300.0;
/// Between two zones.
const GAP: f64 = 18.0;
const BAR: f64 = 14.0;
/// Where the bars of the callers and of the endpoints begin.
const LEFT: f64 = 210.0;
const RIGHT: f64 = WIDTH - 210.0 - BAR;

/// Callers on the left, endpoints on the right, and between them the flows, each
/// as thick as its share of all requests. Those that stay in their zone have
/// another colour than those that leave it.
pub fn flow_picture(report: &PairReport) -> String {
    let places = Places::of(report);
    let zones: HashMap<_, _> = report.zones.iter().map(|zone| (&zone.zone, zone)).collect();
    let rows: Vec<(f64, Vec<f64>)> = report
        .places
        .iter()
        .map(|place| {
            zones.get(&place.zone).map_or((0.0, Vec::new()), |zone| {
                (places.share_of_callers(zone), places.row(zone))
            })
        })
        .collect();
    let flow = |from: usize, to: usize| {
        let (part, shares) = &rows[from];
        part * shares.get(to).copied().unwrap_or(0.0)
    };
    let zones = report.places.len();
    let names: Vec<String> = report
        .places
        .iter()
        .map(|place| shown(&place.zone.to_string()))
        .collect();
    let sent: Vec<f64> = (0..zones)
        .map(|from| (0..zones).map(|to| flow(from, to)).sum())
        .collect();
    let got: Vec<f64> = (0..zones)
        .map(|to| (0..zones).map(|from| flow(from, to)).sum())
        .collect();
    let (all, local): (f64, f64) = (
        sent.iter().sum(),
        (0..zones).map(|zone| flow(zone, zone)).sum(),
    );
    let local = if all > 0.0 { local / all } else { 0.0 };

    let height = TOP + FLOW + GAP * zones.max(1) as f64 + BOTTOM;
    let title = format!("{} to {} by zone", report.callers, report.upstream);
    let description = format!("{} of the requests stay in their zone.", percent(local));
    let mut picture = Picture::new(WIDTH, height, &title, &description);
    let head = format!(
        "{} → {}, rule {}",
        report.callers, report.upstream, report.rule
    );
    let head = Picture::fit(&head, WIDTH - 32.0);
    picture.text(Style::Ink, Anchor::Start, 16.0, 26.0, &head);
    picture.text(Style::Faint, Anchor::Start, 16.0, 46.0, &description);
    picture.text(
        Style::Faint,
        Anchor::End,
        LEFT - 10.0,
        TOP - 12.0,
        "callers",
    );
    picture.text(
        Style::Faint,
        Anchor::Start,
        RIGHT + BAR + 10.0,
        TOP - 12.0,
        "endpoints",
    );

    let place = |shares: &[f64]| {
        let mut y = TOP;
        let tops = shares.iter().map(|share| {
            let top = y;
            y += share * FLOW + GAP;
            top
        });
        tops.collect::<Vec<_>>()
    };
    let (mut leaving, mut arriving) = (place(&sent), place(&got));
    let (left, right) = (leaving.clone(), arriving.clone());
    for from in 0..zones {
        for to in 0..zones {
            let share = flow(from, to);
            if share <= 0.0 {
                continue;
            }
            let thick = share * FLOW;
            let style = if from == to {
                Style::Passing
            } else {
                Style::PartlyWarning
            };
            let said = format!("{} to {}: {}", names[from], names[to], percent(share));
            let (a, b) = (leaving[from], arriving[to]);
            picture.group(&said, |picture| picture.polygon(style, &band(a, b, thick)));
            leaving[from] += thick;
            arriving[to] += thick;
        }
    }
    for (zone, place) in report.places.iter().enumerate() {
        let sides = [
            (
                LEFT,
                left[zone],
                sent[zone],
                Anchor::End,
                LEFT - 10.0,
                place.callers,
            ),
            (
                RIGHT,
                right[zone],
                got[zone],
                Anchor::Start,
                RIGHT + BAR + 10.0,
                place.endpoints,
            ),
        ];
        for (x, y, share, anchor, beside, tally) in sides {
            picture.rect(Style::Ink, x, y, BAR, (share * FLOW).max(1.0));
            let middle = y + share * FLOW / 2.0 + 4.0;
            let healthy = match tally.healthy == tally.all() {
                true => tally.healthy.to_string(),
                false => format!("{} of {}", tally.healthy, tally.all()),
            };
            let text = format!("{} ({healthy}) {}", names[zone], percent(share));
            let text = Picture::fit(&text, LEFT - 26.0);
            picture.text(Style::Ink, anchor, beside, middle, &text);
        }
    }
    picture.into_svg()
}

/// From `a` on the left to `b` on the right, bent so that it leaves and arrives
/// level.
fn band(a: f64, b: f64, thick: f64) -> Vec<(f64, f64)> {
    const STEPS: u32 = 24;
    let (from, to) = (LEFT + BAR, RIGHT);
    let edge = |step: u32| {
        let t = f64::from(step) / f64::from(STEPS);
        let smooth = t * t * (3.0 - 2.0 * t);
        (from + (to - from) * t, a + (b - a) * smooth)
    };
    let over = (0..=STEPS).map(edge);
    let under = (0..=STEPS).rev().map(|step| {
        let (x, y) = edge(step);
        (x, y + thick)
    });
    over.chain(under).collect()
}
