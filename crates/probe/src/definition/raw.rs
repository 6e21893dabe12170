//! The form of a definition in a file or an API, before it is validated.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::{Definition, DefinitionError, HttpCheck, TcpCheck, TlsOptions};

#[derive(Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub(super) enum RawDefinition {
    Http(Box<RawHttp>),
    Tcp(RawTcp),
    Faulty(RawFaulty),
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawHttp {
    url: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    method: String,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    headers: BTreeMap<String, Values>,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    body: String,
    #[serde(
        default,
        with = "crate::duration",
        skip_serializing_if = "Duration::is_zero"
    )]
    timeout: Duration,
    #[serde(default = "yes", skip_serializing_if = "is_yes")]
    follow_redirects: bool,
    #[serde(default, skip_serializing_if = "is_zero")]
    output_max_size: u32,
    #[serde(default, skip_serializing_if = "is_default")]
    tls: RawTls,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawTcp {
    address: String,
    #[serde(
        default,
        with = "crate::duration",
        skip_serializing_if = "Duration::is_zero"
    )]
    timeout: Duration,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    tls: Option<RawTls>,
    #[serde(default, skip_serializing_if = "is_no")]
    abortive_close: bool,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawFaulty {
    fault: String,
}

/// A header's one value or several.
#[derive(Serialize, Deserialize)]
#[serde(untagged, expecting = "a text or a list of texts")]
enum Values {
    One(String),
    Several(Vec<String>),
}

#[derive(Serialize, Deserialize, Default, PartialEq)]
#[serde(default, deny_unknown_fields)]
struct RawTls {
    #[serde(skip_serializing_if = "is_no")]
    skip_verify: bool,
    #[serde(skip_serializing_if = "String::is_empty")]
    server_name: String,
    #[serde(skip_serializing_if = "is_unset")]
    ca_file: PathBuf,
    #[serde(skip_serializing_if = "is_unset")]
    ca_path: PathBuf,
    #[serde(skip_serializing_if = "is_unset")]
    cert_file: PathBuf,
    #[serde(skip_serializing_if = "is_unset")]
    key_file: PathBuf,
}

fn yes() -> bool {
    true
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
fn is_yes(value: &bool) -> bool {
    *value
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
fn is_no(value: &bool) -> bool {
    !*value
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
fn is_zero(value: &u32) -> bool {
    *value == 0
}

fn is_default(tls: &RawTls) -> bool {
    *tls == RawTls::default()
}

fn is_unset(path: &std::path::Path) -> bool {
    !super::tls::is_set(path)
}

impl TryFrom<RawDefinition> for Definition {
    type Error = DefinitionError;

    fn try_from(raw: RawDefinition) -> Result<Self, DefinitionError> {
        match raw {
            RawDefinition::Http(raw) => {
                let mut check = HttpCheck::new(&raw.url)?
                    .with_method(&raw.method)?
                    .with_body(raw.body)
                    .with_timeout(raw.timeout)
                    .with_tls(raw.tls.into())?
                    .with_follow_redirects(raw.follow_redirects)
                    .with_output_max_size(raw.output_max_size);
                for (name, values) in &raw.headers {
                    let values = match values {
                        Values::One(value) => std::slice::from_ref(value),
                        Values::Several(values) => values,
                    };
                    for value in values {
                        check = check.with_header(name, value)?;
                    }
                }
                Ok(check.into())
            }
            RawDefinition::Tcp(raw) => {
                let mut check = TcpCheck::new(&raw.address)?
                    .with_timeout(raw.timeout)
                    .with_abortive_close(raw.abortive_close);
                if let Some(tls) = raw.tls {
                    check = check.with_tls(tls.into())?;
                }
                Ok(check.into())
            }
            RawDefinition::Faulty(raw) => Ok(Self::Faulty(raw.fault.into())),
        }
    }
}

/// A password in the URL is masked, and a body that is not UTF-8 loses what is
/// not: neither can have come from this form other than as text.
impl From<Definition> for RawDefinition {
    fn from(definition: Definition) -> Self {
        match definition {
            Definition::Http(check) => Self::Http(Box::new(RawHttp::from(&check))),
            Definition::Tcp(check) => Self::Tcp(RawTcp {
                address: check.address().to_owned(),
                timeout: check.given_timeout(),
                tls: check.tls().map(RawTls::from),
                abortive_close: check.abortive_close(),
            }),
            Definition::Faulty(fault) => Self::Faulty(RawFaulty {
                fault: fault.into(),
            }),
        }
    }
}

impl From<&HttpCheck> for RawHttp {
    fn from(check: &HttpCheck) -> Self {
        let mut headers: BTreeMap<String, Values> = BTreeMap::new();
        for (name, value) in check.headers() {
            let value = value.to_owned();
            match headers.get_mut(name) {
                None => {
                    headers.insert(name.to_owned(), Values::One(value));
                }
                Some(Values::Several(values)) => values.push(value),
                Some(values) => {
                    let Values::One(first) = std::mem::replace(values, Values::Several(Vec::new()))
                    else {
                        continue;
                    };
                    *values = Values::Several(vec![first, value]);
                }
            }
        }
        Self {
            url: check.url().to_owned(),
            method: match check.method() {
                "GET" => String::new(),
                method => method.to_owned(),
            },
            headers,
            body: String::from_utf8_lossy(check.body()).into_owned(),
            timeout: check.given_timeout(),
            follow_redirects: check.follow_redirects(),
            output_max_size: check.given_output_max_size(),
            tls: RawTls::from(check.tls()),
        }
    }
}

impl From<RawTls> for TlsOptions {
    fn from(raw: RawTls) -> Self {
        Self {
            skip_verify: raw.skip_verify,
            server_name: raw.server_name,
            ca_file: raw.ca_file,
            ca_path: raw.ca_path,
            cert_file: raw.cert_file,
            key_file: raw.key_file,
        }
    }
}

impl From<&TlsOptions> for RawTls {
    fn from(tls: &TlsOptions) -> Self {
        let TlsOptions {
            skip_verify,
            server_name,
            ca_file,
            ca_path,
            cert_file,
            key_file,
        } = tls.clone();
        Self {
            skip_verify,
            server_name,
            ca_file,
            ca_path,
            cert_file,
            key_file,
        }
    }
}
