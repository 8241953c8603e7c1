//! Plays one script of the vector table against a fresh model cluster.

use std::collections::BTreeMap;

use candor_sim::broker::{
    Batch, Cluster, Config, Flaw, NodeId, PartAnswer, Partition, ProducePart, ProduceRequest,
    Profile, Reply, RequestId, Stamps, Stop, TimestampType, TopicRef,
};

type Done<T = ()> = Result<T, String>;

/// 2020-09-13, so that "an hour ago" is a plain number.
const START: i64 = 1_600_000_000_000;
const TOPIC: &str = "t";
const SOUND: u32 = 0;
const OTHER: u32 = 1;

pub(crate) struct Stage {
    profile: Profile,
    cluster: Cluster<u32>,
    now: i64,
    pids: BTreeMap<String, i64>,
    id: [u8; 16],
    old_id: [u8; 16],
    waiting: BTreeMap<String, RequestId>,
    arrived: Vec<(RequestId, Vec<PartAnswer>)>,
}

/// A batch with everything around it that a request needs.
struct Shot {
    at: Option<NodeId>,
    topic: TopicRef,
    partition: i32,
    acks: i16,
    version: i16,
    batch: Batch<u32>,
}

/// What came back.
#[derive(Debug)]
enum Got {
    Answers(Vec<PartAnswer>),
    Waiting(RequestId),
    Silent,
    Closed,
}

/// Plays `script` and says which step went wrong.
pub(crate) fn play(profile: Profile, script: &str) -> Done {
    let mut stage = Stage::new(profile, 1, 1);
    for step in script.split(';').map(str::trim).filter(|step| !step.is_empty()) {
        stage.step(step).map_err(|wrong| format!("at `{step}`: {wrong}"))?;
    }
    Ok(())
}

impl Stage {
    fn new(profile: Profile, nodes: u8, replicas: usize) -> Self {
        let ids: Vec<NodeId> = (1..=nodes).map(NodeId).collect();
        let mut cluster = Cluster::new(profile, &ids, START);
        let id = cluster.create_topic(TOPIC, 4, replicas);
        let (waiting, arrived) = (BTreeMap::new(), Vec::new());
        Self {
            profile,
            cluster,
            now: START,
            pids: BTreeMap::new(),
            id,
            old_id: [0; 16],
            waiting,
            arrived,
        }
    }

    fn step(&mut self, step: &str) -> Done {
        let (action, expected) = match step.split_once("->") {
            Some((action, expected)) => (action.trim(), Some(expected.trim())),
            None => (step, None),
        };
        let words: Vec<&str> = action.split_whitespace().collect();
        match (words[0], expected) {
            ("[", Some(expected)) => self.whole_request(action, expected),
            (init, Some(expected)) if init.starts_with("init(") => self.init(init, expected),
            (name, Some(expected)) if self.waiting.contains_key(name) => {
                self.arrival(name, expected)
            }
            _ if action.contains('(') && words[0] != "holds" => self.shot(&words, expected),
            _ => self.event(&words),
        }
    }

    // ---- requests -------------------------------------------------------------------------

    /// `[P1] [at 2] [late] q(e,s,n) mods -> answer`; without an answer it has to be appended.
    fn shot(&mut self, words: &[&str], expected: Option<&str>) -> Done {
        let shot = self.aim(words)?;
        let node = self.target(&shot)?;
        let (partition, count) =
            (usize::try_from(shot.partition).unwrap_or(usize::MAX), shot.batch.count);
        let stamp = shot.batch.stamps.max();
        let before = self.end(partition, node);
        let fallback = format!("0@{before}");
        let expected = expected.unwrap_or(&fallback);
        let patient = !expected.starts_with("wait");
        let got = self.fire(vec![shot], node, patient)?;
        let appended = self.end(partition, node) - before;
        let due = match got {
            Got::Answers(answers) => {
                let [answer] = answers.as_slice() else {
                    return Err(format!("answers {answers:?}"));
                };
                check(&answer.answer, expected, stamp)?;
                matches!(answer.answer.code, 0 | 6 | 7 | 20) && answer.answer.base_offset == before
            }
            Got::Waiting(id) => {
                let name = expected.strip_prefix("wait ").ok_or("it waits")?;
                self.waiting.insert(name.to_owned(), id);
                return Ok(());
            }
            Got::Silent if expected == "silent" => true,
            Got::Closed if expected == "close" => false,
            Got::Silent | Got::Closed => return Err(format!("got {got:?}")),
        };
        let wanted = if due { i64::from(count) } else { 0 };
        if appended == wanted {
            Ok(())
        } else {
            Err(format!("{appended} records appended, not {wanted}"))
        }
    }

