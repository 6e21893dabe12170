use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;
use std::future::Future;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use http::{Method, Request, Response, StatusCode, header};
use http_body_util::{BodyExt, Empty, StreamBody};
use hyper::body::Incoming;
use hyper::server::conn::http2;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;
use tonic::codec::Streaming;
use tonic::{Code, Status};

use crate::assignment::{AssignmentError, Assignments, Audience};
use crate::listener::{Accepted, Listener};
use crate::snapshot::{Published, Snapshot};
use crate::status::{Counters, Nack, Peer, Protocol, Registry, Subscriber, count};
use crate::stream::{Conversation, Requests};
use crate::subscription::Limits;
use crate::tls::Tls;

/// Limits and times of a [`Server`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// Connections at once; further ones are closed at once and counted.
    pub max_connections: usize,
    /// Streams of one connection at once. Envoy opens one.
    pub max_streams: u32,
    /// Clusters that one stream may ask for by name.
    pub max_clusters: usize,
    /// Bytes of a request.
    pub max_request: usize,
    /// Bytes of a response that has several resources; what does not fit goes
    /// into the next one. Below the 4 MiB that most gRPC clients accept.
    pub max_response: usize,
    /// A connection is asked so often whether the other end is still there.
    pub keepalive: Duration,
    /// How long that, and a TLS handshake, may take.
    pub patience: Duration,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            max_connections: 4096,
            max_streams: 16,
            max_clusters: 10_000,
            max_request: 2 * 1024 * 1024,
            max_response: 3 * 1024 * 1024,
            keepalive: Duration::from_secs(30),
            patience: Duration::from_secs(10),
        }
    }
}

#[derive(Debug)]
struct Shared {
    settings: Settings,
    snapshot: watch::Sender<Arc<Snapshot>>,
    registry: Arc<Registry>,
    /// One publication at a time, so that versions are in order.
    publishing: Mutex<u64>,
    connections: Arc<Semaphore>,
}

/// An xDS server for endpoint assignments. Cheap to clone; all clones are the
/// same server, which may listen in several places.
#[derive(Debug, Clone)]
pub struct Server {
    shared: Arc<Shared>,
}

impl Server {
    /// A server with nothing published: whoever subscribes waits, and keeps
    /// what they have.
    ///
    /// `first_version` is the number of the first publication. One that grows
    /// from start to start (Unix time, say) tells versions of different runs
    /// apart; proxies only compare them for equality. 0 is taken for 1.
    pub fn new(settings: Settings, first_version: u64) -> Self {
        let connections = Arc::new(Semaphore::new(
            settings.max_connections.min(Semaphore::MAX_PERMITS),
        ));
        Self {
            shared: Arc::new(Shared {
                settings,
                snapshot: watch::Sender::new(Arc::default()),
                registry: Arc::default(),
                publishing: Mutex::new(first_version.max(1)),
                connections,
            }),
        }
    }

    /// Publishes a whole list: what is new or has changed is encoded, once,
    /// and goes to everyone who asked for it. A cluster that is no longer in
    /// the list becomes one without endpoints for those who have it. With
    /// nothing new nothing is sent and the version stays.
    ///
    /// # Errors
    /// If Envoy would refuse one of the assignments; then nothing is published.
    pub fn publish(&self, assignments: &Assignments) -> Result<Published, AssignmentError> {
        let shared = &self.shared;
        let mut version = shared
            .publishing
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let before = Arc::clone(&shared.snapshot.borrow());
        let (snapshot, mut published) = before.next(*version, assignments)?;
        if before.version > 0 && published.encoded == 0 && published.removed == 0 {
            published.version = before.version;
            return Ok(published);
        }
        *version += 1;
        shared.snapshot.send_replace(Arc::new(snapshot));
        Ok(published)
    }

    /// The version that is published; `None` before the first.
    pub fn version(&self) -> Option<u64> {
        Some(self.shared.snapshot.borrow().version).filter(|version| *version > 0)
    }

    /// Everyone who is connected now.
    pub fn subscribers(&self) -> Vec<Subscriber> {
        self.shared.registry.subscribers()
    }

    /// The last 32 refusals, oldest first, also of those who have gone.
    pub fn refusals(&self) -> Vec<Nack> {
        self.shared.registry.refusals()
    }

    /// How many refusals there have been; changes with each.
    pub fn refusal_changes(&self) -> watch::Receiver<u64> {
        self.shared.registry.refused()
    }

    /// Counts since the start, over all streams.
    pub fn counters(&self) -> Counters {
        self.shared.registry.totals.get()
    }

    /// Who asks for which clusters by name, for a publisher that makes only
    /// what somebody wants. [`interest_changes`](Self::interest_changes) tells
    /// when to look again.
    pub fn interest(&self) -> BTreeMap<Audience, BTreeSet<Arc<str>>> {
        let mut interest = BTreeMap::<Audience, BTreeSet<Arc<str>>>::new();
        for subscriber in self.subscribers() {
            let audience = subscriber.audience();
            let clusters = subscriber.clusters.unwrap_or_default();
            interest.entry(audience).or_default().extend(clusters);
        }
        interest
    }

    /// Changes whenever [`interest`](Self::interest) may have.
    pub fn interest_changes(&self) -> watch::Receiver<u64> {
        self.shared.registry.interest()
    }

