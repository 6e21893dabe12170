//! Echo messages as bytes: RFC 792, RFC 4443. Pure.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Type, code, checksum, identifier, sequence number.
const HEADER: usize = 8;
/// An IPv6 header without extensions.
const IPV6_HEADER: usize = 40;

const V4_ECHO_REPLY: u8 = 0;
const V4_UNREACHABLE: u8 = 3;
const V4_ECHO_REQUEST: u8 = 8;
const V4_TIME_EXCEEDED: u8 = 11;
const V4_PARAMETER_PROBLEM: u8 = 12;
const V6_UNREACHABLE: u8 = 1;
const V6_TOO_BIG: u8 = 2;
const V6_TIME_EXCEEDED: u8 = 3;
const V6_PARAMETER_PROBLEM: u8 = 4;
const V6_ECHO_REQUEST: u8 = 128;
const V6_ECHO_REPLY: u8 = 129;

/// What a received message says about one of our requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Message<'a> {
    /// The request came back.
    Reply {
        id: u16,
        sequence: u16,
        payload: &'a [u8],
    },
    /// A machine on the way, or the target's own, could not deliver it.
    Undelivered {
        why: &'static str,
        target: IpAddr,
        id: u16,
        sequence: u16,
        /// As much of the request's payload as is quoted.
        payload: &'a [u8],
    },
}

/// An echo request. `payload` bytes are filled with `token` over and over, so
/// that a reply shows whose it is wherever it was cut or changed.
pub(super) fn request(v6: bool, id: u16, sequence: u16, token: u64, payload: usize) -> Vec<u8> {
    let mut message = Vec::with_capacity(HEADER + payload);
    message.push(if v6 { V6_ECHO_REQUEST } else { V4_ECHO_REQUEST });
    message.extend([0, 0, 0]);
    message.extend(id.to_be_bytes());
    message.extend(sequence.to_be_bytes());
    message.extend(token.to_be_bytes().iter().cycle().take(payload));
    if !v6 {
        // The system does it for ICMPv6, whose checksum covers the addresses.
        let sum = !sum(&message);
        message[2..4].copy_from_slice(&sum.to_be_bytes());
    }
    message
}

/// The token that a payload begins with.
pub(super) fn token(payload: &[u8]) -> Option<u64> {
    payload.first_chunk().copied().map(u64::from_be_bytes)
}

/// Whether `payload` is, as far as it goes, what [`request`] filled in.
pub(super) fn is_filled_with(payload: &[u8], token: u64) -> bool {
    payload
        .iter()
        .eq(token.to_be_bytes().iter().cycle().take(payload.len()))
}

/// Reads a datagram of an ICMP socket, which for IPv4 may have the IP header in
/// front. `None`: it is none of our business, or broken.
pub(super) fn read(v6: bool, datagram: &[u8]) -> Option<Message<'_>> {
    if v6 {
        return read_v6(datagram);
    }
    // No ICMP type that is read here has these upper bits.
    let message = if datagram.first()? >> 4 == 4 {
        after_v4_header(datagram)?.1
    } else {
        datagram
    };
    if sum(message) != 0xffff {
        return None;
    }
    let why = match (*message.first()?, *message.get(1)?) {
        (V4_ECHO_REPLY, 0) => return reply(message),
        (V4_UNREACHABLE, code) => v4_unreachable(code),
        (V4_TIME_EXCEEDED, _) => "time to live exceeded",
        (V4_PARAMETER_PROBLEM, _) => "parameter problem",
        _ => return None,
    };
    let (target, quoted) = after_v4_header(message.get(HEADER..)?)?;
    (*quoted.first()? == V4_ECHO_REQUEST).then_some(())?;
    undelivered(why, target.into(), quoted)
}

