//! The gRPC health check, `grpc.health.v1.Health/Check`.

use std::error::Error as _;
use std::fmt;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use evenkeel_threshold::Status;
use h2::RecvStream;
use h2::client::SendRequest;
use http::{HeaderMap, Request, Response, StatusCode, header};
use http_body::Frame;
use http_body_util::BodyExt as _;
use tonic::Code;
use tonic::body::Body;
use tonic::metadata::MetadataMap;
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::health_client::HealthClient;

use crate::capture::line;
use crate::definition::{ConnectOptions, GrpcCheck};
use crate::fault::Failure;
use crate::http2;
use crate::kind::{Kind, outcome_of};
use crate::prober::Shared;
use crate::progress::{Awaited, Progress};
use crate::report::{Cause, Report};

/// The longest answer that is read, in bytes. The real one has two.
const MAX_ANSWER: usize = 64 * 1024;

impl Kind for GrpcCheck {
    fn timeout(&self) -> Duration {
        self.timeout()
    }

    fn target(&self) -> &str {
        self.target()
    }

    fn connect(&self) -> &ConnectOptions {
        self.connect()
    }

    async fn run(&self, shared: &Shared, progress: &mut Progress) -> Result<Report, Failure> {
        Box::pin(ask(self, shared, progress)).await?;
        let text = format!("gRPC check {}: success", self.target());
        Ok(Report::observed(Status::Passing, text))
    }

    fn failed(&self, failure: Failure, progress: &Progress) -> Report {
        let text = format!("gRPC check {}: {}", self.target(), failure.text);
        Report {
            failed_phase: Some(progress.phase()),
            ..Report::of(outcome_of(&failure), text)
        }
    }
}

async fn ask(check: &GrpcCheck, shared: &Shared, progress: &mut Progress) -> Result<(), Failure> {
    let target = (check.host(), check.port());
    let (requests, driver) = http2::open(shared, target, check.tls(), progress).await?;
    progress.waiting_for = Some(Awaited::Answer);
    let channel = Channel { requests };
    let mut client = HealthClient::with_origin(channel, check.origin().clone())
        .max_decoding_message_size(MAX_ANSWER);
    http2::drive(driver, async move {
        let answer = client.check(request(check, shared)).await;
        match answer {
            Ok(answer) => verdict(answer.into_inner().status(), check.service()),
            Err(status) => Err(refusal(&status, check.service())),
        }
    })
    .await
}

fn request(check: &GrpcCheck, shared: &Shared) -> tonic::Request<HealthCheckRequest> {
    let mut headers = HeaderMap::new();
    if let Ok(agent) = shared.user_agent.parse() {
        headers.insert(header::USER_AGENT, agent);
    }
    for (name, value) in check.metadata() {
        if name == header::USER_AGENT {
            headers.remove(name);
        }
        headers.append(name, value.clone());
    }
    let message = HealthCheckRequest {
        service: check.service().to_owned(),
    };
    let mut request = tonic::Request::new(message);
    *request.metadata_mut() = MetadataMap::from_headers(headers);
    // So that the server does not go on for nobody.
    request.set_timeout(check.timeout());
    request
}

fn verdict(status: ServingStatus, service: &str) -> Result<(), Failure> {
    let of = Of(service);
    Err(Failure::critical(match status {
        ServingStatus::Serving => return Ok(()),
        ServingStatus::NotServing => format!("{of} is NOT_SERVING"),
        ServingStatus::Unknown => format!("the status of {of} is UNKNOWN"),
        ServingStatus::ServiceUnknown => format!("{of} is not known to it (SERVICE_UNKNOWN)"),
    }))
}

fn refusal(status: &tonic::Status, service: &str) -> Failure {
    let broken = status.source().and_then(|source| source.downcast_ref());
    if let Some(Broken(failure)) = broken {
        return failure.clone();
    }
    let said = line(status.message());
    Failure::critical(match status.code() {
        Code::Unimplemented => {
            format!("the server does not implement grpc.health.v1.Health ({said})")
        }
        Code::NotFound => format!("{} is not known to it ({said})", Of(service)),
        code => format!("rpc error: code = {code:?} desc = {said}"),
    })
}

/// The service in a sentence.
struct Of<'a>(&'a str);

impl fmt::Display for Of<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            "" => f.write_str("the server"),
            service => write!(f, "service {service:?}"),
        }
    }
}

/// The connection as tonic wants to have it.
struct Channel {
    requests: SendRequest<Bytes>,
}

/// Why there is no answer. It goes through tonic as it is.
#[derive(Debug)]
struct Broken(Failure);

impl From<Failure> for Broken {
    fn from(failure: Failure) -> Self {
        Self(failure)
    }
}

impl From<h2::Error> for Broken {
    fn from(error: h2::Error) -> Self {
        http2::failure(&error).into()
    }
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.text)
    }
}

impl std::error::Error for Broken {}

impl tower_service::Service<Request<Body>> for Channel {
    type Response = Response<Answer>;
    type Error = Broken;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Broken>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Broken>> {
        self.requests.poll_ready(cx).map_err(Broken::from)
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let mut requests = self.requests.clone();
        Box::pin(async move {
            let (head, body) = request.into_parts();
            let body = body.collect().await.map_err(|status| {
                Failure::unprobed(Cause::System, line(status.message()).into_owned())
            })?;
            // A clone has to be ready itself.
            poll_fn(|cx| requests.poll_ready(cx)).await?;
            let (response, mut stream) =
                requests.send_request(Request::from_parts(head, ()), false)?;
            stream.send_data(body.to_bytes(), true)?;
            let response = response.await?;
            no_grpc(&response)?;
            Ok(response.map(Answer))
        })
    }
}

/// Something else than a gRPC server may speak HTTP/2 there, and its answers
/// would only be told by codes that they stand for.
fn no_grpc(response: &Response<RecvStream>) -> Result<(), Failure> {
    let kind = response.headers().get(header::CONTENT_TYPE);
    let kind = kind.map(|kind| String::from_utf8_lossy(kind.as_bytes()));
    let is_grpc = kind
        .as_ref()
        .is_some_and(|kind| kind.starts_with("application/grpc"));
    if is_grpc && response.status() == StatusCode::OK {
        return Ok(());
    }
    let kind = kind.unwrap_or("no content type".into());
    Err(Failure::critical(format!(
        "the server answered HTTP {} with {}, which is no gRPC",
        response.status().as_u16(),
        line(&kind)
    )))
}

/// The body of an answer.
struct Answer(RecvStream);

impl http_body::Body for Answer {
    type Data = Bytes;
    type Error = Broken;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Broken>>> {
        let stream = &mut self.0;
        let frame = match ready!(stream.poll_data(cx)) {
            Some(Ok(bytes)) => stream
                .flow_control()
                .release_capacity(bytes.len())
                .map(|()| Some(Frame::data(bytes))),
            Some(Err(error)) => Err(error),
            None => ready!(stream.poll_trailers(cx)).map(|trailers| trailers.map(Frame::trailers)),
        };
        Poll::Ready(frame.map_err(Broken::from).transpose())
    }
}
