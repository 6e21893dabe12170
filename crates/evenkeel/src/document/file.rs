use std::fs::{File, FileType};
use std::io::{Error, ErrorKind, Read as _};
use std::path::Path;

/// Reads a file of at most `most` bytes.
///
/// # Errors
///
/// A sentence for people, without the path.
pub fn read_file(path: &Path, most: u64) -> Result<Vec<u8>, String> {
    let cannot = |error: Error| format!("cannot be read: {error}");
    let file = open_file(path).map_err(cannot)?;
    // A file may grow between the look at its length and its end.
    let mut bytes = Vec::new();
    file.take(most.saturating_add(1))
        .read_to_end(&mut bytes)
        .map_err(cannot)?;
    if bytes.len() as u64 > most {
        return Err(format!("larger than {}", crate::config::ByteSize(most)));
    }
    Ok(bytes)
}

/// Opens a regular file, or what a link to one leads to.
///
/// To open a pipe that nobody writes to waits for ever, so the kind is looked at
/// before. Whoever puts a pipe in place between the look and the opening can
/// still make it wait; that is a race that only the file's owner can run.
///
/// # Errors
///
/// It cannot be opened, or is something else: the error says what.
pub fn open_file(path: &Path) -> Result<File, Error> {
    match other_kind(std::fs::metadata(path)?.file_type()) {
        None => File::open(path),
        Some(kind) => Err(Error::new(
            ErrorKind::InvalidInput,
            format!("it is {kind}, not a regular file"),
        )),
    }
}

/// What a file is that is no regular one.
fn other_kind(kind: FileType) -> Option<&'static str> {
    use std::os::unix::fs::FileTypeExt as _;
    match kind {
        kind if kind.is_file() => None,
        kind if kind.is_dir() => Some("a directory"),
        kind if kind.is_fifo() => Some("a pipe"),
        kind if kind.is_socket() => Some("a socket"),
        _ => Some("a device"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_regular_files_are_read() {
        let dir = tempfile::tempdir().unwrap();
        let socket = dir.path().join("socket");
        let _listening = std::os::unix::net::UnixListener::bind(&socket).unwrap();
        let pipe = dir.path().join("pipe");
        let made = std::process::Command::new("mkfifo").arg(&pipe).status();
        assert!(made.unwrap().success());
        for (path, kind) in [
            (&*pipe, "a pipe"),
            (&*socket, "a socket"),
            (dir.path(), "a directory"),
            (Path::new("/dev/zero"), "a device"),
        ] {
            let told = read_file(path, 10).unwrap_err();
            assert_eq!(
                told,
                format!("cannot be read: it is {kind}, not a regular file")
            );
        }
    }

    #[test]
    fn a_file_is_read_up_to_its_limit() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        std::fs::write(&path, "12345").unwrap();
        let link = dir.path().join("link");
        std::os::unix::fs::symlink(&path, &link).unwrap();
        assert_eq!(read_file(&link, 5).unwrap(), b"12345");
        assert!(read_file(&path, 4).unwrap_err().contains("larger than"));
    }
}
