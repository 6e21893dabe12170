//! The DNS probe: a question to one server.

use std::hash::{BuildHasher as _, RandomState};
use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use evenkeel_threshold::Status;
use hickory_resolver::proto::op::{Edns, Message, MessageType, OpCode, Query};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use crate::connect::{addresses, connect};
use crate::datagram::{connect_any, failure};
use crate::definition::{ConnectOptions, DnsCheck, DnsTransport, Rcode};
use crate::fault::{Failure, describe};
use crate::kind::Kind;
use crate::prober::Shared;
use crate::progress::{Awaited, Progress};
use crate::report::{Phase, Report};

/// What a datagram may carry without being cut to pieces on the way (DNS flag
/// day 2020).
const MOST_DATAGRAM: u16 = 1232;

/// Records of an answer that are shown.
const MOST_SHOWN: usize = 16;

/// Bytes of one record that are shown.
const MOST_RECORD: usize = 200;

impl Kind for DnsCheck {
    fn timeout(&self) -> Duration {
        self.timeout()
    }

    fn target(&self) -> &str {
        self.server()
    }

    fn connect(&self) -> &ConnectOptions {
        self.connect()
    }

    async fn run(&self, shared: &Shared, progress: &mut Progress) -> Result<Report, Failure> {
        let question = Question::of(self)?;
        let datagram = match self.options().transport {
            DnsTransport::Tcp => None,
            DnsTransport::Udp => {
                let found = addresses(self.host(), self.port(), shared, progress).await?;
                Box::pin(question.ask_by_datagram(&found, progress)).await?
            }
        };
        let answer = match datagram {
            Some(answer) if !answer.metadata.truncation => answer,
            // The rest is to be had over TCP, or that was wanted from the start.
            _ => Box::pin(question.ask_over_tcp(self, shared, progress)).await?,
        };
        let (status, verdict) = judge(self, &answer);
        let (name, kind) = self.question();
        let text = format!("DNS {} {name} {kind}: {verdict}", self.server());
        Ok(Report {
            failed_phase: (status != Status::Passing).then_some(Phase::FirstByte),
            ..Report::observed(status, text)
        })
    }

    fn failed(&self, failure: Failure, progress: &Progress) -> Report {
        let (name, kind) = self.question();
        let text = format!("DNS {} {name} {kind}: {}", self.server(), failure.text);
        Report {
            failed_phase: Some(progress.phase()),
            ..Report::of(crate::kind::outcome_of(&failure), text)
        }
    }
}

struct Question {
    message: Message,
    bytes: Vec<u8>,
}

impl Question {
    fn of(check: &DnsCheck) -> Result<Self, Failure> {
        let (name, kind) = check.question();
        // Keyed anew for each question, so nobody can guess it.
        let id = u16::try_from(RandomState::new().hash_one(0_u8) & 0xffff).unwrap_or_default();
        let mut message = Message::new(id, MessageType::Query, OpCode::Query);
        message.metadata.recursion_desired = check.options().recursion;
        message.add_query(Query::query(name.clone(), kind));
        let mut edns = Edns::new();
        edns.set_max_payload(MOST_DATAGRAM);
        message.set_edns(edns);
        let bytes = message
            .to_vec()
            .map_err(|error| Failure::critical(format!("the question cannot be asked: {error}")))?;
        Ok(Self { message, bytes })
    }

    /// The answer, or `None` for bytes that are none to this question.
    fn answered_by(&self, bytes: &[u8]) -> Option<Message> {
        let answer = Message::from_vec(bytes).ok()?;
        let ours = answer.metadata.id == self.message.metadata.id
            && answer.metadata.message_type == MessageType::Response
            // A server that cannot read a question need not repeat it.
            && (answer.queries == self.message.queries || answer.queries.is_empty());
        ours.then_some(answer)
    }

