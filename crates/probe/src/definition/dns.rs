use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;
use std::time::Duration;

use hickory_resolver::proto::rr::{Name, RecordType};

use super::connect::{ConnectOptions, given};
use super::target::parse_address;
use super::{DEFAULT_TIMEOUT, DefinitionError, Host};

/// A question to one name server, and what the answer must be.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct DnsCheck {
    /// As given, for texts.
    server: Box<str>,
    host: Host,
    port: u16,
    /// Elsewhere: all kinds of definitions share one size.
    asked: Box<Asked>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Asked {
    name: Name,
    record_type: RecordType,
    rcode: Rcode,
    options: DnsOptions,
    connect: Option<Box<ConnectOptions>>,
}

/// The question's details, and what the answer must be.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(default, deny_unknown_fields))]
pub struct DnsOptions {
    /// The records that are asked for; `A` by default.
    pub record_type: String,
    /// How; UDP by default.
    pub transport: DnsTransport,
    /// The response code that is expected, e.g. `NXDOMAIN`; `NOERROR` by
    /// default. Any other is critical.
    pub rcode: String,
    /// Records that must be in the answer, each as the output shows it. Others
    /// may be there, too.
    pub expect: Vec<String>,
    /// How many records of the type there must be; with `NOERROR` one by
    /// default, else none.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub min_answers: Option<u16>,
    /// Ask a server that is not in charge of the name to find it out; true by
    /// default.
    pub recursion: bool,
    /// How long the probe may take over all; zero means [`DEFAULT_TIMEOUT`].
    #[cfg_attr(
        feature = "serde",
        serde(with = "crate::duration", skip_serializing_if = "Duration::is_zero")
    )]
    pub timeout: Duration,
}

impl Default for DnsOptions {
    fn default() -> Self {
        Self {
            record_type: "A".to_owned(),
            transport: DnsTransport::default(),
            rcode: "NOERROR".to_owned(),
            expect: Vec::new(),
            min_answers: None,
            recursion: true,
            timeout: Duration::ZERO,
        }
    }
}

/// How a question goes to the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "lowercase"))]
pub enum DnsTransport {
    /// By a datagram; if the answer does not fit into one, over TCP again (RFC
    /// 7766 section 5).
    #[default]
    Udp,
    /// Over TCP from the start.
    Tcp,
}

/// A response code (RFC 1035 section 4.1.1, RFC 2136, RFC 6891).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Rcode(pub(crate) u16);

impl Rcode {
    pub(crate) const NOERROR: Self = Self(0);

    /// Names of the IANA registry "DNS RCODEs", by number.
    const NAMES: [&str; 11] = [
        "NOERROR", "FORMERR", "SERVFAIL", "NXDOMAIN", "NOTIMP", "REFUSED", "YXDOMAIN", "YXRRSET",
        "NXRRSET", "NOTAUTH", "NOTZONE",
    ];
}

impl fmt::Display for Rcode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match Self::NAMES.get(usize::from(self.0)) {
            Some(name) => f.write_str(name),
            None => write!(f, "RCODE{}", self.0),
        }
    }
}

impl FromStr for Rcode {
    type Err = DefinitionError;

    fn from_str(text: &str) -> Result<Self, DefinitionError> {
        let numbered = || {
            text.to_ascii_uppercase()
                .strip_prefix("RCODE")?
                .parse()
                .ok()
        };
        (0_u16..)
            .zip(Self::NAMES)
            .find(|(_, name)| text.eq_ignore_ascii_case(name))
            .map(|(code, _)| code)
            .or_else(numbered)
            .filter(|code| *code < 4096)
            .map(Self)
            .ok_or_else(|| {
                let known = Self::NAMES.join(", ");
                DefinitionError::option("rcode", format!("\"{text}\" is none of {known}"))
            })
    }
}

impl DnsCheck {
    /// A check that asks `server`, which is a host or `host:port` (port 53 if
    /// there is none), for `name`.
    ///
    /// # Errors
    /// [`DefinitionError::Address`] for the server, [`DefinitionError::Option`]
    /// for the rest.
    pub fn new(server: &str, name: &str, options: DnsOptions) -> Result<Self, DefinitionError> {
        let server = server.trim();
        let (host, port) = match server.trim_matches(['[', ']']).parse::<IpAddr>() {
            Ok(ip) => (Host::Ip(ip), 53),
            Err(_) if server.contains(':') => parse_address(server)?,
            Err(_) => parse_address(&format!("{server}:53"))?,
        };
        let fault = |option, reason| Err(DefinitionError::option(option, reason));
        let name = name.trim();
        if name.is_empty() {
            return fault("name", "must not be empty".to_owned());
        }
        let mut name = match Name::from_ascii(name) {
            Ok(name) => name,
            Err(error) => return fault("name", format!("\"{name}\": {error}")),
        };
        name.set_fqdn(true);
        let wanted = options.record_type.to_ascii_uppercase();
        let record_type = match RecordType::from_str(&wanted) {
            // These are no questions with an answer of records of that type.
            Ok(kind) if !matches!(kind, RecordType::AXFR | RecordType::IXFR | RecordType::OPT) => {
                kind
            }
            _ => return fault("record_type", format!("\"{wanted}\" cannot be asked for")),
        };
        let rcode = options.rcode.parse()?;
        if rcode != Rcode::NOERROR && (!options.expect.is_empty() || options.min_answers > Some(0))
        {
            return fault(
                "rcode",
                format!("with {rcode} no records can be expected, and there are some"),
            );
        }
        Ok(Self {
            server: server.into(),
            host,
            port,
            asked: Box::new(Asked {
                name,
                record_type,
                rcode,
                options,
                connect: None,
            }),
        })
    }

