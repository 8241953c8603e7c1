//! Schedules written by hand.

use candor_core::testing::Counted;
use candor_core::{
    Action, Append, AttemptId, Event, HandedOver, Identity, Instant, Lane, LaneConfig, LeaderEpoch,
    Offer, PartitionResponse, ProducerId, Resolution, RouteId, Span, Ticket, Verdict,
};

const TTL: Span = Span::from_secs(20 * 3600);

struct Bench {
    lane: Lane<Counted>,
    now: Instant,
    verdicts: Vec<(u64, Verdict)>,
    resolutions: Vec<(u64, Resolution)>,
    notices: Vec<candor_core::Notice>,
    next: u64,
}

impl Bench {
    /// A lane with an identity, at its leader, after one record was delivered at offset 0.
    fn new() -> Self {
        let now = Instant::from_millis(1_700_000_000_000);
        let config = LaneConfig { linger: Span::ZERO, batch_size: 2, ..LaneConfig::default() };
        let lane = Lane::new(config, now);
        let (verdicts, resolutions, notices) = (Vec::new(), Vec::new(), Vec::new());
        let mut bench = Self { lane, now, verdicts, resolutions, notices, next: 0 };
        bench.append(60, 0);
        bench.tell(Event::Identity(Identity::fresh(ProducerId::new(7).expect("an id"))));
        bench.lead(1, 1);
        bench
    }

    fn tell(&mut self, event: Event<'_, Counted>) {
        self.tell_only(event);
        self.poll();
    }

    /// Without a poll behind it.
    fn tell_only(&mut self, event: Event<'_, Counted>) {
        self.lane.handle(self.now, event).expect("no misuse");
    }

    fn poll(&mut self) {
        while let Some(action) = self.lane.poll(self.now) {
            match action {
                Action::Settled(settled) => {
                    self.verdicts.extend(settled.verdicts().map(|(t, it)| (t.0, it)));
                    self.resolutions.extend(settled.resolutions().map(|(t, it)| (t.0, it)));
                }
                Action::Notice(notice) => self.notices.push(notice),
                Action::NeedIdentity | Action::NeedLeader => {}
            }
        }
    }

    fn append(&mut self, seconds: u64, age: i64) {
        let ticket = self.next;
        self.next += 1;
        let append = Append {
            ticket: Ticket(ticket),
            born: self.now,
            deadline: self.now + Span::from_secs(seconds),
            timestamp: self.now.as_millis() - age,
            record: ticket as u16,
        };
        self.tell(Event::Append(append));
    }

    fn lead(&mut self, route: u64, epoch: i32) {
        self.tell(Event::Leader { route: Some(RouteId(route)), epoch: LeaderEpoch(epoch) });
    }

    fn offer(&mut self, route: u64) -> Offer<Counted> {
        self.lane.offer(self.now, RouteId(route), usize::MAX).expect("something to offer")
    }

    fn lose(&mut self, attempt: AttemptId) {
        self.tell(Event::Ended { attempt, handed: HandedOver::PerhapsWhole });
    }

    fn answer(&mut self, attempt: AttemptId, response: PartitionResponse) {
        self.tell(Event::Answered { attempt, answer: response.into() });
    }

    fn wait(&mut self, span: Span) {
        self.now = self.now + span;
        self.poll();
    }

    fn verdict(&self, ticket: u64) -> Option<Verdict> {
        self.verdicts.iter().find(|(it, _)| *it == ticket).map(|(_, verdict)| *verdict)
    }

    fn resolution(&self, ticket: u64) -> Option<Resolution> {
        self.resolutions.iter().find(|(it, _)| *it == ticket).map(|(_, it)| *it)
    }

    fn offset(&self, ticket: u64) -> Option<i64> {
        match (self.verdict(ticket)?, self.resolution(ticket)) {
            (Verdict::Delivered { offset }, _) | (_, Some(Resolution::Delivered { offset })) => {
                offset.map(candor_core::Offset::get)
            }
            (Verdict::NotDelivered(_) | Verdict::Unknown(_), _) => None,
        }
    }
}

