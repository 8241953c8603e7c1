//! What the rules are asked with, and what they answer.

use crate::ids::{Offset, ProducerEpoch, Sequence};
use crate::time::{Instant, Span};

/// Kinds of error codes (rules 1).
///
/// ```
/// use candor_core::rules::{Class, Honest, Rules};
/// assert_eq!(Honest::class(45), Class::OutOfOrder);
/// assert_eq!(Honest::class(12345), Class::Doubtful);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Class {
    /// No error.
    None,
    /// 2: refused before the append; worth a few attempts.
    Corrupt,
    /// Refused before the append, for a reason that may pass.
    Retriable,
    /// 10, 18: refused before the append; smaller batches may pass.
    TooLarge,
    /// 32, 87: refused before the append because of single records.
    InvalidRecords,
    /// Refused before the append, for a reason that stays.
    Permanent,
    /// 45, judged by K.
    OutOfOrder,
    /// 46.
    Duplicate,
    /// 47, 90, judged by K7.
    Fenced,
    /// 59, judged by K.
    UnknownProducer,
    /// Anything that may come after the append, and every unknown code.
    Doubtful,
}

/// What is known of one attempt (rules 1).
///
/// ```
/// use candor_core::rules::{Fate, Honest, Rules};
/// use candor_core::HandedOver;
/// assert_eq!(Honest::ended(HandedOver::PerhapsWhole), Fate::Doubtful);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Fate {
    /// It did not append, and never will.
    NotAppended,
    /// The batch is in the log.
    Appended,
    /// Anything may be.
    Doubtful,
}

/// What is known of an offered batch that is not settled (rules 1).
///
/// ```
/// use candor_core::rules::{Honest, Rules, Standing};
/// assert_eq!(Honest::standing(2, 1), Standing::InDoubt);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Standing {
    /// Every attempt was refused.
    Refused,
    /// Some attempt was not, or is unanswered.
    InDoubt,
}

/// What a batch was answered in the pass under way.
///
/// ```
/// use candor_core::rules::{Honest, Mark, Rules};
/// assert!(!Honest::pass_goes_on(Mark::Unasked));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Mark {
    /// Nothing that lets the pass go on.
    Unasked,
    /// 45.
    OutOfOrder,
    /// 59.
    UnknownProducer,
    /// A permanent code.
    Refused {
        /// Some batch of the same pass was answered 45 before (S22, serial case).
        behind_out_of_order: bool,
    },
}

/// How often everything unsettled was asked in vain (K5).
///
/// ```
/// assert_ne!(candor_core::rules::Stage::First, candor_core::rules::Stage::Second);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Stage {
    /// Not yet.
    First,
    /// Once; the leader was confirmed since.
    Second,
}

/// What follows a whole pass without a 0.
///
/// ```
/// use candor_core::rules::{AfterPass, Honest, Rules, Stage};
/// assert_eq!(Honest::after_pass(Stage::Second, false), AfterPass::StateGone);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AfterPass {
    /// K5: confirm the leader, then one more whole pass.
    Confirm,
    /// L4: confirm the leader, then abandon or try again.
    ConfirmStuck,
    /// K6: the broker's state is gone.
    StateGone,
}

/// Asked by [`Rules::duplicate`](super::Rules::duplicate).
///
/// ```
/// use candor_core::rules::{DuplicateFacts, DuplicateMeans, Honest, Rules};
/// let retry = DuplicateFacts { first_attempt: false, earlier_not_refused: true, contested: false };
/// assert_eq!(Honest::duplicate(retry), DuplicateMeans::Appended);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct DuplicateFacts {
    /// It is the batch's first attempt.
    pub first_attempt: bool,
    /// An earlier attempt of the batch was not refused.
    pub earlier_not_refused: bool,
    /// Other content was offered at an overlapping range of this epoch.
    pub contested: bool,
}

