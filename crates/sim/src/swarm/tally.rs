//! Rules that count how often they are asked, and what they answer.
//!
//! The machine calls its rules as functions without a receiver, so what they count lives beside the
//! thread that runs the seed. Nothing that is decided depends on it.

use std::cell::{Cell, RefCell};
use std::marker::PhantomData;

use candor_core::rules::{
    AfterPass, AfterReplacement, Class, ConclusionFacts, CutFacts, DoubtFacts, DuplicateFacts,
    DuplicateMeans, Fate, GateFacts, GivenUpEnd, LeaderChange, LeaderWord, Loss, LossFacts, Mark,
    MemoryFacts, NextIdentity, OffsetFacts, ProofFacts, RevokeFacts, Rules, SettledAs, Stage,
    Standing, StopCause,
};
use candor_core::{
    HandedOver, Instant, LeaderEpoch, Offset, PartitionResponse, ProducerEpoch, Proof, Sequence,
    Span,
};

use super::rows::{Rule, RuleCounts};

thread_local! {
    static COUNTS: RefCell<[u64; Rule::COUNT]> = const { RefCell::new([0; Rule::COUNT]) };
    static CLIMB: Cell<Option<i16>> = const { Cell::new(None) };
    static ORIGIN: Cell<i32> = const { Cell::new(0) };
    /// A batch may be contested, and no cut was legal so far.
    static UNCUT: Cell<bool> = const { Cell::new(false) };
}

/// Starts to count anew. `climb`: the second epoch of every lane is this one, near the last. `origin`:
/// the sequence that epochs start with, here and at the brokers.
pub(super) fn begin(climb: Option<i16>, origin: i32) {
    COUNTS.with(|counts| *counts.borrow_mut() = [0; Rule::COUNT]);
    CLIMB.set(climb);
    ORIGIN.set(origin);
    UNCUT.set(false);
}

/// What was counted.
pub(super) fn end() -> RuleCounts {
    CLIMB.set(None);
    ORIGIN.set(0);
    COUNTS.with(|counts| RuleCounts::of(*counts.borrow()))
}

/// Counts one row.
pub(super) fn count(rule: Rule) {
    COUNTS.with(|counts| {
        if let Some(count) = counts.borrow_mut().get_mut(rule as usize) {
            *count += 1;
        }
    });
}

fn either(answer: bool, yes: Rule, no: Rule) -> bool {
    count(if answer { yes } else { no });
    answer
}

fn if_so(answer: bool, yes: Rule) -> bool {
    if answer {
        count(yes);
    }
    answer
}

fn unless(answer: bool, no: Rule) -> bool {
    if !answer {
        count(no);
    }
    answer
}

/// Rules `R` that count what they answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Counting<R>(PhantomData<R>);

impl<R: Rules> Rules for Counting<R> {
    fn class(code: i16) -> Class {
        R::class(code)
    }

    fn fate(response: &PartitionResponse, trust_base_offset: bool) -> Fate {
        let fate = R::fate(response, trust_base_offset);
        count(match fate {
            Fate::Appended => Rule::FateAppended,
            Fate::NotAppended => Rule::FateRefused,
            Fate::Doubtful => Rule::FateDoubtful,
        });
        fate
    }

    fn duplicate(facts: DuplicateFacts) -> DuplicateMeans {
        let means = R::duplicate(facts);
        match means {
            DuplicateMeans::Appended => count(Rule::DuplicateAppended),
            DuplicateMeans::Conflict => count(Rule::DuplicateConflict),
            DuplicateMeans::OutOfOrder => {}
        }
        means
    }

    fn ended(handed: HandedOver) -> Fate {
        count(match handed {
            HandedOver::Partly => Rule::EndedPartly,
            HandedOver::PerhapsWhole => Rule::EndedWhole,
        });
        R::ended(handed)
    }

    fn standing(offered: u32, refused: u32) -> Standing {
        let standing = R::standing(offered, refused);
        count(match standing {
            Standing::Refused => Rule::StandingRefused,
            Standing::InDoubt => Rule::StandingInDoubt,
        });
        standing
    }

