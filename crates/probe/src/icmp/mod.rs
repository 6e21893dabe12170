//! The ICMP probe: rounds of echoes over one socket per family.

mod line;
mod packet;

use std::hash::RandomState;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use evenkeel_threshold::Status;
use tokio::time::{Instant, sleep_until, timeout_at};

use self::line::{Answer, Line, Strays, order};
use crate::connect::addresses;
use crate::definition::{ConnectOptions, IcmpCheck, IcmpOptions};
use crate::fault::{Failure, connect_cause, describe};
use crate::kind::Kind;
use crate::prober::Shared;
use crate::progress::Progress;
use crate::report::{Cause, Phase, Report, RoundTrips};

/// A round without an answer lets the next one have a new datagram socket, and
/// by that a new identifier, if this one is as old: a firewall on the way may
/// keep a dead session for the old one (P130). Raw sockets have a new identifier
/// in each round.
const OLD: Duration = Duration::from_secs(30);

/// Said when there is no permission. Where it comes from does not matter to who
/// reads it: it is what has to be done on this machine.
const NO_PERMISSION: &str = "no permission for ICMP sockets: give the program CAP_NET_RAW, \
     or put its group into the range of the sysctl net.ipv4.ping_group_range";

/// Which sockets are used for ICMP echoes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "lowercase"))]
pub enum IcmpSockets {
    /// Raw ones, or datagram ones where raw ones are not permitted.
    #[default]
    Any,
    /// Raw ones, which need CAP_NET_RAW. Only they tell of echoes that could not
    /// be delivered.
    Raw,
    /// Datagram ones, which need the program's group in
    /// `net.ipv4.ping_group_range`.
    Datagram,
}

/// The sockets of a prober, opened when they are first needed.
pub(crate) struct Icmp {
    sockets: IcmpSockets,
    v4: Mutex<Option<Arc<Line>>>,
    v6: Mutex<Option<Arc<Line>>>,
    random: RandomState,
    strays: Arc<Strays>,
}

impl Icmp {
    pub(crate) fn new(sockets: IcmpSockets) -> Self {
        Self {
            sockets,
            v4: Mutex::default(),
            v6: Mutex::default(),
            random: RandomState::new(),
            strays: Arc::default(),
        }
    }

    /// Messages that belonged to no round.
    pub(crate) fn strays(&self) -> u64 {
        self.strays.count()
    }

    fn place(&self, v6: bool) -> std::sync::MutexGuard<'_, Option<Arc<Line>>> {
        let place = if v6 { &self.v6 } else { &self.v4 };
        place.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The socket of a family.
    fn line(&self, v6: bool) -> Result<Arc<Line>, Failure> {
        let mut place = self.place(v6);
        if let Some(line) = &*place
            && !line.is_dead()
        {
            return Ok(Arc::clone(line));
        }
        *place = None;
        for raw in order(self.sockets) {
            match Line::open(v6, *raw, &self.strays) {
                Ok(line) => return Ok(Arc::clone(place.insert(Arc::new(line)))),
                // The other kind may be permitted.
                Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {}
                Err(error) => {
                    return Err(Failure::unprobed(
                        connect_cause(&error, true).unwrap_or(Cause::System),
                        format!("ICMP socket: {}", describe(&error)),
                    ));
                }
            }
        }
        Err(Failure::unprobed(Cause::Permission, NO_PERMISSION))
    }

    /// A round over `line` had no answer at all.
    fn unanswered(&self, v6: bool, line: &Arc<Line>) {
        if line.opened.elapsed() < OLD {
            return;
        }
        let mut place = self.place(v6);
        if place.as_ref().is_some_and(|now| Arc::ptr_eq(now, line)) {
            *place = None;
        }
    }
}

impl Kind for IcmpCheck {
    fn timeout(&self) -> Duration {
        self.timeout()
    }

    fn target(&self) -> &str {
        self.target()
    }

    fn connect(&self) -> &ConnectOptions {
        self.connect()
    }

    async fn run(&self, shared: &Shared, progress: &mut Progress) -> Result<Report, Failure> {
        let found = Box::pin(addresses(self.host(), 0, shared, progress)).await?;
        progress.enter(Phase::FirstByte);
        // The first family that this machine has at all.
        let mut refused = None;
        for address in found {
            let target = on_this_machine(address.ip());
            progress.address = Some(address);
            match Box::pin(round(self, shared, target, progress)).await {
                Err(failure) if failure.cause == Some(Cause::NoRoute) => {
                    refused.get_or_insert(failure);
                }
                other => return other,
            }
        }
        Err(refused.unwrap_or_else(|| Failure::critical("no address")))
    }
}

