//! One check as the file has it.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use evenkeel_probe::{Definition, DefinitionError, HttpCheck, TcpCheck, TlsOptions};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer};

use super::EndpointEntry;
use crate::config::text::DurationText;
use crate::config::{ThresholdSettings, duration};
use crate::thresholds::{self, Source};

/// A file of checks.
#[derive(Debug, Clone, PartialEq, Default, Deserialize, JsonSchema)]
#[serde(default)]
pub struct File {
    /// The checks.
    pub check: Vec<Entry>,
    /// The endpoints of services, for zones.
    pub endpoint: Vec<EndpointEntry>,
}

/// One check: what is probed, how often, and how many results change its
/// status.
#[derive(Clone, PartialEq, Deserialize, JsonSchema)]
#[schemars(inline)]
pub struct Entry {
    /// What people call it.
    #[schemars(example = &"shop answers")]
    pub name: String,

    /// Its identity within node and service: with another id it is another
    /// check, whose counts start anew. The name, when left out.
    #[serde(default)]
    #[schemars(example = &"shop-http")]
    pub id: Option<String>,

    /// The node that it belongs to, for people, patterns and identity.
    #[serde(default = "default_node")]
    pub node: String,

    /// The service that it belongs to; none when left out.
    #[serde(default)]
    #[schemars(example = &"shop")]
    pub service: Option<String>,

    /// Probe by an HTTP request to this URL. A check has either `http` or `tcp`.
    #[serde(default)]
    #[schemars(example = &"https://shop.example/health")]
    pub http: Option<String>,

    /// Probe by a connection to this host and port.
    #[serde(default)]
    #[schemars(example = &"db.example:5432")]
    pub tcp: Option<String>,

    /// Http: the method; GET when left out.
    #[serde(default)]
    #[schemars(example = &"HEAD")]
    pub method: Option<String>,

    /// Http: request headers, each with one value or a list. Host sets the host
    /// that is asked for.
    #[serde(default)]
    #[schemars(example = &[("Host", "shop.example")])]
    pub headers: BTreeMap<String, HeaderValues>,

    /// Http: the request's body.
    #[serde(default)]
    #[schemars(example = &"ping")]
    pub body: Option<String>,

    /// Http: follow redirects; true when left out.
    #[serde(default)]
    #[schemars(example = false)]
    pub follow_redirects: Option<bool>,

    /// Http: how much of the answer's body is kept for people, in bytes; 4096
    /// when left out.
    #[serde(default)]
    #[schemars(range(min = 1, max = 131_072), example = 512)]
    pub output_max_size: Option<u32>,

    /// How TLS is spoken: by an https URL, or to a tcp address, which without
    /// this table is connected to without TLS.
    #[serde(default)]
    pub tls: Option<Tls>,

    /// Time between two probes; schedule.default_interval when left out.
    #[serde(default, with = "duration::option")]
    #[schemars(with = "Option<DurationText>", example = &"10s")]
    pub interval: Option<Duration>,

    /// How long a probe may take; probe.default_timeout when left out.
    #[serde(default, with = "duration::option")]
    #[schemars(with = "Option<DurationText>", example = &"3s")]
    pub timeout: Option<Duration>,

    /// The status before anything is known.
    #[serde(default)]
    pub initial_status: InitialStatus,

    /// Free text for people. Thresholds may stand in it, too, as in Consul.
    #[serde(default)]
    #[schemars(example = &"Owned by team shop.")]
    pub notes: Option<String>,

    /// How many results it takes to change the status.
    #[serde(flatten)]
    pub thresholds: ThresholdSettings,
}

/// The node of a check that names none.
pub(super) fn default_node() -> String {
    "file".to_owned()
}

/// The status before anything is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, JsonSchema, serde::Serialize)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub enum InitialStatus {
    /// As Consul has it.
    #[default]
    Critical,
    /// Neither.
    Warning,
    /// Innocent until proven guilty.
    Passing,
}

