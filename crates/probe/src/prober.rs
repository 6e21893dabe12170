use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use tokio::time::Instant;

use crate::clock::WallClock;
use crate::definition::Definition;
use crate::http::CredentialFiles;
#[cfg(feature = "icmp")]
use crate::icmp::{Icmp, IcmpSockets};
use crate::policy::TargetPolicy;
use crate::probe::Probe;
use crate::report::Report;
use crate::resolve::{Resolve, SystemResolver};
use crate::tls::{TlsConfigs, TlsDefaults};

/// A probe that is to take longer than this takes no longer than this.
const MAX_TIMEOUT: Duration = Duration::from_secs(24 * 60 * 60);

/// How a [`Prober`] works, for all its probes.
#[derive(Clone)]
#[non_exhaustive]
pub struct ProberSettings {
    /// Which addresses may be probed.
    pub policy: TargetPolicy,
    /// How redirects are followed, by the checks that follow them and do not
    /// say otherwise.
    pub redirects: RedirectPolicy,
    /// What checks that do not say otherwise trust and present.
    pub tls: TlsDefaults,
    /// What the time is, for certificates.
    pub clock: WallClock,
    /// The `User-Agent` header of checks without one. By default consul-esm's,
    /// `Consul Health Check`: firewalls and log filters know it.
    pub user_agent: String,
    /// The `Accept` header of checks without one. By default consul-esm's,
    /// `text/plain, text/*, */*`.
    pub accept: String,
    /// Turns names into addresses.
    pub resolver: Arc<dyn Resolve>,
    /// Which sockets are used for ICMP echoes.
    #[cfg(feature = "icmp")]
    pub icmp: IcmpSockets,
    /// The Docker daemon in whose containers commands may be run, as
    /// `unix:///path` or `tcp://host:port`. Without one, Docker checks are
    /// unprobed.
    #[cfg(feature = "docker")]
    pub docker: Option<String>,
    /// Whether programs may be run on this machine. Off by default: script
    /// checks are unprobed then.
    #[cfg(all(feature = "script", unix))]
    pub scripts: bool,
}

impl Default for ProberSettings {
    fn default() -> Self {
        Self {
            policy: TargetPolicy::default(),
            redirects: RedirectPolicy::default(),
            tls: TlsDefaults::default(),
            clock: WallClock::system(),
            user_agent: "Consul Health Check".to_owned(),
            accept: "text/plain, text/*, */*".to_owned(),
            resolver: Arc::new(SystemResolver::new()),
            #[cfg(feature = "icmp")]
            icmp: IcmpSockets::default(),
            #[cfg(feature = "docker")]
            docker: None,
            #[cfg(all(feature = "script", unix))]
            scripts: false,
        }
    }
}

/// How redirects are followed.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(default, deny_unknown_fields))]
pub struct RedirectPolicy {
    /// The most redirects of one probe; one more is critical (Go's client, and
    /// so consul-esm: 10).
    pub max: u32,
    /// A redirect from `https` to `http` is followed. Off by default: the
    /// answer would be unauthenticated (P087). (consul-esm follows it.)
    pub allow_downgrade: bool,
    /// Only redirects to the same host are followed.
    pub same_host_only: bool,
}

impl Default for RedirectPolicy {
    fn default() -> Self {
        Self {
            max: 10,
            allow_downgrade: false,
            same_host_only: false,
        }
    }
}

/// Runs probes. It holds what they share: resolver, TLS configurations, target
/// policy. Cheap to clone; any number of probes may run at once.
#[derive(Clone)]
pub struct Prober {
    pub(crate) shared: Arc<Shared>,
}

pub(crate) struct Shared {
    /// No other prober of this process has it.
    pub(crate) id: u64,
    pub(crate) policy: TargetPolicy,
    pub(crate) redirects: RedirectPolicy,
    pub(crate) tls: TlsConfigs,
    pub(crate) credentials: CredentialFiles,
    pub(crate) user_agent: Box<str>,
    pub(crate) accept: Box<str>,
    pub(crate) resolver: Arc<dyn Resolve>,
    #[cfg(feature = "icmp")]
    pub(crate) icmp: Icmp,
    #[cfg(feature = "docker")]
    pub(crate) docker: Option<crate::command::docker::Daemon>,
    /// Places for programs that run at once, if any may run.
    #[cfg(all(feature = "script", unix))]
    pub(crate) scripts: Option<Arc<tokio::sync::Semaphore>>,
}

