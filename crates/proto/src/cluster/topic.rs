//! One topic: its id, its partitions, and which leaders are followed (rules S18, S21, U2).

use std::collections::VecDeque;
use std::sync::Arc;

use candor_core::rules::{LeaderWord, Rules};
use candor_core::{Instant, LeaderEpoch, Span};
use candor_wire::{NodeId, TopicId};

/// Where an answer comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Source {
    /// The broker, unless we only know its bootstrap address.
    pub(crate) broker: Option<NodeId>,
    /// When its answer came.
    pub(crate) at: Instant,
    /// Running number of the request: questions count only answers to later requests.
    pub(crate) request: u64,
}

/// What two answers that agree amount to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Together {
    /// They count as two.
    Two,
    /// They count as one.
    One,
    /// They count as one, and the second tells who gave it: it is the one to be remembered.
    Better,
}

impl Source {
    fn and<R: Rules>(self, later: Self, age: Span) -> Together {
        let brokers_differ = match (self.broker, later.broker) {
            (Some(one), Some(other)) => one != other,
            (None, _) | (_, None) => false,
        };
        if R::two_answers_count(brokers_differ, later.at.since(self.at), age) {
            Together::Two
        } else if self.broker.is_none() && later.broker.is_some() {
            Together::Better
        } else {
            Together::One
        }
    }
}

/// A leader and its epoch, as an answer tells it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Told {
    pub(crate) leader: Option<NodeId>,
    pub(crate) epoch: LeaderEpoch,
}

/// An answer that waits for another that agrees.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Once {
    told: Told,
    by: Source,
}

/// A lane doubts its leader, and waits for answers to requests later than `after`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Question {
    after: u64,
    first: Option<Source>,
}

/// One partition's leader: small, since a topic may have very many.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Partition {
    followed: Told,
    last: LeaderWord,
    doubt: Option<Box<Doubt>>,
}

/// What is not settled about a partition's leader.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Doubt {
    older: Option<Once>,
    question: Option<Question>,
}

/// What an answer did to a partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Heard {
    /// Nothing new, and nothing was asked.
    Nothing,
    /// Another leader or epoch is followed now.
    Changed,
    /// The lane's question is answered: it is the leader.
    Confirmed,
    /// A first answer that is not enough alone: ask another broker.
    AskAnother,
    /// Still not enough.
    Waiting,
}

impl Partition {
    const fn new() -> Self {
        let followed = Told { leader: None, epoch: LeaderEpoch::UNKNOWN };
        Self { followed, last: LeaderWord::Metadata, doubt: None }
    }

    /// The leader that is followed, and its epoch.
    pub(crate) const fn followed(&self) -> Told {
        self.followed
    }

    /// The lane doubts its leader; only answers to requests after number `after` count.
    pub(crate) fn ask(&mut self, after: u64) {
        self.doubt().question = Some(Question { after, first: None });
    }

    fn doubt(&mut self) -> &mut Doubt {
        self.doubt.get_or_insert_default()
    }

    /// Nothing older is believed any more.
    fn forget_older(&mut self) {
        self.doubt = self.doubt.take().and_then(|mut doubt| {
            doubt.older = None;
            doubt.question.is_some().then_some(doubt)
        });
    }

    /// A leader hint of a Produce response (KIP-951). L3, S21.
    fn hint<R: Rules>(&mut self, told: Told) -> bool {
        if told.leader.is_none() || !R::follows_hint(self.followed.epoch, told.epoch, self.last) {
            return false;
        }
        self.follow(told, LeaderWord::Hint);
        true
    }

    /// A metadata answer.
    fn hear<R: Rules>(&mut self, told: Told, by: Source, rule: Agreement) -> Heard {
        self.last = LeaderWord::Metadata;
        if told == self.followed {
            self.forget_older();
            return self.answer::<R>(by, rule);
        }
        if R::follows_leader(self.followed.epoch, told.epoch) {
            self.follow(told, LeaderWord::Metadata);
            return Heard::Changed;
        }
        match self.doubt.as_ref().and_then(|doubt| doubt.older) {
            Some(once) if once.told == told => match once.by.and::<R>(by, rule.age) {
                Together::Two => {
                    self.follow(told, LeaderWord::Metadata);
                    return Heard::Changed;
                }
                Together::One => return Heard::Waiting,
                Together::Better => {}
            },
            Some(_) | None => {}
        }
        self.doubt().older = Some(Once { told, by });
        Heard::AskAnother
    }

