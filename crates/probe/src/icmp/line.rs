//! One socket of a family for all rounds, and the task that reads it.

use std::collections::HashMap;
use std::hash::{BuildHasher as _, RandomState};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use socket2::{Domain, Protocol, Socket, Type};
use tokio::net::UdpSocket;
use tokio::sync::mpsc;
use tokio::task::AbortHandle;
use tokio::time::Instant;

use super::IcmpSockets;
use super::packet::{self, Message};

/// Longer than any request, its IP header and the header of an error that
/// quotes it. What is longer is cut, and so no answer of ours.
const BUFFER: usize = 2048;

/// So many errors in a row end the reader; the next round opens a new socket.
const MOST_ERRORS: u32 = 64;

/// Identifiers that may be in use at once: finding a free one stays quick.
const MOST_ROUNDS: usize = 32 * 1024;

/// Receive buffer asked for, in bytes: some thousand replies that come at once.
const RECEIVE_BUFFER: usize = 1 << 20;

/// An open socket. It closes, and its reader ends, with the last round that
/// uses it.
#[derive(Debug)]
pub(super) struct Line {
    socket: Arc<UdpSocket>,
    table: Arc<Mutex<Table>>,
    v6: bool,
    raw: bool,
    pub(super) opened: Instant,
    reader: AbortHandle,
}

/// Who waits for which answers.
#[derive(Debug, Default)]
struct Table {
    rounds: HashMap<u64, Waiting>,
    /// Tokens by the identifier in the packets; raw sockets only, since the
    /// system writes its own into those of the others.
    ids: HashMap<u16, u64>,
}

#[derive(Debug)]
struct Waiting {
    target: IpAddr,
    payload: usize,
    answers: mpsc::Sender<Answer>,
}

/// What came of one request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Answer {
    pub(super) sequence: u16,
    pub(super) at: Instant,
    /// `None` for a reply, else who could not deliver the request and why.
    pub(super) undelivered: Option<(IpAddr, &'static str)>,
}

/// Messages that were read and belonged to no round.
#[derive(Debug, Default)]
pub(super) struct Strays(AtomicU64);

