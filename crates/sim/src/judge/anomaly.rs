//! What the judge may find, and how it says so.

use std::fmt;

/// Everything that a history can be convicted of.
///
/// ```
/// use candor_sim::judge::Class;
/// assert_eq!(Class::LateBadNews.to_string(), "LATE_BAD_NEWS");
/// assert!(Class::ALL.contains(&Class::Ghost));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Class {
    /// The ledger itself is impossible: accepted and refused, or told of a record never handed in.
    Insane,
    /// An accepted record never got a verdict.
    NoVerdict,
    /// An `Unknown` never got its resolution, though the producer was closed.
    NoResolution,
    /// Two verdicts, two resolutions, or a resolution that follows no `Unknown`.
    Flip,
    /// The verdict came after its deadline.
    Late,
    /// `NotDelivered` for a reason that had not come yet: no deadline, cancel, close or refusal.
    Hasty,
    /// `Unknown` although every attempt had an unambiguous answer.
    Coward,
    /// `Delivered`, but the log does not hold it.
    Lost,
    /// `Delivered` at another place than the one that was told.
    WrongOffset,
    /// `Delivered` at an offset that does not lie behind those of earlier records of the lane.
    OffsetBack,
    /// More than one copy.
    Duplicate,
    /// `NotDelivered`, but the log holds it.
    Ghost,
    /// Refused at the door, but the log holds it.
    GhostRefused,
    /// In the log of another topic or partition than the record names.
    Misrouted,
    /// Bytes that are no record of ours although they stand in a batch of ours.
    Corrupt,
    /// A record of another run.
    Foreign,
    /// Records of one lane stand in another order than they were sent in.
    Reorder,
    /// A record behind it was delivered, it is missing, and nobody was told.
    SilentGap,
    /// A record was delivered behind a failed one although the policy was to stop.
    GapAfterStop,
    /// A record behind it was reported delivered before this one was reported failed.
    LateBadNews,
    /// A record behind it was reported delivered before this one, which is in the log as well.
    OutOfTurn,
    /// A sequence was skipped, on the wire or in the log.
    SeqGap,
    /// A sequence stands in the log twice.
    SeqReuse,
    /// Two contents under one identity and sequence.
    IdentityReused,
    /// A replacement whose end opens the way for a batch that was offered before.
    IllegalCut,
    /// A record got a second identity while the first could still be, or was, appended.
    SecondIdentity,
    /// Offered at or past a slot that was given up, in its epoch.
    SlotReused,
    /// An epoch went down, or a producer id came back.
    EpochBack,
    /// The epoch went up over records in doubt that had been told nothing.
    EarlyBump,
    /// More than one open batch through a closed gate.
    GateBroken,
    /// More than five batches from the oldest unsettled to the newest offered.
    SpanBroken,
    /// A retry with other boundaries or other bytes.
    NotFrozen,
    /// Something in doubt was resent although the broker may have forgotten us.
    StaleResend,
    /// An answer contradicted what had been concluded, and the lane went on without a word.
    Unheeded,
    /// A notice of lost data where nothing was lost.
    FalseAlarm,
    /// More epochs than there were reasons for one.
    Wasteful,
    /// After the faults stopped, the lane did not come to an end.
    Hung,
    /// After the faults stopped, a fresh record was not delivered.
    NotHealed,
    /// More steps without time passing than any schedule needs.
    Busy,
    /// The machine rejected an event that the contract allows, or offered what it may not.
    Contract,
}

