//! Random acts of callers, drivers, networks and brokers, several partitions at once, judged by a
//! ledger of its own.

#![allow(clippy::unwrap_used, clippy::panic)]

mod adversary;
mod dice;

use core::time::Duration;

use adversary::cluster::{Cluster, NODES, Trouble};
use adversary::judge::judge;
use adversary::{START, Sent, World};
use candor_core::{Proof, Resolution, Ticket, Verdict};
use candor_proto::{Config, Notice};
use dice::Dice;

const MS: u64 = 1_000;
const SECOND: u64 = 1_000 * MS;

/// Bytes of the table of tickets when nothing is in it.
const PAGE: usize = 3_136;

impl Dice {
    fn one<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.below(of.len() as u64) as usize]
    }

    fn node(&mut self) -> i32 {
        1 + self.below(NODES as u64) as i32
    }
}

/// What a run may do beside the ordinary.
#[derive(Clone, Copy, Debug)]
struct Kinds {
    /// Topics are deleted and made anew.
    recreates: bool,
    /// Records are stamped long ago, brokers forget, and hours pass.
    forgets: bool,
    /// Callers revoke and abandon.
    revokes: bool,
}

struct Run {
    dice: Dice,
    world: World,
    kinds: Kinds,
}

impl Run {
    fn new(seed: u64) -> Self {
        let mut dice = Dice(seed);
        let kinds = Kinds {
            recreates: dice.below(4) == 0,
            forgets: dice.below(4) == 0,
            revokes: dice.below(3) > 0,
        };
        let memory = dice.one(&[9_000, 30_000, 1_000_000]);
        let config = Config::new(["b1:9092", "b2:9092"])
            .linger(Duration::from_millis(dice.below(3) * 4))
            .batch_size(dice.one(&[150, 400, 10_000]))
            .max_in_flight(1 + dice.below(5) as usize)
            .write_window(dice.one(&[300, 100_000]))
            .request_timeout(Duration::from_millis(dice.one(&[500, 5_000, 30_000])))
            .memory(memory);
        let versions = dice.one(&[(13, 12), (13, 12), (12, 12), (11, 9), (7, 8), (3, 5)]);
        let cluster = Cluster::new(versions);
        let kinds = Kinds { recreates: kinds.recreates && versions.1 >= 10, ..kinds };
        let config = match dice.below(5) {
            0 => config.state_ttl(Duration::from_secs(20)).deadline(Duration::from_secs(20)),
            1 => config.trust_base_offset(true),
            2 => config.metadata_max_age(Duration::from_secs(2)),
            3 => config.linger(Duration::from_secs(3)),
            _ => config,
        };
        let mut world = World::new(&config, memory, cluster);
        world.ascend = !kinds.recreates;
        Self { dice, world, kinds }
    }

    fn recent(&mut self) -> Option<Ticket> {
        let back = self.dice.below(12) as usize;
        self.world.sent.keys().rev().nth(back).copied()
    }

    fn act(&mut self) {
        match self.dice.below(20) {
            0..=7 => self.send(),
            8 | 9 => self.call(),
            10 if self.kinds.revokes => self.contest(),
            10..=15 => self.pass(),
            16 | 17 => self.disturb_network(),
            18 => self.disturb_brokers(),
            _ => self.disturb_answers(),
        }
    }

    fn send(&mut self) {
        let (topic, partitions) =
            self.dice.one(&[("x", 3), ("x", 3), ("y", 2), ("y", 2), ("z", 1)]);
        let partition = self.dice.below(partitions) as i32;
        let partition = (self.dice.below(5) > 0).then_some(partition);
        let within = self.dice.one(&[0, 1, 50 * MS, SECOND, 4 * SECOND, 120 * SECOND, u64::MAX]);
        let hour = 3_600_000;
        let now = (self.world.now / 1_000) as i64;
        let old = self.kinds.forgets && self.dice.below(4) == 0;
        let stamp = old.then(|| now - self.dice.one(&[19, 21, 23, 25, 500_000]) * hour);
        let size = self.dice.one(&[3, 3, 60, 400]);
        for _ in 0..=self.dice.below(4) {
            self.world.send(topic, partition, within, stamp, size);
        }
    }