    /// `[ shot | shot ] -> P0 answer | P1 answer`: one request; the order of answers is free.
    fn whole_request(&mut self, action: &str, expected: &str) -> Done {
        let inner = action.trim_matches(['[', ']', ' ']);
        let shots = inner.split('|').filter(|shot| !shot.trim().is_empty());
        let shots: Vec<Shot> = shots
            .map(|shot| self.aim(&shot.split_whitespace().collect::<Vec<_>>()))
            .collect::<Done<_>>()?;
        let before: i64 = (0..4).map(|p| self.end(p, NodeId(1))).sum();
        let Got::Answers(answers) = self.fire(shots, NodeId(1), true)? else {
            return Err("no answers".into());
        };
        let wanted: Vec<&str> =
            expected.split('|').map(str::trim).filter(|part| *part != "none").collect();
        if wanted.len() != answers.len() {
            return Err(format!("got {answers:?}"));
        }
        let mut good = 0;
        for part in wanted {
            let (place, text) = part.split_once(' ').ok_or("place and answer")?;
            let found = answers.iter().find(|answer| place == self.place(answer));
            let answer = &found.ok_or_else(|| format!("no answer for {place}"))?.answer;
            check(answer, text, -1)?;
            good += i64::from(answer.code == 0);
        }
        let after: i64 = (0..4).map(|p| self.end(p, NodeId(1))).sum();
        if after - before == good {
            Ok(())
        } else {
            Err(format!("{} records appended", after - before))
        }
    }

    fn place(&self, answer: &PartAnswer) -> String {
        match &answer.topic {
            TopicRef::Name(name) if name == TOPIC => format!("P{}", answer.partition),
            TopicRef::Name(name) => name.clone(),
            TopicRef::Id(id) => format!("{id:?}"),
        }
    }

    fn fire(&mut self, shots: Vec<Shot>, node: NodeId, patient: bool) -> Done<Got> {
        let (acks, version) = shots.first().map_or((-1, 9), |shot| (shot.acks, shot.version));
        let part = |shot: Shot| ProducePart {
            topic: shot.topic,
            partition: shot.partition,
            batch: shot.batch,
        };
        let parts = shots.into_iter().map(part).collect();
        let request = ProduceRequest { acks, timeout_ms: 500, version, parts };
        let id = match self.cluster.produce(node, self.now, request) {
            Reply::Answers(answers) => return Ok(Got::Answers(answers)),
            Reply::Silent => return Ok(Got::Silent),
            Reply::Close => return Ok(Got::Closed),
            Reply::Waiting(id) => id,
        };
        self.replicate();
        if !self.has_arrived(id) && patient {
            self.pass(500);
        }
        match self.arrived.iter().position(|(done, _)| *done == id) {
            Some(at) => Ok(Got::Answers(self.arrived.remove(at).1)),
            None if patient => Err("never answered".into()),
            None => Ok(Got::Waiting(id)),
        }
    }

    fn has_arrived(&self, id: RequestId) -> bool {
        self.arrived.iter().any(|(done, _)| *done == id)
    }

    /// `A -> answer`: what waited is answered by now.
    fn arrival(&mut self, name: &str, expected: &str) -> Done {
        self.collect();
        let id = self.waiting.remove(name).ok_or("unknown name")?;
        let at = self.arrived.iter().position(|(done, _)| *done == id).ok_or("still waiting")?;
        let (_, answers) = self.arrived.remove(at);
        check(&answers[0].answer, expected, -1)
    }