/// What a 46 means.
///
/// ```
/// use candor_core::rules::DuplicateMeans;
/// assert_ne!(DuplicateMeans::Appended, DuplicateMeans::Conflict);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DuplicateMeans {
    /// The batch is in the log; nobody knows where.
    Appended,
    /// The same as 45.
    OutOfOrder,
    /// Somebody else uses our producer id (K7).
    Conflict,
}

/// Asked by [`Rules::opens_gate`](super::Rules::opens_gate).
///
/// ```
/// use candor_core::rules::{GateFacts, Honest, Rules};
/// let all = GateFacts { same_route: true, same_leader_epoch: true, same_identity: true, known: true };
/// assert!(Honest::opens_gate(all) && !Honest::opens_gate(GateFacts { known: false, ..all }));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct GateFacts {
    /// The attempt was offered on the connection in use.
    pub same_route: bool,
    /// And at the leader epoch in use.
    pub same_leader_epoch: bool,
    /// And under the identity in use.
    pub same_identity: bool,
    /// The leader is known to remember us (S20).
    pub known: bool,
}

/// What a `Leader` event changes (S7).
///
/// ```
/// use candor_core::rules::{Honest, LeaderChange, Rules};
/// assert!(Honest::orphans(LeaderChange::Epoch) && !Honest::orphans(LeaderChange::None));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LeaderChange {
    /// Nothing.
    None,
    /// The connection, or whether there is one.
    Route,
    /// Only the leader epoch.
    Epoch,
}

/// Who had the last word on the leader of a partition. Asked by
/// [`Rules::follows_hint`](super::Rules::follows_hint).
///
/// ```
/// use candor_core::{LeaderEpoch, rules::{Honest, LeaderWord, Rules}};
/// let newer = |last| Honest::follows_hint(LeaderEpoch(4), LeaderEpoch(5), last);
/// assert!(newer(LeaderWord::Metadata) && !newer(LeaderWord::Hint));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LeaderWord {
    /// Metadata; or nobody so far.
    Metadata,
    /// A hint in a Produce answer (KIP-951), and no metadata was heard since it was followed.
    Hint,
}

/// Which identity follows the one in use.
///
/// ```
/// use candor_core::{ProducerEpoch, rules::{Honest, NextIdentity, Rules}};
/// let last = ProducerEpoch::new(32766).unwrap();
/// assert_eq!(Honest::next_identity(last, false), NextIdentity::Fresh);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum NextIdentity {
    /// The same producer id at this epoch; no request is needed.
    Epoch(ProducerEpoch),
    /// Another producer id.
    Fresh,
}

/// Asked by [`Rules::offsets_agree`](super::Rules::offsets_agree).
///
/// ```
/// use candor_core::{Offset, rules::{Bounds, Honest, OffsetFacts, Rules}};
/// let base = Offset::new(5).unwrap();
/// let bounds = Bounds { previous_end: Offset::new(6), ..Bounds::default() };
/// assert!(!Honest::offsets_agree(OffsetFacts { bounds, base, count: 1 }));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct OffsetFacts {
    /// What stands around the batch.
    pub bounds: Bounds,
    /// The offset it was answered.
    pub base: Offset,
    /// Records in it.
    pub count: u32,
}

/// The written batches around a batch, as far as their offsets are known (S13).
///
/// ```
/// use candor_core::rules::Bounds;
/// assert_eq!(Bounds::default().previous_end, None);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Bounds {
    /// The offset behind the newest written batch before it.
    pub previous_end: Option<Offset>,
    /// The first offset of the oldest written batch behind it.
    pub next_base: Option<Offset>,
    /// Records in between `previous_end`, or else the log's beginning, and the batch: they were
    /// concluded written, and nobody said where.
    pub room_before: u64,
    /// The same between the batch and `next_base`.
    pub room_behind: u64,
}

impl Bounds {
    /// The last offset before it that was acknowledged.
    pub fn last_before(self) -> Option<Offset> {
        self.previous_end.and_then(|end| Offset::new(end.get() - 1))
    }
}

