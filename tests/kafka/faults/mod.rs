//! Real Kafka under a seeded plan of faults: applications with producers of `candor-tokio`, a byte
//! proxy in front of every node, and the judge of `candor-sim` at the end.
//!
//! The nodes are kept by the harness that starts this program; it is asked over standard output
//! (see [`hands`]).

mod book;
mod caller;
mod hands;
mod mark;
mod nemesis;
mod plan;
mod proxy;
mod trial;
mod wire;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use candor_sim::judge::Fact;
use candor_tokio::{Producer, Stats};
use fastrand::Rng;
use serde_json::{Value, json};
use tokio::sync::watch;

use book::Book;
use caller::Caller;
use hands::{Hands, note, say};
use nemesis::Nemesis;
use plan::{Kind, NODES};
use proxy::Proxies;
use trial::Trial;
use wire::Wire;

/// How long our producers rely on a broker's memory, and the longest deadline. The brokers of these
/// runs forget after 25 s.
const STATE_TTL: Duration = Duration::from_secs(8);
/// Producers of a run.
const CALLERS: u32 = 3;
/// After the faults every `Unknown` has to be resolved within this.
const RESOLVED: Duration = Duration::from_secs(30);
/// How long a producer may take to close.
const CLOSE: Duration = Duration::from_secs(15);
/// The watchdog looks so often, and says what is longer than that by more than half.
const WATCH: Duration = Duration::from_millis(50);

/// Most of the load goes here.
const STEADY: u32 = 0;
/// Its `max.message.bytes` is lowered now and then.
const SIZED: u32 = 1;
/// It is deleted and made anew now and then.
const FLEETING: u32 = 2;
/// So seldom written that brokers forget who did.
const QUIET: u32 = 3;
const TOPICS: [(&str, i32); 4] = [("steady", 4), ("sized", 2), ("fleeting", 2), ("quiet", 2)];

/// A topic of the run.
#[derive(Clone, Debug)]
struct Topic {
    name: String,
    partitions: i32,
}

/// What the harness says on the command line.
struct Arguments {
    seed: u64,
    length: Duration,
    directory: PathBuf,
    /// The proxy's port and the node's, by node.
    ports: Vec<(u16, u16)>,
}

/// `SEED SECONDS DIRECTORY PROXY:NODE PROXY:NODE PROXY:NODE`
fn parse(arguments: &[String]) -> Result<Arguments> {
    let [seed, seconds, directory, ports @ ..] = arguments else {
        bail!("usage: candor-kafka faults SEED SECONDS DIRECTORY PROXY_PORT:NODE_PORT..");
    };
    ensure!(ports.len() == NODES, "{NODES} nodes are needed");
    let pair = |text: &String| -> Result<(u16, u16)> {
        let (proxy, node) = text.split_once(':').context("PROXY_PORT:NODE_PORT")?;
        Ok((proxy.parse()?, node.parse()?))
    };
    Ok(Arguments {
        seed: seed.parse().context("SEED is a number")?,
        length: Duration::from_secs(seconds.parse().context("SECONDS is a number")?),
        directory: directory.into(),
        ports: ports.iter().map(pair).collect::<Result<_>>()?,
    })
}

/// Runs the plan of a seed; tells a report, and whether all is well.
pub(crate) fn run(arguments: &[String]) -> Result<bool> {
    let arguments = parse(arguments)?;
    // One thread: who is told first also writes first, so that the book stands in order.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(conduct(&arguments))
}

async fn conduct(arguments: &Arguments) -> Result<bool> {
    let hands = Hands::listen();
    let (wire, book) = (Arc::new(Wire::default()), Arc::new(Book::new(FLEETING)));
    let topics: Vec<Topic> = TOPICS
        .iter()
        .map(|(name, partitions)| Topic {
            name: format!("{name}-{}", arguments.seed),
            partitions: *partitions,
        })
        .collect();
    for topic in &topics {
        let create = json!({ "do": "create", "topic": topic.name, "partitions": topic.partitions });
        hands.ask(create).await.map_err(anyhow::Error::msg)?;
    }
    let proxies = Proxies::start(&arguments.ports, &wire)?;
    let callers = callers(arguments, &topics, &book)?;
    let nemesis = Arc::new(Nemesis::new(&hands, proxies, &book, topics.clone()));
    watch_for_stalls(&book);

    let mut complaints = storm(arguments, &hands, &nemesis, &callers).await?;
    let done = nemesis.told();
    complaints.append(&mut end(&callers, &book).await);
    let stats: Vec<Stats> = callers.iter().map(|caller| caller.producer.stats()).collect();
    let nemesis = Arc::into_inner(nemesis).context("the nemesis is still busy")?;
    nemesis.over();

    note("reading the logs")?;
    let names: Vec<&str> = topics.iter().map(|topic| topic.name.as_str()).collect();
    hands.ask(json!({ "do": "truth", "topics": names })).await.map_err(anyhow::Error::msg)?;
    let mut trial = Trial::hold(run_id(arguments), &arguments.directory, &topics, book.close())?;
    let (counts, wrong) = wire.told();
    let refuted = wire.refuted_by(trial.logs());
    trial.complain(complaints.into_iter().chain(wrong).chain(refuted));
    let mut report = trial.told();
    report["faults"] = Kind::all()
        .map(|kind| {
            let done = done.get(&kind).copied().unwrap_or_default();
            let told = json!({
                "happened": done.happened, "skipped": done.skipped, "failed": done.failed,
            });
            (kind.name().to_owned(), told)
        })
        .collect();
    report["wire"] = json!({
        "requests": counts.requests, "attempts": counts.attempts, "batches": counts.batches,
        "answers": counts.codes, "refused": counts.refused, "refused by H1": counts.refused_by_offset,
        "contested slots": counts.contested,
    });
    report["producers"] = stats.iter().map(tell_stats).collect();
    report["seed"] = arguments.seed.into();
    say(&json!({ "report": report, "findings": trial.findings() }))?;
    Ok(trial.is_clean())
}

