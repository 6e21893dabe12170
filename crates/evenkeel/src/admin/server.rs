use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::admin::answer::{Access, answer};
use crate::admin::{AdminHandle, Bound, Stay};

/// Connections at once over all sockets; a further one waits.
const CONNECTIONS: usize = 32;

/// Connections that wait for a change, beside those.
const WAITING: usize = 512;

/// A request's head may take so long to arrive, and the whole exchange so long.
const HEAD: Duration = Duration::from_secs(5);
const EXCHANGE: Duration = Duration::from_secs(30);

/// Limits on a request's head.
const HEADERS: usize = 64;
const HEAD_BYTES: usize = 16 * 1024;

/// After an error of `accept` (out of descriptors) the next try waits.
const ACCEPT_RETRY: Duration = Duration::from_millis(200);

/// Answers on `bound` until the future is dropped. `token` is asked of every
/// request on a TCP address that is not loopback, and on loopback of those that
/// change something.
pub async fn serve(bound: Vec<Bound>, handle: AdminHandle, token: Option<Arc<str>>) {
    let places = Arc::new(Semaphore::new(CONNECTIONS));
    let waiting = Arc::new(Semaphore::new(WAITING));
    let servers = bound.into_iter().map(|bound| {
        let (places, handle, token) = (Arc::clone(&places), handle.clone(), token.clone());
        let waiting = Arc::clone(&waiting);
        Box::pin(async move {
            match bound {
                Bound::Unix(listener, _file) => loop {
                    let Some(place) = place(&places).await else {
                        return;
                    };
                    let stay = Stay::new(Some(place), Arc::clone(&waiting));
                    match listener.accept().await {
                        Ok((stream, _)) => spawn(stream, handle.clone(), Access::Local, stay),
                        Err(error) => accept_failed(&error).await,
                    }
                },
                Bound::Tcp(listener, address) => loop {
                    let access = if address.ip().is_loopback() {
                        Access::Loopback(token.clone())
                    } else {
                        Access::Remote(token.clone())
                    };
                    let Some(place) = place(&places).await else {
                        return;
                    };
                    let stay = Stay::new(Some(place), Arc::clone(&waiting));
                    match listener.accept().await {
                        Ok((stream, _)) => spawn(stream, handle.clone(), access, stay),
                        Err(error) => accept_failed(&error).await,
                    }
                },
            }
        })
    });
    futures_util::future::join_all(servers).await;
}

async fn place(places: &Arc<Semaphore>) -> Option<OwnedSemaphorePermit> {
    Arc::clone(places).acquire_owned().await.ok()
}

async fn accept_failed(error: &std::io::Error) {
    tracing::warn!(%error, "admin connection cannot be accepted");
    tokio::time::sleep(ACCEPT_RETRY).await;
}

