//! What probes are aimed at: servers that answer as they should and servers
//! that fail in a chosen way, in a chosen phase.

mod conduct;
mod datagrams;
mod engine;
mod http2;

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustls::ServerConfig;
use rustls::crypto::ring;
use rustls::pki_types::PrivateKeyDer;
use rustls::server::ServerSessionMemoryCache;
use socket2::{Domain, Protocol, Socket, Type};
use tokio::net::{TcpListener, UdpSocket, UnixListener};
use tokio::runtime::Runtime;
use tokio_rustls::TlsAcceptor;

pub use self::conduct::Conduct;
pub use self::datagrams::{Datagrams, Said};
pub use self::engine::Engine;
pub use self::http2::Calls;

/// How long a listener that has no descriptor left waits for one.
const OUT_OF_DESCRIPTORS: Duration = Duration::from_millis(10);

/// Servers in a thread of their own. They end when this is dropped.
#[derive(Debug)]
pub struct Targets {
    runtime: Runtime,
    address: Ipv4Addr,
    acceptor: Acceptor,
    certificates: tempfile::TempDir,
    /// Sockets that need nobody to look after them.
    kept: Mutex<Vec<Socket>>,
}

#[derive(Clone)]
struct Acceptor(TlsAcceptor);

impl std::fmt::Debug for Acceptor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Acceptor")
    }
}

impl Targets {
    /// None yet; they will listen on 127.0.0.1, on ports of the system's choice.
    ///
    /// # Panics
    /// If there is no thread or no directory to be had.
    pub fn start() -> Self {
        Self::start_on(Ipv4Addr::LOCALHOST)
    }

    /// As [`start`](Self::start), on another address: in a network that has
    /// nothing but loopback, the unspecified one is thousands of addresses.
    ///
    /// # Panics
    /// If there is no thread or no directory to be had.
    pub fn start_on(address: Ipv4Addr) -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .expect("a runtime for targets");
        let certificates = tempfile::tempdir().expect("a directory for certificates");
        let acceptor = acceptor(&certificates.path().join("ca.pem"));
        Self {
            runtime,
            address,
            acceptor: Acceptor(acceptor),
            certificates,
            kept: Mutex::default(),
        }
    }

    /// The PEM file of the CA that has signed what the TLS servers show: a
    /// certificate for `localhost` and 127.0.0.1.
    pub fn ca_file(&self) -> PathBuf {
        self.certificates.path().join("ca.pem")
    }

    /// A server on TCP.
    ///
    /// # Panics
    /// If there is no port.
    pub fn tcp(&self, conduct: Conduct) -> SocketAddr {
        let listener = self.listener();
        let address = local(&listener);
        self.runtime.spawn(accept(listener, move |stream| {
            conduct::run(conduct.clone(), stream)
        }));
        address
    }

    /// A server on TCP and TLS, that behaves so once the handshake is done.
    ///
    /// # Panics
    /// If there is no port.
    pub fn tls(&self, conduct: Conduct) -> SocketAddr {
        let listener = self.listener();
        let address = local(&listener);
        let acceptor = self.acceptor.0.clone();
        self.runtime.spawn(accept(listener, move |stream| {
            let (conduct, acceptor) = (conduct.clone(), acceptor.clone());
            async move {
                if let Ok(stream) = acceptor.accept(stream).await {
                    conduct::run(conduct, stream).await;
                }
            }
        }));
        address
    }

    /// A server on a Unix socket.
    ///
    /// # Panics
    /// If the path cannot be used.
    pub fn unix(&self, path: &Path, conduct: Conduct) {
        let _entered = self.runtime.enter();
        let listener = UnixListener::bind(path).expect("a Unix socket");
        self.runtime.spawn(async move {
            loop {
                match listener.accept().await {
                    Ok((stream, _)) => {
                        tokio::spawn(conduct::run(conduct.clone(), stream));
                    }
                    Err(_) => tokio::time::sleep(OUT_OF_DESCRIPTORS).await,
                }
            }
        });
    }

    /// A server on UDP.
    ///
    /// # Panics
    /// If there is no port.
    pub fn udp(&self, conduct: Datagrams) -> SocketAddr {
        let _entered = self.runtime.enter();
        let socket = self.udp_socket(0).expect("a port");
        let address = self.reached_at(socket.local_addr().expect("its address"));
        self.runtime.spawn(datagrams::run(conduct, socket));
        address
    }

    /// A name server, on UDP and TCP.
    ///
    /// # Panics
    /// If there is no port.
    pub fn dns(&self, over_udp: Said, over_tcp: Said) -> SocketAddr {
        let _entered = self.runtime.enter();
        // Of the system's free ports for TCP some are taken for UDP.
        let (listener, socket) = (0..100)
            .find_map(|_| {
                let listener = self.listener();
                let socket = self.udp_socket(local(&listener).port()).ok()?;
                Some((listener, socket))
            })
            .expect("a port for both");
        let address = local(&listener);
        self.runtime
            .spawn(datagrams::run(Datagrams::Dns(over_udp), socket));
        self.runtime.spawn(accept(listener, move |stream| {
            datagrams::over_tcp(over_tcp, stream)
        }));
        address
    }

    /// A port, for TCP, on which nobody listens and nobody else can.
    ///
    /// # Panics
    /// If there is no port.
    pub fn closed(&self) -> SocketAddr {
        self.keep(bound(self.address, Type::STREAM))
    }

    /// The same for UDP: a socket that is connected elsewhere takes nothing.
    ///
    /// # Panics
    /// If there is no port.
    pub fn closed_udp(&self) -> SocketAddr {
        let socket = bound(self.address, Type::DGRAM);
        let elsewhere = SocketAddr::from((Ipv4Addr::LOCALHOST, 9));
        socket.connect(&elsewhere.into()).expect("connect");
        self.keep(socket)
    }

    /// Swallows whatever is sent to it, over TCP: no connection comes about and
    /// none is refused.
    ///
    /// # Panics
    /// If there is no port, or the system has no filters for sockets.
    #[cfg(target_os = "linux")]
    pub fn black_hole(&self) -> SocketAddr {
        // linux/bpf_common.h: BPF_RET | BPF_K. Nothing of a packet is let through.
        const RETURN: u16 = 0x06;
        let socket = bound(self.address, Type::STREAM);
        socket
            .attach_filter(&[socket2::SockFilter::new(RETURN, 0, 0, 0)])
            .expect("a filter");
        socket.listen(1).expect("listen");
        self.keep(socket)
    }

    /// A listener whose backlog is full, since nobody accepts.
    ///
    /// # Panics
    /// If there is no port.
    pub fn full_backlog(&self) -> SocketAddr {
        let socket = bound(self.address, Type::STREAM);
        socket.listen(0).expect("listen");
        let address = self.keep(socket);
        // Linux takes one more than it is told.
        for _ in 0..4 {
            let filling = Socket::new(Domain::IPV4, Type::STREAM, Some(Protocol::TCP));
            let filling = filling.expect("a socket");
            filling.set_nonblocking(true).expect("nonblocking");
            let _ = filling.connect(&address.into());
            self.kept.lock().expect("the list").push(filling);
        }
        address
    }

    fn keep(&self, socket: Socket) -> SocketAddr {
        let address = socket.local_addr().expect("its address").as_socket();
        self.kept.lock().expect("the list").push(socket);
        self.reached_at(address.expect("an address of IPv4"))
    }

    fn reached_at(&self, listens: SocketAddr) -> SocketAddr {
        SocketAddr::from((Ipv4Addr::LOCALHOST, listens.port()))
    }

    fn listener(&self) -> TcpListener {
        let socket = bound(self.address, Type::STREAM);
        socket.listen(4096).expect("listen");
        socket.set_nonblocking(true).expect("nonblocking");
        let _entered = self.runtime.enter();
        TcpListener::from_std(socket.into()).expect("a listener")
    }

    fn udp_socket(&self, port: u16) -> io::Result<UdpSocket> {
        let socket = std::net::UdpSocket::bind((self.address, port))?;
        socket.set_nonblocking(true)?;
        let socket = Socket::from(socket);
        // Thousands may come at once.
        let _ = socket.set_recv_buffer_size(1 << 20);
        UdpSocket::from_std(socket.into())
    }
}