impl From<InitialStatus> for evenkeel_threshold::Status {
    fn from(status: InitialStatus) -> Self {
        match status {
            InitialStatus::Critical => Self::Critical,
            InitialStatus::Warning => Self::Warning,
            InitialStatus::Passing => Self::Passing,
        }
    }
}

/// How TLS is spoken.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(inline)]
pub struct Tls {
    /// Do not verify the target's certificate.
    pub skip_verify: bool,
    /// Name that the certificate must have, when it is not the host's.
    #[schemars(example = &"shop.example")]
    pub server_name: Option<String>,
    /// File of certificate authorities in PEM form, instead of the daemon's.
    #[schemars(example = &"/etc/evenkeel/shop-ca.pem")]
    pub ca_file: Option<PathBuf>,
    /// Directory of certificate authorities.
    #[schemars(example = &"/etc/evenkeel/shop-ca.d")]
    pub ca_path: Option<PathBuf>,
    /// Client certificate; needs `key_file`.
    #[schemars(example = &"/etc/evenkeel/shop.pem")]
    pub cert_file: Option<PathBuf>,
    /// Key of the client certificate; needs `cert_file`.
    #[schemars(example = &"/etc/evenkeel/shop-key.pem")]
    pub key_file: Option<PathBuf>,
}

impl From<&Tls> for TlsOptions {
    fn from(tls: &Tls) -> Self {
        Self {
            skip_verify: tls.skip_verify,
            server_name: tls.server_name.clone().unwrap_or_default(),
            ca_file: tls.ca_file.clone().unwrap_or_default(),
            ca_path: tls.ca_path.clone().unwrap_or_default(),
            cert_file: tls.cert_file.clone().unwrap_or_default(),
            key_file: tls.key_file.clone().unwrap_or_default(),
        }
    }
}

/// A header's values: one text, or a list of texts. They may be secrets.
#[derive(Clone, PartialEq, Eq)]
pub struct HeaderValues(pub Vec<String>);

impl std::fmt::Debug for HeaderValues {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(crate::config::text::MASK)
    }
}

impl<'de> Deserialize<'de> for HeaderValues {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Form {
            One(String),
            Several(Vec<String>),
        }
        Ok(Self(match Form::deserialize(deserializer)? {
            Form::One(value) => vec![value],
            Form::Several(values) => values,
        }))
    }
}

impl JsonSchema for HeaderValues {
    fn schema_name() -> Cow<'static, str> {
        "HeaderValues".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "anyOf": [
                { "type": "string" },
                { "type": "array", "items": { "type": "string" } },
            ]
        })
    }
}

/// Without what may be a secret: headers, body, and a password in the URL.
impl std::fmt::Debug for Entry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Entry")
            .field("node", &self.node)
            .field("service", &self.service)
            .field("id", &self.id())
            .finish_non_exhaustive()
    }
}

impl Entry {
    /// Its identity within the service.
    pub fn id(&self) -> &str {
        self.id.as_deref().unwrap_or(&self.name)
    }

