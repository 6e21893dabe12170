use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::future::Future;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use evenkeel_xds::{Assignment, Assignments, Audience, Server};
use evenkeel_zone_weights::Locality;
use tokio::sync::{Notify, watch};
use tokio::task::{AbortHandle, JoinSet};

use super::Mode;
use super::assignment::{self, Told};
use super::certificates::Certificates;
use super::files::{self, Files};
use super::refusals::Refusals;
use crate::admin::{self, BindError, Bound, SocketAccess};
use crate::config::XdsSettings;
use crate::zones::{self, PairView, ServiceView, Unanswered, ZonesHandle};

/// What could not be followed is tried again after this.
const RETRY: Duration = Duration::from_secs(5);

/// Why proxies cannot be served.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// An address cannot be listened on.
    #[error("xds.listen: {0}")]
    Listen(#[from] BindError),
    /// A file cannot be read.
    #[error("{0} {1}: {2}")]
    Read(&'static str, PathBuf, String),
    /// A certificate cannot be used.
    #[error("xds: {0}")]
    Tls(#[from] evenkeel_xds::TlsError),
    /// One of certificate and key is missing.
    #[error("xds.cert_file and xds.key_file belong together, and xds.client_ca_file needs them")]
    HalfTls,
    /// The directory for files cannot be made.
    #[error("xds.files {0}: {1}")]
    Files(PathBuf, std::io::Error),
}

/// Serves proxies, and follows what they ask for.
#[derive(Debug)]
pub struct Delivery {
    server: Server,
    bound: Vec<Bound>,
    certificates: Option<Certificates>,
    zones: ZonesHandle,
    mode: Mode,
    files: Option<Files>,
    /// What there are files of: called and calling services.
    listed: (Vec<Arc<str>>, Vec<Arc<str>>),
    followed: BTreeMap<Want, Followed>,
    told: HashMap<(Want, For), Kept>,
    news: Arc<Notify>,
}

/// What is followed.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum Want {
    Service(Arc<str>),
    /// Called and calling service.
    Pair(Arc<str>, Arc<str>),
}

/// For whom an assignment is made.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum For {
    /// Whoever calls the service.
    Everyone,
    /// The instances of the service themselves.
    Itself,
    /// Callers in a zone.
    Zone(Locality),
}

#[derive(Debug)]
struct Followed {
    view: View,
    waker: AbortHandle,
}

impl Drop for Followed {
    fn drop(&mut self) {
        self.waker.abort();
    }
}

#[derive(Debug)]
enum View {
    Service(watch::Receiver<Arc<ServiceView>>),
    Pair(watch::Receiver<Arc<PairView>>),
}

/// An assignment that has been made, and of which version.
#[derive(Debug)]
struct Kept {
    version: u64,
    assignment: Arc<Assignment>,
}

impl Delivery {
    /// Binds what is configured; none if nothing is. `first_version` is what
    /// proxies are told first; see [`Server::new`].
    ///
    /// # Errors
    ///
    /// [`StartError`].
    pub async fn start(
        settings: &XdsSettings,
        zones: ZonesHandle,
        first_version: u64,
    ) -> Result<Option<Self>, StartError> {
        if settings.listen.is_empty() && settings.files.is_none() {
            return Ok(None);
        }
        let certificates = Certificates::read(settings)?;
        let access = SocketAccess {
            mode: settings.socket_mode.0,
            group: settings.socket_group.clone(),
        };
        let mut bound = Vec::new();
        for listen in &settings.listen {
            bound.push(admin::bind(listen, &access).await?);
        }
        let files = match &settings.files {
            Some(path) => {
                Some(Files::below(path).map_err(|error| StartError::Files(path.clone(), error))?)
            }
            None => None,
        };
        let names = |names: &[String]| names.iter().map(|name| Arc::from(name.as_str())).collect();
        Ok(Some(Self {
            server: Server::new(evenkeel_xds::Settings::default(), first_version),
            bound,
            certificates,
            zones,
            mode: settings.mode,
            files,
            listed: (names(&settings.services), names(&settings.callers)),
            followed: BTreeMap::new(),
            told: HashMap::new(),
            news: Arc::default(),
        }))
    }

    /// The server, for what it can tell.
    pub fn server(&self) -> &Server {
        &self.server
    }

    /// The addresses that it listens on.
    pub fn listening(&self) -> Vec<SocketAddr> {
        let bound = self.bound.iter();
        bound
            .filter_map(|bound| match bound {
                Bound::Tcp(_, address) => Some(*address),
                Bound::Unix(..) => None,
            })
            .collect()
    }