    fn follow(&mut self, told: Told, by: LeaderWord) {
        *self = Self { followed: told, last: by, doubt: None };
    }

    /// The lane's question, and an answer that names the leader it has.
    fn answer<R: Rules>(&mut self, by: Source, rule: Agreement) -> Heard {
        let doubt = self.doubt.as_deref_mut();
        let Some(question) = doubt.and_then(|doubt| doubt.question.as_mut()) else {
            return Heard::Nothing;
        };
        if by.request <= question.after || self.followed.leader.is_none() {
            return Heard::Nothing;
        }
        let and_first = |first: Source| first.and::<R>(by, rule.patience_since::<R>(first.at));
        let together = match rule.alone {
            true => Together::Two,
            false => question.first.map_or(Together::Better, and_first),
        };
        match together {
            Together::Two => {}
            Together::One => return Heard::Waiting,
            Together::Better => {
                question.first = Some(by);
                return Heard::AskAnother;
            }
        }
        self.doubt = None;
        Heard::Confirmed
    }
}

/// S18: an answer with an id that was replaced so many times ago is taken for news.
const MOST_RETIRED: usize = 32;

/// One topic.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Topic {
    pub(crate) name: Arc<str>,
    id: Option<TopicId>,
    /// The last [`MOST_RETIRED`] ids that it had before, oldest first. An answer that has one is
    /// stale, or the one that replaced it was.
    retired: VecDeque<TopicId>,
    /// An answer with such an id that waits for another that agrees.
    doubted: Option<(TopicId, Source)>,
    partitions: Vec<Partition>,
    /// Indexes of the partitions that have a leader.
    led: Vec<u32>,
    pub(crate) last_used: Instant,
    pub(crate) updated: Option<Instant>,
}

/// What an answer did to a topic's identity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum IdChange {
    /// It is the same topic.
    Same,
    /// It was deleted and made anew (rule S18).
    Recreated,
    /// The answer speaks of a topic that is gone: ask another broker.
    Stale,
    /// It says so again.
    Undecided,
}

impl Topic {
    pub(crate) const fn new(name: Arc<str>, now: Instant) -> Self {
        Self {
            name,
            id: None,
            retired: VecDeque::new(),
            doubted: None,
            partitions: Vec::new(),
            led: Vec::new(),
            last_used: now,
            updated: None,
        }
    }

    pub(crate) const fn id(&self) -> Option<TopicId> {
        self.id
    }

    /// How many partitions it has, as far as we know.
    pub(crate) fn count(&self) -> u32 {
        self.partitions.len() as u32
    }

    /// Partitions that have a leader.
    pub(crate) fn led(&self) -> &[u32] {
        &self.led
    }

    pub(crate) fn partition(&self, index: i32) -> Option<&Partition> {
        self.partitions.get(usize::try_from(index).ok()?)
    }

    pub(crate) fn partition_mut(&mut self, index: i32) -> Option<&mut Partition> {
        self.partitions.get_mut(usize::try_from(index).ok()?)
    }

    /// S18: takes in the id of an answer, before anything else of it. Ids have no order: the first
    /// answer with another id is believed, and one that brings an id back only if a second agrees.
    pub(crate) fn take_id<R: Rules>(
        &mut self,
        told: Option<TopicId>,
        by: Source,
        rule: Agreement,
    ) -> IdChange {
        let Some(told) = told else { return IdChange::Same };
        if !R::is_another_topic(self.id == Some(told)) {
            self.doubted = None;
            return IdChange::Same;
        }
        if self.retired.contains(&told) {
            let first = self.doubted.filter(|(id, _)| *id == told).map(|(_, first)| first);
            match first.map_or(Together::Better, |first| first.and::<R>(by, rule.age)) {
                Together::Two => {}
                Together::One => return IdChange::Undecided,
                Together::Better => {
                    self.doubted = Some((told, by));
                    return IdChange::Stale;
                }
            }
        }
        self.retired.retain(|id| *id != told);
        self.doubted = None;
        let Some(before) = self.id.replace(told) else { return IdChange::Same };
        if self.retired.len() == MOST_RETIRED {
            self.retired.pop_front();
        }
        self.retired.push_back(before);
        self.partitions.clear();
        IdChange::Recreated
    }

