//! Where figures and times lie on a line, and which of them are written there.

use evenkeel_threshold::Timestamp;

use crate::time::civil;

/// Figures of at least zero along a line.
#[derive(Debug, Clone, Copy)]
pub(super) struct Axis {
    least: f64,
    most: f64,
    logarithmic: bool,
    from: f64,
    to: f64,
}

impl Axis {
    /// From pixel `from` to pixel `to`, with room for all `figures`. Figures far
    /// apart, and none of them zero, are laid out by their logarithms.
    pub(super) fn new(figures: impl Iterator<Item = f64> + Clone, from: f64, to: f64) -> Self {
        let most = figures.clone().fold(0.0, f64::max);
        let least = figures.fold(f64::INFINITY, f64::min);
        let logarithmic = least > 0.0 && most / least > 12.0;
        let axis = Self {
            least: 0.0,
            most: if most > 0.0 { most * 1.08 } else { 1.0 },
            logarithmic,
            from,
            to,
        };
        match logarithmic {
            true => Self {
                least: least / 1.5,
                most: most * 1.5,
                ..axis
            },
            false => axis,
        }
    }

    pub(super) fn place(&self, figure: f64) -> f64 {
        let share = match self.logarithmic {
            true => (figure / self.least).ln() / (self.most / self.least).ln(),
            false => (figure - self.least) / (self.most - self.least),
        };
        self.from + share * (self.to - self.from)
    }

    /// Round figures to write beside the axis.
    pub(super) fn ticks(&self) -> Vec<f64> {
        let rounds =
            (-3..12).flat_map(|power| [1.0, 2.0, 5.0].map(|digit| digit * 10_f64.powi(power)));
        if self.logarithmic {
            return rounds
                .filter(|round| (self.least..self.most).contains(round))
                .collect();
        }
        let mut steps = rounds.filter(|step| self.most / step <= 7.0);
        let step = steps.next().unwrap_or(self.most);
        (0..)
            .map(|count| f64::from(count) * step)
            .take_while(|tick| *tick <= self.most)
            .collect()
    }
}

const SECOND: u64 = 1000;
const MINUTE: u64 = 60 * SECOND;
const HOUR: u64 = 60 * MINUTE;
const DAY: u64 = 24 * HOUR;

/// Steps that people count in.
const STEPS: [u64; 21] = [
    SECOND,
    5 * SECOND,
    10 * SECOND,
    30 * SECOND,
    MINUTE,
    2 * MINUTE,
    5 * MINUTE,
    10 * MINUTE,
    20 * MINUTE,
    30 * MINUTE,
    HOUR,
    2 * HOUR,
    3 * HOUR,
    6 * HOUR,
    12 * HOUR,
    DAY,
    2 * DAY,
    7 * DAY,
    28 * DAY,
    91 * DAY,
    365 * DAY,
];

/// At most `most` times between `from` and `to`, and what is written at them: a
/// date at the first one and where the day changes, else the time of day.
pub(super) fn times(from: u64, to: u64, most: u64) -> Vec<(u64, String)> {
    let length = to.saturating_sub(from);
    let step = STEPS
        .into_iter()
        .find(|step| length / step < most)
        .unwrap_or((length / most).max(1));
    let first = from.div_ceil(step).saturating_mul(step);
    let mut day = None;
    (0..most)
        .map(|count| first.saturating_add(count * step))
        .take_while(|at| *at <= to)
        .map(|at| {
            let text = civil(Timestamp::from_millis(at));
            let (date, time) = text.split_once(' ').unwrap_or((&text, ""));
            let time = if step < MINUTE {
                time
            } else {
                time.get(..5).unwrap_or(time)
            };
            let shown = match day.replace(at / DAY) == Some(at / DAY) {
                true => time.to_owned(),
                false if step >= DAY => date.to_owned(),
                false => format!("{} {time}", date.get(5..).unwrap_or(date)),
            };
            (at, shown)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_round_and_name_the_day_once() {
        let start = 1_793_577_600_000 + 30 * MINUTE; // 2026-11-02
        let shown = |length: u64| -> Vec<String> {
            times(start, start + length, 7)
                .into_iter()
                .map(|(_, shown)| shown)
                .collect()
        };
        assert_eq!(
            shown(40 * SECOND),
            [
                "11-02 00:30:00",
                "00:30:10",
                "00:30:20",
                "00:30:30",
                "00:30:40"
            ]
        );
        assert_eq!(
            shown(3 * HOUR),
            [
                "11-02 00:30",
                "01:00",
                "01:30",
                "02:00",
                "02:30",
                "03:00",
                "03:30"
            ]
        );
        assert_eq!(
            shown(30 * HOUR),
            ["11-02 06:00", "12:00", "18:00", "11-03 00:00", "06:00"]
        );
        assert_eq!(
            shown(5 * DAY),
            [
                "2026-11-03",
                "2026-11-04",
                "2026-11-05",
                "2026-11-06",
                "2026-11-07"
            ]
        );
        assert!(shown(9000 * DAY).len() > 3);
        assert!(times(u64::MAX - 5, u64::MAX, 7).len() <= 7);
        assert_eq!(times(0, 0, 7).len(), 1);
    }

    #[test]
    fn figures_far_apart_are_laid_out_by_their_logarithms() {
        let near = Axis::new([10.0, 50.0].into_iter(), 0.0, 100.0);
        assert_eq!(near.ticks(), [0.0, 10.0, 20.0, 30.0, 40.0, 50.0]);
        assert_eq!(near.place(0.0), 0.0);
        let far = Axis::new([10.0, 5000.0].into_iter(), 0.0, 100.0);
        assert_eq!(
            far.ticks(),
            [
                10.0, 20.0, 50.0, 100.0, 200.0, 500.0, 1000.0, 2000.0, 5000.0
            ]
        );
        let zero = Axis::new([0.0, 5000.0].into_iter(), 0.0, 100.0);
        assert_eq!(zero.place(0.0), 0.0);
        for empty in [&[][..], &[0.0]] {
            let axis = Axis::new(empty.iter().copied(), 0.0, 100.0);
            assert!(axis.place(0.0).is_finite() && !axis.ticks().is_empty());
        }
    }
}
