#[cfg(any(feature = "docker", all(feature = "script", unix)))]
mod command;
mod connect;
mod credentials;
mod dns;
#[cfg(feature = "docker")]
mod docker;
mod expect;
mod expected;
#[cfg(feature = "grpc")]
mod grpc;
#[cfg(feature = "h2ping")]
mod h2ping;
mod handshake;
mod http;
#[cfg(feature = "icmp")]
mod icmp;
#[cfg(feature = "serde")]
mod raw;
#[cfg(all(feature = "script", unix))]
mod script;
mod target;
mod tcp;
mod tls;
mod transport;
mod udp;

use std::time::Duration;

use evenkeel_threshold::Status;
use thiserror::Error;
use tokio::time::Instant;

#[cfg(any(feature = "docker", all(feature = "script", unix)))]
use self::command::command_options;
pub use self::connect::{ConnectOptions, Family};
pub use self::credentials::HttpCredentials;
pub(crate) use self::dns::Rcode;
pub use self::dns::{DnsCheck, DnsOptions, DnsTransport};
#[cfg(feature = "docker")]
pub use self::docker::DockerCheck;
pub(crate) use self::expect::Demands;
pub use self::expect::HttpExpect;
pub use self::expected::{Expected, Pattern};
#[cfg(feature = "grpc")]
pub use self::grpc::GrpcCheck;
#[cfg(feature = "h2ping")]
pub use self::h2ping::H2PingCheck;
pub use self::handshake::TlsCheck;
pub use self::http::HttpCheck;
#[cfg(feature = "icmp")]
pub use self::icmp::{IcmpCheck, IcmpOptions};
#[cfg(all(feature = "script", unix))]
pub use self::script::ScriptCheck;
pub(crate) use self::target::{Host, HttpUrl};
pub use self::tcp::{TcpCheck, TcpStep};
pub use self::tls::TlsOptions;
pub(crate) use self::tls::{CertificateDays, is_set};
pub(crate) use self::transport::Way;
pub use self::transport::{HttpTransport, HttpVersion};
pub use self::udp::{Silence, UdpCheck};
use crate::kind::{self, Kind};
use crate::prober::Shared;
use crate::report::Report;

/// How long a probe may take if the definition does not say (Consul and
/// consul-esm: 10 s).
pub const DEFAULT_TIMEOUT: Duration = Duration::from_secs(10);

/// How much of an answer's body is kept if the definition does not say, in
/// bytes (Consul's `output_max_size`).
pub const DEFAULT_OUTPUT_MAX_SIZE: u32 = 4096;

/// The most that a definition can ask to keep of a body, in bytes. Consul
/// refuses a transaction of more than 512 KiB.
pub const MAX_OUTPUT_MAX_SIZE: u32 = 128 * 1024;

