use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use evenkeel_probe::{
    Definition, DefinitionError, HttpCheck, HttpCredentials, HttpExpect, HttpTransport,
    HttpVersion, RedirectPolicy,
};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer};

use super::{Common, Kind};
use crate::config::duration;
use crate::config::text::DurationText;

/// An HTTP request. Its keys stand in the check itself.
#[derive(Clone, PartialEq, Default, Deserialize, JsonSchema)]
#[schemars(inline)]
pub struct Http {
    /// Probe by an HTTP request to this URL. A check has either `http` or `tcp`.
    #[serde(default)]
    #[schemars(example = &"https://shop.example/health")]
    pub http: Option<String>,

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

    /// Http: what the answer must be like, beyond the usual status codes.
    #[serde(default)]
    pub expect: Option<Expect>,

    /// Http: how redirects are followed.
    #[serde(default)]
    pub redirects: Option<Redirects>,

    /// Http: how the request gets to its target.
    #[serde(default)]
    pub transport: Option<Transport>,

    /// Http: what the request proves itself by, from a file that is read at
    /// each probe.
    #[serde(default)]
    pub credentials: Option<Credentials>,
}

/// How redirects are followed.
#[derive(Debug, Clone, PartialEq, Default, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(inline)]
pub struct Redirects {
    /// The most of one probe; one more is critical. 10 when left out.
    #[schemars(example = 3)]
    pub max: Option<u32>,
    /// One to another host is critical.
    #[schemars(example = true)]
    pub same_host_only: Option<bool>,
    /// One from https to http is followed.
    #[schemars(example = false)]
    pub allow_downgrade: Option<bool>,
}

impl From<&Redirects> for RedirectPolicy {
    fn from(redirects: &Redirects) -> Self {
        let defaults = Self::default();
        Self {
            max: redirects.max.unwrap_or(defaults.max),
            same_host_only: redirects.same_host_only.unwrap_or(defaults.same_host_only),
            allow_downgrade: redirects
                .allow_downgrade
                .unwrap_or(defaults.allow_downgrade),
        }
    }
}

/// How a request gets to its target.
#[derive(Clone, PartialEq, Default, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(inline)]
pub struct Transport {
    /// The version of HTTP: "1.1", "2", or "negotiated", which with TLS is what
    /// the server chooses.
    #[schemars(example = &"2")]
    pub version: Option<Version>,
    /// A socket of this machine to connect to instead of the URL's host.
    #[schemars(example = &"/run/app.sock")]
    pub unix_socket: Option<PathBuf>,
    /// A proxy to go through.
    #[schemars(example = &"http://proxy.example:3128")]
    pub proxy: Option<String>,
    /// Keep the connection for the next probe.
    #[schemars(example = true)]
    pub reuse: Option<bool>,
}

/// A version of HTTP.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[schemars(inline)]
pub enum Version {
    /// HTTP/1.1.
    #[serde(rename = "1.1")]
    Http1,
    /// HTTP/2.
    #[serde(rename = "2")]
    Http2,
    /// What the server chooses.
    #[serde(rename = "negotiated")]
    Negotiated,
}

impl TryFrom<&Transport> for HttpTransport {
    type Error = DefinitionError;

    fn try_from(transport: &Transport) -> Result<Self, DefinitionError> {
        #[cfg(not(unix))]
        if transport.unix_socket.is_some() {
            return Err(DefinitionError::Option {
                option: "unix_socket",
                reason: "is not supported on this system".to_owned(),
            });
        }
        Ok(Self {
            version: match transport.version {
                None | Some(Version::Http1) => HttpVersion::Http1,
                Some(Version::Http2) => HttpVersion::Http2,
                Some(Version::Negotiated) => HttpVersion::Negotiated,
            },
            #[cfg(unix)]
            unix_socket: transport.unix_socket.clone(),
            proxy: transport.proxy.clone(),
            reuse: transport.reuse.unwrap_or_default(),
        })
    }
}

