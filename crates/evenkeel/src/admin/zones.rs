//! `/v1/zones/UPSTREAM` and `/stats`: how traffic is split between zones.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::stream;
use http::header::{ACCEPT, CACHE_CONTROL, CONTENT_TYPE};
use http::{HeaderMap, HeaderValue, Request, Response, StatusCode};
use http_body_util::{BodyExt as _, StreamBody};
use hyper::body::Frame;
use tokio::sync::watch;
use tokio::time::{Instant, timeout, timeout_at};

use super::answer::{Answer, json, text, typed};
use super::{AdminHandle, Stay};
use crate::config::duration;
use crate::zones::{PairReport, PairView, RuleName, Unanswered, ZonesHandle, report, stats};

/// A service that nobody has asked for before is read within this time, or there
/// is no answer yet.
const FIRST_READ: Duration = Duration::from_secs(5);

/// How long a question with an index waits for a change when it says nothing
/// else, and at most; as Consul's blocking queries.
const WAIT: Duration = Duration::from_secs(5 * 60);
const LONGEST_WAIT: Duration = Duration::from_secs(10 * 60);

/// An idle stream of events says so as often, so that either side notices when
/// the other has gone.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// An answer for callers in all zones grows with the square of their number.
const MOST_ZONES: usize = 100;

/// A name in Consul has at most 255 bytes.
const LONGEST_NAME: usize = 512;

/// What is asked.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Question {
    upstream: String,
    callers: String,
    zone: Option<String>,
    rule: Option<RuleName>,
    /// The version that is known already.
    index: Option<u64>,
    wait: Duration,
}

impl Question {
    fn of(path: &str, query: &str, headers: &HeaderMap) -> Result<Self, String> {
        let name = |name: &str, what: &str| match name.len() {
            0 => Err(format!("{what} is missing")),
            1..=LONGEST_NAME => Ok(name.to_owned()),
            _ => Err(format!("{what} has more than {LONGEST_NAME} bytes")),
        };
        let upstream = percent_encoding::percent_decode_str(path)
            .decode_utf8()
            .map_err(|error| format!("upstream: {error}"))?;
        let mut question = Self {
            upstream: name(&upstream, "upstream (/v1/zones/UPSTREAM)")?,
            callers: String::new(),
            zone: None,
            rule: None,
            index: None,
            wait: WAIT,
        };
        let number = |text: &str, what: &str| {
            let number = text.parse::<u64>();
            number.map_err(|_| format!("{what}: {text:?} is not a whole number"))
        };
        // What a client that comes back to a stream of events has seen last.
        if let Some(seen) = headers.get("last-event-id") {
            let seen = seen.to_str().unwrap_or_default();
            question.index = Some(number(seen, "Last-Event-ID")?);
        }
        for (key, value) in url::form_urlencoded::parse(query.as_bytes()) {
            match &*key {
                "callers" => question.callers = name(&value, "callers")?,
                "zone" => question.zone = Some(name(&value, "zone")?),
                "rule" => {
                    let rule = value.parse().map_err(|error| format!("rule: {error}"))?;
                    question.rule = Some(rule);
                }
                "index" => question.index = Some(number(&value, "index")?),
                "wait" => {
                    let wait = duration::parse(&value).map_err(|error| format!("wait: {error}"))?;
                    question.wait = wait.min(LONGEST_WAIT);
                }
                _ => {
                    return Err(format!(
                        "unknown key `{key}`; known are callers, zone, rule, index and wait"
                    ));
                }
            }
        }
        if question.callers.is_empty() {
            return Err("callers is missing: the service that calls (?callers=NAME)".to_owned());
        }
        Ok(question)
    }
}