fn read_v6(message: &[u8]) -> Option<Message<'_>> {
    let why = match (*message.first()?, *message.get(1)?) {
        (V6_ECHO_REPLY, 0) => return reply(message),
        (V6_UNREACHABLE, code) => v6_unreachable(code),
        (V6_TOO_BIG, _) => "packet too big",
        (V6_TIME_EXCEEDED, _) => "hop limit exceeded",
        (V6_PARAMETER_PROBLEM, _) => "parameter problem",
        _ => return None,
    };
    let packet = message.get(HEADER..)?;
    // ICMPv6 right after the header: our requests have no extension headers.
    (packet.first()? >> 4 == 6 && *packet.get(6)? == 58).then_some(())?;
    let target: [u8; 16] = packet.get(24..IPV6_HEADER)?.try_into().ok()?;
    let quoted = packet.get(IPV6_HEADER..)?;
    (*quoted.first()? == V6_ECHO_REQUEST).then_some(())?;
    undelivered(why, Ipv6Addr::from(target).into(), quoted)
}

fn reply(message: &[u8]) -> Option<Message<'_>> {
    let (id, sequence) = numbers(message)?;
    let payload = message.get(HEADER..)?;
    Some(Message::Reply {
        id,
        sequence,
        payload,
    })
}

fn undelivered<'a>(why: &'static str, target: IpAddr, quoted: &'a [u8]) -> Option<Message<'a>> {
    let (id, sequence) = numbers(quoted)?;
    let payload = quoted.get(HEADER..)?;
    Some(Message::Undelivered {
        why,
        target,
        id,
        sequence,
        payload,
    })
}

fn numbers(message: &[u8]) -> Option<(u16, u16)> {
    let number = |at: usize| {
        Some(u16::from_be_bytes([
            *message.get(at)?,
            *message.get(at + 1)?,
        ]))
    };
    Some((number(4)?, number(6)?))
}

/// Where an IPv4 packet of ICMP goes to, and what is in it.
fn after_v4_header(packet: &[u8]) -> Option<(Ipv4Addr, &[u8])> {
    let first = *packet.first()?;
    let length = usize::from(first & 0x0f) * 4;
    (first >> 4 == 4 && length >= 20 && *packet.get(9)? == 1).then_some(())?;
    let target: [u8; 4] = packet.get(16..20)?.try_into().ok()?;
    Some((target.into(), packet.get(length..)?))
}

fn v4_unreachable(code: u8) -> &'static str {
    // RFC 792, RFC 1122 section 3.2.2.1, RFC 1812 section 5.2.7.1.
    match code {
        0 | 6 | 11 => "network unreachable",
        1 | 7 | 8 | 12 => "host unreachable",
        2 => "protocol unreachable",
        3 => "port unreachable",
        4 => "packet too big",
        9 | 10 | 13 => "administratively prohibited",
        _ => "destination unreachable",
    }
}

fn v6_unreachable(code: u8) -> &'static str {
    // RFC 4443 section 3.1.
    match code {
        0 => "no route to destination",
        1 | 5 => "administratively prohibited",
        3 => "address unreachable",
        4 => "port unreachable",
        6 => "route rejected",
        _ => "destination unreachable",
    }
}

