//! What may be sent now, and when something may be sent (S1, S5, S6, L3).

use crate::action::Offer;
use crate::config::{BeyondMemory, LaneConfig};
use crate::ids::RouteId;
use crate::payload::{Frozen, Payload};
use crate::rules::{Rules, Standing};
use crate::time::{Deadline, Instant, Span, Wakeup};

use super::attempt::{Attempt, Passage};
use super::batch::Retry;
use super::gate::{Confirmation, Gate};
use super::memory::{Doubtful, Moment};
use super::span::{Position, Replacement, Slot};
use super::{Adopted, Holding, Lane, Life};

/// What comes next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Pick {
    Resend(Position),
    Fresh,
}

/// Whether, or when, something may be offered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Turn {
    /// Not before an event comes.
    Waits,
    /// From then on.
    At(Instant, Wakeup, Pick),
}

impl<P: Payload, R: Rules> Lane<P, R> {
    /// The next batch for this route, if one may be sent now and has at most `max` bytes. From
    /// here on the attempt is in doubt: report `Handed`, and `Answered` or `Ended`.
    pub fn offer(&mut self, now: Instant, route: RouteId, max: usize) -> Option<Offer<P>> {
        let now = self.tick(now);
        self.close_gate_when_forgotten(now);
        if self.leader.route != Some(route) {
            return None;
        }
        match self.pick(now)? {
            Pick::Resend(position) => {
                let replaced = self.is_contested_next(now, position);
                if let Some(replacement) =
                    replaced.then(|| self.replace(now, position, max)).flatten()
                {
                    return self.attempt(route, replacement);
                }
                let batch = self.span.batch_mut(position)?;
                if batch.frozen.bytes() > max {
                    return None;
                }
                self.attempt(route, position)
            }
            Pick::Fresh => {
                if self.intake.next_bytes() > max {
                    return None;
                }
                self.offer_fresh(now, route)
            }
        }
    }

    /// Whether `offer` with enough room would give something now.
    pub fn offerable(&self, now: Instant) -> bool {
        self.pick(now.max(self.now)).is_some()
    }

    /// When to poll again at the latest, after `poll` gave `None`.
    pub fn deadline(&self) -> Option<Deadline> {
        let verdict = Deadline { at: self.expiry, why: Wakeup::Verdict };
        let memory = Deadline { at: self.resendable_until(), why: Wakeup::Memory };
        let close = match self.life {
            Life::Closing { deadline } => Deadline { at: deadline, why: Wakeup::Close },
            Life::Stopped { close: Some(at), .. } => Deadline { at, why: Wakeup::Close },
            Life::Running | Life::Closed | Life::Stopped { close: None, .. } => {
                Deadline { at: Instant::NEVER, why: Wakeup::Close }
            }
        };
        let turn = match self.turn(self.now) {
            Turn::At(at, why, _) if at > self.now => Deadline { at, why },
            Turn::At(..) | Turn::Waits => Deadline { at: Instant::NEVER, why: Wakeup::Linger },
        };
        let earliest = [verdict, memory, close, turn].into_iter().min_by_key(|d| d.at)?;
        (earliest.at < Instant::NEVER).then_some(earliest)
    }

    fn offer_fresh(&mut self, now: Instant, route: RouteId) -> Option<Offer<P>> {
        let Holding::Adopted(adopted) = self.identity else { return None };
        let batch = self.intake.pop()?.sequence(adopted.identity, adopted.next, now);
        let next = R::next_sequence(adopted.next, batch.count());
        self.identity = Holding::Adopted(Adopted { next, ..adopted });
        let position = self.span.push(batch);
        self.attempt(route, position)
    }

    fn attempt(&mut self, route: RouteId, position: Position) -> Option<Offer<P>> {
        let passage = match self.gate {
            Gate::Closed(pass) => Passage::Pass(pass.number),
            Gate::Open { opener } => Passage::Gate { opener },
        };
        let (leader_epoch, log) = (self.leader.epoch, self.memory.log);
        let batch = self.span.batch_mut(position)?;
        let first = batch.tally.offered == 0;
        batch.tally.offered += 1;
        batch.spared = None;
        let id = self.attempts.add(|id| Attempt {
            id,
            position,
            route,
            leader_epoch,
            passage,
            first,
            orphaned: false,
            handed: false,
            settled: None,
            log,
        });
        let batch = self.span.batch_mut(position)?;
        let (identity, first, batch) = (batch.identity, batch.first, batch.frozen.clone());
        let replacement = self.span.replacement().filter(|(it, _)| *it == position);
        let expiry = match (replacement, self.span.get(position).and_then(Slot::offered)) {
            (Some((_, replacement)), _) => self.replacement_expiry(replacement),
            (None, batch) => batch?.expiry(),
        };
        Some(Offer {
            attempt: id,
            route,
            identity,
            first,
            batch,
            replacement: replacement.is_some(),
            earliest_deadline: (expiry < Instant::NEVER).then_some(expiry),
        })
    }

