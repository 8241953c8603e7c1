//! A queue in which everything stands once.

use std::collections::{BTreeSet, VecDeque};

/// First in, first out; what is in it already keeps its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Worklist<T> {
    order: VecDeque<T>,
    members: BTreeSet<T>,
}

impl<T: Copy + Ord> Worklist<T> {
    pub(crate) const fn new() -> Self {
        Self { order: VecDeque::new(), members: BTreeSet::new() }
    }

    /// Queues it, unless it stands there.
    pub(crate) fn push(&mut self, item: T) {
        if self.members.insert(item) {
            self.order.push_back(item);
        }
    }

    /// Puts it in front of all others.
    pub(crate) fn push_front(&mut self, item: T) {
        if self.members.insert(item) {
            self.order.push_front(item);
        }
    }

    /// Takes out the first.
    pub(crate) fn pop(&mut self) -> Option<T> {
        let item = self.order.pop_front()?;
        self.members.remove(&item);
        Some(item)
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
    fn everything_stands_once_and_keeps_its_place() {
        let mut list = Worklist::new();
        list.push(1);
        list.push(2);
        list.push(1);
        list.push_front(2);
        assert_eq!((list.len(), list.pop(), list.pop(), list.pop()), (2, Some(1), Some(2), None));
        list.push(1);
        assert!(!list.is_empty());
    }
}
