//! The rows of the two matrices: what befell the producer, and which rules it had to apply.

/// Makes an enum whose variants have names, and a list of all of them.
macro_rules! rows {
    ($(#[$doc:meta])* $name:ident { $($variant:ident = $text:literal;)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[allow(missing_docs)] // Their names say it.
        pub enum $name { $($variant,)* }

        impl $name {
            /// Every row, in order.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];
            /// How many there are.
            pub const COUNT: usize = Self::ALL.len();

            /// The name that tables use.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $text,)* }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad(self.name())
            }
        }
    };
}

rows! {
    /// What can befall a producer in a swarm: the network, brokers, answers, and its own caller.
    ///
    /// ```
    /// use candor_sim::swarm::Trouble;
    /// assert_eq!(Trouble::LateRequest.to_string(), "late request");
    /// assert!(Trouble::ALL.len() > 40);
    /// ```
    Trouble {
        ConnectRefused = "connect refused";
        ConnectHangs = "connect hangs";
        CutRequest = "cut within a request";
        CutReply = "cut within a reply";
        CutBetween = "cut between frames";
        OneWayOut = "requests vanish";
        OneWayIn = "replies vanish";
        HalfOpen = "half-open";
        SlowDrain = "slow drain";
        NeverSent = "Sent never told";
        HandedUnknown = "handed over: unknown";
        LateRequest = "late request";
        OrphanServed = "served after the close";
        LongTail = "long delay";
        Trickle = "bytes one by one";
        LostReply = "reply lost";
        GarbledReply = "reply garbled";
        MissingEntry = "partition missing in reply";
        EmptyReply = "reply without partitions";
        ShuffledReply = "reply in another order";
        RetriableCode = "retriable code";
        PermanentCode = "permanent code";
        PermanentSpell = "permanent code for a while";
        TooLargeCode = "10 or 18";
        RecordCode = "32 or 87";
        CorruptCode = "2";
        OutOfOrderCode = "45 out of the blue";
        UnknownProducerCode = "59 out of the blue";
        FencedCode = "47 or 90 out of the blue";
        ConflictCode = "46 on a first attempt";
        DuplicateCode = "46 on a repeat";
        AfterAppend = "doubtful code after the append";
        BeforeAppend = "doubtful code before the append";
        Lie = "offset that cannot be";
        UnknownCode = "code that nobody knows";
        Forgotten = "forgotten in mid-pipe";
        ReloadInDoubt = "reload between doubts";
        MemorySpell = "45 or 59 for a while";
        Throttle = "throttle";
        LongThrottle = "throttle for weeks";
        ErrorStorm = "errors only for a while";
        LeaderMove = "leader moves";
        ThereAndBack = "leader moves there and back";
        ZombieLeader = "leader cut off";
        RestartClean = "clean restart";
        RestartCrash = "crash";
        NodeDown = "broker down for a while";
        MidRequest = "crash between append and reply";
        IsrShrinks = "ISR shrinks";
        Stalled = "follower stalls";
        DirFails = "log directory fails";
        MaxBytes = "max.message.bytes lowered";
        Recreated = "topic made anew";
        Partitions = "partitions added";
        Deleted = "DeleteRecords";
        OldTimestamps = "old record timestamps";
        FutureTimestamp = "record from the future";
        StaleMetadata = "metadata stale";
        EmptyMetadata = "metadata empty";
        LeaderlessMetadata = "metadata without leader";
        RefusedMetadata = "metadata refuses the topic";
        NoProducerId = "no producer id";
        OldGreeting = "ApiVersions fallback";
        GreetingRefused = "greeting refused";
        ShortDeadline = "deadline short or past";
        Cancel = "cancel";
        Flush = "flush";
        BufferFull = "buffer full";
        ClockBack = "clock goes back";
        HostStall = "host stalls";
        Neighbour = "other producers write";
        CloseInTrouble = "close in trouble";
        Revoke = "revoke";
        Abandon = "abandon";
    }
}

