use std::fmt::Write as _;

use super::Verdict;
use crate::zones::draw::shown;

/// A verdict for people.
pub fn draw_verdict(verdict: &Verdict) -> String {
    let mut text = String::new();
    let out = &mut text;
    let named = |name: &Option<String>| name.clone().unwrap_or_else(|| "(none)".to_owned());
    let zone = verdict.zone.as_ref().map(ToString::to_string);
    let _ = writeln!(
        out,
        "Envoy {} in zone {}, callers {}, cluster {}\n",
        verdict.envoy,
        named(&zone),
        named(&verdict.callers),
        verdict.cluster,
    );
    match (&verdict.reason, verdict.mode.as_str()) {
        (Some(reason), _) => {
            let _ = writeln!(out, "Zone-aware routing is OFF: {reason}.");
            let _ = writeln!(out, "To switch it on: {}.", verdict.remedy.as_deref().unwrap_or("-"));
        }
        (None, "direct") => out.push_str("Zone-aware routing is ON: all requests stay in the zone.\n"),
        (None, _) => out.push_str(
            "Zone-aware routing is ON: there is room for a part of the requests in the zone, the rest leaves it.\n",
        ),
    }
    out.push('\n');
    for gate in &verdict.gates {
        let mark = if gate.closed { "✗" } else { "✓" };
        let _ = writeln!(out, "  {mark} {:<30} {}", gate.name, gate.text);
    }
    let _ = writeln!(
        out,
        "\n{} requests in {:.0} s\n",
        verdict.requests, verdict.seconds
    );
    let percent = |share: f64| format!("{:.1} %", share * 100.0);
    let width = verdict
        .zones
        .iter()
        .map(|zone| zone.zone.to_string().chars().count())
        .max()
        .unwrap_or(0)
        .max(4);
    let _ = writeln!(out, "{:<width$}   PREDICTED   OBSERVED   OFF BY", "ZONE");
    for zone in &verdict.zones {
        let _ = writeln!(
            out,
            "{:<width$}   {:>9}   {:>8}   {}",
            shown(&zone.zone.to_string()),
            percent(zone.predicted),
            zone.observed.map_or_else(|| "·".to_owned(), percent),
            zone.sigmas
                .map_or_else(|| "·".to_owned(), |off| format!("{off:.1} σ")),
        );
    }
    out.push('\n');
    match (verdict.as_predicted, &verdict.unsure) {
        (Some(true), _) => out.push_str("The requests go where the rule says.\n"),
        (Some(false), _) => out.push_str("The requests do NOT go where the rule says.\n"),
        (None, why) => {
            let why = why.as_deref().unwrap_or("-");
            let _ = writeln!(
                out,
                "Whether they go where the rule says cannot be told: {why}."
            );
        }
    }
    for (name, growth) in &verdict.counters {
        if growth.total > 0 {
            let _ = writeln!(out, "  {name:<34} {:>8}  (+{})", growth.total, growth.grew);
        }
    }
    text
}
