//! Faults on request: each has a trigger, which counts events and never looks at a clock, and an
//! effect. A fault acts once and is gone.

/// One fault.
///
/// ```
/// use candor_sim::serve::{Effect, Fault, Trigger};
/// // The second Produce is appended, and its answer never arrives.
/// let lost = Fault { trigger: Trigger::Produce(2), effect: Effect::DropReply };
/// assert_eq!(lost, Fault::on_produce(2, Effect::DropReply));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// When it acts.
    pub trigger: Trigger,
    /// What it does.
    pub effect: Effect,
}

impl Fault {
    /// A fault on the `nth` Produce request of all, from 1.
    pub fn on_produce(nth: u64, effect: Effect) -> Self {
        Self { trigger: Trigger::Produce(nth), effect }
    }

    /// A fault on the `nth` Produce request with records for one partition, from 1.
    pub fn on_partition(topic: &str, partition: i32, nth: u64, effect: Effect) -> Self {
        let trigger = Trigger::ProduceTo { topic: topic.to_owned(), partition, nth };
        Self { trigger, effect }
    }
}

/// When a fault acts. Requests are counted when a broker takes them up, over all brokers and
/// connections, from 1 and from the start of the network on.
///
/// ```
/// use candor_sim::{codec::METADATA, serve::Trigger};
/// let first_metadata = Trigger::Request { api: METADATA, nth: 1 };
/// assert_ne!(first_metadata, Trigger::Produce(1));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Trigger {
    /// The n-th Produce request.
    Produce(u64),
    /// The n-th Produce request that has records for this partition.
    ProduceTo {
        /// The topic's name, also if the request gives its id.
        topic: String,
        /// The partition.
        partition: i32,
        /// Which one, from 1.
        nth: u64,
    },
    /// The n-th request of an API.
    Request {
        /// The API's key.
        api: i16,
        /// Which one, from 1.
        nth: u64,
    },
}

/// What a fault does to the request that triggers it.
///
/// ```
/// use candor_sim::serve::{Effect, Moment};
/// // Refused as overloaded although it stands in the log.
/// let late = Effect::Answer { code: 7, at: Moment::After };
/// assert_ne!(late, Effect::Answer { code: 7, at: Moment::Before });
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect {
    /// The answer is lost; the connection lives and the next request is served.
    DropReply,
    /// The connection ends after so many bytes of the answer.
    CutReply(usize),
    /// The connection ends after so many bytes of the request; it is not acted upon.
    CutRequest(usize),
    /// The triggering partition, or all of the request's, gets this code; so does an
    /// InitProducerId (code 14 is what a node answers that has just started), before only.
    Answer {
        /// The error code.
        code: i16,
        /// Before: nothing is appended, the offset is -1. After: appended, with its offset.
        at: Moment,
    },
    /// The Produce answer tells the client to stay away for so many milliseconds. The broker
    /// itself goes on reading.
    Throttle(i32),
    /// The answer is ready and held back, and with it everything behind it on this connection.
    HoldReply(Release),
    /// Something befalls the cluster.
    Upset {
        /// What.
        upset: Upset,
        /// Before or after the request was acted upon.
        at: Moment,
    },
}

/// On which side of the append a fault acts.
///
/// ```
/// assert_ne!(candor_sim::serve::Moment::Before, candor_sim::serve::Moment::After);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moment {
    /// Before the append.
    Before,
    /// After the append, before the answer.
    After,
}

/// What lets a held answer go.
///
/// ```
/// use candor_sim::serve::{Effect, Release};
/// // Answered when the client has already sent the batch again, elsewhere.
/// let overtaken = Effect::HoldReply(Release::Produce(2));
/// assert_ne!(overtaken, Effect::HoldReply(Release::Never));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Release {
    /// So many microseconds.
    Elapsed(u64),
    /// The n-th Produce request of all, counted as for triggers, was acted upon.
    Produce(u64),
    /// Only [`Net::release`](super::Net::release).
    ByHand,
    /// Nothing: the broker hangs on this connection for good.
    Never,
}

/// What can befall the cluster.
///
/// ```
/// use candor_sim::serve::Upset;
/// let crash = Upset::Restart { node: 1, crash: true };
/// assert_ne!(crash, Upset::Restart { node: 1, crash: false });
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Upset {
    /// Another replica leads.
    MoveLeader {
        /// The topic's name.
        topic: String,
        /// The partition.
        partition: i32,
        /// The new leader, one of the replicas in sync.
        to: u8,
    },
    /// The partition forgets all producers, as if they had expired.
    ForgetProducers {
        /// The topic's name.
        topic: String,
        /// The partition.
        partition: i32,
    },
    /// A broker goes down and comes back at once: connections end, its memory is reloaded.
    Restart {
        /// The broker.
        node: u8,
        /// Without a clean stop.
        crash: bool,
    },
    /// A broker goes down until [`Net::start_node`](super::Net::start_node).
    Stop {
        /// The broker.
        node: u8,
        /// Without a clean stop.
        crash: bool,
    },
    /// The topic is deleted and made anew under its name.
    RecreateTopic {
        /// The topic's name.
        topic: String,
    },
}

/// What the faults of one request add up to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Plan {
    pub(super) cut_request: bool,
    pub(super) before: Vec<Upset>,
    pub(super) answers: Vec<Script>,
    pub(super) after: Vec<Upset>,
    pub(super) reply: Reply,
    pub(super) throttle_ms: i32,
}

