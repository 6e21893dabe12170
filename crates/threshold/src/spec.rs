//! Strategies from texts.

use core::fmt;

use crate::key::{Parameters, same};
use crate::{AnyStrategy, Key, ParameterError};

/// All that is wrong with the description of a strategy, up to
/// [`SpecError::MOST`] faults.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SpecError<'a> {
    faults: [Option<SpecFault<'a>>; SpecError::MOST],
    untold: usize,
}

/// One thing that is wrong with the description of a strategy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum SpecFault<'a> {
    /// There is no strategy of that name.
    UnknownStrategy {
        /// As given.
        name: &'a str,
        /// The one most like it, if one is near.
        nearest: Option<&'static str>,
    },
    /// The strategy has no such key.
    UnknownKey {
        /// The strategy.
        strategy: &'static str,
        /// As given.
        key: &'a str,
        /// The one most like it, if one is near.
        nearest: Option<&'static str>,
    },
    /// Not of the form `key=value`.
    NoValue {
        /// As given.
        word: &'a str,
    },
    /// Not a value of the key's kind, or too large a number.
    WrongValue {
        /// The key.
        key: &'static Key,
        /// As given.
        value: &'a str,
    },
    /// A key is given twice.
    Repeated {
        /// The key.
        key: &'static Key,
    },
    /// Every value can be read, but they make no strategy.
    Parameters(ParameterError),
}

impl<'a> SpecError<'a> {
    /// The most faults that are told.
    pub const MOST: usize = 8;

    const NONE: Self = Self {
        faults: [None; Self::MOST],
        untold: 0,
    };

    /// The faults, in the order of the text.
    pub fn faults(&self) -> impl Iterator<Item = SpecFault<'a>> {
        self.faults.into_iter().flatten()
    }

    /// How many more there were.
    pub const fn untold(&self) -> usize {
        self.untold
    }

    fn push(&mut self, fault: SpecFault<'a>) {
        match self.faults.iter_mut().find(|place| place.is_none()) {
            Some(place) => *place = Some(fault),
            None => self.untold += 1,
        }
    }

    pub(crate) fn unknown_strategy(name: &'a str) -> Self {
        let mut error = Self::NONE;
        error.push(SpecFault::UnknownStrategy {
            name,
            nearest: nearest(name, AnyStrategy::NAMES.iter().copied()),
        });
        error
    }
}

/// Makes a strategy from its parameters as texts; a pair without a value is a
/// word that should have had one.
#[expect(
    clippy::result_large_err,
    reason = "all faults at once, and nowhere to put them without an allocation"
)]
pub(crate) fn make<'a, P: Parameters, S: TryFrom<P, Error: Into<ParameterError>>>(
    strategy: &'static str,
    pairs: impl Iterator<Item = (&'a str, Option<&'a str>)>,
) -> Result<S, SpecError<'a>> {
    let mut error = SpecError::NONE;
    let mut parameters = P::default();
    let mut given = 0_u64;
    for (name, value) in pairs {
        let Some(value) = value else {
            error.push(SpecFault::NoValue { word: name });
            continue;
        };
        let known = P::KEYS.iter().enumerate();
        let Some((index, key)) = known.into_iter().find(|(_, key)| key.is_named(name)) else {
            error.push(SpecFault::UnknownKey {
                strategy,
                key: name,
                nearest: nearest(name, P::KEYS.iter().map(|key| key.name)),
            });
            continue;
        };
        if given & 1 << index != 0 {
            error.push(SpecFault::Repeated { key });
        } else if !parameters.set(key, value) {
            error.push(SpecFault::WrongValue { key, value });
        }
        given |= 1 << index;
    }
    if error != SpecError::NONE {
        return Err(error);
    }
    S::try_from(parameters).map_err(|fault| {
        error.push(SpecFault::Parameters(fault.into()));
        error
    })
}

/// A strategy's name, and its keys with their values.
pub(crate) fn split(text: &str) -> (&str, impl Iterator<Item = (&str, Option<&str>)>) {
    let text = text.trim();
    let directive = text.strip_prefix("strategy=");
    let (name, rest) = match directive {
        Some(text) => text.split_once(char::is_whitespace),
        None => text.split_once(':'),
    }
    .unwrap_or((directive.unwrap_or(text), ""));
    let separates = move |c: char| match directive {
        Some(_) => c.is_whitespace(),
        None => c == ',',
    };
    let words = rest
        .split(separates)
        .map(str::trim)
        .filter(|word| !word.is_empty());
    let pairs = words.map(|word| match word.split_once('=') {
        Some((key, value)) => (key.trim(), Some(value.trim())),
        None => (word, None),
    });
    (name.trim(), pairs)
}