/// One line per kind: what follows from that all kinds are alike.
macro_rules! kinds {
    ($(
        $(#[doc = $doc:literal])*
        $(#[cfg($condition:meta)])?
        $variant:ident($check:ty) = $word:literal,
    )*) => {
        /// What to probe and how. Everything in it has been validated, so that
        /// a probe can fail only for what the network and the target do.
        #[derive(Debug, Clone, PartialEq, Eq, Hash)]
        #[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
        #[cfg_attr(
            feature = "serde",
            serde(try_from = "raw::RawDefinition", into = "raw::RawDefinition")
        )]
        #[non_exhaustive]
        pub enum Definition {
            $(
                $(#[doc = $doc])*
                $(#[cfg($condition)])?
                $variant($check),
            )*
            /// What somebody else defined and cannot be probed as it is, e.g. a
            /// URL without a scheme. It is critical with this text at each
            /// probe, without any traffic, as in consul-esm, so that the fault
            /// is seen where the check is looked at.
            Faulty(Box<str>),
        }

        impl Definition {
            /// The longest that a probe of it takes.
            pub fn timeout(&self) -> Duration {
                match self {
                    $( $(#[cfg($condition)])? Self::$variant(check) => Kind::timeout(check), )*
                    Self::Faulty(_) => Duration::ZERO,
                }
            }

            /// A stable word for the kind, e.g. `http`, `tcp` or `faulty`.
            pub fn kind(&self) -> &'static str {
                match self {
                    $( $(#[cfg($condition)])? Self::$variant(_) => $word, )*
                    Self::Faulty(_) => "faulty",
                }
            }

            /// What is probed, for people: an address or a URL, without
            /// secrets; empty for a faulty definition.
            pub fn target(&self) -> &str {
                match self {
                    $( $(#[cfg($condition)])? Self::$variant(check) => Kind::target(check), )*
                    Self::Faulty(_) => "",
                }
            }

            pub(crate) fn run(
                &self,
                shared: &Shared,
                now: Instant,
                deadline: Instant,
            ) -> impl Future<Output = Report> + Send {
                async move { match self {
                    $(
                        $(#[cfg($condition)])?
                        Self::$variant(check) => kind::run(check, shared, now, deadline).await,
                    )*
                    Self::Faulty(fault) => {
                        Report::observed(Status::Critical, fault.to_string())
                    }
                } }
            }
        }

        $(
            $(#[cfg($condition)])?
            impl From<$check> for Definition {
                fn from(check: $check) -> Self {
                    Self::$variant(check)
                }
            }
        )*
    };
}

kinds! {
    /// An HTTP or HTTPS request.
    Http(HttpCheck) = "http",
    /// A TCP connection, with TLS if asked for.
    Tcp(TcpCheck) = "tcp",
    /// A TLS handshake.
    Tls(TlsCheck) = "tls",
    /// A datagram, and its reply or the lack of one.
    Udp(UdpCheck) = "udp",
    /// A question to a name server.
    Dns(DnsCheck) = "dns",
    /// A round of ICMP echoes.
    #[cfg(feature = "icmp")]
    Icmp(IcmpCheck) = "icmp",
    /// A question to the gRPC health service.
    #[cfg(feature = "grpc")]
    Grpc(GrpcCheck) = "grpc",
    /// An HTTP/2 ping.
    #[cfg(feature = "h2ping")]
    H2Ping(H2PingCheck) = "h2ping",
    /// A command in a Docker container.
    #[cfg(feature = "docker")]
    Docker(DockerCheck) = "docker",
    /// A command on this machine.
    #[cfg(all(feature = "script", unix))]
    Script(ScriptCheck) = "script",
}

/// Why something is no definition.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum DefinitionError {
    /// The URL cannot be read.
    #[error("parse \"{url}\": {reason}")]
    Url {
        /// As given; a password in it is masked.
        url: String,
        /// What is wrong with it.
        reason: String,
    },
    /// The URL is neither `http` nor `https`.
    #[error("\"{url}\": unsupported protocol scheme \"{scheme}\"")]
    Scheme {
        /// As given; a password in it is masked.
        url: String,
        /// What stands before the colon.
        scheme: String,
    },
    /// The method is no token of RFC 9110 section 5.6.2.
    #[error("net/http: invalid method \"{0}\"")]
    Method(String),
    /// The name is no token.
    #[error("net/http: invalid header field name \"{0}\"")]
    HeaderName(String),
    /// The value has a character that a header cannot carry. The value may be
    /// a secret, so only the name is told.
    #[error("net/http: invalid header field value for \"{0}\"")]
    HeaderValue(String),
    /// The address is not `host:port`.
    #[error("address {address}: {reason}")]
    Address {
        /// As given.
        address: String,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// The server name is neither a DNS name nor an IP address.
    #[error("tls: invalid server name \"{0}\"")]
    ServerName(String),
    /// The name of a host that a request is to be for cannot be one.
    #[cfg(feature = "grpc")]
    #[error("invalid authority \"{0}\"")]
    Authority(String),
    /// The name or id of a container cannot be one.
    #[cfg(feature = "docker")]
    #[error("invalid container name \"{0}\"")]
    Container(String),
    /// There is nothing that could be run.
    #[cfg(any(feature = "docker", all(feature = "script", unix)))]
    #[error("the command cannot be run: {0}")]
    Command(&'static str),
    /// An environment variable cannot be set. Its value may be a secret.
    #[cfg(all(feature = "script", unix))]
    #[error("the variable \"{0}\" cannot be set")]
    Variable(String),
    /// A client certificate without its key, or the other way round.
    #[error("tls: cert_file and key_file go together")]
    ClientCertificate,
    /// An option is out of its range, or contradicts another.
    #[error("{option}: {reason}")]
    Option {
        /// Its name.
        option: &'static str,
        /// What is wrong with it.
        reason: String,
    },
}

impl DefinitionError {
    fn option(option: &'static str, reason: impl Into<String>) -> Self {
        Self::Option {
            option,
            reason: reason.into(),
        }
    }
}