/// The one's complement sum of RFC 1071. Over a message with its checksum in
/// place it is all ones.
fn sum(bytes: &[u8]) -> u16 {
    let mut sum: u32 = 0;
    for pair in bytes.chunks(2) {
        let low = pair.get(1).copied().unwrap_or(0);
        sum += u32::from(u16::from_be_bytes([pair[0], low]));
        // Never more than 17 bits.
        sum = (sum & 0xffff) + (sum >> 16);
    }
    u16::try_from(sum).unwrap_or(u16::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// `ping -c1 -s 8 -p 0102030405060708 127.0.0.1` with id 0x1234 would give
    /// this; the checksum was summed by hand:
    /// 0800+1234+0001+0102+0304+0506+0708 = 2a49, its complement d5b6.
    #[test]
    fn a_request_is_laid_out_as_in_the_rfc() {
        let bytes = request(false, 0x1234, 1, 0x0102_0304_0506_0708, 8);
        assert_eq!(
            bytes,
            [8, 0, 0xd5, 0xb6, 0x12, 0x34, 0, 1, 1, 2, 3, 4, 5, 6, 7, 8]
        );
    }

    fn with_sum(mut message: Vec<u8>) -> Vec<u8> {
        message[2..4].fill(0);
        let sum = !sum(&message);
        message[2..4].copy_from_slice(&sum.to_be_bytes());
        message
    }

    fn v4_packet(target: [u8; 4], message: &[u8]) -> Vec<u8> {
        let mut packet = vec![0; 20];
        packet[0] = 0x45;
        packet[9] = 1;
        packet[16..].copy_from_slice(&target);
        packet.extend(message);
        packet
    }

    #[test]
    fn a_reply_is_read_with_and_without_the_ip_header() {
        let mut bytes = request(false, 7, 2, 9, 56);
        bytes[0] = V4_ECHO_REPLY;
        let bytes = with_sum(bytes);
        for datagram in [bytes.clone(), v4_packet([127, 0, 0, 1], &bytes)] {
            let Some(Message::Reply {
                id: 7,
                sequence: 2,
                payload,
            }) = read(false, &datagram)
            else {
                panic!("{datagram:?}")
            };
            assert_eq!((payload.len(), token(payload)), (56, Some(9)));
            assert!(is_filled_with(payload, 9));
            assert!(!is_filled_with(payload, 8));
        }
    }

    #[test]
    fn a_damaged_reply_is_none() {
        let mut bytes = request(false, 7, 2, 9, 56);
        bytes[0] = V4_ECHO_REPLY;
        let mut bytes = with_sum(bytes);
        bytes[30] ^= 1;
        assert_eq!(read(false, &bytes), None);
    }

    #[test]
    fn our_own_requests_are_not_answers() {
        assert_eq!(read(false, &request(false, 7, 2, 9, 56)), None);
        assert_eq!(read(true, &request(true, 7, 2, 9, 56)), None);
    }

    #[test]
    fn what_could_not_be_delivered_names_its_target() {
        let quoted = v4_packet([192, 0, 2, 9], &request(false, 7, 2, 9, 56));
        let mut error = vec![V4_UNREACHABLE, 1, 0, 0, 0, 0, 0, 0];
        error.extend(&quoted[..28 + 8]);
        let error = with_sum(error);
        let Some(Message::Undelivered {
            why: "host unreachable",
            target,
            id: 7,
            sequence: 2,
            payload,
        }) = read(false, &error)
        else {
            panic!()
        };
        assert_eq!(target, IpAddr::from([192, 0, 2, 9]));
        assert_eq!(token(payload), Some(9));
    }

    #[test]
    fn what_could_not_be_delivered_is_read_for_ipv6_too() {
        let mut packet = vec![0; IPV6_HEADER];
        packet[0] = 0x60;
        packet[6] = 58;
        packet[24..40].copy_from_slice(&Ipv6Addr::LOCALHOST.octets());
        packet.extend(request(true, 7, 2, 9, 56));
        let mut error = vec![V6_UNREACHABLE, 3, 0, 0, 0, 0, 0, 0];
        error.extend(packet);
        assert!(matches!(
            read(true, &error),
            Some(Message::Undelivered {
                why: "address unreachable",
                id: 7,
                sequence: 2,
                ..
            })
        ));
    }

    proptest! {
        /// What any router or liar sends is read or refused.
        #[test]
        fn any_bytes_are_a_message_or_none(v6: bool, bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = read(v6, &bytes);
        }

        /// Bytes that come closer: a quoted packet, cut and changed.
        #[test]
        fn a_changed_error_is_a_message_or_none(v6: bool, cut in 0..120_usize, at in 0..120_usize, with: u8) {
            let inner = request(v6, 7, 2, 9, 56);
            let mut error = vec![if v6 { 1 } else { 3 }, 1, 0, 0, 0, 0, 0, 0];
            error.extend(v4_packet([192, 0, 2, 9], &inner));
            error.truncate(cut);
            if let Some(byte) = error.get_mut(at) {
                *byte = with;
            }
            if error.len() > 4 {
                error = with_sum(error);
            }
            let _ = read(v6, &error);
        }

        #[test]
        fn a_request_has_a_right_sum(id: u16, sequence: u16, token: u64, payload in 0..1473_usize) {
            let bytes = request(false, id, sequence, token, payload);
            prop_assert_eq!(bytes.len(), 8 + payload);
            prop_assert_eq!(sum(&bytes), 0xffff);
        }
    }
}
