use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Response};

use super::conduct::Stream;

/// How a gRPC server answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Calls {
    /// That the service is serving (`grpc.health.v1`).
    Serving,
    /// That it is not.
    NotServing,
    /// That it knows no such call.
    Unimplemented,
    /// Never.
    Unanswered,
}

pub(super) async fn serve<S: Stream>(stream: S, calls: Calls) {
    let Ok(mut connection) = h2::server::handshake(stream).await else {
        return;
    };
    let mut unanswered = Vec::new();
    while let Some(Ok((request, mut respond))) = connection.accept().await {
        // The status is the message's first field.
        let status = match calls {
            Calls::Serving => 1,
            Calls::NotServing => 2,
            Calls::Unimplemented => {
                let mut response = response();
                let code = HeaderValue::from_static("12");
                response.headers_mut().insert("grpc-status", code);
                let _ = respond.send_response(response, true);
                continue;
            }
            Calls::Unanswered => {
                unanswered.push((request, respond));
                continue;
            }
        };
        if let Ok(mut body) = respond.send_response(response(), false) {
            let message = [0, 0, 0, 0, 2, 0x08, status];
            let _ = body.send_data(Bytes::copy_from_slice(&message), false);
            let mut trailers = HeaderMap::new();
            trailers.insert("grpc-status", HeaderValue::from_static("0"));
            let _ = body.send_trailers(trailers);
        }
    }
}

fn response() -> Response<()> {
    let mut response = Response::new(());
    let kind = HeaderValue::from_static("application/grpc");
    response.headers_mut().insert("content-type", kind);
    response
}
