//! Whether an answer is as expected.

use std::time::Duration;

use evenkeel_threshold::Status;

use super::status_of;
use crate::capture::excerpt;
use crate::definition::Demands;
use crate::duration;
use crate::progress::{Answer, BodyEnd};

/// How much of a body is read when something is expected of it, in bytes. What
/// comes later is not looked at.
pub(super) const READ_FOR_DEMANDS: usize = 1024 * 1024;

/// The status, and what is not as expected.
pub(super) fn judge(
    demands: &Demands,
    answer: &Answer,
    took: Duration,
) -> (Status, Option<String>) {
    let critical = |text| (Status::Critical, Some(text));
    let given = &demands.given;
    let mut status = status_of(answer.code);
    if !demands.status.is_empty() {
        let expected = &given.status;
        if !demands
            .status
            .iter()
            .any(|range| range.contains(&answer.code))
        {
            return critical(format!("the status is not of {expected}"));
        }
        status = Status::Passing;
    }
    if let Some(text) = header_fault(demands, answer).or_else(|| body_fault(demands, answer)) {
        return critical(text);
    }
    let over = |limit: Duration| !limit.is_zero() && took > limit;
    let slow = |limit| format!("took longer than {}", duration::format(limit));
    if over(given.critical_after) {
        return critical(slow(given.critical_after));
    }
    if over(given.warning_after) && status == Status::Passing {
        return (Status::Warning, Some(slow(given.warning_after)));
    }
    (status, None)
}

fn header_fault(demands: &Demands, answer: &Answer) -> Option<String> {
    let head = answer.head.as_ref().map_or(&[][..], |head| &head.0);
    demands.headers.iter().find_map(|(name, pattern)| {
        let mut values = values(head, name).peekable();
        if values.peek().is_none() {
            return Some(format!("there is no header {name}"));
        }
        let fits = values.any(|value| pattern.is_match(value));
        (!fits).then(|| format!("the header {name} does not match \"{}\"", pattern.as_str()))
    })
}

/// The values of a field in a head that has been parsed before.
fn values<'a>(head: &'a [u8], name: &'a str) -> impl Iterator<Item = &'a [u8]> {
    head.split(|byte| *byte == b'\n')
        .skip(1)
        .filter_map(move |line| {
            let colon = line.iter().position(|byte| *byte == b':')?;
            let (field, value) = line.split_at(colon);
            let is_it = field.trim_ascii().eq_ignore_ascii_case(name.as_bytes());
            is_it.then(|| value[1..].trim_ascii())
        })
}

fn body_fault(demands: &Demands, answer: &Answer) -> Option<String> {
    if !demands.reads_body() {
        return None;
    }
    let body = &answer.body;
    let cut = match &answer.end {
        BodyEnd::Complete => "",
        BodyEnd::Full => " in its first MiB",
        BodyEnd::Broken(_) | BodyEnd::Open => {
            return Some("the body did not come whole".to_owned());
        }
    };
    if let Some(pattern) = &demands.body
        && !pattern.is_match(body)
    {
        let pattern = pattern.as_str();
        return Some(format!("the body does not match \"{pattern}\"{cut}"));
    }
    if let Some(pattern) = &demands.not_body
        && pattern.is_match(body)
    {
        return Some(format!("the body matches \"{}\"", pattern.as_str()));
    }
    if demands.given.json.is_empty() {
        return None;
    }
    // The parser refuses nesting deeper than 128, so a hostile body cannot exhaust the stack.
    let Ok(json) = serde_json::from_slice::<serde_json::Value>(body) else {
        return Some(format!("the body is no JSON{cut}"));
    };
    demands.given.json.iter().find_map(|(pointer, expected)| {
        let Some(found) = json.pointer(pointer) else {
            return Some(format!("the JSON has nothing at {pointer}"));
        };
        let found = match found {
            serde_json::Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        let shown = excerpt(&found);
        (found != *expected)
            .then(|| format!("the JSON has {shown:?} at {pointer}, not {expected:?}"))
    })
}