    fn call(&mut self) {
        match self.dice.below(8) {
            0 | 1 => {
                if let Some(ticket) = self.recent() {
                    self.world.cancel(ticket);
                }
            }
            2..=4 if self.kinds.revokes => {
                if let Some(ticket) = self.recent() {
                    self.world.revoke(ticket);
                }
            }
            5 if self.kinds.revokes => {
                let (topic, partition) = (self.dice.one(&["x", "y"]), self.dice.below(3) as i32);
                let _ = self.world.producer.abandon(self.world.at(), topic, partition);
            }
            6 => {
                let end = self.world.producer.stats().counts.accepted;
                let id = self.world.producer.flush(self.world.at());
                self.world.flushes.insert(id, end);
            }
            _ => {}
        }
    }

    /// A record comes into doubt, is revoked, and others come behind it.
    fn contest(&mut self) {
        let (topic, partitions) = self.dice.one(&[("x", 3), ("y", 2)]);
        let partition = self.dice.below(partitions) as i32;
        let found = self.world.cluster.topics.get(topic);
        let found = found.and_then(|it| it.partitions.get(partition as usize));
        let Some(leader) = found.map(|it| it.leader) else { return };
        let heard = self.dice.below(3) > 0;
        if !heard {
            self.world.mute.insert(leader);
        }
        let within = self.dice.one(&[2 * SECOND, 60 * SECOND]);
        let mut tickets = Vec::new();
        for _ in 0..=self.dice.below(3) {
            tickets.extend(self.world.send(topic, Some(partition), within, None, 3));
            let rounds = self.dice.below(4) as usize;
            self.world.pump(rounds, 1 << 20);
        }
        self.world.cut(leader, self.dice.below(2) == 0, true);
        self.world.mute.remove(&leader);
        let Some(ticket) = tickets.get(self.dice.below(3) as usize) else { return };
        self.world.revoke(*ticket);
        for _ in 0..self.dice.below(5) {
            self.world.send(topic, Some(partition), within, None, 3);
        }
    }

    /// Time passes: everything in its time, some of it, or nothing but time.
    fn pass(&mut self) {
        let long = self.dice.one(&[0, 1, 2 * MS, 90 * MS, 700 * MS, 3 * SECOND, 40 * SECOND]);
        match self.dice.below(7) {
            0 => {
                let (rounds, most) = (self.dice.below(6) as usize, self.dice.one(&[7, 90, 5_000]));
                self.world.pump(rounds, most);
            }
            1 => {
                self.world.now += long;
                self.world.pump(1, 1 << 20);
            }
            2 if self.kinds.forgets && self.dice.below(8) == 0 => {
                self.world.now += self.dice.one(&[1, 19, 21, 26]) * 3_600 * SECOND;
            }
            3 => {
                self.world.clock_back = long;
                self.world.pump(1, 1 << 20);
            }
            _ => self.world.run(long),
        }
    }

    fn disturb_network(&mut self) {
        let node = self.dice.node();
        let world = &mut self.world;
        match self.dice.below(12) {
            0 | 1 => {
                let (haunts, knows) = (self.dice.below(2) == 0, self.dice.below(4) > 0);
                world.cut(node, haunts, knows);
            }
            2 => {
                world.down.insert(node);
                world.cut(node, self.dice.below(2) == 0, true);
            }
            3 => _ = world.mute.insert(node),
            4 => _ = world.stuck.insert(node),
            5 => _ = world.hung.insert(node),
            6..=8 => {
                for set in [&mut world.down, &mut world.mute, &mut world.stuck, &mut world.hung] {
                    set.remove(&node);
                }
            }
            9 => world.reports = !world.reports,
            _ => {
                let (which, arrives) = (self.dice.next() as usize, self.dice.below(4) > 0);
                world.haunt(which, arrives);
            }
        }
    }