    /// The unix sockets that it listens on.
    pub fn sockets(&self) -> impl Iterator<Item = &Path> {
        self.bound.iter().filter_map(|bound| match bound {
            Bound::Tcp(..) => None,
            Bound::Unix(_, file) => Some(file.path()),
        })
    }

    /// Runs until it is dropped.
    pub async fn run(mut self) {
        let mut tasks = JoinSet::new();
        let tls = self.certificates.as_ref().map(Certificates::tls);
        for bound in std::mem::take(&mut self.bound) {
            let (server, tls) = (self.server.clone(), tls.clone());
            tasks.spawn(async move {
                let forever = std::future::pending();
                match bound {
                    Bound::Tcp(listener, _) => server.serve(listener, tls, forever).await,
                    Bound::Unix(listener, _file) => server.serve(listener, tls, forever).await,
                }
            });
        }
        if let Some(certificates) = self.certificates.take() {
            tasks.spawn(certificates.watch());
        }
        tasks.spawn(Refusals::of(&self.server).log());
        let mut wakers = JoinSet::new();
        let mut interest = self.server.interest_changes();
        loop {
            let wanted = self.wanted();
            let whole = self.follow(&wanted, &mut wakers).await;
            self.publish();
            self.write_files().await;
            tokio::select! {
                _ = interest.changed() => {}
                () = self.news.notified() => {}
                () = tokio::time::sleep(RETRY), if !whole => {}
                Some(_) = wakers.join_next() => {}
            }
        }
    }

    /// What is asked for.
    fn wanted(&self) -> BTreeSet<Want> {
        let mut wanted = BTreeSet::new();
        for (audience, clusters) in self.server.interest() {
            wanted.extend(clusters.iter().map(|name| self.want(&audience, name)));
        }
        if self.files.is_some() {
            let (services, callers) = &self.listed;
            wanted.extend(services.iter().cloned().map(Want::Service));
            for service in services {
                let pairs = callers.iter().cloned();
                wanted.extend(pairs.map(|callers| Want::Pair(Arc::clone(service), callers)));
            }
        }
        wanted
    }

    fn want(&self, audience: &Audience, cluster: &Arc<str>) -> Want {
        match self.mode {
            // What a proxy asks for of its own service is where its fellows are.
            Mode::Weights if !audience.callers.is_empty() && *audience.callers != **cluster => {
                Want::Pair(Arc::clone(cluster), audience.callers.as_str().into())
            }
            Mode::Weights | Mode::Envoy => Want::Service(Arc::clone(cluster)),
        }
    }

    /// Follows that and nothing else. Whether all of it could be.
    async fn follow(&mut self, wanted: &BTreeSet<Want>, wakers: &mut JoinSet<()>) -> bool {
        self.followed.retain(|want, _| wanted.contains(want));
        self.told.retain(|(want, _), _| wanted.contains(want));
        let mut whole = true;
        for want in wanted {
            if self.followed.contains_key(want) {
                continue;
            }
            let view = match want {
                Want::Service(name) => self.zones.service(name).await.map(View::Service),
                Want::Pair(upstream, callers) => self
                    .zones
                    .pair(upstream, callers, None)
                    .await
                    .map(View::Pair),
            };
            match view {
                Ok(view) => {
                    let waker = match &view {
                        View::Service(view) => {
                            wakers.spawn(wake(view.clone(), Arc::clone(&self.news)))
                        }
                        View::Pair(view) => {
                            wakers.spawn(wake(view.clone(), Arc::clone(&self.news)))
                        }
                    };
                    self.followed.insert(want.clone(), Followed { view, waker });
                }
                Err(Unanswered::Stopped) => return true,
                Err(error) => {
                    tracing::warn!(?want, %error, "a cluster that a proxy asks for is not served");
                    whole = false;
                }
            }
        }
        whole
    }

    fn publish(&mut self) {
        let mut assignments = Assignments::new();
        for (audience, clusters) in self.server.interest() {
            let zone = Locality::new(
                &audience.locality.region,
                &audience.locality.zone,
                &audience.locality.sub_zone,
            );
            for cluster in clusters {
                let want = self.want(&audience, &cluster);
                let whom = match want {
                    Want::Pair(..) => For::Zone(zone.clone()),
                    Want::Service(_) if self.has_priorities(&want, &audience) => For::Itself,
                    Want::Service(_) => For::Everyone,
                };
                let is_own = whom != For::Everyone;
                let Some(assignment) = self.assignment(want, whom) else {
                    continue;
                };
                if is_own {
                    assignments.insert_for(audience.clone(), cluster, assignment);
                } else {
                    assignments.insert(cluster, assignment);
                }
            }
        }
        if let Err(error) = self.server.publish(&assignments) {
            // Each was looked at by itself.
            tracing::error!(%error, "assignments cannot be published");
        }
    }

