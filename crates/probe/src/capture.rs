//! What is kept of a text from outside.

use std::borrow::Cow;

/// The start of a body as text.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Captured<'a> {
    pub(crate) text: Cow<'a, str>,
    /// How many bytes of the body `text` stands for.
    pub(crate) bytes: usize,
}

/// The first `limit` bytes of `body` as text, not cut within a character
/// (P085). `more` says that more followed, so that a character that is not
/// whole at the end was cut and is left out. Other bytes that are no UTF-8 are
/// replaced by U+FFFD; the text is no longer than `limit` with them either.
pub(crate) fn capture(body: &[u8], limit: usize, more: bool) -> Captured<'_> {
    let cut = body.len() > limit;
    let mut kept = &body[..body.len().min(limit)];
    if more || cut {
        kept = without_partial_character(kept);
    }
    let mut text = String::from_utf8_lossy(kept);
    if text.len() > limit {
        let mut end = limit;
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        text.to_mut().truncate(end);
    }
    Captured {
        bytes: kept.len(),
        text,
    }
}

fn without_partial_character(bytes: &[u8]) -> &[u8] {
    // A character has at most four bytes: only the last three can be the start of one.
    let from = bytes.len().saturating_sub(3);
    let Some(start) = bytes[from..].iter().rposition(|byte| byte & 0xc0 == 0xc0) else {
        return bytes;
    };
    let start = from + start;
    match std::str::from_utf8(&bytes[start..]) {
        Err(error) if error.valid_up_to() == 0 && error.error_len().is_none() => &bytes[..start],
        _ => bytes,
    }
}

/// The start of a text that a peer sent, for an error message.
pub(crate) fn excerpt(text: &str) -> &str {
    const MAX: usize = 100;
    let mut end = text.len().min(MAX);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

/// The start of a text that a peer sent, on one line.
pub(crate) fn line(text: &str) -> Cow<'_, str> {
    let start = excerpt(text.trim());
    if start.contains(char::is_control) {
        start.replace(char::is_control, " ").into()
    } else {
        start.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_character_across_the_limit_is_left_out() {
        // P085
        let body = format!("{}é and more", "x".repeat(4095));
        let captured = capture(body.as_bytes(), 4096, false);
        assert_eq!(captured.bytes, 4095);
        assert_eq!(captured.text, "x".repeat(4095));
    }

    #[test]
    fn a_whole_character_at_the_limit_stays() {
        let body = format!("{}é", "x".repeat(4094));
        let captured = capture(body.as_bytes(), 4096, true);
        assert_eq!(captured.bytes, 4096);
        assert!(captured.text.ends_with('é'));
    }

    #[test]
    fn bytes_that_are_no_text_are_replaced_and_do_not_lengthen_it() {
        let captured = capture(&[0xff; 5000], 4096, false);
        assert_eq!(captured.bytes, 4096);
        assert_eq!(captured.text, "\u{fffd}".repeat(4096 / 3));
        assert_eq!(capture(b"a\xffb", 10, false).text, "a\u{fffd}b");
        // The end of a complete body, so nothing was cut.
        assert_eq!(capture(b"a\xc3", 10, false).text, "a\u{fffd}");
        assert_eq!(capture(b"a\xc3", 10, true).text, "a");
    }

    proptest! {
        /// The model: the longest prefix of whole characters within the limit.
        #[test]
        fn a_valid_text_is_cut_at_the_last_character_that_fits(text in "\\PC{0,40}", limit in 1..60_usize) {
            let mut model = String::new();
            for c in text.chars() {
                if model.len() + c.len_utf8() > limit {
                    break;
                }
                model.push(c);
            }
            let captured = capture(text.as_bytes(), limit, false);
            prop_assert_eq!(captured.bytes, model.len());
            prop_assert_eq!(captured.text, model);
        }

        #[test]
        fn any_bytes_give_a_text_within_the_limit(body: Vec<u8>, limit in 0..300_usize, more: bool) {
            let captured = capture(&body, limit, more);
            prop_assert!(captured.text.len() <= limit);
            prop_assert!(captured.bytes <= body.len().min(limit));
        }

        #[test]
        fn an_excerpt_is_short_and_a_prefix(text in "\\PC{0,200}") {
            prop_assert!(excerpt(&text).len() <= 100);
            prop_assert!(text.starts_with(excerpt(&text)));
        }
    }
}
