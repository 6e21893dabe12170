//! The system's resolver against a name server on port 53 of a network
//! namespace, with `resolv.conf` and `hosts` of the test's own.

use std::net::IpAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use evenkeel_probe::{Cause, ConnectOptions, Family, Resolve, ResolveError, SystemResolver};
use evenkeel_threshold::Status::Critical;
use hickory_resolver::proto::op::{Message, ResponseCode};
use hickory_resolver::proto::rr::{RData, Record, RecordType};
use tokio::net::UdpSocket;

use crate::support::*;
use crate::unprobed::with_resolver_files;

/// Answers by the first label: `a…` has an IPv4 and an IPv6 address, `four…`
/// only the former, `half…` that and a SERVFAIL for the other, `empty…` none;
/// `quiet…` has an IPv4 address and never answers for the other; `servfail…`,
/// `refused…`, `silent…` do as they say; other names do not exist.
/// The names asked for are kept.
async fn name_server() -> Arc<Mutex<Vec<String>>> {
    let socket = UdpSocket::bind("127.0.0.1:53").await.unwrap();
    let asked = Arc::new(Mutex::new(Vec::new()));
    let kept = asked.clone();
    tokio::spawn(async move {
        let mut buffer = [0; 1500];
        loop {
            let (len, from) = socket.recv_from(&mut buffer).await.unwrap();
            let query = Message::from_vec(&buffer[..len]).unwrap();
            let question = query.queries[0].clone();
            let name = question.name().to_string();
            let v4 = question.query_type() == RecordType::A;
            kept.lock().unwrap().push(name.clone());
            let mut answer = Message::response(query.metadata.id, query.metadata.op_code);
            answer.add_query(question.clone());
            let has = |start: &str| name.starts_with(start);
            let address = match () {
                () if has("a.") || has("a1.") => Some(if v4 { "127.0.0.1" } else { "::1" }),
                () if has("four.") || has("half.") || has("quiet.") => v4.then_some("127.0.0.4"),
                () => None,
            };
            answer.metadata.response_code = match () {
                () if has("silent.") || (has("quiet.") && !v4) => continue,
                () if has("servfail.") || (has("half.") && !v4) => ResponseCode::ServFail,
                () if has("refused.") => ResponseCode::Refused,
                () if address.is_some() || has("empty.") || has("four.") => ResponseCode::NoError,
                () => ResponseCode::NXDomain,
            };
            if let Some(address) = address {
                let data = match address.parse().unwrap() {
                    IpAddr::V4(ip) => RData::A(ip.into()),
                    IpAddr::V6(ip) => RData::AAAA(ip.into()),
                };
                answer.add_answer(Record::from_rdata(question.name().clone(), 300, data));
            }
            socket
                .send_to(&answer.to_vec().unwrap(), from)
                .await
                .unwrap();
        }
    });
    asked
}

async fn resolve(resolver: &SystemResolver, name: &str) -> Result<Vec<String>, ResolveError> {
    let resolving = tokio::time::timeout(Duration::from_secs(30), resolver.resolve(name));
    let addresses = resolving.await.expect("the resolver hangs")?;
    Ok(addresses.iter().map(ToString::to_string).collect())
}

