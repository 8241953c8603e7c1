//! A queue in which everything stands once.

use std::collections::VecDeque;

use crate::lanes::LaneKey;

/// First in, first out; what is in it already keeps its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Worklist<T> {
    order: VecDeque<T>,
    /// What is in it, sorted. A set would be as empty as the queue most of the time, and allocate
    /// anew each time that it is not.
    members: Vec<T>,
}

impl<T: Copy + Ord> Worklist<T> {
    pub(crate) const fn new() -> Self {
        Self { order: VecDeque::new(), members: Vec::new() }
    }

    /// Queues it, unless it stands there.
    pub(crate) fn push(&mut self, item: T) {
        if let Err(place) = self.members.binary_search(&item) {
            self.members.insert(place, item);
            self.order.push_back(item);
        }
    }

    /// Takes out the first.
    pub(crate) fn pop(&mut self) -> Option<T> {
        let item = self.order.pop_front()?;
        if let Ok(place) = self.members.binary_search(&item) {
            self.members.remove(place);
        }
        Some(item)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.order.is_empty()
    }
}

/// The same for lanes, which are numbered without gaps: a mark each instead of a search tree.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct LaneList {
    order: VecDeque<LaneKey>,
    marks: Vec<bool>,
}

impl LaneList {
    /// True if it was not in the list.
    fn mark(&mut self, key: LaneKey) -> bool {
        let index = key.0 as usize;
        if index >= self.marks.len() {
            self.marks.resize(index + 1, false);
        }
        self.marks.get_mut(index).is_some_and(|mark| !core::mem::replace(mark, true))
    }

    /// Queues it, unless it stands there.
    pub(crate) fn push(&mut self, key: LaneKey) {
        if self.mark(key) {
            self.order.push_back(key);
        }
    }

    /// Puts it in front of all others.
    pub(crate) fn push_front(&mut self, key: LaneKey) {
        if self.mark(key) {
            self.order.push_front(key);
        }
    }

    /// Takes out the first.
    pub(crate) fn pop(&mut self) -> Option<LaneKey> {
        let key = self.order.pop_front()?;
        if let Some(mark) = self.marks.get_mut(key.0 as usize) {
            *mark = false;
        }
        Some(key)
    }

    pub(crate) fn len(&self) -> usize {
        self.order.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.order.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lane_stands_once_and_keeps_its_place() {
        let mut list = LaneList::default();
        list.push(LaneKey(9));
        list.push(LaneKey(2));
        list.push(LaneKey(9));
        list.push_front(LaneKey(2));
        assert_eq!((list.len(), list.pop(), list.pop()), (2, Some(LaneKey(9)), Some(LaneKey(2))));
        assert_eq!(list.pop(), None);
        list.push_front(LaneKey(9));
        assert!(!list.is_empty());
    }

    #[test]
    fn everything_stands_once_and_keeps_its_place() {
        let mut list = Worklist::new();
        list.push(1);
        list.push(2);
        list.push(1);
        assert_eq!((list.pop(), list.pop(), list.pop()), (Some(1), Some(2), None));
        list.push(1);
        assert!(!list.is_empty());
    }
}
