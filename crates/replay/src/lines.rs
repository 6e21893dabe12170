//! Lines of bounded length, whatever ends them.

use std::io::{self, Read};
use std::ops::Range;

/// The longest line that is kept.
pub(crate) const LONGEST: usize = 64 << 10;

const BUFFER: usize = 4 * LONGEST;

/// Splits what is read at LF, CRLF and CR.
#[derive(Debug)]
pub(crate) struct Lines<R> {
    read: R,
    buffer: Box<[u8]>,
    /// What is read and not yet given out.
    start: usize,
    end: usize,
    /// Bytes from `start` on that hold no end of a line.
    scanned: usize,
    /// The line given out last, from 1 on.
    number: u64,
    /// It ended with a CR; an LF that follows belongs to it.
    after_cr: bool,
    ended: bool,
}

/// What was found; the bytes are got by [`Lines::bytes`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Line {
    Whole(Range<usize>),
    TooLong,
}

impl<R: Read> Lines<R> {
    pub(crate) fn new(read: R) -> Self {
        Self {
            read,
            buffer: vec![0; BUFFER].into(),
            start: 0,
            end: 0,
            scanned: 0,
            number: 0,
            after_cr: false,
            ended: false,
        }
    }

    /// The number of the line given out last.
    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    /// The bytes of a line that was just given out, without its end.
    pub(crate) fn bytes(&self, line: Range<usize>) -> &[u8] {
        &self.buffer[line]
    }

    /// The next line, until there are no more.
    pub(crate) fn next(&mut self) -> io::Result<Option<Line>> {
        let mut cut = false;
        loop {
            if self.after_cr && self.start < self.end {
                self.after_cr = false;
                self.start += usize::from(self.buffer[self.start] == b'\n');
            }
            let rest = &self.buffer[self.start..self.end];
            if let Some(at) = memchr::memchr2(b'\n', b'\r', &rest[self.scanned.min(rest.len())..]) {
                let length = self.scanned + at;
                self.after_cr = rest[length] == b'\r';
                return Ok(Some(self.give(length, length + 1, cut)));
            }
            self.scanned = rest.len();
            if self.scanned > LONGEST {
                // Its beginning is of no use without its end.
                cut = true;
                (self.start, self.end, self.scanned) = (0, 0, 0);
            }
            if !self.fill()? {
                let length = self.end - self.start;
                let any = cut || length > 0;
                return Ok(any.then(|| self.give(length, length, cut)));
            }
        }
    }

    fn give(&mut self, length: usize, taken: usize, cut: bool) -> Line {
        let line = self.start..self.start + length;
        self.start += taken;
        self.scanned = 0;
        self.number += 1;
        match cut || length > LONGEST {
            true => Line::TooLong,
            false => Line::Whole(line),
        }
    }

    /// Reads more; false at the end.
    fn fill(&mut self) -> io::Result<bool> {
        if self.ended {
            return Ok(false);
        }
        if self.start == self.end {
            (self.start, self.end) = (0, 0);
        } else if self.end == self.buffer.len() {
            self.buffer.copy_within(self.start..self.end, 0);
            (self.start, self.end) = (0, self.end - self.start);
        }
        loop {
            match self.read.read(&mut self.buffer[self.end..]) {
                Ok(read) => {
                    self.end += read;
                    self.ended = read == 0;
                    return Ok(read > 0);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Gives out as few bytes at once as it is told.
    struct Drops<'a>(&'a [u8], usize);

    impl Read for Drops<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let some = self.1.min(self.0.len()).min(buffer.len());
            let (head, rest) = self.0.split_at(some);
            buffer[..some].copy_from_slice(head);
            self.0 = rest;
            Ok(some)
        }
    }

    /// Each line's bytes, `None` for one that is too long.
    fn lines(text: &[u8], drops: usize) -> Vec<Option<Vec<u8>>> {
        let mut lines = Lines::new(Drops(text, drops));
        let mut found = Vec::new();
        while let Some(line) = lines.next().unwrap() {
            found.push(match line {
                Line::Whole(range) => Some(lines.bytes(range).to_vec()),
                Line::TooLong => None,
            });
            assert_eq!(lines.number(), found.len() as u64);
        }
        found
    }

    #[test]
    fn every_end_of_line_is_one() {
        let expected: Vec<Option<Vec<u8>>> = ["a", "", "b", "c"]
            .iter()
            .map(|line| Some(line.as_bytes().to_vec()))
            .collect();
        for text in [
            "a\n\nb\nc",
            "a\r\n\r\nb\r\nc\r\n",
            "a\r\rb\rc\r",
            "a\r\n\nb\rc\n",
        ] {
            for drops in [1, 2, 1000] {
                assert_eq!(lines(text.as_bytes(), drops), expected, "{text:?}");
            }
        }
        assert!(lines(b"", 1).is_empty());
    }

    #[test]
    fn a_line_too_long_is_skipped_and_the_next_one_read() {
        for (length, kept) in [
            (LONGEST, true),
            (LONGEST + 1, false),
            (BUFFER, false),
            (10 * BUFFER + 7, false),
        ] {
            let mut text = vec![b'x'; length];
            text.extend_from_slice(b"\r\nnext\n");
            for drops in [100, 4096, usize::MAX] {
                let found = lines(&text, drops);
                assert_eq!(found.len(), 2, "{length}");
                assert_eq!(found[0].is_some(), kept, "{length}");
                assert_eq!(found[1].as_deref(), Some(&b"next"[..]), "{length}");
            }
            let found = lines(&text[..length], usize::MAX);
            assert_eq!(found.len(), 1, "{length}");
            assert_eq!(found[0].is_some(), kept, "{length}");
        }
    }

    proptest! {
        #[test]
        fn lines_are_those_of_the_standard_library(
            text in "[ab\n]{0,60}",
            drops in 1_usize..9,
        ) {
            let expected: Vec<Option<Vec<u8>>> =
                text.lines().map(|line| Some(line.as_bytes().to_vec())).collect();
            prop_assert_eq!(lines(text.as_bytes(), drops), expected.clone());
            let windows = text.replace('\n', "\r\n");
            prop_assert_eq!(lines(windows.as_bytes(), drops), expected.clone());
            let old = text.replace('\n', "\r");
            prop_assert_eq!(lines(old.as_bytes(), drops), expected);
        }
    }
}