fn bound(address: Ipv4Addr, kind: Type) -> Socket {
    let socket = Socket::new(Domain::IPV4, kind, None).expect("a socket");
    let any_port = SocketAddr::from((address, 0));
    socket.bind(&any_port.into()).expect("a port");
    socket
}

fn local(listener: &TcpListener) -> SocketAddr {
    let port = listener.local_addr().expect("its address").port();
    SocketAddr::from((Ipv4Addr::LOCALHOST, port))
}

async fn accept<R>(listener: TcpListener, serve: impl Fn(tokio::net::TcpStream) -> R)
where
    R: Future<Output = ()> + Send + 'static,
{
    loop {
        match listener.accept().await {
            Ok((stream, _)) => {
                let _ = stream.set_nodelay(true);
                tokio::spawn(serve(stream));
            }
            Err(_) => tokio::time::sleep(OUT_OF_DESCRIPTORS).await,
        }
    }
}

/// Makes a CA, writes its certificate into `ca_file`, and has it sign a
/// server's.
fn acceptor(ca_file: &Path) -> TlsAcceptor {
    let mut of_ca = CertificateParams::default();
    of_ca.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let key = KeyPair::generate().expect("a key");
    let ca = CertifiedIssuer::self_signed(of_ca, key).expect("a CA");
    std::fs::write(ca_file, ca.pem()).expect("the CA's file");

    let names = ["localhost", "127.0.0.1"].map(str::to_owned);
    let params = CertificateParams::new(names).expect("names");
    let key = KeyPair::generate().expect("a key");
    let certificate = params.signed_by(&key, &ca).expect("a certificate");
    let key = PrivateKeyDer::try_from(key.serialize_der()).expect("its key");
    let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_no_client_auth()
        .with_single_cert(vec![certificate.der().clone()], key)
        .expect("a configuration");
    // As many sessions as a client of thousands of addresses wants to take up again.
    config.session_storage = ServerSessionMemoryCache::new(16 * 1024);
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    TlsAcceptor::from(Arc::new(config))
}
