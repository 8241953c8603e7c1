//! What a run is made of, drawn from its seed before anything happens.

use core::time::Duration;

use candor_core::{BeyondMemory, OnDataLoss};
use candor_proto::{Config, Partitioning};
use fastrand::Rng;

use super::neighbour::NEIGHBOURS;
use super::rows::Trouble;
use crate::broker::Profile;

/// The profiles that a swarm runs against.
pub const PROFILES: [Profile; 6] =
    [Profile::V2_4, Profile::V3_9, Profile::V4_0, Profile::V4_3, Profile::V4_4, Profile::V4_5];

/// Milliseconds and seconds in microseconds.
pub(super) const MS: u64 = 1_000;
pub(super) const SECOND: u64 = 1_000 * MS;
pub(super) const HOUR: u64 = 3_600 * SECOND;

/// When runs begin: 2023-11-14, in microseconds since the Unix epoch.
pub(super) const BEGIN: u64 = 1_700_000_000 * SECOND;

/// How many of a thousand scenarios have a caller that revokes, and how many one that abandons.
const CONTESTED: u32 = 400;
/// In how many of a thousand of those that revoke somebody deletes records.
const DELETED_AS_WELL: u32 = 700;

/// How rough a run is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Weather {
    /// Almost nothing happens.
    Calm,
    /// Something happens now and then.
    Mild,
    /// Much happens at once.
    Wild,
}

/// A topic to be written to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct TopicPlan {
    pub(super) name: String,
    pub(super) partitions: usize,
    pub(super) min_insync: usize,
    pub(super) log_append_time: bool,
    /// It exists before anybody asks for it.
    pub(super) exists: bool,
}

/// One run.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Scenario {
    pub(super) profile: Profile,
    pub(super) weather: Weather,
    /// How long troubles last, in microseconds.
    pub(super) trouble_for: u64,
    pub(super) records: u64,
    /// Records that the caller sends at once, at most.
    pub(super) burst: u64,
    /// Between two turns of the caller; by default what spreads the records over the troubles.
    pub(super) pause: Option<u64>,
    /// Records of each other producer of the same cluster.
    pub(super) neighbour_records: u64,
    pub(super) topics: Vec<TopicPlan>,
    pub(super) troubles: Vec<Trouble>,
    /// Mean time between two things that befall the cluster.
    pub(super) nemesis_every: u64,
    /// Of a thousand answers, connections or appends, how many have something happen to them.
    pub(super) permille: u32,
    /// Followers fetch at once, or every so often.
    pub(super) replicate_every: Option<u64>,
    /// `producer.id.expiration.ms`, and how often brokers look.
    pub(super) expiration: (u64, u64),
    pub(super) state_ttl: u64,
    pub(super) request_timeout: u64,
    pub(super) latency: u64,
    pub(super) longest_deadline: u64,
    pub(super) biggest_record: usize,
    pub(super) trust_base_offset: bool,
    pub(super) stop_on_loss: bool,
    pub(super) sticky: bool,
    /// The second epoch of every lane, if it is to be near the last.
    pub(super) climb: Option<i16>,
    /// The sequence that epochs start with, at the producer and at the brokers: often near 2^31.
    pub(super) origin: i32,
    pub(super) linger: u64,
    pub(super) batch_size: usize,
    pub(super) memory: usize,
    pub(super) max_in_flight: usize,
    pub(super) write_window: usize,
    pub(super) backoff: u64,
    pub(super) metadata_age: u64,
}

/// Draws.
pub(super) trait Dice {
    /// True in so many of a thousand cases.
    fn permille(&mut self, n: u32) -> bool;
    /// One of these.
    fn pick<T: Copy>(&mut self, all: &[T]) -> Option<T>;
    /// A time that is mostly about `mean`, and sometimes much longer.
    fn about(&mut self, mean: u64) -> u64;
}

