use std::fmt;

/// A field of a list's element that could not be read, and was left out.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct FieldFault {
    /// The field, such as `Definition.Interval`; empty for the element as a
    /// whole.
    pub path: String,
    /// What is wrong with it, for people.
    pub reason: String,
}

impl fmt::Display for FieldFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.path.is_empty() {
            f.write_str(&self.reason)
        } else {
            write!(f, "{}: {}", self.path, self.reason)
        }
    }
}
