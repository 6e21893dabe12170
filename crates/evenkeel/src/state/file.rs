use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Write};
use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;

use crate::state::record::{Footer, Header};
use crate::state::{SavedLine, VERSION};

const FORMAT: &str = "evenkeel-state";
const NAME: &str = "checks.state";

/// A line longer than this is damage; names in Consul are far shorter.
const LONGEST_LINE: usize = 64 * 1024;

/// The snapshot in a state directory.
#[derive(Debug, Clone)]
pub struct StateFile {
    path: PathBuf,
}

/// What was found in a state directory.
#[derive(Debug, Default)]
pub struct Loaded {
    /// The saved checks; empty if there was no file or it could not be used.
    pub checks: Vec<SavedLine>,
    /// When they were saved, in Unix milliseconds.
    pub saved_at: Option<u64>,
    /// What was wrong with the file, and where it is now.
    pub damage: Option<String>,
}

/// A state directory that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum StateError {
    /// It cannot be made.
    #[error("the state directory {path} cannot be made: {error}")]
    Directory {
        /// The directory.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// Another process has it.
    #[error(
        "the state directory {path} is in use by another evenkeel: stop that one, or give this one its own with state_dir"
    )]
    InUse {
        /// The directory.
        path: PathBuf,
    },
    /// The file that keeps others out cannot be made.
    #[error("the lock of the state directory, {path}, cannot be made: {error}")]
    Lock {
        /// The file.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// The file in it cannot be read.
    #[error("the state file {path} cannot be read: {error}")]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
}

impl StateFile {
    /// The snapshot in `dir`, which is made if need be.
    ///
    /// # Errors
    ///
    /// When the directory cannot be made.
    pub fn in_directory(dir: &Path) -> Result<Self, StateError> {
        fs::create_dir_all(dir).map_err(|error| StateError::Directory {
            path: dir.to_owned(),
            error,
        })?;
        Ok(Self {
            path: dir.join(NAME),
        })
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Reads the snapshot. A damaged one is renamed to `….damaged`, one of
    /// another version to `….version-N`, and that is said in the answer.
    ///
    /// # Errors
    ///
    /// When the file is there but cannot be read.
    pub fn load(&self) -> Result<Loaded, StateError> {
        let file = match crate::document::open_file(&self.path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Loaded::default()),
            Err(error) => return Err(self.unreadable(error)),
        };
        match parse(BufReader::new(file)) {
            Ok((saved_at, checks)) => Ok(Loaded {
                checks,
                saved_at: Some(saved_at),
                damage: None,
            }),
            Err(ParseError::Io(error)) => Err(self.unreadable(error)),
            Err(ParseError::OtherVersion(version)) => {
                // Whoever goes back to the other version can put it back.
                let text = format!("it is of version {version}, this program has {VERSION}");
                Ok(self.set_aside(&format!(".version-{version}"), &text))
            }
            Err(ParseError::Damaged(text)) => Ok(self.set_aside(".damaged", &text)),
        }
    }

    /// Renames the file, which cannot be used for the reason `text`.
    fn set_aside(&self, suffix: &str, text: &str) -> Loaded {
        let mut aside = self.path.clone().into_os_string();
        aside.push(suffix);
        let aside = PathBuf::from(aside);
        let moved = match fs::rename(&self.path, &aside) {
            Ok(()) => format!("set aside as {}", aside.display()),
            Err(error) => format!("and it could not be set aside: {error}"),
        };
        Loaded {
            damage: Some(format!("{}: {text}; {moved}", self.path.display())),
            ..Loaded::default()
        }
    }

    /// Replaces the snapshot by `bytes`, which came from [`encode`]. Blocks
    /// until the disk has it; a crash at any moment leaves the old or the new
    /// one whole.
    ///
    /// # Errors
    ///
    /// What the file system says; the old snapshot is still there then.
    pub fn replace(&self, bytes: &[u8]) -> io::Result<()> {
        let mut new = self.path.clone().into_os_string();
        new.push(".new");
        let new = PathBuf::from(new);
        let mut file = File::create(&new)?;
        file.write_all(bytes)?;
        file.sync_data()?;
        fs::rename(&new, &self.path)?;
        if let Some(dir) = self.path.parent() {
            File::open(dir)?.sync_all()?;
        }
        Ok(())
    }

    fn unreadable(&self, error: io::Error) -> StateError {
        StateError::Read {
            path: self.path.clone(),
            error,
        }
    }
}

/// The file's content for `checks` at `saved_at` (Unix milliseconds).
pub fn encode(saved_at: u64, checks: impl IntoIterator<Item = SavedLine>) -> Vec<u8> {
    let mut bytes = Vec::new();
    add(
        &mut bytes,
        &Header {
            format: FORMAT.into(),
            version: VERSION,
            saved_at,
        },
    );
    let mut count = 0;
    for check in checks {
        add(&mut bytes, &check);
        count += 1;
    }
    add(&mut bytes, &Footer { checks: count });
    bytes
}

fn add(bytes: &mut Vec<u8>, line: &impl serde::Serialize) {
    // Neither these types nor a Vec can make serde_json fail.
    let _ = serde_json::to_writer(&mut *bytes, line);
    bytes.push(b'\n');
}

enum ParseError {
    Io(io::Error),
    Damaged(String),
    /// Whole, for all we know, and not ours to read.
    OtherVersion(u32),
}

