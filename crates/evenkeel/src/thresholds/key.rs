//! The keys that sources use, and the values they take.

use std::sync::LazyLock;

use evenkeel_threshold::{AnyStrategy, Kind};

/// One thing that a source can say, in the order in which they are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Key {
    /// Which strategy.
    Strategy,
    /// A parameter of one or more strategies, by its place among all of them.
    Parameter(usize),
    /// What the first result of a new check means.
    FirstResult,
}

/// A parameter, with all strategies that have it.
#[derive(Debug)]
struct Parameter {
    name: &'static str,
    field: &'static str,
    kind: Kind,
    users: Vec<(&'static str, &'static evenkeel_threshold::Key)>,
}

/// The parameters of all strategies, each name once.
static PARAMETERS: LazyLock<Vec<Parameter>> = LazyLock::new(|| {
    let mut parameters: Vec<Parameter> = Vec::new();
    for strategy in AnyStrategy::NAMES {
        for key in AnyStrategy::keys_of(strategy).unwrap_or_default() {
            match parameters.iter_mut().find(|known| known.name == key.name) {
                Some(known) => {
                    known.users.push((strategy, key));
                    // A whole number is a number, too.
                    if key.kind == Kind::Number {
                        known.kind = Kind::Number;
                    }
                }
                None => parameters.push(Parameter {
                    name: key.name,
                    field: key.field,
                    kind: key.kind,
                    users: vec![(strategy, key)],
                }),
            }
        }
    }
    parameters
});

/// The words for the first result.
pub const FIRST_RESULTS: [&str; 2] = ["believed", "counted"];

impl Key {
    /// All of them, in order.
    pub fn all() -> impl Iterator<Item = Self> {
        [Self::Strategy]
            .into_iter()
            .chain((0..PARAMETERS.len()).map(Self::Parameter))
            .chain([Self::FirstResult])
    }

    fn parameter(self) -> Option<&'static Parameter> {
        match self {
            Self::Parameter(index) => PARAMETERS.get(index),
            Self::Strategy | Self::FirstResult => None,
        }
    }

    /// As in Notes, and in metadata after the prefix.
    pub fn name(self) -> &'static str {
        match (self, self.parameter()) {
            (_, Some(parameter)) => parameter.name,
            (Self::Strategy, _) => "strategy",
            _ => "first-result",
        }
    }

    /// As in files.
    pub fn field(self) -> &'static str {
        match (self, self.parameter()) {
            (_, Some(parameter)) => parameter.field,
            (Self::Strategy, _) => "strategy",
            _ => "first_result",
        }
    }

    /// The key of that name; `_` in place of `-` does as well.
    pub fn named(name: &str) -> Option<Self> {
        let same = |key: &Self| {
            let known = key.name();
            known.len() == name.len()
                && known
                    .bytes()
                    .zip(name.bytes())
                    .all(|(known, given)| known == given || known == b'-' && given == b'_')
        };
        Self::all().find(same)
    }

    /// The name most like `name`, for a hint, if one is near enough.
    pub(super) fn nearest(name: &str) -> Option<&'static str> {
        let name = name.replace('_', "-");
        crate::document::nearest(&name, Self::all().map(Self::name))
    }

    /// Whether `strategy` has it as a parameter.
    pub(super) fn is_of(self, strategy: &str) -> bool {
        self.users().iter().any(|(user, _)| *user == strategy)
    }

    /// The strategies that have it as a parameter, with what it is there; none for
    /// the keys that every strategy takes.
    pub fn users(self) -> &'static [(&'static str, &'static evenkeel_threshold::Key)] {
        self.parameter()
            .map_or(&[], |parameter| parameter.users.as_slice())
    }

    /// What kind of value a parameter takes.
    pub fn kind(self) -> Kind {
        match (self, self.parameter()) {
            (_, Some(parameter)) => parameter.kind,
            (Self::Strategy, _) => Kind::Word(AnyStrategy::NAMES),
            _ => Kind::Word(&FIRST_RESULTS),
        }
    }

    /// Whether `text` is a value of the key's kind, whatever the strategy makes of
    /// it.
    pub(super) fn check(self, text: &str) -> Result<(), String> {
        let kind = self.kind();
        if kind.accepts(text) {
            return Ok(());
        }
        let text = shortened(text);
        Err(match self {
            Self::Strategy => format!("`{text}` is no strategy: {kind}"),
            Self::Parameter(_) | Self::FirstResult => format!("`{text}` is not {kind}"),
        })
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
