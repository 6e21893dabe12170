use evenkeel_xds::{Counters, Server};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

use super::{counter, gauge, raise_to, set};

/// The counters of the server for proxies, with what each means.
const MEANINGS: [(&str, &str); 11] = [
    ("streams", "Streams that proxies opened"),
    ("requests", "Requests of proxies that were read"),
    ("responses", "Responses that were sent to proxies"),
    (
        "response_bytes",
        "Bytes of responses to proxies, as encoded",
    ),
    ("acks", "Responses that proxies accepted"),
    ("nacks", "Responses that proxies refused"),
    (
        "stale",
        "Requests with the number of an older response, which are not looked at",
    ),
    (
        "other_types",
        "Requests for other things than endpoints, which are not answered",
    ),
    (
        "ended",
        "Streams that were ended for what the proxy sent: too many names, or unreadable",
    ),
    (
        "connections_refused",
        "Connections of proxies that were closed since there were too many",
    ),
    (
        "handshakes_failed",
        "TLS handshakes with proxies that failed or took too long",
    ),
];

/// What is counted of proxies that are served over xDS.
#[derive(Debug)]
pub(super) struct XdsMetrics {
    counters: Vec<(&'static str, Counter)>,
    proxies: Gauge,
    refusing: Gauge,
    unanswered: Gauge,
}

impl XdsMetrics {
    pub(super) fn new(registry: &mut Registry) -> Self {
        let named = MEANINGS.map(|(name, meaning)| {
            let counter = counter(registry, &format!("xds_{name}"), meaning);
            (name, counter)
        });
        Self {
            counters: named.into(),
            proxies: gauge(registry, "xds_proxies", "Streams of proxies that are open"),
            refusing: gauge(
                registry,
                "xds_refusing",
                "Streams whose proxy refuses what it was sent last",
            ),
            unanswered: gauge(
                registry,
                "xds_unanswered",
                "Streams whose proxy has not answered yet",
            ),
        }
    }

    /// Brings them up to what the server has counted.
    pub(super) fn follow(&self, server: &Server) {
        let counted: Counters = server.counters();
        for (name, total) in counted.iter() {
            if let Some((_, counter)) = self.counters.iter().find(|(known, _)| *known == name) {
                raise_to(counter, total);
            }
        }
        let subscribers = server.subscribers();
        let count = |gauge: &Gauge, of: fn(&evenkeel_xds::Subscriber) -> bool| {
            set(
                gauge,
                subscribers.iter().filter(|one| of(one)).count() as u64,
            );
        };
        count(&self.proxies, |_| true);
        count(&self.refusing, evenkeel_xds::Subscriber::is_refusing);
        count(&self.unanswered, |one| one.unanswered.is_some());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_counter_of_the_server_is_there() {
        let names: Vec<_> = Counters::default().iter().map(|(name, _)| name).collect();
        assert_eq!(MEANINGS.map(|(name, _)| name).to_vec(), names);
    }
}
