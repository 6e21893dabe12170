//! Bytes of a history, unpacked: what a file is, its first bytes say.

use std::fmt;
use std::io::{self, Cursor, Read};

/// Enough for every mark that is known.
const MARK: usize = 4;

type Marked<R> = io::Chain<Cursor<Vec<u8>>, R>;

/// Packed forms that are not read, and what unpacks them.
const OTHERS: [(&[u8], &str, &str); 5] = [
    (b"\x28\xb5\x2f\xfd", "zstd", "zstd -dc"),
    (b"\xfd7zX", "xz", "xz -dc"),
    (b"BZh", "bzip2", "bzip2 -dc"),
    (b"PK\x03\x04", "zip", "unzip -p"),
    (b"\x04\x22\x4d\x18", "lz4", "lz4 -dc"),
];

/// A plain or packed source, read as plain bytes.
pub(crate) enum Source<R> {
    Plain(Marked<R>),
    #[cfg(feature = "gzip")]
    Gzip(Box<flate2::bufread::MultiGzDecoder<io::BufReader<Marked<R>>>>),
}

impl<R: Read> Source<R> {
    pub(crate) fn new(mut read: R) -> Result<Self, ReadError> {
        let mut mark = Vec::with_capacity(MARK);
        // A pipe may give out one byte at a time.
        Read::by_ref(&mut read)
            .take(MARK as u64)
            .read_to_end(&mut mark)
            .map_err(ReadError::first)?;
        for (magic, name, unpack) in OTHERS {
            if mark.starts_with(magic) {
                return Err(ReadError::Packed { name, unpack });
            }
        }
        if mark.starts_with(&[0xff, 0xfe]) || mark.starts_with(&[0xfe, 0xff]) {
            return Err(ReadError::Utf16);
        }
        let gzip = mark.starts_with(&[0x1f, 0x8b]);
        let marked = Cursor::new(mark).chain(read);
        if !gzip {
            return Ok(Self::Plain(marked));
        }
        #[cfg(feature = "gzip")]
        {
            let buffered = io::BufReader::with_capacity(64 << 10, marked);
            let decoder = flate2::bufread::MultiGzDecoder::new(buffered);
            Ok(Self::Gzip(Box::new(decoder)))
        }
        #[cfg(not(feature = "gzip"))]
        Err(ReadError::Packed {
            name: "gzip",
            unpack: "gzip -dc",
        })
    }
}

impl<R: Read> Read for Source<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Plain(read) => read.read(buffer),
            #[cfg(feature = "gzip")]
            Self::Gzip(read) => read.read(buffer),
        }
    }
}

impl<R> fmt::Debug for Source<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Plain(_) => "Plain",
            #[cfg(feature = "gzip")]
            Self::Gzip(_) => "Gzip",
        })
    }
}

/// A history cannot be read, or not to its end.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReadError {
    /// Reading failed, or what is packed is damaged.
    #[error("after line {after_line}: {error}")]
    Io {
        /// The last line that could be read.
        after_line: u64,
        /// What failed.
        #[source]
        error: io::Error,
    },
    /// It is packed in a way that is not read here.
    #[error("packed with {name}, which is not read here: unpack it, e.g. `{unpack} FILE | …`")]
    Packed {
        /// The form.
        name: &'static str,
        /// The command that unpacks it to standard output.
        unpack: &'static str,
    },
    /// It is UTF-16.
    #[error("UTF-16, which is not read here: convert it to UTF-8, e.g. `iconv -f UTF-16 -t UTF-8`")]
    Utf16,
    /// The first line is a header that lacks a column.
    #[error(
        "line {line}: the header has no column for the {missing}; names that are known: {known}"
    )]
    Header {
        /// The line of the header.
        line: u64,
        /// `time`, `check` or `status`.
        missing: &'static str,
        /// What the column may be called.
        known: &'static str,
    },
    /// It is JSON, and the feature `json` is off.
    #[error("JSON, which this program is built without")]
    Json,
}

impl ReadError {
    fn first(error: io::Error) -> Self {
        Self::Io {
            after_line: 0,
            error,
        }
    }
}