    fn corrupt_is_permanent(times_in_a_row: u32) -> bool {
        if_so(R::corrupt_is_permanent(times_in_a_row), Rule::CorruptThrice)
    }

    fn first_sequence() -> Sequence {
        // What the rules take for the first, counted from where this run's brokers begin.
        let first = i64::from(R::first_sequence().get()) + i64::from(ORIGIN.get());
        Sequence::ZERO.after(u32::try_from(first).unwrap_or(0))
    }

    fn next_sequence(first: Sequence, count: u32) -> Sequence {
        R::next_sequence(first, count)
    }

    fn span_has_room(span: usize) -> bool {
        unless(R::span_has_room(span), Rule::SpanFull)
    }

    fn opens_gate(facts: GateFacts) -> bool {
        either(R::opens_gate(facts), Rule::GateOpens, Rule::GateStays)
    }

    fn closes_gate(appended: bool, orphaned: bool) -> bool {
        if_so(R::closes_gate(appended, orphaned), Rule::GateCloses)
    }

    fn may_offer(gate_open: bool, open_attempts: usize) -> bool {
        unless(R::may_offer(gate_open, open_attempts), Rule::GateHolds)
    }

    fn pass_goes_on(mark: Mark) -> bool {
        either(R::pass_goes_on(mark), Rule::PassGoesOn, Rule::PassWaits)
    }

    fn orphans(change: LeaderChange) -> bool {
        let orphans = R::orphans(change);
        match change {
            LeaderChange::None => {}
            LeaderChange::Route => count(Rule::OrphanedByRoute),
            LeaderChange::Epoch => count(Rule::OrphanedByEpoch),
        }
        orphans
    }

    fn counts_in_pass(offered_in_this_pass: bool, orphaned: bool) -> bool {
        unless(R::counts_in_pass(offered_in_this_pass, orphaned), Rule::LateIsNoPass)
    }

    fn next_identity(epoch: ProducerEpoch, left_in_doubt: bool) -> NextIdentity {
        let next = match climb(epoch) {
            Some(far) => NextIdentity::Epoch(far),
            None => R::next_identity(epoch, left_in_doubt),
        };
        count(match next {
            NextIdentity::Epoch(_) => Rule::NextEpoch,
            NextIdentity::Fresh => Rule::FreshId,
        });
        next
    }

    fn epoch_is_used_up(epoch: ProducerEpoch, acknowledged: bool) -> bool {
        if_so(R::epoch_is_used_up(epoch, acknowledged), Rule::FenceOnly)
    }

    fn offsets_agree(facts: OffsetFacts) -> bool {
        either(R::offsets_agree(facts), Rule::OffsetsAgree, Rule::OffsetsDisagree)
    }

    fn contradicts(settled: SettledAs, base: Option<Offset>) -> bool {
        if_so(R::contradicts(settled, base), Rule::OffsetsDisagree)
    }

    fn recreation_lifts_stop(cause: StopCause) -> bool {
        R::recreation_lifts_stop(cause)
    }

    fn touches_counters(same_identity: bool) -> bool {
        unless(R::touches_counters(same_identity), Rule::OlderIdentity)
    }

    fn shows_timestamp_type(attempts_of_batch: u32) -> bool {
        R::shows_timestamp_type(attempts_of_batch)
    }

    fn resend_to_new_topic() -> bool {
        unless(R::resend_to_new_topic(), Rule::NotToNewTopic)
    }

    fn known(facts: &MemoryFacts) -> bool {
        either(R::known(facts), Rule::Known, Rule::NotKnown)
    }

    fn resendable(facts: &DoubtFacts) -> bool {
        either(R::resendable(facts), Rule::Resendable, Rule::NotResendable)
    }

    fn follows_leader(highest: LeaderEpoch, offered: LeaderEpoch) -> bool {
        unless(R::follows_leader(highest, offered), Rule::OlderLeader)
    }