    async fn ask_by_datagram(
        &self,
        addresses: &[SocketAddr],
        progress: &mut Progress,
    ) -> Result<Option<Message>, Failure> {
        progress.enter(Phase::FirstByte);
        let socket = connect_any(addresses, progress).await?;
        let peer = progress.address.unwrap_or(addresses[0]);
        socket
            .send(&self.bytes)
            .await
            .map_err(|error| failure(peer, &error, true))?;
        let mut bytes = vec![0; usize::from(MOST_DATAGRAM)];
        progress.waiting_for = Some(Awaited::Datagram);
        loop {
            let received = socket.recv(&mut bytes).await;
            let length = received.map_err(|error| failure(peer, &error, false))?;
            if let Some(answer) = self.answered_by(&bytes[..length]) {
                return Ok(Some(answer));
            }
            progress.waiting_for = Some(Awaited::AmongOthers);
        }
    }

    async fn ask_over_tcp(
        &self,
        check: &DnsCheck,
        shared: &Shared,
        progress: &mut Progress,
    ) -> Result<Message, Failure> {
        let mut stream = connect(
            check.host(),
            check.port(),
            &shared.policy,
            &*shared.resolver,
            progress,
        )
        .await?;
        progress.enter(Phase::FirstByte);
        let exchange = async {
            // RFC 1035 section 4.2.2; in one segment, as RFC 7766 section 8 asks.
            let length = u16::try_from(self.bytes.len()).unwrap_or(u16::MAX);
            let framed = [&length.to_be_bytes(), &*self.bytes].concat();
            stream.write_all(&framed).await?;
            let length = stream.read_u16().await?;
            let mut bytes = vec![0; usize::from(length)];
            stream.read_exact(&mut bytes).await?;
            Ok(bytes)
        };
        progress.waiting_for = Some(Awaited::Reply);
        let exchanged: io::Result<Vec<u8>> = exchange.await;
        let bytes = exchanged
            .map_err(|error| Failure::critical(format!("tcp: no answer: {}", describe(&error))))?;
        self.answered_by(&bytes)
            .ok_or_else(|| Failure::critical("tcp: what came is no answer to the question"))
    }
}

fn judge(check: &DnsCheck, answer: &Message) -> (Status, String) {
    let code = Rcode(answer.metadata.response_code.into());
    let (_, kind) = check.question();
    let mut records: Vec<String> = answer
        .answers
        .iter()
        .filter(|record| kind.is_any() || record.record_type() == kind)
        .map(|record| record.data.to_string())
        .collect();
    // Servers turn the order round.
    records.sort_unstable();
    let mut text = code.to_string();
    if records.is_empty() {
        text.push_str(", no records");
    } else {
        let shown: Vec<&str> = records
            .iter()
            .take(MOST_SHOWN)
            .map(|record| beginning(record))
            .collect();
        text.push_str(", ");
        text.push_str(&shown.join(", "));
        if records.len() > MOST_SHOWN {
            text = format!("{text} and {} more", records.len() - MOST_SHOWN);
        }
    }
    if code != check.rcode() {
        return (
            Status::Critical,
            format!("{text}: expected {}", check.rcode()),
        );
    }
    let least = usize::from(check.min_answers());
    if records.len() < least {
        return (
            Status::Critical,
            format!("{text}: expected {least} or more"),
        );
    }
    let same = |record: &str, expected: &str| {
        let record = record.strip_suffix('.').unwrap_or(record);
        record.eq_ignore_ascii_case(expected.trim().strip_suffix('.').unwrap_or(expected.trim()))
    };
    let missing = check
        .options()
        .expect
        .iter()
        .find(|expected| !records.iter().any(|record| same(record, expected)));
    match missing {
        Some(missing) => (Status::Critical, format!("{text}: {missing} is missing")),
        None => (Status::Passing, text),
    }
}

/// A record is one line, whatever is in it.
fn beginning(record: &str) -> &str {
    let line = record.split(['\n', '\r']).next().unwrap_or_default();
    let mut end = line.len().min(MOST_RECORD);
    while !line.is_char_boundary(end) {
        end -= 1;
    }
    &line[..end]
}