    fn disturb_brokers(&mut self) {
        let node = self.dice.node();
        let now = (self.world.now / 1_000) as i64;
        let cluster = &mut self.world.cluster;
        let pick = self.dice.next() as usize;
        match self.dice.below(12) {
            0..=3 => {
                let leader = self.dice.one(&[1, 2, 3, 1, 2, 3, -1]);
                let loses = self.dice.below(2) == 0;
                let reloads = self.dice.below(2) == 0;
                let mut partitions = cluster.partitions();
                if partitions.is_empty() {
                    return;
                }
                let at = pick % partitions.len();
                let partition = &mut partitions[at];
                partition.leader = leader;
                partition.epoch += 1;
                if loses {
                    partition.log.lose_tail();
                }
                if reloads {
                    partition.log.reload();
                }
            }
            4 => {
                // A restart: the same leader in a newer epoch, and the newest batches only.
                for partition in cluster.partitions() {
                    if partition.leader == node {
                        partition.epoch += 1;
                        partition.log.reload();
                    }
                }
                self.world.cut(node, false, true);
            }
            5 | 6 => {
                let mut partitions = cluster.partitions();
                if let Some(at) = pick.checked_rem(partitions.len()) {
                    partitions[at].stalled ^= true;
                }
            }
            7 => {
                let snapshot = cluster.snapshot();
                cluster.stale.insert(node, snapshot);
            }
            8 => {
                cluster.port ^= 1;
                cluster.stale.clear();
                cluster.forgetful.clear();
            }
            9 => _ = cluster.forgetful.insert(node),
            10 if self.kinds.forgets => {
                // A copy that is on its way for longer is a limit that is published (assumptions.md).
                if self.world.links.values().all(|link| link.is_quiet()) {
                    self.world.ghosts.clear();
                    cluster.partitions().into_iter().for_each(|it| it.log.forget(now));
                }
            }
            11 if self.kinds.recreates => {
                let name = self.dice.one(&["x", "y"]);
                if cluster.topics.contains_key(name) {
                    cluster.delete(name);
                } else {
                    cluster.create(name, 1 + self.dice.below(3) as i32);
                }
            }
            _ => {
                let mut partitions = cluster.partitions();
                partitions.iter_mut().for_each(|it| it.stalled = false);
            }
        }
    }

    fn disturb_answers(&mut self) {
        let cluster = &mut self.world.cluster;
        match self.dice.below(8) {
            0 => cluster.throttle_ms = self.dice.one(&[0, 0, 30, 2_500]),
            1 if self.dice.below(2) == 0 => {
                let (name, code) =
                    (self.dice.one(&["x", "y", "z"]), self.dice.one(&[17, 29, 5, 3]));
                match self.dice.below(3) {
                    0 => _ = cluster.topic_errors.insert(name.to_owned(), code),
                    1 if !cluster.topics.contains_key("z") => cluster.create("z", 2),
                    _ => cluster.topic_errors.clear(),
                }
            }
            1 => cluster.init_errors.push_back(self.dice.one(&[14, 15, 31])),
            2..=4 => {
                let code = self.dice.one(&[19, 19, 10, 29, 87, 2, 5, 14, 9, 32, 74, 17]);
                let trouble = Trouble::Before(code);
                let times = 1 + self.dice.below(4);
                (0..times).for_each(|_| cluster.trouble.push_back(trouble));
            }
            5 | 6 => {
                let trouble = Trouble::After(self.dice.one(&[7, 6, 20, 3, 56, -1, 999]));
                cluster.trouble.push_back(trouble);
            }
            _ => {
                let trouble = self.dice.one(&[Trouble::Missing, Trouble::Twice, Trouble::Hint]);
                cluster.trouble.push_back(trouble);
            }
        }
    }