    fn may_still_be_proved(passed_by: bool) -> bool {
        unless(R::may_still_be_proved(passed_by), Rule::PassedBy)
    }

    fn proves(facts: &ProofFacts<'_>) -> bool {
        either(R::proves(facts), Rule::Proved, Rule::NotProved)
    }

    fn vacates(standing: Standing, open_attempts: usize, resent_unchanged: bool) -> bool {
        if_so(R::vacates(standing, open_attempts, resent_unchanged), Rule::Vacates)
    }

    fn vacated_with(standing: Standing, open_attempts: usize) -> bool {
        if_so(R::vacated_with(standing, open_attempts), Rule::VacatedWith)
    }

    fn vacate_is_over(doubt_before: bool, successors_open: usize) -> bool {
        let over = R::vacate_is_over(doubt_before, successors_open);
        either(over, Rule::VacateOver, Rule::VacateWaits)
    }

    fn unreachable(behind_vacated: bool, known: bool) -> bool {
        if_so(R::unreachable(behind_vacated, known), Rule::Unreachable)
    }

    fn cut_size(largest_child: usize) -> Option<usize> {
        count(Rule::CutSize);
        R::cut_size(largest_child)
    }

    fn record_fails(class: Class, records: u32, named: &[u32], index: u32) -> bool {
        let fails = R::record_fails(class, records, named, index);
        either(fails, Rule::RecordFails, Rule::RecordGoesOn)
    }

    fn after_pass(stage: Stage, refused_for_good: bool) -> AfterPass {
        let then = R::after_pass(stage, refused_for_good);
        count(match then {
            AfterPass::Confirm => Rule::Confirm,
            AfterPass::ConfirmStuck => Rule::ConfirmStuck,
            AfterPass::StateGone => Rule::StateGone,
        });
        then
    }

    fn loss(facts: LossFacts) -> Loss {
        let loss = R::loss(facts);
        count(match loss {
            Loss::Harmless => Rule::LossHarmless,
            Loss::OfState => Rule::LossOfState,
            Loss::OfData => Rule::LossOfData,
        });
        loss
    }

    fn conflict_stops(conflicts_in_a_row: u32) -> bool {
        either(R::conflict_stops(conflicts_in_a_row), Rule::ConflictStops, Rule::ConflictOnce)
    }

    fn expired(now: Instant, deadline: Instant) -> bool {
        if_so(R::expired(now, deadline), Rule::Expired)
    }

    fn may_offer_before_poll(due: bool, undrained: bool) -> bool {
        unless(R::may_offer_before_poll(due, undrained), Rule::PollFirst)
    }

    fn due(born: Instant, linger: Span, deadline: Instant) -> Instant {
        count(Rule::LingerOver);
        R::due(born, linger, deadline)
    }

    fn verdict_at_deadline(standing: Standing, open_attempts: usize) -> Option<Proof> {
        let verdict = R::verdict_at_deadline(standing, open_attempts);
        let not_delivered = verdict.is_some();
        either(not_delivered, Rule::NotDeliveredAtDeadline, Rule::UnknownAtDeadline);
        verdict
    }

    fn given_up_ends(waiting: u32, standing: Standing) -> Option<GivenUpEnd> {
        R::given_up_ends(waiting, standing)
    }

    fn backoff(failures: u32, base: Span, max: Span) -> Span {
        count(Rule::Backoff);
        R::backoff(failures, base, max)
    }

    fn retries_at_once(highest: LeaderEpoch, offered: LeaderEpoch) -> bool {
        either(R::retries_at_once(highest, offered), Rule::AtOnce, Rule::NotAtOnce)
    }

    fn abandons_stuck(all_told: bool, record_waits_behind: bool, times_in_a_row: u32) -> bool {
        let abandons = R::abandons_stuck(all_told, record_waits_behind, times_in_a_row);
        either(abandons, Rule::StuckAbandoned, Rule::StuckWaits)
    }

