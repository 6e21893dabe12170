use std::path::PathBuf;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::config::duration;
use crate::config::text::{DurationText, Network};

/// How targets are probed, and which may be.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(inline)]
pub struct ProbeSettings {
    /// Address ranges that may be probed, checked on the resolved address and
    /// after redirects. Empty: all that `deny` does not name.
    #[schemars(example = ["10.0.0.0/8", "fd00::/8"])]
    pub allow: Vec<Network>,

    /// Address ranges that must not be probed, whatever `allow` says.
    #[schemars(example = ["10.99.0.0/16"])]
    pub deny: Vec<Network>,

    /// Probe the addresses under which clouds serve machine credentials
    /// (169.254.169.254 and its like), too.
    pub allow_metadata_addresses: bool,

    /// User-Agent of an HTTP probe whose check sets none.
    pub user_agent: String,

    /// Timeout of a check that sets none.
    #[serde(with = "duration")]
    #[schemars(with = "DurationText")]
    pub default_timeout: Duration,

    /// How many probes may run at once; a further one waits for its turn.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub max_concurrent: u32,

    /// Which checks may run commands in Docker containers: "off", "file" (those
    /// of a file of checks) or "all" (those that others register in Consul,
    /// too).
    pub docker: CommandChecks,

    /// The Docker daemon, as unix:///path or tcp://host:port.
    pub docker_host: String,

    /// Which checks may run programs on this machine: "off", "file" or "all".
    pub scripts: CommandChecks,

    /// How long the last good addresses of a name are used while the name
    /// servers fail or do not answer; "0s": not at all.
    #[serde(with = "duration")]
    #[schemars(with = "DurationText")]
    pub hold_addresses: Duration,

    /// Which sockets ICMP echoes use: "raw" ones need CAP_NET_RAW, "datagram" ones
    /// the program's group in net.ipv4.ping_group_range; "auto" is raw, or else
    /// datagram.
    pub icmp: IcmpSockets,

    /// File of certificate authorities for HTTPS targets, in PEM form. Without
    /// it and `https_ca_path`, the system's authorities.
    #[schemars(example = &"/etc/evenkeel/targets-ca.pem")]
    pub https_ca_file: Option<PathBuf>,

    /// Directory of certificate authorities, instead of `https_ca_file`.
    #[schemars(example = &"/etc/evenkeel/targets-ca.d")]
    pub https_ca_path: Option<PathBuf>,

    /// Client certificate for HTTPS targets; needs `https_key_file`.
    #[schemars(example = &"/etc/evenkeel/probe.pem")]
    pub https_cert_file: Option<PathBuf>,

    /// Key of the client certificate; needs `https_cert_file`.
    #[schemars(example = &"/etc/evenkeel/probe-key.pem")]
    pub https_key_file: Option<PathBuf>,

    /// Warning while a certificate that a target showed ends in fewer days, for
    /// checks that say nothing of days (those of Consul cannot).
    #[schemars(example = &21)]
    pub certificate_warning_days: Option<u32>,

    /// Critical while one ends in fewer days; not more than
    /// `certificate_warning_days`.
    #[schemars(example = &7)]
    pub certificate_critical_days: Option<u32>,
}

/// Which checks may run commands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub enum CommandChecks {
    /// None.
    #[default]
    Off,
    /// Those of a file of checks.
    File,
    /// All, whoever registered them.
    All,
}

/// Which sockets are used for ICMP echoes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub enum IcmpSockets {
    /// Raw ones where they are permitted, else datagram ones.
    #[default]
    Auto,
    /// Raw ones.
    Raw,
    /// Datagram ones.
    Datagram,
}

impl From<IcmpSockets> for evenkeel_probe::IcmpSockets {
    fn from(sockets: IcmpSockets) -> Self {
        match sockets {
            IcmpSockets::Auto => Self::Any,
            IcmpSockets::Raw => Self::Raw,
            IcmpSockets::Datagram => Self::Datagram,
        }
    }
}

impl Default for ProbeSettings {
    fn default() -> Self {
        Self {
            allow: Vec::new(),
            deny: Vec::new(),
            allow_metadata_addresses: false,
            // As Consul's agent and consul-esm.
            user_agent: "Consul Health Check".to_owned(),
            default_timeout: Duration::from_secs(10),
            // Above what hangs at once in most outages, so that the rest keeps its
            // pace; a probe that waits takes about 5 KiB. (P140)
            max_concurrent: 8192,
            docker: CommandChecks::Off,
            docker_host: "unix:///var/run/docker.sock".to_owned(),
            scripts: CommandChecks::Off,
            // Longer than a name server takes to restart. (P118)
            hold_addresses: Duration::from_secs(60),
            icmp: IcmpSockets::Auto,
            https_ca_file: None,
            https_ca_path: None,
            https_cert_file: None,
            https_key_file: None,
            certificate_warning_days: None,
            certificate_critical_days: None,
        }
    }
}