fn parse(mut file: impl BufRead) -> Result<(u64, Vec<SavedLine>), ParseError> {
    let mut line = Vec::new();
    let mut number = 0;
    let header: Header = match next_line(&mut file, &mut line, &mut number)? {
        true => read(&line, number)?,
        false => return Err(ParseError::Damaged("it is empty".into())),
    };
    if header.format != FORMAT {
        return Err(ParseError::Damaged(format!(
            "it is {}, not {FORMAT}",
            header.format
        )));
    }
    if header.version != VERSION {
        return Err(ParseError::OtherVersion(header.version));
    }
    let mut checks = Vec::new();
    while next_line(&mut file, &mut line, &mut number)? {
        if let Ok(footer) = serde_json::from_slice::<Footer>(&line) {
            if footer.checks != checks.len() as u64 {
                return Err(ParseError::Damaged(format!(
                    "it has {} checks and says {}",
                    checks.len(),
                    footer.checks
                )));
            }
            return Ok((header.saved_at, checks));
        }
        checks.push(read(&line, number)?);
    }
    Err(ParseError::Damaged(format!(
        "its end is missing after line {number}"
    )))
}

fn read<T: DeserializeOwned>(line: &[u8], number: usize) -> Result<T, ParseError> {
    serde_json::from_slice(line)
        .map_err(|error| ParseError::Damaged(format!("line {number}: {error}")))
}

/// Reads one whole line into `line`; false at the end of the file.
fn next_line(
    file: &mut impl BufRead,
    line: &mut Vec<u8>,
    number: &mut usize,
) -> Result<bool, ParseError> {
    line.clear();
    *number += 1;
    let mut limited = io::Read::take(&mut *file, LONGEST_LINE as u64);
    limited.read_until(b'\n', line).map_err(ParseError::Io)?;
    match line.last() {
        None => Ok(false),
        Some(b'\n') => Ok(true),
        Some(_) => Err(ParseError::Damaged(format!(
            "line {number} has no end within {LONGEST_LINE} bytes"
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use evenkeel_threshold::{Record, Status, StrategyTag};
    use proptest::prelude::*;

    fn check(node: &str) -> SavedLine {
        SavedLine {
            partition: String::new(),
            namespace: String::new(),
            node: node.into(),
            service_id: "web".into(),
            check_id: "c".into(),
            record: Record::new(StrategyTag(1), 1, Status::Critical, &[0, 7, 255]).unwrap(),
            critical_since: Some(1_000),
            last_transition: Some((1_000, Status::Passing)),
            next_due: Some(5_000),
        }
    }

    fn saved(checks: &[SavedLine]) -> (tempfile::TempDir, StateFile) {
        let dir = tempfile::tempdir().unwrap();
        let state = StateFile::in_directory(&dir.path().join("made/anew")).unwrap();
        state.replace(&encode(42, checks.iter().cloned())).unwrap();
        (dir, state)
    }

    #[test]
    fn what_was_saved_comes_back() {
        let checks = [check("a"), check("b\n\"\u{1F980}")];
        let (_dir, state) = saved(&checks);
        let loaded = state.load().unwrap();
        assert_eq!(loaded.checks, checks);
        assert_eq!(loaded.saved_at, Some(42));
        assert_eq!(loaded.damage, None);
    }

    #[test]
    fn no_file_is_no_fault() {
        let dir = tempfile::tempdir().unwrap();
        let loaded = StateFile::in_directory(dir.path()).unwrap().load().unwrap();
        assert!(loaded.checks.is_empty());
        assert_eq!(loaded.damage, None);
    }

    #[test]
    fn a_cut_file_is_set_aside_and_said() {
        let (_dir, state) = saved(&[check("a"), check("b")]);
        let whole = fs::read(state.path()).unwrap();
        for cut in 0..whole.len() - 1 {
            fs::write(state.path(), &whole[..cut]).unwrap();
            let loaded = state.load().unwrap();
            assert!(loaded.checks.is_empty(), "cut at {cut}");
            let damage = loaded.damage.unwrap();
            assert!(damage.contains(".damaged"), "{damage}");
            assert!(!state.path().exists());
        }
    }

    #[test]
    fn a_file_of_a_later_version_is_not_half_used() {
        let (_dir, state) = saved(&[]);
        fs::write(
            state.path(),
            "{\"format\":\"evenkeel-state\",\"version\":2,\"saved_at\":1}\n{\"checks\":0}\n",
        )
        .unwrap();
        let damage = state.load().unwrap().damage.unwrap();
        assert!(damage.contains("version 2"), "{damage}");
        assert!(!damage.contains("damaged"), "{damage}");
        let kept = state.path().with_file_name("checks.state.version-2");
        assert!(kept.exists(), "{damage}");
    }

    proptest! {
        #[test]
        fn garbage_never_panics_nor_loads(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            let (_dir, state) = saved(&[check("a")]);
            fs::write(state.path(), &bytes).unwrap();
            prop_assert!(state.load().unwrap().checks.is_empty());
        }

        #[test]
        fn one_flipped_byte_never_panics(at in any::<prop::sample::Index>(), bit in 0_u8..8) {
            let (_dir, state) = saved(&[check("a"), check("b")]);
            let mut bytes = fs::read(state.path()).unwrap();
            let at = at.index(bytes.len());
            bytes[at] ^= 1 << bit;
            fs::write(state.path(), &bytes).unwrap();
            let _ = state.load().unwrap();
        }
    }
}
