//! Applications of `candor-tokio` that the harness on real Kafka runs and judges: see README.md beside this file.
//!
//! `candor-kafka SCENARIO BOOTSTRAP TOPIC` tells what happened as one JSON object per line;
//! `candor-kafka faults ..` is described in `faults/mod.rs`.

mod faults;

use std::future::{Future, poll_fn};
use std::io::Write as _;
use std::pin::Pin;
use std::process::ExitCode;
use std::task::Poll;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use candor_tokio::{Config, Producer, Record, Resolution, Unknown, Verdict};
use serde_json::{Value, json};

/// How long anything may take that is not the point of a scenario.
const PATIENCE: Duration = Duration::from_secs(30);
/// The deadline that must pass while the brokers stand still.
const DEADLINE: Duration = Duration::from_secs(2);
const PRODUCERS: u64 = 10;
const RECORDS_EACH: u64 = 200;
const VALUE_BYTES: usize = 10_000;

fn main() -> Result<ExitCode> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.split_first() {
        Some((first, rest)) if first == "faults" => {
            Ok(if faults::run(rest)? { ExitCode::SUCCESS } else { ExitCode::FAILURE })
        }
        _ => scenario(&arguments).map(|()| ExitCode::SUCCESS),
    }
}

#[tokio::main]
async fn scenario(arguments: &[String]) -> Result<()> {
    let [scenario, bootstrap, topic] = arguments else {
        bail!("usage: candor-kafka concurrent|ten|paused|moved BOOTSTRAP TOPIC");
    };
    let config = Config::new(bootstrap.split(','));
    match scenario.as_str() {
        "concurrent" => concurrent(config, topic).await,
        "ten" => ten(config, topic).await,
        "paused" => paused(config, topic).await,
        // A leader that stands still is left when a request to it takes too long.
        "moved" => paused(config.request_timeout(DEADLINE), topic).await,
        other => bail!("there is no scenario {other}"),
    }
}

/// 20 sends at once, as a producer does it by default; then 20 more, each a batch of its own, so that
/// several requests are open at once.
async fn concurrent(config: Config, topic: &str) -> Result<()> {
    let single = config.clone().linger(Duration::ZERO).batch_size(1);
    for (round, config) in [("together", config), ("alone", single)] {
        let producer = Producer::connect(config).await?;
        let values: Vec<String> = (0..20).map(|n| format!("{round} {n}")).collect();
        let sends = values.iter().map(|value| producer.send(to(topic, value)));
        let verdicts = all(sends).await;
        let told: Vec<Value> =
            values.iter().zip(&verdicts).map(|(value, verdict)| tell(value, verdict)).collect();
        say(&json!({ "verdicts": told }))?;
        producer.close(PATIENCE).await;
    }
    Ok(())
}

/// Producers that share nothing but the partition they write to, and their flush.
async fn ten(config: Config, topic: &str) -> Result<()> {
    let mut tasks = tokio::task::JoinSet::new();
    for number in 0..PRODUCERS {
        tasks.spawn(one_of_ten(config.clone(), topic.to_owned(), number));
    }
    while let Some(told) = tasks.join_next().await {
        say(&told??)?;
    }
    Ok(())
}

async fn one_of_ten(config: Config, topic: String, number: u64) -> Result<Value> {
    let producer = Producer::connect(config).await?;
    let mut handles = Vec::new();
    for n in 0..RECORDS_EACH {
        let value = format!("{:x<VALUE_BYTES$}", format!("{number} {n} "));
        handles.push(producer.enqueue(to(&topic, &value)).await?);
    }
    producer.flush().await;
    let mut delivered = 0;
    for verdict in all(handles).await {
        delivered += u64::from(verdict.is_delivered());
    }
    producer.close(PATIENCE).await;
    Ok(json!({ "producer": number, "records": RECORDS_EACH, "delivered": delivered }))
}

/// One record that waits for its deadline and one that is told to give up, while a broker stands still.
async fn paused(config: Config, topic: &str) -> Result<()> {
    let producer = Producer::connect(config).await?;
    let ready = producer.send(to(topic, "ready")).await;
    ensure!(ready.is_delivered(), "the first record: {ready:?}");
    say(&json!({ "event": "ready" }))?;
    hear("paused").await?;

    let doubtful = unknowns(&producer, topic).await?;
    hear("go on").await?;

    for (name, unknown) in doubtful {
        let resolution = tokio::time::timeout(PATIENCE, unknown.resolved()).await?;
        say(&tell_resolution(name, &resolution))?;
    }
    let values: Vec<String> = (0..5).map(|n| format!("after {n}")).collect();
    let verdicts = all(values.iter().map(|value| producer.send(to(topic, value)))).await;
    let told: Vec<Value> =
        values.iter().zip(&verdicts).map(|(value, verdict)| tell(value, verdict)).collect();
    say(&json!({ "verdicts": told }))?;
    producer.close(PATIENCE).await;
    Ok(())
}

