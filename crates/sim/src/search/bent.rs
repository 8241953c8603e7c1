//! Rules that are chosen when a search starts instead of when it is compiled: one lane for all
//! planted bugs, so that seventy of them do not mean seventy copies of the machine.

use std::cell::Cell;

use candor_core::rules::{
    AfterPass, AfterReplacement, Class, ConclusionFacts, CutFacts, DoubtFacts, DuplicateFacts,
    DuplicateMeans, Fate, GateFacts, GivenUpEnd, Honest, LeaderChange, LeaderWord, Loss, LossFacts,
    Mark, MemoryFacts, NextIdentity, OffsetFacts, ProofFacts, RevokeFacts, Rules, SettledAs, Stage,
    Standing, StopCause,
};
use candor_core::verdict::Proof;
use candor_core::{HandedOver, Instant, LeaderEpoch, Offset, PartitionResponse, ProducerEpoch};
use candor_core::{Sequence, Span};

/// Declares the table of decisions, and the rules that look them up in it.
macro_rules! decisions {
    ($(fn $name:ident($($argument:ident: $type:ty),*) -> $result:ty;)*) => {
        /// The decisions of some rules, as a value.
        #[derive(Clone, Copy, Debug)]
        pub(crate) struct Decisions {
            $($name: fn($($type),*) -> $result,)*
        }

        impl Decisions {
            /// Those of `R`.
            pub(crate) const fn of<R: Rules>() -> Self {
                Self { $($name: R::$name,)* }
            }
        }

        impl Rules for Bent {
            $(fn $name($($argument: $type),*) -> $result {
                (IN_FORCE.get().$name)($($argument),*)
            })*
        }
    };
}

thread_local! {
    static IN_FORCE: Cell<Decisions> = const { Cell::new(Decisions::of::<Honest>()) };
}

/// The rules in force on this thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Bent;

impl Bent {
    /// Does something with these decisions in force.
    pub(crate) fn under<T>(decisions: Decisions, task: impl FnOnce() -> T) -> T {
        let before = IN_FORCE.replace(decisions);
        let result = task();
        IN_FORCE.set(before);
        result
    }
}

decisions! {
    fn class(code: i16) -> Class;
    fn fate(response: &PartitionResponse, trust: bool) -> Fate;
    fn duplicate(facts: DuplicateFacts) -> DuplicateMeans;
    fn ended(handed: HandedOver) -> Fate;
    fn standing(offered: u32, refused: u32) -> Standing;
    fn corrupt_is_permanent(times: u32) -> bool;
    fn first_sequence() -> Sequence;
    fn next_sequence(first: Sequence, count: u32) -> Sequence;
    fn span_has_room(span: usize) -> bool;
    fn opens_gate(facts: GateFacts) -> bool;
    fn closes_gate(appended: bool, orphaned: bool) -> bool;
    fn may_offer(open: bool, attempts: usize) -> bool;
    fn pass_goes_on(mark: Mark) -> bool;
    fn orphans(change: LeaderChange) -> bool;
    fn counts_in_pass(here: bool, orphaned: bool) -> bool;
    fn next_identity(epoch: ProducerEpoch, doubt: bool) -> NextIdentity;
    fn epoch_is_used_up(epoch: ProducerEpoch, acknowledged: bool) -> bool;
    fn offsets_agree(facts: OffsetFacts) -> bool;
    fn contradicts(settled: SettledAs, base: Option<Offset>) -> bool;
    fn recreation_lifts_stop(cause: StopCause) -> bool;
    fn touches_counters(same: bool) -> bool;
    fn shows_timestamp_type(attempts: u32) -> bool;
    fn resend_to_new_topic() -> bool;
    fn known(facts: &MemoryFacts) -> bool;
    fn resendable(facts: &DoubtFacts) -> bool;
    fn follows_leader(highest: LeaderEpoch, offered: LeaderEpoch) -> bool;
    fn may_still_be_proved(passed: bool) -> bool;
    fn proves(facts: &ProofFacts<'_>) -> bool;
    fn vacates(standing: Standing, open: usize, unchanged: bool) -> bool;
    fn vacated_with(standing: Standing, open: usize) -> bool;
    fn vacate_is_over(doubt: bool, open: usize) -> bool;
    fn unreachable(behind: bool, known: bool) -> bool;
    fn cut_size(largest: usize) -> Option<usize>;
    fn record_fails(class: Class, records: u32, named: &[u32], index: u32) -> bool;
    fn after_pass(stage: Stage, refused: bool) -> AfterPass;
    fn loss(facts: LossFacts) -> Loss;
    fn conflict_stops(times: u32) -> bool;
    fn expired(now: Instant, deadline: Instant) -> bool;
    fn may_offer_before_poll(due: bool, undrained: bool) -> bool;
    fn due(born: Instant, linger: Span, deadline: Instant) -> Instant;
    fn verdict_at_deadline(standing: Standing, open: usize) -> Option<Proof>;
    fn given_up_ends(waiting: u32, standing: Standing) -> Option<GivenUpEnd>;
    fn backoff(failures: u32, base: Span, max: Span) -> Span;
    fn retries_at_once(highest: LeaderEpoch, offered: LeaderEpoch) -> bool;
    fn abandons_stuck(told: bool, waits: bool, times: u32) -> bool;
    fn may_revoke(facts: &RevokeFacts) -> bool;
    fn cut_is_legal(facts: &CutFacts<'_>) -> bool;
    fn goes_into_replacement(told: bool) -> bool;
    fn conclusive(facts: &ConclusionFacts) -> bool;
    fn after_replacement(class: Class, permanent: bool) -> AfterReplacement;
    fn replacement_not_written(standing: Standing, open: usize, written: bool) -> bool;
    fn unknown_share(memory: usize) -> usize;
    fn produce_timeout(request: Span, left: Option<Span>) -> Span;
    fn window_has_room(unsent: usize, window: usize) -> bool;
    fn may_repeat_in_request() -> bool;
    fn goes_alone(losses: u32) -> bool;
    fn is_another_topic(same: bool) -> bool;
    fn follows_hint(highest: LeaderEpoch, hinted: LeaderEpoch, last: LeaderWord) -> bool;
    fn two_answers_count(differ: bool, apart: Span, age: Span) -> bool;
    fn insistence(others_failed_since: bool, longest: Span, age: Span) -> Span;
    fn answer_belongs(asked: i32, answered: i32) -> bool;
    fn bytes_are_out(end: u64, sent: u64) -> bool;
    fn may_speak(now: Instant, until: Instant) -> bool;
    fn request_expires(asked: Instant, timeout: Span) -> Instant;
    fn end_is_failure(open: usize, up_for: Span, longest: Span) -> bool;
}