impl Dice for Rng {
    fn permille(&mut self, n: u32) -> bool {
        self.u32(0..1_000) < n
    }

    fn pick<T: Copy>(&mut self, all: &[T]) -> Option<T> {
        if all.is_empty() { None } else { all.get(self.usize(0..all.len())).copied() }
    }

    fn about(&mut self, mean: u64) -> u64 {
        let stretch = if self.permille(100) { 4 } else { 1 };
        self.u64(0..=mean.max(1) * 2 * stretch)
    }
}

impl Scenario {
    /// The scenario of a seed.
    pub(super) fn draw(rng: &mut Rng, profile: Profile) -> Self {
        let weather = match rng.u32(0..10) {
            0..=1 => Weather::Calm,
            2..=6 => Weather::Mild,
            _ => Weather::Wild,
        };
        let (share, permille, nemesis_every) = match weather {
            Weather::Calm => (100, 10, 10 * SECOND),
            Weather::Mild => (250, 60, 2 * SECOND),
            Weather::Wild => (500, 200, 400 * MS),
        };
        let (contests, others): (Vec<_>, Vec<_>) =
            Trouble::ALL.iter().copied().partition(|trouble| trouble.is_contest());
        let mut troubles: Vec<Trouble> =
            others.into_iter().filter(|_| rng.permille(share)).collect();
        // Beside all other draws, which many seeds of the tables depend on.
        let mut wishes = Rng::with_seed(rng.clone().u64(..));
        troubles.extend(contests.into_iter().filter(|_| wishes.permille(CONTESTED)));
        // What a 0 in a revoked record's place tells depends on where the log begins (C1).
        let deletes = troubles.contains(&Trouble::Revoke) && wishes.permille(DELETED_AS_WELL);
        if deletes && !troubles.contains(&Trouble::Deleted) {
            troubles.push(Trouble::Deleted);
        }
        // A lie shows where a batch is answered twice.
        let lies = troubles.contains(&Trouble::Lie);
        if lies {
            troubles.extend([Trouble::LongTail, Trouble::ThereAndBack, Trouble::LeaderMove]);
            troubles.sort_unstable();
            troubles.dedup();
        }
        // What it says cannot be judged where logs lose what they held.
        let lasting =
            !troubles.contains(&Trouble::Recreated) && !troubles.contains(&Trouble::Deleted);
        let neighbour = lasting && troubles.contains(&Trouble::Neighbour);
        let short_memory = rng.permille(250);
        let (expiration, state_ttl) = if short_memory {
            ((60 * SECOND, 5 * SECOND), 45 * SECOND)
        } else {
            ((24 * HOUR, 600 * SECOND), 20 * HOUR)
        };
        let request_timeout = rng.pick(&[300, 1_000, 3_000, 10_000]).unwrap_or(1_000) * MS;
        let small = rng.permille(300);
        let tight = troubles.contains(&Trouble::BufferFull);
        Self {
            profile,
            weather,
            trouble_for: rng.u64(2..30) * SECOND,
            records: rng.u64(20..300),
            neighbour_records: if neighbour { rng.u64(5..80) } else { 0 },
            burst: 20,
            pause: None,
            topics: Self::draw_topics(rng),
            nemesis_every,
            permille,
            replicate_every: rng.permille(400).then(|| rng.pick(&[1, 5, 50]).unwrap_or(5) * MS),
            expiration,
            state_ttl,
            request_timeout,
            latency: rng.pick(&[100, 1_000, 5_000, 30_000]).unwrap_or(1_000),
            longest_deadline: rng.pick(&[500, 2_000, 10_000, 40_000]).unwrap_or(2_000) * MS,
            biggest_record: if small { 40 } else { 3_000 },
            trust_base_offset: rng.permille(300),
            stop_on_loss: rng.permille(250),
            sticky: rng.permille(200),
            climb: rng.permille(400).then(|| rng.i16(32_765..=32_766)),
            origin: if rng.bool() { i32::MAX - rng.i32(0..60) } else { 0 },
            linger: rng.pick(&[0, 1, 5, 50]).unwrap_or(5) * MS,
            batch_size: rng.pick(&[200, 1_000, 16_384]).unwrap_or(1_000),
            memory: if tight { 24 << 10 } else { 8 << 20 },
            max_in_flight: rng.usize(1..=5),
            write_window: rng.pick(&[1, 2_000, 1 << 20]).unwrap_or(1 << 20),
            backoff: rng.pick(&[5, 20, 100]).unwrap_or(20) * MS,
            metadata_age: if lies { 500 } else { rng.pick(&[500, 5_000, 10_000]).unwrap_or(500) }
                * MS,
            troubles,
        }
    }