async fn round(
    check: &IcmpCheck,
    shared: &Shared,
    target: IpAddr,
    progress: &Progress,
) -> Result<Report, Failure> {
    let v6 = target.is_ipv6();
    let options = check.options();
    let echoes = usize::from(options.echoes);
    let line = shared.icmp.line(v6)?;
    let mut round = line
        .round(target, options.payload.into(), echoes, &shared.icmp.random)
        .ok_or_else(|| Failure::unprobed(Cause::System, "too many rounds of echoes at once"))?;
    let mut tally = Tally::default();
    let mut next = Instant::now();
    for sequence in 0..u16::from(options.echoes) {
        // Answers to the earlier ones come meanwhile.
        while let Ok(Some(answer)) = timeout_at(next, round.answers.recv()).await {
            tally.take(answer);
        }
        sleep_until(next).await;
        tally.sent.push(Instant::now());
        if let Err(error) = round.send(sequence).await {
            match connect_cause(&error, true) {
                Some(cause) => {
                    let text = format!("ICMP echo {}: {}", check.target(), describe(&error));
                    return Err(Failure::unprobed(cause, text));
                }
                // The machine itself knows that nobody answers there.
                None => tally.refused(sequence, target, "host unreachable"),
            }
        }
        next += options.spacing;
    }
    while !tally.is_complete()
        && let Ok(Some(answer)) = timeout_at(progress.deadline, round.answers.recv()).await
    {
        tally.take(answer);
    }
    if tally.trips().is_none() {
        shared.icmp.unanswered(v6, &line);
    }
    let (status, verdict) = judge(options, &tally);
    let named = match check.host() {
        crate::definition::Host::Ip(_) => String::new(),
        crate::definition::Host::Name(_) => format!(" ({target})"),
    };
    let text = format!("ICMP echo {}{named}: {verdict}", check.target());
    Ok(Report {
        round_trips: Some(tally.round_trips()),
        failed_phase: tally.trips().is_none().then_some(Phase::FirstByte),
        ..Report::observed(status, text)
    })
}

/// The unspecified address leads to this machine, whose answers come from
/// loopback.
fn on_this_machine(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V4(v4) if v4.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(v6) if v6.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        // A socket of IPv6 cannot send to it.
        address => address.to_canonical(),
    }
}

/// What came of a round's echoes so far.
#[derive(Debug, Default)]
struct Tally {
    sent: Vec<Instant>,
    /// By sequence number; the first answer counts.
    took: Vec<(u16, Duration)>,
    refused: Vec<u16>,
    /// The first that said an echo could not be delivered, and why.
    why: Option<(IpAddr, &'static str)>,
}

impl Tally {
    fn take(&mut self, answer: Answer) {
        let Some(sent) = self.sent.get(usize::from(answer.sequence)) else {
            return;
        };
        match answer.undelivered {
            Some((from, why)) => self.refused(answer.sequence, from, why),
            None if self.took.iter().any(|(known, _)| *known == answer.sequence) => {}
            None => {
                let took = answer.at.saturating_duration_since(*sent);
                self.took.push((answer.sequence, took));
            }
        }
    }

    fn refused(&mut self, sequence: u16, from: IpAddr, why: &'static str) {
        if !self.refused.contains(&sequence) {
            self.refused.push(sequence);
        }
        self.why.get_or_insert((from, why));
    }

    /// Nothing more is to come.
    fn is_complete(&self) -> bool {
        (0_u16..).zip(&self.sent).all(|(sequence, _)| {
            self.refused.contains(&sequence)
                || self.took.iter().any(|(known, _)| *known == sequence)
        })
    }

    /// Shortest, average and longest; a round trip of zero is one, too (P058).
    fn trips(&self) -> Option<(Duration, Duration, Duration)> {
        let took = || self.took.iter().map(|(_, took)| *took);
        let count = u32::try_from(self.took.len()).ok()?;
        let average = took().sum::<Duration>().checked_div(count)?;
        Some((took().min()?, average, took().max()?))
    }

