use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use evenkeel_probe::{
    HoldingResolver, Prober, ProberSettings, SystemResolver, TargetPolicy, TlsDefaults,
};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;

use crate::admin::{self, AdminHandle, Bound, SocketAccess};
use crate::catalog::consul::ConsulCatalog;
use crate::catalog::file::FileCatalog;
use crate::catalog::{self, CatalogMessage};
use crate::clock::Clock;
use crate::config::{
    CatalogKind, Changes, CommandChecks, Listen, ProbeSettings, Settings, default_sockets,
};
use crate::daemon::aliases::Aliases;
use crate::daemon::driver::{Driver, Inputs, Known};
use crate::daemon::heartbeats::Heartbeats;
use crate::daemon::leader::LeaderWatch;
use crate::daemon::lookups::Lookups;
use crate::daemon::probing::Probing;
use crate::daemon::readiness::Condition;
use crate::daemon::reporting::Reporting;
use crate::daemon::saving::{Saving, restored};
use crate::daemon::writing::{Target, Writing};
use crate::daemon::{Engine, consul_client};
use crate::delivery::Delivery;
use crate::document::read_file;
use crate::environment::Environment;
use crate::events::{EventLog, EventLogOptions};
use crate::exit::{Exit, Failure};
use crate::metrics::Metrics;
use crate::shutdown::Request;
use crate::state::{DirectoryLock, StateError, StateFile};
use crate::status::Readiness;
use crate::zones::{Source, ZonesTask};

/// Reads the configuration again.
pub type Reload = Box<dyn FnMut() -> Result<Settings, Failure> + Send>;

/// A daemon that is ready to run: its files are open and its sockets are bound.
pub struct Daemon {
    driver: Driver,
    inputs: Inputs,
    admin: AdminHandle,
    bound: Vec<Bound>,
    token: Option<Arc<str>>,
    settings: watch::Sender<Arc<Settings>>,
    /// Ends with the daemon.
    _catalog: Running,
    zones: ZonesTask,
    delivery: Option<Delivery>,
    /// Held until the last snapshot is written.
    _lock: Option<DirectoryLock>,
}

impl std::fmt::Debug for Daemon {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Daemon").finish_non_exhaustive()
    }
}

/// A catalog at work.
enum Running {
    Consul { _catalog: ConsulCatalog },
    File { _tasks: JoinSet<()> },
}

/// Runs the daemon until it is asked to stop, and then until all is in order.
///
/// # Errors
///
/// A [`Failure`] if it cannot start. Once it runs, nothing ends it but a
/// request.
pub async fn run(
    settings: Settings,
    environment: &Environment,
    requests: mpsc::Receiver<Request>,
    reload: Reload,
) -> Result<(), Failure> {
    let daemon = Daemon::start(settings, environment).await?;
    daemon.run(requests, reload).await;
    Ok(())
}

/// How many probes may run at once. Every one needs a descriptor, and the limit
/// that a shell sets, 1024 as a rule, may be raised by anyone to what the system
/// allows. What that leaves no room for is not run, so that snapshots and Consul
/// keep theirs.
fn probes_at_once(setting: u32) -> u32 {
    match rlimit::increase_nofile_limit(u64::MAX) {
        Ok(limit) => {
            let most = probes_within(setting, limit);
            if most < setting {
                tracing::warn!(
                    limit,
                    probe.max_concurrent = setting,
                    effective = most,
                    "fewer open files are allowed than probe.max_concurrent needs; fewer probes run at once"
                );
            }
            most
        }
        Err(error) => {
            tracing::warn!(%error, "the limit of open files cannot be raised");
            setting
        }
    }
}

/// As many of `setting` probes as `limit` open files allow, at least one.
fn probes_within(setting: u32, limit: u64) -> u32 {
    // Sockets of Consul and of the admin server, files, the runtime's own: about
    // 25 of an idle daemon that reads Consul, more with several at `status`.
    let reserve = (limit / 4).clamp(32, 128);
    let most = limit.saturating_sub(reserve).max(1);
    setting.min(u32::try_from(most).unwrap_or(u32::MAX))
}