    /// Takes in the leaders of an answer; `on` hears of every partition that it told of. Partitions
    /// that are no longer told stay as they are (rule U2). Indexes beyond the number of entries are
    /// not believed: partitions count from 0 without gaps.
    pub(crate) fn take_leaders<R: Rules>(
        &mut self,
        told: impl ExactSizeIterator<Item = (i32, Told)>,
        by: Source,
        rule: Agreement,
        mut on: impl FnMut(i32, Told, Heard),
    ) {
        let known = told.len();
        let more = known.saturating_sub(self.partitions.len());
        self.partitions.reserve_exact(more);
        self.partitions.extend((0..more).map(|_| Partition::new()));
        for (index, told) in told {
            let place = usize::try_from(index).ok().filter(|place| *place < known);
            if let Some(partition) = place.and_then(|place| self.partitions.get_mut(place)) {
                on(index, told, partition.hear::<R>(told, by, rule));
            }
        }
        self.updated = Some(by.at);
        self.count_led();
    }

    /// KIP-951: takes in a leader hint; true if it is followed.
    pub(crate) fn take_hint<R: Rules>(&mut self, index: i32, told: Told) -> bool {
        let partition = self.partition_mut(index);
        let followed = partition.is_some_and(|partition| partition.hint::<R>(told));
        if followed {
            self.count_led();
        }
        followed
    }

    fn count_led(&mut self) {
        let led = self.partitions.iter().enumerate();
        self.led =
            led.filter(|(_, p)| p.followed.leader.is_some()).map(|(i, _)| i as u32).collect();
    }
}

/// When two answers count as two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Agreement {
    /// `metadata.max.age`.
    pub(crate) age: Span,
    /// `retry.backoff.max`.
    pub(crate) patience: Span,
    /// The cluster has one broker: there is nobody else to ask.
    pub(crate) alone: bool,
    /// Every other broker was tried in vain at this time or later.
    pub(crate) forsaken: Option<Instant>,
}

impl Agreement {
    /// How long one broker must insist: shorter if nobody else could be reached since its answer.
    fn patience_since<R: Rules>(self, first: Instant) -> Span {
        let others_failed_since = self.forsaken.is_some_and(|failed| failed >= first);
        R::insistence(others_failed_since, self.patience, self.age)
    }
}

#[cfg(test)]
mod tests {
    use candor_core::rules::Honest;

    use super::*;

    const RULE: Agreement = Agreement {
        age: Span::from_secs(300),
        patience: Span::from_secs(1),
        alone: false,
        forsaken: None,
    };

    fn told(leader: i32, epoch: i32) -> Told {
        Told { leader: NodeId::new(leader), epoch: LeaderEpoch(epoch) }
    }

    fn by(broker: i32, seconds: u64, request: u64) -> Source {
        let at = Instant::from_millis(seconds * 1000);
        Source { broker: NodeId::new(broker), at, request }
    }

    fn topic(partitions: &[Told]) -> Topic {
        let mut topic = Topic::new("t".into(), Instant::EPOCH);
        let told: Vec<_> = (0..).zip(partitions.iter().copied()).collect();
        topic.take_leaders::<Honest>(told.into_iter(), by(1, 0, 1), RULE, |_, _, _| ());
        topic
    }

    fn hear(topic: &mut Topic, told: Told, by: Source) -> Heard {
        let mut heard = Heard::Nothing;
        topic.take_leaders::<Honest>([(0, told)].into_iter(), by, RULE, |_, _, h| heard = h);
        heard
    }

    #[test]
    fn partitions_that_cannot_be_are_not_believed() {
        let mut topic = Topic::new("t".into(), Instant::EPOCH);
        let answer = [(1, told(1, 3)), (i32::MAX, told(1, 3)), (-1, told(1, 3))];
        topic.take_leaders::<Honest>(answer.into_iter(), by(1, 0, 1), RULE, |_, _, _| ());
        assert_eq!((topic.count(), topic.led()), (3, &[1][..]));
    }

    #[test]
    fn a_lower_epoch_is_followed_once_two_brokers_agree() {
        let mut topic = topic(&[told(1, 7)]);
        assert_eq!(hear(&mut topic, told(2, 6), by(1, 1, 2)), Heard::AskAnother);
        assert_eq!(hear(&mut topic, told(2, 6), by(1, 2, 3)), Heard::Waiting);
        assert_eq!(topic.partition(0).unwrap().followed(), told(1, 7));
        assert_eq!(hear(&mut topic, told(2, 6), by(3, 3, 4)), Heard::Changed);
        assert_eq!(topic.partition(0).unwrap().followed(), told(2, 6));
    }

