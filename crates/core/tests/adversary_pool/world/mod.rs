//! Lanes that share a pool of producer ids, connections and brokers, and everything that may befall
//! them.

// Before the modules, which use it.
macro_rules! say {
    ($world:expr, $($arg:tt)*) => {{
        if $world.tells {
            let at = ($world.now - START) as f64 / 1e3;
            let line = format!("{at:>12.3} {}", format!($($arg)*));
            $world.log.push(line);
        }
    }};
}

mod brokers;
mod client;
mod steps;
mod told;

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use candor_core::rules::Rules;
use candor_core::testing::{Counted, Preset};
use candor_core::{
    Action, Answer, Append as Record, AttemptId, BeyondMemory, Event, HandedOver, Identity,
    Instant, Lane, LaneConfig, LeaderEpoch, Misuse, NeverReason, Notice, Offset, OnDataLoss,
    PartitionResponse, Pool, PoolIndex, ProducerEpoch, ProducerId, Resolution, RouteId, Sequence,
    Span, Ticket, Verdict,
};

use super::broker::{Append, Batch, Judged, Manners, Partition, Stranger};
use super::dice::Dice;

pub(crate) const MILLIS: u64 = 1_000;
pub(crate) const SECOND: u64 = 1_000 * MILLIS;
pub(crate) const HOUR: u64 = 3_600 * SECOND;
const START: u64 = 1_700_000_000 * SECOND;
const BROKERS: usize = 3;
const TTL: Span = Span::from_secs(2 * 3600);

/// What is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Fault {
    pub(crate) kind: &'static str,
    pub(crate) detail: String,
}

fn fault<T>(kind: &'static str, detail: impl Into<String>) -> Result<T, Fault> {
    Err(Fault { kind, detail: detail.into() })
}

/// A request on its way to a broker, or being looked at there.
#[derive(Clone, Debug)]
struct Sent {
    lane: usize,
    attempt: AttemptId,
    append: Append,
    topic: u32,
    stored: Option<Stored>,
}

#[derive(Clone, Debug)]
struct Stored {
    base: i64,
    end: i64,
    log_append_time: i64,
    reign: Option<i32>,
    topic: u32,
}

#[derive(Clone, Debug)]
struct Conn {
    broker: usize,
    /// For the client.
    up: bool,
    sent: VecDeque<Sent>,
    answers: VecDeque<(usize, AttemptId, Answer)>,
    open: Vec<(usize, AttemptId)>,
}

#[derive(Clone, Debug)]
struct Story {
    deadline: u64,
    verdict: Option<Verdict>,
    resolution: Option<Resolution>,
}

impl Story {
    fn is_delivered(&self) -> bool {
        matches!(self.verdict, Some(Verdict::Delivered { .. }))
            || matches!(self.resolution, Some(Resolution::Delivered { .. }))
    }

    fn is_refused(&self) -> bool {
        matches!(self.verdict, Some(Verdict::NotDelivered(_)))
            || matches!(self.resolution, Some(Resolution::NotDelivered(_)))
    }

    fn is_over(&self) -> bool {
        match self.verdict {
            None => false,
            Some(Verdict::Unknown(_)) => self.resolution.is_some(),
            Some(_) => true,
        }
    }
}

/// Where a record stands in the logs: topic and offset.
type Places = Vec<(u32, i64)>;

struct Seat<R: Rules> {
    lane: Lane<Counted, R>,
    partition: Partition,
    index: Option<PoolIndex>,
    wants_id: bool,
    needs_leader: bool,
    route: Option<u64>,
    told_epoch: i32,
    told_topic: u32,
    held: bool,
    stories: BTreeMap<u16, Story>,
    places: BTreeMap<u16, Places>,
    next: u16,
    contents: BTreeMap<(u32, i64, i16, i32, u32), Vec<u16>>,
    /// The highest log start that the lane was told for the topic that it knows.
    seen_start: i64,
    /// Something was acknowledged in the log of that topic, at an offset.
    acknowledged: bool,
    unfenced: bool,
    forgotten: bool,
    excused: bool,
    poison: BTreeSet<u16>,
    limit: usize,
    fences: Vec<(u32, i64, i64, i16)>,
    offers_now: BTreeMap<(u32, i64, i16, i32, u32), u32>,
}

/// What may happen in a run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Menu {
    lanes: usize,
    by_name: bool,
    recreation: bool,
    deletion: bool,
    slander: bool,
    stale: bool,
    old_stamps: bool,
    trust: bool,
    moves: bool,
    long_waits: bool,
    beyond: bool,
    stops: bool,
    sluggish: bool,
    edge: u32,
}

