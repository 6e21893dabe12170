use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;

use evenkeel_benches::peers::Peers;
use evenkeel_probe::{Definition, HttpCheck, Prober, ProberSettings, TcpCheck, TlsOptions};
use rustls::client::Resumption;
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use crate::run::Run;
use crate::{Contender, Failable};

/// Few, so that a first round over all of them is short. At the rate of
/// handshakes the ports of so many do not run out.
const ADDRESSES: u32 = 250;

/// HTTPS, beside the handshake and the exchange by the bare library.
pub(crate) fn https(run: Run, peers: &Peers) -> Failable<Vec<Contender<'_>>> {
    let definition = |address: SocketAddr, tls: &TlsOptions| -> Failable<Definition> {
        let check = HttpCheck::new(&format!("https://{address}/health"))?;
        Ok(check.with_tls(tls.clone())?.into())
    };
    contenders(run, peers, &HTTPS, &definition, |stream| async {
        exchange(stream).await
    })
}

/// TCP with a handshake, beside the handshake and the goodbye by the bare
/// library.
pub(crate) fn tcp(run: Run, peers: &Peers) -> Failable<Vec<Contender<'_>>> {
    let definition = |address: SocketAddr, tls: &TlsOptions| -> Failable<Definition> {
        let check = TcpCheck::new(&address.to_string())?;
        Ok(check.with_tls(tls.clone())?.into())
    };
    contenders(run, peers, &TCP, &definition, |stream| async {
        goodbye(stream).await
    })
}

/// What is measured, by its names.
struct Names {
    peer: &'static str,
    rustls: &'static str,
    rustls_resumed: &'static str,
    prober: &'static str,
    prober_trusting: &'static str,
    prober_resumed: &'static str,
}

const HTTPS: Names = Names {
    peer: "https",
    rustls: "rustls https",
    rustls_resumed: "rustls https, resumed",
    prober: "prober https",
    prober_trusting: "prober https, no files",
    prober_resumed: "prober https, resumed",
};

const TCP: Names = Names {
    peer: "tls",
    rustls: "rustls tcp+tls",
    rustls_resumed: "rustls tcp+tls, resumed",
    prober: "prober tcp+tls",
    prober_trusting: "prober tcp+tls, no files",
    prober_resumed: "prober tcp+tls, resumed",
};

fn contenders<'a, F>(
    run: Run,
    peers: &'a Peers,
    names: &Names,
    definition: &dyn Fn(SocketAddr, &TlsOptions) -> Failable<Definition>,
    exchange: impl Fn(TlsStream<TcpStream>) -> F + Copy + 'static,
) -> Failable<Vec<Contender<'a>>>
where
    F: Future<Output = Failable<bool>> + 'static,
{
    let addresses: Rc<[SocketAddr]> = (0..ADDRESSES)
        .map(|index| peers.one_of(names.peer, index))
        .collect::<Result<_, _>>()?;
    let bare = |name, resumption| {
        let connector = connector(peers, resumption)?;
        let addresses = Rc::clone(&addresses);
        Ok::<_, Box<dyn std::error::Error>>(Contender::new(name, move || {
            run.measure(|index| {
                let (connector, address) =
                    (connector.clone(), addresses[(index % ADDRESSES) as usize]);
                async move {
                    let good = async { exchange(handshake(&connector, address).await?).await };
                    good.await.unwrap_or_else(|error| {
                        println!("{error}");
                        false
                    })
                }
            })
        }))
    };
    let verified = TlsOptions {
        server_name: "localhost".to_owned(),
        ca_file: peers.ca_file(),
        ..TlsOptions::default()
    };
    let resuming = TlsOptions {
        resumption: true,
        ..verified.clone()
    };
    let trusting = TlsOptions {
        skip_verify: true,
        ..TlsOptions::default()
    };
    // A first handshake with each address is not counted where the next is resumed.
    let prober = |name, tls: &TlsOptions| {
        let definitions: Vec<Rc<Definition>> = addresses
            .iter()
            .map(|address| Ok(Rc::new(definition(*address, tls)?)))
            .collect::<Failable<_>>()?;
        let first = tls.resumption.then_some(Run {
            probes: ADDRESSES,
            ..run
        });
        Ok::<_, Box<dyn std::error::Error>>(Contender::new(name, move || {
            let prober = Prober::new(ProberSettings::default())?;
            if let Some(first) = first {
                first.prober(&prober, &definitions)?;
            }
            run.prober(&prober, &definitions)
        }))
    };
    Ok(vec![
        bare(names.rustls, Resumption::disabled())?,
        prober(names.prober, &verified)?,
        prober(names.prober_trusting, &trusting)?,
        bare(names.rustls_resumed, Resumption::in_memory_sessions(256))?,
        prober(names.prober_resumed, &resuming)?,
    ])
}

fn connector(peers: &Peers, resumption: Resumption) -> Failable<TlsConnector> {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(peers.ca_file())?)?;
    let mut config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()?
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.resumption = resumption;
    Ok(TlsConnector::from(Arc::new(config)))
}

async fn handshake(
    connector: &TlsConnector,
    address: SocketAddr,
) -> Failable<TlsStream<TcpStream>> {
    let stream = TcpStream::connect(address).await?;
    let name = ServerName::try_from("localhost")?;
    Ok(connector.connect(name, stream).await?)
}

async fn exchange(mut stream: TlsStream<TcpStream>) -> Failable<bool> {
    let request = b"GET /health HTTP/1.1\r\nHost: target\r\nConnection: close\r\n\r\n";
    stream.write_all(request).await?;
    let mut answer = [0; 4096];
    let length = stream.read(&mut answer).await?;
    Ok(answer[..length].starts_with(b"HTTP/1.1 200"))
}

async fn goodbye(mut stream: TlsStream<TcpStream>) -> Failable<bool> {
    stream.shutdown().await?;
    let mut sink = [0; 1024];
    // However the other side ends.
    while let Ok(1..) = stream.read(&mut sink).await {}
    Ok(true)
}