/// What a request proves itself by.
#[derive(Debug, Clone, PartialEq, Default, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(inline)]
pub struct Credentials {
    /// The file with the token of "Authorization: Bearer".
    #[schemars(example = &"/run/secrets/token")]
    pub bearer_file: Option<PathBuf>,
    /// The user of "Authorization: Basic"; with password_file.
    #[schemars(example = &"monitor")]
    pub user: Option<String>,
    /// The file with the password of "Authorization: Basic"; with user.
    #[schemars(example = &"/run/secrets/password")]
    pub password_file: Option<PathBuf>,
    /// The name of another header; with value_file.
    #[schemars(example = &"X-Api-Key")]
    pub header: Option<String>,
    /// The file with the value of the header; with header.
    #[schemars(example = &"/run/secrets/key")]
    pub value_file: Option<PathBuf>,
}

impl TryFrom<&Credentials> for HttpCredentials {
    type Error = DefinitionError;

    fn try_from(given: &Credentials) -> Result<Self, DefinitionError> {
        let Credentials {
            bearer_file,
            user,
            password_file,
            header,
            value_file,
        } = given.clone();
        match (bearer_file, user, password_file, header, value_file) {
            (Some(bearer_file), None, None, None, None) => Ok(Self::Bearer { bearer_file }),
            (None, Some(user), Some(password_file), None, None) => Ok(Self::Basic {
                user,
                password_file,
            }),
            (None, None, None, Some(header), Some(value_file)) => {
                Ok(Self::Header { header, value_file })
            }
            _ => Err(DefinitionError::Option {
                option: "credentials",
                reason: "give bearer_file, or user and password_file, or header and value_file"
                    .to_owned(),
            }),
        }
    }
}

/// What an HTTP answer must be like.
#[derive(Debug, Clone, PartialEq, Default, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(inline)]
pub struct Expect {
    /// Status codes and ranges that are passing; all others are critical.
    #[schemars(example = &"200-299,401")]
    pub status: Option<String>,
    /// A regular expression that must match the body.
    #[schemars(example = &"\"db\":\\s*\"up\"")]
    pub body: Option<String>,
    /// A regular expression that must not match the body.
    #[schemars(example = &"(?i)maintenance")]
    pub not_body: Option<String>,
    /// JSON pointers into the body, and the value that each must lead to.
    #[schemars(example = &[("/status", "ok")])]
    pub json: BTreeMap<String, String>,
    /// Header fields, and a regular expression that the value must match.
    #[schemars(example = &[("Content-Type", "^application/json")])]
    pub headers: BTreeMap<String, String>,
    /// An answer that takes longer is a warning.
    #[serde(with = "duration::option")]
    #[schemars(with = "Option<DurationText>", example = &"500ms")]
    pub warning_after: Option<Duration>,
    /// An answer that takes longer is critical.
    #[serde(with = "duration::option")]
    #[schemars(with = "Option<DurationText>", example = &"2s")]
    pub critical_after: Option<Duration>,
}