    #[test]
    fn one_broker_that_insists_for_an_age_counts_as_two() {
        let mut topic = topic(&[told(1, 7)]);
        assert_eq!(hear(&mut topic, told(2, 6), by(1, 1, 2)), Heard::AskAnother);
        assert_eq!(hear(&mut topic, told(2, 6), by(1, 301, 3)), Heard::Changed);
    }

    #[test]
    fn a_newer_answer_makes_an_older_one_forgotten() {
        let mut topic = topic(&[told(1, 7)]);
        hear(&mut topic, told(2, 6), by(1, 1, 2));
        assert_eq!(hear(&mut topic, told(1, 7), by(2, 2, 3)), Heard::Nothing);
        assert_eq!(hear(&mut topic, told(2, 6), by(3, 3, 4)), Heard::AskAnother);
    }

    #[test]
    fn a_question_needs_two_answers_that_were_asked_for_after_it() {
        let mut topic = topic(&[told(1, 7)]);
        topic.partition_mut(0).unwrap().ask(5);
        assert_eq!(hear(&mut topic, told(1, 7), by(1, 1, 5)), Heard::Nothing);
        assert_eq!(hear(&mut topic, told(1, 7), by(1, 1, 6)), Heard::AskAnother);
        assert_eq!(hear(&mut topic, told(1, 7), by(1, 1, 7)), Heard::Waiting);
        assert_eq!(hear(&mut topic, told(1, 7), by(2, 1, 8)), Heard::Confirmed);
        assert_eq!(hear(&mut topic, told(1, 7), by(2, 1, 9)), Heard::Nothing);
    }

    #[test]
    fn hints_are_followed_only_forwards() {
        let mut topic = topic(&[told(1, 7)]);
        assert!(!topic.take_hint::<Honest>(0, told(2, 7)));
        assert!(!topic.take_hint::<Honest>(0, told(2, 6)));
        assert!(topic.take_hint::<Honest>(0, told(2, 8)));
        assert!(!topic.take_hint::<Honest>(9, told(2, 8)));
        assert!(!topic.take_hint::<Honest>(0, told(1, 9)), "metadata has the word first");
        assert_eq!(hear(&mut topic, told(2, 8), by(1, 1, 2)), Heard::Nothing);
        assert!(topic.take_hint::<Honest>(0, told(1, 9)));
    }

    #[test]
    fn another_id_is_another_topic_and_the_old_one_comes_back_only_if_two_say_so() {
        let id = |byte| TopicId::new([byte; 16]);
        let mut topic = topic(&[told(1, 7)]);
        let mut take = |told, by| topic.take_id::<Honest>(told, by, RULE);
        assert_eq!(take(id(1), by(1, 0, 1)), IdChange::Same);
        assert_eq!(take(None, by(1, 0, 1)), IdChange::Same);
        assert_eq!(take(id(2), by(1, 1, 2)), IdChange::Recreated);
        // An old answer, from one broker, however often.
        assert_eq!(take(id(1), by(1, 2, 3)), IdChange::Stale);
        assert_eq!(take(id(1), by(1, 3, 4)), IdChange::Undecided);
        // The id in use is heard again: nothing is doubted any more.
        assert_eq!(take(id(2), by(2, 4, 5)), IdChange::Same);
        assert_eq!(take(id(1), by(3, 5, 6)), IdChange::Stale);
        // It was the one that replaced it that was old: two brokers agree.
        assert_eq!(take(id(1), by(2, 6, 7)), IdChange::Recreated);
        assert_eq!(take(id(2), by(1, 7, 8)), IdChange::Stale);
        assert_eq!((topic.id(), topic.led()), (id(1), &[0][..]));
        assert_eq!(hear(&mut topic, told(2, 0), by(1, 8, 9)), Heard::Changed);
    }

    #[test]
    fn partitions_that_are_not_told_any_more_stay() {
        let mut topic = topic(&[told(1, 7), told(2, 3), told(-1, 3)]);
        hear(&mut topic, told(1, 7), by(1, 1, 2));
        assert_eq!((topic.count(), topic.led()), (3, &[0, 1][..]));
    }
}