    fn init(&mut self, call: &str, expected: &str) -> Done {
        let args: Vec<&str> =
            call.trim_start_matches("init(").trim_end_matches(')').split(',').collect();
        let [name, pid, epoch] = args[..] else { return Err("three arguments".into()) };
        let name = match name {
            "null" => None,
            text => Some(text.trim_matches('"')),
        };
        let pid = if pid == "p" { self.pid("p")? } else { number(pid)? };
        let got = self.cluster.init_producer_id(NodeId(1), name, pid, narrow(epoch)?);
        match (got, expected) {
            (Ok((fresh, 0)), "new") if !self.pids.values().any(|known| *known == fresh) => {
                self.pids.insert(format!("taken {fresh}"), fresh);
                Ok(())
            }
            (Err(code), _) if code.to_string() == expected => Ok(()),
            (got, _) => Err(format!("got {got:?}")),
        }
    }

    // ---- reading shots --------------------------------------------------------------------

    fn aim(&mut self, words: &[&str]) -> Done<Shot> {
        let at = words.iter().position(|word| word.contains('(')).ok_or("no batch")?;
        let (who, rest) = words[at].split_once('(').ok_or("no batch")?;
        let numbers: Vec<&str> = rest.trim_end_matches(')').split(',').collect();
        let [epoch, first, count] = numbers[..] else { return Err("(epoch,first,count)".into()) };
        let pid = match who {
            "" => self.pid("p")?,
            "none" => -1,
            "unheard" => 1_000_000_000_000_000,
            name => self.pid(name)?,
        };
        let (epoch, first, count) = (narrow(epoch)?, narrow(first)?, narrow(count)?);
        let batch = Batch { bytes: 100, ..Batch::new(pid, epoch, first, count, self.now, SOUND) };
        let topic = TopicRef::Name(TOPIC.to_owned());
        let mut shot = Shot { at: None, topic, partition: 0, acks: -1, version: 9, batch };
        let mut words = words.iter().enumerate().filter(|(i, _)| *i != at).map(|(_, word)| *word);
        while let Some(word) = words.next() {
            match word {
                "at" => shot.at = Some(NodeId(narrow(words.next().ok_or("at whom")?)?)),
                "late" | "again" => {}
                word => self.modify(&mut shot, word)?,
            }
        }
        Ok(shot)
    }

    fn modify(&self, shot: &mut Shot, word: &str) -> Done {
        let (key, value) = word.split_once('=').unwrap_or((word, ""));
        match key {
            "acks" => shot.acks = narrow(value)?,
            "v" => shot.version = narrow(value)?,
            "topic" => shot.topic = TopicRef::Name(value.to_owned()),
            "id" => {
                shot.version = 13;
                shot.topic = TopicRef::Id(match value {
                    "old" => self.old_id,
                    "zero" => [0; 16],
                    _ => self.id,
                });
            }
            "other" => shot.batch.content = OTHER,
            "bytes" => shot.batch.bytes = narrow(value)?,
            "bit3" => shot.batch.attributes |= 8,
            "txn" => shot.batch.attributes |= 0x10,
            "control" => shot.batch.attributes |= 0x20,
            "zstd" => shot.batch.attributes |= 4,
            "keyless" => shot.batch.keyless = (0..shot.batch.count).collect(),
            "crc" => shot.batch.flaw = Some(Flaw::BadCrc),
            "cut" => shot.batch.flaw = Some(Flaw::CutShort),
            "two-batches" => shot.batch.flaw = Some(Flaw::TwoBatches),
            "base" => shot.batch.flaw = Some(Flaw::BaseOffset(number(value)?)),
            "delta" => shot.batch.flaw = Some(Flaw::LastOffsetDelta(narrow(value)?)),
            "stamp" => shot.batch.stamps = Stamps::Same(self.stamp(value)?),
            "stamps" => {
                let stamps =
                    value.split(',').map(|stamp| self.stamp(stamp)).collect::<Done<_>>()?;
                shot.batch.stamps = Stamps::Each(stamps);
            }
            word if word.starts_with('P') => shot.partition = narrow(&word[1..])?,
            _ => return Err(format!("what is `{word}`?")),
        }
        Ok(())
    }

    /// `none` is -1, `first` the time of the start, `-1h` an hour ago, `now` now.
    fn stamp(&self, text: &str) -> Done<i64> {
        Ok(match text {
            "none" => -1,
            "now" => self.now,
            "first" => START,
            ago if ago.starts_with('-') => self.now - millis(&ago[1..])?,
            ahead => self.now + millis(ahead.trim_start_matches('+'))?,
        })
    }

