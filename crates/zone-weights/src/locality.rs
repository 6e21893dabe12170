use alloc::sync::Arc;
use core::fmt;

#[derive(Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Names {
    region: Arc<str>,
    zone: Arc<str>,
    sub_zone: Arc<str>,
}

/// Where a host is: region, zone and sub-zone.
///
/// Two localities are the same only if all three texts are. They are ordered by
/// region, then zone, then sub-zone, byte by byte, as Envoy orders them
/// (`LocalityLess`). An empty text is a name like any other: hosts without a
/// locality are in the locality `("", "", "")`.
///
/// Cheap to clone.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Locality(Arc<Names>);

impl Locality {
    /// A locality of three names, each of which may be empty.
    #[must_use]
    pub fn new(region: &str, zone: &str, sub_zone: &str) -> Self {
        Self(Arc::new(Names {
            region: region.into(),
            zone: zone.into(),
            sub_zone: sub_zone.into(),
        }))
    }

    /// A zone without region and sub-zone.
    #[must_use]
    pub fn zone_only(zone: &str) -> Self {
        Self::new("", zone, "")
    }

    /// The region, such as `eu-central-1`.
    #[must_use]
    pub fn region(&self) -> &str {
        &self.0.region
    }

    /// The zone within the region.
    #[must_use]
    pub fn zone(&self) -> &str {
        &self.0.zone
    }

    /// The part of the zone; mostly empty.
    #[must_use]
    pub fn sub_zone(&self) -> &str {
        &self.0.sub_zone
    }
}

/// `zone`, `region/zone` or `region/zone/sub_zone`, empty ends left out. For
/// people: names that contain a slash make it ambiguous.
impl fmt::Display for Locality {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Names {
            region,
            zone,
            sub_zone,
        } = &*self.0;
        if !region.is_empty() || !sub_zone.is_empty() {
            write!(f, "{region}/")?;
        }
        f.write_str(zone)?;
        if !sub_zone.is_empty() {
            write!(f, "/{sub_zone}")?;
        }
        Ok(())
    }
}

impl fmt::Debug for Locality {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Locality({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;

    #[test]
    fn all_three_names_make_a_locality() {
        let here = Locality::new("r", "z", "s");
        assert_eq!(here, Locality::new("r", "z", "s"));
        for other in [("x", "z", "s"), ("r", "x", "s"), ("r", "z", "x")] {
            assert_ne!(here, Locality::new(other.0, other.1, other.2));
        }
    }

    #[test]
    fn order_is_by_region_then_zone_then_sub_zone() {
        let ordered = [
            Locality::new("", "z", "z"),
            Locality::new("a", "b", ""),
            Locality::new("a", "b", "a"),
            Locality::new("a", "c", ""),
            Locality::new("b", "a", ""),
        ];
        assert!(ordered.is_sorted());
    }

    #[test]
    fn it_is_shown_without_empty_ends() {
        assert_eq!(Locality::zone_only("a").to_string(), "a");
        assert_eq!(Locality::new("r", "a", "").to_string(), "r/a");
        assert_eq!(Locality::new("r", "a", "x").to_string(), "r/a/x");
        assert_eq!(Locality::new("", "a", "x").to_string(), "/a/x");
    }
}
