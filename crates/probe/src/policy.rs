use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::IpNet;
use thiserror::Error;

/// Addresses at which cloud providers hand out credentials, start-up scripts
/// and the like to whoever asks from inside the machine.
const METADATA: [IpAddr; 11] = [
    // AWS, Azure, Google Cloud, DigitalOcean, OpenStack, Oracle Cloud: instance metadata.
    IpAddr::V4(Ipv4Addr::new(169, 254, 169, 254)),
    // AWS instance metadata over IPv6.
    IpAddr::V6(Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254)),
    // AWS ECS task credentials.
    IpAddr::V4(Ipv4Addr::new(169, 254, 170, 2)),
    // AWS EKS Pod Identity credentials, both families.
    IpAddr::V4(Ipv4Addr::new(169, 254, 170, 23)),
    IpAddr::V6(Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x23)),
    // Azure WireServer: machine configuration and certificates.
    IpAddr::V4(Ipv4Addr::new(168, 63, 129, 16)),
    // Google Cloud instance metadata over IPv6.
    IpAddr::V6(Ipv6Addr::new(0xfd20, 0xce, 0, 0, 0, 0, 0, 0x254)),
    // Alibaba Cloud instance metadata.
    IpAddr::V4(Ipv4Addr::new(100, 100, 100, 200)),
    // Oracle Cloud Classic instance metadata.
    IpAddr::V4(Ipv4Addr::new(192, 0, 0, 192)),
    // Scaleway instance metadata, both families.
    IpAddr::V4(Ipv4Addr::new(169, 254, 42, 42)),
    IpAddr::V6(Ipv6Addr::new(0xfd00, 0x42, 0, 0, 0, 0, 0, 0x42)),
];

/// Which addresses may be probed. Checked on each address that a name resolves
/// to, and again at each redirect.
///
/// An address that carries an IPv4 address (IPv4-mapped and IPv4-compatible
/// IPv6, the NAT64 prefix `64:ff9b::/96`) is judged in both forms, and the
/// unspecified address as loopback too, since a connection to it goes there.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(default, deny_unknown_fields))]
pub struct TargetPolicy {
    /// If there are any, only these ranges may be probed.
    pub allow: Vec<IpNet>,
    /// These ranges may not be probed, whatever `allow` says.
    pub deny: Vec<IpNet>,
    /// Cloud metadata addresses may be probed. Off by default: a check that
    /// anybody can register would publish credentials as its output (P087).
    pub allow_metadata: bool,
}

/// Why an address may not be probed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Refused {
    /// It is a cloud metadata address.
    #[error("{0} is a cloud metadata address, which the target policy refuses")]
    Metadata(IpAddr),
    /// It lies in a denied range.
    #[error("{0} lies in {1}, which the target policy denies")]
    Denied(IpAddr, IpNet),
    /// There is a list of allowed ranges and it lies in none.
    #[error("{0} lies in no range that the target policy allows")]
    NotAllowed(IpAddr),
}

impl TargetPolicy {
    /// Whether `address` may be probed.
    ///
    /// # Errors
    /// The rule that forbids it.
    pub fn check(&self, address: IpAddr) -> Result<(), Refused> {
        let forms = [Some(address), inner_v4(address), loopback_of(address)];
        let forms = || forms.iter().flatten();
        if !self.allow_metadata && forms().any(|form| METADATA.contains(form)) {
            return Err(Refused::Metadata(address));
        }
        for range in &self.deny {
            if forms().any(|form| range.contains(form)) {
                return Err(Refused::Denied(address, *range));
            }
        }
        if !self.allow.is_empty()
            && !forms().any(|form| self.allow.iter().any(|range| range.contains(form)))
        {
            return Err(Refused::NotAllowed(address));
        }
        Ok(())
    }
}

/// The IPv4 address within an IPv6 one.
fn inner_v4(address: IpAddr) -> Option<IpAddr> {
    let IpAddr::V6(v6) = address else {
        return None;
    };
    let nat64 = v6.segments()[..6] == [0x64, 0xff9b, 0, 0, 0, 0];
    // IPv4-compatible (RFC 4291 section 2.5.5.1); `::` and `::1` are not meant.
    let compatible = v6.segments()[..6] == [0; 6] && v6.segments()[6] != 0;
    let [.., a, b, c, d] = v6.octets();
    if v6.to_ipv4_mapped().is_some() || nat64 || compatible {
        Some(Ipv4Addr::new(a, b, c, d).into())
    } else {
        None
    }
}

fn loopback_of(address: IpAddr) -> Option<IpAddr> {
    let unspecified = |address: IpAddr| match address {
        IpAddr::V4(v4) if v4.is_unspecified() => Some(Ipv4Addr::LOCALHOST.into()),
        IpAddr::V6(v6) if v6.is_unspecified() => Some(Ipv6Addr::LOCALHOST.into()),
        _ => None,
    };
    unspecified(address).or_else(|| unspecified(inner_v4(address)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn policy(allow: &[&str], deny: &[&str]) -> TargetPolicy {
        let nets = |texts: &[&str]| {
            texts
                .iter()
                .map(|text| text.parse().expect("range"))
                .collect()
        };
        TargetPolicy {
            allow: nets(allow),
            deny: nets(deny),
            allow_metadata: false,
        }
    }

    fn ok(policy: &TargetPolicy, address: &str) -> bool {
        policy.check(address.parse().expect("address")).is_ok()
    }

    #[test]
    fn metadata_addresses_are_refused_in_every_form_unless_allowed() {
        let mut policy = policy(&["0.0.0.0/0", "::/0"], &[]);
        for address in [
            "169.254.169.254",
            "169.254.170.2",
            "169.254.170.23",
            "100.100.100.200",
            "192.0.0.192",
            "168.63.129.16",
            "fd00:ec2::254",
            "fd00:ec2::23",
            "fd20:ce::254",
            "::ffff:169.254.169.254",
            "::169.254.169.254",
            "64:ff9b::169.254.169.254",
        ] {
            policy.allow_metadata = false;
            assert!(!ok(&policy, address), "{address}");
            policy.allow_metadata = true;
            assert!(ok(&policy, address), "{address}");
        }
        policy.allow_metadata = false;
        assert!(ok(&policy, "169.254.169.253"));
        assert!(ok(&policy, "::1"));
    }

    #[test]
    fn a_denied_range_wins_over_an_allowed_one() {
        let policy = policy(&["10.0.0.0/8"], &["10.1.0.0/16"]);
        assert!(ok(&policy, "10.2.0.1"));
        assert!(ok(&policy, "::ffff:10.2.0.1"));
        assert!(!ok(&policy, "10.1.0.1"));
        assert!(!ok(&policy, "::ffff:10.1.0.1"));
        assert!(!ok(&policy, "11.0.0.1"));
        assert!(!ok(&policy, "2001:db8::1"));
    }

    #[test]
    fn the_unspecified_address_is_judged_as_loopback() {
        let v4 = policy(&[], &["127.0.0.0/8"]);
        assert!(!ok(&v4, "0.0.0.0"));
        assert!(!ok(&v4, "::ffff:0.0.0.0"));
        assert!(!ok(&policy(&[], &["::1/128"]), "::"));
    }

    #[test]
    fn without_lists_everything_else_is_allowed() {
        let policy = TargetPolicy::default();
        assert!(ok(&policy, "127.0.0.1"));
        assert!(ok(&policy, "2001:db8::1"));
    }
}
