//! What an answer, or its absence, says of its attempt and its batch.

use alloc::vec::Vec;

use crate::action::{Action, Misuse, Notice, Outcome};
use crate::event::{Answer, HandedOver, PartitionResponse};
use crate::ids::{AttemptId, Offset};
use crate::payload::Payload;
use crate::rules::{
    Class, DuplicateFacts, DuplicateMeans, Fate, Mark, OffsetFacts, Rules, SettledAs, StopCause,
};
use crate::time::Instant;

use super::Lane;
use super::attempt::{Attempt, Passage};
use super::batch::Refusal;
use super::gate::Gate;
use super::given_up::GivenUp;
use super::memory::Acknowledged;

/// An answer, read by the rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Meaning {
    /// 0.
    Zero { base: Option<Offset> },
    /// 46 that means written.
    WrittenSomewhere,
    /// A definite code.
    Refused(Class),
    /// 47, 90, or 46 on a first attempt.
    Conflict,
    /// Anything may be.
    Doubtful,
}

impl<P: Payload, R: Rules> Lane<P, R> {
    pub(super) fn answered(
        &mut self,
        now: Instant,
        id: AttemptId,
        answer: Answer,
    ) -> Result<(), Misuse> {
        let attempt = self.attempts.take(id).ok_or(Misuse::UnknownAttempt(id))?;
        let response = match answer {
            Answer::Response(response) => response,
            // No code is as good as an unknown one: -1.
            Answer::Missing => PartitionResponse::error(-1),
        };
        if attempt.log == self.memory.log {
            let moment = self.moment(now);
            if self.memory.see_log_start::<R>(moment, &self.config, &response) {
                self.log_start_moved_past();
            }
        }
        let meaning = self.meaning(&attempt, &response);
        if attempt.settled.is_some() {
            self.check_settled(&attempt, meaning);
        } else if self.given_up.iter().any(|given_up| given_up.position == attempt.position) {
            self.answer_given_up(now, &attempt, meaning);
        } else {
            self.answer_batch(now, &attempt, meaning, response);
        }
        self.forget_old_routes();
        Ok(())
    }

    /// The connection is over, and nobody will answer.
    pub(super) fn ended(
        &mut self,
        now: Instant,
        id: AttemptId,
        handed: HandedOver,
    ) -> Result<(), Misuse> {
        let attempt = self.attempts.take(id).ok_or(Misuse::UnknownAttempt(id))?;
        let refused = match R::ended(handed) {
            Fate::NotAppended => true,
            Fate::Appended | Fate::Doubtful => false,
        };
        if attempt.settled.is_some() {
            // Nothing is learned about what is settled.
        } else if self.given_up.iter().any(|it| it.position == attempt.position) {
            let meaning = match refused {
                true => Meaning::Refused(Class::None),
                false => Meaning::Doubtful,
            };
            self.answer_given_up(now, &attempt, meaning);
        } else {
            if let Some(batch) = self.span.batch_mut(attempt.position) {
                match refused {
                    true => batch.tally.refused += 1,
                    false => batch.tally.add_doubt(attempt.route, id),
                }
            }
            self.close_gate_after(&attempt, false);
            self.retry_later(now, &attempt);
        }
        self.forget_old_routes();
        Ok(())
    }

    fn meaning(&self, attempt: &Attempt, response: &PartitionResponse) -> Meaning {
        match R::class(response.error_code) {
            Class::Duplicate => match R::duplicate(self.duplicate_facts(attempt)) {
                DuplicateMeans::Appended => Meaning::WrittenSomewhere,
                DuplicateMeans::OutOfOrder => Meaning::Refused(Class::OutOfOrder),
                DuplicateMeans::Conflict => Meaning::Conflict,
            },
            Class::Fenced => Meaning::Conflict,
            class @ (Class::None
            | Class::Corrupt
            | Class::Retriable
            | Class::TooLarge
            | Class::InvalidRecords
            | Class::Permanent
            | Class::OutOfOrder
            | Class::UnknownProducer
            | Class::Doubtful) => match R::fate(response, self.config.trust_base_offset) {
                Fate::Appended => Meaning::Zero { base: Offset::new(response.base_offset) },
                Fate::NotAppended => Meaning::Refused(class),
                Fate::Doubtful => Meaning::Doubtful,
            },
        }
    }