    fn unknown_share(memory: usize) -> usize {
        R::unknown_share(memory)
    }

    fn produce_timeout(request_timeout: Span, smallest_remaining: Option<Span>) -> Span {
        let timeout = R::produce_timeout(request_timeout, smallest_remaining);
        let short = timeout < request_timeout.half();
        either(short, Rule::TimeoutShort, Rule::TimeoutHalf);
        timeout
    }

    fn may_revoke(facts: &RevokeFacts) -> bool {
        // The cuts of the batch that was asked for before were all asked for by now (C3).
        let may = R::may_revoke(facts);
        if_so(UNCUT.replace(may), Rule::NoLegalCut);
        either(may, Rule::MayRevoke, Rule::MayNotRevoke)
    }

    fn cut_is_legal(facts: &CutFacts<'_>) -> bool {
        let legal = R::cut_is_legal(facts);
        if legal {
            UNCUT.set(false);
        } else if facts.count == facts.contested_count {
            count(Rule::SameSize);
        } else if facts.other_contents.contains(&facts.count) {
            count(Rule::OtherContent);
        } else {
            count(Rule::OpensTheWay);
        }
        legal
    }

    fn goes_into_replacement(has_verdict: bool) -> bool {
        either(R::goes_into_replacement(has_verdict), Rule::GoesAlong, Rule::StaysOut)
    }

    fn conclusive(facts: &ConclusionFacts) -> bool {
        either(R::conclusive(facts), Rule::Conclusive, Rule::Inconclusive)
    }

    fn after_replacement(class: Class, permanent: bool) -> AfterReplacement {
        let then = R::after_replacement(class, permanent);
        count(match then {
            AfterReplacement::AskContested => Rule::AskContested,
            AfterReplacement::AskAgain => Rule::AskAgain,
        });
        then
    }

    fn replacement_not_written(
        standing: Standing,
        open_attempts: usize,
        contested_written: bool,
    ) -> bool {
        let over = R::replacement_not_written(standing, open_attempts, contested_written);
        if_so(over, Rule::ReplacementOver)
    }

    fn window_has_room(unsent: usize, write_window: usize) -> bool {
        unless(R::window_has_room(unsent, write_window), Rule::WindowFull)
    }

    fn may_repeat_in_request() -> bool {
        R::may_repeat_in_request()
    }

    fn goes_alone(losses: u32) -> bool {
        R::goes_alone(losses)
    }

    fn is_another_topic(same_id: bool) -> bool {
        R::is_another_topic(same_id)
    }

    fn follows_hint(highest: LeaderEpoch, hinted: LeaderEpoch, last: LeaderWord) -> bool {
        R::follows_hint(highest, hinted, last)
    }

    fn insistence(others_failed_since: bool, longest_backoff: Span, age: Span) -> Span {
        R::insistence(others_failed_since, longest_backoff, age)
    }

    fn two_answers_count(brokers_differ: bool, apart: Span, age: Span) -> bool {
        R::two_answers_count(brokers_differ, apart, age)
    }

    fn answer_belongs(asked: i32, answered: i32) -> bool {
        R::answer_belongs(asked, answered)
    }

    fn bytes_are_out(end: u64, sent: u64) -> bool {
        R::bytes_are_out(end, sent)
    }

    fn may_speak(now: Instant, until: Instant) -> bool {
        R::may_speak(now, until)
    }

    fn request_expires(asked: Instant, request_timeout: Span) -> Instant {
        R::request_expires(asked, request_timeout)
    }

    fn end_is_failure(open_requests: usize, up_for: Span, longest_backoff: Span) -> bool {
        R::end_is_failure(open_requests, up_for, longest_backoff)
    }
}

/// One step to the last epochs: any epoch above the one before is as good as the next (S8).
fn climb(epoch: ProducerEpoch) -> Option<ProducerEpoch> {
    let far = ProducerEpoch::new(CLIMB.get()?)?;
    (far > epoch).then_some(far)
}