    /// Whether a proxy asks for its own service, and that has several priorities.
    fn has_priorities(&self, want: &Want, audience: &Audience) -> bool {
        let Want::Service(name) = want else {
            return false;
        };
        *audience.callers == **name
            && match self.followed.get(want).map(|followed| &followed.view) {
                Some(View::Service(view)) => assignment::has_priorities(&view.borrow()),
                Some(View::Pair(_)) | None => false,
            }
    }

    /// What is known of it; none as long as nothing is.
    fn assignment(&mut self, want: Want, whom: For) -> Option<Arc<Assignment>> {
        let followed = self.followed.get(&want)?;
        let (version, told): (_, Box<dyn FnOnce() -> Told>) = match &followed.view {
            View::Service(view) => {
                let view = Arc::clone(&view.borrow());
                if !view.known {
                    return None;
                }
                let version = view.version;
                match whom {
                    For::Itself => (version, Box::new(move || assignment::of_callers(&view))),
                    For::Everyone | For::Zone(_) => {
                        (version, Box::new(move || assignment::of_service(&view)))
                    }
                }
            }
            View::Pair(view) => {
                let view = Arc::clone(&view.borrow());
                if !view.upstream.known || !view.callers.known {
                    return None;
                }
                let For::Zone(zone) = whom.clone() else {
                    return None;
                };
                let version = view.version;
                (version, Box::new(move || assignment::of_pair(&view, &zone)))
            }
        };
        let key = (want, whom);
        if let Some(kept) = self.told.get(&key).filter(|kept| kept.version == version) {
            return Some(Arc::clone(&kept.assignment));
        }
        let told = told();
        if told.names > 0 {
            tracing::warn!(
                service = ?key.0,
                endpoints = told.names,
                "endpoints with a name for an address are left out: Envoy takes IP addresses only"
            );
        }
        if let Err(fault) = told.assignment.validate() {
            tracing::error!(service = ?key.0, %fault, "the last assignment stands");
            return self.told.get(&key).map(|kept| Arc::clone(&kept.assignment));
        }
        let assignment = Arc::new(told.assignment);
        let kept = Kept {
            version,
            assignment: Arc::clone(&assignment),
        };
        self.told.insert(key, kept);
        Some(assignment)
    }

    async fn write_files(&mut self) {
        let Some(mut files) = self.files.take() else {
            return;
        };
        let mut contents = Vec::new();
        for (want, followed) in &self.followed {
            match (want, &followed.view) {
                (Want::Service(name), View::Service(view)) if self.listed.0.contains(name) => {
                    let view = view.borrow();
                    if view.known {
                        let told = assignment::of_service(&view);
                        let text = evenkeel_xds::file(name, &told.assignment, view.version);
                        contents.push((files::eds_name(name), text));
                    }
                }
                (Want::Pair(upstream, callers), View::Pair(view)) => {
                    let view = view.borrow();
                    if !view.upstream.known || !view.callers.known {
                        continue;
                    }
                    if let Ok(text) = serde_json::to_string_pretty(&zones::report(&view, None)) {
                        contents.push((files::pair_name(upstream, callers), text + "\n"));
                    }
                    if self.mode == Mode::Weights {
                        for zone in view.zones() {
                            let told = assignment::of_pair(&view, &zone);
                            let text = evenkeel_xds::file(upstream, &told.assignment, view.version);
                            let name = files::weights_name(upstream, callers, &zone);
                            contents.push((name, text));
                        }
                    }
                }
                _ => {}
            }
        }
        let writing = tokio::task::spawn_blocking(move || {
            for (name, content) in contents {
                if let Err(error) = files.put(&name, content) {
                    tracing::error!(name, %error, "a file for proxies cannot be written");
                }
            }
            files
        });
        self.files = writing.await.ok();
    }
}

/// Says so whenever a view changes.
fn wake<T>(mut view: watch::Receiver<T>, news: Arc<Notify>) -> impl Future<Output = ()> + Send
where
    T: Send + Sync + 'static,
{
    view.mark_unchanged();
    async move {
        // What has come before this runs is news as well.
        news.notify_one();
        while view.changed().await.is_ok() {
            news.notify_one();
        }
    }
}
