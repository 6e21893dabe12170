use std::sync::Arc;

use evenkeel_engine::CheckView;
use evenkeel_threshold::{AnyStrategy, Mark, Outlook, Timestamp};

use crate::catalog::{Definition, Token};
use crate::status::{Change, CheckStatus, Observed, Parameter, Pending, ThresholdStatus};
use crate::thresholds::EffectiveThresholds;

/// One check as `/v1/status` shows it.
pub(super) fn status_of(
    check: CheckView<'_, Definition, Token, AnyStrategy>,
    thresholds: Option<&Arc<EffectiveThresholds>>,
    now: Timestamp,
) -> CheckStatus {
    let definition = check.definition();
    CheckStatus {
        check: check.id().into(),
        kind: definition.kind().to_owned(),
        target: definition.target().into_owned(),
        interval_ms: u64::try_from(check.interval().as_millis()).unwrap_or(u64::MAX),
        reported: check.reported(),
        in_catalog: (check.token() != &Token::File && check.written() != check.reported())
            .then(|| check.written()),
        observed: check.last_observation().map(|(status, at)| Observed {
            status,
            at: at.as_millis(),
        }),
        pending: pending(check.outlook(now)),
        mark: match check.mark() {
            Mark::Flapping => Some("flapping".to_owned()),
            Mark::Suppressed => Some("suppressed".to_owned()),
            _ => None,
        },
        unprobed_run: check.unprobed_run(),
        thresholds: thresholds.map_or_else(
            || ThresholdStatus {
                strategy: check.strategy().name().to_owned(),
                ..ThresholdStatus::default()
            },
            |thresholds| explained(thresholds),
        ),
        last_change: check.last_transition().map(|last| Change {
            at: last.at.as_millis(),
            from: last.from,
        }),
        critical_since: check.critical_since().map(Timestamp::as_millis),
        next_probe: Some(check.next_due().as_millis()),
        raw_changes: check.raw_changes(),
        changes: check.transitions(),
    }
}

fn pending(outlook: Outlook) -> Option<Pending> {
    match outlook {
        Outlook::Counting {
            toward,
            seen,
            needed,
            ..
        } => Some(Pending {
            toward,
            seen: Some(seen),
            needed: Some(needed),
            until: None,
        }),
        Outlook::Waiting { toward, until } => Some(Pending {
            toward,
            seen: None,
            needed: None,
            until: Some(until.as_millis()),
        }),
        _ => None,
    }
}

fn explained(thresholds: &EffectiveThresholds) -> ThresholdStatus {
    ThresholdStatus {
        strategy: thresholds.strategy.name().to_owned(),
        parameters: thresholds
            .parameters
            .iter()
            .map(|parameter| Parameter {
                key: parameter.key.to_owned(),
                value: parameter.value.clone(),
                source: parameter.source.to_string(),
            })
            .collect(),
        ignored: thresholds
            .ignored
            .iter()
            .map(|ignored| Parameter {
                key: ignored.key.to_owned(),
                value: ignored.value.clone(),
                source: ignored.source.to_string(),
            })
            .collect(),
        faults: thresholds.faults.iter().map(ToString::to_string).collect(),
    }
}
