//! Files that the client's settings name. Everything here blocks.

use std::fs::File;
use std::io::{Error, ErrorKind, Read as _};
use std::path::Path;

/// A file larger than this holds no ACL token (a UUID, or a JWT of some KiB).
pub(super) const MOST_TOKEN_BYTES: u64 = 64 * 1024;

/// A file larger than this is no set of certificates (a system's bundle has
/// about 220 KiB).
pub(super) const MOST_PEM_BYTES: u64 = 8 * 1024 * 1024;

/// Reads a regular file of at most `most` bytes.
///
/// To open a pipe that nobody writes to waits for ever, and a device may have no
/// end. The kind is looked at before the file is opened: whoever puts a pipe in
/// place in between can still make it wait.
pub(super) fn read(path: &Path, most: u64) -> std::io::Result<Vec<u8>> {
    if !std::fs::metadata(path)?.is_file() {
        let text = "it is not a regular file";
        return Err(Error::new(ErrorKind::InvalidInput, text));
    }
    let mut bytes = Vec::new();
    File::open(path)?
        .take(most.saturating_add(1))
        .read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most {
        let text = format!("it is larger than {} KiB", most / 1024);
        return Err(Error::new(ErrorKind::FileTooLarge, text));
    }
    Ok(bytes)
}

/// The same of a text.
pub(super) fn read_text(path: &Path, most: u64) -> std::io::Result<String> {
    String::from_utf8(read(path, most)?).map_err(|error| Error::new(ErrorKind::InvalidData, error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_regular_files_within_the_limit_are_read() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        std::fs::write(&path, "12345").unwrap();
        assert_eq!(read_text(&path, 5).unwrap(), "12345");
        let told = read(&path, 4).unwrap_err();
        assert_eq!(told.kind(), ErrorKind::FileTooLarge);
        let told = read(dir.path(), 5).unwrap_err();
        assert_eq!(told.to_string(), "it is not a regular file");
    }

    #[cfg(unix)]
    #[test]
    fn pipes_and_devices_are_refused_as_token_and_as_certificate() {
        use crate::client::tls::certificates;
        use crate::client::token::TokenSource;
        let dir = tempfile::tempdir().unwrap();
        let pipe = dir.path().join("pipe");
        let made = std::process::Command::new("mkfifo").arg(&pipe).status();
        assert!(made.unwrap().success());
        for path in [&*pipe, Path::new("/dev/zero")] {
            let config = crate::config::Config {
                token_file: Some(path.to_owned()),
                ..crate::config::Config::default()
            };
            let wanted = format!("cannot read {}: it is not a regular file", path.display());
            let told = TokenSource::new(&config).err().unwrap();
            assert_eq!(told.to_string(), wanted);
            assert_eq!(certificates(path).unwrap_err().to_string(), wanted);
        }
    }
}