fn spawn(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    handle: AdminHandle,
    access: Access,
    stay: Stay,
) {
    tokio::spawn(async move {
        let service = service_fn(|request| {
            let (handle, access, stay) = (&handle, &access, &stay);
            async move { Ok::<_, Infallible>(answer(handle, access, stay, request).await) }
        });
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(HEAD)
            .max_headers(HEADERS)
            .max_buf_size(HEAD_BYTES)
            .keep_alive(false)
            .serve_connection(TokioIo::new(stream), service);
        let mut connection = std::pin::pin!(connection);
        // A client that breaks off or sends rubbish is its own fault; hyper has
        // answered what can be answered.
        while tokio::time::timeout(EXCHANGE, connection.as_mut())
            .await
            .is_err()
            && stay.is_long()
        {}
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::admin::{Question, SocketAccess, StatusPage, bind};
    use crate::clock::Clock;
    use crate::config::Listen;
    use crate::metrics::Metrics;
    use crate::status::Readiness;
    use http_body_util::Empty;
    use std::sync::atomic::{AtomicU64, Ordering};
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpStream;
    use tokio::sync::{mpsc, watch};

    struct Served {
        address: std::net::SocketAddr,
        readiness: watch::Sender<Readiness>,
        beat: Arc<AtomicU64>,
    }

    async fn served() -> Served {
        let clock = Clock::start();
        let (questions, mut asked) = mpsc::channel(4);
        let (readiness, seen) = watch::channel(Readiness {
            ready: true,
            reasons: Vec::new(),
        });
        let beat = Arc::new(AtomicU64::new(clock.now().as_millis()));
        let handle = AdminHandle::new(
            questions,
            seen,
            Arc::new(Metrics::new()),
            clock,
            Arc::clone(&beat),
            crate::zones::ZonesHandle::stopped(),
        );
        let listen = Listen::Tcp("127.0.0.1:0".parse().unwrap());
        let access = SocketAccess {
            mode: 0o600,
            group: None,
        };
        let bound = bind(&listen, &access).await.unwrap();
        let Bound::Tcp(_, address) = &bound else {
            panic!("not TCP")
        };
        let address = *address;
        tokio::spawn(serve(vec![bound], handle, None));
        tokio::spawn(async move {
            while let Some(question) = asked.recv().await {
                match question {
                    Question::Gauges { reply } => drop(reply.send(())),
                    Question::Report { reply, .. } => drop(reply.send(Ok(()))),
                    Question::Status { from, reply, .. } => drop(reply.send(StatusPage {
                        next: (from < 2).then_some(from + 1),
                        ..StatusPage::default()
                    })),
                }
            }
        });
        Served {
            address,
            readiness,
            beat,
        }
    }

    async fn exchange(address: std::net::SocketAddr, request: &[u8]) -> String {
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream.write_all(request).await.unwrap();
        let mut answer = Vec::new();
        // A server that closes early may reset; what came before counts.
        let _ = stream.read_to_end(&mut answer).await;
        String::from_utf8_lossy(&answer).into_owned()
    }

    async fn get(served: &Served, path: &str) -> String {
        exchange(
            served.address,
            format!("GET {path} HTTP/1.1\r\nHost: a\r\n\r\n").as_bytes(),
        )
        .await
    }

    #[tokio::test]
    async fn each_path_answers() {
        let served = served().await;
        assert!(get(&served, "/live").await.starts_with("HTTP/1.1 200 "));
        assert!(get(&served, "/metrics").await.contains("# EOF"));
        assert!(get(&served, "/v1/status").await.contains("\"checks\":[]"));
        assert!(
            get(&served, "/v1/status?x=1")
                .await
                .starts_with("HTTP/1.1 400 ")
        );
        assert!(get(&served, "/other").await.starts_with("HTTP/1.1 404 "));
        let post = b"POST /live HTTP/1.1\r\nHost: a\r\nContent-Length: 999999999\r\n\r\n";
        assert!(
            exchange(served.address, post)
                .await
                .starts_with("HTTP/1.1 405 ")
        );
    }

    #[tokio::test]
    async fn readiness_comes_with_its_reasons() {
        let served = served().await;
        assert!(get(&served, "/ready").await.starts_with("HTTP/1.1 200 "));
        served.readiness.send_replace(Readiness {
            ready: false,
            reasons: vec!["Consul has no leader".into()],
        });
        let answer = get(&served, "/ready").await;
        assert!(answer.starts_with("HTTP/1.1 503 "), "{answer}");
        assert!(answer.contains("Consul has no leader"), "{answer}");
    }

    #[tokio::test]
    async fn a_loop_that_stands_still_is_neither_live_nor_ready() {
        let served = served().await;
        served.beat.fetch_sub(60_000, Ordering::Relaxed);
        assert!(get(&served, "/live").await.starts_with("HTTP/1.1 503 "));
        assert!(get(&served, "/ready").await.starts_with("HTTP/1.1 503 "));
    }

    #[tokio::test]
    async fn endless_headers_are_refused() {
        let served = served().await;
        let mut request = b"GET /live HTTP/1.1\r\n".to_vec();
        request.extend(std::iter::repeat_n(&b"X: y\r\n"[..], 10_000).flatten());
        let answer = exchange(served.address, &request).await;
        assert!(!answer.starts_with("HTTP/1.1 200 "), "{answer}");
        assert!(get(&served, "/live").await.starts_with("HTTP/1.1 200 "));
    }

    #[tokio::test]
    async fn a_token_opens_and_a_wrong_one_does_not() {
        let clock = Clock::start();
        let (questions, _asked) = mpsc::channel(1);
        let (_send, seen) = watch::channel(Readiness::default());
        let beat = Arc::new(AtomicU64::new(clock.now().as_millis()));
        let handle = AdminHandle::new(
            questions,
            seen,
            Arc::new(Metrics::new()),
            clock,
            beat,
            crate::zones::ZonesHandle::stopped(),
        );
        let stay = Stay::new(None, Arc::new(Semaphore::new(0)));
        for (header, code) in [
            (None, 401),
            (Some("Bearer wrong!"), 401),
            (Some("Basic secret"), 401),
            (Some("Bearer secret"), 200),
        ] {
            let mut request = http::Request::get("/live");
            if let Some(header) = header {
                request = request.header("authorization", header);
            }
            let access = Access::Remote(Some("secret".into()));
            let request = request.body(Empty::<bytes::Bytes>::new()).unwrap();
            let answer = answer(&handle, &access, &stay, request).await;
            assert_eq!(answer.status(), code, "{header:?}");
        }
        // To change something takes more than to read.
        let token = || Some(Arc::from("secret"));
        for (access, code) in [
            (Access::Loopback(None), 403),
            (Access::Remote(None), 403),
            (Access::Loopback(token()), 401),
            (Access::Remote(token()), 401),
            // Let in; but there is no status like that.
            (Access::Local, 400),
        ] {
            let request = http::Request::put("/v1/heartbeat/a?status=x");
            let request = request.body(Empty::<bytes::Bytes>::new()).unwrap();
            let answer = answer(&handle, &access, &stay, request).await;
            assert_eq!(answer.status(), code, "{access:?}");
        }
    }
}