/// What the records of this run carry.
fn run_id(arguments: &Arguments) -> u64 {
    Rng::with_seed(arguments.seed ^ 0x5eed).u64(..)
}

fn callers(arguments: &Arguments, topics: &[Topic], book: &Arc<Book>) -> Result<Vec<Arc<Caller>>> {
    let bootstrap: Vec<String> =
        arguments.ports.iter().map(|(proxy, _)| format!("127.0.0.1:{proxy}")).collect();
    let mut rng = Rng::with_seed(arguments.seed);
    let caller = |number| {
        let config = caller::config(&bootstrap, &mut rng);
        let caller = Arc::new(Caller {
            number,
            producer: Producer::lazy(config)?,
            book: Arc::clone(book),
            topics: topics.to_vec(),
            run: run_id(arguments),
        });
        tokio::spawn(Arc::clone(&caller).listen());
        Ok(caller)
    };
    (0..CALLERS).map(caller).collect()
}

/// The faults, and the applications under them; then health again. Gives what was not well.
async fn storm(
    arguments: &Arguments,
    hands: &Hands,
    nemesis: &Arc<Nemesis>,
    callers: &[Arc<Caller>],
) -> Result<Vec<String>> {
    let (stop, stopped) = watch::channel(false);
    let mut calling = tokio::task::JoinSet::new();
    for caller in callers {
        let rng = Rng::with_seed(arguments.seed.wrapping_add(1 + u64::from(caller.number)));
        calling.spawn(Arc::clone(caller).call(rng, stopped.clone()));
    }
    let steps = plan::plan(arguments.seed, arguments.length);
    note(&format!("{} steps in {} s", steps.len(), arguments.length.as_secs()))?;
    nemesis.carry_out(steps).await;
    note("the faults are over")?;
    hands.ask(json!({ "do": "heal" })).await.map_err(anyhow::Error::msg)?;
    let mut complaints = Vec::new();
    for caller in callers {
        complaints.append(&mut caller.probe().await);
    }
    stop.send_replace(true);
    let mut waiting = Vec::new();
    while let Some(called) = calling.join_next().await {
        waiting.push(called?);
    }
    // Verdicts by their deadlines, and then a bound on resolutions.
    let all = async {
        for mut tasks in waiting {
            while tasks.join_next().await.is_some() {}
        }
    };
    if tokio::time::timeout(STATE_TTL + RESOLVED, all).await.is_err() {
        complaints.push("HUNG: records without their last word long after the faults".to_owned());
    }
    Ok(complaints)
}

/// Closes the producers; gives what was not well.
async fn end(callers: &[Arc<Caller>], book: &Book) -> Vec<String> {
    let mut complaints = Vec::new();
    for caller in callers {
        let due = book.within(CLOSE);
        book.fact(Fact::Closing { producer: caller.number, due });
        let summary = caller.producer.close(CLOSE).await;
        let told = summary.delivered + summary.not_delivered + summary.unknown;
        let tally = summary.resolutions;
        let resolved = tally.resolved_delivered + tally.resolved_not_delivered + tally.never;
        if summary.accepted != told || summary.unknown != resolved {
            complaints.push(format!("the producer's own books do not balance: {summary:?}"));
        }
        let refused = caller.producer.stats().machine.counts.refused_by_lane;
        if refused > 0 {
            complaints.push(format!("a lane refused {refused} events: a bug of ours"));
        }
    }
    // The last words are written down by tasks that were just woken.
    tokio::task::yield_now().await;
    complaints
}

fn tell_stats(stats: &Stats) -> Value {
    let counts = stats.machine.counts;
    json!({
        "accepted": counts.accepted, "offers": counts.offers, "requests": counts.requests,
        "connections failed": counts.failures,
    })
}

/// Writes down when the host let nobody run: lateness of that kind is not ours.
fn watch_for_stalls(book: &Arc<Book>) {
    let book = Arc::downgrade(book);
    std::thread::spawn(move || {
        let mut before = Instant::now();
        loop {
            std::thread::sleep(WATCH);
            let now = Instant::now();
            let Some(book) = book.upgrade() else { return };
            if now - before > WATCH + WATCH / 2 {
                let (from, to) = (book.at(before), book.at(now));
                book.fact(Fact::Stall { from, to });
            }
            before = now;
        }
    });
}
