use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpStream, UdpSocket};

use super::conduct::until_closed;

/// What a server does with each datagram.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Datagrams {
    /// Takes it and says nothing.
    Silent,
    /// Sends it back.
    Echo,
    /// Answers as a name server.
    Dns(Said),
}

/// What a name server says to every question.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Said {
    /// That the name has the address 127.0.0.1.
    Address,
    /// That there is no such name.
    NoSuchName,
    /// That it is to be asked over TCP.
    Truncated,
    /// Bytes that are no answer.
    Garbage,
    /// Nothing.
    Nothing,
}

impl Said {
    fn answer(self, question: &[u8]) -> Option<Vec<u8>> {
        // RFC 1035 section 4.1.1.
        const RESPONSE: u16 = 0x8180;
        const TRUNCATED: u16 = 0x0200;
        const NO_SUCH_NAME: u16 = 3;
        // The name of the question; class IN, type A, a minute, four bytes.
        const RECORD: [u8; 16] = [0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4, 127, 0, 0, 1];
        let (flags, record): (u16, &[u8]) = match self {
            Self::Address => (RESPONSE, &RECORD),
            Self::NoSuchName => (RESPONSE | NO_SUCH_NAME, &[]),
            Self::Truncated => (RESPONSE | TRUNCATED, &[]),
            Self::Garbage => return Some(b"garbage".to_vec()),
            Self::Nothing => return None,
        };
        let id = question.get(..2)?;
        let name = question.get(12..)?.iter().position(|byte| *byte == 0)?;
        let asked = question.get(12..12 + name + 5)?;
        let answers = u8::from(!record.is_empty());
        let counts = [0, 1, 0, answers, 0, 0, 0, 0];
        Some([id, &flags.to_be_bytes(), &counts, asked, record].concat())
    }
}

pub(super) async fn run(conduct: Datagrams, socket: UdpSocket) {
    let mut buffer = [0; 4096];
    loop {
        // An error is of an earlier answer that nobody took.
        let Ok((length, from)) = socket.recv_from(&mut buffer).await else {
            continue;
        };
        let answer = match conduct {
            Datagrams::Silent => None,
            Datagrams::Echo => Some(buffer[..length].to_vec()),
            Datagrams::Dns(said) => said.answer(&buffer[..length]),
        };
        if let Some(answer) = answer {
            let _ = socket.send_to(&answer, from).await;
        }
    }
}

pub(super) async fn over_tcp(said: Said, mut stream: TcpStream) {
    let Ok(length) = stream.read_u16().await else {
        return;
    };
    let mut question = vec![0; usize::from(length)];
    if stream.read_exact(&mut question).await.is_err() {
        return;
    }
    if let Some(answer) = said.answer(&question) {
        let length = u16::try_from(answer.len()).unwrap_or(u16::MAX);
        let framed = [&length.to_be_bytes(), &*answer].concat();
        let _ = stream.write_all(&framed).await;
    }
    until_closed(&mut stream).await;
}
