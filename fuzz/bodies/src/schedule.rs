//! Bytes as a schedule of events for one lane.

use std::collections::{BTreeMap, BTreeSet};

use candor_core::rules::{Honest, Rules};
use candor_core::testing::{Counted, Preset};
use candor_core::{
    Action, Answer, Append, AttemptId, BeyondMemory, Event, HandedOver, Identity, Instant, Lane,
    LaneConfig, LeaderEpoch, Misuse, Offer, Offset, OnDataLoss, PartitionResponse, ProducerEpoch,
    ProducerId, RouteId, Sequence, Settled, Span, Ticket, Verdict,
};

use crate::{Tally, feed::Feed};

const START: Instant = Instant::from_millis(1_700_000_000_000);

/// More steps than any input needs to show what it has.
const MOST_STEPS: usize = 1_000;

/// More rounds than the end of anything takes.
const MANY: usize = 20_000;

/// Rule S5.
const SPAN: usize = 5;

/// Error codes that mean something to a lane, and some that do not.
const CODES: [i16; 24] =
    [0, 0, 0, 2, 3, 5, 6, 7, 10, 13, 18, 19, 29, 45, 45, 46, 47, 56, 59, 59, 67, 87, 100, -1];

/// The first bytes configure a lane, the others say what happens to it: records, answers in any
/// order and of any content, leaders that move, time, a caller that cancels, revokes and abandons, and
/// calls that the contract forbids, which must be refused and change nothing.
///
/// At most five batches of an identity are in doubt at once (S5). Every record has one verdict, no later than it is
/// due, and every `Unknown` one resolution, by the end of a close.
pub fn schedule(data: &[u8]) {
    schedule_under::<Honest>(data);
}

/// As [`schedule`], for a lane under other rules: a body must find what is wrong with wrong ones.
pub fn schedule_under<R: Rules>(data: &[u8]) -> Tally {
    let mut feed = Feed::new(data);
    let mut world: World<R> = World::new(&mut feed);
    for _ in 0..MOST_STEPS {
        if feed.is_empty() {
            break;
        }
        world.step(&mut feed);
        world.poll();
    }
    world.finish();
    world.tally()
}

/// A batch by what it was offered under.
type Slot = (ProducerId, ProducerEpoch, i32);

/// An attempt without answer.
struct Open {
    attempt: AttemptId,
    slot: Slot,
    records: u32,
    handed: bool,
}

struct Sent {
    deadline: Instant,
    verdict: Option<Verdict>,
    resolved: bool,
}

impl Sent {
    fn is_over(&self) -> bool {
        match self.verdict {
            None => false,
            Some(Verdict::Unknown(_)) => self.resolved,
            Some(Verdict::Delivered { .. } | Verdict::NotDelivered(_)) => true,
        }
    }
}

struct World<R: Rules> {
    lane: Lane<Counted, R>,
    now: Instant,
    records: BTreeMap<Ticket, Sent>,
    next: u16,
    open: Vec<Open>,
    /// Batches that were offered and of which nobody said yet what became of them.
    in_doubt: BTreeMap<Slot, Vec<Ticket>>,
    route: Option<RouteId>,
    routes: u64,
    epoch: i32,
    held: bool,
    wants_identity: bool,
    ids: i64,
    end: i64,
    closes: Option<Instant>,
}

impl<R: Rules> World<R> {
    fn new(feed: &mut Feed<'_>) -> Self {
        let (byte, where_to) = (feed.byte(), feed.byte());
        let config = LaneConfig {
            linger: Span::from_millis(u64::from(byte & 1) * 5),
            batch_size: [1, 2, 3, 8][usize::from(byte >> 1 & 3)],
            jitter: (byte & 8 != 0).then_some(7),
            on_data_loss: [OnDataLoss::Continue, OnDataLoss::Stop][usize::from(byte >> 4 & 1)],
            beyond_memory: [BeyondMemory::Keep, BeyondMemory::Resend][usize::from(byte >> 5 & 1)],
            trust_base_offset: byte & 64 != 0,
            state_ttl: Span::from_secs([60, 72_000][usize::from(byte >> 7)]),
            ..LaneConfig::default()
        };
        let lane = match preset(where_to) {
            Some(preset) => Lane::preset(config, START, preset),
            None => Lane::new(config, START),
        };
        Self {
            lane,
            now: START,
            records: BTreeMap::new(),
            next: 0,
            open: Vec::new(),
            in_doubt: BTreeMap::new(),
            route: None,
            routes: 0,
            epoch: 0,
            held: false,
            wants_identity: false,
            ids: 1_000,
            end: 100,
            closes: None,
        }
    }