/// What stopped a lane (L8).
///
/// ```
/// use candor_core::rules::{Honest, Rules, StopCause};
/// assert!(Honest::recreation_lifts_stop(StopCause::Contradiction));
/// assert!(!Honest::recreation_lifts_stop(StopCause::Conflict));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum StopCause {
    /// S13: an answer contradicts what was concluded before.
    Contradiction,
    /// K6, with `OnDataLoss::Stop`.
    DataLoss,
    /// K7: somebody else uses our id, or the broker refuses local epochs.
    Conflict,
}

/// What a settled batch was settled as.
///
/// ```
/// use candor_core::rules::{Honest, Rules, SettledAs};
/// assert!(Honest::contradicts(SettledAs::NotWritten, None));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SettledAs {
    /// In the log, at this offset.
    Written {
        /// Offset of its first record.
        base: Offset,
    },
    /// In the log, by conclusion.
    Concluded {
        /// What stands around it.
        bounds: Bounds,
        /// Records in it.
        count: u32,
    },
    /// Not in the log, by V3 or because it was overtaken.
    NotWritten,
    /// Nothing that a late answer could contradict.
    Forgotten,
}

/// Asked by [`Rules::known`](super::Rules::known).
///
/// ```
/// use candor_core::{Instant, Span, rules::{Honest, MemoryFacts, Rules}};
/// let fresh = MemoryFacts {
///     now: Instant::from_millis(1_000),
///     state_ttl: Span::from_secs(72_000),
///     last_zero: None,
///     newest_timestamp: 1_000,
///     doubt_timestamp: None,
///     log_append_time: false,
///     last_acknowledged: None,
///     log_start: None,
/// };
/// assert!(!Honest::known(&fresh));
/// assert!(Honest::known(&MemoryFacts { last_zero: Some(fresh.now), ..fresh }));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryFacts {
    /// The time of the question.
    pub now: Instant,
    /// How long the broker is relied upon to remember.
    pub state_ttl: Span,
    /// When the lane's last 0 came.
    pub last_zero: Option<Instant>,
    /// max_timestamp of its newest acknowledged batch, in milliseconds, -1 for none.
    pub newest_timestamp: i64,
    /// The smallest max_timestamp of the batches in doubt: one of them may be the newest that the
    /// broker appended, and its clock then.
    pub doubt_timestamp: Option<i64>,
    /// Answers showed LogAppendTime: record timestamps drop out.
    pub log_append_time: bool,
    /// The lane's last acknowledged offset.
    pub last_acknowledged: Option<Offset>,
    /// The highest log_start_offset seen.
    pub log_start: Option<Offset>,
}

/// Asked by [`Rules::resendable`](super::Rules::resendable).
///
/// ```
/// use candor_core::{Instant, Span, rules::{DoubtFacts, Honest, MemoryFacts, Rules}};
/// let memory = MemoryFacts {
///     now: Instant::from_millis(100_000_000),
///     state_ttl: Span::from_secs(72_000),
///     last_zero: None,
///     newest_timestamp: -1,
///     doubt_timestamp: None,
///     log_append_time: false,
///     last_acknowledged: None,
///     log_start: None,
/// };
/// let doubt = DoubtFacts {
///     memory,
///     first_offer: memory.now,
///     max_timestamp: 100_000_000,
///     written_behind: None,
///     log_start_moved_past: false,
///     beyond_memory: false,
/// };
/// assert!(Honest::resendable(&doubt));
/// assert!(!Honest::resendable(&DoubtFacts { max_timestamp: -1, ..doubt }));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DoubtFacts {
    /// The lane's memory.
    pub memory: MemoryFacts,
    /// When the oldest batch in doubt was first offered.
    pub first_offer: Instant,
    /// The smallest max_timestamp of the batches in doubt, in milliseconds.
    pub max_timestamp: i64,
    /// The max_timestamp of the newest acknowledged batch, if it stands behind one in doubt: then
    /// it is the broker's clock, and not the batch in doubt.
    pub written_behind: Option<i64>,
    /// Since its first offer an answer showed a log start past the last acknowledged offset.
    pub log_start_moved_past: bool,
    /// `BeyondMemory::Resend`: the caller accepts duplicates.
    pub beyond_memory: bool,
}

