mod certificate;
mod expiry;
mod farewell;
mod files;
mod sessions;
mod text;
mod verify;

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use rustls::client::danger::ServerCertVerifier;
use rustls::{ClientConfig, HandshakeKind};
use rustls_pki_types::{ServerName, UnixTime};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use self::expiry::Wanted;
pub(crate) use self::expiry::{days_left, ends_in};
pub(crate) use self::farewell::farewell;
use self::files::{FileFault, Stamp};
use self::sessions::Sessions;
#[cfg(any(feature = "grpc", feature = "h2ping", feature = "http2"))]
pub(crate) use self::text::alert;
pub(crate) use self::text::describe;
use crate::clock::WallClock;
use crate::definition::{CertificateDays, Host, TlsOptions, is_set};
use crate::fault::Failure;
use crate::off_thread::off_thread;
use crate::progress::Progress;
use crate::report::{Cause, Phase};

/// What checks that do not say otherwise trust and present (consul-esm:
/// `https_ca_file`, `https_ca_path`, `https_cert_file`, `https_key_file`).
/// Empty paths are not set; without any CA the system's are trusted.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(default, deny_unknown_fields))]
pub struct TlsDefaults {
    /// A PEM file of CA certificates.
    pub ca_file: PathBuf,
    /// A directory of PEM files of CA certificates.
    pub ca_path: PathBuf,
    /// A PEM file of the client's certificate chain.
    pub cert_file: PathBuf,
    /// A PEM file of the client's private key.
    pub key_file: PathBuf,
    /// A warning while a certificate ends in fewer days, for checks that say
    /// nothing of days.
    pub warning_days: Option<u32>,
    /// Critical while a certificate ends in fewer days, for the same checks.
    pub critical_days: Option<u32>,
}

impl TlsDefaults {
    pub(crate) fn days(&self) -> CertificateDays {
        CertificateDays {
            warning: self.warning_days,
            critical: self.critical_days,
        }
    }
}

/// The most TLS configurations that are kept. More can only come up over time,
/// as definitions change; then all are dropped and made again when needed.
const MAX_CONFIGS: usize = 1024;

/// What a configuration is made of. The server name is not part of it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Key {
    skip_verify: bool,
    ca_file: PathBuf,
    ca_path: PathBuf,
    cert_file: PathBuf,
    key_file: PathBuf,
    alpn: Alpn,
    resumption: bool,
}

/// What a client says that it will speak over TLS.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Alpn {
    /// Nothing: it is the server's own protocol.
    None,
    /// `http/1.1`.
    Http1,
    /// `h2`.
    #[cfg(any(feature = "grpc", feature = "h2ping", feature = "http2"))]
    Http2,
    /// `h2` and `http/1.1`.
    #[cfg(feature = "http2")]
    Http1Or2,
    /// What the check says.
    Given(Box<[Box<str>]>),
}

impl Key {
    fn new(options: &TlsOptions, defaults: &TlsDefaults, alpn: Alpn) -> Self {
        // A check that names its own trust does not add the default's to it.
        let own_ca = is_set(&options.ca_file) || is_set(&options.ca_path);
        let (ca_file, ca_path) = if own_ca {
            (&options.ca_file, &options.ca_path)
        } else {
            (&defaults.ca_file, &defaults.ca_path)
        };
        let (cert_file, key_file) = if is_set(&options.cert_file) {
            (&options.cert_file, &options.key_file)
        } else {
            (&defaults.cert_file, &defaults.key_file)
        };
        Self {
            skip_verify: options.skip_verify,
            ca_file: ca_file.clone(),
            ca_path: ca_path.clone(),
            cert_file: cert_file.clone(),
            key_file: key_file.clone(),
            alpn,
            resumption: options.resumption,
        }
    }

    fn has_files(&self) -> bool {
        [
            &self.ca_file,
            &self.ca_path,
            &self.cert_file,
            &self.key_file,
        ]
        .into_iter()
        .any(|path| is_set(path))
    }
}

/// The TLS configurations in use, each made once and again when a file that it
/// was made from changes (P048).
pub(crate) struct TlsConfigs {
    defaults: TlsDefaults,
    clock: WallClock,
    slots: Mutex<HashMap<Key, Arc<Slot>>>,
}

/// One configuration.
#[derive(Default)]
struct Slot {
    made: Mutex<Option<Made>>,
    /// Held while files are looked at, by the thread that does it: thousands of
    /// probes that start at once make the configuration once, and a file system
    /// that hangs holds one thread, not one for each probe.
    turn: Arc<tokio::sync::Mutex<()>>,
}

