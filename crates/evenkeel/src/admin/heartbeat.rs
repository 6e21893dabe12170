//! `PUT /v1/heartbeat/CHECK`: somebody reports how a check is.

use bytes::Bytes;
use evenkeel_engine::CheckId;
use evenkeel_threshold::Status;
use http::{Request, StatusCode};
use http_body_util::{BodyExt as _, LengthLimitError, Limited};
use hyper::body::Body;

use super::AdminHandle;
use super::answer::{Answer, text};

/// The most that a report may say, as with the output of a probe. A longer one
/// is refused rather than cut.
const MOST_OUTPUT: usize = 4096;

/// What somebody reports.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeartbeatReport {
    /// Of which check.
    pub path: CheckPath,
    /// How it is.
    pub status: Status,
    /// For people.
    pub output: String,
}

/// As much of a check's identity as tells it from the others that are reported.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CheckPath {
    /// The check's id.
    pub check: String,
    /// Its node.
    pub node: Option<String>,
    /// Its service's id.
    pub service: Option<String>,
    /// Its namespace.
    pub namespace: Option<String>,
    /// Its partition.
    pub partition: Option<String>,
}

impl CheckPath {
    /// Whether it may mean this check.
    pub fn fits(&self, id: &CheckId) -> bool {
        let same =
            |given: &Option<String>, is: &str| given.as_ref().is_none_or(|given| given == is);
        self.check == id.check_id()
            && same(&self.node, id.node())
            && same(&self.service, id.service_id())
            && same(&self.namespace, id.namespace())
            && same(&self.partition, id.partition())
    }
}

/// Why a report is not taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ReportRefused {
    /// No check of that name takes reports.
    #[error("there is no such check that takes reports (heartbeat in a file, TTL in Consul)")]
    Unknown,
    /// Several do.
    #[error("several checks have that id: add node=, service=, namespace= or partition=")]
    Ambiguous,
}

impl HeartbeatReport {
    fn of(path: &str, query: &str, output: &[u8]) -> Result<Self, String> {
        let check = percent_encoding::percent_decode_str(path)
            .decode_utf8()
            .map_err(|error| format!("check: {error}"))?;
        if check.is_empty() {
            return Err("the check is missing: /v1/heartbeat/CHECK".to_owned());
        }
        let mut report = Self {
            path: CheckPath {
                check: check.into_owned(),
                ..CheckPath::default()
            },
            status: Status::Passing,
            output: std::str::from_utf8(output)
                .map_err(|error| format!("the text is not UTF-8: {error}"))?
                .trim_end()
                .to_owned(),
        };
        for (key, value) in url::form_urlencoded::parse(query.as_bytes()) {
            let place = match &*key {
                "node" => &mut report.path.node,
                "service" => &mut report.path.service,
                "namespace" => &mut report.path.namespace,
                "partition" => &mut report.path.partition,
                "status" => {
                    let status = value.parse();
                    report.status = status.map_err(|error| format!("status: {error}"))?;
                    continue;
                }
                _ => {
                    return Err(format!(
                        "unknown key `{key}`; known are status, node, service, namespace and partition"
                    ));
                }
            };
            *place = Some(value.into_owned());
        }
        Ok(report)
    }
}

/// Answers a report; `path` is what comes after `/v1/heartbeat/`.
pub(super) async fn heartbeat<B>(handle: &AdminHandle, path: &str, request: Request<B>) -> Answer
where
    B: Body<Data = Bytes, Error: std::error::Error + Send + Sync + 'static>,
{
    let (head, body) = request.into_parts();
    let output = match Limited::new(body, MOST_OUTPUT).collect().await {
        Ok(output) => output.to_bytes(),
        Err(error) if error.is::<LengthLimitError>() => {
            let fault = format!("the text has more than {MOST_OUTPUT} bytes\n");
            return text(StatusCode::PAYLOAD_TOO_LARGE, fault);
        }
        Err(error) => return text(StatusCode::BAD_REQUEST, format!("{error}\n")),
    };
    let report = match HeartbeatReport::of(path, head.uri.query().unwrap_or(""), &output) {
        Ok(report) => report,
        Err(fault) => return text(StatusCode::BAD_REQUEST, fault + "\n"),
    };
    match handle.report(report).await {
        Some(Ok(())) => text(StatusCode::OK, "taken\n"),
        Some(Err(refused)) => {
            let code = match refused {
                ReportRefused::Unknown => StatusCode::NOT_FOUND,
                ReportRefused::Ambiguous => StatusCode::CONFLICT,
            };
            text(code, format!("{refused}\n"))
        }
        None => text(
            StatusCode::SERVICE_UNAVAILABLE,
            "the loop does not answer\n",
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_says_which_check_and_how_it_is() {
        let report =
            HeartbeatReport::of("a%2Fb", "status=warning&node=n&service=s", b"slow\n").unwrap();
        assert_eq!(report.status, Status::Warning);
        assert_eq!(report.output, "slow");
        let id = |node, check| CheckId::new("p", "ns", node, "s", check);
        assert!(report.path.fits(&id("n", "a/b")));
        assert!(!report.path.fits(&id("m", "a/b")));
        assert!(!report.path.fits(&id("n", "a")));
        assert_eq!(
            HeartbeatReport::of("a", "", b"").unwrap().status,
            Status::Passing
        );
    }

    #[test]
    fn what_is_wrong_with_a_report_is_told() {
        for (path, query, output, told) in [
            ("", "", &b""[..], "check is missing"),
            ("%ff", "", b"", "utf-8"),
            ("a", "status=fine", b"", "status"),
            ("a", "stat=passing", b"", "`stat`"),
            ("a", "", b"\xff", "not UTF-8"),
        ] {
            let fault = HeartbeatReport::of(path, query, output).unwrap_err();
            assert!(fault.contains(told), "{fault}");
        }
    }
}
