//! Planted bugs: each type overrides one decision of the rules, and must be found.
//!
//! A bug that nothing finds is a hole in the broker, the judge or the scopes.

use candor_core::rules::{
    AfterPass, Class, ConclusionFacts, Contender, CutFacts, DoubtFacts, DuplicateFacts,
    DuplicateMeans, Fate, GateFacts, GivenUpEnd, Honest, LeaderChange, Loss, LossFacts, Mark,
    MemoryFacts, NextIdentity, OffsetFacts, ProofFacts, Rules, SettledAs, Stage, Standing,
};
use candor_core::testing::Counted;
use candor_core::verdict::Proof;
use candor_core::{
    HandedOver, Instant, Lane, LeaderEpoch, Offset, PartitionResponse, ProducerEpoch, Sequence,
    Span,
};

use super::bent::{Bent, Decisions};
use super::explore::{Report, explore, tell};
use super::scopes;

/// A planted bug, and where it is looked for.
///
/// ```
/// use candor_sim::search::INVERSIONS;
/// assert!(INVERSIONS.iter().any(|inversion| inversion.method == "may_offer"));
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Inversion {
    /// Its name.
    pub name: &'static str,
    /// The method of `Rules` that it overrides.
    pub method: &'static str,
    /// What the machine does wrong.
    pub about: &'static str,
    /// The scope that finds it.
    pub scope: &'static str,
    decisions: Decisions,
}

impl Inversion {
    /// What it decides.
    pub(crate) const fn decisions(&self) -> Decisions {
        self.decisions
    }

    /// Searches for it in its scope.
    pub fn hunt(&self) -> Report {
        let scope = scopes::scope(self.scope).unwrap_or(&super::Scope::BASE);
        Bent::under(self.decisions, || explore::<Lane<Counted, Bent>>(scope, ENOUGH))
    }
}

impl Inversion {
    /// What happens with it in its scope when these steps are taken.
    pub fn tell(&self, choices: &[u16]) -> Vec<String> {
        let scope = scopes::scope(self.scope).unwrap_or(&super::Scope::BASE);
        Bent::under(self.decisions, || tell::<Lane<Counted, Bent>>(scope, choices))
    }
}

/// States after which a search for a planted bug gives up.
const ENOUGH: usize = 300_000;

