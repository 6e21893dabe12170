use evenkeel_threshold::Status;
use serde::{Deserialize, Serialize};

/// The version of the format, in each line as `v`. It goes up when a reader of
/// the former version would misread a line; a new optional field or a new event
/// does not count as that.
pub const VERSION: u32 = 1;

/// One line of the event log.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EventLine {
    /// [`VERSION`].
    pub v: u32,
    /// When, RFC 3339 in UTC with milliseconds.
    pub time: String,
    /// What happened.
    pub event: Kind,
    /// The check it happened to; none if it concerns the daemon.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub check: Option<CheckName>,
    /// The status before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<Status>,
    /// The result that led to the event.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed: Option<Status>,
    /// The status after.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<Status>,
    /// Counted results when it happened.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seen: Option<u32>,
    /// Counted results that were needed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub needed: Option<u32>,
    /// How long each phase of the probe took, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phases_ms: Option<PhasesMs>,
    /// The phase in which the probe failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed_phase: Option<String>,
    /// How many times, where the event ends or sums up a run of something.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub count: Option<u64>,
    /// For how long, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub for_ms: Option<u64>,
    /// Words for people: the probe's output or the text of the fault.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
}

impl EventLine {
    /// A line with nothing but time and kind.
    pub fn new(time: String, event: Kind) -> Self {
        Self {
            v: VERSION,
            time,
            event,
            check: None,
            from: None,
            observed: None,
            to: None,
            seen: None,
            needed: None,
            phases_ms: None,
            failed_phase: None,
            count: None,
            for_ms: None,
            text: None,
        }
    }
}

/// What happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Kind {
    /// The daemon started.
    Started,
    /// The daemon ended in order.
    Stopped,
    /// The process stood still for `for_ms`; probes under way are not counted.
    Paused,
    /// The reported status changed.
    Transition,
    /// A check appeared in the catalog.
    CheckAdded,
    /// A check left the catalog.
    CheckRemoved,
    /// A check's definition changed; it is probed anew.
    CheckRestarted,
    /// A check's thresholds changed; its counts were kept.
    ThresholdsChanged,
    /// A check's results change too often, by the rule of its strategy.
    FlappingStarted,
    /// They no longer do.
    FlappingEnded,
    /// A check changed too often; its changes are held back from now on.
    SuppressionStarted,
    /// Its changes are reported again.
    SuppressionEnded,
    /// A saved state could not be used; counting starts anew.
    StateRestarted,
    /// The state file was damaged and set aside.
    StateDamaged,
    /// A check could not be probed, for a reason of our own.
    UnprobedStarted,
    /// It could again, after `count` tries.
    UnprobedEnded,
    /// A probe never ended; the check is probed again.
    ProbeLost,
    /// The catalog showed a status (`from`) that we did not write; ours (`to`)
    /// is written again.
    Drift,
    /// Somebody changed the check between our read and our write; it was read
    /// and decided again.
    WriteLost,
    /// A status could not be written.
    WriteFailed,
    /// A service is removed after being critical for `for_ms`.
    Deregistering,
    /// The service was removed.
    Deregistered,
    /// The service could not be removed; tried again.
    DeregistrationFailed,
    /// A check's kind is not supported.
    Unsupported,
    /// A threshold source is faulty.
    ThresholdFault,
    /// An entry of the catalog is wrong.
    CatalogFault,
    /// The catalog cannot be read or believed; the last one is kept.
    CatalogDegraded,
    /// The catalog can be read and believed again.
    CatalogRecovered,
    /// Consul has no leader or cannot be reached; writes are held.
    WritesHeld,
    /// Writes go on.
    WritesResumed,
    /// Another monitor writes to the same checks.
    OtherMonitor,
    /// Any event that this version does not know; never written.
    #[serde(other)]
    Unknown,
}

/// A check's identity; empty parts are left out.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CheckName {
    /// Admin partition (Consul Enterprise).
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub partition: String,
    /// Namespace (Consul Enterprise).
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub namespace: String,
    /// Node.
    pub node: String,
    /// Service id; empty for a check of the node itself.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub service_id: String,
    /// Check id.
    pub check_id: String,
}

/// Durations of a probe's phases in milliseconds; a phase that the probe did not
/// get to is left out.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct PhasesMs {
    /// Name resolution.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resolve: Option<f64>,
    /// TCP connect.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connect: Option<f64>,
    /// TLS handshake.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tls: Option<f64>,
    /// From the request to the first byte of the answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_byte: Option<f64>,
    /// The rest of the answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transfer: Option<f64>,
    /// The command of a Docker or script check.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<f64>,
}