impl Strays {
    pub(super) fn count(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// A round that is registered with the reader until it is dropped.
#[derive(Debug)]
pub(super) struct Round {
    line: Arc<Line>,
    token: u64,
    id: u16,
    target: IpAddr,
    payload: usize,
    pub(super) answers: mpsc::Receiver<Answer>,
}

impl Line {
    /// Opens a socket of `kind` (raw, else datagram).
    pub(super) fn open(v6: bool, raw: bool, strays: &Arc<Strays>) -> io::Result<Self> {
        let (domain, protocol, any): (_, _, IpAddr) = if v6 {
            (Domain::IPV6, Protocol::ICMPV6, Ipv6Addr::UNSPECIFIED.into())
        } else {
            (Domain::IPV4, Protocol::ICMPV4, Ipv4Addr::UNSPECIFIED.into())
        };
        let kind = if raw { Type::RAW } else { Type::DGRAM };
        let socket = Socket::new(domain, kind, Some(protocol))?;
        socket.set_nonblocking(true)?;
        if raw {
            only_answers(&socket, v6)?;
        } else {
            // Gives a datagram socket its identifier now, not with the first echo.
            socket.bind(&SocketAddr::new(any, 0).into())?;
        }
        // The default holds some hundred replies; less than asked for is no fault.
        let _ = socket.set_recv_buffer_size(RECEIVE_BUFFER);
        // No more than a handle with send and receive: nothing in it is UDP.
        let socket = Arc::new(UdpSocket::from_std(socket.into())?);
        let table = Arc::<Mutex<Table>>::default();
        let reader = tokio::spawn(read(
            Arc::clone(&socket),
            Arc::clone(&table),
            v6,
            Arc::clone(strays),
        ));
        Ok(Self {
            socket,
            table,
            v6,
            raw,
            opened: Instant::now(),
            reader: reader.abort_handle(),
        })
    }

    /// Whether nobody reads the socket any more: its runtime has ended, or it
    /// gives nothing but errors.
    pub(super) fn is_dead(&self) -> bool {
        self.reader.is_finished()
    }

    /// Registers a round of echoes to `target`; `None` if too many run.
    pub(super) fn round(
        self: &Arc<Self>,
        target: IpAddr,
        payload: usize,
        echoes: usize,
        random: &RandomState,
    ) -> Option<Round> {
        static COUNTER: AtomicU64 = AtomicU64::new(0);
        let mut table = lock(&self.table);
        if table.rounds.len() >= MOST_ROUNDS {
            return None;
        }
        let (token, id) = loop {
            // A keyed hash of a counter: nobody outside can tell the next one.
            let token = random.hash_one(COUNTER.fetch_add(1, Ordering::Relaxed));
            let id = u16::try_from(random.hash_one(token) & 0xffff).unwrap_or_default();
            if !table.rounds.contains_key(&token) && !table.ids.contains_key(&id) {
                break (token, id);
            }
        };
        // Twice as many as needed, should an echo be both answered and refused.
        let (sender, answers) = mpsc::channel(echoes * 2);
        table.rounds.insert(
            token,
            Waiting {
                target,
                payload,
                answers: sender,
            },
        );
        if self.raw {
            table.ids.insert(id, token);
        }
        drop(table);
        Some(Round {
            line: Arc::clone(self),
            token,
            id,
            target,
            payload,
            answers,
        })
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        self.reader.abort();
    }
}

impl Round {
    pub(super) async fn send(&self, sequence: u16) -> io::Result<()> {
        let line = &*self.line;
        let message = packet::request(line.v6, self.id, sequence, self.token, self.payload);
        let to = SocketAddr::new(self.target, 0);
        line.socket.send_to(&message, to).await.map(drop)
    }
}

impl Drop for Round {
    fn drop(&mut self) {
        let mut table = lock(&self.line.table);
        table.rounds.remove(&self.token);
        if self.line.raw {
            table.ids.remove(&self.id);
        }
    }
}

/// Hands each answer to its round.
async fn read(socket: Arc<UdpSocket>, table: Arc<Mutex<Table>>, v6: bool, strays: Arc<Strays>) {
    let mut buffer = [0; BUFFER];
    let mut errors = 0;
    while errors < MOST_ERRORS {
        match socket.recv_from(&mut buffer).await {
            Ok((length, from)) => {
                errors = 0;
                let answered = packet::read(v6, &buffer[..length])
                    .is_some_and(|message| deliver(&lock(&table), &message, from.ip()));
                if !answered {
                    strays.0.fetch_add(1, Ordering::Relaxed);
                }
            }
            // E.g. an error that a router reported for some request.
            Err(_) => errors += 1,
        }
    }
}

/// Whether the message is an answer that a round waits for. A reply must be
/// whole and come from the target; a report that a request could not be
/// delivered may come from anywhere, and has to quote it.
fn deliver(table: &Table, message: &Message<'_>, from: IpAddr) -> bool {
    let (token, sequence, undelivered) = match *message {
        Message::Reply {
            sequence, payload, ..
        } => {
            let Some(token) = packet::token(payload) else {
                return false;
            };
            let expected = table.rounds.get(&token).is_some_and(|round| {
                round.target == from
                    && round.payload == payload.len()
                    && packet::is_filled_with(payload, token)
            });
            if !expected {
                return false;
            }
            (token, sequence, None)
        }
        Message::Undelivered {
            why,
            target,
            id,
            sequence,
            payload,
        } => {
            let Some(token) = table.ids.get(&id).copied() else {
                return false;
            };
            let expected = table
                .rounds
                .get(&token)
                .is_some_and(|round| round.target == target)
                && packet::is_filled_with(&payload[..payload.len().min(8)], token);
            if !expected {
                return false;
            }
            (token, sequence, Some((from, why)))
        }
    };
    let answer = Answer {
        sequence,
        at: Instant::now(),
        undelivered,
    };
    // A full channel has more answers than there were requests.
    table
        .rounds
        .get(&token)
        .is_some_and(|round| round.answers.try_send(answer).is_ok())
}

fn lock(table: &Mutex<Table>) -> MutexGuard<'_, Table> {
    table.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Which sockets to try, in order: raw first, since only those tell what could
/// not be delivered.
pub(super) fn order(sockets: IcmpSockets) -> &'static [bool] {
    match sockets {
        IcmpSockets::Any => &[true, false],
        IcmpSockets::Raw => &[true],
        IcmpSockets::Datagram => &[false],
    }
}

/// A raw socket gets a copy of all ICMP traffic of the machine; the system is
/// told to leave out what cannot be an answer.
#[cfg(any(target_os = "linux", target_os = "android"))]
fn only_answers(socket: &Socket, v6: bool) -> io::Result<()> {
    use socket2::SockFilter;
    // linux/bpf_common.h
    const LOAD_BYTE: u16 = 0x30; // BPF_LD | BPF_B | BPF_ABS
    const LOAD_BYTE_AT_X: u16 = 0x50; // BPF_LD | BPF_B | BPF_IND
    const HEADER_LENGTH_TO_X: u16 = 0xb1; // BPF_LDX | BPF_B | BPF_MSH
    const JUMP_IF_EQUAL: u16 = 0x15; // BPF_JMP | BPF_JEQ | BPF_K
    const RETURN: u16 = 0x06; // BPF_RET | BPF_K
    // The IPv4 header is in front.
    let (mut program, types) = if v6 {
        let load = vec![SockFilter::new(LOAD_BYTE, 0, 0, 0)];
        (load, [129, 1, 2, 3, 4])
    } else {
        let load = vec![
            SockFilter::new(HEADER_LENGTH_TO_X, 0, 0, 0),
            SockFilter::new(LOAD_BYTE_AT_X, 0, 0, 0),
        ];
        (load, [0, 3, 11, 12, 12])
    };
    let accept = (0_u8..).zip(types).map(|(number, kind)| {
        // Over the comparisons that are left and the refusal.
        SockFilter::new(JUMP_IF_EQUAL, 5 - number, 0, kind)
    });
    let end = [
        SockFilter::new(RETURN, 0, 0, 0),
        SockFilter::new(RETURN, 0, 0, u32::MAX),
    ];
    program.extend(accept);
    program.extend(end);
    socket.attach_filter(&program)
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
#[expect(clippy::unnecessary_wraps, reason = "as on Linux")]
fn only_answers(_: &Socket, _: bool) -> io::Result<()> {
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const TARGET: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1));
    const OTHER: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 2));
    const TOKEN: u64 = 0x0123_4567_89ab_cdef;

    fn waiting() -> (Table, mpsc::Receiver<Answer>) {
        let (sender, answers) = mpsc::channel(2);
        let mut table = Table::default();
        let round = Waiting {
            target: TARGET,
            payload: 16,
            answers: sender,
        };
        table.rounds.insert(TOKEN, round);
        table.ids.insert(7, TOKEN);
        (table, answers)
    }

    fn payload(token: u64, length: usize) -> Vec<u8> {
        packet::request(true, 0, 0, token, length).split_off(8)
    }

    // P167: the identifier may be another one, as the system likes.
    #[test]
    fn a_reply_is_known_by_its_token_and_nothing_but_the_whole_is_one() {
        let (table, mut answers) = waiting();
        let mut deliver = |from, payload: &[u8]| {
            let message = Message::Reply {
                id: 999,
                sequence: 3,
                payload,
            };
            let taken = deliver(&table, &message, from);
            assert_eq!(
                taken,
                answers.try_recv().is_ok_and(|answer| answer.sequence == 3)
            );
            taken
        };
        assert!(deliver(TARGET, &payload(TOKEN, 16)));
        assert!(!deliver(OTHER, &payload(TOKEN, 16)), "a forged sender");
        assert!(!deliver(TARGET, &payload(TOKEN ^ 1, 16)), "somebody else's");
        assert!(!deliver(TARGET, &payload(TOKEN, 15)), "too short");
        assert!(!deliver(TARGET, &payload(TOKEN, 17)), "too long");
        assert!(!deliver(TARGET, &payload(TOKEN, 4)), "no token");
        let mut changed = payload(TOKEN, 16);
        changed[15] ^= 1;
        assert!(!deliver(TARGET, &changed), "changed on the way");
    }

    #[test]
    fn a_report_of_failure_must_quote_the_request() {
        let (table, mut answers) = waiting();
        let mut deliver = |target, id, payload: &[u8]| {
            let message = Message::Undelivered {
                why: "host unreachable",
                target,
                id,
                sequence: 3,
                payload,
            };
            let taken = deliver(&table, &message, OTHER);
            let told = answers
                .try_recv()
                .ok()
                .and_then(|answer| answer.undelivered);
            assert_eq!(told, taken.then_some((OTHER, "host unreachable")));
            taken
        };
        assert!(deliver(TARGET, 7, &payload(TOKEN, 16)));
        assert!(
            deliver(TARGET, 7, &[]),
            "RFC 792 quotes eight bytes: no payload"
        );
        assert!(!deliver(OTHER, 7, &payload(TOKEN, 16)));
        assert!(!deliver(TARGET, 8, &payload(TOKEN, 16)));
        assert!(!deliver(TARGET, 7, &payload(TOKEN ^ 1, 16)));
    }

    #[test]
    fn more_answers_than_requests_are_dropped() {
        let (table, _answers) = waiting();
        let payload = payload(TOKEN, 16);
        let message = Message::Reply {
            id: 7,
            sequence: 0,
            payload: &payload,
        };
        let taken = (0..100)
            .filter(|_| deliver(&table, &message, TARGET))
            .count();
        assert_eq!(taken, 2);
    }
}
