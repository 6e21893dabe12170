use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::tls::RawTls;
use super::{is_unset, is_yes, is_zero, yes};
use crate::definition::{
    ConnectOptions, DefinitionError, HttpCheck, HttpCredentials, HttpExpect, HttpTransport,
};
use crate::prober::RedirectPolicy;

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::definition) struct RawHttp {
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
    #[serde(default, skip_serializing_if = "RawTls::is_default")]
    tls: RawTls,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    expect: Option<HttpExpect>,
    #[serde(default, skip_serializing_if = "is_unset")]
    connect: ConnectOptions,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    redirects: Option<RedirectPolicy>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    transport: Option<HttpTransport>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    credentials: Option<HttpCredentials>,
}

/// A header's one value or several.
#[derive(Serialize, Deserialize)]
#[serde(untagged, expecting = "a text or a list of texts")]
enum Values {
    One(String),
    Several(Vec<String>),
}

impl RawHttp {
    pub(super) fn check(self) -> Result<HttpCheck, DefinitionError> {
        let mut check = HttpCheck::new(&self.url)?
            .with_method(&self.method)?
            .with_body(self.body)
            .with_timeout(self.timeout)
            .with_tls(self.tls.into())?
            .with_expect(self.expect.unwrap_or_default())?
            .with_connect(self.connect)?
            .with_transport(self.transport.unwrap_or_default())?
            .with_follow_redirects(self.follow_redirects)
            .with_output_max_size(self.output_max_size);
        if let Some(policy) = self.redirects {
            check = check.with_redirects(policy);
        }
        if let Some(credentials) = self.credentials {
            check = check.with_credentials(credentials)?;
        }
        for (name, values) in &self.headers {
            let values = match values {
                Values::One(value) => std::slice::from_ref(value),
                Values::Several(values) => values,
            };
            for value in values {
                check = check.with_header(name, value)?;
            }
        }
        Ok(check)
    }
}

/// A password in the URL is masked, and a body that is not UTF-8 loses what is
/// not: neither can have come from this form other than as text.
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
            expect: check.expect().cloned(),
            connect: *check.connect(),
            redirects: check.redirects().cloned(),
            transport: check.transport().cloned(),
            credentials: check.credentials().cloned(),
        }
    }
}
