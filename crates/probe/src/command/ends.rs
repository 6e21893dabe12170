use std::collections::VecDeque;

use crate::capture::capture;

/// The beginning and the end of an output of any length. Reading goes on past
/// the limit: a command that cannot write would wait, and what it says last,
/// an error for instance, is not to be lost.
#[derive(Debug)]
pub(crate) struct Ends {
    head: Vec<u8>,
    tail: VecDeque<u8>,
    /// The most bytes of either.
    half: usize,
    left_out: u64,
}

impl Ends {
    /// Keeps about `limit` bytes.
    pub(crate) fn new(limit: usize) -> Self {
        Self {
            head: Vec::new(),
            tail: VecDeque::new(),
            half: (limit / 2).max(1),
            left_out: 0,
        }
    }

    pub(crate) fn push(&mut self, bytes: &[u8]) {
        let to_head = bytes.len().min(self.half - self.head.len());
        let (head, rest) = bytes.split_at(to_head);
        self.head.extend_from_slice(head);
        let (skipped, rest) = rest.split_at(rest.len().saturating_sub(self.half));
        let room = self.half - rest.len();
        let dropped = self.tail.len().saturating_sub(room);
        self.tail.drain(..dropped);
        self.tail.extend(rest);
        // No output is that long; a count that stops is better than one that starts anew.
        let lost = (skipped.len() + dropped) as u64;
        self.left_out = self.left_out.saturating_add(lost);
    }

    /// What was kept, with a mark where something is left out.
    pub(crate) fn text(&self) -> String {
        let tail: Vec<u8> = self.tail.iter().copied().collect();
        if self.left_out == 0 {
            let all = [self.head.as_slice(), &tail].concat();
            return capture(&all, all.len(), false).text.into_owned();
        }
        // A character that was cut is left out on both sides of the mark.
        let head = capture(&self.head, self.head.len(), true);
        let rest_of_one = tail.iter().take(3).take_while(|byte| *byte & 0xc0 == 0x80);
        let rest_of_one = rest_of_one.count();
        let cut = self.head.len() - head.bytes + rest_of_one;
        format!(
            "{}\n[{} bytes left out]\n{}",
            head.text,
            self.left_out.saturating_add(cut as u64),
            String::from_utf8_lossy(tail.get(rest_of_one..).unwrap_or_default())
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn of(limit: usize, chunks: &[&str]) -> Ends {
        let mut ends = Ends::new(limit);
        for chunk in chunks {
            ends.push(chunk.as_bytes());
        }
        ends
    }

    #[test]
    fn a_short_output_is_kept_as_it_is() {
        assert_eq!(of(8, &[]).text(), "");
        assert_eq!(of(8, &["abc", "defgh"]).text(), "abcdefgh");
    }

    // P101
    #[test]
    fn of_a_long_output_the_beginning_and_the_end_are_kept() {
        let text = of(8, &["abcd", "efgh", "i", "jklmnop"]).text();
        assert_eq!(text, "abcd\n[8 bytes left out]\nmnop");
        let text = of(8, &["abcdefghijklmnop"]).text();
        assert_eq!(text, "abcd\n[8 bytes left out]\nmnop");
    }

    #[test]
    fn characters_that_are_cut_are_left_out() {
        let text = of(8, &["abcé", "xxxxxx", "éfgh"]).text();
        assert_eq!(text, "abc\n[10 bytes left out]\nfgh");
    }

    proptest! {
        /// The model keeps everything.
        #[test]
        fn the_ends_are_those_of_the_whole(
            chunks in proptest::collection::vec("[a-z]{0,20}", 0..12),
            half in 1..30_usize,
        ) {
            let mut ends = Ends::new(2 * half);
            for chunk in &chunks {
                ends.push(chunk.as_bytes());
            }
            let whole = chunks.concat();
            let model = if whole.len() <= 2 * half {
                whole
            } else {
                let left_out = whole.len() - 2 * half;
                let (head, tail) = (&whole[..half], &whole[whole.len() - half..]);
                format!("{head}\n[{left_out} bytes left out]\n{tail}")
            };
            prop_assert_eq!(ends.text(), model);
        }
    }
}
