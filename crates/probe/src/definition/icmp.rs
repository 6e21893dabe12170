use std::time::Duration;

use super::connect::{ConnectOptions, given};
use super::{DEFAULT_TIMEOUT, DefinitionError, Host};

/// The most echoes of a round: what more would tell is told by more rounds.
const MOST_ECHOES: u8 = 20;
/// A payload begins with eight bytes by which an answer is known.
const LEAST_PAYLOAD: u16 = 8;
/// What fits into an Ethernet frame over IPv6 (1500 - 40 - 8).
const MOST_PAYLOAD: u16 = 1452;
/// `ping` of iputils lets nobody but root send faster than every 2 ms.
const LEAST_INTERVAL: Duration = Duration::from_millis(2);

/// A round of ICMP echoes: how many come back, and how soon.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct IcmpCheck {
    /// As given, for texts.
    target: Box<str>,
    host: Host,
    /// Elsewhere: all kinds of definitions share one size.
    options: Box<IcmpOptions>,
    connect: Option<Box<ConnectOptions>>,
}

/// How a round of echoes goes, and what its result means.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(default, deny_unknown_fields))]
pub struct IcmpOptions {
    /// Echoes of a round, 1 to 20; 3 by default, since one may be lost on the
    /// way to a healthy target (P061).
    pub echoes: u8,
    /// From one echo to the next, at least 2 ms; 200 ms by default. They do not
    /// wait for each other's answers.
    #[cfg_attr(feature = "serde", serde(with = "crate::duration"))]
    pub spacing: Duration,
    /// Bytes of an echo after its header, 8 to 1452; 56 by default, as `ping`.
    pub payload: u16,
    /// Per cent of a round's echoes whose loss is a warning, 1 to 100; none by
    /// default.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub warning_loss: Option<u8>,
    /// Per cent of a round's echoes whose loss is critical, 1 to 100; 100 by
    /// default: one answer is enough.
    pub critical_loss: u8,
    /// An average round trip above it is a warning; none by default.
    #[cfg_attr(
        feature = "serde",
        serde(
            with = "super::raw::optional_duration",
            skip_serializing_if = "Option::is_none"
        )
    )]
    pub warning_rtt: Option<Duration>,
    /// An average round trip above it is critical; none by default.
    #[cfg_attr(
        feature = "serde",
        serde(
            with = "super::raw::optional_duration",
            skip_serializing_if = "Option::is_none"
        )
    )]
    pub critical_rtt: Option<Duration>,
    /// How long the round may take, the wait for the last answer included;
    /// zero means [`DEFAULT_TIMEOUT`].
    #[cfg_attr(
        feature = "serde",
        serde(with = "crate::duration", skip_serializing_if = "Duration::is_zero")
    )]
    pub timeout: Duration,
}

impl Default for IcmpOptions {
    fn default() -> Self {
        Self {
            echoes: 3,
            spacing: Duration::from_millis(200),
            payload: 56,
            warning_loss: None,
            critical_loss: 100,
            warning_rtt: None,
            critical_rtt: None,
            timeout: Duration::ZERO,
        }
    }
}

impl IcmpCheck {
    /// A check of `target`, a name or an address.
    ///
    /// # Errors
    /// [`DefinitionError::Address`] for the target, [`DefinitionError::Option`]
    /// for what is out of its range or contradicts another option.
    pub fn new(target: &str, options: IcmpOptions) -> Result<Self, DefinitionError> {
        let target = target.trim();
        let host = Host::parse(target).ok_or_else(|| DefinitionError::Address {
            address: target.to_owned(),
            reason: "no host name or IP address",
        })?;
        let check = Self {
            target: target.into(),
            host,
            options: Box::new(options),
            connect: None,
        };
        check.validate()?;
        Ok(check)
    }

    /// Sets to which address family the echoes go. One socket of a family sends
    /// those of all checks, so there is no source address to choose.
    ///
    /// # Errors
    /// [`DefinitionError::Option`] for a family that is not the target's, and
    /// for a source address.
    pub fn with_connect(mut self, options: ConnectOptions) -> Result<Self, DefinitionError> {
        if options.source.is_some() {
            let reason = "cannot be chosen for ICMP: all checks share one socket";
            return Err(DefinitionError::option("source", reason));
        }
        self.connect = options.settle(&self.host)?;
        Ok(self)
    }