    fn pid(&mut self, name: &str) -> Done<i64> {
        if let Some(pid) = self.pids.get(name) {
            return Ok(*pid);
        }
        let got = self.cluster.init_producer_id(NodeId(1), None, -1, -1);
        let (pid, _) = got.map_err(|code| format!("no producer id: {code}"))?;
        self.pids.insert(name.to_owned(), pid);
        Ok(pid)
    }

    fn target(&self, shot: &Shot) -> Done<NodeId> {
        let known =
            usize::try_from(shot.partition).ok().and_then(|p| self.cluster.partition(TOPIC, p));
        let leader = known.map_or(Some(NodeId(1)), Partition::leader);
        shot.at.or(leader).ok_or_else(|| "nobody leads".to_owned())
    }

    fn end(&self, partition: usize, node: NodeId) -> i64 {
        self.cluster.partition(TOPIC, partition).and_then(|p| p.end_offset(node)).unwrap_or(0)
    }

    // ---- events ---------------------------------------------------------------------------

    fn event(&mut self, words: &[&str]) -> Done {
        let node = words.get(1).and_then(|word| word.parse().ok()).map_or(NodeId(1), NodeId);
        match words[0] {
            "nodes" => *self = Self::new(self.profile, narrow(words[1])?, narrow(words[3])?),
            "clean" => self.restart(&[Stop::Clean]),
            "crash" => self.restart(&[Stop::Crash]),
            "both" => self.restart(&[Stop::Clean, Stop::Crash]),
            "stop" => self.cluster.stop(node, Stop::Clean),
            "kill" => self.cluster.stop(node, Stop::Crash),
            "start" => self.cluster.start(node, self.now),
            "stall" => self.cluster.stall(node),
            "cut" => self.cluster.cut_off(node),
            "wake" => self.cluster.reconnect(node),
            "replicate" => self.replicate(),
            "checkpoint" => self.cluster.checkpoint(),
            "roll" => self.partition()?.roll(node),
            "delete" => said(self.partition()?.delete_records(number(words[1])?))?,
            "shrink" => said(self.partition()?.leave_isr(node))?,
            "lead" => said(self.cluster.move_leader(TOPIC, 0, node))?,
            "reassign" => self.reassign(node)?,
            "pass" => self.pass(millis(words[1])?),
            "memory" => {
                let expiration = millis(words[1])?;
                self.cluster.configure(TOPIC, |config| config.producer_expiration_ms = expiration);
                self.cluster.check_producers_every(500, self.now);
            }
            "set" => self.set(words[1])?,
            "delete-topic" => {
                self.cluster.delete_topic(TOPIC);
                self.old_id = self.id;
            }
            "create-topic" => self.id = self.cluster.create_topic(TOPIC, 4, 1),
            _ => self.claim(words)?,
        }
        self.collect();
        Ok(())
    }

    /// Statements about what the replicas hold.
    fn claim(&mut self, words: &[&str]) -> Done {
        let pid = self.pid("p")?;
        let partition = self.partition()?;
        let leader = partition.leader().ok_or("nobody leads")?;
        let known = partition.known(leader, pid);
        let entries = partition.entries(leader);
        let found = match words[0] {
            "forgotten" => String::from(if known.is_none() { "forgotten" } else { "known" }),
            "known" => known.map_or_else(
                || "forgotten".into(),
                |k| format!("known last={}", k.newest().last()),
            ),
            "copies" => {
                format!("copies {}", entries.iter().filter(|entry| entry.pid == pid).count())
            }
            "attributes" => {
                format!("attributes {}", entries.last().map_or(-1, |entry| entry.attributes))
            }
            // `holds 2 (e,s,n)` on every replica
            "holds" => {
                let offset = number(words[1])?;
                let everywhere: Vec<String> = partition
                    .nodes()
                    .filter_map(|node| {
                        partition.entries(node).iter().find(|e| e.base_offset == offset)
                    })
                    .map(|e| format!("holds {offset} ({},{},{})", e.epoch, e.first, e.count))
                    .collect();
                let differs = everywhere.iter().find(|held| **held != words.join(" "));
                differs.or_else(|| everywhere.first()).cloned().unwrap_or_default()
            }
            what => return Err(format!("what is `{what}`?")),
        };
        if found == words.join(" ") { Ok(()) } else { Err(found) }
    }

