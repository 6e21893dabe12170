//! How Consul is reached: address, token, TLS, limits.
//!
//! Nothing here reads the environment or a file by itself: the standard
//! `CONSUL_*` variables come through a closure
//! ([`Config::apply_variables`]), files are read by the client when it is made.

mod address;
mod secret;
mod variables;

pub use address::{Address, ParseAddressError};
pub use secret::Secret;
pub use variables::{VARIABLES, VariableError};

use std::path::PathBuf;
use std::time::Duration;

/// How Consul is reached. Plain data: start from [`Config::default`] or
/// [`Config::from_variables`] and set what differs.
///
/// ```
/// use evenkeel_consul::config::{Config, Secret};
///
/// let config = Config {
///     address: "https://consul.example:8501".parse()?,
///     token: Some(Secret::new("b1gs33cr3t")),
///     ..Config::default()
/// };
/// assert!(!format!("{config:?}").contains("b1gs33cr3t"));
/// # Ok::<(), evenkeel_consul::config::ParseAddressError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Config {
    /// Where the API listens; [`Address::local`] by default.
    pub address: Address,
    /// The ACL token, sent as `X-Consul-Token`.
    pub token: Option<Secret>,
    /// A file that holds the ACL token; it is read again when it changes.
    /// Used only where `token` is not set.
    pub token_file: Option<PathBuf>,
    /// User and password for HTTP basic authentication.
    pub auth: Option<BasicAuth>,
    /// How TLS is spoken, with an `https` address.
    pub tls: Tls,
    /// Consul Enterprise: the namespace of requests that do not name one.
    pub namespace: Option<String>,
    /// Consul Enterprise: the partition of requests that do not name one.
    pub partition: Option<String>,
    /// The datacenter of requests; the agent's own if not set.
    pub datacenter: Option<String>,
    /// Deadline of a list that does not wait for changes, its body included.
    /// 30 s by default: one of 20,000 checks takes a loaded server seconds.
    pub list_timeout: Duration,
    /// Deadline of every other request. 10 s by default: longer than the 7 s
    /// for which Consul itself waits for a leader before it says that there is
    /// none.
    pub timeout: Duration,
    /// Deadline for a connection to be made, TLS included. 5 s by default.
    pub connect_timeout: Duration,
    /// Requests under way at the same time, at most; 2 to 100. Consul closes
    /// connections beyond `http_max_conns_per_client` (200) without a word, so
    /// the default of 32 leaves room for others on the same host.
    pub max_concurrency: usize,
    /// How much of an answer is taken.
    pub limits: Limits,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            address: Address::local(),
            token: None,
            token_file: None,
            auth: None,
            tls: Tls::default(),
            namespace: None,
            partition: None,
            datacenter: None,
            list_timeout: Duration::from_secs(30),
            timeout: Duration::from_secs(10),
            connect_timeout: Duration::from_secs(5),
            max_concurrency: 32,
            limits: Limits::default(),
        }
    }
}

/// User and password for HTTP basic authentication.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BasicAuth {
    /// The user.
    pub user: String,
    /// The password; empty if there is none.
    pub password: Secret,
}

/// How TLS is spoken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tls {
    /// PEM file with the certificates of the authorities to trust. With this
    /// or `ca_path` set, the system's own are not trusted.
    pub ca_file: Option<PathBuf>,
    /// Directory of such files.
    pub ca_path: Option<PathBuf>,
    /// PEM file with our certificate and its chain.
    pub cert_file: Option<PathBuf>,
    /// PEM file with the key of our certificate.
    pub key_file: Option<PathBuf>,
    /// The name the server's certificate must be for, if not the host's.
    pub server_name: Option<String>,
    /// Whether the server's certificate is verified; true by default.
    pub verify: bool,
}

impl Default for Tls {
    fn default() -> Self {
        Self {
            ca_file: None,
            ca_path: None,
            cert_file: None,
            key_file: None,
            server_name: None,
            verify: true,
        }
    }
}

/// How much of an answer is taken. Beyond that it is an error that says so.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of an answer that is taken as a whole (all but lists); 16 MiB by
    /// default.
    pub answer: usize,
    /// Bytes of a list's answer in all; 1 GiB by default. Lists are decoded
    /// as they come in, so this is not memory.
    pub list: u64,
    /// Elements of a list; 300,000 by default. Each is some hundred bytes of
    /// memory for whoever keeps it, however few bytes it was in the answer.
    pub elements: u64,
    /// Bytes of one element of a list; 4 MiB by default (Consul's own limit
    /// for what a request may carry is 512 KiB).
    pub element: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            answer: 16 << 20,
            list: 1 << 30,
            elements: 300_000,
            element: 4 << 20,
        }
    }
}
