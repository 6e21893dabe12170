use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

/// A file that lines are added to. When a line would take it past `max_bytes`
/// it is renamed to `NAME.1`, `NAME.1` to `NAME.2` and so on up to `NAME.KEEP`,
/// and a new one is begun.
#[derive(Debug)]
pub struct RotatingFile {
    path: PathBuf,
    file: File,
    size: u64,
    max_bytes: u64,
    keep: u32,
}

impl RotatingFile {
    /// Opens or makes the file at `path`. `max_bytes` 0 means that it never
    /// rotates; `keep` 0 that an old file is not kept.
    ///
    /// A last line without an end, which is what a crash leaves, is ended, so
    /// that the next line is whole.
    ///
    /// # Errors
    ///
    /// When the file cannot be opened or made.
    pub fn open(path: &Path, max_bytes: u64, keep: u32) -> io::Result<Self> {
        let mut file = OpenOptions::new()
            .create(true)
            .read(true)
            .append(true)
            .open(path)?;
        let mut size = file.seek(SeekFrom::End(0))?;
        if size > 0 {
            file.seek(SeekFrom::End(-1))?;
            let mut last = [0];
            file.read_exact(&mut last)?;
            if last != *b"\n" {
                file.write_all(b"\n")?;
                size += 1;
            }
        }
        Ok(Self {
            path: path.to_owned(),
            file,
            size,
            max_bytes,
            keep,
        })
    }

    /// Adds `lines`, whole and ended, in one write.
    ///
    /// # Errors
    ///
    /// What the file system says. After an error the file may end in a part of
    /// a line; open it again.
    pub fn write(&mut self, lines: &[u8]) -> io::Result<()> {
        let added = lines.len() as u64;
        if self.max_bytes > 0 && self.size > 0 && self.size + added > self.max_bytes {
            self.rotate()?;
        }
        self.file.write_all(lines)?;
        self.size += added;
        Ok(())
    }

    fn rotate(&mut self) -> io::Result<()> {
        if self.keep == 0 {
            fs::remove_file(&self.path)?;
        } else {
            for nth in (1..self.keep).rev() {
                ignore_missing(fs::rename(self.numbered(nth), self.numbered(nth + 1)))?;
            }
            ignore_missing(fs::rename(&self.path, self.numbered(1)))?;
        }
        *self = Self::open(&self.path, self.max_bytes, self.keep)?;
        Ok(())
    }

    fn numbered(&self, nth: u32) -> PathBuf {
        let mut name = self.path.clone().into_os_string();
        name.push(format!(".{nth}"));
        name.into()
    }
}

fn ignore_missing(result: io::Result<()>) -> io::Result<()> {
    match result {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(path: &Path, suffix: &str) -> Option<String> {
        let mut name = path.to_owned().into_os_string();
        name.push(suffix);
        fs::read_to_string(PathBuf::from(name)).ok()
    }

    // P072
    #[test]
    fn rotates_by_size_and_keeps_so_many() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("events.jsonl");
        let mut file = RotatingFile::open(&path, 10, 2).unwrap();
        for line in [
            "one\n", "two\n", "three\n", "four\n", "five\n", "six\n", "seven\n",
        ] {
            file.write(line.as_bytes()).unwrap();
        }
        assert_eq!(read(&path, "").unwrap(), "six\nseven\n");
        assert_eq!(read(&path, ".1").unwrap(), "four\nfive\n");
        assert_eq!(read(&path, ".2").unwrap(), "three\n");
        assert_eq!(read(&path, ".3"), None);
    }

    #[test]
    fn a_line_larger_than_the_limit_is_still_written_whole() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("events.jsonl");
        let mut file = RotatingFile::open(&path, 3, 1).unwrap();
        file.write(b"longer\n").unwrap();
        assert_eq!(read(&path, "").unwrap(), "longer\n");
        assert_eq!(read(&path, ".1"), None);
    }

    #[test]
    fn a_torn_last_line_does_not_swallow_the_next() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("events.jsonl");
        fs::write(&path, "whole\nto").unwrap();
        let mut file = RotatingFile::open(&path, 0, 0).unwrap();
        file.write(b"next\n").unwrap();
        assert_eq!(read(&path, "").unwrap(), "whole\nto\nnext\n");
    }

    #[test]
    fn keep_zero_begins_anew() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("events.jsonl");
        let mut file = RotatingFile::open(&path, 4, 0).unwrap();
        file.write(b"one\n").unwrap();
        file.write(b"two\n").unwrap();
        assert_eq!(read(&path, "").unwrap(), "two\n");
        assert_eq!(read(&path, ".1"), None);
    }
}
