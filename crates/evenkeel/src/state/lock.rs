use std::fs::{File, OpenOptions};
use std::path::Path;

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

use crate::state::StateError;

const NAME: &str = "lock";

/// Keeps other daemons out of a state directory: two would replace each other's
/// snapshot. The system lets go of it when the process ends, however it ends, so
/// that a file that is left over is in nobody's way.
#[derive(Debug)]
pub struct DirectoryLock {
    /// Locked while it is open.
    _file: File,
}

impl DirectoryLock {
    /// Takes the lock of `dir`, which must be there. None if the file system
    /// knows no locks; that is logged.
    ///
    /// # Errors
    ///
    /// When another process has it, or its file cannot be made.
    pub fn take(dir: &Path) -> Result<Option<Self>, StateError> {
        let path = dir.join(NAME);
        let opened = OpenOptions::new()
            .create(true)
            .truncate(false)
            .write(true)
            .open(&path);
        let file = match opened {
            Ok(file) => file,
            Err(error) => return Err(StateError::Lock { path, error }),
        };
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(Some(Self { _file: file })),
            Err(Errno::WOULDBLOCK) => Err(StateError::InUse {
                path: dir.to_owned(),
            }),
            Err(error) => {
                tracing::warn!(
                    path = %path.display(),
                    %error,
                    "the state directory cannot be locked: see to it that no other daemon has it"
                );
                Ok(None)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_is_for_one_at_a_time() {
        let dir = tempfile::tempdir().unwrap();
        let first = DirectoryLock::take(dir.path()).unwrap();
        assert!(first.is_some());
        let refused = DirectoryLock::take(dir.path()).unwrap_err();
        assert!(matches!(refused, StateError::InUse { .. }), "{refused}");
        drop(first);
        // The file is still there, which is no lock.
        assert!(dir.path().join(NAME).exists());
        assert!(DirectoryLock::take(dir.path()).unwrap().is_some());
    }

    #[test]
    fn a_lock_that_cannot_be_made_is_an_error() {
        let dir = tempfile::tempdir().unwrap();
        let error = DirectoryLock::take(&dir.path().join("none")).unwrap_err();
        assert!(matches!(error, StateError::Lock { .. }), "{error}");
    }
}