impl Class {
    /// Every class.
    pub const ALL: &'static [Self] = &[
        Self::Insane,
        Self::NoVerdict,
        Self::NoResolution,
        Self::Flip,
        Self::Late,
        Self::Hasty,
        Self::Coward,
        Self::Lost,
        Self::WrongOffset,
        Self::OffsetBack,
        Self::Duplicate,
        Self::Ghost,
        Self::GhostRefused,
        Self::Misrouted,
        Self::Corrupt,
        Self::Foreign,
        Self::Reorder,
        Self::SilentGap,
        Self::GapAfterStop,
        Self::LateBadNews,
        Self::OutOfTurn,
        Self::SeqGap,
        Self::SeqReuse,
        Self::IdentityReused,
        Self::IllegalCut,
        Self::SecondIdentity,
        Self::SlotReused,
        Self::EpochBack,
        Self::EarlyBump,
        Self::GateBroken,
        Self::SpanBroken,
        Self::NotFrozen,
        Self::StaleResend,
        Self::Unheeded,
        Self::FalseAlarm,
        Self::Wasteful,
        Self::Hung,
        Self::NotHealed,
        Self::Busy,
        Self::Contract,
    ];

    /// The name that reports and `docs/verification.md` use.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Insane => "INSANE",
            Self::NoVerdict => "NO_VERDICT",
            Self::NoResolution => "NO_RESOLUTION",
            Self::Flip => "FLIP",
            Self::Late => "LATE",
            Self::Hasty => "HASTY",
            Self::Coward => "COWARD",
            Self::Lost => "LOST",
            Self::WrongOffset => "WRONG_OFFSET",
            Self::OffsetBack => "OFFSET_BACK",
            Self::Duplicate => "DUPLICATE",
            Self::Ghost => "GHOST",
            Self::GhostRefused => "GHOST_REFUSED",
            Self::Misrouted => "MISROUTED",
            Self::Corrupt => "CORRUPT",
            Self::Foreign => "FOREIGN",
            Self::Reorder => "REORDER",
            Self::SilentGap => "SILENT_GAP",
            Self::GapAfterStop => "GAP_AFTER_STOP",
            Self::LateBadNews => "LATE_BAD_NEWS",
            Self::OutOfTurn => "OUT_OF_TURN",
            Self::SeqGap => "SEQ_GAP",
            Self::SeqReuse => "SEQ_REUSE",
            Self::IdentityReused => "IDENTITY_REUSED",
            Self::IllegalCut => "ILLEGAL_CUT",
            Self::SecondIdentity => "SECOND_IDENTITY",
            Self::SlotReused => "SLOT_REUSED",
            Self::EpochBack => "EPOCH_BACK",
            Self::EarlyBump => "EARLY_BUMP",
            Self::GateBroken => "GATE_BROKEN",
            Self::SpanBroken => "SPAN_BROKEN",
            Self::NotFrozen => "NOT_FROZEN",
            Self::StaleResend => "STALE_RESEND",
            Self::Unheeded => "UNHEEDED",
            Self::FalseAlarm => "FALSE_ALARM",
            Self::Wasteful => "WASTEFUL",
            Self::Hung => "HUNG",
            Self::NotHealed => "NOT_HEALED",
            Self::Busy => "BUSY",
            Self::Contract => "CONTRACT",
        }
    }

    /// Whether it is a breach of discipline on the wire, which needs no log to be seen.
    pub const fn is_discipline(self) -> bool {
        matches!(
            self,
            Self::IdentityReused
                | Self::IllegalCut
                | Self::SecondIdentity
                | Self::SlotReused
                | Self::EpochBack
                | Self::EarlyBump
                | Self::GateBroken
                | Self::SpanBroken
                | Self::NotFrozen
                | Self::StaleResend
        )
    }
}

impl fmt::Display for Class {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// One thing that the judge holds against a history.
///
/// ```
/// use candor_sim::judge::{Anomaly, Class};
/// let found = Anomaly::new(Class::Lost).record(7);
/// assert_eq!(found.to_string(), "LOST of record 7");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Anomaly {
    /// What kind.
    pub class: Class,
    /// The record that is wronged, if one can be named.
    pub record: Option<u64>,
    /// The record that convicts it: the other half of a pair.
    pub other: Option<u64>,
    /// The attempt at which it was seen.
    pub attempt: Option<u64>,
}

impl Anomaly {
    /// One that names nothing yet.
    pub const fn new(class: Class) -> Self {
        Self { class, record: None, other: None, attempt: None }
    }

    /// Names the record.
    #[must_use]
    pub const fn record(self, record: u64) -> Self {
        Self { record: Some(record), ..self }
    }

    /// Names the record that convicts it.
    #[must_use]
    pub const fn other(self, other: u64) -> Self {
        Self { other: Some(other), ..self }
    }

    /// Names the attempt.
    #[must_use]
    pub const fn attempt(self, attempt: u64) -> Self {
        Self { attempt: Some(attempt), ..self }
    }
}

impl fmt::Display for Anomaly {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.class.fmt(f)?;
        if let Some(record) = self.record {
            write!(f, " of record {record}")?;
        }
        if let Some(other) = self.other {
            write!(f, " (convicted by record {other})")?;
        }
        if let Some(attempt) = self.attempt {
            write!(f, " at attempt {attempt}")?;
        }
        Ok(())
    }
}
