use std::net::SocketAddr;
use std::rc::Rc;

use bytes::Bytes;
use evenkeel_benches::peers::{ADDRESSES, Peers};
use evenkeel_probe::{Definition, GrpcCheck, H2PingCheck, Prober, ProberSettings};
use h2::client::{Connection, SendRequest};
use tokio::net::TcpStream;

use crate::run::Run;
use crate::{Contender, Failable};

/// A gRPC health check, beside the same call by the bare library for HTTP/2.
pub(crate) fn grpc(run: Run, peers: &Peers) -> Failable<Vec<Contender<'static>>> {
    let check = |address: SocketAddr| Ok(GrpcCheck::new(&address.to_string())?.into());
    contenders(run, peers, ["h2 grpc", "prober grpc"], check, call)
}

/// A ping, beside that of the bare library.
pub(crate) fn ping(run: Run, peers: &Peers) -> Failable<Vec<Contender<'static>>> {
    let check = |address: SocketAddr| Ok(H2PingCheck::new(&address.to_string())?.into());
    contenders(run, peers, ["h2 h2ping", "prober h2ping"], check, pinged)
}

fn contenders<F>(
    run: Run,
    peers: &Peers,
    names: [&'static str; 2],
    check: impl Fn(SocketAddr) -> Failable<Definition>,
    bare: impl Fn(SocketAddr) -> F + 'static,
) -> Failable<Vec<Contender<'static>>>
where
    F: Future<Output = Failable<bool>> + 'static,
{
    let addresses: Vec<SocketAddr> = (0..ADDRESSES)
        .map(|index| peers.one_of("h2", index))
        .collect::<Result<_, _>>()?;
    let definitions: Vec<Rc<Definition>> = addresses
        .iter()
        .map(|address| Ok(Rc::new(check(*address)?)))
        .collect::<Failable<_>>()?;
    let prober = Prober::new(ProberSettings::default())?;
    Ok(vec![
        Contender::new(names[0], move || {
            run.measure(|index| {
                let good = bare(addresses[(index % ADDRESSES) as usize]);
                async move {
                    good.await.unwrap_or_else(|error| {
                        println!("{error}");
                        false
                    })
                }
            })
        }),
        Contender::new(names[1], move || run.prober(&prober, &definitions)),
    ])
}

type Client = (SendRequest<Bytes>, Connection<TcpStream, Bytes>);

async fn open(address: SocketAddr) -> Failable<Client> {
    let stream = TcpStream::connect(address).await?;
    Ok(h2::client::handshake(stream).await?)
}

async fn call(address: SocketAddr) -> Failable<bool> {
    let (mut requests, connection) = open(address).await?;
    let call = async move {
        let request = http::Request::post(format!("http://{address}/grpc.health.v1.Health/Check"))
            .header("te", "trailers")
            .header("content-type", "application/grpc")
            .body(())?;
        let (answer, mut body) = requests.send_request(request, false)?;
        // No compression, no bytes: the server's own health.
        body.send_data(Bytes::from_static(&[0; 5]), true)?;
        let mut body = answer.await?.into_body();
        let mut message = Vec::new();
        while let Some(data) = body.data().await {
            let data = data?;
            body.flow_control().release_capacity(data.len())?;
            message.extend_from_slice(&data);
        }
        let trailers = body.trailers().await?.unwrap_or_default();
        let done = trailers.get("grpc-status").is_some_and(|code| code == "0");
        Ok::<_, Box<dyn std::error::Error>>(done && message.ends_with(&[8, 1]))
    };
    driven(connection, call).await
}

async fn pinged(address: SocketAddr) -> Failable<bool> {
    let (requests, mut connection) = open(address).await?;
    let mut pings = connection.ping_pong().ok_or("no pings")?;
    let ping = async move {
        let _requests = requests;
        pings.ping(h2::Ping::opaque()).await?;
        Ok(true)
    };
    driven(connection, ping).await
}

async fn driven(
    connection: Connection<TcpStream, Bytes>,
    work: impl Future<Output = Failable<bool>>,
) -> Failable<bool> {
    tokio::select! {
        biased;
        result = work => result,
        ended = connection => {
            ended?;
            Ok(false)
        }
    }
}
