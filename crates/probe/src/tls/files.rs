//! From files to a TLS configuration. Everything here blocks.

use std::fs;
use std::io::{Error, ErrorKind, Read as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use rustls::client::danger::ServerCertVerifier;
use rustls::client::{Resumption, WebPkiServerVerifier};
use rustls::crypto::{CryptoProvider, ring};
use rustls::{ClientConfig, RootCertStore};
use rustls_pki_types::pem::PemObject as _;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use thiserror::Error;

use super::verify::{AnyCertificate, PinnedOrWebPki};
use super::{Alpn, Key, Ready};
use crate::clock::WallClock;
use crate::definition::is_set;

/// A file larger than this is no set of certificates (the system's bundle has
/// about 220 KiB).
const MAX_FILE: u64 = 4 * 1024 * 1024;

/// What is known of the files that a configuration was made from.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Stamp(Vec<(PathBuf, Option<SystemTime>, u64, u64)>);

#[derive(Debug, Error)]
pub(super) enum FileFault {
    #[error("cannot read {what} {}: {reason}", path.display())]
    Read {
        what: &'static str,
        path: PathBuf,
        reason: String,
    },
    #[error("no certificate in {what} {}", path.display())]
    Empty { what: &'static str, path: PathBuf },
    #[error("the system has no CA certificates")]
    NoSystemRoots,
    #[error("client certificate {} and its key: {reason}", path.display())]
    Client { path: PathBuf, reason: String },
    #[error("{0}")]
    Rustls(#[from] rustls::Error),
}

/// What the files of `key` look like now.
pub(super) fn stamp(key: &Key) -> Result<Stamp, FileFault> {
    let mut stamp = Stamp::default();
    for (what, path) in [
        ("ca_file", &key.ca_file),
        ("cert_file", &key.cert_file),
        ("key_file", &key.key_file),
    ] {
        if is_set(path) {
            stamp.add(what, path)?;
        }
    }
    if is_set(&key.ca_path) {
        let fault = |error| read_fault("ca_path", &key.ca_path, &error);
        let mut files = Vec::new();
        for entry in fs::read_dir(&key.ca_path).map_err(fault)? {
            files.push(entry.map_err(fault)?.path());
        }
        files.sort();
        for file in files {
            if file.is_file() {
                stamp.add("ca_path", &file)?;
            }
        }
    }
    Ok(stamp)
}

impl Stamp {
    fn add(&mut self, what: &'static str, path: &Path) -> Result<(), FileFault> {
        let metadata = fs::metadata(path).map_err(|error| read_fault(what, path, &error))?;
        #[cfg(unix)]
        let inode = std::os::unix::fs::MetadataExt::ino(&metadata);
        #[cfg(not(unix))]
        let inode = 0;
        let modified = metadata.modified().ok();
        self.0
            .push((path.to_owned(), modified, metadata.len(), inode));
        Ok(())
    }

    fn within<'a>(&'a self, directory: &'a Path) -> impl Iterator<Item = &'a Path> {
        let paths = self.0.iter().map(|(path, ..)| path.as_path());
        paths.filter(move |path| path.parent() == Some(directory))
    }
}

/// Makes the configuration of `key`, whose files are those of `stamp`.
pub(super) fn make(key: &Key, stamp: &Stamp, clock: WallClock) -> Result<Ready, FileFault> {
    let provider = Arc::new(ring::default_provider());
    let verifier: Arc<dyn ServerCertVerifier> = if key.skip_verify {
        Arc::new(AnyCertificate::new(&provider))
    } else {
        Arc::new(verifier(key, stamp, provider.clone())?)
    };
    let builder = ClientConfig::builder_with_details(provider, Arc::new(clock))
        .with_safe_default_protocol_versions()?
        .dangerous()
        .with_custom_certificate_verifier(verifier.clone());
    let mut config = if is_set(&key.cert_file) {
        let chain = certificates("cert_file", &key.cert_file)?;
        let key_text = read("key_file", &key.key_file)?;
        let private = PrivateKeyDer::from_pem_slice(&key_text)
            .map_err(|error| read_fault("key_file", &key.key_file, &error))?;
        builder
            .with_client_auth_cert(chain, private)
            .map_err(|error| FileFault::Client {
                path: key.cert_file.clone(),
                reason: error.to_string(),
            })?
    } else {
        builder.with_no_client_auth()
    };
    // Where sessions are to be resumed, each target has a place of its own for them.
    config.resumption = Resumption::disabled();
    config.alpn_protocols = match &key.alpn {
        Alpn::None => Vec::new(),
        Alpn::Http1 => vec![b"http/1.1".to_vec()],
        #[cfg(any(feature = "grpc", feature = "h2ping", feature = "http2"))]
        Alpn::Http2 => vec![b"h2".to_vec()],
        #[cfg(feature = "http2")]
        Alpn::Http1Or2 => vec![b"h2".to_vec(), b"http/1.1".to_vec()],
        Alpn::Given(protocols) => protocols
            .iter()
            .map(|name| name.as_bytes().to_vec())
            .collect(),
    };
    Ok(Ready {
        config: Arc::new(config),
        verifier,
        sessions: key.resumption.then(Arc::default),
    })
}

fn verifier(
    key: &Key,
    stamp: &Stamp,
    provider: Arc<CryptoProvider>,
) -> Result<PinnedOrWebPki, FileFault> {
    let mut given = Vec::new();
    if is_set(&key.ca_file) {
        given.extend(certificates("ca_file", &key.ca_file)?);
    }
    if is_set(&key.ca_path) {
        let before = given.len();
        for file in stamp.within(&key.ca_path) {
            // Such directories also hold README files, keys and revocation lists.
            given.extend(certificates("ca_path", file).unwrap_or_default());
        }
        if given.len() == before {
            return Err(FileFault::Empty {
                what: "ca_path",
                path: key.ca_path.clone(),
            });
        }
    }
    let own = is_set(&key.ca_file) || is_set(&key.ca_path);
    let mut roots = RootCertStore::empty();
    if own {
        let (added, _) = roots.add_parsable_certificates(given.iter().cloned());
        if added == 0 {
            return Err(FileFault::Empty {
                what: if is_set(&key.ca_file) {
                    "ca_file"
                } else {
                    "ca_path"
                },
                path: if is_set(&key.ca_file) {
                    &key.ca_file
                } else {
                    &key.ca_path
                }
                .clone(),
            });
        }
    } else {
        let system = rustls_native_certs::load_native_certs();
        let (added, _) = roots.add_parsable_certificates(system.certs);
        if added == 0 {
            return Err(FileFault::NoSystemRoots);
        }
    }
    let inner = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider)
        .build()
        .map_err(|error| FileFault::Rustls(rustls::Error::General(error.to_string())))?;
    Ok(PinnedOrWebPki::new(inner, given))
}

fn certificates(
    what: &'static str,
    path: &Path,
) -> Result<Vec<CertificateDer<'static>>, FileFault> {
    let text = read(what, path)?;
    let certificates: Vec<_> = CertificateDer::pem_slice_iter(&text)
        .collect::<Result<_, _>>()
        .map_err(|error| read_fault(what, path, &error))?;
    if certificates.is_empty() {
        return Err(FileFault::Empty {
            what,
            path: path.to_owned(),
        });
    }
    Ok(certificates)
}

fn read(what: &'static str, path: &Path) -> Result<Vec<u8>, FileFault> {
    let fault = |error: Error| read_fault(what, path, &error);
    // To open a pipe that nobody writes to waits for ever, and a device may have no
    // end. Whoever puts a pipe in place between this and the opening can still make
    // it wait.
    if !fs::metadata(path).map_err(fault)?.is_file() {
        let other = Error::new(ErrorKind::InvalidInput, "not a regular file");
        return Err(fault(other));
    }
    let mut bytes = Vec::new();
    fs::File::open(path)
        .and_then(|file| file.take(MAX_FILE + 1).read_to_end(&mut bytes))
        .map_err(fault)?;
    if bytes.len() as u64 > MAX_FILE {
        let too_large = Error::new(ErrorKind::FileTooLarge, "larger than 4 MiB");
        return Err(fault(too_large));
    }
    Ok(bytes)
}

fn read_fault(what: &'static str, path: &Path, reason: &dyn std::fmt::Display) -> FileFault {
    let reason = reason.to_string();
    FileFault::Read {
        what,
        path: path.to_owned(),
        reason: reason
            .split(" (os error")
            .next()
            .unwrap_or_default()
            .to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(unix)]
    #[test]
    fn pipes_and_devices_are_not_read() {
        let dir = tempfile::tempdir().unwrap();
        let pipe = dir.path().join("pipe");
        let made = std::process::Command::new("mkfifo").arg(&pipe).status();
        assert!(made.unwrap().success());
        for path in [&*pipe, Path::new("/dev/zero")] {
            let told = read("ca_file", path).unwrap_err().to_string();
            let wanted = format!("cannot read ca_file {}: not a regular file", path.display());
            assert_eq!(told, wanted);
        }
    }

    #[test]
    fn a_file_over_the_limit_is_not_read() {
        let file = tempfile::NamedTempFile::new().unwrap();
        file.as_file().set_len(MAX_FILE + 1).unwrap();
        let told = read("ca_file", file.path()).unwrap_err().to_string();
        assert!(told.ends_with("larger than 4 MiB"), "{told}");
        file.as_file().set_len(MAX_FILE).unwrap();
        assert_eq!(read("ca_file", file.path()).unwrap().len() as u64, MAX_FILE);
    }
}
