use std::error::Error;
use std::net::SocketAddr;
use std::path::Path;
use std::rc::Rc;
use std::time::Duration;

use bytes::Bytes;
use evenkeel_benches::floor;
use evenkeel_benches::peers::ADDRESSES;
use evenkeel_benches::target::Target;
use evenkeel_probe::{Definition, HttpCheck, Prober, ProberSettings, TcpCheck};
use http_body_util::{BodyExt as _, Empty};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio::time::Instant;

use crate::run::Run;
use crate::{Contender, Failable};

/// HTTP, with hyper beside it.
pub(crate) fn http<'a>(
    run: Run,
    target: &'a Target,
    program: &'a Path,
) -> Failable<Vec<Contender<'a>>> {
    let definitions = definitions(target, |address| {
        Ok(HttpCheck::new(&format!("http://{address}/health"))?.into())
    })?;
    let prober = Prober::new(ProberSettings::default())?;
    Ok(vec![
        floor_of("floor http", "http", run, target, program),
        Contender::new("prober http", move || run.prober(&prober, &definitions)),
        Contender::new("hyper http", move || hyper(run, target)),
    ])
}

/// TCP with both ways to close.
pub(crate) fn tcp<'a>(
    run: Run,
    target: &'a Target,
    program: &'a Path,
) -> Failable<Vec<Contender<'a>>> {
    let definitions = |abortive| {
        definitions(target, |address| {
            let check = TcpCheck::new(&address.to_string())?;
            Ok(check.with_abortive_close(abortive).into())
        })
    };
    let (orderly, abortive) = (definitions(false)?, definitions(true)?);
    let prober = Prober::new(ProberSettings::default())?;
    let other = prober.clone();
    Ok(vec![
        floor_of("floor tcp", "tcp", run, target, program),
        Contender::new("prober tcp", move || run.prober(&prober, &orderly)),
        floor_of("floor tcp-rst", "tcp-rst", run, target, program),
        Contender::new("prober tcp-rst", move || run.prober(&other, &abortive)),
    ])
}

fn definitions(
    target: &Target,
    definition: impl Fn(SocketAddr) -> Failable<Definition>,
) -> Failable<Vec<Rc<Definition>>> {
    (0..ADDRESSES)
        .map(|index| Ok(Rc::new(definition(target.address(index))?)))
        .collect()
}

fn floor_of<'a>(
    name: &'static str,
    mode: &'static str,
    run: Run,
    target: &Target,
    program: &'a Path,
) -> Contender<'a> {
    let first = target.address(0);
    Contender::new(name, move || {
        let cost = floor::cost(program, mode, first, ADDRESSES, run.probes, run.rate);
        Ok(cost?)
    })
}

fn hyper(run: Run, target: &Target) -> Failable<f64> {
    let targets: Rc<Vec<SocketAddr>> =
        Rc::new((0..ADDRESSES).map(|index| target.address(index)).collect());
    run.measure(|index| {
        let address = targets[(index % ADDRESSES) as usize];
        async move {
            let deadline = Instant::now() + Duration::from_secs(10);
            let exchange = hyper_exchange(address);
            let ended = tokio::time::timeout_at(deadline, exchange).await;
            ended.is_ok_and(|result: Result<bool, Box<dyn Error>>| result.is_ok_and(|good| good))
        }
    })
}

/// The least that hyper's client can be asked for.
async fn hyper_exchange(address: SocketAddr) -> Failable<bool> {
    let stream = TcpStream::connect(address).await?;
    let (mut sender, connection) =
        hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
    let request = hyper::Request::get("/health")
        .header("host", address.to_string())
        .header("user-agent", "Consul Health Check")
        .header("accept", "text/plain, text/*, */*")
        .header("connection", "close")
        .body(Empty::<Bytes>::new())?;
    let exchange = async {
        let response = sender.send_request(request).await?;
        let status = response.status();
        let body = response.into_body().collect().await?.to_bytes();
        Ok::<_, hyper::Error>(status.is_success() && !body.is_empty())
    };
    // The connection may end before the body has been taken out.
    let driver = async {
        let _ = connection.await;
        std::future::pending::<()>().await;
    };
    tokio::select! {
        biased;
        good = exchange => Ok(good?),
        () = driver => Ok(false),
    }
}
