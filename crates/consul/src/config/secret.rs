use std::fmt;

/// A token or password. Never printed: `Debug` shows whether it is set, and
/// there is no `Display`.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Secret(Box<str>);

impl Secret {
    /// Wraps a secret. White space around it is removed, since it comes from
    /// files that end with a new line.
    pub fn new(text: &str) -> Self {
        Self(text.trim().into())
    }

    /// The secret itself, for the header it goes into.
    pub fn reveal(&self) -> &str {
        &self.0
    }

    /// Whether there is nothing in it.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.is_empty() {
            "Secret(empty)"
        } else {
            "Secret(***)"
        })
    }
}

impl From<&str> for Secret {
    fn from(text: &str) -> Self {
        Self::new(text)
    }
}

impl From<String> for Secret {
    fn from(text: String) -> Self {
        Self::new(&text)
    }
}