/// Asked by [`Rules::proves`](super::Rules::proves).
///
/// ```
/// use candor_core::rules::{Honest, ProofFacts, Rules};
/// let facts = ProofFacts {
///     known: false,
///     vacated_between: false,
///     through_open_gate: true,
///     in_pass: true,
///     predecessors: &[],
/// };
/// assert!(!Honest::proves(&facts));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProofFacts<'a> {
    /// The leader was known to remember us before this 0, whose log start is counted first.
    pub known: bool,
    /// A vacated slot lies before the answered batch.
    pub vacated_between: bool,
    /// The answered attempt was offered while the gate was open.
    pub through_open_gate: bool,
    /// The answered attempt was offered in the pass under way.
    pub in_pass: bool,
    /// The unsettled batches before it, oldest first.
    pub predecessors: &'a [PredecessorFacts],
}

/// One unsettled batch before an answered one.
///
/// ```
/// use candor_core::rules::{Mark, PredecessorFacts};
/// let p = PredecessorFacts {
///     behind_opener: true,
///     attempt_before_on_route: true,
///     not_refused: true,
///     behind_established: false,
///     mark: Mark::Unasked,
/// };
/// assert!(p.not_refused);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PredecessorFacts {
    /// It stands behind the batch whose 0 opened the gate.
    pub behind_opener: bool,
    /// It has an attempt that is not refused, on the same route and offered before.
    pub attempt_before_on_route: bool,
    /// It has an attempt that is not refused.
    pub not_refused: bool,
    /// It stands behind a batch of this epoch whose 0 came while *known* has held since.
    pub behind_established: bool,
    /// What it was answered in this pass.
    pub mark: Mark,
}

/// What it means that the broker does not know what it must know (K6).
///
/// ```
/// assert_ne!(candor_core::rules::Loss::OfData, candor_core::rules::Loss::OfState);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Loss {
    /// Nothing: data and state were deleted together, or what stands behind is written.
    Harmless,
    /// The broker forgot us, as it may: `StateLost`.
    OfState,
    /// Acknowledged data may be gone: `DataLoss`.
    OfData,
}

/// Asked by [`Rules::loss`](super::Rules::loss).
///
/// ```
/// use candor_core::{Offset, rules::{Honest, Loss, LossFacts, Rules}};
/// let purged = LossFacts {
///     last_acknowledged: Offset::new(7),
///     log_start: Offset::new(8),
///     later_written: false,
///     known: true,
/// };
/// assert_eq!(Honest::loss(purged), Loss::Harmless);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct LossFacts {
    /// The lane's last acknowledged offset.
    pub last_acknowledged: Option<Offset>,
    /// The highest log start seen.
    pub log_start: Option<Offset>,
    /// A later batch of the epoch is written.
    pub later_written: bool,
    /// The broker was to be relied upon to remember us (S20).
    pub known: bool,
}

/// How a given-up batch ends.
///
/// ```
/// use candor_core::rules::{GivenUpEnd, Honest, Rules, Standing};
/// assert_eq!(Honest::given_up_ends(1, Standing::InDoubt), None);
/// assert_eq!(Honest::given_up_ends(0, Standing::InDoubt), Some(GivenUpEnd::Never));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum GivenUpEnd {
    /// Every attempt turned out to be refused.
    NotDelivered,
    /// Some attempt will never be answered.
    Never,
}

