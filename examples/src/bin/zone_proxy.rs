//! An HTTP proxy that keeps requests in its zone as far as that overloads nobody.
//!
//! Without arguments it plays a while with six servers of its own, two in each of
//! three zones, and ends. `zone_proxy 127.0.0.1:8080 az-a az-a=10.0.1.5:80
//! az-b=10.0.2.5:80 …` listens, as a proxy in az-a, for endpoints of yours, until
//! ^C. Envoy's counters are on a unix socket meanwhile:
//! `curl --unix-socket zone_proxy.sock http://unix/stats`.

#![expect(clippy::print_stdout, reason = "what a program prints is its result")]

use std::convert::Infallible;
use std::error::Error;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use bytes::Bytes;
use evenkeel_zone_weights::envoy::{Settings, decide};
use evenkeel_zone_weights::{
    Counters, EndpointId, Endpoints, Health, Locality, Members, Picker, Rotation,
};
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode, client, server};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream, UnixListener};
use tokio::time::timeout;

type Body = BoxBody<Bytes, hyper::Error>;
type Outcome<T> = Result<T, Box<dyn Error + Send + Sync>>;

/// Name of the called service in the counters.
const CLUSTER: &str = "backend";

/// What each request needs. It is never locked: the picker is swapped as a whole.
struct Proxy {
    picker: ArcSwap<Picker<SocketAddr>>,
    turn: Rotation,
    counters: Arc<Counters>,
}

impl Proxy {
    async fn serve(&self, request: Request<Incoming>) -> Response<Body> {
        // Out of the guard before anything is waited for.
        let endpoint = self
            .picker
            .load()
            .next(&self.turn)
            .map(|choice| *choice.endpoint);
        let Some(endpoint) = endpoint else {
            return answer(StatusCode::SERVICE_UNAVAILABLE, "no healthy endpoint\n");
        };
        match timeout(Duration::from_secs(5), forward(endpoint, request)).await {
            Ok(Ok(response)) => response.map(BodyExt::boxed),
            Ok(Err(error)) => answer(StatusCode::BAD_GATEWAY, format!("{endpoint}: {error}\n")),
            Err(_) => answer(
                StatusCode::GATEWAY_TIMEOUT,
                format!("{endpoint}: no answer\n"),
            ),
        }
    }
}

async fn forward(to: SocketAddr, request: Request<Incoming>) -> Outcome<Response<Incoming>> {
    let stream = TcpStream::connect(to).await?;
    let (mut sender, connection) = client::conn::http1::handshake(TokioIo::new(stream)).await?;
    tokio::spawn(connection);
    Ok(sender.send_request(request).await?)
}

fn answer(status: StatusCode, text: impl Into<Bytes>) -> Response<Body> {
    let mut response = Response::new(
        Full::new(text.into())
            .map_err(|never| match never {})
            .boxed(),
    );
    *response.status_mut() = status;
    response
}

/// Who is there, as the proxy of one zone knows it. Whoever watches the health
/// (a damped one, so that a loose cable moves nothing) calls [`set_health`].
///
/// [`set_health`]: Membership::set_health
struct Membership {
    zone: Locality,
    callers: Members,
    endpoints: Endpoints<SocketAddr>,
    proxy: Arc<Proxy>,
}

impl Membership {
    fn new(zone: &Locality, callers: Members) -> Self {
        let counters = Arc::new(Counters::new());
        let mut endpoints = Endpoints::new();
        let picker = picker(zone, &callers, &mut endpoints, &counters);
        let proxy = Arc::new(Proxy {
            picker: ArcSwap::from_pointee(picker),
            turn: Rotation::new(),
            counters,
        });
        Self {
            zone: zone.clone(),
            callers,
            endpoints,
            proxy,
        }
    }

    fn add(&mut self, zone: &Locality, address: SocketAddr) -> Outcome<EndpointId> {
        Ok(self
            .endpoints
            .insert(0, zone, Health::Healthy, 1, address)?)
    }

    fn set_health(&mut self, endpoint: EndpointId, health: Health) {
        if self.endpoints.set_health(endpoint, health) {
            self.recalculate();
        }
    }

    fn recalculate(&mut self) {
        let counters = &self.proxy.counters;
        let picker = picker(&self.zone, &self.callers, &mut self.endpoints, counters);
        self.proxy.picker.store(Arc::new(picker));
    }
}

fn picker(
    zone: &Locality,
    callers: &Members,
    endpoints: &mut Endpoints<SocketAddr>,
    counters: &Arc<Counters>,
) -> Picker<SocketAddr> {
    let upstream = endpoints.upstream();
    let decision = decide(
        &Settings::SERVICE_CONNECT,
        Some(zone),
        Some(callers),
        upstream,
    );
    counters.count_recalculation(&decision, 1);
    endpoints.picker(&decision.routes(), Arc::clone(counters))
}

