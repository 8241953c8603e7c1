//! A lane that is played by hand, event by event.

#![allow(clippy::unwrap_used, clippy::expect_used, dead_code, reason = "shared by several tests")]

use std::collections::BTreeMap;

use candor_core::testing::{Counted, Preset};
use candor_core::*;

pub(crate) const MINUTE: u64 = 60_000;

/// At sequence 40 of this epoch, offset 9 being the last one acknowledged.
pub(crate) fn preset(epoch: i16) -> Preset {
    let id = ProducerId::new(7).unwrap();
    Preset {
        identity: Identity { id, epoch: ProducerEpoch::new(epoch).unwrap() },
        next: Sequence::new(40).unwrap(),
        last_acknowledged: Offset::new(9).unwrap(),
    }
}

/// What stands behind a head in doubt.
pub(crate) struct Behind {
    pub(crate) head: u64,
    /// The head's first attempt, unanswered on the connection before.
    pub(crate) late: AttemptId,
    pub(crate) revoked: u64,
    /// In the batch of the one that is revoked.
    pub(crate) kept: u64,
    /// Their attempt, on the connection before.
    pub(crate) lost: AttemptId,
    pub(crate) contest: Offer<Counted>,
}

/// A lane, and everything that it said.
pub(crate) struct Play {
    pub(crate) lane: Lane<Counted>,
    pub(crate) now: u64,
    pub(crate) route: u64,
    pub(crate) epoch: i32,
    pub(crate) tickets: u64,
    pub(crate) verdicts: BTreeMap<u64, Verdict>,
    pub(crate) resolutions: BTreeMap<u64, Resolution>,
    pub(crate) notices: Vec<Notice>,
}

impl Play {
    /// At sequence 40 of epoch 3, offset 9 being the last one acknowledged; route 1.
    pub(crate) fn new() -> Self {
        Self::with(LaneConfig::default(), 3)
    }

    pub(crate) fn with(config: LaneConfig, epoch: i16) -> Self {
        let now = 1_700_000_000_000;
        let mut play = Self {
            lane: Lane::preset(config, Instant::from_millis(now), preset(epoch)),
            now,
            route: 0,
            epoch: 1,
            tickets: 0,
            verdicts: BTreeMap::new(),
            resolutions: BTreeMap::new(),
            notices: Vec::new(),
        };
        play.next_route();
        play
    }

    /// A lane to which nothing was acknowledged, with an identity that was never used, and the record
    /// that asked for it.
    pub(crate) fn fresh() -> (Self, u64) {
        let mut play = Self::new();
        play.lane = Lane::new(LaneConfig::default(), play.now());
        play.next_route();
        let ticket = play.append(MINUTE);
        play.tell(Event::Identity(preset(0).identity));
        (play, ticket)
    }

    pub(crate) fn now(&self) -> Instant {
        Instant::from_millis(self.now)
    }

    /// Tells an event, without a poll behind it.
    pub(crate) fn tell(&mut self, event: Event<'_, Counted>) {
        self.lane.handle(self.now(), event).expect("a legal event");
    }

    pub(crate) fn poll(&mut self) {
        while let Some(action) = self.lane.poll(self.now()) {
            match action {
                Action::Settled(settled) => {
                    for (ticket, verdict) in settled.verdicts() {
                        assert_eq!(self.verdicts.insert(ticket.0, verdict), None, "two verdicts");
                    }
                    for (ticket, resolution) in settled.resolutions() {
                        let before = self.resolutions.insert(ticket.0, resolution);
                        assert_eq!(before, None, "two resolutions");
                    }
                }
                Action::Notice(notice) => self.notices.push(notice),
                Action::NeedIdentity | Action::NeedLeader => {}
            }
        }
    }

    pub(crate) fn wait(&mut self, millis: u64) {
        self.now += millis;
        self.poll();
    }

    pub(crate) fn leader(&mut self, route: Option<u64>) {
        let epoch = LeaderEpoch(self.epoch);
        self.tell(Event::Leader { route: route.map(RouteId), epoch });
        self.poll();
    }

    pub(crate) fn next_route(&mut self) {
        self.route += 1;
        self.leader(Some(self.route));
    }

    pub(crate) fn confirm(&mut self) {
        self.tell(Event::LeaderConfirmed { epoch: LeaderEpoch(self.epoch) });
        self.poll();
    }

