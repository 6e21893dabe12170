use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::is_no;
use crate::definition::{TlsOptions, is_set};

#[derive(Serialize, Deserialize, Default, PartialEq)]
#[serde(default, deny_unknown_fields)]
pub(super) struct RawTls {
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
    #[serde(skip_serializing_if = "Option::is_none")]
    warning_days: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    critical_days: Option<u32>,
    #[serde(skip_serializing_if = "is_no")]
    resumption: bool,
}

fn is_unset(path: &Path) -> bool {
    !is_set(path)
}

impl RawTls {
    pub(super) fn is_default(&self) -> bool {
        *self == Self::default()
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
            warning_days: raw.warning_days,
            critical_days: raw.critical_days,
            resumption: raw.resumption,
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
            warning_days,
            critical_days,
            resumption,
        } = tls.clone();
        Self {
            skip_verify,
            server_name,
            ca_file,
            ca_path,
            cert_file,
            key_file,
            warning_days,
            critical_days,
            resumption,
        }
    }
}