impl Daemon {
    /// Opens, binds and connects all that is needed. Nothing is probed yet.
    ///
    /// # Errors
    ///
    /// The first thing that cannot be had, with the exit code for it.
    pub async fn start(settings: Settings, environment: &Environment) -> Result<Self, Failure> {
        let clock = Clock::start();
        let metrics = Arc::new(Metrics::new());
        metrics.started.set(clock.now().as_millis() as f64 / 1000.0);

        let state_dir = settings
            .state_dir
            .clone()
            .or_else(|| environment.get("STATE_DIRECTORY").map(Into::into));
        let events = EventLogOptions {
            path: settings
                .events
                .path
                .clone()
                .or_else(|| Some(state_dir.as_ref()?.join("events.jsonl"))),
            max_bytes: settings.events.rotate_size.0,
            keep: settings.events.keep,
        };
        let (state, lock) = match &state_dir {
            Some(dir) => {
                let refused =
                    |error: StateError| Failure::new(Exit::CannotCreate, error.to_string());
                let state = StateFile::in_directory(dir).map_err(refused)?;
                // Before anything in it is read or written.
                (Some(state), DirectoryLock::take(dir).map_err(refused)?)
            }
            None => (None, None),
        };
        let log = EventLog::open(&events).map_err(|error| {
            let path = events.path.unwrap_or_default();
            Failure::new(
                Exit::CannotCreate,
                format!("the event log {}: {error}", path.display()),
            )
        })?;
        let reporting = Reporting::new(clock, log, Arc::clone(&metrics));

        let mut engine = Engine::new(engine_settings(&settings));
        if let Some(state) = &state {
            let loaded = state
                .load()
                .map_err(|error| Failure::new(Exit::Io, error.to_string()))?;
            if let Some(damage) = &loaded.damage {
                reporting.fault(crate::events::Kind::StateDamaged, None, damage);
            }
            if loaded.saved_at.is_some() {
                tracing::info!(checks = loaded.checks.len(), "state restored");
            }
            engine.restore(restored(loaded.checks, loaded.saved_at, clock.now()));
        } else {
            tracing::warn!("no state_dir: pending counts do not survive a restart");
        }

        let held = held_addresses(&settings.probe);
        let prober = prober(&settings.probe, held.clone())?;
        let (bound, token) = bind_admin(&settings, environment).await?;

        let settings = Arc::new(settings);
        let (changes, changed) = watch::channel(Arc::clone(&settings));
        let (sender, catalog) = mpsc::channel::<CatalogMessage>(1);
        let mut lookups = None;
        let (running, target, leader, leadership, well, source) = match settings.catalog {
            Some(CatalogKind::File) => {
                let mut tasks = JoinSet::new();
                let catalog = FileCatalog::open(&settings)?;
                let source = Source::File(catalog.services());
                tasks.spawn(catalog.watch(changed, sender));
                let (_, never) = mpsc::channel(1);
                let running = Running::File { _tasks: tasks };
                (running, Target::Nowhere, None, never, None, source)
            }
            Some(CatalogKind::Consul) | None => {
                let client = consul_client::client(&settings.consul)?;
                consul_client::greet(&client).await?;
                let (leader, leadership) = LeaderWatch::start(client.clone());
                lookups = Some(Lookups::new(client.clone(), settings.consul.consistency()));
                let running =
                    catalog::consul::start(client.clone(), changed, sender, Arc::clone(&metrics));
                let well = Arc::clone(&running.well);
                let source = Source::Consul {
                    client: client.clone(),
                    wait: settings.consul.wait,
                    consistency: settings.consul.consistency(),
                    well: Arc::clone(&well),
                    keys: Arc::new(settings.zones.locality_keys()),
                };
                (
                    Running::Consul { _catalog: running },
                    Target::Consul(client),
                    Some(leader),
                    leadership,
                    Some(well),
                    source,
                )
            }
        };

        let (lookups, looked_up) = match lookups {
            Some((lookups, found)) => (Some(lookups), found),
            None => (None, mpsc::unbounded_channel().1),
        };
        let most = probes_at_once(settings.probe.max_concurrent);
        let most = usize::try_from(most).unwrap_or(usize::MAX);
        let (mut probing, findings) = Probing::new(prober, most);
        probing.count_held(held);
        let (writing, written) = Writing::new(target, Arc::clone(&metrics));
        let (saving, saves) = Saving::new(
            state,
            settings.run.snapshot_period,
            clock.now(),
            Arc::clone(&metrics),
        );
        let (readiness, seen) = watch::channel(Readiness::default());
        let (ask, questions) = mpsc::channel(16);
        let beat = Arc::new(AtomicU64::new(clock.now().as_millis()));
        let (released, told) = mpsc::unbounded_channel();
        let (ask_statuses, statuses) = mpsc::channel(16);
        let (zones, zones_handle) = ZonesTask::new(
            settings.zones.rules(),
            source,
            clock,
            Arc::clone(&metrics),
            told,
            ask_statuses,
        );
        // Grows from start to start, so that versions of two runs differ.
        let first_version = clock.now().as_millis();
        let delivery = Delivery::start(&settings.xds, zones_handle.clone(), first_version)
            .await
            .map_err(|error| Failure::new(Exit::CannotCreate, error.to_string()))?;
        if let Some(delivery) = &delivery {
            for socket in delivery.sockets() {
                tracing::info!(socket = %socket.display(), "xDS");
            }
            for address in delivery.listening() {
                tracing::info!(%address, "xDS");
                if !address.ip().is_loopback() && settings.xds.client_ca_file.is_none() {
                    tracing::warn!(%address, "whoever reaches it can read all endpoints: xds.client_ca_file is not set");
                }
            }
        }
        let admin = AdminHandle::new(
            ask,
            seen,
            Arc::clone(&metrics),
            clock,
            Arc::clone(&beat),
            zones_handle,
        )
        .with_xds(delivery.as_ref().map(|delivery| delivery.server().clone()));
        Ok(Self {
            driver: Driver {
                engine,
                clock,
                metrics,
                probing,
                writing,
                leader,
                lookups,
                well,
                reporting,
                saving,
                readiness,
                beat,
                grace: settings.run.shutdown_grace,
                known: Known::default(),
                condition: Condition::default(),
                heartbeats: Heartbeats::new(clock.now()),
                aliases: Aliases::default(),
                released,
            },
            inputs: Inputs {
                catalog,
                findings,
                written,
                leadership,
                looked_up,
                questions,
                saves,
                statuses,
            },
            admin,
            bound,
            token,
            settings: changes,
            _catalog: running,
            zones,
            delivery,
            _lock: lock,
        })
    }