    /// Serves connections, over TCP or a unix socket, until `shutdown` is ready; then streams are ended
    /// with `UNAVAILABLE`, and proxies go on with what they have.
    ///
    /// Both services are there: `AggregatedDiscoveryService` and
    /// `EndpointDiscoveryService`, state of the world; their delta variants
    /// answer `UNIMPLEMENTED`.
    pub async fn serve(
        &self,
        listener: impl Into<Listener>,
        tls: Option<Tls>,
        shutdown: impl Future<Output = ()>,
    ) {
        let listener = listener.into();
        let (end, ending) = watch::channel(false);
        let mut connections = JoinSet::new();
        let mut shutdown = std::pin::pin!(shutdown);
        loop {
            let accepted = tokio::select! {
                () = &mut shutdown => break,
                accepted = listener.accept() => accepted,
                Some(_) = connections.join_next() => continue,
            };
            let Ok(accepted) = accepted else {
                // Out of descriptors, most likely. Trying at once would spin.
                tokio::time::sleep(Duration::from_millis(100)).await;
                continue;
            };
            let Ok(place) = Arc::clone(&self.shared.connections).try_acquire_owned() else {
                count(&self.shared.registry.totals.connections_refused, 1);
                continue;
            };
            let server = self.clone();
            let acceptor = tls.as_ref().map(|tls| TlsAcceptor::from(tls.config()));
            let ending = ending.clone();
            connections.spawn(async move {
                match accepted {
                    Accepted::Tcp(stream, peer) => {
                        // An assignment should not wait for an acknowledgement of the one before.
                        let _ = stream.set_nodelay(true);
                        server
                            .connection(stream, Peer::Tcp(peer), acceptor, ending)
                            .await;
                    }
                    #[cfg(unix)]
                    Accepted::Unix(stream) => {
                        server
                            .connection(stream, Peer::Unix, acceptor, ending)
                            .await;
                    }
                }
                drop(place);
            });
        }
        drop(listener);
        end.send_replace(true);
        let all = async { while connections.join_next().await.is_some() {} };
        // Whoever does not take the end of the stream by then is cut off.
        let _ = tokio::time::timeout(Duration::from_secs(1), all).await;
    }

    async fn connection<S>(
        &self,
        stream: S,
        peer: Peer,
        acceptor: Option<TlsAcceptor>,
        ending: watch::Receiver<bool>,
    ) where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let Some(acceptor) = acceptor else {
            return self.exchange(stream, peer, ending).await;
        };
        let patience = self.shared.settings.patience;
        match tokio::time::timeout(patience, acceptor.accept(stream)).await {
            Ok(Ok(stream)) => self.exchange(stream, peer, ending).await,
            Ok(Err(_)) | Err(_) => {
                count(&self.shared.registry.totals.handshakes_failed, 1);
            }
        }
    }

    async fn exchange<S>(&self, stream: S, peer: Peer, mut ending: watch::Receiver<bool>)
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let settings = &self.shared.settings;
        let for_streams = ending.clone();
        let service = service_fn(move |request| {
            let response = self.respond(request, peer, for_streams.clone());
            std::future::ready(Ok::<_, Infallible>(response))
        });
        let connection = http2::Builder::new(TokioExecutor::new())
            .timer(TokioTimer::new())
            .keep_alive_interval(settings.keepalive)
            .keep_alive_timeout(settings.patience)
            .max_concurrent_streams(settings.max_streams)
            .serve_connection(TokioIo::new(stream), service);
        let mut connection = std::pin::pin!(connection);
        let ended = tokio::select! {
            // A connection that breaks is nothing to report: the proxy returns.
            _ = &mut connection => true,
            _ = ending.wait_for(|ending| *ending) => false,
        };
        if !ended {
            connection.as_mut().graceful_shutdown();
            let _ = connection.await;
        }
    }

    fn respond(
        &self,
        request: Request<Incoming>,
        peer: Peer,
        ending: watch::Receiver<bool>,
    ) -> Response<tonic::body::Body> {
        let is_grpc = request
            .headers()
            .get(header::CONTENT_TYPE)
            .is_some_and(|kind| kind.as_bytes().starts_with(b"application/grpc"));
        if request.method() != Method::POST || !is_grpc {
            let mut response = Response::new(tonic::body::Body::new(Empty::<Bytes>::new()));
            *response.status_mut() = StatusCode::UNSUPPORTED_MEDIA_TYPE;
            return response;
        }
        let protocol = match request.uri().path() {
            "/envoy.service.discovery.v3.AggregatedDiscoveryService/StreamAggregatedResources" => {
                Protocol::Ads
            }
            "/envoy.service.endpoint.v3.EndpointDiscoveryService/StreamEndpoints" => Protocol::Eds,
            path => {
                let text = format!(
                    "{path} is not served; there are StreamAggregatedResources and StreamEndpoints, state of the world (api_type GRPC)"
                );
                return Status::new(Code::Unimplemented, text).into_http();
            }
        };
        let settings = &self.shared.settings;
        let body = request.into_body();
        let conversation = Conversation {
            requests: Streaming::new_request(Requests, body, None, Some(settings.max_request)),
            snapshot: self.shared.snapshot.subscribe(),
            ending,
            entry: self.shared.registry.enter(peer, protocol),
            limits: Limits {
                names: settings.max_clusters,
                response: settings.max_response,
            },
        };
        let body = StreamBody::new(conversation.frames()).boxed_unsync();
        let mut response = Response::new(tonic::body::Body::new(body));
        response.headers_mut().insert(
            header::CONTENT_TYPE,
            header::HeaderValue::from_static("application/grpc"),
        );
        response
    }
}
