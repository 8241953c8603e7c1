//! A finished history: everything that was said, sent and stored, as raw numbers.

use super::anomaly::Class;
use super::conditions::Said;
use super::observer::{Noticed, Settings};
use super::wire::{Attempt, Reply};
use crate::codec::{Batch, Record};

/// A partition as one producer writes it. Everything is judged per lane.
///
/// ```
/// use candor_sim::judge::Lane;
/// assert_eq!(Lane { producer: 0, topic: 1, partition: 2 }.to_string(), "producer 0 topic 1-2");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Lane {
    /// Which producer of the run.
    pub producer: u32,
    /// Which topic.
    pub topic: u32,
    /// Which partition.
    pub partition: i32,
}

impl std::fmt::Display for Lane {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "producer {} topic {}-{}", self.producer, self.topic, self.partition)
    }
}

/// One line of a ledger.
///
/// ```
/// use candor_sim::judge::{Entry, Fact};
/// let entry = Entry { at: 5, fact: Fact::Accepted { record: 1 } };
/// assert_eq!(entry.at, 5);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// When, in microseconds; entries stand in this order.
    pub at: u64,
    /// What.
    pub fact: Fact,
}

/// What ledgers hold: the caller's, the wire's, the nemesis's. Record numbers are unique in a run
/// and grow within a lane in the order of sending.
///
/// ```
/// use candor_sim::judge::{Fact, Said};
/// let fact = Fact::Verdict { record: 3, said: Said::Unknown };
/// assert_ne!(fact, Fact::Resolution { record: 3, said: Said::Unknown });
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fact {
    /// `send` is about to be called; where it goes and when its verdict is due.
    Intent {
        /// Its number.
        record: u64,
        /// Where it belongs.
        lane: Lane,
        /// When its verdict is due.
        due: u64,
    },
    /// The producer took it.
    Accepted {
        /// Which.
        record: u64,
    },
    /// The producer handed it back.
    Refused {
        /// Which.
        record: u64,
    },
    /// The caller no longer waits for it.
    Cancelled {
        /// Which.
        record: u64,
    },
    /// The caller gives up what is in doubt in a lane.
    Abandoned {
        /// Which lane.
        lane: Lane,
    },
    /// The producer is closing and must have told everything by `due`.
    Closing {
        /// Which producer.
        producer: u32,
        /// By when.
        due: u64,
    },
    /// The producer was killed: it owes nothing more.
    Killed {
        /// Which producer.
        producer: u32,
    },
    /// The host slept, or did not poll, between these times.
    Stall {
        /// From.
        from: u64,
        /// To.
        to: u64,
    },
    /// A verdict.
    Verdict {
        /// On which record.
        record: u64,
        /// What.
        said: Said,
    },
    /// A resolution; `Never` is [`Said::Unknown`].
    Resolution {
        /// Of which record.
        record: u64,
        /// What.
        said: Said,
    },
    /// A notice.
    Notice {
        /// About which lane.
        lane: Lane,
        /// What.
        notice: Noticed,
    },
    /// Something happened to a lane that may end records before their time and that no wire shows: its
    /// topic was made anew, or memory was needed for others. From then on haste is not judged, as
    /// after a notice: what follows from it comes when it may, and no ledger says when that is over.
    Disturbed {
        /// Which lane.
        lane: Lane,
    },
    /// What ends this record before its time stands on no wire: its verdict is not hasty.
    Hidden {
        /// Which.
        record: u64,
    },
    /// A batch was offered.
    Offered {
        /// By which lane.
        lane: Lane,
        /// As what.
        attempt: Attempt,
    },
    /// A broker's answer; `None`: the response had no usable entry.
    Answered {
        /// To which lane.
        lane: Lane,
        /// To which attempt.
        attempt: u64,
        /// What.
        reply: Option<Reply>,
    },
    /// The connection of an attempt is over.
    Ended {
        /// Of which lane.
        lane: Lane,
        /// Which attempt.
        attempt: u64,
        /// Certainly less than the whole frame left.
        partly: bool,
    },
    /// The lane was told of another leader or connection.
    Routed {
        /// Which lane.
        lane: Lane,
        /// The connection, if there is one.
        connection: Option<u64>,
        /// Its leader epoch.
        leader_epoch: i32,
    },
}

/// What stands at one offset.
///
/// ```
/// assert_ne!(candor_sim::judge::Stored::Corrupt, candor_sim::judge::Stored::Foreign);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Stored {
    /// A record of this run.
    Ours(u64),
    /// A record of another run.
    Foreign,
    /// Bytes that should be a record of ours and are not.
    Corrupt,
}

impl Stored {
    /// The records of a batch, in order. One that cannot be read is corrupt as a whole.
    pub fn all(batch: &Batch, recognise: impl FnMut(&Record) -> Self) -> Vec<Self> {
        match batch.records() {
            Ok(records) => records.iter().map(recognise).collect(),
            Err(_) => vec![Self::Corrupt],
        }
    }
}

/// One record batch of a log.
///
/// ```
/// use candor_sim::judge::{LogBatch, Stored};
/// let batch = LogBatch {
///     base_offset: 10, producer_id: 4000, epoch: 0, first: 5, max_timestamp: None,
///     records: vec![Stored::Ours(1)],
/// };
/// assert_eq!(batch.records.len(), 1);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogBatch {
    /// Offset of its first record.
    pub base_offset: i64,
    /// Producer id in its header, -1 for none.
    pub producer_id: i64,
    /// Producer epoch in its header.
    pub epoch: i16,
    /// First sequence in its header.
    pub first: i32,
    /// Largest timestamp in its header, in milliseconds: of its records, or when it was appended, as its
    /// topic has it; the broker's memory of its producer ages from there (S20). `None`: not known.
    pub max_timestamp: Option<i64>,
    /// Its records.
    pub records: Vec<Stored>,
}