    fn validate(&self) -> Result<(), DefinitionError> {
        let options = &self.options;
        let fault = |option, reason: &str| Err(DefinitionError::option(option, reason));
        if !(1..=MOST_ECHOES).contains(&options.echoes) {
            return fault("echoes", "must be 1 to 20");
        }
        if !(LEAST_PAYLOAD..=MOST_PAYLOAD).contains(&options.payload) {
            return fault("payload", "must be 8 to 1452 bytes");
        }
        if options.spacing < LEAST_INTERVAL {
            return fault("spacing", "must be at least 2ms");
        }
        let sending = options.spacing * u32::from(options.echoes - 1);
        if sending >= self.timeout() {
            return fault("spacing", "the last echo would come after the timeout");
        }
        let share = 1..=100;
        if !share.contains(&options.critical_loss) {
            return fault("critical_loss", "must be 1 to 100 per cent");
        }
        if let Some(warning) = options.warning_loss {
            if !share.contains(&warning) {
                return fault("warning_loss", "must be 1 to 100 per cent");
            }
            if warning >= options.critical_loss {
                return fault("warning_loss", "must be below critical_loss");
            }
        }
        let (warning, critical) = (options.warning_rtt, options.critical_rtt);
        for (option, limit) in [("warning_rtt", warning), ("critical_rtt", critical)] {
            if limit.is_some_and(|limit| limit.is_zero()) {
                return fault(option, "must be more than zero");
            }
        }
        if let (Some(warning), Some(critical)) = (warning, critical)
            && warning >= critical
        {
            return fault("warning_rtt", "must be below critical_rtt");
        }
        Ok(())
    }

    /// The target as given.
    pub fn target(&self) -> &str {
        &self.target
    }

    /// How a round goes.
    pub fn options(&self) -> &IcmpOptions {
        &self.options
    }

    /// How long a round may take.
    pub fn timeout(&self) -> Duration {
        if self.options.timeout.is_zero() {
            DEFAULT_TIMEOUT
        } else {
            self.options.timeout
        }
    }

    /// To which address family the echoes go.
    pub fn connect(&self) -> &ConnectOptions {
        given(self.connect.as_deref())
    }

    pub(crate) fn host(&self) -> &Host {
        &self.host
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_makes_no_sense_is_refused_with_its_name() {
        type Change = fn(&mut IcmpOptions);
        let cases: [(Change, &str); 11] = [
            (|o| o.echoes = 0, "echoes"),
            (|o| o.echoes = 21, "echoes"),
            (|o| o.payload = 7, "payload"),
            (|o| o.payload = 1453, "payload"),
            (|o| o.spacing = Duration::from_millis(1), "spacing"),
            (|o| o.timeout = Duration::from_millis(400), "spacing"),
            (|o| o.critical_loss = 0, "critical_loss"),
            (|o| o.critical_loss = 101, "critical_loss"),
            (|o| o.warning_loss = Some(100), "warning_loss"),
            (|o| o.warning_rtt = Some(Duration::ZERO), "warning_rtt"),
            (
                |o| {
                    o.warning_rtt = Some(Duration::from_secs(2));
                    o.critical_rtt = Some(Duration::from_secs(1));
                },
                "warning_rtt",
            ),
        ];
        for (change, option) in cases {
            let mut options = IcmpOptions::default();
            change(&mut options);
            let error = IcmpCheck::new("127.0.0.1", options).expect_err(option);
            assert!(error.to_string().starts_with(option), "{error}");
        }
        for target in ["", "a b", "127.0.0.1:80", "fe80::1%eth0", "[::1"] {
            assert!(
                IcmpCheck::new(target, IcmpOptions::default()).is_err(),
                "{target}"
            );
        }
        for target in ["127.0.0.1", "::1", "[::1]", "db.example"] {
            assert!(
                IcmpCheck::new(target, IcmpOptions::default()).is_ok(),
                "{target}"
            );
        }
    }
}
