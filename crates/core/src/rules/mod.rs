//! Every decision that the machine takes, one small pure function each.
//!
//! [`Honest`] overrides nothing and is what ships. A check plants a bug by overriding one method
//! in a type of its own: each method is inverted at least once, and each inversion is found.
//! Ids such as S6 or V2 are those of `docs/rules.md`.
//!
//! ```
//! use candor_core::rules::{Fate, Honest, Rules};
//! use candor_core::PartitionResponse;
//! // NOT_LEADER_OR_FOLLOWER may come after the append: it proves nothing (H1).
//! assert_eq!(Honest::fate(&PartitionResponse::error(6), false), Fate::Doubtful);
//! assert_eq!(Honest::fate(&PartitionResponse::error(19), false), Fate::NotAppended);
//! ```

mod facts;

pub use facts::*;

use core::fmt::Debug;

use crate::event::{HandedOver, PartitionResponse};
use crate::ids::{LeaderEpoch, Offset, ProducerEpoch, Sequence};
use crate::time::{Instant, Span};
use crate::verdict::Proof;

/// The decisions. See the [module](self) for how to use and invert them.
///
/// ```
/// use candor_core::rules::Rules;
/// /// A machine that forgets that the broker remembers five batches only.
/// #[derive(Clone, Copy, Debug, PartialEq, Eq)]
/// struct WideSpan;
/// impl Rules for WideSpan {
///     fn span_has_room(_: usize) -> bool { true }
/// }
/// assert!(WideSpan::span_has_room(5) && !candor_core::rules::Honest::span_has_room(5));
/// ```
pub trait Rules: Clone + Copy + Debug + PartialEq + Eq + 'static {
    // ---- 1. Attempts and batches -------------------------------------------------------------

    /// Which kind of error code this is (rules 1). What is not listed is doubtful.
    fn class(code: i16) -> Class {
        match code {
            0 => Class::None,
            2 => Class::Corrupt,
            5 | 8 | 9 | 14 | 15 | 16 | 19 | 72 | 74 | 89 | 100 => Class::Retriable,
            10 | 18 => Class::TooLarge,
            32 | 87 => Class::InvalidRecords,
            17 | 21 | 29 | 31 | 35 | 42 | 43 | 44 | 76 => Class::Permanent,
            45 => Class::OutOfOrder,
            46 => Class::Duplicate,
            47 | 90 => Class::Fenced,
            59 => Class::UnknownProducer,
            _ => Class::Doubtful,
        }
    }

    /// H1: what an answer proves of its own attempt. 46 is decided by [`duplicate`](Self::duplicate).
    fn fate(response: &PartitionResponse, trust_base_offset: bool) -> Fate {
        match Self::class(response.error_code) {
            Class::None => Fate::Appended,
            Class::Doubtful => {
                let before_append = matches!(response.error_code, 3 | 6);
                if trust_base_offset && before_append && response.base_offset == -1 {
                    Fate::NotAppended
                } else {
                    Fate::Doubtful
                }
            }
            Class::Corrupt
            | Class::Retriable
            | Class::TooLarge
            | Class::InvalidRecords
            | Class::Permanent
            | Class::OutOfOrder
            | Class::Duplicate
            | Class::Fenced
            | Class::UnknownProducer => Fate::NotAppended,
        }
    }

    /// What a 46 means (rules 1, K7).
    fn duplicate(facts: DuplicateFacts) -> DuplicateMeans {
        if facts.contested {
            DuplicateMeans::OutOfOrder
        } else if facts.earlier_not_refused {
            DuplicateMeans::Appended
        } else if facts.first_attempt {
            DuplicateMeans::Conflict
        } else {
            DuplicateMeans::OutOfOrder
        }
    }

    /// A5: the fate of an attempt whose connection is over without an answer.
    fn ended(handed: HandedOver) -> Fate {
        match handed {
            HandedOver::Partly => Fate::NotAppended,
            HandedOver::PerhapsWhole => Fate::Doubtful,
        }
    }

    /// Doubt is sticky: refused only if every attempt was refused, in doubt otherwise.
    fn standing(offered: u32, refused: u32) -> Standing {
        if offered == refused { Standing::Refused } else { Standing::InDoubt }
    }

    /// CORRUPT_MESSAGE is worth three attempts.
    fn corrupt_is_permanent(times_in_a_row: u32) -> bool {
        times_in_a_row >= 3
    }

    // ---- 2. Sequences, gate, memory ----------------------------------------------------------

    /// S1: the sequence of the first batch of an identity.
    fn first_sequence() -> Sequence {
        Sequence::ZERO
    }

    /// S1, S14: the sequence behind a batch.
    fn next_sequence(first: Sequence, count: u32) -> Sequence {
        first.after(count)
    }

    /// S5: the broker remembers five batches, so at most five are unsettled or stand between.
    fn span_has_room(span: usize) -> bool {
        span < 5
    }

    /// S6, S7: whether a 0 opens the gate.
    fn opens_gate(facts: GateFacts) -> bool {
        facts.same_route && facts.same_leader_epoch && facts.same_identity && facts.known
    }

    /// S6, S7: whether the end of an attempt closes the gate.
    fn closes_gate(appended: bool, orphaned: bool) -> bool {
        !appended && !orphaned
    }

    /// S6: whether something may be offered while `open_attempts` are open on the route.
    fn may_offer(gate_open: bool, open_attempts: usize) -> bool {
        gate_open || open_attempts == 0
    }

    /// S6: what a pass does with a batch, from what the batch was answered in it.
    fn pass_goes_on(mark: Mark) -> bool {
        match mark {
            Mark::Unasked => false,
            Mark::OutOfOrder | Mark::UnknownProducer | Mark::Refused { .. } => true,
        }
    }

    /// S7: whether attempts made before are orphaned by this change.
    fn orphans(change: LeaderChange) -> bool {
        match change {
            LeaderChange::None => false,
            LeaderChange::Route | LeaderChange::Epoch => true,
        }
    }

    /// S6, S7: whether an answer counts for K, L4 and the serial case of S22.
    fn counts_in_pass(offered_in_this_pass: bool, orphaned: bool) -> bool {
        offered_in_this_pass && !orphaned
    }

    /// S8, S10: which identity follows.
    fn next_identity(epoch: ProducerEpoch, left_in_doubt: bool) -> NextIdentity {
        match epoch.next() {
            Some(next) if next.get() < i16::MAX || left_in_doubt => NextIdentity::Epoch(next),
            Some(_) | None => NextIdentity::Fresh,
        }
    }

    /// S10: 32767 is a fence only; nothing else is offered under it.
    fn epoch_is_used_up(epoch: ProducerEpoch, acknowledged: bool) -> bool {
        epoch.get() == i16::MAX && acknowledged
    }

    /// S13: offsets of successive written batches strictly increase and do not overlap; what was
    /// concluded without an offset takes room as well.
    fn offsets_agree(facts: OffsetFacts) -> bool {
        let Bounds { previous_end, next_base, room_before, room_behind } = facts.bounds;
        let number = |offset: Offset| offset.get().unsigned_abs();
        let first_free = previous_end.map_or(0, number).saturating_add(room_before);
        let end = number(facts.base.after(facts.count)).saturating_add(room_behind);
        first_free <= number(facts.base) && next_base.is_none_or(|next| end <= number(next))
    }

    /// S13: whether a 0 for a batch that is settled contradicts what was concluded.
    fn contradicts(settled: SettledAs, base: Option<Offset>) -> bool {
        match settled {
            SettledAs::NotWritten => true,
            SettledAs::Written { base: known } => base.is_some_and(|base| base != known),
            SettledAs::Concluded { bounds, count } => {
                base.is_some_and(|base| !Self::offsets_agree(OffsetFacts { bounds, base, count }))
            }
            SettledAs::Forgotten => false,
        }
    }

    /// S13, S18: whether a lane that stopped goes on where its topic was made anew. A contradiction
    /// is one with the log that is gone. The other stops are no statement about that log only: a
    /// second user of our id stays one (K7), and who wants to stop at a loss is to look at it.
    fn recreation_lifts_stop(cause: StopCause) -> bool {
        match cause {
            StopCause::Contradiction => true,
            StopCause::DataLoss | StopCause::Conflict => false,
        }
    }

    /// S15: whether an answer may touch the counters of the identity in use.
    fn touches_counters(same_identity: bool) -> bool {
        same_identity
    }

    /// T22: a topic's timestamp type shows in fresh successes only, not in deduplicated ones.
    fn shows_timestamp_type(attempts_of_batch: u32) -> bool {
        attempts_of_batch == 1
    }

    /// S18: whether a batch in doubt may be resent after the topic was made anew.
    fn resend_to_new_topic() -> bool {
        false
    }

    /// S20: whether the broker's memory of us may be relied upon for gate, S22 and V3.
    fn known(facts: &MemoryFacts) -> bool {
        let Some(last_zero) = facts.last_zero else { return false };
        let recent = facts.now.since(last_zero) < facts.state_ttl;
        recent
            && timestamp_is_remembered(facts.now, facts.newest_timestamp, facts)
            && facts.doubt_timestamp.is_none_or(|it| timestamp_is_remembered(facts.now, it, facts))
            && log_reaches_back(facts.last_acknowledged, facts.log_start)
    }

    /// S20: whether what is in doubt may be resent.
    fn resendable(facts: &DoubtFacts) -> bool {
        facts.beyond_memory
            || (facts.memory.now.since(facts.first_offer) < facts.memory.state_ttl
                && timestamp_is_remembered(facts.memory.now, facts.max_timestamp, &facts.memory)
                && facts
                    .written_behind
                    .is_none_or(|it| timestamp_is_remembered(facts.memory.now, it, &facts.memory))
                && !facts.log_start_moved_past)
    }

    /// S21: whether a leader with this epoch is followed.
    fn follows_leader(highest: LeaderEpoch, offered: LeaderEpoch) -> bool {
        offered >= highest
    }

    /// S22: whether a later 0 may prove a batch that an earlier one passed by unproved. It may
    /// not: what stands behind the batch, and not the batch, explains every answer since.
    fn may_still_be_proved(passed_by: bool) -> bool {
        !passed_by
    }

    /// S22: whether a 0 proves the unsettled batches before it.
    fn proves(facts: &ProofFacts<'_>) -> bool {
        if !facts.known || facts.vacated_between {
            return false;
        }
        let pipelined = facts.through_open_gate
            && facts.predecessors.iter().all(|p| p.behind_opener && p.attempt_before_on_route);
        let serial = facts.in_pass
            && facts.predecessors.iter().all(|p| {
                p.not_refused
                    && matches!(
                        p.mark,
                        Mark::OutOfOrder | Mark::Refused { behind_out_of_order: true }
                    )
            });
        let established = facts.predecessors.iter().all(|p| p.not_refused && p.behind_established);
        pipelined || serial || established
    }

    // ---- 3. Giving up a slot -----------------------------------------------------------------

    /// V1: whether a batch gives up its slot.
    fn vacates(standing: Standing, open_attempts: usize, resent_unchanged: bool) -> bool {
        standing == Standing::Refused && open_attempts == 0 && !resent_unchanged
    }

    /// V2: whether a predecessor of a vacated slot is vacated with it.
    fn vacated_with(standing: Standing, open_attempts: usize) -> bool {
        standing == Standing::Refused && open_attempts == 0
    }

    /// V2: whether a vacated epoch ends now.
    fn vacate_is_over(doubt_before: bool, successors_open: usize) -> bool {
        !doubt_before && successors_open == 0
    }

    /// V3: whether a batch in doubt behind a vacated slot counts as not written.
    fn unreachable(behind_vacated: bool, known: bool) -> bool {
        behind_vacated && known
    }

    /// V4: the size that new batches are cut to, from that of the children.
    fn cut_size(largest_child: usize) -> Option<usize> {
        Some(largest_child)
    }

    /// V1: which records of a batch fail with a permanent code; the others go on.
    fn record_fails(class: Class, records: u32, named: &[u32], index: u32) -> bool {
        match class {
            Class::TooLarge => records == 1,
            Class::InvalidRecords => named.is_empty() || named.contains(&index),
            Class::None
            | Class::Corrupt
            | Class::Retriable
            | Class::Permanent
            | Class::OutOfOrder
            | Class::Duplicate
            | Class::Fenced
            | Class::UnknownProducer
            | Class::Doubtful => true,
        }
    }

    // ---- 4. 45 and 59 decide nothing alone -----------------------------------------------------

    /// K3..K6, L4: what follows when everything unsettled was asked in a pass and no 0 came.
    fn after_pass(stage: Stage, refused_for_good: bool) -> AfterPass {
        match (refused_for_good, stage) {
            (true, Stage::First | Stage::Second) => AfterPass::ConfirmStuck,
            (false, Stage::First) => AfterPass::Confirm,
            (false, Stage::Second) => AfterPass::StateGone,
        }
    }

    /// K6: what the loss of the broker's state means. Where the broker may have forgotten us in
    /// good order (S20), it tells nothing about its log.
    fn loss(facts: LossFacts) -> Loss {
        let deleted_together = match (facts.log_start, facts.last_acknowledged) {
            (Some(start), Some(last)) => start > last,
            (Some(_), None) | (None, _) => false,
        };
        if facts.later_written || deleted_together {
            Loss::Harmless
        } else if facts.known {
            Loss::OfData
        } else {
            Loss::OfState
        }
    }

    /// K7: whether a conflict of identity stops the lane.
    fn conflict_stops(conflicts_in_a_row: u32) -> bool {
        conflicts_in_a_row >= 2
    }

    // ---- 5. Time -----------------------------------------------------------------------------

    /// D1: whether a record is due.
    fn expired(now: Instant, deadline: Instant) -> bool {
        deadline <= now
    }

    /// D1: whether anything may be offered while verdicts are due or undrained.
    fn may_offer_before_poll(due: bool, undrained: bool) -> bool {
        !due && !undrained
    }

    /// D2: when a batch is due that waits for one more record.
    fn due(born: Instant, linger: Span, deadline: Instant) -> Instant {
        (born + linger).min(born + deadline.since(born).half())
    }

    /// D3: the verdict on a record of an offered batch whose time is up; `None` is `Unknown`.
    fn verdict_at_deadline(standing: Standing, open_attempts: usize) -> Option<Proof> {
        match standing {
            Standing::Refused if open_attempts == 0 => Some(Proof::Refused),
            Standing::Refused | Standing::InDoubt => None,
        }
    }

    /// Rules 1: whether a given-up batch may end now; `None` while an answer may still come.
    fn given_up_ends(waiting: u32, standing: Standing) -> Option<GivenUpEnd> {
        match (waiting, standing) {
            (0, Standing::Refused) => Some(GivenUpEnd::NotDelivered),
            (0, Standing::InDoubt) => Some(GivenUpEnd::Never),
            (1.., Standing::Refused | Standing::InDoubt) => None,
        }
    }

    // ---- 6. Nobody is held hostage -------------------------------------------------------------

    /// L3: the time between two attempts, and before a broker is dialled, or metadata or a producer
    /// id is asked for, again; before jitter.
    fn backoff(failures: u32, base: Span, max: Span) -> Span {
        base.times(1 << failures.saturating_sub(1).min(32)).min(max)
    }

    /// L3: whether a change of leader allows one immediate retry.
    fn retries_at_once(highest: LeaderEpoch, offered: LeaderEpoch) -> bool {
        offered > highest
    }

    /// L4: whether a stuck head is abandoned, its leader being confirmed.
    fn abandons_stuck(all_told: bool, record_waits_behind: bool, times_in_a_row: u32) -> bool {
        all_told && (record_waits_behind || times_in_a_row >= 3)
    }

    /// L5: how many bytes reported unknowns may hold.
    fn unknown_share(memory: usize) -> usize {
        memory / 4
    }

    /// L9: the `timeout_ms` of a Produce request.
    fn produce_timeout(request_timeout: Span, smallest_remaining: Option<Span>) -> Span {
        let half = request_timeout.half();
        smallest_remaining.map_or(half, |left| half.min(left.max(Span::from_millis(100))))
    }

    // ---- 7. Contesting a slot ------------------------------------------------------------------

    /// C1: whether a batch in doubt may be contested.
    fn may_revoke(facts: &RevokeFacts) -> bool {
        let will_be_known = facts.gate_opened_before || facts.acknowledged || facts.first_of_epoch;
        facts.resendable && !facts.written_behind && facts.predecessors_passed && will_be_known
    }

    /// C2, S4: whether a replacement may have so many records. An exact match with the batch that
    /// it contests would be acknowledged as that batch; an end where another one begins would open
    /// the way for that one.
    fn cut_is_legal(facts: &CutFacts<'_>) -> bool {
        facts.count > 0
            && facts.count != facts.contested_count
            && !facts.firsts.contains(&facts.first.after(facts.count))
            && !facts.other_contents.contains(&facts.count)
    }

    /// C3: whether a record of a contested batch goes into the replacement.
    fn goes_into_replacement(has_verdict: bool) -> bool {
        !has_verdict
    }

    /// C1, C4: whether the 0 of one content of a contested slot tells that the others are not written:
    /// that of a replacement of what it contested, and that of what is contested of a replacement in
    /// doubt.
    fn conclusive(facts: &ConclusionFacts) -> bool {
        let reaches_back = match (facts.log_start, facts.last_acknowledged) {
            (Some(start), Some(last)) => start <= last,
            (Some(start), None) => facts.first_of_epoch && start.get() == 0,
            (None, _) => false,
        };
        facts.resendable && (facts.gate_opened_before || reaches_back)
    }

    /// C4, L4: what a definite code for a replacement leads to.
    fn after_replacement(class: Class, permanent: bool) -> AfterReplacement {
        match class {
            Class::OutOfOrder | Class::UnknownProducer => AfterReplacement::AskContested,
            Class::None
            | Class::Corrupt
            | Class::Retriable
            | Class::TooLarge
            | Class::InvalidRecords
            | Class::Permanent
            | Class::Duplicate
            | Class::Fenced
            | Class::Doubtful => match permanent {
                true => AfterReplacement::AskContested,
                false => AfterReplacement::AskAgain,
            },
        }
    }

    /// C4: whether a replacement certainly is not written.
    fn replacement_not_written(
        standing: Standing,
        open_attempts: usize,
        contested_written: bool,
    ) -> bool {
        contested_written || (standing == Standing::Refused && open_attempts == 0)
    }

    // ---- 8. Cluster ----------------------------------------------------------------------------

    /// U3: whether more may be offered to a connection with so many bytes not sent yet.
    fn window_has_room(unsent: usize, write_window: usize) -> bool {
        unsent < write_window
    }

    /// U4: whether a partition that stands in a request already may be put into it again.
    fn may_repeat_in_request() -> bool {
        false
    }

    /// L7: whether a partition whose requests were lost so often, without any answer, goes alone.
    fn goes_alone(losses: u32) -> bool {
        losses >= 2
    }

    /// S18: whether an answer that names a topic, by another id or by the same one, tells of a
    /// topic that was made anew.
    fn is_another_topic(same_id: bool) -> bool {
        !same_id
    }

    /// L3, S21: whether the leader that a Produce answer hints at (KIP-951) is followed. It stands
    /// beside an error, from a broker that leads no more: the same epoch tells nothing new. One
    /// hint after the other is not followed: each allows a retry without a wait, and who makes them
    /// up has 2^31 epochs.
    fn follows_hint(highest: LeaderEpoch, hinted: LeaderEpoch, last: LeaderWord) -> bool {
        match last {
            LeaderWord::Metadata => hinted > highest,
            LeaderWord::Hint => false,
        }
    }

    /// S21, K5: whether two answers that agree count as two: if brokers gave them that are known to
    /// be different ones, or if one `metadata.max.age` lies between them.
    fn two_answers_count(brokers_differ: bool, apart: Span, age: Span) -> bool {
        brokers_differ || apart >= age
    }

    /// K5: how long one broker must insist on the leader that is followed until it counts as two:
    /// `retry.backoff.max` where every other broker was tried in vain since its first answer, else
    /// `metadata.max.age`. No verdict hangs on it, and nothing is sent elsewhere.
    fn insistence(others_failed_since: bool, longest_backoff: Span, age: Span) -> Span {
        if others_failed_since { longest_backoff.min(age) } else { age }
    }

    // ---- 9. Connections ------------------------------------------------------------------------

    /// S15: whether an answer belongs to the oldest open request of its connection, by correlation
    /// id.
    fn answer_belongs(asked: i32, answered: i32) -> bool {
        asked == answered
    }

    /// S16: whether the bytes of a frame are out, by where it ends in the stream of its connection
    /// and how much of that was reported sent.
    fn bytes_are_out(end: u64, sent: u64) -> bool {
        end <= sent
    }

    /// S17: whether anything may be said to a broker that throttled us until then (KIP-219).
    fn may_speak(now: Instant, until: Instant) -> bool {
        now >= until
    }

    /// L1: how long the answer to a request is waited for.
    fn request_expires(asked: Instant, request_timeout: Span) -> Instant {
        asked + request_timeout
    }

    /// L3: whether a connection that ended was of no use: one that was up for a while with nothing
    /// open was idle, and its end is no failure (faults 89, 101).
    fn end_is_failure(open_requests: usize, up_for: Span, longest_backoff: Span) -> bool {
        open_requests > 0 || up_for <= longest_backoff
    }
}

/// S20: timestamps are the clock of the broker's memory, unless the topic has LogAppendTime.
fn timestamp_is_remembered(now: Instant, timestamp: i64, facts: &MemoryFacts) -> bool {
    if facts.log_append_time {
        return true;
    }
    match u64::try_from(timestamp) {
        Ok(millis) => now.since(Instant::from_millis(millis)) < facts.state_ttl,
        Err(_) => false,
    }
}

/// S20: the log still reaches back to what was acknowledged last.
fn log_reaches_back(last_acknowledged: Option<Offset>, log_start: Option<Offset>) -> bool {
    match (last_acknowledged, log_start) {
        (Some(last), Some(start)) => last >= start,
        (None, _) | (_, None) => true,
    }
}

/// The rules as they are meant. Overrides nothing.
///
/// ```
/// use candor_core::rules::{Honest, Rules};
/// assert!(Honest::may_offer(true, 3) && !Honest::may_offer(false, 1));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub struct Honest;

impl Rules for Honest {}
