use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use crate::config::duration;

/// How a check comes to its results.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Definition {
    /// By probes.
    Probe(Arc<evenkeel_probe::Definition>),
    /// Somebody reports to us. That nobody has for `silence` is critical.
    Heartbeat {
        /// How long reports may fail to come: the check's interval, too.
        silence: Duration,
    },
    /// From other checks.
    Alias(Aliased),
}

/// The checks of which the worst counts: those of a service on a node and of the
/// node itself, in the partition and namespace of the check that asks.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Aliased {
    /// The node.
    pub node: Box<str>,
    /// The service's id; empty for the node alone.
    pub service: Box<str>,
}

impl Definition {
    /// A stable word for the kind, e.g. `http` or `heartbeat`.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Probe(probe) => probe.kind(),
            Self::Heartbeat { .. } => "heartbeat",
            Self::Alias(_) => "alias",
        }
    }

    /// What is looked at, for people.
    pub fn target(&self) -> Cow<'_, str> {
        match self {
            Self::Probe(probe) => probe.target().into(),
            Self::Heartbeat { silence } => {
                format!("reports within {}", duration::format(*silence)).into()
            }
            Self::Alias(Aliased { node, service }) if service.is_empty() => (&**node).into(),
            Self::Alias(Aliased { node, service }) => format!("{node}/{service}").into(),
        }
    }

    /// The longest that it takes to come to a result; zero for one that is at
    /// hand.
    pub fn timeout(&self) -> Duration {
        match self {
            Self::Probe(probe) => probe.timeout(),
            _ => Duration::ZERO,
        }
    }

    /// What is to be probed, if it is.
    pub fn probe(&self) -> Option<&evenkeel_probe::Definition> {
        match self {
            Self::Probe(probe) => Some(probe),
            _ => None,
        }
    }
}

impl From<evenkeel_probe::Definition> for Definition {
    fn from(probe: evenkeel_probe::Definition) -> Self {
        Self::Probe(Arc::new(probe))
    }
}
