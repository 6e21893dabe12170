//! The head of an answer.

use httparse::{Header, ParserConfig, Response, Status};

use super::body::Framing;

/// The most bytes of all heads of one answer together (interim ones included).
/// The head is kept in memory while it comes in, and 64 KiB is four times what
/// nginx and eight times what Apache accept of a request.
pub(super) const MAX_HEAD: usize = 64 * 1024;

/// Header fields that are parsed without an allocation.
const FEW: usize = 64;

#[derive(Debug, PartialEq, Eq)]
pub(super) struct Head {
    pub(super) code: u16,
    pub(super) reason: String,
    pub(super) location: Option<String>,
    pub(super) framing: Framing,
    /// The server does not end the connection after the answer (RFC 9112
    /// section 9.3).
    pub(super) persistent: bool,
}

/// Where the head ends: the offset behind its empty line. `from` is where an
/// earlier search of a shorter `bytes` stopped.
pub(super) fn end_of_head(bytes: &[u8], from: usize) -> Option<usize> {
    // An end that began before `from` has its last newline at or behind it.
    let from = from.saturating_sub(2);
    let mut rest = bytes.get(from..)?;
    let mut at = from;
    while let Some(newline) = rest.iter().position(|byte| *byte == b'\n') {
        at += newline + 1;
        rest = &rest[newline + 1..];
        match rest {
            [b'\n', ..] => return Some(at + 1),
            [b'\r', b'\n', ..] => return Some(at + 2),
            _ => {}
        }
    }
    None
}

/// Whether `bytes` can still become an HTTP/1 answer.
pub(super) fn may_be_http(bytes: &[u8]) -> bool {
    const START: &[u8] = b"HTTP/1.";
    let len = bytes.len().min(START.len());
    bytes[..len] == START[..len]
}

/// Reads a complete head.
///
/// What servers in the field send is taken with leniency (folded lines, blanks
/// before the colon, invalid fields); what decides how the answer ends is not.
pub(super) fn parse(bytes: &[u8]) -> Result<Head, String> {
    let mut few = [httparse::EMPTY_HEADER; FEW];
    match parse_with(bytes, &mut few) {
        Err(httparse::Error::TooManyHeaders) => {
            // A field takes at least four bytes: `a:\r\n` or `a:\n`.
            let mut many = vec![httparse::EMPTY_HEADER; bytes.len() / 3 + 1];
            parse_with(bytes, &mut many)
        }
        result => result,
    }
    .map_err(|error| malformed(bytes, &error.to_string()))?
}

fn parse_with<'b>(
    bytes: &'b [u8],
    headers: &mut [Header<'b>],
) -> Result<Result<Head, String>, httparse::Error> {
    let mut config = ParserConfig::default();
    config
        .allow_spaces_after_header_name_in_responses(true)
        .allow_obsolete_multiline_headers_in_responses(true)
        .allow_multiple_spaces_in_response_status_delimiters(true)
        .ignore_invalid_headers_in_responses(true);
    let mut response = Response::new(headers);
    match config.parse_response(&mut response, bytes)? {
        Status::Complete(_) => Ok(head_of(&response)),
        Status::Partial => Err(httparse::Error::Version),
    }
}

fn head_of(response: &Response<'_, '_>) -> Result<Head, String> {
    let code = response.code.unwrap_or_default();
    let reason = match response.reason {
        Some(reason) if !reason.is_empty() => reason.trim().to_owned(),
        _ => http::StatusCode::from_u16(code)
            .ok()
            .and_then(|code| code.canonical_reason())
            .unwrap_or_default()
            .to_owned(),
    };
    let mut location = None;
    let mut length: Option<u64> = None;
    let mut chunked = None;
    // Version 1.1; 1.0 has no such thing without being asked.
    let mut persistent = response.version == Some(1);
    for header in &*response.headers {
        let is = |name: &str| header.name.eq_ignore_ascii_case(name);
        if is("location") {
            location.get_or_insert_with(|| String::from_utf8_lossy(header.value).into_owned());
        } else if is("content-length") {
            length = Some(content_length(header.value, length)?);
        } else if is("transfer-encoding") {
            chunked = Some(is_chunked(header.value));
        } else if is("connection") {
            persistent &= !says_close(header.value);
        }
    }
    // RFC 9112 section 6.3.
    let framing = match (chunked, length) {
        (Some(true), _) => Framing::Chunked,
        (Some(false), _) | (None, None) => Framing::UntilClose,
        (None, Some(length)) => Framing::Length(length),
    };
    Ok(Head {
        code,
        reason,
        location,
        framing,
        persistent,
    })
}