    fn duplicate_facts(&self, attempt: &Attempt) -> DuplicateFacts {
        let batch = self.span.get(attempt.position).and_then(super::span::Slot::offered);
        let given_up = self.given_up.iter().find(|it| it.position == attempt.position);
        let doubt = batch
            .and_then(|batch| batch.tally.oldest_doubt())
            .or_else(|| given_up.and_then(GivenUp::oldest_doubt));
        let waiting = self.attempts.of(attempt.position).map(|other| other.id).min();
        let earlier =
            doubt.is_some_and(|id| id < attempt.id) || waiting.is_some_and(|id| id < attempt.id);
        DuplicateFacts {
            first_attempt: attempt.first,
            earlier_not_refused: earlier,
            contested: batch.is_some_and(|it| self.span.is_contested(it.first, it.count()))
                || given_up.is_some_and(|it| it.contested),
        }
    }

    /// S13: answers for what is settled are checked, no more.
    fn check_settled(&mut self, attempt: &Attempt, meaning: Meaning) {
        let (Meaning::Zero { base }, Some(settled)) = (meaning, attempt.settled) else { return };
        if attempt.log == self.memory.log && R::contradicts(settled, base) {
            self.contradiction(base);
        }
    }

    /// S13: the lane stops.
    pub(super) fn contradiction(&mut self, offset: Option<Offset>) {
        self.notice(Notice::Contradiction { offset });
        self.stop(StopCause::Contradiction);
    }

    /// A late answer for what was given up; S15: it touches no counters.
    fn answer_given_up(&mut self, now: Instant, attempt: &Attempt, meaning: Meaning) {
        let here = |it: &&mut GivenUp| it.position == attempt.position;
        let given_up = self.given_up.iter_mut();
        match meaning {
            Meaning::Zero { base } => self.given_up_is_written(now, attempt, base),
            Meaning::WrittenSomewhere => self.given_up_is_written(now, attempt, None),
            Meaning::Refused(_) | Meaning::Conflict => {
                given_up.filter(here).for_each(GivenUp::refuse);
            }
            Meaning::Doubtful => given_up
                .filter(here)
                .for_each(|given_up| given_up.add_doubt(attempt.route, attempt.id)),
        }
    }

    fn given_up_is_written(&mut self, now: Instant, attempt: &Attempt, base: Option<Offset>) {
        let position = attempt.position;
        let Some(given_up) = self.given_up.iter().find(|it| it.position == position) else {
            return;
        };
        let (bounds, count) = (given_up.bounds(), given_up.doubt.count);
        let acknowledged = Acknowledged {
            position,
            end: base.map(|base| base.after(count)),
            max_timestamp: given_up.max_timestamp,
        };
        let agrees = base.is_none_or(|base| R::offsets_agree(OffsetFacts { bounds, base, count }));
        let same_log = given_up.log == self.memory.log;
        if same_log && !agrees {
            return self.contradiction(base);
        }
        let same_identity = self.identity() == Some(given_up.doubt.identity);
        let same_producer = self.identity().map(|it| it.id) == Some(given_up.doubt.identity.id);
        let settled =
            base.map_or(SettledAs::Concluded { bounds, count }, |base| SettledAs::Written { base });
        self.attempts.settle(position, settled);
        for given_up in core::mem::take(&mut self.given_up) {
            match given_up.records_at(position) {
                Some(records) => self.tell(records, Outcome::Delivered { base }),
                None => self.given_up.push(given_up),
            }
        }
        if R::touches_counters(same_identity) {
            self.memory.acknowledge::<R>(self.moment(now), &self.config, acknowledged);
            self.open_gate(now, attempt);
        } else if let Some(end) = acknowledged.end.filter(|_| same_producer && same_log)
            && self.memory.acknowledge_older(end)
        {
            self.log_start_moved_past();
        }
    }

    /// S20: the log starts past what was acknowledged last.
    fn log_start_moved_past(&mut self) {
        self.span.offered_mut().for_each(|batch| batch.log_start_moved_past = true);
    }