    fn set(&mut self, setting: &str) -> Done {
        let (key, value) = setting.split_once('=').ok_or("key=value")?;
        let change: Box<dyn Fn(&mut Config)> = match key {
            "max.message.bytes" => {
                let bytes = narrow(value)?;
                Box::new(move |config| config.max_message_bytes = bytes)
            }
            "min.insync" => {
                let replicas = narrow(value)?;
                Box::new(move |config| config.min_insync_replicas = replicas)
            }
            "before.max" => {
                let limit = millis(value)?;
                Box::new(move |config| config.timestamp_before_max_ms = limit)
            }
            "compact" => Box::new(|config| config.compacted = true),
            "log-append-time" => {
                Box::new(|config| config.timestamp_type = TimestampType::LogAppendTime)
            }
            _ => return Err("unknown setting".into()),
        };
        self.cluster.configure(TOPIC, change);
        Ok(())
    }

    fn restart(&mut self, how: &[Stop]) {
        for how in how {
            self.cluster.stop(NodeId(1), *how);
            self.cluster.start(NodeId(1), self.now);
        }
    }

    fn reassign(&mut self, to: NodeId) -> Done {
        let now = self.now;
        let partition = self.partition()?;
        let old = partition.leader().ok_or("nobody leads")?;
        said(partition.add_replica(to))?;
        partition.settle(now);
        said(self.cluster.move_leader(TOPIC, 0, to))?;
        said(self.partition()?.remove_replica(old))
    }

    fn partition(&mut self) -> Done<&mut Partition<u32>> {
        self.cluster.partition_mut(TOPIC, 0).ok_or_else(|| "the topic is gone".to_owned())
    }

    fn replicate(&mut self) {
        self.cluster.replicate(self.now);
        self.collect();
    }

    fn collect(&mut self) {
        let completed = self.cluster.completed(self.now);
        self.arrived.extend(completed);
    }

    fn pass(&mut self, millis: i64) {
        let until = self.now + millis;
        while self.now < until {
            self.now = self.cluster.next_timer().clamp(self.now + 1, until);
            self.cluster.advance(self.now);
            self.collect();
        }
    }
}

/// Compares with `code@offset` and `log=`, `time=`, `errors=`, `leader=`, `quiet` behind it.
fn check(answer: &candor_sim::broker::Answer, expected: &str, stamp: i64) -> Done {
    let mut wanted = expected.split_whitespace();
    let mut wrong =
        wanted.next() != Some(format!("{}@{}", answer.code, answer.base_offset).as_str());
    for word in wanted {
        let (key, value) = word.split_once('=').unwrap_or((word, ""));
        let found = match key {
            "log" => answer.log_start_offset.to_string(),
            "time" if value == "stamp" => {
                String::from(if answer.log_append_time == stamp { "stamp" } else { "other" })
            }
            "time" => answer.log_append_time.to_string(),
            "errors" => {
                answer.record_errors.iter().map(ToString::to_string).collect::<Vec<_>>().join(",")
            }
            "leader" => answer.current_leader.map_or_else(|| "none".into(), |l| l.node.to_string()),
            "quiet" if answer.record_errors.is_empty() && answer.message.is_none() => String::new(),
            _ => String::from("?"),
        };
        wrong |= found != value;
    }
    if wrong { Err(format!("got {answer:?}")) } else { Ok(()) }
}

fn said<E: ToString>(result: Result<(), E>) -> Done {
    result.map_err(|error| error.to_string())
}

/// A number; `M` is 2^31 - 1.
fn number(text: &str) -> Done<i64> {
    let max = i64::from(i32::MAX);
    if let Some(less) = text.strip_prefix('M') {
        return if less.is_empty() { Ok(max) } else { Ok(max + number(less)?) };
    }
    text.parse().map_err(|_| format!("no number: `{text}`"))
}

fn narrow<T: TryFrom<i64>>(text: &str) -> Done<T> {
    T::try_from(number(text)?).map_err(|_| format!("out of range: `{text}`"))
}

/// `500ms`, `4s`, `50min`, `25h`.
fn millis(text: &str) -> Done<i64> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit = match &text[digits.len()..] {
        "ms" => 1,
        "s" => 1_000,
        "min" => 60_000,
        "h" => 3_600_000,
        _ => return Err(format!("no duration: `{text}`")),
    };
    Ok(number(digits)? * unit)
}