/// Answers `/v1/zones/UPSTREAM`; `path` is what comes after `/v1/zones/`.
pub(super) async fn zones<B>(
    handle: &AdminHandle,
    stay: &Stay,
    path: &str,
    request: &Request<B>,
) -> Answer {
    let query = request.uri().query().unwrap_or("");
    let question = match Question::of(path, query, request.headers()) {
        Ok(question) => question,
        Err(fault) => return text(StatusCode::BAD_REQUEST, fault + "\n"),
    };
    let streams = request
        .headers()
        .get_all(ACCEPT)
        .iter()
        .any(|accept| accept.as_bytes().starts_with(b"text/event-stream"));
    let mut pair = match follow(handle.zones(), &question).await {
        Ok(pair) => pair,
        Err(answer) => return answer,
    };
    let zones = pair.borrow().zones().len();
    if question.zone.is_none() && zones > MOST_ZONES {
        let fault = format!("there are {zones} zones: ask for one (&zone=NAME)\n");
        return text(StatusCode::BAD_REQUEST, fault);
    }
    if (streams || question.index.is_some()) && !stay.lengthen() {
        let busy = "too many clients wait for changes; ask without an index\n";
        return text(StatusCode::SERVICE_UNAVAILABLE, busy);
    }
    if streams {
        return events(pair, question);
    }
    if let Some(index) = question.index {
        // An index of before the daemon's start is another one than any of now, so
        // it is answered at once.
        let news = pair.wait_for(|pair| pair.version != index);
        let _ = timeout(question.wait, news).await;
    }
    let report = told(&mut pair, &question);
    let mut answer = json(StatusCode::OK, &report);
    answer
        .headers_mut()
        .insert("x-evenkeel-index", HeaderValue::from(report.version));
    answer
}

/// The pair, once both services have been read.
async fn follow(
    zones: &ZonesHandle,
    question: &Question,
) -> Result<watch::Receiver<Arc<PairView>>, Answer> {
    let Question {
        upstream,
        callers,
        rule,
        ..
    } = question;
    let mut pair = zones
        .pair(upstream, callers, *rule)
        .await
        .map_err(|error: Unanswered| text(StatusCode::SERVICE_UNAVAILABLE, format!("{error}\n")))?;
    let read = pair.wait_for(|pair| pair.callers.known && pair.upstream.known);
    if !matches!(timeout(FIRST_READ, read).await, Ok(Ok(_))) {
        let pair = pair.borrow();
        let why = [&pair.upstream, &pair.callers]
            .iter()
            .find_map(|service| service.degraded.clone())
            .unwrap_or_else(|| "the catalog has not answered yet".to_owned());
        return Err(text(StatusCode::SERVICE_UNAVAILABLE, why + "\n"));
    }
    Ok(pair)
}

fn told(pair: &mut watch::Receiver<Arc<PairView>>, question: &Question) -> PairReport {
    let pair = Arc::clone(&pair.borrow_and_update());
    report(&pair, question.zone.as_deref())
}

/// Each version as an event, the present one first unless it is known.
fn events(pair: watch::Receiver<Arc<PairView>>, question: Question) -> Answer {
    let seen = question.index;
    let events = stream::unfold(
        (pair, question, seen),
        |(mut pair, question, seen)| async move {
            let deadline = Instant::now() + KEEP_ALIVE;
            let news = async {
                let news = pair.wait_for(|pair| Some(pair.version) != seen).await;
                news.is_ok()
            };
            let event = match timeout_at(deadline, news).await {
                Err(_) => (seen, ": nothing new\n\n".to_owned()),
                // The daemon is stopping.
                Ok(false) => return None,
                Ok(true) => {
                    let report = told(&mut pair, &question);
                    let data = serde_json::to_string(&report).ok()?;
                    let event = format!("id: {}\nevent: zones\ndata: {data}\n\n", report.version);
                    (Some(report.version), event)
                }
            };
            let (seen, text) = event;
            let frame = Ok::<_, Infallible>(Frame::data(Bytes::from(text)));
            Some((frame, (pair, question, seen)))
        },
    );
    let mut answer = Response::new(StreamBody::new(events).boxed_unsync());
    let headers = answer.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    answer
}

/// Answers `/stats`: Envoy's counters of all pairs that are followed.
pub(super) async fn counters(handle: &AdminHandle) -> Answer {
    match handle.zones().pairs().await {
        Ok(pairs) => {
            let text: String = pairs.iter().map(|pair| stats(pair)).collect();
            typed(StatusCode::OK, "text/plain; charset=utf-8", text)
        }
        Err(error) => text(StatusCode::SERVICE_UNAVAILABLE, format!("{error}\n")),
    }
}