impl From<&Expect> for HttpExpect {
    fn from(expect: &Expect) -> Self {
        Self {
            status: expect.status.clone().unwrap_or_default(),
            body: expect.body.clone(),
            not_body: expect.not_body.clone(),
            json: expect.json.clone(),
            headers: expect.headers.clone(),
            warning_after: expect.warning_after.unwrap_or_default(),
            critical_after: expect.critical_after.unwrap_or_default(),
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

impl Http {
    /// Itself, if the check is one of this kind.
    pub(super) fn given(&self) -> Option<&dyn Kind> {
        self.http.is_some().then_some(self)
    }

    /// The keys beside `http` that are given.
    pub(super) fn options(&self) -> impl Iterator<Item = &'static str> {
        [
            ("method", self.method.is_some()),
            ("headers", !self.headers.is_empty()),
            ("body", self.body.is_some()),
            ("follow_redirects", self.follow_redirects.is_some()),
            ("output_max_size", self.output_max_size.is_some()),
            ("expect", self.expect.is_some()),
            ("redirects", self.redirects.is_some()),
            ("transport", self.transport.is_some()),
            ("credentials", self.credentials.is_some()),
        ]
        .into_iter()
        .filter_map(|(key, given)| given.then_some(key))
    }

    fn header_lines(&self) -> impl Iterator<Item = (&str, &str)> {
        self.headers.iter().flat_map(|(name, values)| {
            values
                .0
                .iter()
                .map(move |value| (name.as_str(), value.as_str()))
        })
    }
}

type Part<'a> = (
    &'static str,
    Box<dyn Fn(HttpCheck) -> Result<HttpCheck, DefinitionError> + 'a>,
);

impl Http {
    /// What is set on the check of a URL, in order, with the key that says it.
    fn parts<'a>(&'a self, common: &'a Common<'_>) -> Vec<Part<'a>> {
        let mut parts: Vec<Part<'a>> = Vec::new();
        if let Some(method) = &self.method {
            parts.push(("method", Box::new(move |check| check.with_method(method))));
        }
        for (name, value) in self.header_lines() {
            parts.push((
                "headers",
                Box::new(move |check| check.with_header(name, value)),
            ));
        }
        if let Some(expect) = &self.expect {
            parts.push((
                "expect",
                Box::new(move |check| check.with_expect(expect.into())),
            ));
        }
        if let Some(redirects) = &self.redirects {
            parts.push((
                "redirects",
                Box::new(move |check| Ok(check.with_redirects(redirects.into()))),
            ));
        }
        if let Some(transport) = &self.transport {
            parts.push((
                "transport",
                Box::new(move |check| check.with_transport(transport.try_into()?)),
            ));
        }
        if let Some(credentials) = &self.credentials {
            parts.push((
                "credentials",
                Box::new(move |check| check.with_credentials(credentials.try_into()?)),
            ));
        }
        if let Some(tls) = common.tls {
            parts.push(("tls", Box::new(move |check| check.with_tls(tls.into()))));
        }
        if common.connect.is_some() {
            let connect = move |check: HttpCheck| check.with_connect(common.connect()?);
            parts.push(("connect", Box::new(connect)));
        }
        parts
    }
}

impl Kind for Http {
    fn key(&self) -> &'static str {
        "http"
    }

    fn takes(&self) -> &'static [&'static str] {
        &["tls", "connect"]
    }

    fn definition(&self, common: &Common<'_>) -> Result<Definition, DefinitionError> {
        let mut check = HttpCheck::new(self.http.as_deref().unwrap_or_default())?
            .with_timeout(common.timeout)
            .with_follow_redirects(self.follow_redirects.unwrap_or(true))
            .with_output_max_size(self.output_max_size.unwrap_or_default());
        if let Some(body) = &self.body {
            check = check.with_body(body.as_bytes());
        }
        for (_, set) in self.parts(common) {
            check = set(check)?;
        }
        Ok(check.into())
    }

    /// All that is wrong, not only the first.
    fn faults(&self, common: &Common<'_>) -> Vec<(String, String)> {
        let named = |(key, error): (&str, DefinitionError)| (key.to_owned(), error.to_string());
        let mut faults = Vec::new();
        let blank = match HttpCheck::new(self.http.as_deref().unwrap_or_default()) {
            Ok(check) => check,
            Err(error) => {
                faults.push(named(("http", error)));
                // The other parts are as wrong with another URL.
                match HttpCheck::new("https://localhost/") {
                    Ok(check) => check,
                    Err(_) => return faults,
                }
            }
        };
        for (key, set) in self.parts(common) {
            faults.extend(set(blank.clone()).err().map(|error| named((key, error))));
        }
        faults
    }
}