    /// What the admin server answers from, for a program that embeds the daemon.
    pub fn admin(&self) -> AdminHandle {
        self.admin.clone()
    }

    /// The addresses that the admin server listens on.
    pub fn listening(&self) -> &[Bound] {
        &self.bound
    }

    /// The addresses on which proxies are served.
    pub fn serving_proxies(&self) -> Vec<std::net::SocketAddr> {
        self.delivery
            .as_ref()
            .map_or_else(Vec::new, Delivery::listening)
    }

    /// Runs until a request to shut down has been carried out.
    pub async fn run(self, requests: mpsc::Receiver<Request>, mut reload: Reload) {
        let Self {
            driver,
            inputs,
            admin,
            bound,
            token,
            settings,
            _catalog,
            zones,
            delivery,
            _lock,
        } = self;
        let mut servers = JoinSet::new();
        servers.spawn(admin::serve(bound, admin, token));
        servers.spawn(zones.run());
        if let Some(delivery) = delivery {
            servers.spawn(delivery.run());
        }
        let began = Arc::clone(&settings.borrow());
        let reload = move || match reload() {
            Ok(new) => {
                let new = Arc::new(new);
                let in_force = Changes::between(&settings.borrow(), &new).in_force;
                let need_restart = Changes::between(&began, &new).need_restart;
                let changed = settings.send_if_modified(|current| {
                    let changed = **current != *new;
                    *current = Arc::clone(&new);
                    changed
                });
                if changed {
                    tracing::info!(in_force = in_force.join(", "), "configuration read again");
                } else {
                    tracing::info!("configuration read again: nothing has changed");
                }
                // Also of an earlier reload: they are still not in force.
                if !need_restart.is_empty() {
                    tracing::warn!(
                        keys = need_restart.join(", "),
                        "changed keys that come into force at the next start"
                    );
                }
            }
            Err(failure) => {
                for message in &failure.messages {
                    tracing::error!("{message}");
                }
                tracing::error!("configuration refused: the one in force stays");
            }
        };
        driver.run(inputs, requests, reload).await;
    }
}

fn engine_settings(settings: &Settings) -> evenkeel_engine::Settings {
    let count = |number: u32| usize::try_from(number).unwrap_or(usize::MAX);
    evenkeel_engine::Settings {
        default_interval: settings.schedule.default_interval,
        minimum_interval: settings.schedule.minimum_interval,
        default_timeout: settings.probe.default_timeout,
        newcomers_per_second: settings.schedule.newcomers_per_second,
        output_period: settings.write.output_period,
        batch_gap: settings.write.batch_gap,
        batch_size: count(settings.write.batch_size),
        batches_in_flight: count(settings.write.batches_in_flight),
        // Rights come back without a sign of it in any list.
        refused_retry: std::time::Duration::from_secs(10),
        ..evenkeel_engine::Settings::default()
    }
}