#[cfg(test)]
mod tests {
    use evenkeel_zone_weights::Locality;
    use proptest::prelude::*;
    use tokio::sync::mpsc;

    use super::*;
    use crate::clock::Clock;
    use crate::config::ZoneSettings;
    use crate::metrics::Metrics;
    use crate::status::Readiness;
    use crate::zones::{Endpoint, FileServices, Instance, Source, Weights, ZonesTask};

    fn question(path: &str, query: &str) -> Result<Question, String> {
        Question::of(path, query, &HeaderMap::new())
    }

    #[test]
    fn a_question_says_who_calls_whom() {
        let asked = question("a%2Fb", "callers=web&zone=r/z&rule=joint&index=7&wait=1s").unwrap();
        assert_eq!(asked.upstream, "a/b");
        assert_eq!(asked.callers, "web");
        assert_eq!(asked.zone.as_deref(), Some("r/z"));
        assert_eq!(asked.rule, Some(RuleName::Joint));
        assert_eq!((asked.index, asked.wait), (Some(7), Duration::from_secs(1)));
        let asked = question("api", "callers=web&wait=99h").unwrap();
        assert_eq!((asked.index, asked.wait), (None, LONGEST_WAIT));
    }

    #[test]
    fn what_is_wrong_with_a_question_is_told() {
        let long = "x".repeat(LONGEST_NAME + 1);
        for (path, query, told) in [
            ("", "callers=a", "upstream"),
            (long.as_str(), "callers=a", "more than 512 bytes"),
            ("a", "", "callers is missing"),
            ("a", "callers=", "callers is missing"),
            ("a", "callers=b&rule=best", "service-connect"),
            ("a", "callers=b&index=-1", "index"),
            ("a", "callers=b&wait=soon", "wait"),
            ("a", "callers=b&zones=c", "`zones`"),
            ("%ff", "callers=b", "utf-8"),
        ] {
            let fault = question(path, query).unwrap_err();
            assert!(fault.contains(told), "{path}?{query}: {fault}");
        }
    }

    /// Services with odd names and zones, and whom to ask.
    struct Rig {
        runtime: tokio::runtime::Runtime,
        handle: AdminHandle,
        _kept: Vec<Box<dyn std::any::Any>>,
    }

    fn rig() -> Rig {
        // Time moves on by itself: nothing here waits for a network.
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()
            .unwrap();
        let entered = runtime.enter();
        let clock = Clock::start();
        let metrics = Arc::new(Metrics::new());
        let instances = |service: &str, zones: &[&str]| -> Vec<Instance> {
            let numbered = zones.iter().enumerate();
            numbered
                .map(|(number, zone)| Instance {
                    endpoint: Endpoint {
                        id: format!("{service}{number}").as_str().into(),
                        address: "10.0.0.1".into(),
                        port: 80,
                        locality: Locality::new("r", zone, ""),
                        priority: u32::try_from(number % 2).unwrap(),
                    },
                    weights: Weights::default(),
                    checks: Vec::new(),
                })
                .collect()
        };
        let many: Vec<String> = (0..200).map(|number| number.to_string()).collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        let services = FileServices::from([
            (
                "api".into(),
                instances("api", &["", "a", "a", "\u{e9}/\n", "z"]),
            ),
            ("shop".into(), instances("shop", &["a", "", "b"])),
            ("many".into(), instances("many", &many)),
        ]);
        let (file, source) = watch::channel(Arc::new(services));
        let (released, told) = mpsc::unbounded_channel();
        let (ask, asked) = mpsc::channel(16);
        let (task, zones) = ZonesTask::new(
            ZoneSettings::default().rules(),
            Source::File(source),
            clock,
            Arc::clone(&metrics),
            told,
            ask,
        );
        drop(tokio::spawn(task.run()));
        let (questions, answered) = mpsc::channel(1);
        let (readiness, seen) = watch::channel(Readiness::default());
        let handle = AdminHandle::new(questions, seen, metrics, clock, Arc::default(), zones);
        drop(entered);
        Rig {
            runtime,
            handle,
            _kept: vec![
                Box::new((file, released, asked)),
                Box::new((answered, readiness)),
            ],
        }
    }