    /// Sets over which address family the server is connected to, and from
    /// which address.
    ///
    /// # Errors
    /// [`DefinitionError::Option`] for options that contradict each other or
    /// the server.
    pub fn with_connect(mut self, options: ConnectOptions) -> Result<Self, DefinitionError> {
        self.asked.connect = options.settle(&self.host)?;
        Ok(self)
    }

    /// The server as given.
    pub fn server(&self) -> &str {
        &self.server
    }

    /// The name that is asked for, with a dot at the end.
    pub fn name(&self) -> String {
        self.asked.name.to_ascii()
    }

    /// The question's details, and what the answer must be.
    pub fn options(&self) -> &DnsOptions {
        &self.asked.options
    }

    /// How many records there must be.
    pub fn min_answers(&self) -> u16 {
        let by_default = u16::from(self.asked.rcode == Rcode::NOERROR);
        self.asked.options.min_answers.unwrap_or(by_default)
    }

    /// How long the probe may take over all.
    pub fn timeout(&self) -> Duration {
        if self.asked.options.timeout.is_zero() {
            DEFAULT_TIMEOUT
        } else {
            self.asked.options.timeout
        }
    }

    /// How the server is connected to.
    pub fn connect(&self) -> &ConnectOptions {
        given(self.asked.connect.as_deref())
    }

    pub(crate) fn host(&self) -> &Host {
        &self.host
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    pub(crate) fn question(&self) -> (&Name, RecordType) {
        (&self.asked.name, self.asked.record_type)
    }

    pub(crate) fn rcode(&self) -> Rcode {
        self.asked.rcode
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(server: &str, name: &str, change: fn(&mut DnsOptions)) -> Result<DnsCheck, String> {
        let mut options = DnsOptions::default();
        change(&mut options);
        DnsCheck::new(server, name, options).map_err(|error| error.to_string())
    }

    #[test]
    fn a_server_has_a_port_or_the_usual_one() {
        for (server, port) in [
            ("127.0.0.1", 53),
            ("127.0.0.1:5353", 5353),
            ("::1", 53),
            ("[::1]", 53),
            ("[::1]:54", 54),
            ("ns.example", 53),
            ("ns.example:55", 55),
        ] {
            assert_eq!(
                check(server, "a.", |_| ()).map(|check| check.port()),
                Ok(port),
                "{server}"
            );
        }
    }

    #[test]
    fn response_codes_are_read_as_they_are_written() {
        for code in 0..4096 {
            let code = Rcode(code);
            assert_eq!(code.to_string().parse(), Ok(code));
        }
        assert_eq!("nxdomain".parse(), Ok(Rcode(3)));
        assert!("RCODE4096".parse::<Rcode>().is_err());
    }

    #[test]
    fn what_makes_no_sense_is_refused_with_its_name() {
        type Change = fn(&mut DnsOptions);
        let cases: [(&str, Change, &str); 6] = [
            ("", |_| (), "name"),
            ("a..b", |_| (), "name"),
            ("a", |o| o.record_type = "AXFR".into(), "record_type"),
            ("a", |o| o.record_type = "WHAT".into(), "record_type"),
            ("a", |o| o.rcode = "FINE".into(), "rcode"),
            (
                "a",
                |o| {
                    o.rcode = "NXDOMAIN".into();
                    o.expect = vec!["10.0.0.1".into()];
                },
                "rcode",
            ),
        ];
        for (name, change, option) in cases {
            let error = check("127.0.0.1", name, change).expect_err(option);
            assert!(error.starts_with(option), "{error}");
        }
        assert!(check("", "a", |_| ()).is_err());
        assert!(check("127.0.0.1:0", "a", |_| ()).is_err());
    }

    #[test]
    fn one_record_is_expected_unless_told_otherwise() {
        let answers =
            |change| check("127.0.0.1", "A.example", change).map(|check| check.min_answers());
        assert_eq!(answers(|_| ()), Ok(1));
        assert_eq!(answers(|o| o.min_answers = Some(0)), Ok(0));
        assert_eq!(answers(|o| o.rcode = "NXDOMAIN".into()), Ok(0));
    }
}