/// What holds addresses through failures of the name servers, if anything does.
fn held_addresses(settings: &ProbeSettings) -> Option<Arc<HoldingResolver>> {
    let hold = settings.hold_addresses;
    let resolver = || HoldingResolver::new(Arc::new(SystemResolver::new()), hold);
    (!hold.is_zero()).then(|| Arc::new(resolver()))
}

/// The prober of these settings, which finds addresses by this resolver.
///
/// # Errors
///
/// A setting cannot be used.
pub(crate) fn prober(
    settings: &ProbeSettings,
    held: Option<Arc<HoldingResolver>>,
) -> Result<Prober, Failure> {
    let path = |path: &Option<std::path::PathBuf>| path.clone().unwrap_or_default();
    let mut with = ProberSettings::default();
    with.policy = TargetPolicy {
        allow: settings.allow.iter().map(|network| network.0).collect(),
        deny: settings.deny.iter().map(|network| network.0).collect(),
        allow_metadata: settings.allow_metadata_addresses,
    };
    with.tls = TlsDefaults {
        ca_file: path(&settings.https_ca_file),
        ca_path: path(&settings.https_ca_path),
        cert_file: path(&settings.https_cert_file),
        key_file: path(&settings.https_key_file),
        warning_days: settings.certificate_warning_days,
        critical_days: settings.certificate_critical_days,
    };
    if settings.docker != CommandChecks::Off {
        with.docker = Some(settings.docker_host.clone());
    }
    #[cfg(unix)]
    {
        with.scripts = settings.scripts != CommandChecks::Off;
    }
    if let Some(held) = held {
        with.resolver = held;
    }
    with.icmp = settings.icmp.into();
    with.user_agent.clone_from(&settings.user_agent);
    Prober::new(with).map_err(|error| Failure::new(Exit::Config, format!("probe: {error}")))
}

/// A file larger than this holds no token.
const MOST_TOKEN_BYTES: u64 = 64 * 1024;

/// Binds what is configured; without anything, the first default socket that
/// can be made. A daemon that nobody can ask still does its work, so that is no
/// failure.
async fn bind_admin(
    settings: &Settings,
    environment: &Environment,
) -> Result<(Vec<Bound>, Option<Arc<str>>), Failure> {
    let admin = &settings.admin;
    let access = SocketAccess {
        mode: admin.mode.0,
        group: admin.group.clone(),
    };
    let token = match (&admin.token, &admin.token_file) {
        (Some(token), _) => Some(Arc::from(token.expose())),
        (None, Some(path)) => {
            let refused = |text: String| {
                let text = format!("admin.token_file {}: {text}", path.display());
                Failure::new(Exit::Config, text)
            };
            let bytes = read_file(path, MOST_TOKEN_BYTES).map_err(refused)?;
            let text = String::from_utf8(bytes)
                .map_err(|_| refused("its content is not UTF-8".to_owned()))?;
            Some(Arc::from(text.trim()))
        }
        (None, None) => None,
    };
    let mut bound = Vec::new();
    for listen in &admin.listen {
        let one = admin::bind(listen, &access)
            .await
            .map_err(|error| Failure::new(Exit::CannotCreate, format!("admin.listen: {error}")))?;
        bound.push(one);
    }
    if admin.listen.is_empty() {
        let mut refused = Vec::new();
        for path in default_sockets(environment) {
            match admin::bind(&Listen::Unix(path), &access).await {
                Ok(one) => {
                    bound.push(one);
                    break;
                }
                Err(error) => refused.push(error.to_string()),
            }
        }
        if bound.is_empty() {
            tracing::warn!(
                reasons = refused.join("; "),
                "no admin socket: status and metrics cannot be asked for"
            );
        }
    }
    for one in &bound {
        match one {
            Bound::Unix(_, file) => tracing::info!(socket = %file.path().display(), "admin"),
            Bound::Tcp(_, address) => tracing::info!(%address, "admin"),
        }
    }
    Ok((bound, token))
}

#[cfg(test)]
mod tests {
    use super::probes_within;

    // P140
    #[test]
    fn a_low_limit_of_descriptors_leaves_some_for_the_rest() {
        assert_eq!(probes_within(8192, 1 << 20), 8192);
        assert_eq!(probes_within(8192, 8320), 8192);
        assert_eq!(probes_within(8192, 8319), 8191);
        assert_eq!(probes_within(8192, 1024), 896);
        assert_eq!(probes_within(8192, 40), 8);
        assert_eq!(probes_within(8192, 0), 1);
        assert_eq!(probes_within(4, 40), 4);
    }
}
