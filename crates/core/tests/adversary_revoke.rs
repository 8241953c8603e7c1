//! Single schedules around a contested slot (rule C): what once broke the lane, or was meant to.
//! Ids are those of `docs/rules.md`.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // a test's helpers

use std::collections::BTreeMap;

use candor_core::testing::{Counted, Preset};
use candor_core::*;

const MINUTE: u64 = 60_000;

/// A lane, and everything that it said.
struct Play {
    lane: Lane<Counted>,
    now: u64,
    route: u64,
    epoch: i32,
    tickets: u64,
    verdicts: BTreeMap<u64, Verdict>,
    resolutions: BTreeMap<u64, Resolution>,
    notices: Vec<Notice>,
    questions: Vec<Action>,
}

impl Play {
    /// At sequence 40 of epoch 3, offset 9 being the last one acknowledged; route 1.
    fn new() -> Self {
        Self::with(LaneConfig::default(), 3)
    }

    fn with(config: LaneConfig, epoch: i16) -> Self {
        let now = 1_700_000_000_000;
        let id = ProducerId::new(7).unwrap();
        let preset = Preset {
            identity: Identity { id, epoch: ProducerEpoch::new(epoch).unwrap() },
            next: Sequence::new(40).unwrap(),
            last_acknowledged: Offset::new(9).unwrap(),
        };
        let mut play = Self {
            lane: Lane::preset(config, Instant::from_millis(now), preset),
            now,
            route: 0,
            epoch: 1,
            tickets: 0,
            verdicts: BTreeMap::new(),
            resolutions: BTreeMap::new(),
            notices: Vec::new(),
            questions: Vec::new(),
        };
        play.next_route();
        play
    }

    fn now(&self) -> Instant {
        Instant::from_millis(self.now)
    }

    /// Tells an event, without a poll behind it.
    fn tell(&mut self, event: Event<'_, Counted>) {
        self.lane.handle(self.now(), event).expect("a legal event");
    }

    fn poll(&mut self) {
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
                Action::NeedIdentity | Action::NeedLeader => self.questions.push(action),
            }
        }
    }

    fn wait(&mut self, millis: u64) {
        self.now += millis;
        self.poll();
    }

    fn leader(&mut self, route: Option<u64>) {
        let epoch = LeaderEpoch(self.epoch);
        self.tell(Event::Leader { route: route.map(RouteId), epoch });
        self.poll();
    }

    fn next_route(&mut self) {
        self.route += 1;
        self.leader(Some(self.route));
    }

    fn confirm(&mut self) {
        self.tell(Event::LeaderConfirmed { epoch: LeaderEpoch(self.epoch) });
        self.poll();
    }

    /// A record with this timestamp and time, in a batch that goes on.
    fn join(&mut self, timestamp: i64, deadline: u64) -> u64 {
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
    fn append(&mut self, deadline: u64) -> u64 {
        let ticket = self.join(self.now as i64, deadline);
        self.flush();
        ticket
    }

    fn revoke(&mut self, ticket: u64) {
        self.tell(Event::Revoke(Ticket(ticket)));
        self.poll();
    }

    fn flush(&mut self) {
        self.tell(Event::Flush);
        self.poll();
    }

    fn try_offer(&mut self) -> Option<Offer<Counted>> {
        self.lane.offer(self.now(), RouteId(self.route), usize::MAX)
    }

    fn offer(&mut self) -> AttemptId {
        let offer = self.try_offer().expect("an offer");
        offer.attempt
    }

    /// Waits for the backoff first.
    fn offer_again(&mut self) -> AttemptId {
        self.wait(2_000);
        self.offer()
    }

    fn append_and_offer(&mut self, deadline: u64) -> (u64, AttemptId) {
        let ticket = self.append(deadline);
        (ticket, self.offer())
    }

    fn say(&mut self, attempt: AttemptId, answer: impl Into<Answer>) {
        self.tell(Event::Answered { attempt, answer: answer.into() });
        self.poll();
    }

    fn zero(&mut self, attempt: AttemptId, base: i64) {
        self.say(attempt, PartitionResponse::appended(base));
    }

    fn zero_with_log_start(&mut self, attempt: AttemptId, base: i64, log_start_offset: i64) {
        let response = PartitionResponse::appended(base);
        self.say(attempt, PartitionResponse { log_start_offset, ..response });
    }

    fn error(&mut self, attempt: AttemptId, code: i16) {
        self.say(attempt, PartitionResponse::error(code));
    }

    fn lose(&mut self, attempt: AttemptId) {
        self.tell(Event::Ended { attempt, handed: HandedOver::PerhapsWhole });
        self.poll();
    }

    /// A batch at this offset opens the gate.
    fn open_gate(&mut self, base: i64) {
        let (_, opener) = self.append_and_offer(MINUTE);
        self.zero(opener, base);
    }

    fn epoch_in_use(&self) -> i16 {
        self.lane.identity().unwrap().epoch.get()
    }
}