    fn pick(&self, now: Instant) -> Option<Pick> {
        let due = R::expired(now, self.expiry) && self.really_due(now);
        if !R::may_offer_before_poll(due, !self.out.is_empty()) {
            return None;
        }
        match self.turn(now) {
            Turn::At(at, _, pick) if at <= now => Some(pick),
            Turn::At(..) | Turn::Waits => None,
        }
    }

    fn gate_is_open(&self, now: Instant) -> bool {
        match self.gate {
            Gate::Open { .. } => self.knows_us(now),
            Gate::Closed(_) => false,
        }
    }

    fn turn(&self, now: Instant) -> Turn {
        let goes_on = match self.life {
            Life::Running => true,
            Life::Closing { deadline } => now < deadline,
            Life::Closed | Life::Stopped { .. } => false,
        };
        let open = self.gate_is_open(now);
        if !goes_on
            || self.held
            || self.leader.route.is_none()
            || !R::may_offer(open, self.attempts.open())
            || !self.doubt_is_resendable(now)
        {
            return Turn::Waits;
        }
        match self.gate {
            Gate::Closed(pass) if pass.confirmation != Confirmation::NotNeeded => Turn::Waits,
            Gate::Closed(_) | Gate::Open { .. } => self.turn_of_batches(now, open),
        }
    }

    fn turn_of_batches(&self, now: Instant, open: bool) -> Turn {
        let vacated = self.span.vacated();
        let replacement = self.span.replacement();
        for (position, batch) in self.span.unsettled() {
            if vacated.is_some_and(|vacated| vacated < position) {
                break;
            }
            if let Some((place, Replacement { batch, target })) = replacement
                && *target == position
                && (open || !R::pass_goes_on(batch.mark))
            {
                return self.turn_alone(batch.retry.not_before, Pick::Resend(place));
            }
            if batch.is_reduced() {
                return Turn::Waits;
            }
            let passed_by = if open {
                self.attempts.open_of(position) > 0
            } else {
                R::pass_goes_on(batch.mark)
            };
            if !passed_by {
                // C2: only where something is in flight it matters here what is offered.
                if self.attempts.open() > 0 && self.is_contested_next(now, position) {
                    return Turn::Waits;
                }
                return Turn::At(batch.retry.not_before, Wakeup::Backoff, Pick::Resend(position));
            }
        }
        let undecided = !open && self.span.unsettled().next().is_some();
        if vacated.is_some() || undecided || !R::span_has_room(self.span.len()) {
            return Turn::Waits;
        }
        self.turn_of_fresh()
    }

    /// C2: a replacement is alone in flight.
    fn turn_alone(&self, not_before: Instant, pick: Pick) -> Turn {
        match self.attempts.open() {
            0 => Turn::At(not_before, Wakeup::Backoff, pick),
            1.. => Turn::Waits,
        }
    }

    fn turn_of_fresh(&self) -> Turn {
        let Holding::Adopted(adopted) = self.identity else { return Turn::Waits };
        if R::epoch_is_used_up(adopted.identity.epoch, adopted.acknowledged) {
            return Turn::Waits;
        }
        match self.intake.due() {
            None => Turn::Waits,
            Some((due, why)) if due > self.renewal.not_before => Turn::At(due, why, Pick::Fresh),
            Some(_) => Turn::At(self.renewal.not_before, Wakeup::Backoff, Pick::Fresh),
        }
    }

    /// S20: what is in doubt and would have to be resent may be.
    fn doubt_is_resendable(&self, now: Instant) -> bool {
        let waiting = self.in_doubt().filter(|(position, _)| self.attempts.open_of(*position) == 0);
        self.all_resendable(now, waiting, &self.config)
    }