    /// Everything heals, and everybody is served again.
    fn end(&mut self) {
        self.world.heal();
        self.world.run(120 * SECOND);
        for (topic, partitions) in [("x", 3), ("y", 2)] {
            let partitions =
                partitions.min(self.world.cluster.topics[topic].partitions.len() as i32);
            for partition in 0..partitions {
                let fresh = self.world.send(topic, Some(partition), 60 * SECOND, None, 3);
                self.world.run(8 * SECOND);
                assert!(fresh.is_some() || self.kinds.recreates, "refused");
                if let Some(fresh) = fresh {
                    let verdict = self.world.sent[&fresh].verdict.map(|it| it.1);
                    let delivered = matches!(verdict, Some(Verdict::Delivered { .. }));
                    // Made anew, and found out only now.
                    let excused = self.kinds.recreates;
                    let kinds = self.kinds;
                    assert!(
                        delivered || excused,
                        "{topic}-{partition}: {kinds:?} {:?} {:?}",
                        self.world.sent[&fresh],
                        self.world.notices.iter().rev().take(6).collect::<Vec<_>>()
                    );
                }
            }
        }
    }

    fn close(&mut self, within: u64) {
        self.world.close(within);
        self.world.run(within.min(30 * SECOND));
        assert!(self.world.closed.is_some(), "closed by its deadline");
        let stats = self.world.producer.stats();
        let counts = stats.counts;
        assert!(stats.memory <= PAGE, "{} bytes are held for nothing", stats.memory);
        assert_eq!((stats.connections, counts.refused_by_lane), (0, 0));
        assert_eq!(counts.accepted, counts.delivered + counts.not_delivered + counts.unknown);
        assert_eq!((counts.unknown, stats.waiting), (counts.resolved, 0));
        assert_eq!(self.world.flushed.len(), self.world.flushes.len());
        for _ in 0..2_000 {
            let (which, arrives) = (self.dice.next() as usize, self.dice.below(4) > 0);
            self.world.haunt(which, arrives);
        }
        judge(&self.world);
    }

    fn alarms(&self) -> Vec<String> {
        let alarm = |notice: &&Notice| match notice {
            Notice::Partition { notice, .. } => matches!(
                notice,
                candor_core::Notice::DataLoss { .. }
                    | candor_core::Notice::Contradiction { .. }
                    | candor_core::Notice::IdentityConflict
            ),
            Notice::ConnectionFailed { .. }
            | Notice::NoProducerId { .. }
            | Notice::TopicRefused { .. }
            | Notice::TopicRecreated { .. } => false,
        };
        self.world.notices.iter().filter(alarm).map(ToString::to_string).collect()
    }
}

fn run(seed: u64) -> Ends {
    let mut run = Run::new(seed);
    let steps = 20 + run.dice.below(250);
    (0..steps).for_each(|_| run.act());
    let abrupt = run.dice.below(3) == 0;
    if abrupt {
        let within = run.dice.one(&[0, 1, 100 * MS, 5 * SECOND, 30 * SECOND]);
        run.close(within);
    } else {
        run.end();
        run.close(30 * SECOND);
    }
    assert!(run.kinds.recreates || run.alarms().is_empty(), "{:?}", run.alarms());
    let polls = run.world.polls;
    let seconds = (run.world.now - START) / SECOND;
    let most = 2_000 + 60 * seconds + 400 * (steps + run.world.cluster.requests);
    assert!(polls < most, "{polls} polls in {seconds} s, {} requests", run.world.cluster.requests);
    let mut ends = Ends::default();
    run.world.sent.values().for_each(|sent| ends.add(sent));
    ends
}

/// How many records ended how.
#[derive(Clone, Copy, Debug, Default)]
struct Ends {
    delivered: u32,
    not_delivered: u32,
    unknown: u32,
    /// Of those: in the log after all, not, by a contest, for ever unknown.
    found: u32,
    refused: u32,
    taken: u32,
    never: u32,
}