    fn draw_topics(rng: &mut Rng) -> Vec<TopicPlan> {
        let count = rng.usize(1..=3);
        let plan = |(at, rng): (usize, &mut Rng)| TopicPlan {
            name: format!("topic-{at}"),
            partitions: rng.usize(1..=3),
            min_insync: rng.usize(1..=2),
            log_append_time: rng.permille(200),
            exists: rng.permille(850),
        };
        (0..count).map(|at| plan((at, rng))).collect()
    }

    /// A scenario in which nothing happens but what the caller does, in bursts.
    pub(super) fn calm(rng: &mut Rng) -> Self {
        Self {
            weather: Weather::Calm,
            trouble_for: 0,
            troubles: Vec::new(),
            nemesis_every: HOUR,
            permille: 0,
            replicate_every: None,
            neighbour_records: 0,
            burst: 2_000,
            pause: Some(5 * MS),
            expiration: (24 * HOUR, 600 * SECOND),
            state_ttl: 20 * HOUR,
            request_timeout: 10 * SECOND,
            latency: MS,
            longest_deadline: 40 * SECOND,
            biggest_record: 100,
            climb: None,
            origin: 0,
            linger: 5 * MS,
            batch_size: 16_384,
            memory: 64 << 20,
            max_in_flight: 5,
            write_window: 1 << 20,
            backoff: 100 * MS,
            metadata_age: 300 * SECOND,
            ..Self::draw(rng, Profile::V4_4)
        }
    }

    /// How many other producers write to the same partitions.
    pub(super) fn neighbours(&self) -> u32 {
        // Drawn with the records, which draw nothing of their own.
        match self.neighbour_records {
            0 => 0,
            records => (records % NEIGHBOURS) as u32 + 1,
        }
    }

    /// Whether a trouble belongs to this run.
    pub(super) fn has(&self, trouble: Trouble) -> bool {
        self.troubles.contains(&trouble)
    }

    /// The producer's configuration.
    pub(super) fn config(&self) -> Config {
        let micros = Duration::from_micros;
        Config::new(["node-1:9092", "node-2:9092", "node-3:9092"])
            .client_id("swarm")
            .deadline(micros(self.longest_deadline.min(self.state_ttl)))
            .linger(micros(self.linger))
            .batch_size(self.batch_size)
            .memory(self.memory)
            .max_in_flight(self.max_in_flight)
            .write_window(self.write_window)
            .request_timeout(micros(self.request_timeout))
            .connect_timeout(micros(self.request_timeout))
            .retry_backoff(micros(self.backoff))
            .retry_backoff_max(micros(self.backoff * 10))
            .reconnect_backoff(micros(self.backoff))
            .reconnect_backoff_max(micros(self.backoff * 10))
            .metadata_max_age(micros(self.metadata_age))
            .state_ttl(micros(self.state_ttl))
            .partitioning(if self.sticky { Partitioning::Sticky } else { Partitioning::Hashed })
            .on_data_loss(if self.stop_on_loss { OnDataLoss::Stop } else { OnDataLoss::Continue })
            .beyond_memory(BeyondMemory::Keep)
            .trust_base_offset(self.trust_base_offset)
    }
}