/// Asked by [`Rules::may_revoke`](super::Rules::may_revoke): a batch in doubt whose turn it is to
/// be resent.
///
/// ```
/// use candor_core::rules::{Honest, RevokeFacts, Rules};
/// let facts = RevokeFacts {
///     resendable: true,
///     written_behind: false,
///     predecessors_passed: true,
///     gate_opened_before: false,
///     acknowledged: true,
///     first_of_epoch: false,
/// };
/// assert!(Honest::may_revoke(&facts));
/// assert!(!Honest::may_revoke(&RevokeFacts { acknowledged: false, ..facts }));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RevokeFacts {
    /// What is in doubt may be resent, duplicates not being accepted (S20).
    pub resendable: bool,
    /// Something behind it is written, or was passed by a 0.
    pub written_behind: bool,
    /// Every unsettled batch before it is in doubt and was answered 45 in this pass.
    pub predecessors_passed: bool,
    /// The gate is open, and a batch before it opened it.
    pub gate_opened_before: bool,
    /// An offset before it was acknowledged: the log start in the answer can be compared with it.
    pub acknowledged: bool,
    /// It is the first batch of its epoch: a log start of 0 tells as much.
    pub first_of_epoch: bool,
}

/// Asked by [`Rules::cut_is_legal`](super::Rules::cut_is_legal).
///
/// ```
/// use candor_core::{Sequence, rules::{CutFacts, Honest, Rules}};
/// let (first, next) = (Sequence::ZERO.after(5), Sequence::ZERO.after(8));
/// let one = CutFacts {
///     first,
///     count: 1,
///     contested_count: 3,
///     firsts: &[next],
///     other_contents: &[],
/// };
/// assert!(Honest::cut_is_legal(&one));
/// assert!(!Honest::cut_is_legal(&CutFacts { count: 3, ..one }));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CutFacts<'a> {
    /// First sequence of the contested batch and of its replacement.
    pub first: Sequence,
    /// Records in the replacement.
    pub count: u32,
    /// Records in the contested batch.
    pub contested_count: u32,
    /// First sequences of all batches that were ever offered behind it in this epoch.
    pub firsts: &'a [Sequence],
    /// Sizes of replacements with other records that were offered at this place before (S4).
    pub other_contents: &'a [u32],
}

/// Who contends for a contested slot (C1, C4).
///
/// ```
/// use candor_core::rules::Contender;
/// assert_ne!(Contender::Replacement, Contender::Contested);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Contender {
    /// What was offered in the place of a batch in doubt.
    Replacement,
    /// That batch, or one behind it.
    Contested,
}

/// Asked by [`Rules::conclusive`](super::Rules::conclusive).
///
/// ```
/// use candor_core::{Offset, rules::{ConclusionFacts, Contender, Honest, Rules}};
/// let purged = ConclusionFacts {
///     written: Contender::Replacement,
///     resendable: true,
///     gate_opened_before: false,
///     log_start: Offset::new(8),
///     last_acknowledged: Offset::new(7),
///     first_of_epoch: false,
/// };
/// assert!(!Honest::conclusive(&purged));
/// assert!(Honest::conclusive(&ConclusionFacts { log_start: Offset::new(7), ..purged }));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ConclusionFacts {
    /// Whose 0 it is.
    pub written: Contender,
    /// What is in doubt could still be resent, this answer's log start being counted (S20).
    pub resendable: bool,
    /// It was offered through a gate that a batch before the contested one had opened.
    pub gate_opened_before: bool,
    /// The log start in this answer.
    pub log_start: Option<Offset>,
    /// The lane's last acknowledged offset before it.
    pub last_acknowledged: Option<Offset>,
    /// The contested batch is the first one of its epoch.
    pub first_of_epoch: bool,
}

/// What follows a definite code for a replacement (C4).
///
/// ```
/// use candor_core::rules::{AfterReplacement, Class, Honest, Rules};
/// assert_eq!(Honest::after_replacement(Class::Retriable, false), AfterReplacement::AskAgain);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AfterReplacement {
    /// The contested batch may be in the log: it is asked itself, unchanged.
    AskContested,
    /// Nothing was learned: the replacement is offered again.
    AskAgain,
}