/// D3, C: B2 was refused, and one of its records was told so while a replacement that does not
/// carry it is in doubt. B2 gives up its slot once the replacement is decided; until then it is
/// not offered again, or the record told `NotDelivered` would be written.
#[test]
fn what_was_told_not_delivered_is_not_offered_again() {
    let mut play = Play::with(LaneConfig { batch_size: 2, ..LaneConfig::default() }, 3);
    play.open_gate(10);
    let revoked = play.join(play.now as i64, 10 * MINUTE);
    let kept = play.join(play.now as i64, 10 * MINUTE);
    let short = play.join(play.now as i64, MINUTE / 2);
    let long = play.join(play.now as i64, 10 * MINUTE);
    play.flush();
    let (first, second) = (play.offer(), play.offer());
    play.error(first, 7);
    play.error(second, 19);
    play.revoke(revoked);
    play.wait(2_000);
    let contest = play.try_offer().unwrap();
    assert!(contest.replacement);
    assert_eq!(contest.batch.records(), [kept as u16], "no more would fit");
    play.lose(contest.attempt);
    play.next_route();
    play.wait(MINUTE / 2);
    assert_eq!(play.verdicts[&short], Verdict::NotDelivered(Proof::Refused));
    // For a moment the topic is closed to us: neither answer decides anything.
    let contest = play.offer();
    play.error(contest, 29);
    let asked = play.offer_again();
    play.error(asked, 29);
    play.wait(2_000);
    assert!(play.try_offer().is_none(), "a record that was told NotDelivered is offered");
    // The lane goes on all the same.
    play.confirm();
    let contest = play.offer_again();
    play.error(contest, 45);
    let asked = play.offer_again();
    play.zero(asked, 11);
    assert!(matches!(play.verdicts[&kept], Verdict::Delivered { .. }));
    assert!(matches!(play.resolutions[&revoked], Resolution::Delivered { .. }));
    assert_eq!(play.epoch_in_use(), 4, "its slot is given up");
    play.wait(2_000);
    assert_eq!(play.try_offer().unwrap().batch.records(), [long as u16]);
}

/// L5: a record that a replacement carries has no verdict only because its own batch speaks for
/// it: it is no reported `Unknown`, and nobody is to be shed for it.
#[test]
fn a_replacement_of_live_records_is_no_reported_unknown() {
    let mut play = Play::new();
    play.open_gate(10);
    let revoked = play.join(play.now as i64, 10 * MINUTE);
    let kept = play.join(play.now as i64, MINUTE);
    play.flush();
    let lost = play.offer();
    play.error(lost, 7);
    play.revoke(revoked);
    play.wait(2_000);
    let contest = play.try_offer().unwrap();
    assert!(contest.replacement);
    let usage = play.lane.usage();
    assert_eq!((usage.unsettled, usage.unknown), (3, 0));
    play.wait(MINUTE);
    assert!(matches!(play.verdicts[&kept], Verdict::Unknown(_)));
    assert_eq!(play.lane.usage().unknown, 3, "now it is");
}

/// V2: what stands behind a vacated slot is awaited, a replacement included: its 0 would tell that
/// the broker forgot us, and what it carries would be written twice if it were sent anew.
#[test]
fn a_replacement_behind_a_vacated_slot_is_awaited() {
    let mut play = Play::new();
    play.open_gate(10);
    let (head, late) = play.append_and_offer(10 * MINUTE);
    let revoked = play.join(play.now as i64, 10 * MINUTE);
    let kept = play.join(play.now as i64, 10 * MINUTE);
    play.flush();
    let lost = play.offer();
    play.next_route();
    let asked = play.offer_again();
    play.error(asked, 45);
    play.revoke(revoked);
    play.wait(2_000);
    let contest = play.try_offer().unwrap();
    assert!(contest.replacement);
    play.tell(Event::Cancel(Ticket(head)));
    play.poll();
    play.error(late, 19);
    assert_eq!(play.epoch_in_use(), 3, "an answer is still to come");
    // All was deleted, and then a replica led that never saw us.
    play.zero_with_log_start(contest.attempt, 20, 15);
    assert_eq!(play.verdicts[&kept], Verdict::Delivered { offset: Offset::new(20) });
    play.lose(lost);
    assert!(matches!(play.resolutions[&revoked], Resolution::Never { .. }));
    assert!(matches!(play.resolutions[&head], Resolution::NotDelivered(_)));
}

