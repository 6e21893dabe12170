use std::cmp::Ordering;
use std::slice;
use std::sync::Arc;

use super::{Endpoint, EndpointView};

/// A change copies a piece of the list, and all the pieces' addresses: about the
/// same for a hundred thousand endpoints.
const PIECE: usize = 512;

/// The endpoints of a service, by priority, zone and id.
///
/// Cheap to clone, and to change while clones are held: what a change does not
/// touch is shared with them.
#[derive(Debug, Clone, Default)]
pub struct EndpointList {
    /// None of them empty.
    pieces: Vec<Arc<Vec<EndpointView>>>,
    len: usize,
}

impl EndpointList {
    /// How many there are.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// All of them, in order.
    pub fn iter(&self) -> Iter<'_> {
        Iter {
            pieces: self.pieces.iter(),
            piece: [].iter(),
        }
    }

    /// Adds one, in place of that with the same priority, zone and id.
    pub(super) fn insert(&mut self, view: EndpointView) {
        let Some((number, place)) = self.find(&view.endpoint) else {
            self.pieces.push(Arc::new(vec![view]));
            self.len = 1;
            return;
        };
        let piece = Arc::make_mut(&mut self.pieces[number]);
        match place {
            Ok(place) => piece[place] = view,
            Err(place) => {
                piece.insert(place, view);
                self.len += 1;
                if piece.len() > PIECE {
                    let rest = piece.split_off(PIECE / 2);
                    self.pieces.insert(number + 1, Arc::new(rest));
                }
            }
        }
    }

    /// Removes the one with the same priority, zone and id.
    pub(super) fn remove(&mut self, endpoint: &Endpoint) {
        if let Some((number, Ok(place))) = self.find(endpoint) {
            let piece = Arc::make_mut(&mut self.pieces[number]);
            piece.remove(place);
            if piece.is_empty() {
                self.pieces.remove(number);
            }
            self.len -= 1;
        }
    }

    /// The one with the same priority, zone and id, to be changed.
    pub(super) fn get_mut(&mut self, endpoint: &Endpoint) -> Option<&mut EndpointView> {
        let (number, place) = self.find(endpoint)?;
        let place = place.ok()?;
        Arc::make_mut(&mut self.pieces[number]).get_mut(place)
    }

    /// The piece that it belongs into, and where it is there or should be; none in an
    /// empty list.
    fn find(&self, endpoint: &Endpoint) -> Option<(usize, Result<usize, usize>)> {
        let begins = |piece: &Arc<Vec<EndpointView>>| {
            piece
                .first()
                .is_some_and(|first| order(&first.endpoint, endpoint) != Ordering::Greater)
        };
        let number = self.pieces.partition_point(begins).saturating_sub(1);
        let piece = self.pieces.get(number)?;
        let place = piece.binary_search_by(|view| order(&view.endpoint, endpoint));
        Some((number, place))
    }
}

fn order(one: &Endpoint, other: &Endpoint) -> Ordering {
    let by = |endpoint: &Endpoint| endpoint.priority;
    by(one)
        .cmp(&by(other))
        .then_with(|| one.locality.cmp(&other.locality))
        .then_with(|| one.id.cmp(&other.id))
}

/// However it came about.
impl PartialEq for EndpointList {
    fn eq(&self, other: &Self) -> bool {
        self.len == other.len && self.iter().eq(other)
    }
}

impl Eq for EndpointList {}

impl<'a> IntoIterator for &'a EndpointList {
    type Item = &'a EndpointView;
    type IntoIter = Iter<'a>;

    fn into_iter(self) -> Iter<'a> {
        self.iter()
    }
}

/// Goes through an [`EndpointList`].
#[derive(Debug, Clone)]
pub struct Iter<'a> {
    pieces: slice::Iter<'a, Arc<Vec<EndpointView>>>,
    piece: slice::Iter<'a, EndpointView>,
}

impl<'a> Iterator for Iter<'a> {
    type Item = &'a EndpointView;

    fn next(&mut self) -> Option<&'a EndpointView> {
        loop {
            if let Some(view) = self.piece.next() {
                return Some(view);
            }
            self.piece = self.pieces.next()?.iter();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use evenkeel_zone_weights::{Health, Locality};
    use proptest::prelude::*;

    use super::*;

    fn view(priority: u32, zone: u8, id: u16, weight: u32) -> EndpointView {
        EndpointView {
            endpoint: Arc::new(Endpoint {
                id: id.to_string().into(),
                address: "10.0.0.1".into(),
                port: 80,
                locality: Locality::zone_only(&zone.to_string()),
                priority,
            }),
            health: Health::Healthy,
            weight,
        }
    }

    proptest! {
        // A sorted map does the same, at the price of a copy for each clone.
        #[test]
        fn it_is_a_sorted_map_whose_clones_stay_as_they_are(
            steps in prop::collection::vec((0..2_u32, 0..3_u8, 0..400_u16, 0..4_u32), 0..4_000),
        ) {
            let (mut list, mut model) = (EndpointList::default(), BTreeMap::new());
            let mut kept = None;
            for (number, (priority, zone, id, what)) in steps.into_iter().enumerate() {
                let view = view(priority, zone, id, 1 + what);
                let key = (priority, zone.to_string(), id.to_string());
                match what {
                    0 => {
                        list.remove(&view.endpoint);
                        model.remove(&key);
                    }
                    1 => {
                        let found = list.get_mut(&view.endpoint).map(|view| &mut view.weight);
                        let expected = model.get_mut(&key).map(|view: &mut EndpointView| &mut view.weight);
                        prop_assert_eq!(&found, &expected);
                        if let (Some(found), Some(expected)) = (found, expected) {
                            *found += 1;
                            *expected += 1;
                        }
                    }
                    _ => {
                        list.insert(view.clone());
                        model.insert(key, view);
                    }
                }
                if number == 1_000 {
                    kept = Some((list.clone(), model.clone()));
                }
            }
            for (list, model) in kept.iter().chain([&(list, model)]) {
                prop_assert!(list.iter().eq(model.values()));
                prop_assert_eq!(list.len(), model.len());
                prop_assert_eq!(list.is_empty(), model.is_empty());
            }
        }
    }

    #[test]
    fn a_change_copies_one_piece_and_shares_the_rest() {
        let mut list = EndpointList::default();
        for id in 0..10_000 {
            list.insert(view(0, 0, id, 1));
        }
        let before = list.clone();
        list.get_mut(&view(0, 0, 17, 1).endpoint).unwrap().weight = 2;
        let shared = list.pieces.iter().zip(&before.pieces);
        let copied = shared.filter(|(now, then)| !Arc::ptr_eq(now, then)).count();
        assert_eq!(copied, 1);
        assert!(list.pieces.iter().all(|piece| piece.len() <= PIECE));
        assert!(
            list.pieces.len() < 4 * 10_000 / PIECE,
            "{}",
            list.pieces.len()
        );
        assert_ne!(list, before);
    }
}