    /// S20, C1: the broker can be relied upon to know what is in doubt, if it has it; whoever
    /// accepts duplicates does not accept wrong words.
    pub(super) fn remembers_doubt(&self, now: Instant) -> bool {
        let beyond_memory = BeyondMemory::Keep;
        self.all_resendable(
            now,
            self.in_doubt(),
            &LaneConfig { beyond_memory, ..self.config.clone() },
        )
    }

    fn all_resendable<'a>(
        &self,
        now: Instant,
        batches: impl Iterator<Item = (Position, &'a super::batch::SequencedBatch<P>)>,
        config: &LaneConfig,
    ) -> bool
    where
        P: 'a,
    {
        let doubt = batches.fold(None, |doubt: Option<Doubtful>, (position, batch)| {
            let this = Doubtful {
                oldest: position,
                first_offer: batch.first_offer,
                max_timestamp: batch.max_timestamp(),
                log_start_moved_past: batch.log_start_moved_past,
            };
            Some(doubt.map_or(this, |doubt| Doubtful {
                oldest: doubt.oldest.min(this.oldest),
                first_offer: doubt.first_offer.min(this.first_offer),
                max_timestamp: doubt.max_timestamp.min(this.max_timestamp),
                log_start_moved_past: doubt.log_start_moved_past || this.log_start_moved_past,
            }))
        });
        doubt.is_none_or(|doubt| self.memory.resendable::<R>(self.moment(now), config, doubt))
    }

    pub(super) fn in_doubt(
        &self,
    ) -> impl Iterator<Item = (Position, &super::batch::SequencedBatch<P>)> {
        self.span.offered().filter(|(_, batch)| batch.standing::<R>() == Standing::InDoubt)
    }

    /// What memory is asked with (S20).
    pub(super) fn moment(&self, now: Instant) -> Moment {
        self.moment_before(now, self.span.end())
    }

    /// The same, counting only doubt before a position.
    pub(super) fn moment_before(&self, now: Instant, position: Position) -> Moment {
        let before = self.in_doubt().take_while(|(doubtful, _)| *doubtful < position);
        let doubt_timestamp = before.map(|(_, batch)| batch.max_timestamp()).min();
        Moment { now, doubt_timestamp }
    }

    /// S20: whether the broker is known to remember us.
    pub(super) fn knows_us(&self, now: Instant) -> bool {
        self.memory.known::<R>(self.moment(now), &self.config)
    }

    /// S20, V3: whether it is, and was so since what is in doubt was offered: a 0 in between may have
    /// come from a broker that had forgotten us.
    pub(super) fn has_known_us(&self, now: Instant) -> bool {
        self.knows_us(now) && self.remembers_doubt(now)
    }

    /// S20: whether what is in doubt is to be given up, nobody being about to answer.
    pub(super) fn is_beyond_memory(&self, now: Instant) -> bool {
        self.attempts.open() == 0 && !self.all_resendable(now, self.in_doubt(), &self.config)
    }

    fn resendable_until(&self) -> Instant {
        if self.attempts.open() > 0 {
            return Instant::NEVER;
        }
        let ttl = self.config.state_ttl;
        let ends_by = |timestamp: i64| {
            u64::try_from(timestamp)
                .map_or(Instant::NEVER, |millis| Instant::from_millis(millis) + ttl)
        };
        let newest = self.memory.newest();
        let ends = self.in_doubt().map(|(position, batch)| {
            let behind = newest.filter(|(newest, _)| *newest > position);
            let behind = behind.map_or(Instant::NEVER, |(_, timestamp)| ends_by(timestamp));
            (batch.first_offer + ttl).min(ends_by(batch.max_timestamp())).min(behind)
        });
        ends.filter(|at| *at > self.now).min().unwrap_or(Instant::NEVER)
    }

    /// L3: waits longer after each failure.
    pub(super) fn back_off(&self, retry: Retry, now: Instant, salt: u64) -> Retry {
        let failures = retry.failures.saturating_add(1);
        let wait = R::backoff(failures, self.config.backoff, self.config.backoff_max);
        let wait = match self.config.jitter {
            None => wait,
            Some(seed) => jitter(wait, seed ^ salt.rotate_left(20) ^ u64::from(failures)),
        };
        Retry { not_before: now + wait, failures }
    }
}

/// Jitter by a hash and not by chance.
fn jitter(wait: Span, seed: u64) -> Span {
    wait.spread(splitmix64(seed))
}

/// The first number of the generator of that name with this seed.
pub(super) fn splitmix64(seed: u64) -> u64 {
    let mut z = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}
