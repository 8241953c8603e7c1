//! Topics and partitions by small numbers.

use std::collections::BTreeMap;
use std::sync::Arc;

/// A topic, and a partition if it is known.
pub(crate) type Place = (Arc<str>, Option<u32>);

/// Names a [`Place`] in a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PlaceId(u32);

impl PlaceId {
    /// No place that anybody told us.
    pub(crate) const NOWHERE: Self = Self(u32::MAX);
}

/// All places that verdicts came from: as many as there are partitions that records got to.
#[derive(Debug, Default)]
pub(crate) struct Places {
    by_place: BTreeMap<Place, PlaceId>,
    by_id: Vec<Place>,
}

impl Places {
    pub(crate) fn id(&mut self, topic: Arc<str>, partition: Option<u32>) -> PlaceId {
        let place = (topic, partition);
        if let Some(id) = self.by_place.get(&place) {
            return *id;
        }
        let id = PlaceId(u32::try_from(self.by_id.len()).unwrap_or(u32::MAX));
        self.by_id.push(place.clone());
        self.by_place.insert(place, id);
        id
    }

    #[cfg(test)]
    pub(crate) const fn len(&self) -> usize {
        self.by_id.len()
    }

    pub(crate) fn get(&self, id: PlaceId) -> Place {
        let place = usize::try_from(id.0).ok().and_then(|index| self.by_id.get(index));
        place.cloned().unwrap_or_else(|| (Arc::from(""), None))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_keeps_its_number() {
        let mut places = Places::default();
        let a = places.id("a".into(), Some(1));
        assert_ne!(places.id("a".into(), None), a);
        assert_eq!(places.id("a".into(), Some(1)), a);
        assert_eq!(places.get(a), ("a".into(), Some(1)));
        assert_eq!(&*places.get(PlaceId::NOWHERE).0, "");
    }
}
