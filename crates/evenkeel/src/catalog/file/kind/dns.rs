use evenkeel_probe::{Definition, DefinitionError, DnsCheck, DnsOptions};
use schemars::JsonSchema;
use serde::Deserialize;

use super::{Common, Kind};

/// A question to a name server.
#[derive(Clone, PartialEq, Default, Deserialize, JsonSchema)]
#[schemars(inline)]
pub struct Dns {
    /// The server, with a port if it is not 53.
    #[schemars(example = &"10.0.0.53")]
    pub server: String,

    /// The name that is asked for.
    #[schemars(example = &"shop.example")]
    pub name: String,

    /// The type of the records that are asked for; A when left out.
    #[serde(default)]
    #[schemars(example = &"MX")]
    pub record_type: Option<String>,

    /// How the question goes to the server.
    #[serde(default)]
    pub transport: Transport,

    /// The response code that is expected; NOERROR when left out.
    #[serde(default)]
    #[schemars(example = &"NXDOMAIN")]
    pub rcode: Option<String>,

    /// Records that the answer must have, each as the output shows it.
    #[serde(default)]
    #[schemars(example = &["10.0.0.5"])]
    pub expect: Vec<String>,

    /// How many records there must be; one when left out.
    #[serde(default)]
    #[schemars(example = 2)]
    pub min_answers: Option<u16>,

    /// Have the server find out what it does not know; true when left out.
    #[serde(default)]
    #[schemars(example = false)]
    pub recursion: Option<bool>,
}

/// How a question goes to a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub enum Transport {
    /// By a datagram, and again over TCP if the answer does not fit.
    #[default]
    Udp,
    /// Over TCP.
    Tcp,
}

impl From<Transport> for evenkeel_probe::DnsTransport {
    fn from(transport: Transport) -> Self {
        match transport {
            Transport::Udp => Self::Udp,
            Transport::Tcp => Self::Tcp,
        }
    }
}

impl Kind for Dns {
    fn key(&self) -> &'static str {
        "dns"
    }

    fn takes(&self) -> &'static [&'static str] {
        &["connect"]
    }

    fn definition(&self, common: &Common<'_>) -> Result<Definition, DefinitionError> {
        let left_out = DnsOptions::default();
        let options = DnsOptions {
            record_type: self.record_type.clone().unwrap_or(left_out.record_type),
            transport: self.transport.into(),
            rcode: self.rcode.clone().unwrap_or(left_out.rcode),
            expect: self.expect.clone(),
            min_answers: self.min_answers,
            recursion: self.recursion.unwrap_or(left_out.recursion),
            timeout: common.timeout,
        };
        Ok(DnsCheck::new(&self.server, &self.name, options)?
            .with_connect(common.connect()?)?
            .into())
    }
}