    fn step(&mut self, feed: &mut Feed<'_>) {
        match feed.byte() % 24 {
            0..=3 => self.append(feed),
            4..=6 => self.offer(usize::MAX),
            7 => self.offer(usize::from(feed.byte())),
            8 | 9 => self.answer(feed, 0),
            10 | 11 => {
                let code = feed.pick(&CODES);
                self.answer(feed, code);
            }
            12 => self.answer_anything(feed),
            13 => self.end_attempt(feed),
            14 => self.hand_over(feed),
            15 | 16 => self.pass_time(feed),
            17 => self.lead(feed),
            18 => self.give_identity(),
            19 => self.tell(Event::Flush),
            20 => self.caller_acts(feed),
            21 => self.hold(feed),
            22 => self.misuse(feed),
            _ => self.fleeting(feed),
        }
    }

    /// An event that the contract allows, and the lane may not refuse.
    fn tell(&mut self, event: Event<'_, Counted>) {
        assert_eq!(self.lane.handle(self.now, event), Ok(()), "the call was legal");
    }

    fn append(&mut self, feed: &mut Feed<'_>) {
        let byte = feed.byte();
        let time = [50, 1_000, 30_000, 120_000][usize::from(byte & 3)];
        let deadline = self.now + Span::from_millis(time);
        let old = i64::from(byte >> 2 & 7) * 20_000;
        let append = Append {
            ticket: Ticket(self.next.into()),
            born: self.now,
            deadline,
            timestamp: if byte & 128 != 0 { -1 } else { self.now.as_millis() - old },
            record: self.next,
        };
        match self.lane.handle(self.now, Event::Append(append)) {
            Ok(()) => {
                assert!(self.closes.is_none(), "a closed lane took a record");
                let sent = Sent { deadline, verdict: None, resolved: false };
                self.records.insert(Ticket(self.next.into()), sent);
            }
            Err(Misuse::Closed) => assert!(self.closes.is_some()),
            Err(why) => assert_eq!(
                (why, self.lane.is_stopped()),
                (Misuse::Stopped, true),
                "the call was legal"
            ),
        }
        self.next += 1;
    }

    fn offer(&mut self, max: usize) {
        let Some(route) = self.route else {
            assert_eq!(self.lane.offer(self.now, RouteId(self.routes), max), None);
            return;
        };
        let Some(offer) = self.lane.offer(self.now, route, max) else { return };
        assert!(!self.held, "offered although on hold");
        assert_eq!(offer.route, route);
        self.offered(&offer, max);
    }

    fn offered(&mut self, offer: &Offer<Counted>, max: usize) {
        let tickets: Vec<_> =
            offer.batch.records().into_iter().map(|number| Ticket(number.into())).collect();
        assert!((1..=max).contains(&tickets.len()), "{} records", tickets.len());
        assert!(tickets.is_sorted(), "records stay in order");
        let slot = (offer.identity.id, offer.identity.epoch, offer.first.get());
        let again = self.open.iter().any(|open| open.attempt == offer.attempt);
        assert!(!again, "{:?} was used twice", offer.attempt);
        let attempt = offer.attempt;
        let records = tickets.len() as u32;
        self.open.push(Open { attempt, slot, records, handed: false });
        self.in_doubt.insert(slot, tickets);
        let over = |ticket: &Ticket| self.records[ticket].is_over();
        self.in_doubt.retain(|_, tickets| !tickets.iter().all(over));
        let same = |other: &&Slot| (other.0, other.1) == (slot.0, slot.1);
        let span = self.in_doubt.keys().filter(same).count();
        assert!(span <= SPAN, "S5: {span} batches are in doubt under {:?}", offer.identity);
    }

    fn some_open(&self, feed: &mut Feed<'_>) -> Option<usize> {
        let byte = usize::from(feed.byte());
        (!self.open.is_empty()).then(|| byte % self.open.len())
    }

    fn answer(&mut self, feed: &mut Feed<'_>, code: i16) {
        let Some(at) = self.some_open(feed) else { return };
        let response = if code == 0 {
            let base = self.end;
            self.end += i64::from(self.open[at].records);
            PartitionResponse::appended(base)
        } else {
            PartitionResponse::error(code)
        };
        self.answered(at, response.into());
    }

