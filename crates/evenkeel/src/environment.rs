//! The environment variables as an argument, so that nothing but `main` reads
//! the process's own.

use std::collections::BTreeMap;
use std::ffi::OsString;

/// A set of environment variables.
#[derive(Clone, Default)]
pub struct Environment {
    variables: BTreeMap<String, String>,
    /// The names of those that are not UTF-8, as far as they can be written.
    not_utf8: Vec<String>,
}

impl Environment {
    /// Takes the variables as the system gives them. One that is not UTF-8 is
    /// left out, but its name is kept: see [`Environment::not_utf8`].
    pub fn from_os(variables: impl IntoIterator<Item = (OsString, OsString)>) -> Self {
        let mut taken = Self::default();
        for (name, value) in variables {
            match (name.into_string(), value.into_string()) {
                (Ok(name), Ok(value)) => drop(taken.variables.insert(name, value)),
                (Ok(name), Err(_)) => taken.not_utf8.push(name),
                (Err(name), _) => taken.not_utf8.push(name.to_string_lossy().into_owned()),
            }
        }
        taken.not_utf8.sort();
        taken
    }

    /// The names of the variables whose name or value is not UTF-8.
    pub fn not_utf8(&self) -> impl Iterator<Item = &str> {
        self.not_utf8.iter().map(String::as_str)
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
            not_utf8: Vec::new(),
        }
    }
}

/// Values may be secrets, so only the names are shown.
impl std::fmt::Debug for Environment {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_set().entries(self.variables.keys()).finish()
    }
}