rows! {
    /// A rule at work: a decision with one of its answers, or something seen from outside.
    ///
    /// ```
    /// use candor_sim::swarm::Rule;
    /// assert_eq!(Rule::SpanFull.to_string(), "S5 the span is full");
    /// ```
    Rule {
        FateAppended = "1 appended";
        FateRefused = "1 not appended";
        FateDoubtful = "H1 doubtful";
        EndedPartly = "A5 less than the frame";
        EndedWhole = "A5 perhaps the frame";
        StandingRefused = "1 refused throughout";
        StandingInDoubt = "1 in doubt";
        CorruptThrice = "1 corrupt three times";
        DuplicateAppended = "1 46 proves";
        DuplicateConflict = "K7 46 is a conflict";
        Repeated = "S2 resent unchanged";
        SecondIdentity = "S3 on under another identity";
        SpanFull = "S5 the span is full";
        GateOpens = "S6 the gate opens";
        GateStays = "S6 the gate stays closed";
        GateCloses = "S6 the gate closes";
        GateHolds = "S6 one at a time";
        OrphanedByRoute = "S7 another connection";
        OrphanedByEpoch = "S7 another leader epoch";
        LateIsNoPass = "S7 counts for no pass";
        NextEpoch = "S8 next epoch";
        FreshId = "S10 fresh id";
        FenceOnly = "S10 32767 is a fence";
        OffsetsAgree = "S13 offsets agree";
        OffsetsDisagree = "S13 a contradiction";
        OlderIdentity = "S15 older identity";
        BytesOutlive = "S16 bytes outlive the verdict";
        Throttled = "S17 silent while throttled";
        NotToNewTopic = "S18 not to another topic id";
        Known = "S20 known";
        NotKnown = "S20 not known";
        Resendable = "S20 resendable";
        NotResendable = "S20 not resendable";
        OlderLeader = "S21 older leader epoch";
        Proved = "S22 proved";
        NotProved = "S22 not proved";
        PassedBy = "S22 passed by, not proved later";
        Overtaken = "S22 overtaken";
        Vacates = "V1 vacates";
        VacatedWith = "V2 vacated with it";
        VacateOver = "V2 the epoch may end";
        VacateWaits = "V2 settles first";
        Unreachable = "V3 unreachable";
        CutSize = "V4 smaller batches";
        RecordFails = "V1 a record fails";
        RecordGoesOn = "V1 others go on";
        PassGoesOn = "K3 the pass goes on";
        PassWaits = "K3 the pass asks";
        Confirm = "K5 confirm the leader";
        ConfirmStuck = "L4 confirm, stuck";
        StateGone = "K6 the state is gone";
        LossOfData = "K6 data may be lost";
        LossOfState = "K6 only the state is lost";
        LossHarmless = "K6 no loss";
        LossStops = "K6 policy Stop";
        ConflictOnce = "K7 a conflict";
        ConflictStops = "K7 twice: stop";
        Expired = "D1 due";
        PollFirst = "D1 poll goes first";
        LingerOver = "D2 linger or half time";
        NotDeliveredAtDeadline = "D3 not delivered at the deadline";
        UnknownAtDeadline = "D3 unknown at the deadline";
        NeverOffered = "D3, D4 never offered";
        Cancelled = "D4 cancel";
        Flushed = "D5 flush";
        ClosedInDoubt = "D5 closed in doubt";
        ResolvedDelivered = "L2 resolved: delivered";
        ResolvedNotDelivered = "L2 resolved: not delivered";
        ResolvedNever = "L2 resolved: never";
        Backoff = "L3 backoff";
        AtOnce = "L3 at once for a newer epoch";
        NotAtOnce = "L3 not at once";
        StuckAbandoned = "L4 abandoned";
        StuckWaits = "L4 tried again";
        MemoryPressure = "L5 oldest unknown abandoned";
        IdRetried = "L6 no id, again";
        GoesAlone = "L7 alone after two losses";
        TimeoutShort = "L9 the deadline bounds it";
        TimeoutHalf = "L9 half the request timeout";
        MayRevoke = "C1 may be contested";
        MayNotRevoke = "C1 may not be contested";
        Conclusive = "C1 a 0 that concludes";
        Inconclusive = "C1 a 0 that concludes nothing";
        SameSize = "C2 no cut of the same size";
        OpensTheWay = "C2 no cut that opens the way";
        OtherContent = "S4 no cut of an earlier size";
        NoLegalCut = "C3 no legal cut";
        GoesAlong = "C3 a record goes along";
        StaysOut = "C3 a told record stays out";
        ReplacementOffered = "C2 a replacement is offered";
        AskContested = "C4 the contested one is asked";
        AskAgain = "C4 the replacement again";
        ReplacementOver = "C4 the replacement is over";
        SlotTaken = "C5 the slot is taken";
        RevokedDelivered = "C5 revoked and delivered";
        RevokedNever = "C5 revoked and never known";
        AbandonedByCaller = "L4 abandoned by its caller";
        Unrouted = "U1 unrouted, expired";
        Routed = "U1 unrouted, then routed";
        Grown = "U2 a new partition is used";
        WindowFull = "U3 the window is full";
    }
}

impl Trouble {
    /// Whether it is a wish about what is in doubt: to revoke (C), or to abandon.
    pub(super) const fn is_contest(self) -> bool {
        matches!(self, Self::Revoke | Self::Abandon)
    }
}

/// How often each row of a matrix was hit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Counts<const N: usize>([u64; N]);

impl<const N: usize> Default for Counts<N> {
    fn default() -> Self {
        Self([0; N])
    }
}

impl<const N: usize> Counts<N> {
    pub(crate) const fn of(all: [u64; N]) -> Self {
        Self(all)
    }

    pub(crate) fn add(&mut self, row: usize) {
        if let Some(count) = self.0.get_mut(row) {
            *count += 1;
        }
    }

    /// How often a row, by its place in `ALL`, was hit.
    #[must_use]
    pub fn get(&self, row: usize) -> u64 {
        self.0.get(row).copied().unwrap_or(0)
    }

    pub(crate) fn merge(&mut self, other: &Self) {
        for (mine, theirs) in self.0.iter_mut().zip(other.0) {
            *mine += theirs;
        }
    }
}

/// Troubles by row.
pub type TroubleCounts = Counts<{ Trouble::COUNT }>;
/// Rules by row.
pub type RuleCounts = Counts<{ Rule::COUNT }>;