    fn answer_batch(
        &mut self,
        now: Instant,
        attempt: &Attempt,
        meaning: Meaning,
        response: PartitionResponse,
    ) {
        match meaning {
            Meaning::Zero { base } if self.is_replacement(attempt.position) => {
                return self.replacement_written(now, attempt, base, &response);
            }
            Meaning::Zero { base } => {
                return self.acknowledged(now, attempt, base, &response);
            }
            Meaning::WrittenSomewhere => self.written_somewhere(attempt),
            Meaning::Refused(_) | Meaning::Conflict => {
                if let Some(batch) = self.span.batch_mut(attempt.position) {
                    batch.tally.refused += 1;
                }
            }
            Meaning::Doubtful => {
                if let Some(batch) = self.span.batch_mut(attempt.position) {
                    batch.tally.add_doubt(attempt.route, attempt.id);
                }
            }
        }
        self.close_gate_after(attempt, false);
        self.retry_later(now, attempt);
        if attempt.orphaned {
            return;
        }
        match meaning {
            Meaning::Zero { .. } | Meaning::WrittenSomewhere => {}
            Meaning::Conflict => self.conflict(now),
            Meaning::Refused(class) => {
                self.mark(attempt, class, response);
                self.replacement_refused(attempt, class);
            }
            Meaning::Doubtful => self.ask_leader_for(response.error_code),
        }
    }

    /// Notes a definite code at its batch (S6, V1, L4).
    fn mark(&mut self, attempt: &Attempt, class: Class, response: PartitionResponse) {
        let code = response.error_code;
        self.ask_leader_for(code);
        let behind_out_of_order = self.span.unsettled().any(|(_, b)| b.mark == Mark::OutOfOrder);
        let counts = R::counts_in_pass(self.is_of_this_pass(attempt), attempt.orphaned);
        let Some(batch) = self.span.batch_mut(attempt.position) else { return };
        batch.corrupt_in_a_row =
            if class == Class::Corrupt { batch.corrupt_in_a_row + 1 } else { 0 };
        let permanent = match class {
            Class::TooLarge | Class::InvalidRecords | Class::Permanent => true,
            Class::Corrupt => R::corrupt_is_permanent(batch.corrupt_in_a_row),
            Class::None
            | Class::Retriable
            | Class::OutOfOrder
            | Class::Duplicate
            | Class::Fenced
            | Class::UnknownProducer
            | Class::Doubtful => false,
        };
        let before = batch.permanent.take();
        batch.permanent = permanent.then(|| {
            let same = before.filter(|refusal| refusal.code == code);
            let in_a_row = same.map_or(0, |refusal| refusal.in_a_row) + 1;
            Refusal { code, named: response.record_errors, in_a_row }
        });
        if counts {
            batch.mark = match class {
                Class::OutOfOrder => Mark::OutOfOrder,
                Class::UnknownProducer => Mark::UnknownProducer,
                Class::None
                | Class::Corrupt
                | Class::Retriable
                | Class::TooLarge
                | Class::InvalidRecords
                | Class::Permanent
                | Class::Duplicate
                | Class::Fenced
                | Class::Doubtful => match permanent {
                    true => Mark::Refused { behind_out_of_order },
                    false => Mark::Unasked,
                },
            };
        }
    }

    pub(super) fn is_of_this_pass(&self, attempt: &Attempt) -> bool {
        match (self.gate, attempt.passage) {
            (Gate::Closed(pass), Passage::Pass(number)) => pass.number == number,
            (Gate::Open { .. }, Passage::Pass(_) | Passage::Gate { .. })
            | (Gate::Closed(_), Passage::Gate { .. }) => false,
        }
    }

    /// L3: the batch waits before its next attempt, unless the attempt was orphaned: then the
    /// change of leader decided already.
    fn retry_later(&mut self, now: Instant, attempt: &Attempt) {
        if attempt.orphaned {
            return;
        }
        let Some(batch) = self.span.batch_mut(attempt.position) else { return };
        let retry = batch.retry;
        let retry = self.back_off(retry, now, attempt.position.0);
        if let Some(batch) = self.span.batch_mut(attempt.position) {
            batch.spared = None;
            batch.retry = retry;
        }
    }

    /// Codes that say that metadata is stale.
    fn ask_leader_for(&mut self, code: i16) {
        if matches!(code, 3 | 5 | 6 | 8 | 9 | 56 | 72 | 74 | 100) {
            self.out.push_back(Action::NeedLeader);
        }
    }

    fn forget_old_routes(&mut self) {
        let attempts = &self.attempts;
        let current = self.leader.route;
        let in_use = |route| Some(route) == current || attempts.uses(route);
        self.span.offered_mut().for_each(|batch| batch.tally.forget_routes(in_use));
    }

    /// Positions of the unsettled batches before this one.
    pub(super) fn predecessors(&self, attempt: &Attempt) -> Vec<super::span::Position> {
        let before = self.span.unsettled().map(|(position, _)| position);
        before.take_while(|position| *position < attempt.position).collect()
    }
}
