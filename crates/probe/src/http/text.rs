//! The texts, as consul-esm has them: people parse them.

use super::expect::judge;
use super::status_of;
use crate::capture::{Captured, capture};
use crate::definition::HttpCheck;
use crate::fault::Failure;
use crate::kind::outcome_of;
use crate::progress::{Answer, BodyEnd, Progress};
use crate::report::{Phase, Report};

/// `HTTP <method> <url>: <code> <reason> Output: <body>`, and a mark when the
/// body is not all of it. `Some(Transfer)` if the body did not come to its end.
pub(super) fn answered(check: &HttpCheck, answer: &Answer, progress: &Progress) -> Report {
    let Answer {
        code,
        reason,
        body,
        length,
        end,
        ..
    } = answer;
    let shown = check.output_max_size() as usize;
    // More of the body may have been read than is shown.
    let end = match end {
        BodyEnd::Complete if body.len() > shown => &BodyEnd::Full,
        end => end,
    };
    let (status, fault) = match check.demands() {
        Some(demands) => judge(demands, answer, progress.elapsed()),
        None => (status_of(*code), None),
    };
    let expiry = progress.expiry().map(|expiry| &*expiry.text);
    let fault = match (fault.as_deref(), expiry) {
        (None, None) => String::new(),
        (Some(one), None) | (None, Some(one)) => format!(" ({one})"),
        (Some(fault), Some(expiry)) => format!(" ({fault}; {expiry})"),
    };
    let Captured { text, bytes } = capture(body, shown, *end != BodyEnd::Complete);
    let of = |length: u64| format!(" of {length}");
    let of = length.map_or_else(String::new, of);
    let mark = match end {
        BodyEnd::Complete => String::new(),
        BodyEnd::Full if length.is_none() => {
            format!(" [captured {bytes} bytes, the rest was not read]")
        }
        BodyEnd::Full => format!(" [captured {bytes}{of} bytes]"),
        BodyEnd::Broken(reason) => format!(" [captured {bytes}{of} bytes: {reason}]"),
        BodyEnd::Open => {
            format!(" [captured {bytes}{of} bytes: context deadline exceeded while reading body]")
        }
    };
    let output = [
        "HTTP ",
        check.method(),
        " ",
        check.url(),
        ": ",
        &code.to_string(),
        " ",
        reason,
        &fault,
        " Output: ",
        &text,
        &mark,
    ]
    .concat();
    let stopped = matches!(end, BodyEnd::Broken(_) | BodyEnd::Open);
    Report {
        failed_phase: stopped.then_some(Phase::Transfer),
        ..Report::observed(status, output)
    }
}

/// `Get "<url>": <cause>`, as Go's client has it; after a redirect it tells
/// where that led.
pub(super) fn failed(check: &HttpCheck, failure: &Failure, progress: &Progress) -> Report {
    let method = check.method();
    let mut verb = method.to_ascii_lowercase();
    if let Some(first) = verb.get_mut(..1) {
        first.make_ascii_uppercase();
    }
    let hop = match &progress.redirected_to {
        Some(url) => format!("redirected to {url}: "),
        None => String::new(),
    };
    let output = format!("{verb} \"{}\": {hop}{}", check.url(), failure.text);
    Report {
        failed_phase: Some(progress.phase()),
        ..Report::of(outcome_of(failure), output)
    }
}