/// An answer that a fault puts in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Script {
    /// The partition, or all of the request's.
    pub(super) only: Option<(String, i32)>,
    pub(super) code: i16,
    pub(super) at: Moment,
}

impl Script {
    pub(super) fn hits(&self, topic: Option<&str>, partition: i32) -> bool {
        self.only.as_ref().is_none_or(|(name, index)| Some(&**name) == topic && *index == partition)
    }
}

/// What becomes of the answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Reply {
    #[default]
    Send,
    Drop,
    Cut(usize),
    Hold(Release),
}

/// The faults that have not acted yet, and what their triggers count.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Faults {
    waiting: Vec<Fault>,
    requests: std::collections::BTreeMap<i16, u64>,
    partitions: std::collections::BTreeMap<(String, i32), u64>,
}

impl Faults {
    pub(super) fn add(&mut self, fault: Fault) {
        self.waiting.push(fault);
    }

    pub(super) fn waiting(&self) -> &[Fault] {
        &self.waiting
    }

    /// How many requests of an API were taken up.
    pub(super) fn taken_up(&self, api: i16) -> u64 {
        self.requests.get(&api).copied().unwrap_or(0)
    }

    /// At how many bytes the next request of this API is to be cut, as far as that is known
    /// without reading it.
    pub(super) fn cut_ahead(&self, api: i16) -> Option<usize> {
        let next = self.taken_up(api) + 1;
        self.waiting.iter().find_map(|fault| match (&fault.trigger, &fault.effect) {
            (Trigger::Produce(nth), Effect::CutRequest(k)) => {
                (api == crate::codec::PRODUCE && *nth == next).then_some(*k)
            }
            (Trigger::Request { api: of, nth }, Effect::CutRequest(k)) => {
                (*of == api && *nth == next).then_some(*k)
            }
            _ => None,
        })
    }

    /// Counts a request and takes out the faults that it triggers.
    pub(super) fn take_up(&mut self, api: i16, partitions: &[(String, i32)]) -> Plan {
        let nth = self.requests.entry(api).or_default();
        *nth += 1;
        let nth = *nth;
        for key in partitions {
            *self.partitions.entry(key.clone()).or_default() += 1;
        }
        let mut plan = Plan::default();
        let counts = &self.partitions;
        self.waiting.retain(|fault| {
            let only = match &fault.trigger {
                Trigger::Produce(n) if api == crate::codec::PRODUCE && *n == nth => None,
                Trigger::Request { api: of, nth: n } if *of == api && *n == nth => None,
                Trigger::ProduceTo { topic, partition, nth } => {
                    let key = (topic.clone(), *partition);
                    if !partitions.contains(&key) || counts.get(&key) != Some(nth) {
                        return true;
                    }
                    Some(key)
                }
                Trigger::Produce(_) | Trigger::Request { .. } => return true,
            };
            plan.add(&fault.effect, only);
            false
        });
        plan
    }
}

impl Plan {
    fn add(&mut self, effect: &Effect, only: Option<(String, i32)>) {
        match effect {
            Effect::DropReply => self.reply = Reply::Drop,
            Effect::CutReply(k) => self.reply = Reply::Cut(*k),
            Effect::CutRequest(_) => self.cut_request = true,
            Effect::Throttle(millis) => self.throttle_ms = *millis,
            Effect::HoldReply(release) => self.reply = Reply::Hold(*release),
            Effect::Answer { code, at } => self.answers.push(Script { only, code: *code, at: *at }),
            Effect::Upset { upset, at: Moment::Before } => self.before.push(upset.clone()),
            Effect::Upset { upset, at: Moment::After } => self.after.push(upset.clone()),
        }
    }

    /// The code that a partition gets at this moment, if a fault says so.
    pub(super) fn script(&self, topic: Option<&str>, partition: i32, at: Moment) -> Option<i16> {
        let hit = |script: &&Script| script.at == at && script.hits(topic, partition);
        self.answers.iter().find(hit).map(|script| script.code)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codec::{METADATA, PRODUCE};

    #[test]
    fn triggers_count_their_own_events_and_act_once() {
        let mut faults = Faults::default();
        faults.add(Fault::on_produce(2, Effect::DropReply));
        faults.add(Fault::on_partition("t", 1, 1, Effect::Answer { code: 6, at: Moment::After }));
        let t1 = [("t".to_owned(), 1)];
        assert_eq!(faults.take_up(METADATA, &[]), Plan::default());
        assert_eq!(faults.take_up(PRODUCE, &[("t".to_owned(), 0)]), Plan::default());
        let second = faults.take_up(PRODUCE, &t1);
        assert_eq!(second.reply, Reply::Drop);
        assert_eq!(second.script(Some("t"), 1, Moment::After), Some(6));
        assert_eq!(second.script(Some("t"), 0, Moment::After), None);
        assert_eq!(second.script(Some("t"), 1, Moment::Before), None);
        assert!(faults.waiting().is_empty());
        assert_eq!(faults.take_up(PRODUCE, &t1), Plan::default());
    }

    #[test]
    fn a_cut_is_known_ahead_only_for_the_next_request() {
        let mut faults = Faults::default();
        faults.add(Fault::on_produce(2, Effect::CutRequest(10)));
        assert_eq!(faults.cut_ahead(PRODUCE), None);
        let _first = faults.take_up(PRODUCE, &[]);
        assert_eq!((faults.cut_ahead(PRODUCE), faults.cut_ahead(METADATA)), (Some(10), None));
        assert!(faults.take_up(PRODUCE, &[]).cut_request);
    }
}