#[cfg(test)]
mod tests {
    use super::*;

    const DOCS: &str = include_str!("../../../../docs/events.md");

    /// Every event; the compiler asks for a new one here.
    fn all() -> Vec<Kind> {
        let mut all = vec![Kind::Started];
        while let Some(next) = match all[all.len() - 1] {
            Kind::Started => Some(Kind::Stopped),
            Kind::Stopped => Some(Kind::Paused),
            Kind::Paused => Some(Kind::Transition),
            Kind::Transition => Some(Kind::CheckAdded),
            Kind::CheckAdded => Some(Kind::CheckRemoved),
            Kind::CheckRemoved => Some(Kind::CheckRestarted),
            Kind::CheckRestarted => Some(Kind::ThresholdsChanged),
            Kind::ThresholdsChanged => Some(Kind::FlappingStarted),
            Kind::FlappingStarted => Some(Kind::FlappingEnded),
            Kind::FlappingEnded => Some(Kind::SuppressionStarted),
            Kind::SuppressionStarted => Some(Kind::SuppressionEnded),
            Kind::SuppressionEnded => Some(Kind::StateRestarted),
            Kind::StateRestarted => Some(Kind::StateDamaged),
            Kind::StateDamaged => Some(Kind::UnprobedStarted),
            Kind::UnprobedStarted => Some(Kind::UnprobedEnded),
            Kind::UnprobedEnded => Some(Kind::ProbeLost),
            Kind::ProbeLost => Some(Kind::Drift),
            Kind::Drift => Some(Kind::WriteLost),
            Kind::WriteLost => Some(Kind::WriteFailed),
            Kind::WriteFailed => Some(Kind::Deregistering),
            Kind::Deregistering => Some(Kind::Deregistered),
            Kind::Deregistered => Some(Kind::DeregistrationFailed),
            Kind::DeregistrationFailed => Some(Kind::Unsupported),
            Kind::Unsupported => Some(Kind::ThresholdFault),
            Kind::ThresholdFault => Some(Kind::CatalogFault),
            Kind::CatalogFault => Some(Kind::CatalogDegraded),
            Kind::CatalogDegraded => Some(Kind::CatalogRecovered),
            Kind::CatalogRecovered => Some(Kind::WritesHeld),
            Kind::WritesHeld => Some(Kind::WritesResumed),
            Kind::WritesResumed => Some(Kind::OtherMonitor),
            Kind::OtherMonitor | Kind::Unknown => None,
        } {
            all.push(next);
        }
        all
    }

    #[test]
    fn the_pages_sample_is_what_is_written() {
        let sample: Vec<&str> = DOCS.lines().filter(|line| line.starts_with('{')).collect();
        assert!(sample.len() > 3);
        for line in sample {
            let read: EventLine = serde_json::from_str(line).unwrap();
            assert_ne!(read.event, Kind::Unknown, "{line}");
            // Written again it is the same, so the sample has nothing that the
            // daemon would not write.
            assert_eq!(serde_json::to_string(&read).unwrap(), line);
        }
    }

    #[test]
    fn the_page_lists_every_event() {
        for kind in all() {
            let word = serde_json::to_string(&kind).unwrap().replace('"', "`");
            assert!(DOCS.contains(&word), "{word} is not in docs/events.md");
        }
    }

    #[test]
    fn an_event_of_a_later_version_can_still_be_read() {
        let line = r#"{"v":1,"time":"2026-11-30T10:00:00.000Z","event":"teleported","extra":7}"#;
        let read: EventLine = serde_json::from_str(line).unwrap();
        assert_eq!(read.event, Kind::Unknown);
    }

    // P109: an event that shows the state before the result was applied misleads.
    #[test]
    fn a_transition_carries_old_observed_new_and_the_count() {
        let mut line = EventLine::new("2026-11-30T10:00:00.000Z".into(), Kind::Transition);
        line.check = Some(CheckName {
            node: "ext-1".into(),
            service_id: "web".into(),
            check_id: "web-http".into(),
            ..CheckName::default()
        });
        line.from = Some(Status::Passing);
        line.observed = Some(Status::Critical);
        line.to = Some(Status::Critical);
        line.seen = Some(4);
        line.needed = Some(4);
        assert_eq!(
            serde_json::to_string(&line).unwrap(),
            concat!(
                r#"{"v":1,"time":"2026-11-30T10:00:00.000Z","event":"transition","#,
                r#""check":{"node":"ext-1","service_id":"web","check_id":"web-http"},"#,
                r#""from":"passing","observed":"critical","to":"critical","seen":4,"needed":4}"#
            )
        );
    }
}
