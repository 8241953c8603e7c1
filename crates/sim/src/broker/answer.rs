//! What a broker says about one partition of a Produce request, now or later.

use super::NodeId;

/// Error codes the model gives, with Kafka's names.
pub mod code {
    #![allow(missing_docs)]
    pub const NONE: i16 = 0;
    pub const CORRUPT_MESSAGE: i16 = 2;
    pub const UNKNOWN_TOPIC_OR_PARTITION: i16 = 3;
    pub const NOT_LEADER_OR_FOLLOWER: i16 = 6;
    pub const REQUEST_TIMED_OUT: i16 = 7;
    pub const MESSAGE_TOO_LARGE: i16 = 10;
    pub const COORDINATOR_LOAD_IN_PROGRESS: i16 = 14;
    pub const RECORD_LIST_TOO_LARGE: i16 = 18;
    pub const NOT_ENOUGH_REPLICAS: i16 = 19;
    pub const NOT_ENOUGH_REPLICAS_AFTER_APPEND: i16 = 20;
    pub const INVALID_REQUIRED_ACKS: i16 = 21;
    pub const INVALID_TIMESTAMP: i16 = 32;
    pub const INVALID_REQUEST: i16 = 42;
    pub const OUT_OF_ORDER_SEQUENCE_NUMBER: i16 = 45;
    pub const INVALID_PRODUCER_EPOCH: i16 = 47;
    pub const TRANSACTIONAL_ID_AUTHORIZATION_FAILED: i16 = 53;
    pub const KAFKA_STORAGE_ERROR: i16 = 56;
    pub const UNKNOWN_PRODUCER_ID: i16 = 59;
    pub const UNSUPPORTED_COMPRESSION_TYPE: i16 = 76;
    pub const INVALID_RECORD: i16 = 87;
    pub const UNKNOWN_TOPIC_ID: i16 = 100;
}

/// The answer for one partition, field by field as Produce carries it.
///
/// ```
/// use candor_sim::broker::{Answer, code};
/// let gap = Answer::error(code::OUT_OF_ORDER_SEQUENCE_NUMBER);
/// assert_eq!((gap.code, gap.base_offset), (45, -1));
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Answer {
    /// Error code; 0 is none.
    pub code: i16,
    /// Offset of the first record at the leader that appended it; -1 if this attempt appended nothing.
    pub base_offset: i64,
    /// The broker's time of the append; -1 on CreateTime topics, but for a repeat the timestamp of
    /// the batch it repeats.
    pub log_append_time: i64,
    /// First offset still in the log; -1 where brokers do not say.
    pub log_start_offset: i64,
    /// Indexes of the records that were refused (v8+).
    pub record_errors: Vec<i32>,
    /// Text beside an error (v8+); brokers give none with 45.
    pub message: Option<&'static str>,
    /// Who leads instead, beside 6 (v10+, KIP-951).
    pub current_leader: Option<LeaderHint>,
}

/// A leader and its epoch, as brokers tell beside error 6.
///
/// ```
/// use candor_sim::broker::{LeaderHint, NodeId};
/// let hint = LeaderHint { node: NodeId(2), epoch: 5 };
/// assert_eq!(hint.epoch, 5);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct LeaderHint {
    /// The leader.
    pub node: NodeId,
    /// Its leader epoch.
    pub epoch: i32,
}

impl Answer {
    /// An error that appended nothing and tells nothing more.
    #[must_use]
    pub fn error(code: i16) -> Self {
        Self {
            code,
            base_offset: -1,
            log_append_time: -1,
            log_start_offset: -1,
            record_errors: Vec::new(),
            message: None,
            current_leader: None,
        }
    }

    /// The same with the log's first offset.
    pub(super) fn error_at(code: i16, log_start_offset: i64) -> Self {
        Self { log_start_offset, ..Self::error(code) }
    }
}

/// What became of one partition's batch when the leader judged it.
///
/// ```
/// use candor_sim::broker::{ACKS_ALL, Batch, Call, NodeId, Outcome, Partition, Profile};
/// let mut partition = Partition::new(Profile::V4_4, &[NodeId(1), NodeId(2)]);
/// let call = Call { node: NodeId(1), now: 0, acks: ACKS_ALL, version: 12 };
/// // The second replica has not fetched it yet.
/// let Outcome::Wait(wait) = partition.produce(call, &Batch::new(7, 0, 0, 1, 0, 'a')) else { panic!() };
/// assert_eq!(wait.timed_out().code, 7);
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[must_use]
pub enum Outcome {
    /// Decided.
    Answer(Answer),
    /// In the leader's log (now or since an earlier attempt) and waiting for the high watermark.
    Wait(Wait),
}

/// A batch in a leader's log whose answer waits for replication.
///
/// Ask [`Partition::progress`](super::Partition::progress) after every change; when the request's
/// time is over its answer is [`Wait::timed_out`], when the topic is gone [`Wait::vanished`].
///
/// ```
/// use candor_sim::broker::{ACKS_ALL, Batch, Call, NodeId, Outcome, Partition, Profile, Progress};
/// let (one, two) = (NodeId(1), NodeId(2));
/// let mut partition = Partition::new(Profile::V4_4, &[one, two]);
/// let call = Call { node: one, now: 0, acks: ACKS_ALL, version: 12 };
/// let Outcome::Wait(wait) = partition.produce(call, &Batch::new(7, 0, 0, 1, 0, 'a')) else { panic!() };
/// assert_eq!(partition.progress(&wait), Progress::Waiting);
/// partition.fetch(two, 0)?;
/// assert!(matches!(partition.progress(&wait), Progress::Answer(answer) if answer.code == 0));
/// # Ok::<(), candor_sim::broker::Refused>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Wait {
    /// The broker that owes the answer.
    pub(super) node: NodeId,
    /// Leader epoch at which that broker last became leader.
    pub(super) reign: i32,
    /// The high watermark must reach this offset.
    pub(super) needs: i64,
    /// The answer if all goes well.
    pub(super) success: Answer,
}

impl Wait {
    /// The broker that owes the answer.
    #[must_use]
    pub fn node(&self) -> NodeId {
        self.node
    }

    /// Offset of the first record in that leader's log.
    #[must_use]
    pub fn base_offset(&self) -> i64 {
        self.success.base_offset
    }

    /// The answer when the request's own timeout is over: 7, with the offset.
    #[must_use]
    pub fn timed_out(&self) -> Answer {
        self.failed(code::REQUEST_TIMED_OUT)
    }

    /// The answer when the topic is gone: 3, with the offset.
    #[must_use]
    pub fn vanished(&self) -> Answer {
        self.failed(code::UNKNOWN_TOPIC_OR_PARTITION)
    }

    /// Only the code is replaced: the offset stays what it was at that leader (H1).
    pub(super) fn failed(&self, code: i16) -> Answer {
        Answer { code, ..self.success.clone() }
    }
}

/// How a [`Wait`] stands.
///
/// ```
/// use candor_sim::broker::{Answer, Progress};
/// assert_ne!(Progress::Waiting, Progress::Answer(Answer::error(6)));
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[must_use]
pub enum Progress {
    /// Nothing to say yet.
    Waiting,
    /// Say this.
    Answer(Answer),
    /// The broker went down with the request: nobody will answer.
    Gone,
}
