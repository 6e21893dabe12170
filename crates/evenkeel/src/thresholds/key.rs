//! The keys that sources use, and the values they take.

use evenkeel_threshold::FirstResult;

use crate::config::StrategyName;

/// One thing that a source can say.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Key {
    Strategy,
    CriticalThreshold,
    PassingThreshold,
    FailuresBeforeCritical,
    FailuresBeforeWarning,
    SuccessBeforePassing,
    FirstResult,
}

/// Which strategies have a key as their parameter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Family {
    Leaky,
    Consecutive,
}

impl Family {
    pub(super) const fn of(strategy: StrategyName) -> Self {
        match strategy {
            StrategyName::Leaky => Self::Leaky,
            StrategyName::Consecutive | StrategyName::Consul => Self::Consecutive,
        }
    }

    /// The strategy meant by someone who uses these keys and names none.
    pub(super) const fn strategy(self) -> StrategyName {
        match self {
            Self::Leaky => StrategyName::Leaky,
            Self::Consecutive => StrategyName::Consecutive,
        }
    }

    /// The parameters, in the order in which they are shown.
    pub(super) const fn parameters(self) -> &'static [Key] {
        match self {
            Self::Leaky => &[Key::CriticalThreshold, Key::PassingThreshold],
            Self::Consecutive => &[
                Key::FailuresBeforeCritical,
                Key::FailuresBeforeWarning,
                Key::SuccessBeforePassing,
            ],
        }
    }
}

/// What a key may be set to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Value {
    Strategy(StrategyName),
    Count(u32),
    First(FirstResult),
}

impl Key {
    pub(super) const ALL: [Self; 7] = [
        Self::Strategy,
        Self::CriticalThreshold,
        Self::PassingThreshold,
        Self::FailuresBeforeCritical,
        Self::FailuresBeforeWarning,
        Self::SuccessBeforePassing,
        Self::FirstResult,
    ];

    /// As in Notes, and in metadata after the prefix.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Strategy => "strategy",
            Self::CriticalThreshold => "critical-threshold",
            Self::PassingThreshold => "passing-threshold",
            Self::FailuresBeforeCritical => "failures-before-critical",
            Self::FailuresBeforeWarning => "failures-before-warning",
            Self::SuccessBeforePassing => "success-before-passing",
            Self::FirstResult => "first-result",
        }
    }

    /// The key of that name; `_` in place of `-` does as well.
    pub(super) fn named(name: &str) -> Option<Self> {
        let same = |key: &Self| {
            key.name().len() == name.len()
                && key
                    .name()
                    .bytes()
                    .zip(name.bytes())
                    .all(|(known, given)| known == given || known == b'-' && given == b'_')
        };
        Self::ALL.into_iter().find(same)
    }

    /// The name most like `name`, for a hint, if one is near enough.
    pub(super) fn nearest(name: &str) -> Option<&'static str> {
        let name = name.replace('_', "-");
        crate::document::nearest(&name, Self::ALL.iter().map(|key| key.name()))
    }

    /// Whose parameter it is; `None` for the keys that every strategy takes.
    pub(super) const fn family(self) -> Option<Family> {
        match self {
            Self::CriticalThreshold | Self::PassingThreshold => Some(Family::Leaky),
            Self::FailuresBeforeCritical
            | Self::FailuresBeforeWarning
            | Self::SuccessBeforePassing => Some(Family::Consecutive),
            Self::Strategy | Self::FirstResult => None,
        }
    }

    /// Reads a value.
    pub(super) fn parse(self, text: &str) -> Result<Value, String> {
        let text = text.trim();
        match self {
            Self::Strategy => StrategyName::ALL
                .into_iter()
                .find(|strategy| strategy.as_str() == text)
                .map(Value::Strategy)
                .ok_or_else(|| {
                    format!(
                        "`{}` is no strategy: leaky, consecutive or consul",
                        shortened(text)
                    )
                }),
            Self::FirstResult => match text {
                "believed" => Ok(Value::First(FirstResult::Believed)),
                "counted" => Ok(Value::First(FirstResult::Counted)),
                _ => Err(format!(
                    "`{}` is neither believed nor counted",
                    shortened(text)
                )),
            },
            _ if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) => text
                .parse()
                .map(Value::Count)
                .map_err(|_| format!("`{}` is more than {}", shortened(text), u32::MAX)),
            _ => Err(format!(
                "`{}` is not a whole number from 0 on",
                shortened(text)
            )),
        }
    }
}

/// A value as a message may carry it: someone else wrote it, at any length.
pub(super) fn shortened(text: &str) -> String {
    const MOST: usize = 60;
    let mut short: String = text
        .chars()
        .take(MOST)
        .map(|c| if c.is_control() { '\u{fffd}' } else { c })
        .collect();
    if text.chars().nth(MOST).is_some() {
        short.push('…');
    }
    short
}