/// The candidate that the fewest changes of single letters make of `name`, if
/// those are few enough for it to be meant.
fn nearest(name: &str, candidates: impl Iterator<Item = &'static str>) -> Option<&'static str> {
    candidates
        .filter_map(|candidate| Some((distance(name, candidate)?, candidate)))
        .filter(|(distance, candidate)| distance * 3 <= candidate.len())
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// The Levenshtein distance, `_` being as good as `-`; `None` if `name` is longer
/// than any key.
fn distance(name: &str, candidate: &str) -> Option<usize> {
    const LONGEST: usize = 40;
    if name.len() > LONGEST {
        return None;
    }
    // The distances of each beginning of `name` to the candidate so far.
    let mut row: [usize; LONGEST + 1] = core::array::from_fn(|length| length);
    for (done, known) in candidate.bytes().enumerate() {
        let mut diagonal = row[0];
        row[0] = done + 1;
        for (index, given) in name.bytes().enumerate() {
            let given = if given == b'_' { b'-' } else { given };
            let replaced = diagonal + usize::from(given != known);
            diagonal = row[index + 1];
            row[index + 1] = replaced.min(diagonal + 1).min(row[index] + 1);
        }
    }
    Some(row[name.len()])
}

impl fmt::Display for SpecError<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, fault) in self.faults().enumerate() {
            f.write_str(if index == 0 { "" } else { "; " })?;
            fault.fmt(f)?;
        }
        match self.untold {
            0 => Ok(()),
            more => write!(f, "; and {more} more"),
        }
    }
}

impl core::error::Error for SpecError<'_> {}

impl fmt::Display for SpecFault<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::UnknownStrategy { name, nearest } => {
                write!(f, "there is no strategy `{name}`")?;
                hint(nearest, AnyStrategy::NAMES.iter().copied(), f)
            }
            Self::UnknownKey {
                strategy,
                key,
                nearest,
            } => {
                write!(f, "{strategy} has no `{key}`")?;
                let keys = AnyStrategy::keys_of(strategy).unwrap_or_default();
                hint(nearest, keys.iter().map(|key| key.name), f)
            }
            Self::NoValue { word } => write!(f, "`{word}` is not of the form key=value"),
            Self::WrongValue { key, value } => {
                write!(f, "{}: `{value}` is not {}", key.name, key.kind)?;
                match key.kind {
                    crate::Kind::Word(_) | crate::Kind::Switch => Ok(()),
                    _ => write!(f, " ({})", key.range),
                }
            }
            Self::Repeated { key } => write!(f, "{} is given twice", key.name),
            Self::Parameters(error) => error.fmt(f),
        }
    }
}

fn hint<'a>(
    nearest: Option<&str>,
    known: impl Iterator<Item = &'a str>,
    f: &mut fmt::Formatter<'_>,
) -> fmt::Result {
    if let Some(nearest) = nearest {
        return write!(f, "; did you mean `{nearest}`?");
    }
    for (index, name) in known.enumerate() {
        f.write_str(if index == 0 { "; there are " } else { ", " })?;
        f.write_str(name)?;
    }
    Ok(())
}

impl AnyStrategy {
    /// The name in [`AnyStrategy::NAMES`] that `name` means; `_` does for `-`.
    pub fn known_name(name: &str) -> Option<&'static str> {
        Self::NAMES.iter().copied().find(|known| same(known, name))
    }

    /// Makes the strategy `name` from its parameters as texts, as a configuration
    /// has them. What is left out has its default, see [`AnyStrategy::keys_of`].
    ///
    /// ```
    /// use evenkeel_threshold::{AnyStrategy, Window, WindowParameters};
    ///
    /// let made = AnyStrategy::from_parameters("window", [("results", "10"), ("failures", "5")]);
    /// let window = Window::new(WindowParameters { results: 10, failures: 5, recovered_at: 1 })?;
    /// assert_eq!(made, Ok(window.into()));
    ///
    /// let error = AnyStrategy::from_parameters("window", [("result", "10"), ("m", "many")])
    ///     .expect_err("one key is wrong, and one value");
    /// assert_eq!(
    ///     error.to_string(),
    ///     "window has no `result`; did you mean `results`?; \
    ///      failures: `many` is not a whole number from 0 to 4294967295 (1 to `results`; 0 is 1)"
    /// );
    /// # Ok::<(), evenkeel_threshold::ParameterError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// With all that is wrong: unknown names and keys, values that cannot be read,
    /// keys given twice; if there is nothing of that kind, what is wrong with the
    /// parameters together.
    #[expect(
        clippy::result_large_err,
        reason = "all faults at once, and nowhere to put them without an allocation"
    )]
    pub fn from_parameters<'a>(
        name: &'a str,
        parameters: impl IntoIterator<Item = (&'a str, &'a str)>,
    ) -> Result<Self, SpecError<'a>> {
        let pairs = parameters
            .into_iter()
            .map(|(key, value)| (key, Some(value)));
        Self::make(name, pairs)
    }

    /// Reads a strategy in the form of a command line, `window:results=10,failures=5`,
    /// or in that of a directive, `strategy=window results=10 failures=5`, in which
    /// every strategy prints itself.
    ///
    /// ```
    /// use evenkeel_threshold::AnyStrategy;
    ///
    /// let typed = AnyStrategy::parse("window:m=5,n=10,l=1").expect("short names do");
    /// assert_eq!(typed.to_string(), "strategy=window results=10 failures=5 recovered-at=1");
    /// assert_eq!(AnyStrategy::parse(&typed.to_string()), Ok(typed));
    /// ```
    ///
    /// # Errors
    ///
    /// As [`AnyStrategy::from_parameters`].
    #[expect(
        clippy::result_large_err,
        reason = "all faults at once, and nowhere to put them without an allocation"
    )]
    pub fn parse(text: &str) -> Result<Self, SpecError<'_>> {
        let (name, pairs) = split(text);
        Self::make(name, pairs)
    }
}