/// C, L5: what was contested and decided is forgotten, also on a lane that never rests.
#[test]
fn decided_contests_are_forgotten() {
    let mut play = Play::new();
    play.open_gate(10);
    let pair = |play: &mut Play| {
        let first = play.join(play.now as i64, 10 * MINUTE);
        play.join(play.now as i64, 10 * MINUTE);
        play.flush();
        (first, play.offer())
    };
    let mut ahead = pair(&mut play);
    let mut size = 0;
    for round in 0..20 {
        let (behind, attempt) = pair(&mut play);
        play.error(ahead.1, 7);
        play.error(attempt, 7);
        play.revoke(ahead.0);
        play.wait(2_000);
        let contest = play.try_offer().unwrap();
        assert!(contest.replacement);
        play.error(contest.attempt, 45);
        let asked = play.offer_again();
        play.zero(asked, 11 + 2 * round);
        assert!(play.resolutions.contains_key(&ahead.0));
        ahead = (behind, play.offer_again());
        let now = format!("{:?}", play.lane).matches("Contest {").count();
        size = size.max(now);
    }
    assert!(size <= 2, "{size} contests are remembered");
}

/// C4, V1: a refused replacement carries copies of what stands in the batches that it contests.
/// When one of these gives up its slot, its records go their own way: nothing else may carry them,
/// or they would be written twice.
#[test]
fn a_replacement_does_not_outlive_a_batch_that_gave_up_its_slot() {
    let mut play = Play::new();
    play.open_gate(10);
    let (revoked, lost) = play.append_and_offer(10 * MINUTE);
    let cancelled = play.join(play.now as i64, 10 * MINUTE);
    let kept = [0, 1].map(|_| play.join(play.now as i64, 10 * MINUTE));
    play.flush();
    let late = play.offer();
    play.next_route();
    play.tell(Event::Cancel(Ticket(cancelled)));
    play.revoke(revoked);
    play.wait(2_000);
    let contest = play.try_offer().unwrap();
    assert!(contest.replacement);
    assert_eq!(contest.batch.records(), kept.map(|ticket| ticket as u16));
    play.error(contest.attempt, 19);
    // The old connection tells that the second batch was never taken.
    play.error(late, 19);
    assert!(matches!(play.resolutions[&cancelled], Resolution::NotDelivered(_)));
    play.wait(2_000);
    let asked = play.try_offer().unwrap();
    assert_eq!(asked.batch.records(), [revoked as u16], "no content is left: it is asked itself");
    play.zero(asked.attempt, 11);
    play.lose(lost);
    assert_eq!(play.epoch_in_use(), 4);
    play.wait(2_000);
    let next = play.try_offer().unwrap();
    assert_eq!(next.batch.records(), kept.map(|ticket| ticket as u16));
}

/// The same, the code being permanent: its records would be told `NotDelivered` and be written.
#[test]
fn a_replacement_does_not_carry_what_was_told_not_delivered() {
    let mut play = Play::new();
    play.open_gate(10);
    let (revoked, lost) = play.append_and_offer(10 * MINUTE);
    let pair = [0, 1].map(|_| play.join(play.now as i64, 10 * MINUTE));
    play.flush();
    let second = play.offer();
    play.error(lost, 7);
    play.error(second, 19);
    play.revoke(revoked);
    play.wait(2_000);
    let contest = play.try_offer().unwrap();
    assert_eq!(contest.batch.records(), pair.map(|ticket| ticket as u16));
    // Its answer is late; the batches themselves are asked, and refused for good.
    play.next_route();
    let again = play.offer_again();
    play.error(again, 29);
    let asked = play.offer_again();
    play.error(asked, 29);
    let asked = play.offer_again();
    play.error(asked, 29);
    assert!(!play.verdicts.contains_key(&pair[0]), "the replacement may be in the log (D3)");
    play.next_route();
    play.error(contest.attempt, 19);
    assert!(matches!(play.verdicts[&pair[0]], Verdict::NotDelivered(_)));
    play.wait(2_000);
    let asked = play.try_offer().unwrap();
    assert_eq!(asked.batch.records(), [revoked as u16]);
}

/// S22, C1: a 0 behind what is certainly not written means that the broker lost our state. Then
/// the slot of a replacement proves nothing either: what it contested may be in the log.
#[test]
fn a_slot_taken_behind_a_refused_batch_proves_nothing() {
    let mut play = Play::new();
    play.open_gate(10);
    let (head, late) = play.append_and_offer(10 * MINUTE);
    let revoked = play.join(play.now as i64, 10 * MINUTE);
    let kept = play.join(play.now as i64, 10 * MINUTE);
    play.flush();
    let lost = play.offer();
    play.next_route();
    let asked = play.offer_again();
    play.error(asked, 45);
    play.revoke(revoked);
    play.wait(2_000);
    let contest = play.try_offer().unwrap();
    assert!(contest.replacement);
    play.error(late, 19);
    play.zero(contest.attempt, 20);
    assert_eq!(play.verdicts[&kept], Verdict::Delivered { offset: Offset::new(20) });
    assert_eq!(play.verdicts[&head], Verdict::NotDelivered(Proof::Overtaken));
    assert!(play.notices.contains(&Notice::StateLost));
    play.lose(lost);
    let resolution = play.resolutions[&revoked];
    assert!(matches!(resolution, Resolution::Never { reason: NeverReason::StateLost, .. }));
}