impl Menu {
    fn draw(dice: &mut Dice) -> Self {
        Self {
            lanes: 1 + dice.below(3) as usize,
            by_name: dice.one_in(2),
            recreation: dice.one_in(3),
            deletion: dice.one_in(3),
            slander: dice.one_in(6),
            stale: dice.one_in(2),
            old_stamps: dice.one_in(3),
            trust: dice.one_in(3),
            moves: dice.one_in(2),
            long_waits: dice.one_in(3),
            beyond: dice.one_in(10),
            stops: dice.one_in(8),
            sluggish: dice.one_in(2),
            edge: dice.below(4),
        }
    }
}

pub(crate) struct World<R: Rules> {
    dice: Dice,
    menu: Menu,
    now: u64,
    seats: Vec<Seat<R>>,
    conns: BTreeMap<u64, Conn>,
    next_route: u64,
    alive: [bool; BROKERS],
    pool: Pool,
    next_id: i64,
    denied: bool,
    tells: bool,
    log: Vec<String>,
    pub(crate) tally: BTreeMap<&'static str, u64>,
    quiet: bool,
}

impl<R: Rules> World<R> {
    pub(crate) fn new(mut dice: Dice, tells: bool) -> Self {
        let menu = Menu::draw(&mut dice);
        let stranger = dice.of(&[
            Stranger::Accepted,
            Stranger::Accepted,
            Stranger::Answered59,
            Stranger::RefusedByEmptyLogs,
            Stranger::Answered45,
        ]);
        let manners = Manners {
            stranger,
            memory: (TTL.as_millis() + TTL.as_millis() / 5) as i64,
            log_append_time: dice.one_in(6),
            says_46: dice.one_in(6),
        };
        let mut world = Self {
            menu,
            now: START,
            seats: Vec::new(),
            conns: BTreeMap::new(),
            next_route: 1,
            alive: [true; BROKERS],
            pool: Pool::default(),
            next_id: 4_000,
            denied: false,
            tells,
            log: Vec::new(),
            tally: BTreeMap::new(),
            quiet: false,
            dice,
        };
        for _ in 0..menu.lanes {
            let seat = world.seat(manners);
            world.seats.push(seat);
        }
        say!(world, "{menu:?} {manners:?}");
        world
    }

    fn instant(&self) -> Instant {
        Instant::from_micros(self.now)
    }

    fn millis(&self) -> i64 {
        (self.now / MILLIS) as i64
    }

    fn count(&mut self, what: &'static str) {
        *self.tally.entry(what).or_default() += 1;
    }

    fn seat(&mut self, manners: Manners) -> Seat<R> {
        let config = LaneConfig {
            linger: Span::from_millis(self.dice.of(&[0, 5])),
            batch_size: self.dice.of(&[2, 1, 3, 5]),
            state_ttl: TTL,
            trust_base_offset: self.menu.trust,
            beyond_memory: match self.menu.beyond {
                true => BeyondMemory::Resend,
                false => BeyondMemory::Keep,
            },
            on_data_loss: match self.menu.stops {
                true => OnDataLoss::Stop,
                false => OnDataLoss::Continue,
            },
            jitter: self.dice.one_in(2).then_some(7),
            ..LaneConfig::default()
        };
        let mut partition = Partition::new(BROKERS, manners);
        partition.elect(self.dice.index(BROKERS));
        let now = self.instant();
        let near_wrap = self.menu.edge & 1 != 0;
        let near_last = self.menu.edge & 2 != 0;
        let mut next = 0;
        let (lane, index) = if near_wrap || near_last {
            let id = ProducerId::new(3_000).expect("an id");
            self.pool.add(id);
            let index = self.pool.next(None).map(|(index, _)| index);
            let epoch = if near_last { i16::MAX - 1 - self.dice.below(2) as i16 } else { 3 };
            let sequence = if near_wrap { i32::MAX - self.dice.below(6) as i32 } else { 1 };
            partition.preset(3_000, epoch, sequence.into(), self.millis(), 0);
            next = 1;
            let preset = Preset {
                identity: Identity { id, epoch: ProducerEpoch::new(epoch).expect("an epoch") },
                next: Sequence::new(sequence).expect("a sequence"),
                last_acknowledged: Offset::new(0).expect("an offset"),
            };
            (Lane::preset(config, now, preset), index)
        } else {
            (Lane::new(config, now), None)
        };
        let mut stories = BTreeMap::new();
        if next == 1 {
            let verdict = Some(Verdict::Delivered { offset: Offset::new(0) });
            stories.insert(0, Story { deadline: u64::MAX, verdict, resolution: None });
        }
        let places = stories.keys().map(|record| (*record, vec![(0, 0)])).collect();
        Seat {
            lane,
            partition,
            index,
            wants_id: false,
            needs_leader: false,
            route: None,
            told_epoch: -1,
            told_topic: 0,
            held: false,
            stories,
            places,
            next,
            contents: BTreeMap::new(),
            seen_start: -1,
            acknowledged: next == 1,
            unfenced: false,
            forgotten: false,
            excused: false,
            poison: BTreeSet::new(),
            limit: usize::MAX,
            fences: Vec::new(),
            offers_now: BTreeMap::new(),
        }
    }
}
