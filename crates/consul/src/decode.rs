//! A JSON array that is decoded element by element while it comes in.
//!
//! A list of 20,000 checks is 12 MB of JSON. [`ArraySplitter`] takes it in
//! chunks of any size and hands out one element at a time, so that at most one
//! element is in memory. It checks only as much of JSON as it needs to find
//! the borders; whoever reads the element checks the rest.

use serde::de::DeserializeOwned;

/// An answer that is not a JSON array, or that ended before the array did.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{reason} (at byte {offset})")]
pub struct DecodeError {
    /// Where, in bytes from the start of the body.
    pub offset: u64,
    /// What is wrong there.
    pub reason: DecodeReason,
}

/// What is wrong with an answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DecodeReason {
    /// It starts with something else than an array.
    #[error("no list, but {found:?}")]
    NotAList {
        /// The first character.
        found: char,
    },
    /// The body ended early. What came before is not used: a short list would
    /// look as if something had been removed.
    #[error("the answer was cut")]
    Cut,
    /// A comma or bracket is missing or superfluous.
    #[error("{found:?} where {expected} is expected")]
    Unexpected {
        /// The character there.
        found: char,
        /// What should be there.
        expected: &'static str,
    },
    /// One element is larger than the limit.
    #[error("an element is larger than {limit} bytes")]
    ElementTooLarge {
        /// The limit in bytes.
        limit: usize,
    },
    /// One element is nested deeper than [`MAX_DEPTH`].
    #[error("an element is nested deeper than {MAX_DEPTH} levels")]
    TooDeep,
    /// One element is no JSON or has another shape.
    #[error("{0}")]
    Element(String),
}

/// The deepest nesting that is followed; `serde_json`'s own limit.
pub const MAX_DEPTH: usize = 127;