struct Made {
    ready: Ready,
    stamp: Stamp,
}

/// What a handshake is done with.
#[derive(Clone)]
struct Ready {
    config: Arc<ClientConfig>,
    /// The one in the configuration, which does not give it back.
    verifier: Arc<dyn ServerCertVerifier>,
    /// If sessions are to be resumed.
    sessions: Option<Arc<Sessions>>,
}

impl TlsConfigs {
    pub(crate) fn new(defaults: TlsDefaults, clock: WallClock) -> Self {
        Self {
            defaults,
            clock,
            slots: Mutex::default(),
        }
    }

    /// The configuration for `options`. Files are looked at each time, off the
    /// runtime's thread.
    async fn get(&self, options: &TlsOptions, alpn: Alpn) -> Result<Ready, Failure> {
        let key = Key::new(options, &self.defaults, alpn);
        let slot = self.slot(&key);
        if !key.has_files()
            && let Some(ready) = slot.ready()
        {
            return Ok(ready);
        }
        let turn = slot.turn.clone().lock_owned().await;
        let clock = self.clock.clone();
        let looking = off_thread(move || {
            let ready = slot.refresh(&key, clock);
            drop(turn);
            ready
        });
        match looking.await {
            Ok(result) => {
                result.map_err(|fault| Failure::unprobed(Cause::TlsFiles, format!("tls: {fault}")))
            }
            // There are too many threads, or it panicked.
            Err(error) => Err(Failure::unprobed(
                Cause::TlsFiles,
                format!(
                    "tls: reading certificate files: {}",
                    crate::fault::describe(&error)
                ),
            )),
        }
    }

    fn slot(&self, key: &Key) -> Arc<Slot> {
        let mut slots = self.slots.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(slot) = slots.get(key) {
            return slot.clone();
        }
        if slots.len() >= MAX_CONFIGS {
            slots.clear();
        }
        slots.entry(key.clone()).or_default().clone()
    }

    /// [`Self::get`], and if the time runs out on it, that is not the target's
    /// fault.
    async fn ready(
        &self,
        options: &TlsOptions,
        alpn: Alpn,
        progress: &mut Progress,
    ) -> Result<Ready, Failure> {
        progress.own_fault = Some((
            Cause::TlsFiles,
            "tls: reading certificate files: context deadline exceeded".to_owned(),
        ));
        let ready = self.get(options, alpn).await?;
        progress.own_fault = None;
        Ok(ready)
    }

    /// Whether a handshake would still be done with what `made` is, which one was
    /// done with: not once a file has changed (P048).
    pub(crate) async fn makes_the_same(
        &self,
        made: &Weak<ClientConfig>,
        options: &TlsOptions,
        alpn: Alpn,
        progress: &mut Progress,
    ) -> Result<bool, Failure> {
        match self.ready(options, alpn, progress).await {
            Ok(ready) => Ok(Weak::ptr_eq(made, &Arc::downgrade(&ready.config))),
            Err(failure) => {
                progress.enter(Phase::Tls);
                Err(failure)
            }
        }
    }

    /// A handshake with `host` on `stream`. The name that is sent and verified
    /// is the options' or the host itself, never another (P047, P091).
    pub(crate) async fn handshake<S: AsyncRead + AsyncWrite + Unpin>(
        &self,
        stream: S,
        host: &Host,
        options: &TlsOptions,
        alpn: Alpn,
        progress: &mut Progress,
    ) -> Result<TlsStream<S>, Failure> {
        progress.enter(Phase::Tls);
        let ready = self.ready(options, alpn, progress).await?;
        progress.seen.get_or_insert_default().made_with = Arc::downgrade(&ready.config);
        let name = server_name(host, options)?;
        let resumable = ready
            .sessions
            .map(|sessions| sessions.of(&name, progress.address, &ready.config, self.now()));
        let config = match &resumable {
            Some(resumable) => resumable.config.clone(),
            None => ready.config,
        };
        let stream = TlsConnector::from(config)
            .connect(name, stream)
            .await
            .map_err(|error| Failure {
                cause: crate::fault::resource_cause(&error),
                text: describe(&error, "tls: handshake"),
            })?;
        let session = stream.get_ref().1;
        if let Some(resumable) = resumable
            && session.handshake_kind() != Some(HandshakeKind::Resumed)
        {
            let chain = session.peer_certificates().unwrap_or_default();
            resumable.verified(self.now(), expiry::first_end(chain));
        }
        self.look(&stream, host, options, &*ready.verifier, progress);
        Ok(stream)
    }