    fn answer_anything(&mut self, feed: &mut Feed<'_>) {
        let Some(at) = self.some_open(feed) else { return };
        let kind = feed.byte();
        let response = PartitionResponse {
            error_code: if kind & 1 == 0 { feed.pick(&CODES) } else { feed.i16() },
            base_offset: i64::from(feed.i16()),
            log_append_time: if kind & 2 == 0 { -1 } else { self.now.as_millis() },
            log_start_offset: i64::from(feed.i16()),
            record_errors: feed
                .take(usize::from(kind >> 2 & 3))
                .iter()
                .map(|b| u32::from(*b))
                .collect(),
        };
        let answer = if kind > 240 { Answer::Missing } else { response.into() };
        self.answered(at, answer);
    }

    fn answered(&mut self, at: usize, answer: Answer) {
        let open = self.open.swap_remove(at);
        self.in_doubt.remove(&open.slot);
        self.tell(Event::Answered { attempt: open.attempt, answer });
    }

    fn end_attempt(&mut self, feed: &mut Feed<'_>) {
        let Some(at) = self.some_open(feed) else { return };
        let open = self.open.swap_remove(at);
        let whole = open.handed || feed.byte() & 1 == 0;
        if !whole {
            self.in_doubt.remove(&open.slot);
        }
        let handed = if whole { HandedOver::PerhapsWhole } else { HandedOver::Partly };
        self.tell(Event::Ended { attempt: open.attempt, handed });
    }

    fn hand_over(&mut self, feed: &mut Feed<'_>) {
        let Some(at) = self.some_open(feed) else { return };
        self.open[at].handed = true;
        let attempt = self.open[at].attempt;
        self.tell(Event::Handed { attempt });
    }

    fn pass_time(&mut self, feed: &mut Feed<'_>) {
        let byte = feed.byte();
        self.now = match (byte & 7, self.lane.deadline()) {
            (0..=3, Some(deadline)) => deadline.at,
            (6, _) => self.now + Span::from_secs(u64::from(byte) * 2),
            (7, _) => self.now + Span::from_secs(u64::from(byte) * 600),
            _ => self.now + Span::from_millis(u64::from(byte) * 2),
        };
    }

    fn lead(&mut self, feed: &mut Feed<'_>) {
        let byte = feed.byte();
        match byte % 8 {
            0 => self.route = None,
            1 => {}
            _ => {
                self.routes += 1;
                self.route = Some(RouteId(self.routes));
            }
        }
        match byte >> 3 & 3 {
            0 => {}
            3 => self.epoch -= 1,
            _ => self.epoch += 1,
        }
        let epoch = if byte & 128 != 0 { -1 } else { self.epoch };
        self.tell(Event::Leader { route: self.route, epoch: LeaderEpoch(epoch) });
    }

    fn give_identity(&mut self) {
        if core::mem::take(&mut self.wants_identity) {
            self.ids += 1;
            let identity = Identity::fresh(ProducerId::new(self.ids).expect("not negative"));
            self.tell(Event::Identity(identity));
        }
    }

    fn caller_acts(&mut self, feed: &mut Feed<'_>) {
        let byte = feed.byte();
        match byte % 8 {
            0..=3 => {
                let ticket = Ticket((byte >> 3).into());
                self.give_up(ticket, Event::Cancel(ticket));
            }
            4 => self.tell(Event::TopicRecreated),
            5 => self.tell(Event::Shed),
            6 => self.tell(Event::LeaderConfirmed { epoch: LeaderEpoch(self.epoch) }),
            _ if byte > 240 => self.close(Span::from_millis(u64::from(byte) * 8)),
            _ if byte < 16 => self.tell(Event::Abandon),
            _ => {
                let ticket = Ticket((byte >> 3).into());
                self.give_up(ticket, Event::Revoke(ticket));
            }
        }
    }

    /// Nobody waits for this record any more.
    fn give_up(&mut self, ticket: Ticket, event: Event<'_, Counted>) {
        self.tell(event);
        if let Some(sent) = self.records.get_mut(&ticket) {
            sent.deadline = sent.deadline.min(self.now);
        }
    }

    fn close(&mut self, span: Span) {
        let deadline = self.now + span;
        let deadline = self.closes.map_or(deadline, |before| before.min(deadline));
        self.closes = Some(deadline);
        self.tell(Event::Close { deadline });
    }

    fn hold(&mut self, feed: &mut Feed<'_>) {
        self.held = feed.byte() & 1 == 0;
        self.tell(if self.held { Event::Hold } else { Event::Release });
    }