impl Ends {
    fn add(&mut self, sent: &Sent) {
        match sent.verdict.map(|(_, verdict)| verdict) {
            Some(Verdict::Delivered { .. }) => self.delivered += 1,
            Some(Verdict::NotDelivered(_)) => self.not_delivered += 1,
            Some(Verdict::Unknown(_)) | None => self.unknown += 1,
        }
        match sent.resolution {
            Some(Resolution::Delivered { .. }) => self.found += 1,
            Some(Resolution::NotDelivered(Proof::SlotTaken)) => self.taken += 1,
            Some(Resolution::NotDelivered(_)) => self.refused += 1,
            Some(Resolution::Never { .. }) => self.never += 1,
            None => {}
        }
    }

    fn sum(self, other: Self) -> Self {
        Self {
            delivered: self.delivered + other.delivered,
            not_delivered: self.not_delivered + other.not_delivered,
            unknown: self.unknown + other.unknown,
            found: self.found + other.found,
            refused: self.refused + other.refused,
            taken: self.taken + other.taken,
            never: self.never + other.never,
        }
    }

    fn least(self) -> u32 {
        let Self { delivered, not_delivered, unknown, found, refused, taken, never } = self;
        let counts = [delivered, not_delivered, unknown, found, refused, taken, never];
        counts.into_iter().min().unwrap()
    }
}

#[test]
fn verdicts_are_true_with_several_partitions_and_whoever_is_slow() {
    let number = |name: &str| std::env::var(name).ok().and_then(|it| it.parse().ok());
    let from: u64 = number("ADVERSARY_FROM").unwrap_or(0);
    let seeds: u64 = number("ADVERSARY_SEEDS").unwrap_or(60);
    let mut total = Ends::default();
    let mut failed = Vec::new();
    for seed in from..from + seeds {
        match std::panic::catch_unwind(|| run(seed)) {
            Ok(ends) => total = total.sum(ends),
            Err(_) => {
                println!("seed {seed}");
                failed.push(seed);
            }
        }
    }
    println!("{total:?} {failed:?}");
    assert!(failed.is_empty(), "seeds {failed:?}");
    assert!(seeds < 50 || total.least() > 0, "every kind of end was seen: {total:?}");
}

/// L3, S21: brokers that tell different stories, none of them new, are not asked without end.
#[test]
fn brokers_that_contradict_each_other_are_not_hammered() {
    let config = Config::new(["b3:9092"]).linger(Duration::ZERO);
    let mut world = World::new(&config, 64 << 20, Cluster::new((13, 12)));
    let lead = |world: &mut World, leader: i32, epoch: i32| {
        let mut partitions = world.cluster.partitions();
        (partitions[0].leader, partitions[0].epoch) = (leader, epoch);
    };
    for node in [1, 2] {
        lead(&mut world, node, 4 + node);
        let then = world.cluster.snapshot();
        world.cluster.stale.insert(node, then);
    }
    lead(&mut world, 3, 7);
    let first = world.send("x", Some(0), 60 * SECOND, None, 3).unwrap();
    world.run(SECOND);
    assert!(matches!(world.sent[&first].verdict, Some((_, Verdict::Delivered { .. }))));
    world.down.insert(3);
    world.cut(3, false, true);
    let before = world.cluster.requests;
    let last = world.send("x", Some(0), 60 * SECOND, None, 3).unwrap();
    world.run(20 * SECOND);
    let asked = world.cluster.requests - before;
    assert!((5..100).contains(&asked), "{asked} requests in 20 s");
    world.cluster.stale.clear();
    lead(&mut world, 2, 8);
    world.run(3 * SECOND);
    assert!(matches!(world.sent[&last].verdict, Some((_, Verdict::Delivered { .. }))));
}