/// The two sends, their verdicts told as they come. Both are on their way before the second gives up.
async fn unknowns(producer: &Producer, topic: &str) -> Result<Vec<(&'static str, Unknown)>> {
    let before = producer.stats().machine.counts.offers;
    let given_up = async {
        offered(producer, before + 1).await?;
        let (fire, fired) = tokio::sync::oneshot::channel::<()>();
        let send = producer.send(to(topic, "until")).until(async {
            // A sender that is gone fires as well: nobody is left to wait for.
            let _ = fired.await;
        });
        let pull_out = async {
            offered(producer, before + 2).await?;
            let begun = Instant::now();
            let _ = fire.send(());
            anyhow::Ok(begun)
        };
        let (verdict, begun) = tokio::join!(send, pull_out);
        settle("until", verdict, begun?)
    };
    let timed_out = async {
        let begun = Instant::now();
        let verdict = producer.send(to(topic, "deadline").deadline(DEADLINE)).await;
        settle("deadline", verdict, begun)
    };
    let (timed_out, given_up) = tokio::join!(timed_out, given_up);
    Ok(vec![("deadline", timed_out?), ("until", given_up?)])
}

/// Tells a verdict and keeps what is unknown of it.
fn settle(name: &'static str, verdict: Verdict, begun: Instant) -> Result<Unknown> {
    let after = u64::try_from(begun.elapsed().as_millis())?;
    let mut told = tell(name, &verdict);
    told["name"] = name.into();
    told["after_ms"] = after.into();
    say(&told)?;
    match verdict {
        Verdict::Unknown(unknown) => Ok(unknown),
        other @ (Verdict::Delivered(_) | Verdict::NotDelivered(_)) => {
            bail!("{name} is not unknown: {other:?}")
        }
    }
}

/// Until so many batches were offered to connections.
async fn offered(producer: &Producer, batches: u64) -> Result<()> {
    let polling = async {
        while producer.stats().machine.counts.offers < batches {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    tokio::time::timeout(DEADLINE, polling).await.context("never offered")
}

fn to<'a>(topic: &'a str, value: &'a str) -> Record<'a> {
    Record::to(topic).partition(0).value(value)
}

fn tell(value: &str, verdict: &Verdict) -> Value {
    match verdict {
        Verdict::Delivered(at) => {
            json!({ "value": value, "verdict": "delivered", "offset": at.offset })
        }
        Verdict::NotDelivered(no) => {
            json!({ "value": value, "verdict": "not_delivered", "reason": no.to_string() })
        }
        Verdict::Unknown(unknown) => {
            json!({ "value": value, "verdict": "unknown", "reason": unknown.to_string() })
        }
    }
}

fn tell_resolution(name: &str, resolution: &Resolution) -> Value {
    match resolution {
        Resolution::Delivered(at) => {
            json!({ "name": name, "resolution": "delivered", "offset": at.offset })
        }
        Resolution::NotDelivered(no) => {
            json!({ "name": name, "resolution": "not_delivered", "reason": no.to_string() })
        }
        Resolution::Never(never) => {
            json!({ "name": name, "resolution": "never", "reason": never.to_string() })
        }
    }
}

/// Polls all in their order until each is done: what an application does with concurrent sends.
async fn all<F: Future>(futures: impl IntoIterator<Item = F>) -> Vec<F::Output> {
    let mut running: Vec<Pin<Box<F>>> = futures.into_iter().map(Box::pin).collect();
    let mut done: Vec<Option<F::Output>> = running.iter().map(|_| None).collect();
    poll_fn(|context| {
        for (future, done) in running.iter_mut().zip(&mut done) {
            if done.is_none()
                && let Poll::Ready(output) = future.as_mut().poll(context)
            {
                *done = Some(output);
            }
        }
        if done.iter().all(Option::is_some) { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
    done.into_iter().flatten().collect()
}

fn say(event: &Value) -> Result<()> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{event}")?;
    Ok(out.flush()?)
}

/// Waits for a word of the harness.
async fn hear(word: &'static str) -> Result<()> {
    let line = tokio::task::spawn_blocking(|| {
        let mut line = String::new();
        std::io::stdin().read_line(&mut line).map(|_| line)
    })
    .await??;
    ensure!(line.trim() == word, "expected `{word}`, the harness said `{}`", line.trim());
    Ok(())
}