    /// A record with this timestamp and time, in a batch that goes on.
    pub(crate) fn join(&mut self, timestamp: i64, deadline: u64) -> u64 {
        let ticket = self.tickets;
        self.tickets += 1;
        self.tell(Event::Append(Append {
            ticket: Ticket(ticket),
            born: self.now(),
            deadline: Instant::from_millis(self.now + deadline),
            timestamp,
            record: ticket as u16,
        }));
        ticket
    }

    /// A batch of one record with this time.
    pub(crate) fn append(&mut self, deadline: u64) -> u64 {
        let ticket = self.join(self.now as i64, deadline);
        self.flush();
        ticket
    }

    pub(crate) fn revoke(&mut self, ticket: u64) {
        self.tell(Event::Revoke(Ticket(ticket)));
        self.poll();
    }

    pub(crate) fn flush(&mut self) {
        self.tell(Event::Flush);
        self.poll();
    }

    pub(crate) fn try_offer(&mut self) -> Option<Offer<Counted>> {
        self.lane.offer(self.now(), RouteId(self.route), usize::MAX)
    }

    pub(crate) fn offer(&mut self) -> AttemptId {
        let offer = self.try_offer().expect("an offer");
        offer.attempt
    }

    /// Waits for the backoff first.
    pub(crate) fn offer_again(&mut self) -> AttemptId {
        self.wait(2_000);
        self.offer()
    }

    /// The replacement that contests the slot of this record.
    pub(crate) fn contest(&mut self, revoked: u64) -> Offer<Counted> {
        self.revoke(revoked);
        self.wait(2_000);
        let contest = self.try_offer().expect("a replacement");
        assert!(contest.replacement);
        contest
    }

    pub(crate) fn append_and_offer(&mut self, deadline: u64) -> (u64, AttemptId) {
        let ticket = self.append(deadline);
        (ticket, self.offer())
    }

    /// A batch of two records.
    pub(crate) fn offer_pair(&mut self, deadline: u64) -> ([u64; 2], AttemptId) {
        let pair = [0, 1].map(|_| self.join(self.now as i64, deadline));
        self.flush();
        (pair, self.offer())
    }

    /// A head that was answered 45, and a replacement under way for the pair behind it.
    pub(crate) fn contest_behind_a_head(&mut self) -> Behind {
        let (head, late) = self.append_and_offer(10 * MINUTE);
        let ([revoked, kept], lost) = self.offer_pair(10 * MINUTE);
        self.next_route();
        let asked = self.offer_again();
        self.error(asked, 45);
        let contest = self.contest(revoked);
        Behind { head, late, revoked, kept, lost, contest }
    }

    pub(crate) fn say(&mut self, attempt: AttemptId, answer: impl Into<Answer>) {
        self.tell(Event::Answered { attempt, answer: answer.into() });
        self.poll();
    }

    pub(crate) fn zero(&mut self, attempt: AttemptId, base: i64) {
        self.say(attempt, PartitionResponse::appended(base));
    }

    pub(crate) fn zero_with_log_start(
        &mut self,
        attempt: AttemptId,
        base: i64,
        log_start_offset: i64,
    ) {
        let response = PartitionResponse::appended(base);
        self.say(attempt, PartitionResponse { log_start_offset, ..response });
    }

    pub(crate) fn error(&mut self, attempt: AttemptId, code: i16) {
        self.say(attempt, PartitionResponse::error(code));
    }

    pub(crate) fn lose(&mut self, attempt: AttemptId) {
        self.tell(Event::Ended { attempt, handed: HandedOver::PerhapsWhole });
        self.poll();
    }

    /// A batch without a timestamp is asked in vain at a new leader: nothing is known to be remembered
    /// (S20), the gate stays closed, and the leader is to be confirmed (K5).
    pub(crate) fn ask_in_vain(&mut self) {
        self.next_route();
        self.join(-1, 10 * MINUTE);
        self.flush();
        let first = self.offer();
        self.error(first, 45);
    }

    /// A batch is asked in vain at a new leader while its first attempt is open on the former route.
    pub(crate) fn ask_again_in_vain(&mut self) -> (u64, AttemptId) {
        self.open_gate(10);
        let (ticket, lost) = self.append_and_offer(10 * MINUTE);
        self.next_route();
        let again = self.offer_again();
        self.error(again, 45);
        (ticket, lost)
    }

    /// A batch at this offset opens the gate.
    pub(crate) fn open_gate(&mut self, base: i64) {
        let (_, opener) = self.append_and_offer(MINUTE);
        self.zero(opener, base);
    }

    pub(crate) fn epoch_in_use(&self) -> i16 {
        self.lane.identity().unwrap().epoch.get()
    }
}
