//! A made-up history, for examples, tests and measurements: the same one for the
//! same numbers, on every machine.
//!
//! Its checks have what real ones have: blips, bursts of failures, outages,
//! brown-outs, flapping, warnings under load, an hour in which several fail
//! together, and two hours in which nobody watched.

use std::io::{self, Write};

/// What is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sample {
    /// Another one is another history of the same kind.
    pub seed: u64,
    /// Checks; from the twelfth on the kinds repeat.
    pub checks: u32,
    /// Results of each.
    pub results: u32,
}

/// Twelve checks over five days.
impl Default for Sample {
    fn default() -> Self {
        Self {
            seed: 1,
            checks: 12,
            results: 5 * DAY,
        }
    }
}

/// 2026-11-02T00:00:00Z.
const START: u64 = 1_793_577_600;

/// Seconds between two results of a check.
const INTERVAL: u64 = 60;

/// In results.
const HOUR: u32 = 60;
const DAY: u32 = 24 * HOUR;

/// When nobody watched, and when a zone had a fault: results since the start.
const UNWATCHED: std::ops::Range<u32> = 3 * DAY + 2 * HOUR..3 * DAY + 4 * HOUR;
const ZONE_FAULT: std::ops::Range<u32> = 2 * DAY + 15 * HOUR..2 * DAY + 15 * HOUR + 9;

/// What a check is like. Probabilities are in ten thousandths.
struct Kind {
    name: &'static str,
    /// A failure after a success, and after a failure, while it works.
    a: u32,
    b: u32,
    /// Mean results between two spells.
    every: u32,
    /// Shortest and longest spell, in results.
    spell: (u32, u32),
    during: During,
    /// It fails together with others.
    in_zone: bool,
}

/// What happens in a spell.
enum During {
    Nothing,
    /// So many of 10,000 results fail.
    Fails(u32),
    /// It fails and works by turns, for so many results each at most.
    Flaps(u32),
    /// So many of 10,000 are warnings, a few are failures.
    Warns(u32),
}

#[rustfmt::skip]
const KINDS: [Kind; 12] = [
    Kind { name: "shop-web", a: 3, b: 300, every: 3 * DAY, spell: (8, 40), during: During::Fails(10_000), in_zone: true },
    Kind { name: "shop-cart", a: 60, b: 500, every: 2 * DAY, spell: (5, 30), during: During::Fails(9_800), in_zone: true },
    Kind { name: "payments", a: 20, b: 4_500, every: 2 * DAY, spell: (10, 90), during: During::Fails(10_000), in_zone: true },
    Kind { name: "search", a: 40, b: 1_000, every: DAY, spell: (30, 120), during: During::Fails(6_000), in_zone: true },
    Kind { name: "mail-relay", a: 100, b: 100, every: 4 * DAY, spell: (60, 300), during: During::Fails(10_000), in_zone: false },
    Kind { name: "partner-api", a: 80, b: 5_500, every: 2 * DAY, spell: (10, 60), during: During::Fails(9_500), in_zone: false },
    Kind { name: "cdn-edge", a: 10, b: 2_000, every: DAY, spell: (30, 120), during: During::Warns(5_000), in_zone: false },
    Kind { name: "batch-host", a: 5, b: 500, every: DAY, spell: (60, 240), during: During::Flaps(5), in_zone: false },
    Kind { name: "vpn-gate", a: 250, b: 3_000, every: 3 * DAY, spell: (5, 20), during: During::Fails(10_000), in_zone: false },
    Kind { name: "dns-a", a: 1, b: 100, every: 1, spell: (1, 1), during: During::Nothing, in_zone: false },
    Kind { name: "legacy-soap", a: 500, b: 4_000, every: DAY, spell: (20, 200), during: During::Fails(8_500), in_zone: false },
    Kind { name: "printer", a: 30, b: 6_000, every: DAY / 2, spell: (20, 60), during: During::Flaps(2), in_zone: false },
];

/// Sebastiano Vigna's splitmix64: a few lines that give the same numbers
/// everywhere, which is all that is wanted of it.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, end: u32) -> u32 {
        (((self.next() >> 32) * u64::from(end)) >> 32) as u32
    }

    /// True in so many of 10,000 cases.
    fn chance(&mut self, of_10_000: u32) -> bool {
        self.below(10_000) < of_10_000
    }
}

struct Check {
    name: String,
    kind: &'static Kind,
    random: Random,
    failed: bool,
    /// Results left in this spell.
    spell: u32,
    /// Results left in this turn of flapping, and whether they fail.
    turn: (u32, bool),
}

impl Check {
    fn new(seed: u64, number: u32) -> Self {
        let kind = &KINDS[number as usize % KINDS.len()];
        let name = match number / KINDS.len() as u32 {
            0 => kind.name.to_owned(),
            more => format!("{}-{}", kind.name, more + 1),
        };
        Self {
            name,
            kind,
            random: Random(seed ^ u64::from(number) << 32),
            failed: false,
            spell: 0,
            turn: (0, false),
        }
    }

    fn next(&mut self, result: u32) -> &'static str {
        let kind = self.kind;
        if self.spell > 0 {
            self.spell -= 1;
        } else if self.random.below(kind.every) == 0 {
            let (least, most) = kind.spell;
            self.spell = least + self.random.below(most - least + 1);
        }
        let after = if self.failed { kind.b } else { kind.a };
        let mut fails = self.random.chance(after);
        let mut warns = false;
        if self.spell > 0 {
            match kind.during {
                During::Nothing => {}
                During::Fails(share) => fails = self.random.chance(share),
                During::Warns(share) => warns = self.random.chance(share),
                During::Flaps(longest) => {
                    let (left, failing) = self.turn;
                    self.turn = match left {
                        0 => (self.random.below(longest), !failing),
                        _ => (left - 1, failing),
                    };
                    fails = self.turn.1;
                }
            }
        }
        fails |= kind.in_zone && ZONE_FAULT.contains(&result);
        self.failed = fails;
        match (fails, warns) {
            (true, _) => "critical",
            (false, true) => "warning",
            (false, false) => "passing",
        }
    }
}

/// Writes the history as CSV, by time.
///
/// # Errors
///
/// Those of `out`.
pub fn write(sample: Sample, out: &mut impl Write) -> io::Result<()> {
    let mut checks: Vec<Check> = (0..sample.checks)
        .map(|number| Check::new(sample.seed, number))
        .collect();
    writeln!(out, "time,check,status")?;
    for result in 0..sample.results {
        let time = START + u64::from(result) * INTERVAL;
        for check in &mut checks {
            let status = check.next(result);
            if !UNWATCHED.contains(&result) {
                writeln!(out, "{time},{},{status}", check.name)?;
            }
        }
    }
    Ok(())
}