/// Serves the proxy, and its counters at `socket`.
async fn listen(proxy: Arc<Proxy>, listener: TcpListener, socket: &Path) -> Outcome<()> {
    let stats = UnixListener::bind(socket)?;
    let counters = Arc::clone(&proxy.counters);
    tokio::spawn(async move {
        while let Ok((stream, _)) = stats.accept().await {
            let counters = Arc::clone(&counters);
            converse(stream, move |request: Request<Incoming>| {
                let response = match request.uri().path() {
                    "/stats" => answer(StatusCode::OK, counters.stats(CLUSTER).to_string()),
                    _ => answer(StatusCode::NOT_FOUND, "there is /stats\n"),
                };
                std::future::ready(response)
            });
        }
    });
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let proxy = Arc::clone(&proxy);
            converse(stream, move |request| {
                let proxy = Arc::clone(&proxy);
                async move { proxy.serve(request).await }
            });
        }
    });
    Ok(())
}

/// Answers the requests of one connection.
fn converse<F, R>(stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static, respond: F)
where
    F: Fn(Request<Incoming>) -> R + Send + Sync + 'static,
    R: Future<Output = Response<Body>> + Send,
{
    tokio::spawn(async move {
        let service = service_fn(|request| {
            let response = respond(request);
            async move { Ok::<_, Infallible>(response.await) }
        });
        let stream = TokioIo::new(stream);
        // A client that breaks off is no matter of ours.
        let _ = server::conn::http1::Builder::new()
            .serve_connection(stream, service)
            .await;
    });
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Outcome<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [listen_on, zone, endpoints @ ..] = arguments.as_slice() else {
        return play().await;
    };
    let zone = Locality::zone_only(zone);
    let mut callers = Members::new();
    let mut parsed = Vec::new();
    for endpoint in endpoints {
        let (zone, address) = endpoint
            .split_once('=')
            .ok_or("an endpoint is ZONE=ADDRESS")?;
        let zone = Locality::zone_only(zone);
        // As if there were a proxy beside each endpoint.
        callers.add(&zone, Health::Healthy, 1, 1)?;
        parsed.push((zone, address.parse()?));
    }
    let mut members = Membership::new(&zone, callers);
    for (zone, address) in &parsed {
        members.add(zone, *address)?;
    }
    members.recalculate();
    let listener = TcpListener::bind(listen_on).await?;
    listen(
        Arc::clone(&members.proxy),
        listener,
        Path::new("zone_proxy.sock"),
    )
    .await?;
    std::future::pending().await
}

/// Six servers in three zones, a proxy in the first, and what it does when one of
/// them goes and comes back.
async fn play() -> Outcome<()> {
    let zones = ["az-a", "az-b", "az-c"].map(Locality::zone_only);
    let mut callers = Members::new();
    for zone in &zones {
        callers.add(zone, Health::Healthy, 1, 2)?;
    }
    let mut members = Membership::new(&zones[0], callers);
    let mut ids = Vec::new();
    for zone in zones.iter().cycle().take(6) {
        ids.push(members.add(zone, server_in(zone).await?)?);
    }
    members.recalculate();

    let directory = std::env::temp_dir().join(format!("zone_proxy.{}", std::process::id()));
    std::fs::create_dir_all(&directory)?;
    let _remove = Removed(directory.clone());
    let socket = directory.join("admin.sock");
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    listen(Arc::clone(&members.proxy), listener, &socket).await?;

    let show = |what: &str, counts: [usize; 3]| {
        println!(
            "{what:36} az-a {:3}  az-b {:3}  az-c {:3}",
            counts[0], counts[1], counts[2]
        );
    };
    let counts = requests(address, 300).await?;
    show("two endpoints in each zone", counts);
    assert_eq!(counts, [300, 0, 0], "all of it stays");

    members.set_health(ids[5], Health::Unhealthy);
    let counts = requests(address, 300).await?;
    show("five: too few for routing by zone", counts);
    assert_eq!(counts, [120, 120, 60], "each endpoint gets the same");

    members.set_health(ids[5], Health::Healthy);
    let counts = requests(address, 300).await?;
    show("six again", counts);
    assert_eq!(counts, [300, 0, 0], "on again by itself");

    let stats = get(tokio::net::UnixStream::connect(&socket).await?, "/stats").await?;
    println!("\n{stats}");
    assert!(stats.contains("cluster.backend.lb_zone_routing_all_directly: 600\n"));
    Ok(())
}

/// A directory that goes with the value.
struct Removed(PathBuf);

impl Drop for Removed {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A server that answers with its zone.
async fn server_in(zone: &Locality) -> Outcome<SocketAddr> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    let zone = zone.to_string();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let zone = zone.clone();
            converse(stream, move |_| {
                std::future::ready(answer(StatusCode::OK, zone.clone()))
            });
        }
    });
    Ok(address)
}

/// So many requests one after the other, and how many each zone answered.
async fn requests(proxy: SocketAddr, count: usize) -> Outcome<[usize; 3]> {
    let mut counts = [0; 3];
    for _ in 0..count {
        let zone = get(TcpStream::connect(proxy).await?, "/").await?;
        let index = ["az-a", "az-b", "az-c"]
            .iter()
            .position(|name| *name == zone);
        counts[index.ok_or(zone)?] += 1;
    }
    Ok(counts)
}

async fn get(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    path: &str,
) -> Outcome<String> {
    let (mut sender, connection) = client::conn::http1::handshake(TokioIo::new(stream)).await?;
    tokio::spawn(connection);
    let request = Request::get(path)
        .header("host", "example")
        .body(Full::<Bytes>::default())?;
    let body = sender.send_request(request).await?.into_body();
    Ok(String::from_utf8(body.collect().await?.to_bytes().into())?)
}
