//! Where a body ends, and what of it is kept.

use httparse::Status;

use crate::progress::{Answer, BodyEnd};

/// How the end of a body is told (RFC 9112 section 6.3).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Framing {
    /// There is no body.
    None,
    /// So many bytes.
    Length(u64),
    /// Chunks, the last of which is empty.
    Chunked,
    /// Up to the end of the connection.
    UntilClose,
}

/// A longer line for a chunk's size is an attack, not an extension.
const MAX_CHUNK_LINE: usize = 1024;

/// Takes a body in as it comes and keeps its first bytes.
#[derive(Debug)]
pub(super) struct Decoder {
    framing: Framing,
    /// Bytes of the body still to come, with `Length`; of the chunk, with
    /// `Chunked`.
    left: u64,
    /// Between chunks.
    expect: Expect,
    /// A chunk-size line that has not come whole.
    line: Vec<u8>,
    /// The body has ended by its own framing, and nothing came after it.
    ended_clean: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Expect {
    Size,
    Data,
    /// The line end after a chunk's data: this many bytes at most.
    LineEnd,
}

impl Decoder {
    pub(super) fn new(framing: Framing) -> Self {
        Self {
            framing,
            left: match framing {
                Framing::Length(length) => length,
                _ => 0,
            },
            expect: Expect::Size,
            line: Vec::new(),
            ended_clean: false,
        }
    }

    /// Whether the next answer on this connection would begin with the next byte.
    pub(super) fn ended_clean(&self) -> bool {
        self.ended_clean
    }

    /// Takes `input` in; `answer.end` is no longer `Open` once no more is
    /// needed. At most `limit` bytes are kept.
    pub(super) fn feed(&mut self, input: &[u8], answer: &mut Answer, limit: usize) {
        match self.framing {
            Framing::None => {
                self.ended_clean = input.is_empty();
                answer.end = BodyEnd::Complete;
            }
            Framing::UntilClose => {
                keep(input, answer, limit);
                if answer.body.len() >= limit {
                    answer.end = BodyEnd::Full;
                }
            }
            Framing::Length(length) => {
                let (input, rest) = self.take(input);
                keep(input, answer, limit);
                if answer.body.len() as u64 == length {
                    self.ended_clean = rest.is_empty();
                    answer.end = BodyEnd::Complete;
                } else if answer.body.len() >= limit {
                    answer.end = BodyEnd::Full;
                }
            }
            Framing::Chunked => self.feed_chunked(input, answer, limit),
        }
    }

    /// The connection has ended.
    pub(super) fn finish(&self, answer: &mut Answer) {
        if answer.end == BodyEnd::Open {
            answer.end = match self.framing {
                Framing::None | Framing::UntilClose => BodyEnd::Complete,
                Framing::Length(_) | Framing::Chunked => BodyEnd::Broken("unexpected EOF".into()),
            };
        }
    }

    /// Splits off what belongs to the body or chunk that runs.
    fn take<'a>(&mut self, input: &'a [u8]) -> (&'a [u8], &'a [u8]) {
        let len = usize::try_from(self.left).map_or(input.len(), |left| left.min(input.len()));
        self.left -= len as u64;
        input.split_at(len)
    }

    fn feed_chunked(&mut self, mut input: &[u8], answer: &mut Answer, limit: usize) {
        while answer.end == BodyEnd::Open {
            match self.expect {
                Expect::Size => {
                    let Some((line, rest)) = self.line(input) else {
                        if self.line.len() > MAX_CHUNK_LINE {
                            answer.end = BodyEnd::Broken("malformed chunked encoding".into());
                        } else if answer.body.len() >= limit {
                            answer.end = BodyEnd::Full;
                        }
                        return;
                    };
                    match httparse::parse_chunk_size(&line) {
                        Ok(Status::Complete((_, 0))) => {
                            // Trailers, or an end that is still on its way, are not waited for.
                            self.ended_clean = matches!(rest, b"\r\n" | b"\n");
                            answer.end = BodyEnd::Complete;
                        }
                        Ok(Status::Complete((_, size))) => {
                            if answer.body.len() >= limit {
                                answer.end = BodyEnd::Full;
                            }
                            self.left = size;
                            self.expect = Expect::Data;
                        }
                        Ok(Status::Partial) | Err(_) => {
                            answer.end = BodyEnd::Broken("malformed chunked encoding".into());
                        }
                    }
                    input = rest;
                }
                Expect::Data => {
                    if input.is_empty() {
                        return;
                    }
                    let (data, rest) = self.take(input);
                    let room = limit.saturating_sub(answer.body.len());
                    keep(data, answer, limit);
                    if data.len() > room || (self.left > 0 && answer.body.len() >= limit) {
                        answer.end = BodyEnd::Full;
                    }
                    if self.left == 0 {
                        self.expect = Expect::LineEnd;
                    }
                    input = rest;
                }
                Expect::LineEnd => match input {
                    [] => {
                        // Nothing tells yet whether this was the last chunk; do not wait for it.
                        if answer.body.len() >= limit {
                            answer.end = BodyEnd::Full;
                        }
                        return;
                    }
                    [b'\r', rest @ ..] => input = rest,
                    [b'\n', rest @ ..] => {
                        self.expect = Expect::Size;
                        input = rest;
                    }
                    _ => answer.end = BodyEnd::Broken("malformed chunked encoding".into()),
                },
            }
        }
    }

