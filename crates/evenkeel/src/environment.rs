//! The environment variables as an argument, so that nothing but `main` reads
//! the process's own.

use std::collections::BTreeMap;
use std::ffi::OsString;

/// A set of environment variables.
#[derive(Clone, Default)]
pub struct Environment {
    variables: BTreeMap<String, String>,
}

impl Environment {
    /// Takes the variables as the system gives them. One that is not UTF-8 is
    /// left out: no name or value that means anything here is.
    pub fn from_os(variables: impl IntoIterator<Item = (OsString, OsString)>) -> Self {
        variables
            .into_iter()
            .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
            .collect()
    }

    /// The value of `name`; an empty one counts as not set, as in Consul's
    /// client.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.variables
            .get(name)
            .map(String::as_str)
            .filter(|value| !value.is_empty())
    }

    /// All variables whose value is not empty, by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.variables
            .iter()
            .filter(|(_, value)| !value.is_empty())
            .map(|(name, value)| (name.as_str(), value.as_str()))
    }
}

impl FromIterator<(String, String)> for Environment {
    fn from_iter<T: IntoIterator<Item = (String, String)>>(variables: T) -> Self {
        Self {
            variables: variables.into_iter().collect(),
        }
    }
}

/// Values may be secrets, so only the names are shown.
impl std::fmt::Debug for Environment {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_set().entries(self.variables.keys()).finish()
    }
}
