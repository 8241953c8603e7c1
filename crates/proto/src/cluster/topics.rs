//! The topics that are known by name.

use std::collections::BTreeMap;
use std::sync::Arc;

use candor_core::Instant;

use super::topic::Topic;
use crate::router::TopicKey;

/// Topics by key and by name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Topics {
    known: BTreeMap<TopicKey, Topic>,
    by_name: BTreeMap<Arc<str>, TopicKey>,
    /// The next key. A key that was forgotten does not come back before all others were used: who
    /// still has it finds nothing.
    next: u32,
}

impl Topics {
    pub(crate) fn find(&self, name: &str) -> Option<TopicKey> {
        self.by_name.get(name).copied()
    }

    pub(crate) fn get(&self, key: TopicKey) -> Option<&Topic> {
        self.known.get(&key)
    }

    pub(crate) fn get_mut(&mut self, key: TopicKey) -> Option<&mut Topic> {
        self.known.get_mut(&key)
    }

    /// Adds a topic that is not known.
    pub(crate) fn add(&mut self, name: &str, now: Instant) -> TopicKey {
        while self.known.contains_key(&TopicKey(self.next)) {
            self.next = self.next.wrapping_add(1);
        }
        let (key, name) = (TopicKey(self.next), Arc::<str>::from(name));
        self.next = self.next.wrapping_add(1);
        self.known.insert(key, Topic::new(name.clone(), now));
        self.by_name.insert(name, key);
        key
    }

    pub(crate) fn forget(&mut self, key: TopicKey) {
        if let Some(topic) = self.known.remove(&key) {
            self.by_name.remove(&topic.name);
        }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (TopicKey, &Topic)> {
        self.known.iter().map(|(key, topic)| (*key, topic))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_of_forgotten_topics_are_not_given_to_the_next_and_go_round() {
        let mut topics = Topics { next: u32::MAX, ..Topics::default() };
        let [a, b] = ["a", "b"].map(|name| topics.add(name, Instant::EPOCH));
        assert_eq!((a, b), (TopicKey(u32::MAX), TopicKey(0)));
        topics.forget(b);
        topics.forget(b);
        assert_eq!((topics.find("a"), topics.find("b")), (Some(a), None));
        assert_eq!(topics.add("b", Instant::EPOCH), TopicKey(1));
        topics.next = u32::MAX;
        assert_eq!(topics.add("c", Instant::EPOCH), TopicKey(0), "the others are in use");
        assert_eq!(topics.get(TopicKey(1)).map(|topic| &*topic.name), Some("b"));
    }
}