    /// What is wrong with it, as pairs of the key (or nothing, for the check as
    /// a whole) and a sentence.
    pub fn faults(&self) -> Vec<(String, String)> {
        let mut faults = Vec::new();
        let mut fault = |key: &str, text: String| faults.push((key.to_owned(), text));
        let texts = [
            ("name", Some(&self.name)),
            ("id", self.id.as_ref()),
            ("node", Some(&self.node)),
            ("service", self.service.as_ref()),
        ];
        for (key, text) in texts {
            match text {
                Some(text) if text.trim().is_empty() => {
                    fault(key, "must not be empty".to_owned());
                }
                Some(text) if text.chars().any(char::is_control) => {
                    fault(key, "has a control character".to_owned());
                }
                _ => {}
            }
        }
        match (&self.http, &self.tcp) {
            (None, None) => fault("", "has neither http nor tcp".to_owned()),
            (Some(_), Some(_)) => fault("", "has both http and tcp".to_owned()),
            (None, Some(_)) => {
                let only_http = [
                    ("method", self.method.is_some()),
                    ("headers", !self.headers.is_empty()),
                    ("body", self.body.is_some()),
                    ("follow_redirects", self.follow_redirects.is_some()),
                    ("output_max_size", self.output_max_size.is_some()),
                ];
                for (key, _) in only_http.iter().filter(|(_, given)| *given) {
                    fault(key, "is for http, and this check has tcp".to_owned());
                }
            }
            (Some(_), None) => {}
        }
        let least = Duration::from_millis(1);
        for (key, duration) in [("interval", self.interval), ("timeout", self.timeout)] {
            if duration.is_some_and(|duration| duration < least) {
                fault(key, "must be more than zero".to_owned());
            }
        }
        faults.extend(thresholds::faults(&self.thresholds, Source::Definition));
        if let Some(url) = &self.http {
            faults.extend(self.http_faults(url));
        }
        if let Some(address) = &self.tcp {
            let check = TcpCheck::new(address).map_err(|error| ("tcp", error));
            let with_tls = check.and_then(|check| match &self.tls {
                None => Ok(check),
                Some(tls) => check.with_tls(tls.into()).map_err(|error| ("tls", error)),
            });
            faults.extend(with_tls.err().map(named));
        }
        faults
    }

    /// All that is wrong with the parts of an HTTP check, not only the first.
    fn http_faults(&self, url: &str) -> Vec<(String, String)> {
        let mut faults = Vec::new();
        let blank = match HttpCheck::new(url) {
            Ok(check) => check,
            Err(error) => {
                faults.push(named(("http", error)));
                // The other parts are as wrong with another URL.
                match HttpCheck::new("http://localhost/") {
                    Ok(check) => check,
                    Err(_) => return faults,
                }
            }
        };
        if let Some(method) = &self.method {
            let tried = blank.clone().with_method(method);
            faults.extend(tried.err().map(|error| named(("method", error))));
        }
        for (name, value) in self.header_lines() {
            let tried = blank.clone().with_header(name, value);
            faults.extend(tried.err().map(|error| named(("headers", error))));
        }
        if let Some(tls) = &self.tls {
            let tried = blank.with_tls(tls.into());
            faults.extend(tried.err().map(|error| named(("tls", error))));
        }
        faults
    }

    fn header_lines(&self) -> impl Iterator<Item = (&str, &str)> {
        self.headers.iter().flat_map(|(name, values)| {
            values
                .0
                .iter()
                .map(move |value| (name.as_str(), value.as_str()))
        })
    }

    /// What the prober is given.
    ///
    /// # Errors
    ///
    /// The first of [`Entry::faults`] that is about it.
    pub fn definition(&self, default_timeout: Duration) -> Result<Definition, DefinitionError> {
        let timeout = self.timeout.unwrap_or(default_timeout);
        if let Some(address) = &self.tcp {
            let check = TcpCheck::new(address)?.with_timeout(timeout);
            return Ok(match &self.tls {
                None => check.into(),
                Some(tls) => check.with_tls(tls.into())?.into(),
            });
        }
        let mut check = HttpCheck::new(self.http.as_deref().unwrap_or_default())?
            .with_timeout(timeout)
            .with_follow_redirects(self.follow_redirects.unwrap_or(true))
            .with_output_max_size(self.output_max_size.unwrap_or_default());
        if let Some(method) = &self.method {
            check = check.with_method(method)?;
        }
        for (name, value) in self.header_lines() {
            check = check.with_header(name, value)?;
        }
        if let Some(body) = &self.body {
            check = check.with_body(body.as_bytes());
        }
        if let Some(tls) = &self.tls {
            check = check.with_tls(tls.into())?;
        }
        Ok(check.into())
    }
}

fn named((key, error): (&str, DefinitionError)) -> (String, String) {
    (key.to_owned(), error.to_string())
}