    /// What the time is.
    pub(crate) fn now(&self) -> UnixTime {
        self.clock.now()
    }

    /// Looks at the certificates of a handshake that was accepted.
    fn look<S>(
        &self,
        stream: &TlsStream<S>,
        host: &Host,
        options: &TlsOptions,
        verifier: &dyn ServerCertVerifier,
        progress: &mut Progress,
    ) {
        let chain = stream.get_ref().1.peer_certificates().unwrap_or_default();
        let holds_at = |seconds| {
            let time = UnixTime::since_unix_epoch(Duration::from_secs(seconds));
            match (chain, server_name(host, options)) {
                ([leaf, others @ ..], Ok(name)) => verifier
                    .verify_server_cert(leaf, others, &name, &[], time)
                    .is_ok(),
                _ => false,
            }
        };
        let now = self.clock.now().as_secs();
        let name = || name(host, options);
        let wanted = Wanted {
            days: options.days(self.defaults.days()),
            verified: !options.skip_verify,
        };
        expiry::look(chain, wanted, now, name, holds_at, progress);
    }
}

impl Slot {
    fn ready(&self) -> Option<Ready> {
        self.lock().as_ref().map(|made| made.ready.clone())
    }

    /// The configuration as the files are now. Blocks.
    fn refresh(&self, key: &Key, clock: WallClock) -> Result<Ready, FileFault> {
        // The stamp first: a change while the files are read is noticed next time.
        let stamp = files::stamp(key)?;
        if let Some(made) = &*self.lock()
            && made.stamp == stamp
        {
            return Ok(made.ready.clone());
        }
        let ready = files::make(key, &stamp, clock)?;
        *self.lock() = Some(Made {
            ready: ready.clone(),
            stamp,
        });
        Ok(ready)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Option<Made>> {
        self.made.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The name that is sent and verified, for texts.
pub(crate) fn name(host: &Host, options: &TlsOptions) -> String {
    match host {
        _ if !options.server_name.is_empty() => options.server_name.clone(),
        Host::Ip(ip) => ip.to_string(),
        Host::Name(name) => name.to_string(),
    }
}

fn server_name(host: &Host, options: &TlsOptions) -> Result<ServerName<'static>, Failure> {
    if !options.server_name.is_empty() {
        return ServerName::try_from(options.server_name.clone())
            .map_err(|_| invalid_name(&options.server_name));
    }
    match host {
        Host::Ip(ip) => Ok(ServerName::from(*ip)),
        Host::Name(name) => ServerName::try_from(name.to_string()).map_err(|_| invalid_name(name)),
    }
}

fn invalid_name(name: &str) -> Failure {
    Failure::critical(format!("tls: invalid server name \"{name}\""))
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::thread;

    use super::*;
    use crate::{Definition, HttpCheck, Outcome, Prober, ProberSettings};

    /// Somebody else's hold on what is made of the files stands for a file
    /// system that hangs: the look at the files does not come to its end.
    #[tokio::test]
    async fn files_that_cannot_be_read_in_time_say_nothing_of_the_target() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("https://{}/", listener.local_addr().unwrap());
        let file = tempfile::NamedTempFile::new().unwrap();
        let options = TlsOptions {
            ca_file: file.path().to_owned(),
            ..TlsOptions::default()
        };
        let check = HttpCheck::new(&url)
            .and_then(|check| {
                check
                    .with_timeout(Duration::from_millis(300))
                    .with_tls(options.clone())
            })
            .unwrap();
        let prober = Prober::new(ProberSettings::default()).unwrap();
        let configs = &prober.shared.tls;
        let slot = configs.slot(&Key::new(&options, &configs.defaults, Alpn::Http1));

        let (held, is_held) = mpsc::channel();
        let (release, released) = mpsc::channel::<()>();
        let holder = thread::spawn({
            let slot = Arc::clone(&slot);
            move || {
                let _made = slot.lock();
                held.send(()).unwrap();
                released.recv()
            }
        });
        is_held.recv().unwrap();
        let definition = Definition::Http(check);
        for _ in 0..3 {
            let report = prober.run(&definition).await;
            assert_eq!(report.outcome, Outcome::Unprobed(Cause::TlsFiles));
            assert_eq!(report.failed_phase, Some(Phase::Tls));
            assert!(
                report
                    .output
                    .contains("reading certificate files: context deadline exceeded"),
                "{}",
                report.output
            );
            // One thread waits for the files, however many probes did.
            assert!(slot.turn.try_lock().is_err());
        }
        release.send(()).unwrap();
        holder.join().unwrap().unwrap();
    }
}
