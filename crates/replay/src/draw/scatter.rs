use super::axis::Axis;
use super::{Anchor, Picture, Style};
use crate::replay::StrategyOutcome;

const WIDTH: f64 = 820.0;
const HEIGHT: f64 = 520.0;
const LEFT: f64 = 84.0;
const RIGHT: f64 = 30.0;
const TOP: f64 = 66.0;
const BOTTOM: f64 = 62.0;
const RADIUS: f64 = 5.0;

/// Each strategy's mean delay until a failure was reported, over its status
/// writes. Full points are the choices: no other strategy has both fewer writes
/// and a shorter delay.
///
/// A strategy that reported no failure at all has no place in it, and is named
/// below the title.
pub fn delay_over_writes(strategies: &[StrategyOutcome]) -> String {
    let mut points = Vec::new();
    let mut absent = Vec::new();
    for strategy in strategies {
        match strategy.tally.failures.mean() {
            Some(mean) => points.push(Point {
                name: &strategy.name,
                writes: strategy.tally.writes as f64,
                delay: mean.as_secs_f64(),
                figures: format!(
                    "{}: {} writes, {} of them false, {:.1} s mean delay",
                    strategy.name,
                    strategy.tally.writes,
                    strategy.tally.false_flips,
                    mean.as_secs_f64()
                ),
            }),
            None => absent.push(strategy.name.as_str()),
        }
    }
    let said: Vec<&str> = points.iter().map(|point| point.figures.as_str()).collect();
    let mut picture = Picture::new(
        WIDTH,
        HEIGHT,
        "Delay against status writes",
        &format!("{}.", said.join("; ")),
    );
    picture.text(
        Style::Ink,
        Anchor::Start,
        16.0,
        26.0,
        "Mean delay until a failure is reported, against status writes",
    );
    let below = match absent.is_empty() {
        true => "full: no other has both fewer writes and a shorter delay".to_owned(),
        false => format!("reported no failure: {}", absent.join(", ")),
    };
    let below = Picture::fit(&below, WIDTH - 32.0);
    picture.text(Style::Faint, Anchor::Start, 16.0, 46.0, &below);

    let bottom = HEIGHT - BOTTOM;
    let across = Axis::new(points.iter().map(|point| point.writes), LEFT, WIDTH - RIGHT);
    let up = Axis::new(points.iter().map(|point| point.delay), bottom, TOP);
    let mut last = f64::NEG_INFINITY;
    for tick in across.ticks() {
        let (x, text) = (across.place(tick), format!("{tick}"));
        picture.line(Style::Grid, (x, TOP), (x, bottom));
        if x - last > Picture::width_of(&text) + 12.0 {
            picture.text(Style::Faint, Anchor::Middle, x, bottom + 20.0, &text);
            last = x;
        }
    }
    for tick in up.ticks() {
        let y = up.place(tick);
        picture.line(Style::Grid, (LEFT, y), (WIDTH - RIGHT, y));
        picture.text(
            Style::Faint,
            Anchor::End,
            LEFT - 8.0,
            y + 4.0,
            &seconds(tick),
        );
    }
    let middle = (LEFT + WIDTH - RIGHT) / 2.0;
    picture.text(
        Style::Faint,
        Anchor::Middle,
        middle,
        HEIGHT - 16.0,
        "status writes",
    );

    let mut front: Vec<&Point<'_>> = points.iter().filter(|it| !it.is_beaten(&points)).collect();
    front.sort_by(|one, other| one.writes.total_cmp(&other.writes));
    let line: Vec<(f64, f64)> = front
        .iter()
        .map(|point| (across.place(point.writes), up.place(point.delay)))
        .collect();
    picture.polyline(Style::Grid, &line);
    let places: Vec<(f64, f64)> = points
        .iter()
        .map(|point| (across.place(point.writes), up.place(point.delay)))
        .collect();
    let mut taken: Vec<Frame> = places.iter().map(|&place| Frame::around(place)).collect();
    for (point, &(x, y)) in points.iter().zip(&places) {
        let name = Picture::fit(point.name, 300.0);
        let frame = Frame::beside((x, y), Picture::width_of(&name), &taken);
        picture.group(&point.figures, |picture| {
            match point.is_beaten(&points) {
                true => picture.circle(Style::Outline, x, y, RADIUS - 1.0),
                false => picture.circle(Style::Series, x, y, RADIUS),
            }
            // Widths are estimates: what lies to the left ends at the point.
            let (anchor, at) = match frame.right < x {
                true => (Anchor::End, frame.right),
                false => (Anchor::Start, frame.left),
            };
            picture.text(Style::Ink, anchor, at, frame.bottom - 4.0, &name);
        });
        taken.push(frame);
    }
    picture.into_svg()
}

struct Point<'a> {
    name: &'a str,
    writes: f64,
    delay: f64,
    figures: String,
}

impl Point<'_> {
    fn is_beaten(&self, points: &[Self]) -> bool {
        points.iter().any(|other| {
            other.writes <= self.writes
                && other.delay <= self.delay
                && (other.writes < self.writes || other.delay < self.delay)
        })
    }
}

/// Seconds as people write them.
fn seconds(seconds: f64) -> String {
    match seconds {
        0.0..600.0 => format!("{seconds} s"),
        600.0..36_000.0 => format!("{:.0} min", seconds / 60.0),
        _ => format!("{:.0} h", seconds / 3600.0),
    }
}

/// The room that something takes.
#[derive(Debug, Clone, Copy)]
struct Frame {
    left: f64,
    right: f64,
    top: f64,
    bottom: f64,
}

impl Frame {
    fn around((x, y): (f64, f64)) -> Self {
        Self {
            left: x - RADIUS - 1.0,
            right: x + RADIUS + 1.0,
            top: y - RADIUS - 1.0,
            bottom: y + RADIUS + 1.0,
        }
    }

    /// The first free room of a label beside a point: right, left, above, below,
    /// and further away. If there is none, the first one.
    fn beside((x, y): (f64, f64), width: f64, taken: &[Self]) -> Self {
        let height = Picture::TEXT_SIZE + 4.0;
        let at = |left: f64, middle: f64| Self {
            left,
            right: left + width,
            top: middle - height / 2.0,
            bottom: middle + height / 2.0,
        };
        let (right, left, centred) = (x + RADIUS + 5.0, x - RADIUS - 5.0 - width, x - width / 2.0);
        let mut places = vec![
            at(right, y),
            at(left, y),
            at(centred, y - 15.0),
            at(centred, y + 16.0),
        ];
        for step in 1..6 {
            let away = f64::from(step) * 14.0;
            for middle in [y - away, y + away] {
                places.extend([at(right, middle), at(left, middle)]);
            }
        }
        let free = |place: &&Self| {
            place.left >= 4.0
                && place.right <= WIDTH - 4.0
                && place.top >= TOP - 14.0
                && place.bottom <= HEIGHT - BOTTOM + 2.0
                && !taken.iter().any(|other| place.overlaps(other))
        };
        *places.iter().find(free).unwrap_or(&places[0])
    }

    fn overlaps(&self, other: &Self) -> bool {
        self.left < other.right
            && other.left < self.right
            && self.top < other.bottom
            && other.top < self.bottom
    }
}
