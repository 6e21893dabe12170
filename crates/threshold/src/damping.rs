//! The arithmetic of route flap damping, apart from what is damped.

use core::time::Duration;

use crate::parameters::{Relation, Rules};
use crate::words::{Real, Stamp};
use crate::{ParameterError, PenaltyParameters, Status, Timestamp};

/// What is reported while changes are suppressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "kebab-case"))]
pub enum WhileSuppressed {
    /// The status that was reported before the change which was one too many.
    #[default]
    LastStable,
    /// `warning`: the target works at times.
    Warning,
    /// `critical`: the target is not to be used. What the routing world does,
    /// where a route that flaps is withdrawn.
    Critical,
}

impl WhileSuppressed {
    pub(crate) const ALL: [Self; 3] = [Self::LastStable, Self::Warning, Self::Critical];
    pub(crate) const WORDS: [&str; 3] = [
        Self::LastStable.as_str(),
        Self::Warning.as_str(),
        Self::Critical.as_str(),
    ];

    pub(crate) const fn status(self, last_stable: Status) -> Status {
        match self {
            Self::LastStable => last_stable,
            Self::Warning => Status::Warning,
            Self::Critical => Status::Critical,
        }
    }

    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::LastStable => "last-stable",
            Self::Warning => "warning",
            Self::Critical => "critical",
        }
    }
}

/// A penalty, and when it was that high.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Level {
    /// f32: seven digits of a number that nobody asks for more than four of.
    bits: u32,
    at: Stamp,
}

impl Level {
    pub(crate) const ZERO: Self = Self {
        bits: 0,
        at: Stamp::ZERO,
    };

    /// `None` for a number that is no penalty.
    pub(crate) fn new(penalty: f32, at: Stamp) -> Option<Self> {
        let level = Self {
            bits: penalty.to_bits(),
            at,
        };
        let dated = penalty > 0.0 && penalty.is_finite();
        (dated || level == Self::ZERO).then_some(level)
    }

    pub(crate) fn parts(self) -> (f32, Stamp) {
        (f32::from_bits(self.bits), self.at)
    }

    pub(crate) fn shifted(self, millis: i64) -> Self {
        if self == Self::ZERO {
            return self;
        }
        Self {
            at: self.at.shifted(millis),
            ..self
        }
    }

    pub(crate) fn not_after(self, now: Timestamp) -> Self {
        Self {
            at: self.at.min(now),
            ..self
        }
    }
}

/// The figures of the decay, checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Damping {
    pub(crate) half_life: Duration,
    pub(crate) suppress: u32,
    pub(crate) reuse: u32,
    pub(crate) longest: Duration,
    /// `half_life` in milliseconds.
    halving: Real,
    /// What a penalty is cut to, so that no suppression takes longer than
    /// `longest`.
    ceiling: Real,
}

impl Damping {
    pub(crate) fn of(parameters: &PenaltyParameters) -> Result<Self, ParameterError> {
        let PenaltyParameters {
            half_life,
            suppress,
            reuse,
            longest,
            ..
        } = *parameters;
        // 1e30 is far beyond any sum of penalties, and a number in f32.
        let halvings = (longest.as_millis() as f64 / half_life.as_millis() as f64).min(60.0);
        let ceiling = f64::from(reuse) * libm::exp2(halvings);
        // The last rule means nothing while one of the others is broken.
        let possible = (1..suppress).contains(&reuse);
        Rules::new()
            .range::<PenaltyParameters>("half_life", half_life.as_millis() > 0)
            .range::<PenaltyParameters>("reuse", reuse > 0)
            .relation(
                &Relation { parameters: ["reuse", "suppress"], rule: "must be less than" },
                reuse < suppress,
            )
            .relation(
                &Relation { parameters: ["longest", "half_life"], rule: "lets the penalty never get from `suppress` to `reuse`; it must be longer, in \
                  proportion to" },
                !possible || ceiling >= f64::from(suppress),
            )
            .check()?;
        Ok(Self {
            half_life,
            suppress,
            reuse,
            longest,
            halving: Real::new(half_life.as_millis() as f64),
            ceiling: Real::new(ceiling),
        })
    }

    /// The penalty at `now`.
    pub(crate) fn penalty(&self, level: Level, now: Timestamp) -> f64 {
        let (penalty, at) = level.parts();
        f64::from(penalty) * libm::exp2(-millis_since(at, now) / self.halving.get())
    }

    /// The level after a flap.
    pub(crate) fn add(&self, level: Level, more: f64, now: Timestamp) -> Level {
        let penalty = (self.penalty(level, now) + more).min(self.ceiling.get());
        Level {
            bits: (penalty as f32).to_bits(),
            at: Stamp::new(now),
        }
    }

    /// Changes are suppressed from this level on. A millionth is for f32.
    pub(crate) fn suppresses(&self, level: Level) -> bool {
        f64::from(level.parts().0) >= f64::from(self.suppress) * (1.0 - 1e-6)
    }

    /// Whether the penalty has decayed to `reuse`: [`Damping::reusable_at`] is not
    /// after `now`.
    #[inline]
    pub(crate) fn is_reusable(&self, level: Level, now: Timestamp) -> bool {
        // The bits of a float are a logarithm, with straight lines between the
        // powers of two, which is never more than the logarithm: enough to tell
        // for most of the time without computing it.
        let (penalty, at) = level.parts();
        let ratio = penalty / self.reuse as f32 * (1.0 - 1e-6);
        let halvings = (f64::from(ratio.to_bits()) - f64::from(1.0_f32.to_bits())) / 8_388_608.0;
        if millis_since(at, now) < halvings * self.halving.get() - 1.0 {
            return false;
        }
        self.reusable_at(level) <= now
    }

    /// When the penalty will have decayed to `reuse`.
    pub(crate) fn reusable_at(&self, level: Level) -> Timestamp {
        let (penalty, at) = level.parts();
        let halvings = libm::log2(f64::from(penalty) / f64::from(self.reuse));
        let millis = libm::ceil(halvings * self.halving.get() - 0.5).max(0.0);
        // A cast to an integer saturates.
        at.get()
            .saturating_add(Duration::from_millis(millis as u64))
    }
}

#[inline]
fn millis_since(at: Stamp, now: Timestamp) -> f64 {
    now.as_millis().saturating_sub(at.get().as_millis()) as f64
}
