//! What a terminal shows of the proxies that are served.

use std::fmt::Write as _;
use std::time::Duration;

use super::{NackReport, SubscriberReport, XdsReport};
use crate::columns::columns;
use crate::config::duration;
use crate::zones::shown;

/// Each proxy with what it was sent and what it accepted, and what was refused, in
/// the proxies' own words.
pub fn draw_proxies(report: &XdsReport) -> String {
    let mut text = String::new();
    let out = &mut text;
    let _ = match report.version {
        Some(version) => writeln!(out, "published: version {version}\n"),
        None => writeln!(
            out,
            "nothing is published yet: the catalog has not been read\n"
        ),
    };
    if report.subscribers.is_empty() {
        out.push_str("no proxy is connected\n");
    } else {
        let head = [
            "PROXY", "SERVICE", "ZONE", "FROM", "SENT", "ACCEPTED", "STATE",
        ];
        let mut rows = vec![head.map(str::to_owned).to_vec()];
        rows.extend(report.subscribers.iter().map(row));
        out.push_str(&columns(&rows, "   "));
    }
    let nacks = report.refusals.iter().rev();
    for (number, nack) in nacks.enumerate() {
        if number == 0 {
            out.push_str("\nRefused, the latest first:\n");
        }
        let NackReport {
            node,
            version,
            clusters,
            text,
            ago_ms,
        } = nack;
        let ago = ago(*ago_ms);
        let _ = writeln!(
            out,
            "  {} {} version {version}, {ago} ago: {}",
            shown(node),
            shown(&clusters.join(", ")),
            shown(text)
        );
    }
    text
}

fn row(proxy: &SubscriberReport) -> Vec<String> {
    let version =
        |version: Option<u64>| version.map_or_else(|| "·".to_owned(), |it| it.to_string());
    let state = match (proxy.refused.as_slice(), proxy.unanswered_ms) {
        ([], Some(ms)) => format!("has not answered for {}", ago(ms)),
        ([], None) if proxy.sent.is_none() => "has been sent nothing".to_owned(),
        ([], None) => "accepted".to_owned(),
        (refused, _) => format!("REFUSES {}", shown(&refused.join(", "))),
    };
    let name = |name: &str| match name {
        "" => "·".to_owned(),
        name => shown(name),
    };
    vec![
        name(&proxy.node),
        name(&proxy.cluster),
        shown(proxy.locality.trim_matches('/')),
        proxy.peer.clone(),
        version(proxy.sent),
        version(proxy.acked),
        state,
    ]
}

fn ago(millis: u64) -> String {
    let seconds = Duration::from_millis(millis - millis % 1_000);
    match millis {
        0..1_000 => format!("{millis}ms"),
        _ => duration::format(seconds),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_refuses_what_is_shown_in_the_proxys_words() {
        let nack = NackReport {
            node: "shop-1".to_owned(),
            version: 12,
            clusters: vec!["web".to_owned()],
            text: "malformed IP address: \u{1b}[31mx".to_owned(),
            ago_ms: 65_432,
        };
        let proxy = |node: &str, refusing: bool| SubscriberReport {
            node: node.to_owned(),
            cluster: "shop".to_owned(),
            locality: "r/a/".to_owned(),
            agent: "envoy 1.40.0".to_owned(),
            peer: "unix".to_owned(),
            protocol: "ads".to_owned(),
            connected_ms: 70_000,
            clusters: None,
            sent: Some(12),
            acked: (!refusing).then_some(12),
            unanswered_ms: None,
            refused: if refusing {
                nack.clusters.clone()
            } else {
                Vec::new()
            },
            last_nack: refusing.then(|| nack.clone()),
            acks: 1,
            nacks: 1,
        };
        let mut report = XdsReport {
            v: 1,
            version: Some(12),
            subscribers: vec![proxy("shop-1", true), proxy("shop-2", false)],
            refusals: vec![nack.clone()],
            counters: std::collections::BTreeMap::new(),
        };
        let text = draw_proxies(&report);
        let expected = "\
published: version 12

PROXY    SERVICE   ZONE   FROM   SENT   ACCEPTED         STATE
shop-1      shop    r/a   unix     12          ·   REFUSES web
shop-2      shop    r/a   unix     12         12      accepted

Refused, the latest first:
  shop-1 web version 12, 1m5s ago: malformed IP address: \u{fffd}[31mx
";
        assert_eq!(text, expected);
        report.version = None;
        report.subscribers.clear();
        let text = draw_proxies(&report);
        assert!(text.contains("nothing is published yet"), "{text}");
        assert!(text.contains("no proxy is connected"), "{text}");
    }
}
