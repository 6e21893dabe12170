use std::path::{Path, PathBuf};

use http::{HeaderName, HeaderValue};

use super::DefinitionError;

/// What an HTTP check proves itself by. The secret is in a file, which is read
/// at each probe, so that a change takes effect with the next. It is sent to
/// the URL's host and port only, not to where a redirect leads, and goes before
/// a header of the same name and before a password in the URL.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(untagged, deny_unknown_fields))]
#[non_exhaustive]
pub enum HttpCredentials {
    /// `Authorization: Bearer TOKEN` (RFC 6750).
    Bearer {
        /// The file with the token.
        bearer_file: PathBuf,
    },
    /// `Authorization: Basic …` (RFC 7617).
    Basic {
        /// The user's name, without a colon.
        user: String,
        /// The file with the password.
        password_file: PathBuf,
    },
    /// Any other header.
    Header {
        /// The header's name.
        header: String,
        /// The file with its value.
        value_file: PathBuf,
    },
}

impl HttpCredentials {
    pub(super) fn validate(&self) -> Result<(), DefinitionError> {
        let wrong = |reason: &str| DefinitionError::option("credentials", reason);
        if self.file().as_os_str().is_empty() {
            return Err(wrong("the file's name is empty"));
        }
        match self {
            Self::Bearer { .. } => Ok(()),
            Self::Basic { user, .. } if user.contains(':') => {
                Err(wrong("a user's name has no colon (RFC 7617)"))
            }
            Self::Basic { user, .. } if HeaderValue::from_str(user).is_err() => {
                Err(wrong("the user's name has a control character"))
            }
            Self::Basic { .. } => Ok(()),
            Self::Header { header, .. } if HeaderName::from_bytes(header.as_bytes()).is_err() => {
                Err(DefinitionError::HeaderName(header.clone()))
            }
            Self::Header { .. } => Ok(()),
        }
    }

    /// The file with the secret.
    pub fn file(&self) -> &Path {
        match self {
            Self::Bearer { bearer_file } => bearer_file,
            Self::Basic { password_file, .. } => password_file,
            Self::Header { value_file, .. } => value_file,
        }
    }
}
