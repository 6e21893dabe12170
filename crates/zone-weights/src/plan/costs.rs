use alloc::collections::BTreeMap;

use crate::Locality;

/// What a request from one zone to another costs, in any unit. Within a zone it
/// costs nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Costs {
    pairs: BTreeMap<(Locality, Locality), u32>,
    same_region: u32,
    other_region: u32,
}

impl Costs {
    /// A cost for zones of the same region, and one for those of another.
    #[must_use]
    pub fn new(same_region: u32, other_region: u32) -> Self {
        Self {
            pairs: BTreeMap::new(),
            same_region,
            other_region,
        }
    }

    /// Sets the cost from one zone to another, in this direction.
    pub fn set(&mut self, from: &Locality, to: &Locality, cost: u32) {
        self.pairs.insert((from.clone(), to.clone()), cost);
    }

    /// The cost from one zone to another.
    #[must_use]
    pub fn get(&self, from: &Locality, to: &Locality) -> u32 {
        if from == to {
            return 0;
        }
        let pair = self.pairs.get(&(from.clone(), to.clone()));
        pair.copied().unwrap_or(if from.region() == to.region() {
            self.same_region
        } else {
            self.other_region
        })
    }
}
