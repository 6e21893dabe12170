//! Bytes that no proxy sends: the server answers, or ends what they came on, and
//! goes on serving the others.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use envoy_types::pb::envoy::config::core::v3 as core;
use envoy_types::pb::envoy::service::discovery::v3::DiscoveryRequest;
use envoy_types::pb::google::protobuf::{ListValue, Struct, Value, value};
use envoy_types::pb::google::rpc;
use evenkeel_xds::{Server, Settings};
use futures_util::stream;
use http_body_util::{BodyExt, StreamBody};
use hyper::body::Frame;
use hyper_util::rt::{TokioExecutor, TokioIo};
use proptest::prelude::*;
use prost::Message;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Runtime;

use crate::support::{EDS, Proxy, cluster, node, only, ports};

const ADS: &str =
    "/envoy.service.discovery.v3.AggregatedDiscoveryService/StreamAggregatedResources";

/// Whoever has no answer by then gets none.
const PATIENCE: Duration = Duration::from_secs(30);

/// Panics of any thread: in a task of the server they would be seen nowhere else.
static PANICS: AtomicU64 = AtomicU64::new(0);

struct Rig {
    runtime: Runtime,
    server: Server,
    address: SocketAddr,
}

fn rig() -> &'static Rig {
    static RIG: OnceLock<Rig> = OnceLock::new();
    RIG.get_or_init(|| {
        let told = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            PANICS.fetch_add(1, Ordering::SeqCst);
            told(panic);
        }));
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()
            .unwrap();
        let settings = Settings {
            max_clusters: 100,
            max_request: 64 * 1024,
            ..Settings::default()
        };
        let server = Server::new(settings, 1);
        server.publish(&only("web", cluster([1, 2]))).unwrap();
        let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
        let address = listener.local_addr().unwrap();
        let serving = server.clone();
        runtime.spawn(async move { serving.serve(listener, None, std::future::pending()).await });
        Rig {
            runtime,
            server,
            address,
        }
    })
}

/// That it still serves, and that nothing broke meanwhile.
async fn goes_on(rig: &Rig) {
    let mut proxy = Proxy::connect(rig.address).await;
    proxy.subscribe(&["web"], Some(node("good", "a"))).await;
    let response = proxy.response().await;
    assert_eq!(ports(&response), [("web".to_owned(), vec![1, 2])]);
    assert_eq!(PANICS.load(Ordering::SeqCst), 0, "something panicked");
}

fn deep(levels: usize) -> Value {
    (0..levels).fold(Value::default(), |inner, _| Value {
        kind: Some(value::Kind::ListValue(ListValue {
            values: vec![inner],
        })),
    })
}

fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        Just(String::new()),
        Just("web".to_owned()),
        Just("*".to_owned()),
        Just("1".to_owned()),
        Just("\u{0}é\u{202e}".repeat(300)),
        any::<String>(),
    ]
}

fn nodes() -> impl Strategy<Value = core::Node> {
    let parts = (text(), text(), text(), text());
    (parts, 0..150_usize).prop_map(|((id, cluster, region, zone), levels)| core::Node {
        id,
        cluster,
        locality: Some(core::Locality {
            region,
            zone,
            sub_zone: String::new(),
        }),
        metadata: Some(Struct {
            fields: [("deep".to_owned(), deep(levels))].into(),
        }),
        ..Default::default()
    })
}

fn requests() -> impl Strategy<Value = Vec<u8>> {
    let kinds = prop_oneof![4 => Just(EDS.to_owned()), 1 => Just(String::new()), 1 => text()];
    let refusal = prop::option::of((any::<i32>(), text()));
    (
        prop::option::of(nodes()),
        prop::collection::vec(text(), 0..4),
        (text(), text()),
        kinds,
        refusal,
        prop::bool::weighted(0.05),
    )
        .prop_map(|(node, mut names, (version, nonce), kind, refusal, many)| {
            if many {
                names.extend((0..200).map(|number| number.to_string()));
            }
            let request = DiscoveryRequest {
                node,
                resource_names: names,
                version_info: version,
                response_nonce: nonce,
                type_url: kind,
                error_detail: refusal.map(|(code, message)| rpc::Status {
                    code,
                    message,
                    ..Default::default()
                }),
                ..Default::default()
            };
            request.encode_to_vec()
        })
}

#[derive(Debug, Clone)]
enum Change {
    Flip(usize, u8),
    Cut(usize),
    Insert(usize, Vec<u8>),
    Repeat(usize, usize),
}

fn changes() -> impl Strategy<Value = Vec<Change>> {
    let change = prop_oneof![
        (any::<usize>(), any::<u8>()).prop_map(|(at, bits)| Change::Flip(at, bits)),
        any::<usize>().prop_map(Change::Cut),
        (any::<usize>(), prop::collection::vec(any::<u8>(), 0..20))
            .prop_map(|(at, bytes)| Change::Insert(at, bytes)),
        (any::<usize>(), any::<usize>()).prop_map(|(from, to)| Change::Repeat(from, to)),
    ];
    prop::collection::vec(change, 0..4)
}

