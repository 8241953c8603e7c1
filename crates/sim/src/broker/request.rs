//! A whole Produce request, as the cluster takes and answers it.

use super::{Answer, Batch, NodeId, Wait};

/// A topic as a request names it: by name up to v12, by id from v13 on.
///
/// ```
/// use candor_sim::broker::TopicRef;
/// assert_ne!(TopicRef::Id([0; 16]), TopicRef::Name("orders".into()));
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum TopicRef {
    /// Its name. Unknown names get 3.
    Name(String),
    /// Its id. Unknown ids get 100.
    Id([u8; 16]),
}

/// A Produce request.
///
/// ```
/// use candor_sim::broker::{ACKS_ALL, ProduceRequest};
/// let nothing: ProduceRequest<u8> =
///     ProduceRequest { acks: ACKS_ALL, timeout_ms: 30_000, version: 9, parts: vec![] };
/// assert!(nothing.parts.is_empty());
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ProduceRequest<C> {
    /// `acks`.
    pub acks: i16,
    /// `timeout_ms`: how long replication may take.
    pub timeout_ms: i32,
    /// Version of the request.
    pub version: i16,
    /// The partitions in the order of the request.
    pub parts: Vec<ProducePart<C>>,
}

/// One partition of a request.
///
/// ```
/// use candor_sim::broker::{Batch, ProducePart, TopicRef};
/// let part = ProducePart {
///     topic: TopicRef::Name("orders".into()),
///     partition: 0,
///     batch: Batch::new(7, 0, 0, 1, 0, 'a'),
/// };
/// assert_eq!(part.batch.count, 1);
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ProducePart<C> {
    /// The topic.
    pub topic: TopicRef,
    /// Index of the partition.
    pub partition: i32,
    /// What to append.
    pub batch: Batch<C>,
}

/// The answer for one partition of a request.
///
/// ```
/// use candor_sim::broker::{Answer, PartAnswer, TopicRef};
/// let part = PartAnswer { topic: TopicRef::Id([1; 16]), partition: 0, answer: Answer::error(100) };
/// assert_eq!(part.answer.code, 100);
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct PartAnswer {
    /// The topic as the request named it.
    pub topic: TopicRef,
    /// Index of the partition.
    pub partition: i32,
    /// The answer.
    pub answer: Answer,
}

/// Names a request that waits inside the cluster.
///
/// ```
/// use candor_sim::broker::RequestId;
/// assert!(RequestId(1) < RequestId(2));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RequestId(pub u64);

/// What a broker does about a request when it is handed to it.
///
/// ```
/// use candor_sim::broker::Reply;
/// assert_ne!(Reply::Silent, Reply::Close);
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[must_use]
pub enum Reply {
    /// Answers now. One per partition, **not** in the order of the request.
    Answers(Vec<PartAnswer>),
    /// Answers later: see [`Cluster::completed`](super::Cluster::completed). The connection's next
    /// request is not looked at before that.
    Waiting(RequestId),
    /// Never answers, all went well (`acks` 0).
    Silent,
    /// Closes the connection: an error with `acks` 0, or the broker is down.
    Close,
}

/// One partition of a waiting request.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum Pending {
    Settled(Answer),
    Waits { topic: [u8; 16], wait: Wait },
}

/// A waiting request: answered as a whole.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Waiting {
    pub(super) id: RequestId,
    pub(super) node: NodeId,
    pub(super) deadline: i64,
    pub(super) parts: Vec<(TopicRef, i32, Pending)>,
}