#[test]
fn answers_are_told_apart() {
    with_resolver_files(
        "resolver::answers_are_told_apart",
        "nameserver 127.0.0.1\\noptions timeout:1 attempts:1\\n",
        "127.0.0.9 listed.test\\n::9 listed.test\\n::8 listed6.test\\n",
        async {
            let asked = name_server().await;
            let resolver = SystemResolver::new();
            for (name, addresses) in [
                ("a.test", &["::1", "127.0.0.1"][..]),
                ("four.test", &["127.0.0.4"]),
                ("half.test", &["127.0.0.4"]),
                ("listed.test", &["127.0.0.9", "::9"]),
            ] {
                let found = resolve(&resolver, name).await.unwrap();
                assert_eq!(found, addresses, "{name}");
            }
            assert!(!asked.lock().unwrap().contains(&"listed.test.".to_owned()));
            for name in ["gone.test", "empty.test", "not..a.name"] {
                assert_eq!(
                    resolve(&resolver, name).await,
                    Err(ResolveError::NotFound),
                    "{name}"
                );
            }
            for (name, says) in [
                ("servfail.test", "server misbehaving: SERVFAIL"),
                ("refused.test", "server misbehaving: REFUSED"),
                ("silent.test", "no answer from the name server: i/o timeout"),
            ] {
                let failed = Err(ResolveError::Failed(says.to_owned()));
                assert_eq!(resolve(&resolver, name).await, failed, "{name}");
            }
            // Nothing is remembered: the same questions again.
            let before = asked.lock().unwrap().len();
            resolve(&resolver, "a.test").await.unwrap();
            resolve(&resolver, "gone.test").await.unwrap_err();
            assert!(asked.lock().unwrap().len() >= before + 4);
            // The whole way.
            assert_unprobed(&run(tcp("servfail.test:80")).await, Cause::Resolver);
            // The other family is neither asked for nor a way out.
            asked.lock().unwrap().clear();
            for (name, family, outcome) in [
                ("half.test", Family::V6, None),
                ("four.test", Family::V6, Some(Critical)),
                ("half.test", Family::V4, Some(Critical)),
                ("listed6.test", Family::V4, Some(Critical)),
            ] {
                let options = ConnectOptions {
                    family,
                    source: None,
                };
                let check = tcp(format!("{name}:1")).with_connect(options).unwrap();
                let report = run(check).await;
                assert_eq!(report.status(), outcome, "{name} {report:#?}");
            }
            let asked = asked.lock().unwrap().clone();
            let of_four = asked.iter().filter(|name| *name == "four.test.");
            assert_eq!(of_four.count(), 1, "{asked:?}");
            assert_status(&run(tcp("gone.test:80")).await, Critical);
            let report = run(tcp("silent.test:80").with_timeout(SHORT)).await;
            assert_unprobed(&report, Cause::Resolver);
        },
    );
}

#[test]
fn a_name_server_that_answers_for_one_family_only_is_enough() {
    with_resolver_files(
        "resolver::a_name_server_that_answers_for_one_family_only_is_enough",
        "nameserver 127.0.0.1\\noptions timeout:30 attempts:1\\n",
        "",
        async {
            let _asked = name_server().await;
            let resolver = SystemResolver::new();
            let resolving =
                tokio::time::timeout(Duration::from_secs(20), resolver.resolve("quiet.test"));
            let addresses: Vec<IpAddr> = vec!["127.0.0.4".parse().unwrap()];
            assert_eq!(resolving.await, Ok(Ok(addresses)));
        },
    );
}

#[test]
fn the_search_list_is_walked() {
    with_resolver_files(
        "resolver::the_search_list_is_walked",
        "nameserver 127.0.0.1\\nsearch one.test two.test\\noptions timeout:1 attempts:1\\n",
        "",
        async {
            let asked = name_server().await;
            let resolver = SystemResolver::new();
            assert_eq!(resolve(&resolver, "a").await.unwrap().len(), 2);
            assert_eq!(asked.lock().unwrap().last().unwrap(), "a.one.test.");
            asked.lock().unwrap().clear();
            resolve(&resolver, "gone").await.unwrap_err();
            let mut order = asked.lock().unwrap().clone();
            order.dedup();
            assert_eq!(order, ["gone.one.test.", "gone.two.test.", "gone."]);
            asked.lock().unwrap().clear();
            resolve(&resolver, "gone.example.").await.unwrap_err();
            let mut order = asked.lock().unwrap().clone();
            order.dedup();
            assert_eq!(order, ["gone.example."]);
            // One candidate that could not be judged leaves the whole open.
            assert!(matches!(
                resolve(&resolver, "servfail").await,
                Err(ResolveError::Failed(_))
            ));
        },
    );
}

#[test]
fn without_a_name_server_nothing_is_said_of_the_target() {
    with_resolver_files(
        "resolver::without_a_name_server_nothing_is_said_of_the_target",
        "",
        "127.0.0.9 listed.test\\n",
        async {
            let report = run(tcp("a.test:80")).await;
            assert_unprobed(&report, Cause::Resolver);
            // The hosts file still counts.
            let report = run(tcp("listed.test:80")).await;
            assert_status(&report, Critical);
            assert_says(
                &report,
                "dial tcp 127.0.0.9:80: connect: connection refused",
            );
        },
    );
}