impl LogBatch {
    /// What a batch of a log holds, each record being what `recognise` says of it.
    pub fn read(batch: &Batch, recognise: impl FnMut(&Record) -> Stored) -> Self {
        Self {
            base_offset: batch.header.base_offset,
            producer_id: batch.header.producer_id,
            epoch: batch.header.producer_epoch,
            first: batch.header.base_sequence,
            max_timestamp: Some(batch.header.max_timestamp),
            records: Stored::all(batch, recognise),
        }
    }
}

/// A partition's log after the run, from its start to its end.
///
/// ```
/// let log = candor_sim::judge::Log { topic: 0, partition: 0, batches: Vec::new() };
/// assert!(log.batches.is_empty());
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Log {
    /// Which topic.
    pub topic: u32,
    /// Which partition.
    pub partition: i32,
    /// Its batches in offset order.
    pub batches: Vec<LogBatch>,
}

/// What a producer cannot answer for: what the nemesis did, and what the judge reads off logs and wire.
/// There are only these ten.
///
/// ```
/// use candor_sim::judge::{Class, ExcuseKind};
/// assert!(ExcuseKind::Truncation.covers(Class::Lost));
/// assert!(!ExcuseKind::Truncation.covers(Class::Flip));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ExcuseKind {
    /// An unclean election cut the log.
    Truncation,
    /// Records deleted, retention: a log that is shown without them.
    Deletion,
    /// A topic was deleted and made anew: what was said until then may be of the log that is gone.
    MadeAnew,
    /// All that lies before `from` was deleted, when the log was committed up to `to`: whenever a broker
    /// builds up anew what it knows (a start, a truncation, a new replica), it forgets who wrote nothing
    /// behind. Alone it excuses nothing: what a broker appended at or behind `to` knowing nobody, the judge
    /// finds out itself (`Forgotten`, `Again`).
    Purge,
    /// Acks other than all, or a crash with one copy.
    WeakAcks,
    /// The broker forgot us, and the producer was told to go on (`BeyondMemory::Resend`).
    StateExpiry,
    /// What the broker knew of us was deleted before it reloaded, and this is the first that it
    /// appended then: any sequence will do (A3). The judge finds it out itself.
    Forgotten,
    /// It appended that, or what follows, again or behind what is newer, and no 0 had told the producer
    /// that there was anything before it offered that for the last time (A3). The judge finds it out
    /// itself. What the producer had to conclude from log starts is judged at its offers (`StaleResend`).
    Again,
    /// The broker forgot us by the timestamp of what it appended last, and a copy of this one, or of that
    /// same one, was still on its way (S20). The judge finds it out itself.
    LateCopy,
    /// A copy that was on its way when the broker forgot us, of records that were told not to be there once
    /// other content had taken its slot (C): the broker kept it out until then. The judge finds it out
    /// itself.
    KeptOut,
}

impl ExcuseKind {
    /// Which findings it can excuse.
    pub const fn covers(self, class: Class) -> bool {
        match self {
            Self::Truncation | Self::WeakAcks => {
                matches!(class, Class::Lost | Class::SeqGap | Class::WrongOffset)
            }
            Self::Deletion => matches!(class, Class::Lost),
            Self::MadeAnew => {
                matches!(class, Class::Lost | Class::Ghost | Class::Duplicate | Class::SeqGap)
            }
            Self::Purge => false,
            Self::StateExpiry => matches!(
                class,
                Class::Duplicate | Class::Ghost | Class::SeqGap | Class::SeqReuse | Class::Reorder
            ),
            Self::Forgotten => matches!(class, Class::SeqGap | Class::SeqReuse),
            Self::KeptOut => matches!(class, Class::Ghost),
            Self::Again => matches!(class, Class::Duplicate | Class::Reorder),
            // Not of what was told to be not delivered.
            Self::LateCopy => {
                matches!(class, Class::Duplicate | Class::SeqGap | Class::SeqReuse | Class::Reorder)
            }
        }
    }
}

/// An excuse that the nemesis ledger grants.
///
/// ```
/// use candor_sim::judge::{Excuse, ExcuseKind};
/// let excuse = Excuse {
///     kind: ExcuseKind::Deletion, topic: 0, partition: 0, from: 10, to: 20, since: 0, until: 9,
/// };
/// assert!(excuse.from < excuse.to);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Excuse {
    /// What happened.
    pub kind: ExcuseKind,
    /// In which topic.
    pub topic: u32,
    /// In which partition.
    pub partition: i32,
    /// First offset concerned.
    pub from: i64,
    /// Offset behind the last one concerned.
    pub to: i64,
    /// When it began.
    pub since: u64,
    /// When its effect ended.
    pub until: u64,
}

/// Everything that the judge needs to know of a run.
///
/// ```
/// use candor_sim::judge::{History, judge};
/// assert!(judge(&History::default()).anomalies.is_empty());
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct History {
    /// How it is to be judged.
    pub settings: Settings,
    /// The ledgers, merged in order of time.
    pub entries: Vec<Entry>,
    /// The logs, after late requests were waited for.
    pub logs: Vec<Log>,
    /// When the logs were read, in microseconds, if later than the last entry.
    pub read_at: u64,
    /// What the nemesis excuses; the judge adds what follows from logs and wire.
    pub excuses: Vec<Excuse>,
    /// Every producer was closed, or killed: nothing is owed any more.
    pub closed: bool,
}