/// B1 = [1, 2] is in doubt and 1 is revoked, so that C = [2, 3, 4] is offered in its place.
fn contested() -> (Bench, Offer<Counted>, Offer<Counted>) {
    let mut bench = Bench::new();
    let opener = bench.offer(1);
    bench.answer(opener.attempt, PartitionResponse::appended(0));
    bench.append(60, 0);
    bench.append(60, 0);
    let first = bench.offer(1);
    bench.append(60, 0);
    bench.append(60, 0);
    assert_eq!(first.batch.records(), [1, 2]);
    bench.tell(Event::Revoke(Ticket(1)));
    bench.lose(first.attempt);
    bench.lead(2, 1);
    bench.wait(Span::from_secs(2));
    let replacement = bench.offer(2);
    assert!(replacement.replacement);
    (bench, first, replacement)
}

/// What a record was told by one batch and has from another has the place that it has there.
#[test]
fn a_record_that_was_given_up_and_arrives_before_the_next_poll_has_its_own_offset() {
    let (mut bench, _, replacement) = contested();
    let records = replacement.batch.records();
    assert_eq!(records[0], 2, "{records:?}");
    bench.tell_only(Event::Abandon);
    bench.tell_only(Event::Answered {
        attempt: replacement.attempt,
        answer: PartitionResponse::appended(1).into(),
    });
    bench.poll();
    assert_eq!(bench.offset(2), Some(1), "record 2 is the first of {records:?}");
}

/// The same where a caller polls for one verdict, and hears of an answer before it polls again.
#[test]
fn a_record_that_is_due_and_arrives_before_the_next_poll_has_its_own_offset() {
    let (mut bench, _, replacement) = contested();
    bench.now = bench.now + Span::from_secs(100);
    assert!(bench.lane.poll(bench.now).is_some());
    bench.tell_only(Event::Answered {
        attempt: replacement.attempt,
        answer: PartitionResponse::appended(1).into(),
    });
    bench.poll();
    let told = bench.verdict(2).is_some();
    assert!(
        !told || bench.offset(2) == Some(1),
        "{:?} {:?}",
        bench.verdict(2),
        bench.resolution(2)
    );
}

/// S18, S20: the topic that showed LogAppendTime is gone, and the new one may have CreateTime: what
/// it is stamped with counts until the new topic shows otherwise.
#[test]
fn a_topic_made_anew_shows_its_own_timestamp_type() {
    let mut bench = Bench::new();
    let opener = bench.offer(1);
    let stamped = PartitionResponse {
        log_append_time: bench.now.as_millis(),
        ..PartitionResponse::appended(0)
    };
    bench.answer(opener.attempt, stamped);
    bench.tell(Event::TopicRecreated);
    bench.lead(1, 0);
    bench.append(60, TTL.as_millis() as i64 + 3_600_000);
    bench.wait(Span::from_secs(2));
    let offer = bench.offer(1);
    bench.lose(offer.attempt);
    bench.lead(2, 0);
    bench.wait(Span::from_secs(2));
    let again = bench.lane.offer(bench.now, RouteId(2), usize::MAX);
    assert_eq!(again, None, "its broker may have forgotten it already");
    assert!(matches!(bench.resolution(1), Some(Resolution::Never { .. })));
}

/// D6: delivered records come in the order of their offsets, also if some of them were about to be
/// told `Unknown`.
#[test]
fn what_was_about_to_be_unknown_is_delivered_in_its_turn() {
    let mut bench = Bench::new();
    let opener = bench.offer(1);
    bench.answer(opener.attempt, PartitionResponse::appended(0));
    for seconds in [10, 10, 60, 60, 10, 10] {
        bench.append(seconds, 0);
    }
    let batches: Vec<_> = (0..3).map(|_| bench.offer(1)).collect();
    bench.now = bench.now + Span::from_secs(10);
    assert!(bench.lane.poll(bench.now).is_some(), "the first two are unknown");
    for (batch, base) in batches.iter().zip([1, 3, 5]) {
        bench.tell_only(Event::Answered {
            attempt: batch.attempt,
            answer: PartitionResponse::appended(base).into(),
        });
    }
    bench.poll();
    let delivered: Vec<u64> = bench.verdicts.iter().map(|(ticket, _)| *ticket).collect();
    assert_eq!(delivered, [0, 3, 4, 5, 6]);
}
