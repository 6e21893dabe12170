use evenkeel_threshold::Status;

use super::axis::times;
use super::{Anchor, Picture, Style};
use crate::replay::CheckOutcome;
use crate::timeline::Seen;

const WIDTH: f64 = 1000.0;
const LEFT: f64 = 250.0;
const RIGHT: f64 = 20.0;
const TOP: f64 = 64.0;
const ROW: f64 = 44.0;
const BAR: f64 = 26.0;

/// A check's results, the truth as hindsight shows it, and below them what each
/// strategy reported; `names` are those of the strategies. `None` if no timeline
/// was kept of this check.
///
/// Critical is a high bar, warning half as high, passing a low one. A bar in a
/// light colour had the status for a part of its time only.
pub fn timeline(check: &CheckOutcome, names: &[&str]) -> Option<String> {
    let timeline = check.timeline.as_deref()?;
    let mut rows = vec![
        ("results".to_owned(), format!("{} changes", check.changes)),
        ("truth".to_owned(), "with hindsight".to_owned()),
    ];
    let mut series = vec![0, 1];
    for (index, (name, tally)) in names.iter().zip(&check.tallies).enumerate() {
        let figures = format!("{} writes, {} false", tally.writes, tally.false_flips);
        // Who reports every result is the first row once more.
        if timeline.series(index + 2) != timeline.series(0) {
            rows.push(((*name).to_owned(), figures));
            series.push(index + 2);
        }
    }
    let bottom = TOP + ROW * rows.len() as f64;
    let said: Vec<String> = rows
        .iter()
        .map(|(name, figures)| format!("{name}: {figures}"))
        .collect();
    let mut picture = Picture::new(
        WIDTH,
        bottom + 34.0,
        &format!("{}: results and reported statuses", check.name),
        &format!("Status over time. {}.", said.join("; ")),
    );
    let name = Picture::fit(&check.name, WIDTH - 500.0);
    picture.text(Style::Ink, Anchor::Start, 16.0, 28.0, &name);
    legend(&mut picture);

    let start = timeline.start_ms();
    let length = timeline.len().max(1) as u64;
    let end = start.saturating_add(length.saturating_mul(timeline.bin_ms()));
    let scale = (WIDTH - LEFT - RIGHT) / length as f64;
    for (at, shown) in times(start, end, 7) {
        let x = LEFT + (at - start) as f64 / timeline.bin_ms() as f64 * scale;
        picture.line(Style::Grid, (x, TOP - 8.0), (x, bottom));
        let half = Picture::width_of(&shown) / 2.0;
        let x = x.clamp(LEFT + half - 16.0, WIDTH - RIGHT - half + 16.0);
        picture.text(Style::Faint, Anchor::Middle, x, bottom + 20.0, &shown);
    }
    for (row, (series, (name, figures))) in series.into_iter().zip(&rows).enumerate() {
        let base = TOP + ROW * row as f64 + BAR + 4.0;
        let fitting = Picture::fit(name, LEFT - 28.0);
        picture.group(&format!("{name}: {figures}"), |picture| {
            picture.text(Style::Ink, Anchor::Start, 16.0, base - 14.0, &fitting);
            picture.text(Style::Faint, Anchor::Start, 16.0, base + 2.0, figures);
            bars(picture, timeline.series(series), base, scale);
        });
    }
    Some(picture.into_svg())
}

/// Bins that look alike are one bar.
fn bars(picture: &mut Picture, bins: &[Seen], base: f64, scale: f64) {
    let mut from = 0;
    for same in bins.chunk_by(|one, other| one == other) {
        let to = from + same.len();
        if let Some((style, height)) = look(same[0]) {
            let x = LEFT + from as f64 * scale;
            let width = (to - from) as f64 * scale;
            picture.rect(style, x, base - height, width, height);
        }
        from = to;
    }
}

fn look(seen: Seen) -> Option<(Style, f64)> {
    let status = seen.worst()?;
    Some(match (status, seen.is_pure()) {
        (Status::Passing, _) => (Style::Passing, 6.0),
        (Status::Warning, true) => (Style::Warning, 16.0),
        (Status::Warning, false) => (Style::PartlyWarning, 16.0),
        (Status::Critical, true) => (Style::Critical, BAR),
        (Status::Critical, false) => (Style::PartlyCritical, BAR),
    })
}

fn legend(picture: &mut Picture) {
    let marks = [
        (Style::Passing, 6.0, "passing"),
        (Style::Warning, 11.0, "warning"),
        (Style::Critical, 16.0, "critical"),
        (Style::PartlyCritical, 16.0, "for a part of the time"),
    ];
    let mut x = WIDTH - 470.0;
    for (style, height, text) in marks {
        picture.rect(style, x, 29.0 - height, 14.0, height);
        picture.text(Style::Faint, Anchor::Start, x + 19.0, 28.0, text);
        x += 39.0 + Picture::width_of(text);
    }
}