fn changed(mut bytes: Vec<u8>, changes: &[Change]) -> Vec<u8> {
    for change in changes {
        let within = |at: usize| at % (bytes.len() + 1);
        match change {
            Change::Flip(at, bits) => {
                let at = within(*at);
                if let Some(byte) = bytes.get_mut(at) {
                    *byte ^= bits;
                }
            }
            Change::Cut(at) => bytes.truncate(within(*at)),
            Change::Insert(at, more) => {
                let at = within(*at);
                bytes.splice(at..at, more.iter().copied());
            }
            Change::Repeat(from, to) => {
                let (from, to) = (within(*from), within(*to));
                let more = bytes[from.min(to)..from.max(to)].to_vec();
                bytes.extend(more);
            }
        }
    }
    bytes
}

/// A message as gRPC sends it, mostly.
fn messages() -> impl Strategy<Value = Vec<u8>> {
    let flag = prop_oneof![8 => Just(0_u8), 1 => Just(1), 1 => any::<u8>()];
    let length =
        prop_oneof![8 => Just(None), 1 => Just(Some(u32::MAX)), 1 => any::<u32>().prop_map(Some)];
    (requests(), changes(), flag, length).prop_map(|(request, changes, flag, length)| {
        let bytes = changed(request, &changes);
        let length = length.unwrap_or(bytes.len().try_into().unwrap());
        [&[flag][..], &length.to_be_bytes(), &bytes].concat()
    })
}

/// Sends the pieces as the body of one request, and reads the answer to its end.
async fn post(address: SocketAddr, pieces: Vec<Vec<u8>>) {
    let stream = TcpStream::connect(address).await.unwrap();
    let io = TokioIo::new(stream);
    let (mut sender, connection) = hyper::client::conn::http2::handshake(TokioExecutor::new(), io)
        .await
        .unwrap();
    let connection = tokio::spawn(connection);
    let frames = pieces
        .into_iter()
        .map(|piece| Ok::<_, Infallible>(Frame::data(Bytes::from(piece))));
    let request = http::Request::post(format!("http://{address}{ADS}"))
        .header("content-type", "application/grpc")
        .header("te", "trailers")
        .body(StreamBody::new(stream::iter(frames)))
        .unwrap();
    let answer = sender.send_request(request).await.unwrap();
    // It may be ended with a reset.
    let _ = answer.into_body().collect().await;
    drop(sender);
    let _ = connection.await;
}

proptest! {
    #[test]
    fn requests_that_no_proxy_sends_end_in_an_answer(
        messages in prop::collection::vec(messages(), 0..5),
    ) {
        let rig = rig();
        rig.runtime.block_on(async {
            let posting = post(rig.address, messages);
            tokio::time::timeout(PATIENCE, posting).await.expect("an end");
            goes_on(rig).await;
        });
    }

    #[test]
    fn bytes_that_are_no_grpc_end_in_an_answer(
        pieces in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..100), 0..5),
    ) {
        let rig = rig();
        rig.runtime.block_on(async {
            let posting = post(rig.address, pieces);
            tokio::time::timeout(PATIENCE, posting).await.expect("an end");
            goes_on(rig).await;
        });
    }

    #[test]
    fn frames_that_are_no_http2_end_the_connection(
        preface in prop::bool::weighted(0.9),
        frames in prop::collection::vec(
            (0..12_u8, any::<u8>(), 0..6_u32, prop::collection::vec(any::<u8>(), 0..60), prop::option::weighted(0.1, 0..1_u32 << 24)),
            0..8,
        ),
    ) {
        let mut bytes = if preface { b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec() } else { Vec::new() };
        if preface {
            bytes.extend([0, 0, 0, 4, 0, 0, 0, 0, 0]);
        }
        for (kind, flags, stream, payload, length) in frames {
            let length = length.unwrap_or(payload.len().try_into().unwrap());
            bytes.extend(&length.to_be_bytes()[1..]);
            bytes.extend([kind, flags]);
            bytes.extend(stream.to_be_bytes());
            bytes.extend(payload);
        }
        let rig = rig();
        rig.runtime.block_on(async {
            let talking = async {
                let mut stream = TcpStream::connect(rig.address).await.unwrap();
                // It may be closed before all is written.
                let _ = stream.write_all(&bytes).await;
                let _ = stream.shutdown().await;
                let mut answer = Vec::new();
                let _ = stream.read_to_end(&mut answer).await;
            };
            tokio::time::timeout(PATIENCE, talking).await.expect("an end");
            goes_on(rig).await;
        });
    }
}

#[test]
fn what_hostile_streams_leave_behind_is_nothing() {
    let rig = rig();
    rig.runtime.block_on(async {
        for length in [0_u32, 1, u32::MAX] {
            let head = [&[0][..], &length.to_be_bytes(), &[8; 3]].concat();
            post(rig.address, vec![head]).await;
        }
        goes_on(rig).await;
        crate::support::until("all have gone", || {
            rig.server.subscribers().is_empty().then_some(())
        })
        .await;
    });
}
