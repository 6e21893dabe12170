//! The server's certificates, read again when their files change.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use evenkeel_xds::{Tls, TlsError};

use super::StartError;
use crate::config::XdsSettings;
use crate::document::read_file;

/// How often the files are looked at.
const PERIOD: Duration = Duration::from_secs(1);

/// A file larger than this holds no certificates.
const MOST_PEM_BYTES: u64 = 1 << 20;

/// Certificates as they are in files.
#[derive(Debug)]
pub(super) struct Certificates {
    paths: Paths,
    tls: Tls,
    /// What the files were like when they were read.
    read: Vec<Stamp>,
    /// Why the files as they are now cannot be used; what was read before holds.
    refused: Option<String>,
}

#[derive(Debug)]
struct Paths {
    certificate: PathBuf,
    key: PathBuf,
    clients: Option<PathBuf>,
}

/// Time of change, size and number of a file; none of one that is not there.
type Stamp = Option<(SystemTime, u64, u64)>;

struct Texts {
    certificate: Vec<u8>,
    key: Vec<u8>,
    clients: Option<Vec<u8>>,
}

impl Certificates {
    /// As they are configured; none without TLS.
    pub(super) fn read(settings: &XdsSettings) -> Result<Option<Self>, StartError> {
        let paths = match (&settings.cert_file, &settings.key_file) {
            (Some(certificate), Some(key)) => Paths {
                certificate: certificate.clone(),
                key: key.clone(),
                clients: settings.client_ca_file.clone(),
            },
            (None, None) if settings.client_ca_file.is_none() => return Ok(None),
            _ => return Err(StartError::HalfTls),
        };
        // Before the texts: a change in between is seen the next time.
        let read = paths.stamps();
        let texts = paths.texts()?;
        let tls = Tls::new(&texts.certificate, &texts.key, texts.clients.as_deref())?;
        Ok(Some(Self {
            paths,
            tls,
            read,
            refused: None,
        }))
    }

    pub(super) fn tls(&self) -> Tls {
        self.tls.clone()
    }

    /// Reads them again when they change, until it is dropped.
    pub(super) async fn watch(mut self) {
        loop {
            tokio::time::sleep(PERIOD).await;
            let renewing = tokio::task::spawn_blocking(move || {
                self.renew();
                self
            });
            match renewing.await {
                Ok(certificates) => self = certificates,
                Err(error) => {
                    tracing::error!(%error, "xDS certificates are not looked at any more");
                    return;
                }
            }
        }
    }

    /// Reads them again if they have changed. What cannot be used (half of a
    /// change, say) is told once, and tried again the next time.
    fn renew(&mut self) {
        let now = self.paths.stamps();
        if now == self.read {
            return;
        }
        match self.replace() {
            Ok(()) => {
                tracing::info!(file = %self.paths.certificate.display(), "xDS certificates are read again");
                self.read = now;
                self.refused = None;
            }
            Err(error) => {
                let error = error.to_string();
                if self.refused.as_ref() != Some(&error) {
                    tracing::warn!(
                        error,
                        "new xDS certificates cannot be used; the old ones stay"
                    );
                    self.refused = Some(error);
                }
            }
        }
    }

    fn replace(&self) -> Result<(), StartError> {
        let texts = self.paths.texts()?;
        let clients = texts.clients.as_deref();
        let replaced = self.tls.replace(&texts.certificate, &texts.key, clients);
        replaced.map_err(|error: TlsError| StartError::Tls(error))
    }
}

impl Paths {
    fn all(&self) -> impl Iterator<Item = &Path> {
        let both = [&self.certificate, &self.key].into_iter();
        both.chain(&self.clients).map(PathBuf::as_path)
    }

    fn stamps(&self) -> Vec<Stamp> {
        self.all()
            .map(|path| {
                let metadata = fs::metadata(path).ok()?;
                Some((metadata.modified().ok()?, metadata.len(), metadata.ino()))
            })
            .collect()
    }

    fn texts(&self) -> Result<Texts, StartError> {
        let read = |key: &'static str, path: &PathBuf| {
            read_file(path, MOST_PEM_BYTES)
                .map_err(|error| StartError::Read(key, path.clone(), error.to_string()))
        };
        let clients = self.clients.as_ref();
        Ok(Texts {
            certificate: read("xds.cert_file", &self.certificate)?,
            key: read("xds.key_file", &self.key)?,
            clients: clients
                .map(|path| read("xds.client_ca_file", path))
                .transpose()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn put(path: &Path, text: &str) {
        let new = path.with_extension("new");
        fs::write(&new, text).unwrap();
        fs::rename(new, path).unwrap();
    }

    fn pair() -> (String, String) {
        let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        (made.cert.pem(), made.signing_key.serialize_pem())
    }

    #[test]
    fn files_that_change_are_read_again_and_half_of_a_change_is_not_taken() {
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str| directory.path().join(name);
        let settings = XdsSettings {
            cert_file: Some(path("crt")),
            key_file: Some(path("key")),
            ..XdsSettings::default()
        };
        assert!(matches!(
            Certificates::read(&settings),
            Err(StartError::Read("xds.cert_file", ..))
        ));
        let (certificate, key) = pair();
        put(&path("crt"), &certificate);
        put(&path("key"), &key);
        let mut certificates = Certificates::read(&settings).unwrap().unwrap();
        let first = certificates.read.clone();
        certificates.renew();
        assert_eq!(certificates.read, first);

        let (certificate, key) = pair();
        put(&path("crt"), &certificate);
        certificates.renew();
        let told = certificates.refused.clone().unwrap();
        assert!(told.contains("certificate and key"), "{told}");
        assert_eq!(certificates.read, first, "and tried again");
        put(&path("key"), &key);
        certificates.renew();
        assert_eq!(certificates.refused, None);
        assert_ne!(certificates.read, first);

        fs::remove_file(path("crt")).unwrap();
        certificates.renew();
        assert!(certificates.refused.unwrap().contains("xds.cert_file"));
    }
}