/// Splits one JSON array into its elements.
///
/// ```
/// use evenkeel_consul::decode::ArraySplitter;
///
/// let mut splitter = ArraySplitter::new(1024);
/// let mut elements = Vec::new();
/// for chunk in [&b"[{\"a\":"[..], b"1},", b"2]"] {
///     splitter.feed(chunk, |element| {
///         elements.push(String::from_utf8_lossy(element).into_owned());
///         Ok(())
///     })?;
/// }
/// splitter.finish()?;
/// assert_eq!(elements, [r#"{"a":1}"#, "2"]);
/// # Ok::<(), evenkeel_consul::decode::DecodeError>(())
/// ```
#[derive(Debug, Clone)]
pub struct ArraySplitter {
    limit: usize,
    state: State,
    /// The beginning of an element whose end has not come yet.
    partial: Vec<u8>,
    /// Bytes taken in before the current chunk.
    offset: u64,
    elements: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// Nothing but white space so far.
    Start,
    /// That many letters of `null` were read.
    Null(u8),
    /// After `[`: an element or `]`.
    First,
    /// After a comma: an element.
    Next,
    /// Inside an element.
    Element(Inside),
    /// After an element: a comma or `]`.
    Between,
    /// After the array: white space.
    End,
    /// An error was reported; it is reported again.
    Failed,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Inside {
    depth: u8,
    string: Str,
    /// A number, `true`, `false` or `null`: ends before the next delimiter.
    scalar: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Str {
    Outside,
    Within,
    Escape,
}

impl ArraySplitter {
    /// A splitter that takes elements of at most `limit` bytes.
    pub fn new(limit: usize) -> Self {
        Self {
            limit,
            state: State::Start,
            partial: Vec::new(),
            offset: 0,
            elements: 0,
        }
    }

    /// How many elements were handed out.
    pub fn elements(&self) -> u64 {
        self.elements
    }

    /// Takes the next part of the body and hands each element that ends in it
    /// to `each`, as JSON text without the white space around it.
    ///
    /// # Errors
    /// What is wrong, at the first place where something is; or the reason
    /// that `each` gives, placed at the start of the element. A splitter that
    /// failed stays failed.
    pub fn feed(
        &mut self,
        chunk: &[u8],
        mut each: impl FnMut(&[u8]) -> Result<(), String>,
    ) -> Result<(), DecodeError> {
        let result = self.split(chunk, &mut each);
        if result.is_err() {
            self.state = State::Failed;
            self.partial = Vec::new();
        }
        self.offset += chunk.len() as u64;
        result
    }

    /// The body has ended.
    ///
    /// # Errors
    /// [`DecodeReason::Cut`] unless the array has ended too.
    pub fn finish(self) -> Result<(), DecodeError> {
        match self.state {
            State::End => Ok(()),
            _ => Err(DecodeError {
                offset: self.offset,
                reason: DecodeReason::Cut,
            }),
        }
    }

    fn split(
        &mut self,
        chunk: &[u8],
        each: &mut dyn FnMut(&[u8]) -> Result<(), String>,
    ) -> Result<(), DecodeError> {
        let mut at = 0;
        while let Some(&byte) = chunk.get(at) {
            if let State::Element(inside) = self.state {
                let (used, next) = self.element(&chunk[at..], at, inside)?;
                let part = &chunk[at..at + used];
                if self.partial.len() + part.len() > self.limit {
                    let reason = DecodeReason::ElementTooLarge { limit: self.limit };
                    return Err(self.fail(at, reason));
                }
                at += used;
                match next {
                    Some(inside) => {
                        self.partial.extend_from_slice(part);
                        self.state = State::Element(inside);
                    }
                    None => {
                        let start =
                            (self.offset + at as u64) - (self.partial.len() + part.len()) as u64;
                        let outcome = if self.partial.is_empty() {
                            each(part)
                        } else {
                            self.partial.extend_from_slice(part);
                            let outcome = each(&self.partial);
                            self.partial.clear();
                            // One huge element must not keep its memory.
                            self.partial.shrink_to(64 << 10);
                            outcome
                        };
                        self.elements += 1;
                        self.state = State::Between;
                        outcome.map_err(|text| DecodeError {
                            offset: start,
                            reason: DecodeReason::Element(text),
                        })?;
                    }
                }
                continue;
            }
            let space = matches!(byte, b' ' | b'\t' | b'\n' | b'\r');
            if space && !matches!(self.state, State::Null(_)) {
                at += 1;
                continue;
            }
            self.state = match (self.state, byte) {
                (State::Start, b'[') => State::First,
                // Go's encoder writes `null` for an empty list.
                (State::Start, b'n') => State::Null(1),
                (State::Start, _) => {
                    return Err(self.fail(at, DecodeReason::NotAList { found: byte.into() }));
                }
                (State::Null(read), _) => {
                    let expected = b"null".get(usize::from(read)).copied();
                    match expected {
                        Some(letter) if letter == byte && read == 3 => State::End,
                        Some(letter) if letter == byte => State::Null(read + 1),
                        _ => return Err(self.unexpected(at, byte, "null")),
                    }
                }
                (State::First | State::Between, b']') => State::End,
                (State::Between, b',') => State::Next,
                (State::Between, _) => {
                    return Err(self.unexpected(at, byte, "a comma or the end of the list"));
                }
                (State::First | State::Next, b',' | b']' | b'}' | b':') => {
                    return Err(self.unexpected(at, byte, "an element"));
                }
                (State::First | State::Next, _) => {
                    // The element is entered without consuming its first byte.
                    self.state = State::Element(Inside {
                        depth: 0,
                        string: Str::Outside,
                        scalar: !matches!(byte, b'{' | b'[' | b'"'),
                    });
                    continue;
                }
                (State::End, _) => return Err(self.unexpected(at, byte, "the end")),
                (State::Failed, _) => return Err(self.fail(at, DecodeReason::Cut)),
                // Handled above.
                (State::Element(_), _) => continue,
            };
            at += 1;
        }
        Ok(())
    }

    /// How many bytes of `rest` belong to the element, and the state inside it
    /// if it goes on after them.
    fn element(
        &self,
        rest: &[u8],
        at: usize,
        mut inside: Inside,
    ) -> Result<(usize, Option<Inside>), DecodeError> {
        if inside.scalar {
            let end = rest
                .iter()
                .position(|byte| matches!(byte, b',' | b']' | b' ' | b'\t' | b'\n' | b'\r'));
            return Ok(match end {
                Some(end) => (end, None),
                None => (rest.len(), Some(inside)),
            });
        }
        for (index, byte) in rest.iter().enumerate() {
            match inside.string {
                Str::Escape => inside.string = Str::Within,
                Str::Within => match byte {
                    b'\\' => inside.string = Str::Escape,
                    b'"' => {
                        inside.string = Str::Outside;
                        if inside.depth == 0 {
                            return Ok((index + 1, None));
                        }
                    }
                    _ => {}
                },
                Str::Outside => match byte {
                    b'"' => inside.string = Str::Within,
                    b'{' | b'[' => {
                        inside.depth += 1;
                        if usize::from(inside.depth) > MAX_DEPTH {
                            return Err(self.fail(at + index, DecodeReason::TooDeep));
                        }
                    }
                    b'}' | b']' => {
                        inside.depth -= 1;
                        if inside.depth == 0 {
                            return Ok((index + 1, None));
                        }
                    }
                    _ => {}
                },
            }
        }
        Ok((rest.len(), Some(inside)))
    }

    fn fail(&self, at: usize, reason: DecodeReason) -> DecodeError {
        DecodeError {
            offset: self.offset + at as u64,
            reason,
        }
    }

    fn unexpected(&self, at: usize, byte: u8, expected: &'static str) -> DecodeError {
        self.fail(
            at,
            DecodeReason::Unexpected {
                found: byte.into(),
                expected,
            },
        )
    }
}

/// Reads one element of a list.
///
/// # Errors
/// What `serde_json` says, with the field and the place inside the element.
pub fn element<T: DeserializeOwned>(json: &[u8]) -> Result<T, String> {
    serde_json::from_slice(json).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::Value;

    fn split(chunks: &[&[u8]], limit: usize) -> Result<Vec<Value>, DecodeError> {
        let mut splitter = ArraySplitter::new(limit);
        let mut elements = Vec::new();
        for chunk in chunks {
            splitter.feed(chunk, |json| {
                elements.push(element::<Value>(json)?);
                Ok(())
            })?;
        }
        splitter.finish()?;
        Ok(elements)
    }

    fn whole(text: &str) -> Result<Vec<Value>, DecodeError> {
        split(&[text.as_bytes()], 1 << 20)
    }

    #[test]
    fn empty_lists_of_every_form() {
        for text in ["[]", " [ ] \n", "null", "\nnull\n"] {
            assert_eq!(whole(text).unwrap(), Vec::<Value>::new(), "{text}");
        }
    }

    #[test]
    fn a_cut_answer_is_an_error_wherever_it_is_cut() {
        let text = r#"[{"a":"]\"}"},[1,{"b":[]}],"x,]",-1.5e3,null,true ]"#;
        assert_eq!(whole(text).unwrap().len(), 6);
        for end in 0..text.len() {
            let error = whole(&text[..end]).unwrap_err();
            assert_eq!(error.reason, DecodeReason::Cut, "{}", &text[..end]);
        }
    }

    #[test]
    fn what_is_no_list_is_refused_with_its_place() {
        for (text, offset) in [
            ("{}", 0),
            (" <html>", 1),
            ("[1 2]", 3),
            ("[1,]", 3),
            ("[,1]", 1),
            ("[] x", 3),
            ("[1]]", 3),
            ("nul?", 3),
            ("n ull", 1),
            ("[{}{}]", 3),
        ] {
            assert_eq!(whole(text).unwrap_err().offset, offset, "{text}");
        }
    }

    #[test]
    fn garbage_inside_an_element_is_placed_at_the_element() {
        let error = whole(r#"[{"a":1}, {"a":nope}]"#).unwrap_err();
        assert_eq!(error.offset, 10);
        assert!(matches!(error.reason, DecodeReason::Element(_)), "{error}");
        assert!(whole("[01]").is_err());
        assert!(whole("[}]").is_err());
        assert!(whole("[[}]").is_err());
    }

    #[test]
    fn an_element_beyond_the_limit_is_refused_without_being_kept() {
        let mut splitter = ArraySplitter::new(1000);
        splitter.feed(b"[\"", |_| Ok(())).unwrap();
        let mut failed = None;
        // "Gigabyte body": a string that never ends.
        for round in 0..100_000 {
            if let Err(error) = splitter.feed(&[b'x'; 100], |_| Ok(())) {
                failed = Some((round, error.reason));
                break;
            }
            assert!(splitter.partial.len() <= 1000);
        }
        assert_eq!(
            failed,
            Some((9, DecodeReason::ElementTooLarge { limit: 1000 }))
        );
        assert!(splitter.feed(b"]", |_| Ok(())).is_err());
        assert!(splitter.finish().is_err());
    }

    #[test]
    fn endless_nesting_is_refused() {
        let text = "[".repeat(1_000_000);
        assert_eq!(whole(&text).unwrap_err().reason, DecodeReason::TooDeep);
        let deep = format!("[{}{}]", "[".repeat(MAX_DEPTH), "]".repeat(MAX_DEPTH));
        whole(&deep).unwrap();
    }

    fn json() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<f64>().prop_filter_map("finite", |f| f.is_finite().then(|| Value::from(f))),
            "[\\PC\"\\\\\\[\\]{},:\n]{0,12}".prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 40, 5, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
                prop::collection::btree_map("[\\PC\"\\\\]{0,6}", inner, 0..5)
                    .prop_map(|map| Value::Object(map.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn any_chunking_gives_the_elements_of_serde_json(
            elements in prop::collection::vec(json(), 0..6),
            pretty in any::<bool>(),
            cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..12),
        ) {
            let list = Value::from(elements.clone());
            let text = if pretty {
                serde_json::to_vec_pretty(&list).unwrap()
            } else {
                serde_json::to_vec(&list).unwrap()
            };
            // Floating numbers are compared after the same way through text.
            let expected: Vec<Value> = serde_json::from_slice(&text).unwrap();
            let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(text.len())).collect();
            cuts.extend([0, text.len()]);
            cuts.sort_unstable();
            let chunks: Vec<&[u8]> =
                cuts.windows(2).map(|pair| &text[pair[0]..pair[1]]).collect();
            prop_assert_eq!(split(&chunks, 1 << 20).unwrap(), expected);
        }

        #[test]
        fn what_is_accepted_is_what_serde_json_accepts(text in "[\\[\\]{},:\"\\\\a0-9ntrue -]{0,24}") {
            let slow = serde_json::from_str::<Option<Vec<Value>>>(&text);
            let fast = whole(&text);
            match slow {
                Ok(list) => prop_assert_eq!(fast.unwrap(), list.unwrap_or_default()),
                Err(_) => prop_assert!(fast.is_err(), "{}", text),
            }
        }

        #[test]
        fn garbage_never_panics(
            chunks in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..40), 0..6),
            limit in 0_usize..64,
        ) {
            let mut splitter = ArraySplitter::new(limit);
            for chunk in &chunks {
                let _ = splitter.feed(chunk, |json| element::<Value>(json).map(drop));
                prop_assert!(splitter.partial.len() <= limit);
            }
            let _ = splitter.finish();
        }
    }
}