    fn words() -> impl Strategy<Value = String> {
        prop_oneof![
            Just("api".to_owned()),
            Just("shop".to_owned()),
            Just("many".to_owned()),
            Just(String::new()),
            Just("r/a".to_owned()),
            Just("x".repeat(600)),
            Just("18446744073709551616".to_owned()),
            any::<u64>().prop_map(|number| number.to_string()),
            "[a-z0-9%/?#&=+.]{0,12}",
            any::<String>(),
        ]
    }

    fn pairs() -> impl Strategy<Value = Vec<(String, String)>> {
        let keys = prop_oneof![
            4 => Just("callers".to_owned()),
            4 => Just("zone".to_owned()),
            4 => Just("rule".to_owned()),
            4 => Just("index".to_owned()),
            4 => Just("wait".to_owned()),
            1 => words(),
        ];
        let values = prop_oneof![
            4 => words(),
            1 => prop::sample::select(RuleName::ALL.map(|rule| rule.to_string()).to_vec()),
            1 => Just("1h".to_owned()),
        ];
        prop::collection::vec((keys, values), 0..5)
    }

    proptest! {
        // Whatever is asked, the answer says what is wrong with it, or is a whole one.
        #[test]
        fn any_question_has_an_answer(
            path in words(),
            callers in words(),
            mut pairs in pairs(),
            as_it_is in any::<bool>(),
            seen in prop::option::weighted(0.2, words()),
            accept in prop::option::weighted(0.2, prop_oneof![Just("text/event-stream".to_owned()), words()]),
        ) {
            thread_local! {
                static RIG: Rig = rig();
            }
            pairs.insert(0, ("callers".to_owned(), callers));
            let query = if as_it_is {
                let pairs = pairs.iter().map(|(key, value)| format!("{key}={value}"));
                pairs.collect::<Vec<_>>().join("&")
            } else {
                url::form_urlencoded::Serializer::new(String::new())
                    .extend_pairs(&pairs)
                    .finish()
            };
            let mut request = Request::get(format!("/v1/zones/x?{query}"));
            for (name, value) in [("last-event-id", seen), ("accept", accept)] {
                let value = value.map(|text| HeaderValue::from_bytes(text.as_bytes()));
                if let Some(Ok(value)) = value {
                    request = request.header(name, value);
                }
            }
            // What is no URL gets no further than the server.
            let Ok(request) = request.body(()) else {
                return Ok(());
            };
            RIG.with(|rig| rig.runtime.block_on(async {
                let stay = Stay::new(None, Arc::new(tokio::sync::Semaphore::new(1)));
                let answer = zones(&rig.handle, &stay, &path, &request).await;
                let status = answer.status();
                let streams = answer.headers()[CONTENT_TYPE] == "text/event-stream";
                let mut body = answer.into_body();
                // A stream does not end.
                let first = body.frame().await.unwrap().unwrap().into_data().unwrap();
                match status {
                    StatusCode::OK if streams => {
                        prop_assert!(first.starts_with(b"id: ") || first.starts_with(b": "));
                    }
                    StatusCode::OK => {
                        let report: PairReport = serde_json::from_slice(&first).unwrap();
                        for zone in &report.zones {
                            let sent: f64 = zone.weights.iter().map(crate::zones::Weight::fraction).sum();
                            prop_assert!(sent + zone.no_host <= 1.0 + 1e-6, "{:?}", zone);
                        }
                    }
                    StatusCode::BAD_REQUEST | StatusCode::SERVICE_UNAVAILABLE => {
                        prop_assert!(first.len() > 1 && first.ends_with(b"\n"));
                    }
                    other => prop_assert!(false, "{other}"),
                }
                Ok(())
            }))?;
        }
    }

    #[test]
    fn a_client_that_comes_back_says_what_it_has_seen() {
        let headers = HeaderMap::from_iter([(
            http::HeaderName::from_static("last-event-id"),
            HeaderValue::from_static("12"),
        )]);
        let asked = Question::of("api", "callers=web", &headers).unwrap();
        assert_eq!(asked.index, Some(12));
    }
}
