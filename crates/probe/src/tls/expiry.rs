//! How long the certificates that a server sent will be valid.

use std::time::{Duration, SystemTime};

use evenkeel_threshold::Status;
use rustls_pki_types::{CertificateDer, UnixTime};

use super::certificate::{Parsed, common_name};
use crate::definition::CertificateDays;
use crate::progress::{Expiry, Progress};
use crate::report::Certificate;

const DAY: i64 = 24 * 60 * 60;

/// The most certificates of a chain of which it is found out whether the chain
/// holds without them. A hostile server could send many.
const MAX_TRIALS: usize = 4;

/// What is asked of a chain.
#[derive(Clone, Copy)]
pub(super) struct Wanted {
    pub(super) days: CertificateDays,
    /// It has been verified.
    pub(super) verified: bool,
}

/// Tells `progress` when the certificates of `chain` end, and whether that is
/// too soon.
///
/// An intermediate certificate that has ended already was not needed, or the
/// chain would not have been accepted; one whose end makes a difference may
/// still not be: `holds_at` says whether the chain is accepted at a time.
/// (Servers send cross-signatures of roots that clients have long got.)
pub(super) fn look(
    chain: &[CertificateDer<'_>],
    Wanted { days, verified }: Wanted,
    now: u64,
    name: impl Fn() -> String,
    holds_at: impl Fn(u64) -> bool,
    progress: &mut Progress,
) {
    let Some(leaf) = chain.first().and_then(|first| Parsed::of(first)) else {
        if let Some(status) = days.worst() {
            let text = format!("when the certificate of {} ends cannot be read", name());
            progress.ends_soon(Expiry { status, text });
        }
        return;
    };
    let mut ends: Vec<(u64, usize)> = vec![(leaf.not_after, 0)];
    for (index, sent) in chain.iter().enumerate().skip(1) {
        if let Some(sent) = Parsed::of(sent)
            && sent.not_after < leaf.not_after
            && (!verified || sent.not_after >= now)
        {
            ends.push((sent.not_after, index));
        }
    }
    ends.sort_unstable();
    let mut first = (leaf.not_after, 0);
    for (trials, (end, index)) in ends.into_iter().enumerate() {
        first = (end, index);
        let makes_a_difference =
            index > 0 && verdict(days, left(end, now)) > verdict(days, left(leaf.not_after, now));
        if !makes_a_difference || !verified || trials == MAX_TRIALS {
            break;
        }
        if !holds_at(end + 1) {
            break;
        }
    }
    let (end, index) = first;
    let days_left = days_of(left(end, now));
    progress.saw(Certificate {
        not_after: time(leaf.not_after),
        chain_not_after: time(end),
        days_left,
    });
    let status = verdict(days, left(end, now));
    if status == Status::Passing {
        return;
    }
    let whose = match chain.get(index) {
        Some(sent) if index > 0 => {
            let parsed = Parsed::of(sent);
            let called = parsed.and_then(|parsed| common_name(parsed.subject));
            let called = called.map_or_else(String::new, |called| format!(" {called:?}"));
            format!("intermediate certificate{called} of {}", name())
        }
        _ => format!("certificate of {}", name()),
    };
    let text = format!("{whose} {}", ends_in(days_left));
    progress.ends_soon(Expiry { status, text });
}

/// When the first of all certificates ends; zero if that of one cannot be read.
pub(super) fn first_end(chain: &[CertificateDer<'_>]) -> u64 {
    let ends = chain.iter().map(|sent| Parsed::of(sent));
    ends.map(|sent| sent.map_or(0, |sent| sent.not_after))
        .min()
        .unwrap_or(0)
}

/// In seconds; negative when it has ended.
fn left(end: u64, now: u64) -> i64 {
    let seconds = |time: u64| i64::try_from(time).unwrap_or(i64::MAX);
    seconds(end).saturating_sub(seconds(now))
}

fn days_of(left: i64) -> i64 {
    left.div_euclid(DAY)
}

/// Whole days from `now` to `end`; negative when that was before.
pub(crate) fn days_left(end: SystemTime, now: UnixTime) -> i64 {
    let end = end.duration_since(SystemTime::UNIX_EPOCH);
    days_of(left(end.unwrap_or_default().as_secs(), now.as_secs()))
}

fn time(seconds: u64) -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs(seconds)
}

fn verdict(days: CertificateDays, left: i64) -> Status {
    let under = |days: Option<u32>| days.is_some_and(|days| left < i64::from(days) * DAY);
    if under(days.critical) {
        Status::Critical
    } else if under(days.warning) {
        Status::Warning
    } else {
        Status::Passing
    }
}

/// The end in words that change once a day.
pub(crate) fn ends_in(days_left: i64) -> String {
    match days_left {
        0 => "ends in less than a day".to_owned(),
        1 => "ends in 1 day".to_owned(),
        2.. => format!("ends in {days_left} days"),
        -1 => "ended less than a day ago".to_owned(),
        -2 => "ended 1 day ago".to_owned(),
        _ => format!("ended {} days ago", -1 - days_left),
    }
}
