use std::collections::BTreeMap;

use evenkeel_consul::types::Locality as ConsulLocality;
use evenkeel_zone_weights::Locality;

/// Metadata keys that say where something is, the first that is there counts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LocalityKeys {
    /// Of the zone.
    pub zone: Vec<String>,
    /// Of the region.
    pub region: Vec<String>,
}

type Meta = BTreeMap<String, String>;

impl LocalityKeys {
    /// The zone of an instance: its own `Locality` or its node's where a server
    /// (1.17 and later) sends one, else its own metadata, else its node's. Region
    /// and zone come from the same of them, so that no pair is made up.
    pub(super) fn locality(
        &self,
        service: (Option<&ConsulLocality>, &Meta),
        node: (Option<&ConsulLocality>, &Meta),
    ) -> Locality {
        let said = |locality: Option<&ConsulLocality>| {
            let locality = locality?;
            (!locality.zone.is_empty() || !locality.region.is_empty())
                .then(|| Locality::new(&locality.region, &locality.zone, ""))
        };
        said(service.0)
            .or_else(|| said(node.0))
            .or_else(|| self.in_metadata(service.1, node.1))
            .or_else(|| self.in_metadata(node.1, node.1))
            .unwrap_or_else(|| Locality::zone_only(""))
    }

    /// A zone in `meta`; its region there too, or in the node's metadata, which
    /// is often where the region alone is.
    fn in_metadata(&self, meta: &Meta, node: &Meta) -> Option<Locality> {
        let zone = first(&self.zone, meta)?;
        let region = first(&self.region, meta).or_else(|| first(&self.region, node));
        Some(Locality::new(region.unwrap_or_default(), zone, ""))
    }
}

fn first<'a>(keys: &[String], meta: &'a Meta) -> Option<&'a str> {
    keys.iter()
        .find_map(|key| meta.get(key))
        .map(|text| text.trim())
        .filter(|text| !text.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn meta(pairs: &[(&str, &str)]) -> Meta {
        pairs
            .iter()
            .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
            .collect()
    }

    fn keys() -> LocalityKeys {
        LocalityKeys {
            zone: vec!["zone".into(), "az-id".into()],
            region: vec!["region".into()],
        }
    }

    fn consul(region: &str, zone: &str) -> ConsulLocality {
        ConsulLocality {
            region: region.into(),
            zone: zone.into(),
        }
    }

    #[test]
    fn what_consul_says_itself_comes_before_metadata_and_the_service_before_its_node() {
        let (none, b, c) = (Meta::new(), meta(&[("zone", "b")]), meta(&[("zone", "c")]));
        let (own, nodes) = (consul("r", "own"), consul("r", "node"));
        let zone = |own: Option<&ConsulLocality>, meta, nodes, node| {
            keys().locality((own, meta), (nodes, node)).to_string()
        };
        assert_eq!(zone(Some(&own), &b, Some(&nodes), &c), "r/own");
        assert_eq!(zone(None, &b, Some(&nodes), &c), "r/node");
        assert_eq!(zone(None, &b, None, &c), "b");
        assert_eq!(zone(None, &none, None, &c), "c");
        assert_eq!(zone(None, &none, None, &none), "");
        // An empty one says nothing.
        assert_eq!(zone(Some(&consul("", "")), &b, None, &c), "b");
    }

    #[test]
    fn the_first_key_that_is_there_counts_and_a_region_alone_is_no_zone() {
        let at = |own: &[(&str, &str)], node: &[(&str, &str)]| {
            let (own, node) = (meta(own), meta(node));
            keys().locality((None, &own), (None, &node)).to_string()
        };
        let both = [("az-id", "use1-az4"), ("zone", "us-east-1a")];
        assert_eq!(at(&both, &[]), "us-east-1a");
        assert_eq!(at(&[("az-id", " use1-az4 ")], &[]), "use1-az4");
        assert_eq!(at(&[("zone", "  ")], &[("zone", "n")]), "n");
        assert_eq!(at(&[("region", "eu")], &[]), "");
        assert_eq!(at(&[("zone", "a")], &[("region", "eu")]), "eu/a");
    }
}