    /// What the contract forbids is refused, and nothing has changed then.
    fn misuse(&mut self, feed: &mut Feed<'_>) {
        let before = self.lane.digest(self.now);
        let attempt = AttemptId(u64::from(feed.byte()));
        if self.open.iter().any(|open| open.attempt == attempt) {
            return;
        }
        let event = match feed.byte() % 4 {
            0 => Event::Answered { attempt, answer: PartitionResponse::appended(5).into() },
            1 => Event::Ended { attempt, handed: HandedOver::Partly },
            2 => Event::Handed { attempt },
            _ if self.wants_identity => return,
            _ => Event::Identity(Identity::fresh(ProducerId::new(1).expect("not negative"))),
        };
        assert!(self.lane.handle(self.now, event).is_err(), "the call was illegal");
        assert_eq!(self.lane.digest(self.now), before, "a refused call changed something");
    }

    /// Time that goes back is clamped; questions change nothing.
    fn fleeting(&mut self, feed: &mut Feed<'_>) {
        let ticket = Ticket(feed.byte().into());
        let before = self.lane.digest(self.now);
        let _ = (self.lane.why(ticket), self.lane.usage(), self.lane.offerable(START));
        assert_eq!(self.lane.digest(self.now), before, "a question changed something");
        assert_eq!(self.lane.poll(START), None, "polled out, and time did not go on");
    }

    fn poll(&mut self) {
        for _ in 0..MANY {
            match self.lane.poll(self.now) {
                Some(Action::Settled(settled)) => self.settled(&settled),
                Some(Action::NeedIdentity) => self.wants_identity = true,
                Some(Action::NeedLeader) => {}
                Some(Action::Notice(notice)) => assert!(!notice.to_string().is_empty()),
                None => return self.check(),
            }
        }
        panic!("poll never ends");
    }

    fn settled(&mut self, settled: &Settled) {
        for (ticket, verdict) in settled.verdicts() {
            let sent = self.records.get_mut(&ticket).expect("it was appended");
            assert_eq!(sent.verdict.replace(verdict), None, "a second verdict for {ticket}");
        }
        for (ticket, resolution) in settled.resolutions() {
            let sent = self.records.get_mut(&ticket).expect("it was appended");
            let unknown = matches!(sent.verdict, Some(Verdict::Unknown(_)));
            assert!(unknown, "{resolution:?} for {ticket}");
            assert!(!sent.resolved, "a second resolution for {ticket}");
            sent.resolved = true;
        }
    }

    /// D1: after `poll`, nobody waits whose time has come; and nothing is due at once.
    fn check(&self) {
        let mut untold = BTreeSet::new();
        for (ticket, sent) in &self.records {
            if sent.verdict.is_none() {
                untold.insert(*ticket);
                assert!(sent.deadline > self.now, "{ticket} has no verdict at its deadline");
            }
        }
        let closed = self.closes.is_some_and(|deadline| deadline <= self.now);
        if closed {
            assert!(self.records.values().all(Sent::is_over), "closed, and not all is told");
        }
        assert!(untold.is_empty() || !self.lane.is_idle(), "idle, and {untold:?} wait");
        let deadline = self.lane.deadline();
        assert!(deadline.is_none_or(|deadline| deadline.at > self.now), "{deadline:?}");
        assert!(untold.is_empty() || deadline.is_some(), "nothing will ever end {untold:?}");
    }

    /// The lane is closed, and nobody answers any more.
    fn finish(&mut self) {
        self.close(Span::from_secs(1));
        self.poll();
        for _ in 0..MANY {
            let Some(deadline) = self.lane.deadline() else { break };
            self.now = deadline.at;
            self.poll();
        }
        assert_eq!(self.lane.deadline(), None, "it never ends");
        assert!(self.lane.is_idle(), "not everything was told");
        for (ticket, sent) in &self.records {
            assert!(sent.is_over(), "{ticket}: {:?}", sent.verdict);
        }
    }

    /// How the records ended.
    fn tally(&self) -> Tally {
        let one = |sent: &Sent| Tally::count(sent.verdict, sent.resolved);
        self.records.values().map(one).fold(Tally::default(), |all, one| all + one)
    }
}

/// Most lanes start at nothing; some near the last sequence, some near the last epoch.
fn preset(byte: u8) -> Option<Preset> {
    let epoch = match byte % 4 {
        0 | 1 => return None,
        2 => 0,
        _ => 32_765 + i16::from(byte >> 2 & 1),
    };
    Some(Preset {
        identity: Identity {
            id: ProducerId::new(1_000).expect("not negative"),
            epoch: ProducerEpoch::new(epoch).expect("not negative"),
        },
        next: Sequence::new(i32::MAX - i32::from(byte >> 3)).expect("not negative"),
        last_acknowledged: Offset::new(99).expect("not negative"),
    })
}