    /// The next line with its end, once it is there.
    fn line<'a>(&mut self, input: &'a [u8]) -> Option<(Vec<u8>, &'a [u8])> {
        match input.iter().position(|byte| *byte == b'\n') {
            Some(newline) => {
                let (line, rest) = input.split_at(newline + 1);
                self.line.extend_from_slice(line);
                Some((std::mem::take(&mut self.line), rest))
            }
            None => {
                self.line.extend_from_slice(input);
                None
            }
        }
    }
}

/// Keeps of `input` what still has room.
fn keep(input: &[u8], answer: &mut Answer, limit: usize) {
    let room = limit.saturating_sub(answer.body.len());
    answer
        .body
        .extend_from_slice(&input[..input.len().min(room)]);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Feeds `input` in pieces of the given sizes, in turn.
    fn fed(framing: Framing, input: &[u8], pieces: &[usize], limit: usize) -> Answer {
        let mut decoder = Decoder::new(framing);
        let mut answer = Answer {
            length: match framing {
                Framing::Length(length) => Some(length),
                _ => None,
            },
            ..Answer::default()
        };
        let mut rest = input;
        let mut sizes = pieces.iter().cycle();
        decoder.feed(&[], &mut answer, limit);
        while answer.end == BodyEnd::Open && !rest.is_empty() {
            let size = sizes
                .next()
                .map_or(rest.len(), |size| (*size).min(rest.len()));
            let (piece, after) = rest.split_at(size);
            decoder.feed(piece, &mut answer, limit);
            rest = after;
        }
        decoder.finish(&mut answer);
        answer
    }

    fn in_chunks(body: &[u8], sizes: &[usize]) -> Vec<u8> {
        let mut coded = Vec::new();
        let mut rest = body;
        let mut sizes = sizes.iter().cycle();
        while !rest.is_empty() {
            let size = sizes
                .next()
                .map_or(rest.len(), |size| (*size).min(rest.len()));
            let (chunk, after) = rest.split_at(size);
            coded.extend(format!("{size:X};name=\"value\"\r\n").into_bytes());
            coded.extend_from_slice(chunk);
            coded.extend(b"\r\n");
            rest = after;
        }
        coded.extend(b"0\r\n\r\n");
        coded
    }

    proptest! {
        #[test]
        fn whatever_the_pieces_the_start_of_the_body_is_kept(
            body in proptest::collection::vec(any::<u8>(), 0..300),
            chunks in proptest::collection::vec(1..50_usize, 1..5),
            pieces in proptest::collection::vec(1..50_usize, 1..5),
            limit in 1..400_usize,
        ) {
            let kept = &body[..body.len().min(limit)];
            let length = body.len() as u64;
            for (framing, coded) in [
                (Framing::Length(length), body.clone()),
                (Framing::UntilClose, body.clone()),
                (Framing::Chunked, in_chunks(&body, &chunks)),
            ] {
                let answer = fed(framing, &coded, &pieces, limit);
                prop_assert_eq!(&answer.body, kept, "{:?}", framing);
                if body.len() < limit {
                    prop_assert_eq!(&answer.end, &BodyEnd::Complete, "{:?}", framing);
                }
                if body.len() > limit {
                    prop_assert_eq!(&answer.end, &BodyEnd::Full, "{:?}", framing);
                }
            }
        }

        #[test]
        fn a_body_that_ends_early_is_broken(
            body in proptest::collection::vec(any::<u8>(), 1..100),
            cut in any::<proptest::sample::Index>(),
        ) {
            let length = Framing::Length(body.len() as u64);
            let short = fed(length, &body[..cut.index(body.len())], &[7], 1000);
            prop_assert!(matches!(short.end, BodyEnd::Broken(_)), "{:?}", short);
            let coded = in_chunks(&body, &[9]);
            // Without the last chunk's size line.
            let short = fed(Framing::Chunked, &coded[..cut.index(coded.len() - 4)], &[7], 1000);
            prop_assert!(matches!(short.end, BodyEnd::Broken(_)), "{:?}", short);
        }

        #[test]
        fn any_bytes_keep_memory_bounded(
            input in proptest::collection::vec(any::<u8>(), 0..3000),
            pieces in proptest::collection::vec(1..800_usize, 1..4),
            limit in 1..100_usize,
        ) {
            let answer = fed(Framing::Chunked, &input, &pieces, limit);
            prop_assert!(answer.body.len() <= limit);
            prop_assert!(answer.end != BodyEnd::Open);
        }
    }
}
