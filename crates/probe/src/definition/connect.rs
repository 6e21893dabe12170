use std::net::IpAddr;

use super::{DefinitionError, Host};

/// How the target is connected to, for all kinds that connect.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(default, deny_unknown_fields))]
pub struct ConnectOptions {
    /// Over which address families.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Family::is_any"))]
    pub family: Family,
    /// The address of this machine to connect from; the system chooses if there
    /// is none. Addresses of the target that are of the other family are left
    /// out.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub source: Option<IpAddr>,
}

/// Which of a name's addresses are used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Family {
    /// All; the first that can be connected to is enough.
    #[default]
    #[cfg_attr(feature = "serde", serde(rename = "any"))]
    Any,
    /// Those of IPv4; a name that has none is critical.
    #[cfg_attr(feature = "serde", serde(rename = "4"))]
    V4,
    /// Those of IPv6; a name that has none is critical.
    #[cfg_attr(feature = "serde", serde(rename = "6"))]
    V6,
    /// The check is made over each of the two, at the same time and within the
    /// one deadline, and the worse result counts: critical before unprobed
    /// before warning.
    #[cfg_attr(feature = "serde", serde(rename = "both"))]
    Both,
}

impl Family {
    /// That of an address. One of IPv4 in the clothes of IPv6
    /// (`::ffff:10.0.0.1`) is of IPv4, since that is how it is reached.
    pub(crate) fn of(ip: IpAddr) -> Self {
        match ip.to_canonical() {
            IpAddr::V4(_) => Self::V4,
            IpAddr::V6(_) => Self::V6,
        }
    }

    /// Whether an address may be used.
    pub fn takes(self, ip: IpAddr) -> bool {
        match self {
            Self::Any | Self::Both => true,
            Self::V4 | Self::V6 => self == Self::of(ip),
        }
    }

    /// In a sentence, with its article.
    pub(crate) fn an_address(self) -> &'static str {
        match self {
            Self::Any | Self::Both => "an address",
            Self::V4 => "an IPv4 address",
            Self::V6 => "an IPv6 address",
        }
    }

    #[cfg(feature = "serde")]
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
    fn is_any(&self) -> bool {
        *self == Self::Any
    }
}

impl ConnectOptions {
    pub(crate) const NONE: Self = Self {
        family: Family::Any,
        source: None,
    };

    /// The family that the target's address must have, by either option.
    pub(crate) fn wanted(&self) -> Family {
        match (self.family, self.source) {
            (Family::Any, Some(source)) => Family::of(source),
            (family, _) => family,
        }
    }

    /// For a check of `host`, in the form in which it is kept: nothing if it
    /// asks for nothing.
    pub(super) fn settle(mut self, host: &Host) -> Result<Option<Box<Self>>, DefinitionError> {
        self.source = self.source.map(|source| source.to_canonical());
        self.validate(host)?;
        Ok((self != Self::NONE).then(|| Box::new(self)))
    }

    fn validate(&self, host: &Host) -> Result<(), DefinitionError> {
        let fault = |option, reason| Err(DefinitionError::option(option, reason));
        if let Some(source) = self.source {
            let own = Family::of(source);
            if source.is_unspecified() || source.is_multicast() || is_broadcast(source) {
                return fault("source", format!("{source} is no machine's address"));
            }
            if matches!(source, IpAddr::V6(v6) if v6.is_unicast_link_local()) {
                let reason = format!("{source}: an IPv6 zone is not supported");
                return fault("source", reason);
            }
            match self.family {
                Family::Both => {
                    let reason = "goes with one family, and the check is made over both";
                    return fault("source", reason.to_owned());
                }
                family if !family.takes(source) => {
                    let own = own.an_address();
                    let reason = format!("{source} is {own}, which the family excludes");
                    return fault("source", reason);
                }
                _ => {}
            }
        }
        let Host::Ip(ip) = host else {
            return Ok(());
        };
        let its = Family::of(*ip);
        let target = format!("the target {ip} is {}", its.an_address());
        match (self.family, self.source) {
            (Family::Both, _) => fault("family", format!("{target}: \"both\" is for a name")),
            (family, _) if !family.takes(*ip) => fault("family", target),
            (_, Some(source)) if Family::of(source) != its => {
                fault("source", format!("{source} cannot be it, {target}"))
            }
            _ => Ok(()),
        }
    }
}

fn is_broadcast(ip: IpAddr) -> bool {
    matches!(ip, IpAddr::V4(v4) if v4.is_broadcast())
}

/// What a check keeps, as options.
pub(super) fn given(kept: Option<&ConnectOptions>) -> &ConnectOptions {
    kept.unwrap_or(&ConnectOptions::NONE)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settled(family: Family, source: &str, host: &str) -> Result<bool, String> {
        let source = (!source.is_empty()).then(|| source.parse().expect("address"));
        let host = Host::parse(host).expect("host");
        let options = ConnectOptions { family, source };
        match options.settle(&host) {
            Ok(kept) => Ok(kept.is_some()),
            Err(error) => Err(error.to_string()),
        }
    }

    #[test]
    fn what_contradicts_itself_or_the_target_is_refused_with_its_name() {
        use Family::{Any, Both, V4, V6};
        for (family, source, host, option) in [
            (V6, "", "10.0.0.1", "family"),
            (V4, "", "::1", "family"),
            (V6, "", "::ffff:10.0.0.1", "family"),
            (Both, "", "10.0.0.1", "family"),
            (Both, "", "::1", "family"),
            (Both, "10.0.0.1", "a.example", "source"),
            (V6, "10.0.0.1", "a.example", "source"),
            (V4, "2001:db8::1", "a.example", "source"),
            (Any, "10.0.0.1", "::1", "source"),
            (Any, "2001:db8::1", "10.0.0.1", "source"),
            (Any, "0.0.0.0", "a.example", "source"),
            (Any, "::", "a.example", "source"),
            (Any, "224.0.0.1", "a.example", "source"),
            (Any, "255.255.255.255", "a.example", "source"),
            (Any, "fe80::1", "a.example", "source"),
        ] {
            let error = settled(family, source, host).expect_err(host);
            assert!(
                error.starts_with(option),
                "{family:?} {source} {host}: {error}"
            );
        }
        for (family, source, host, kept) in [
            (Any, "", "10.0.0.1", false),
            (V4, "", "10.0.0.1", true),
            (V4, "", "::ffff:10.0.0.1", true),
            (V6, "::1", "::1", true),
            (Both, "", "a.example", true),
            (Any, "10.0.0.2", "a.example", true),
            (V4, "::ffff:10.0.0.2", "10.0.0.1", true),
        ] {
            assert_eq!(
                settled(family, source, host),
                Ok(kept),
                "{family:?} {source} {host}"
            );
        }
    }
}