/// One value, or the same one several times (RFC 9110 section 8.6).
fn content_length(value: &[u8], before: Option<u64>) -> Result<u64, String> {
    let text = String::from_utf8_lossy(value);
    let bad = || format!("bad Content-Length {:?}", crate::capture::excerpt(&text));
    let mut length = before;
    for part in text.split(',') {
        let part = part.trim();
        if part.is_empty() || !part.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(bad());
        }
        let part = part.parse().map_err(|_| bad())?;
        if length.is_some_and(|length| length != part) {
            return Err(bad());
        }
        length = Some(part);
    }
    length.ok_or_else(bad)
}

fn says_close(value: &[u8]) -> bool {
    value
        .split(|byte| *byte == b',')
        .any(|option| option.trim_ascii().eq_ignore_ascii_case(b"close"))
}

fn is_chunked(value: &[u8]) -> bool {
    let last = value
        .rsplit(|byte| *byte == b',')
        .next()
        .unwrap_or_default();
    last.trim_ascii().eq_ignore_ascii_case(b"chunked")
}

/// In Go's words, with the start of what came.
pub(super) fn malformed(bytes: &[u8], reason: &str) -> String {
    let line = bytes
        .split(|byte| *byte == b'\n')
        .next()
        .unwrap_or_default();
    let line = String::from_utf8_lossy(&line[..line.len().min(64)]);
    let line = line.trim_end();
    if reason.is_empty() {
        format!("malformed HTTP response {line:?}")
    } else {
        format!("malformed HTTP response {line:?}: {reason}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_fields_that_matter_are_found() {
        let head = parse(
            b"HTTP/1.1 302 Found\r\nlocation: /a\r\nLOCATION: /b\r\nContent-Length: 7, 7\r\n\r\n",
        );
        assert_eq!(
            head,
            Ok(Head {
                code: 302,
                reason: "Found".into(),
                location: Some("/a".into()),
                framing: Framing::Length(7),
                persistent: true,
            })
        );
    }

    proptest! {
        /// The model searches the whole from its start.
        #[test]
        fn the_end_of_a_head_is_found_however_it_comes_in(
            input in "[a\r\n]{0,20}",
            pieces in proptest::collection::vec(0..4_usize, 1..6),
        ) {
            let bytes = input.as_bytes();
            let model = (0..=bytes.len()).find(|end| {
                bytes[..*end].ends_with(b"\n\n") || bytes[..*end].ends_with(b"\n\r\n")
            });
            let mut have = 0;
            let mut sizes = pieces.iter().cycle();
            let found = loop {
                let searched = have;
                have = (have + sizes.next().map_or(1, |size| size + 1)).min(bytes.len());
                if let Some(end) = end_of_head(&bytes[..have], searched) {
                    break Some(end);
                }
                if have == bytes.len() {
                    break None;
                }
            };
            prop_assert_eq!(found, model);
        }

        #[test]
        fn any_bytes_are_a_head_or_a_fault_in_one_line(
            start in "(HTTP/1.1 [0-9]{3} )?",
            rest in proptest::collection::vec(any::<u8>(), 0..200),
        ) {
            let mut bytes = start.into_bytes();
            bytes.extend(rest);
            bytes.extend(b"\r\n\r\n");
            match parse(&bytes) {
                Ok(head) => prop_assert!(head.code <= 999),
                Err(fault) => prop_assert!(!fault.contains('\n'), "{}", fault),
            }
        }

        #[test]
        fn fields_in_any_number_are_counted(count in 0..300_usize) {
            let head = format!("HTTP/1.1 200 OK\r\n{}Content-Length: 5\r\n\r\n", "a:b\r\n".repeat(count));
            let head = parse(head.as_bytes());
            prop_assert_eq!(head.map(|head| head.framing), Ok(Framing::Length(5)));
        }
    }
}
