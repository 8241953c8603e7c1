//! Broker ids, and sets of them without allocation.

use core::fmt;

/// Id of a broker in the model: 0 to 255.
///
/// ```
/// use candor_sim::broker::NodeId;
/// assert_eq!(NodeId(3).to_string(), "3");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NodeId(pub u8);

impl fmt::Display for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A set of brokers, such as an ISR. Copying it is cheap; every [`NodeId`] fits.
///
/// ```
/// use candor_sim::broker::{NodeId, NodeSet};
/// let isr: NodeSet = [NodeId(1), NodeId(2)].into_iter().collect();
/// assert!(isr.contains(NodeId(2)));
/// assert_eq!(isr.len(), 2);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct NodeSet([u64; 4]);

impl NodeSet {
    /// The set that holds one broker.
    #[must_use]
    pub fn of(node: NodeId) -> Self {
        let mut set = Self::default();
        set.insert(node);
        set
    }

    /// Adds a broker.
    pub fn insert(&mut self, node: NodeId) {
        self.0[usize::from(node.0 >> 6)] |= 1 << (node.0 & 63);
    }

    /// Takes a broker out.
    pub fn remove(&mut self, node: NodeId) {
        self.0[usize::from(node.0 >> 6)] &= !(1 << (node.0 & 63));
    }

    /// Whether the broker is in the set.
    #[must_use]
    pub fn contains(&self, node: NodeId) -> bool {
        self.0[usize::from(node.0 >> 6)] & (1 << (node.0 & 63)) != 0
    }

    /// How many brokers.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.iter().map(|word| word.count_ones() as usize).sum()
    }

    /// Whether the set is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0 == [0; 4]
    }

    /// The brokers, ascending.
    pub fn iter(&self) -> impl Iterator<Item = NodeId> + use<> {
        let mut left = self.0;
        core::iter::from_fn(move || {
            let word = left.iter().position(|word| *word != 0)?;
            let bit = left[word].trailing_zeros();
            left[word] &= left[word] - 1;
            u8::try_from(word * 64 + bit as usize).ok().map(NodeId)
        })
    }
}

impl FromIterator<NodeId> for NodeSet {
    fn from_iter<I: IntoIterator<Item = NodeId>>(nodes: I) -> Self {
        let mut set = Self::default();
        nodes.into_iter().for_each(|node| set.insert(node));
        set
    }
}