    fn round_trips(&self) -> RoundTrips {
        let count = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
        let trips = self.trips();
        RoundTrips {
            sent: count(self.sent.len()),
            answered: count(self.took.len()),
            shortest: trips.map(|(shortest, ..)| shortest),
            average: trips.map(|(_, average, _)| average),
            longest: trips.map(|(.., longest)| longest),
        }
    }
}

/// The worse of what the loss and the round trips mean.
fn judge(options: &IcmpOptions, tally: &Tally) -> (Status, String) {
    let (sent, answered) = (tally.sent.len(), tally.took.len());
    let lost = sent - answered;
    let loses = |share: u8| lost * 100 >= sent * usize::from(share);
    let average = tally.trips().map(|(_, average, _)| average);
    let exceeds = |limit: Option<Duration>| {
        limit.filter(|limit| average.is_some_and(|average| average > *limit))
    };
    let mut text = format!("{answered} of {sent} answered");
    if let Some((from, why)) = tally.why
        && lost > 0
    {
        text = format!("{text}, {from} says: {why}");
    }
    let duration = crate::duration::format;
    let (status, reason) = if loses(options.critical_loss) {
        let share = options.critical_loss;
        (Status::Critical, format!("critical from {share} % loss on"))
    } else if let Some(limit) = exceeds(options.critical_rtt) {
        let limit = duration(limit);
        (
            Status::Critical,
            format!("the average round trip is over {limit}"),
        )
    } else if let Some(share) = options.warning_loss.filter(|share| loses(*share)) {
        (Status::Warning, format!("warning from {share} % loss on"))
    } else if let Some(limit) = exceeds(options.warning_rtt) {
        let limit = duration(limit);
        (
            Status::Warning,
            format!("the average round trip is over {limit}"),
        )
    } else {
        return (Status::Passing, text);
    };
    if answered == 0 && tally.why.is_none() {
        return (status, format!("{text}: context deadline exceeded"));
    }
    (status, format!("{text}: {reason}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tally(sent: usize, took_ms: &[u64]) -> Tally {
        let now = Instant::now();
        Tally {
            sent: vec![now; sent],
            took: (0..)
                .zip(took_ms)
                .map(|(sequence, ms)| (sequence, Duration::from_millis(*ms)))
                .collect(),
            ..Tally::default()
        }
    }

    #[test]
    fn loss_and_round_trips_decide_and_the_worse_wins() {
        use Status::{Critical, Passing, Warning};
        let options = IcmpOptions {
            warning_loss: Some(20),
            critical_loss: 50,
            warning_rtt: Some(Duration::from_millis(100)),
            critical_rtt: Some(Duration::from_millis(300)),
            ..IcmpOptions::default()
        };
        for (sent, took, status) in [
            (5, &[1, 1, 1, 1, 1][..], Passing),
            (5, &[1, 1, 1, 1], Warning),
            (10, &[1; 9], Passing),
            (5, &[1, 1, 1], Warning),
            (4, &[1, 1], Critical),
            (5, &[], Critical),
            (2, &[100, 100], Passing),
            (2, &[100, 102], Warning),
            (2, &[1, 601], Critical),
            (5, &[500, 500, 500, 500], Critical),
        ] {
            assert_eq!(
                judge(&options, &tally(sent, took)).0,
                status,
                "{sent} {took:?}"
            );
        }
    }

    // P061
    #[test]
    fn by_default_one_answer_is_enough() {
        let options = IcmpOptions::default();
        let (status, text) = judge(&options, &tally(3, &[900]));
        assert_eq!((status, &*text), (Status::Passing, "1 of 3 answered"));
        let (status, text) = judge(&options, &tally(3, &[]));
        assert_eq!(status, Status::Critical);
        assert_eq!(text, "0 of 3 answered: context deadline exceeded");
    }

    // P058
    #[test]
    fn a_round_trip_of_zero_is_an_answer() {
        let tally = tally(1, &[0]);
        assert!(tally.is_complete());
        assert_eq!(judge(&IcmpOptions::default(), &tally).0, Status::Passing);
        assert_eq!(tally.round_trips().average, Some(Duration::ZERO));
    }

    #[test]
    fn a_second_answer_to_one_echo_counts_once_and_a_late_refusal_changes_nothing() {
        let mut tally = tally(2, &[]);
        let answer = |sequence, undelivered| Answer {
            sequence,
            at: Instant::now(),
            undelivered,
        };
        tally.take(answer(0, None));
        tally.take(answer(0, None));
        tally.take(answer(7, None));
        assert!(!tally.is_complete());
        tally.take(answer(
            1,
            Some((Ipv4Addr::LOCALHOST.into(), "host unreachable")),
        ));
        assert!(tally.is_complete());
        let (status, text) = judge(&IcmpOptions::default(), &tally);
        assert_eq!(status, Status::Passing);
        assert_eq!(text, "1 of 2 answered, 127.0.0.1 says: host unreachable");
    }
}