macro_rules! inversions {
    ($($(#[doc = $about:literal])+ $name:ident in $scope:literal {
        fn $method:ident($($argument:tt)*) $(-> $result:ty)? $body:block
        $(also $more:item)*
    })*) => {
        $(
            $(#[doc = $about])+
            #[derive(Clone, Copy, Debug, PartialEq, Eq)]
            struct $name;

            impl Rules for $name {
                fn $method($($argument)*) $(-> $result)? $body
                $($more)*
            }
        )*

        /// Every planted bug that the search finds.
        pub const INVERSIONS: &[Inversion] = &[
            $(Inversion {
                name: stringify!($name),
                method: stringify!($method),
                about: concat!($($about),+),
                scope: $scope,
                decisions: Decisions::of::<$name>(),
            }),*
        ];
    };
}

inversions! {
    /// REQUEST_TIMED_OUT is taken for a refusal.
    TimeoutRefuses in "deadline" {
        fn class(code: i16) -> Class {
            if code == 7 { Class::Retriable } else { Honest::class(code) }
        }
    }
    /// NOT_ENOUGH_REPLICAS is taken for doubtful.
    RefusalDoubts in "deadline" {
        fn class(code: i16) -> Class {
            if code == 19 { Class::Doubtful } else { Honest::class(code) }
        }
    }
    /// NOT_LEADER_OR_FOLLOWER is taken for a refusal (librdkafka's table).
    NotLeaderRefuses in "deadline" {
        fn fate(response: &PartitionResponse, trust: bool) -> Fate {
            if response.error_code == 6 { Fate::NotAppended } else { Honest::fate(response, trust) }
        }
    }
    /// An offset beside an error is taken for an acknowledgement.
    OffsetProves in "failover" {
        fn fate(response: &PartitionResponse, trust: bool) -> Fate {
            match Honest::fate(response, trust) {
                Fate::Doubtful if response.base_offset >= 0 => Fate::Appended,
                fate @ (Fate::NotAppended | Fate::Appended | Fate::Doubtful) => fate,
            }
        }
    }
    /// DUPLICATE_SEQUENCE_NUMBER always means written.
    DuplicateProves in "foreign-46" {
        fn duplicate(_: DuplicateFacts) -> DuplicateMeans {
            DuplicateMeans::Appended
        }
    }
    /// A closed connection kills its attempts.
    EndRefuses in "lost-answers" {
        fn ended(_: HandedOver) -> Fate {
            Fate::NotAppended
        }
    }
    /// A frame that was cut stays in doubt.
    CutDoubts in "deadline" {
        fn ended(_: HandedOver) -> Fate {
            Fate::Doubtful
        }
    }
    /// One refusal removes all doubt.
    DoubtWashesOff in "deadline" {
        fn standing(_: u32, refused: u32) -> Standing {
            if refused > 0 { Standing::Refused } else { Standing::InDoubt }
        }
    }
    /// CORRUPT_MESSAGE is final at once.
    CorruptOnce in "first-contact" {
        fn corrupt_is_permanent(_: u32) -> bool {
            true
        }
    }
    /// An identity starts at 1.
    StartsAtOne in "calm" {
        fn first_sequence() -> Sequence {
            Sequence::ZERO.after(1)
        }
    }
    /// The next batch has the sequence of the one before.
    SequenceStands in "calm" {
        fn next_sequence(first: Sequence, _: u32) -> Sequence {
            first
        }
    }
    /// After 2^31 - 1 comes 1.
    WrapsToOne in "wrap" {
        fn next_sequence(first: Sequence, count: u32) -> Sequence {
            let next = first.after(count);
            if next.get() < first.get() { next.after(1) } else { next }
        }
    }
    /// Six batches in the span.
    WideSpan in "span" {
        fn span_has_room(span: usize) -> bool {
            span < 6
        }
    }
    /// A late 0 from another connection opens the gate.
    AnyRouteOpens in "failover" {
        fn opens_gate(facts: GateFacts) -> bool {
            Honest::opens_gate(GateFacts { same_route: true, same_leader_epoch: true, ..facts })
        }
    }
    /// An error does not close the gate.
    StaysOpen in "refused" {
        fn closes_gate(_: bool, _: bool) -> bool {
            false
        }
    }
    /// There is no gate: everything is pipelined at once (Java, librdkafka).
    NoGate in "first-contact" {
        fn may_offer(_: bool, _: usize) -> bool {
            true
        }
    }
    /// A 45 is asked again for ever.
    PassStandsStill in "lost-answers" {
        fn pass_goes_on(_: Mark) -> bool {
            false
        }
    }
    /// A pass goes on although nobody answered.
    PassRuns in "first-contact" {
        fn pass_goes_on(_: Mark) -> bool {
            true
        }
    }
    /// Attempts on an old connection are waited for.
    NobodyIsOrphaned in "failover" {
        fn orphans(_: LeaderChange) -> bool {
            false
        }
    }
    /// Late answers of other passes count.
    AnyPassCounts in "whole-pass" {
        fn counts_in_pass(_: bool, _: bool) -> bool {
            true
        }
    }
    /// An epoch is used again after a slot in it was given up.
    EpochStays in "refused" {
        fn next_identity(epoch: ProducerEpoch, _: bool) -> NextIdentity {
            NextIdentity::Epoch(epoch)
        }
    }
    /// At the last epoch a fresh id is taken over what is in doubt.
    NoFence in "last-epoch-fence" {
        fn next_identity(epoch: ProducerEpoch, _: bool) -> NextIdentity {
            Honest::next_identity(epoch, false)
        }
    }
    /// The fence epoch is used like any other.
    FenceIsUsed in "last-epoch-shed" {
        fn epoch_is_used_up(_: ProducerEpoch, _: bool) -> bool {
            false
        }
    }
    /// Nobody looks at offsets.
    OffsetsUnseen in "unclean" {
        fn offsets_agree(_: OffsetFacts) -> bool {
            true
        }
    }
    /// Nobody looks at answers for what is settled.
    SettledUnseen in "forgetful" {
        fn contradicts(_: SettledAs, _: Option<Offset>) -> bool {
            false
        }
    }
    /// A late 0 of an older epoch counts for the newer one, and opens its gate.
    OldTouchesNew in "last-epoch-shed" {
        fn touches_counters(_: bool) -> bool {
            true
        }
        also fn opens_gate(facts: GateFacts) -> bool {
            Honest::opens_gate(GateFacts { same_identity: true, ..facts })
        }
    }
    /// A deduplicated 0 shows LogAppendTime.
    RepeatShowsType in "old-stamps-late" {
        fn shows_timestamp_type(_: u32) -> bool {
            true
        }
    }
    /// What is in doubt is resent to the new topic.
    ResendsToNewTopic in "recreated" {
        fn resend_to_new_topic() -> bool {
            true
        }
    }
    /// A broker remembers for ever.
    AlwaysKnown in "old-stamps" {
        fn known(facts: &MemoryFacts) -> bool {
            facts.last_zero.is_some()
        }
    }
    /// Old timestamps do not matter for the gate.
    StampsIgnored in "old-stamps" {
        fn known(facts: &MemoryFacts) -> bool {
            Honest::known(&MemoryFacts { log_append_time: true, ..*facts })
        }
    }
    /// A log start that passed us does not matter for the gate.
    LogStartIgnored in "purge-late" {
        fn known(facts: &MemoryFacts) -> bool {
            Honest::known(&MemoryFacts { log_start: None, ..*facts })
        }
    }
    /// What is in doubt is resent at any age.
    AlwaysResends in "long-absence" {
        fn resendable(_: &DoubtFacts) -> bool {
            true
        }
    }
    /// Old timestamps in doubt do not matter.
    OldDoubtResent in "old-stamps" {
        fn resendable(facts: &DoubtFacts) -> bool {
            Honest::resendable(&DoubtFacts { max_timestamp: facts.memory.now.as_millis(), ..*facts })
        }
    }
    /// A log start that moved past us does not matter for what is in doubt.
    PurgedDoubtResent in "purge" {
        fn resendable(facts: &DoubtFacts) -> bool {
            Honest::resendable(&DoubtFacts { log_start_moved_past: false, ..*facts })
        }
    }
    /// A later 0 always proves (librdkafka's rule).
    LaterProves in "aging" {
        fn proves(_: &ProofFacts<'_>) -> bool {
            true
        }
    }
    /// A later 0 never proves.
    NothingProves in "lost-answers" {
        fn proves(_: &ProofFacts<'_>) -> bool {
            false
        }
    }
    /// What a 0 passed by unproved is proved by the next one.
    ProvedLater in "aging" {
        fn may_still_be_proved(_: bool) -> bool {
            true
        }
    }
    /// A later 0 proves although the broker may have forgotten us.
    UnknownProves in "aging" {
        fn proves(facts: &ProofFacts<'_>) -> bool {
            Honest::proves(&ProofFacts { known: true, ..*facts })
        }
    }
    /// A batch in doubt gives up its slot.
    DoubtVacates in "refused" {
        fn vacates(_: Standing, open: usize, resent_unchanged: bool) -> bool {
            open == 0 && !resent_unchanged
        }
    }
    /// A slot is given up while an attempt is open.
    OpenVacates in "cancel" {
        fn vacates(_: Standing, _: usize, resent_unchanged: bool) -> bool {
            !resent_unchanged
        }
    }
    /// A refused batch is resent for ever instead of giving up its slot.
    NothingVacates in "bad-record" {
        fn vacates(_: Standing, _: usize, _: bool) -> bool {
            false
        }
    }
    /// A predecessor in doubt is given up with a refused batch.
    DoubtVacatedWith in "refused" {
        fn vacated_with(_: Standing, open: usize) -> bool {
            open == 0
        }
    }
    /// The epoch ends although something before the slot is in doubt.
    DoubtBeforeIgnored in "bad-behind-doubt" {
        fn vacate_is_over(_: bool, successors_open: usize) -> bool {
            successors_open == 0
        }
    }
    /// The epoch ends although successors are still to be answered.
    SuccessorsIgnored in "forgets-once" {
        fn vacate_is_over(doubt_before: bool, _: usize) -> bool {
            !doubt_before
        }
    }
    /// Whatever is in doubt when an epoch ends counts as unreachable.
    AllUnreachable in "last-epoch-shed" {
        fn unreachable(_: bool, _: bool) -> bool {
            true
        }
    }
    /// What lies behind a vacated slot stays in doubt.
    NothingUnreachable in "refused" {
        fn unreachable(_: bool, _: bool) -> bool {
            false
        }
    }
    /// A 10 teaches nothing about the batches behind.
    NoCut in "shrink" {
        fn cut_size(_: usize) -> Option<usize> {
            None
        }
    }
    /// All records of a refused batch fail.
    AllFail in "bad-record" {
        fn record_fails(_: Class, _: u32, _: &[u32], _: u32) -> bool {
            true
        }
    }
    /// A single 45 at the tail means that the state is gone.
    OnePassIsEnough in "one-45" {
        fn after_pass(_: Stage, refused_for_good: bool) -> AfterPass {
            if refused_for_good { AfterPass::ConfirmStuck } else { AfterPass::StateGone }
        }
    }
    /// A leader that answers 45 is asked for ever.
    PassesForEver in "unclean" {
        fn after_pass(_: Stage, refused_for_good: bool) -> AfterPass {
            if refused_for_good { AfterPass::ConfirmStuck } else { AfterPass::Confirm }
        }
    }
    /// Data deleted on purpose is an alarm.
    AlwaysAlarmed in "purge-old" {
        fn loss(_: LossFacts) -> Loss {
            Loss::OfData
        }
    }
    /// Lost data is no alarm.
    NeverAlarmed in "unclean" {
        fn loss(_: LossFacts) -> Loss {
            Loss::Harmless
        }
    }
    /// A conflict of identity never stops the lane.
    NeverStops in "taken-over" {
        fn conflict_stops(_: u32) -> bool {
            false
        }
    }
    /// The first conflict of identity stops the lane.
    StopsAtOnce in "one-conflict" {
        fn conflict_stops(_: u32) -> bool {
            true
        }
    }
    /// A record is due only after its deadline.
    ExpiresLate in "calm" {
        fn expired(now: Instant, deadline: Instant) -> bool {
            deadline < now
        }
    }
    /// A batch is offered although a record is due.
    OffersDue in "deadline" {
        fn may_offer_before_poll(_: bool, undrained: bool) -> bool {
            !undrained
        }
    }
    /// A batch is offered although verdicts are waiting to be told.
    OffersUndrained in "deadline" {
        fn may_offer_before_poll(due: bool, _: bool) -> bool {
            !due
        }
    }
    /// A batch waits for more records until its deadline.
    LingersTooLong in "linger" {
        fn due(born: Instant, linger: Span, _: Instant) -> Instant {
            born + linger
        }
    }
    /// At its deadline whatever was offered is reported not delivered.
    DeadlineRefuses in "deadline" {
        fn verdict_at_deadline(_: Standing, _: usize) -> Option<Proof> {
            Some(Proof::Refused)
        }
    }
    /// At its deadline whatever was offered is reported unknown, and stays so.
    DeadlineDoubts in "deadline" {
        fn verdict_at_deadline(_: Standing, _: usize) -> Option<Proof> {
            None
        }
        also fn vacates(_: Standing, _: usize, _: bool) -> bool {
            false
        }
    }
    /// What was given up ends although an answer may still come.
    EndsTooSoon in "last-epoch-shed" {
        fn given_up_ends(_: u32, standing: Standing) -> Option<GivenUpEnd> {
            Honest::given_up_ends(0, standing)
        }
    }
    /// What was given up in doubt ends as not delivered.
    GivenUpIsRefused in "last-epoch-shed" {
        fn given_up_ends(waiting: u32, _: Standing) -> Option<GivenUpEnd> {
            Honest::given_up_ends(waiting, Standing::Refused)
        }
    }
    /// There is no time between attempts.
    NoBackoff in "patience" {
        fn backoff(_: u32, _: Span, _: Span) -> Span {
            Span::ZERO
        }
    }
    /// Any word of a leader allows a retry at once.
    AnyLeaderRetries in "patience-failover" {
        fn retries_at_once(_: LeaderEpoch, _: LeaderEpoch) -> bool {
            true
        }
    }
    /// A stuck head is never abandoned.
    NeverAbandons in "stuck-head" {
        fn abandons_stuck(_: bool, _: bool, _: u32) -> bool {
            false
        }
    }
    /// A replacement may have any size.
    AnyCut in "revoke-two" {
        fn cut_is_legal(facts: &CutFacts<'_>) -> bool {
            facts.count > 0
        }
    }
    /// A replacement may have the size of what it contests.
    SameSize in "revoke-two" {
        fn cut_is_legal(facts: &CutFacts<'_>) -> bool {
            Honest::cut_is_legal(&CutFacts { contested_count: 0, ..*facts })
        }
    }
    /// A replacement may end where another batch begins.
    EndsAtNext in "revoke-two" {
        fn cut_is_legal(facts: &CutFacts<'_>) -> bool {
            Honest::cut_is_legal(&CutFacts { firsts: &[], ..*facts })
        }
    }
    /// What has its verdict goes into the replacement.
    TakesTheTold in "revoke-two" {
        fn goes_into_replacement(_: bool) -> bool {
            true
        }
    }
    /// The 0 of a replacement always tells that what it contested is not written.
    TakenIsProof in "revoke-aging" {
        fn conclusive(_: &ConclusionFacts) -> bool {
            true
        }
    }
    /// The 0 of a contested batch always tells that its replacement is not written.
    ContestedIsProof in "revoke-purge" {
        fn conclusive(facts: &ConclusionFacts) -> bool {
            facts.written == Contender::Contested || Honest::conclusive(facts)
        }
    }
    /// The 0 of a replacement tells nothing.
    TakenTellsNothing in "revoke-two" {
        fn conclusive(_: &ConclusionFacts) -> bool {
            false
        }
    }
    /// A replacement in doubt is given back.
    GivesBackInDoubt in "revoke-two" {
        fn replacement_not_written(_: Standing, _: usize, _: bool) -> bool {
            true
        }
    }
    /// A replacement is never given back.
    NeverGivesBack in "revoke-two" {
        fn replacement_not_written(_: Standing, _: usize, _: bool) -> bool {
            false
        }
    }
    /// A stuck head is abandoned while its caller still waits.
    AbandonsAtOnce in "stuck" {
        fn abandons_stuck(_: bool, _: bool, _: u32) -> bool {
            true
        }
    }
}
