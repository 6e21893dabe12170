use std::fmt;

use evenkeel_threshold::AnyStrategy;

/// A strategy to be tried.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Candidate<S = AnyStrategy> {
    /// What it is called in reports.
    pub name: String,
    /// What it does.
    pub strategy: S,
}

impl<S> Candidate<S> {
    /// A strategy and its name.
    pub fn new(name: impl Into<String>, strategy: S) -> Self {
        Self {
            name: name.into(),
            strategy,
        }
    }
}

impl Candidate {
    /// No damping: every result is reported.
    pub const RAW: &'static str = "raw";

    /// Reads a strategy in the form of a command line: `raw`, or whatever
    /// [`AnyStrategy::parse`] takes, e.g. `consecutive:down=3,up=3`. The text is
    /// its name.
    ///
    /// `leaky` also takes `down` and `up`, the results at which it flips: one more
    /// than `critical-threshold` and `passing-threshold`.
    ///
    /// ```
    /// use evenkeel_replay::Candidate;
    ///
    /// let leaky = Candidate::parse("leaky:down=3,up=1")?;
    /// assert_eq!(leaky.strategy.to_string(), "strategy=leaky critical-threshold=2 passing-threshold=0");
    /// let error = Candidate::parse("window:m=6,n=5").unwrap_err();
    /// assert!(error.to_string().contains("failures must not be more than results"));
    /// # Ok::<(), evenkeel_replay::CandidateError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// With all that is wrong with it.
    pub fn parse(text: &str) -> Result<Self, CandidateError> {
        let text = text.trim();
        if text == Self::RAW {
            return Ok(Self::new(text, AnyStrategy::default()));
        }
        if text.split(':').next() == Some(Self::RAW) {
            return Err(CandidateError {
                text: "raw has no parameters".to_owned(),
                raw: false,
            });
        }
        let long = leaky_in_full(text);
        let strategy = AnyStrategy::parse(long.as_deref().unwrap_or(text)).map_err(|error| {
            let name = text.split(':').next().unwrap_or(text);
            CandidateError {
                text: error.to_string(),
                raw: AnyStrategy::known_name(name).is_none(),
            }
        })?;
        Ok(Self::new(text, strategy))
    }
}

/// A `leaky` with the names of its parameters in place of `down` and `up`.
fn leaky_in_full(text: &str) -> Option<String> {
    let in_full = |word: &str| {
        let (key, count) = word.split_once('=')?;
        let name = match key.trim() {
            "down" => "critical-threshold",
            "up" => "passing-threshold",
            _ => return None,
        };
        // What is no number is told as it is.
        Some(match count.trim().parse::<u32>() {
            Ok(count) => format!("{name}={}", count.saturating_sub(1)),
            Err(_) => format!("{name}={count}"),
        })
    };
    let words: Vec<String> = text
        .strip_prefix("leaky:")?
        .split(',')
        .map(|word| in_full(word).unwrap_or_else(|| word.to_owned()))
        .collect();
    Some(format!("leaky:{}", words.join(",")))
}

/// A text that is no strategy.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct CandidateError {
    text: String,
    /// The name is unknown, so the one that only replays know is told, too.
    raw: bool,
}

impl fmt::Display for CandidateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)?;
        match self.raw {
            true => f.write_str("; `raw` is no damping"),
            false => Ok(()),
        }
    }
}
