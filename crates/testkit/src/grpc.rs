use std::sync::Arc;
use std::thread;

use rustls::ServerConfig;
use rustls::crypto::ring;
use rustls_pki_types::pem::PemObject as _;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio_rustls::TlsAcceptor;
use tokio_stream::wrappers::{ReceiverStream, TcpListenerStream};
use tonic::transport::Server;
use tonic_health::ServingStatus;
use tonic_health::server::health_reporter;

/// A gRPC server with the standard health service, which also answers HTTP/2
/// pings. It ends when this is dropped.
#[derive(Debug)]
pub struct GrpcHealth {
    address: String,
    /// Whether it serves; closed, it ends.
    serving: mpsc::UnboundedSender<bool>,
}

impl GrpcHealth {
    /// A server that serves, as it says of itself.
    ///
    /// # Panics
    /// If it cannot be started.
    pub fn start() -> Self {
        Self::start_with(None)
    }

    /// The same over TLS.
    ///
    /// # Panics
    /// If it cannot be started, or the texts are no certificate and its key.
    pub fn start_tls(certificate_pem: &str, key_pem: &str) -> Self {
        let certificate =
            CertificateDer::from_pem_slice(certificate_pem.as_bytes()).expect("a certificate");
        let key = PrivateKeyDer::from_pem_slice(key_pem.as_bytes()).expect("a key");
        let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .expect("the versions of TLS")
            .with_no_client_auth()
            .with_single_cert(vec![certificate], key)
            .expect("a certificate with its key");
        config.alpn_protocols = vec![b"h2".to_vec()];
        Self::start_with(Some(TlsAcceptor::from(Arc::new(config))))
    }

    /// Where it listens: `127.0.0.1:PORT`.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// Has it say from now on whether it serves.
    pub fn set_serving(&self, serving: bool) {
        let _ = self.serving.send(serving);
    }

    fn start_with(tls: Option<TlsAcceptor>) -> Self {
        let (serving, told) = mpsc::unbounded_channel();
        let (tell, address) = std::sync::mpsc::channel();
        thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .expect("a runtime");
            runtime.block_on(async {
                let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
                let address = listener.local_addr().expect("its address");
                let _ = tell.send(address.to_string());
                serve(listener, tls, told).await;
            });
        });
        Self {
            address: address.recv().expect("the server starts"),
            serving,
        }
    }
}

async fn serve(
    listener: TcpListener,
    tls: Option<TlsAcceptor>,
    mut serving: mpsc::UnboundedReceiver<bool>,
) {
    let (reporter, service) = health_reporter();
    reporter
        .set_service_status("", ServingStatus::Serving)
        .await;
    let router = Server::builder().add_service(service);
    let told = async move {
        while let Some(serving) = serving.recv().await {
            let status = match serving {
                true => ServingStatus::Serving,
                false => ServingStatus::NotServing,
            };
            reporter.set_service_status("", status).await;
        }
    };
    let server = async move {
        let Some(acceptor) = tls else {
            let incoming = TcpListenerStream::new(listener);
            return router.serve_with_incoming(incoming).await;
        };
        let (sender, accepted) = mpsc::channel(1);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (acceptor, sender) = (acceptor.clone(), sender.clone());
                tokio::spawn(async move {
                    if let Ok(stream) = acceptor.accept(stream).await {
                        let _ = sender.send(Ok::<_, std::io::Error>(stream)).await;
                    }
                });
            }
        });
        router
            .serve_with_incoming(ReceiverStream::new(accepted))
            .await
    };
    tokio::select! {
        () = told => {}
        ended = server => ended.expect("the server serves"),
    }
}