/// How many programs run at once on this machine.
#[cfg(all(feature = "script", unix))]
const MAX_SCRIPTS: usize = 64;

/// How many probers there have been.
static PROBERS: AtomicU64 = AtomicU64::new(0);

impl Prober {
    /// A prober with these settings.
    ///
    /// # Errors
    /// [`SettingsError`] if a header cannot carry what it is given, or settings
    /// contradict each other.
    pub fn new(settings: ProberSettings) -> Result<Self, SettingsError> {
        for (name, value) in [
            ("user_agent", &settings.user_agent),
            ("accept", &settings.accept),
        ] {
            if ::http::HeaderValue::from_str(value).is_err() {
                return Err(SettingsError::Header { name });
            }
        }
        if !settings.tls.days().make_sense() {
            return Err(SettingsError::CertificateDays);
        }
        #[cfg(feature = "docker")]
        let docker = settings.docker.as_deref();
        Ok(Self {
            shared: Arc::new(Shared {
                id: PROBERS.fetch_add(1, Ordering::Relaxed),
                policy: settings.policy,
                redirects: settings.redirects,
                tls: TlsConfigs::new(settings.tls, settings.clock),
                credentials: CredentialFiles::default(),
                user_agent: settings.user_agent.into(),
                accept: settings.accept.into(),
                resolver: settings.resolver,
                #[cfg(feature = "icmp")]
                icmp: Icmp::new(settings.icmp),
                #[cfg(feature = "docker")]
                docker: docker
                    .map(crate::command::docker::Daemon::new)
                    .transpose()?,
                #[cfg(all(feature = "script", unix))]
                scripts: settings
                    .scripts
                    .then(|| Arc::new(tokio::sync::Semaphore::new(MAX_SCRIPTS))),
            }),
        })
    }

    /// Runs one probe of `definition`, never for longer than its timeout. Must
    /// be called within a tokio runtime with I/O and time enabled.
    ///
    /// Dropping the future ends the probe and its connection.
    pub async fn run(&self, definition: &Definition) -> Report {
        let now = Instant::now();
        let timeout = definition.timeout().min(MAX_TIMEOUT);
        definition.run(&self.shared, now, now + timeout).await
    }

    /// ICMP messages that were read and no round waited for: late answers, and
    /// what others send. Counted from the prober's beginning.
    #[cfg(feature = "icmp")]
    pub fn stray_echoes(&self) -> u64 {
        self.shared.icmp.strays()
    }

    /// `definition` as a [`Probe`] of this prober.
    pub fn bind(&self, definition: Arc<Definition>) -> impl Probe + use<> {
        Bound {
            prober: self.clone(),
            definition,
        }
    }
}

/// A setting that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SettingsError {
    /// A header cannot carry the value.
    #[error("{name} is no valid value of an HTTP header")]
    Header {
        /// The setting.
        name: &'static str,
    },
    /// With these days there would be no warning of a certificate's end.
    #[error("tls.critical_days is above tls.warning_days, so that a warning would never come")]
    CertificateDays,
    /// The Docker daemon's address has another form than these.
    #[cfg(feature = "docker")]
    #[error("docker is neither unix:///path nor tcp://host:port")]
    DockerHost,
}

struct Bound {
    prober: Prober,
    definition: Arc<Definition>,
}

#[async_trait]
impl Probe for Bound {
    async fn probe(&self, deadline: Instant) -> Report {
        let now = Instant::now();
        let timeout = self.definition.timeout().min(MAX_TIMEOUT);
        let deadline = deadline.min(now + timeout);
        self.definition
            .run(&self.prober.shared, now, deadline)
            .await
    }
}
