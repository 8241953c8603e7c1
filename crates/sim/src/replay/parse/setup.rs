//! The lines before the first step.

use std::collections::BTreeMap;
use std::time::Duration;

use candor_core::{BeyondMemory, OnDataLoss, Span};
use candor_proto::{Config, Partitioning};

use super::super::error::ScriptError;
use super::super::script::{Brokers, NearTheEnd, Scenario, Setup, TopicPlan};
use super::super::words::Words;
use crate::broker::Profile;
use crate::codec::{INIT_PRODUCER_ID, METADATA, PRODUCE};

type Read<T = ()> = Result<T, ScriptError>;

impl Default for Setup {
    fn default() -> Self {
        Self {
            names: vec!["A".to_owned(), "B".to_owned()],
            seeds: vec!["seed".to_owned()],
            brokers: Brokers::Scripted,
            topics: Vec::new(),
            config: Config::new(["seed:9092"]).linger(Duration::ZERO),
            identity: (7, 0),
            versions: BTreeMap::new(),
            near_the_end: NearTheEnd::Nothing,
        }
    }
}

fn duration(span: Span) -> Duration {
    Duration::from_micros(span.as_micros())
}

impl Scenario {
    /// Reads a line of the setup; false if it is none.
    pub(super) fn read_setup(&mut self, words: &mut Words) -> Read<bool> {
        let Some(word) = words.peek().map(str::to_owned) else { return Ok(false) };
        if !matches!(
            &*word,
            "title"
                | "brokers"
                | "model"
                | "seeds"
                | "topic"
                | "config"
                | "pid"
                | "versions"
                | "sequences"
                | "epochs"
        ) {
            return Ok(false);
        }
        if word == "brokers" && matches!(words.second(), Some("answer" | "wait")) {
            return Ok(false);
        }
        words.skip();
        let setup = &mut self.setup;
        match &*word {
            "title" => self.title = words.rest(),
            "brokers" => setup.names = names(words)?,
            "model" => model(words, setup)?,
            "seeds" => setup.seed_by(names(words)?),
            "topic" => setup.topics.push(topic(words, &setup.names)?),
            "config" => setup.config = config(words, setup.config.clone())?,
            "pid" => setup.identity = identity(words)?,
            "versions" => versions(words, &mut setup.versions)?,
            which => {
                setup.near_the_end = match which {
                    "sequences" => NearTheEnd::Sequences,
                    _ => NearTheEnd::Epochs,
                };
                words.must("near")?;
                words.must("the")?;
                words.must("end")?;
            }
        }
        Ok(true)
    }
}

impl Setup {
    /// Seeds come before settings, which they would undo.
    fn seed_by(&mut self, seeds: Vec<String>) {
        let addresses = seeds.iter().map(|host| format!("{host}:9092"));
        self.config = Config::new(addresses).linger(Duration::ZERO);
        self.seeds = seeds;
    }
}

/// Hosts are in small letters, and so addresses are; names are not told apart by case.
fn name(word: &str) -> Option<String> {
    word.chars().all(char::is_alphanumeric).then(|| word.to_owned())
}

fn names(words: &mut Words) -> Read<Vec<String>> {
    let mut all = vec![words.read("the name of a broker", name)?];
    while !words.is_empty() {
        all.push(words.read("the name of a broker", name)?);
    }
    Ok(all)
}

fn profile(word: &str) -> Option<Profile> {
    crate::swarm::PROFILES.into_iter().find(|one| crate::swarm::profile_name(*one) == word)
}

fn model(words: &mut Words, setup: &mut Setup) -> Read {
    let mut all = Vec::new();
    let (mut version, mut min_insync) = (None, 1);
    while !words.is_empty() {
        if words.take("isr") {
            min_insync = words.number()?;
        } else if words.peek().is_some_and(|word| word.contains('.')) {
            version = Some(words.read("a version: 2.4, 3.9, 4.0, 4.3 or 4.4", profile)?);
        } else {
            all.push(words.read("the name of a broker", name)?);
        }
    }
    if all.is_empty() || all.len() > 9 {
        return Err(words.wanted("one to nine brokers"));
    }
    setup.names = all;
    setup.brokers = Brokers::Modelled { profile: version, min_insync };
    Ok(())
}

fn topic(words: &mut Words, brokers: &[String]) -> Read<TopicPlan> {
    let name = words.word("the name of a topic")?;
    let partitions = match words.is_empty() {
        true => 1,
        false => words.read("a number of partitions up to 2000", |word| {
            word.parse().ok().filter(|n| (1..=2_000).contains(n))
        })?,
    };
    let mut leaders = Vec::new();
    if words.take("led") {
        words.must("by")?;
        while !words.is_empty() {
            leaders.push(words.read("a broker that was named before", |word| {
                brokers.iter().find(|name| *name == word).cloned()
            })?);
        }
    }
    Ok(TopicPlan { name, partitions, leaders })
}

/// A producer id and an epoch: `7`, `7 epoch 3`.
pub(super) fn identity(words: &mut Words) -> Read<(i64, i16)> {
    let id = words.number()?;
    let epoch = if words.take("epoch") { words.number()? } else { 0 };
    Ok((id, epoch))
}

fn versions(words: &mut Words, into: &mut BTreeMap<i16, i16>) -> Read {
    while !words.is_empty() {
        let api = words.read("produce, metadata or id", |word| match word {
            "produce" => Some(PRODUCE),
            "metadata" => Some(METADATA),
            "id" => Some(INIT_PRODUCER_ID),
            _ => None,
        })?;
        into.insert(api, words.number()?);
    }
    Ok(())
}

fn config(words: &mut Words, mut config: Config) -> Read<Config> {
    const SETTING: &str = "a setting: linger, batch, request, memory, deadline, request-timeout, \
        connect-timeout, idle, backoff, backoff-max, reconnect, metadata-age, state-ttl, window, \
        in-flight, loss, beyond, trust, sticky or no-create";
    while !words.is_empty() {
        let setting = words.word(SETTING)?;
        config = match &*setting {
            "linger" => config.linger(duration(words.span()?)),
            "deadline" => config.deadline(duration(words.span()?)),
            "request-timeout" => config.request_timeout(duration(words.span()?)),
            "connect-timeout" => config.connect_timeout(duration(words.span()?)),
            "idle" => config.idle_timeout(duration(words.span()?)),
            "backoff" => config.retry_backoff(duration(words.span()?)),
            "backoff-max" => config.retry_backoff_max(duration(words.span()?)),
            "reconnect" => config.reconnect_backoff_max(duration(words.span()?)),
            "metadata-age" => config.metadata_max_age(duration(words.span()?)),
            "state-ttl" => config.state_ttl(duration(words.span()?)),
            "batch" => config.batch_size(words.number()?),
            "request" => config.max_request_size(words.number()?),
            "memory" => config.memory(words.number()?),
            "window" => config.write_window(words.number()?),
            "in-flight" => config.max_in_flight(words.number()?),
            "loss" => {
                words.must("stop")?;
                config.on_data_loss(OnDataLoss::Stop)
            }
            "beyond" => {
                words.must("resend")?;
                config.beyond_memory(BeyondMemory::Resend)
            }
            "trust" => config.trust_base_offset(true),
            "sticky" => config.partitioning(Partitioning::Sticky),
            "no-create" => config.auto_create_topics(false),
            other => return Err(words.not(Some(other), SETTING)),
        };
    }
    Ok(config)
}
