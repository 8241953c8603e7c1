//! `candor demo`: the same as `produce`, on a cluster of its own that does its worst, and a judge
//! who then reads the log.

mod diary;
mod page;
mod picture;
mod plan;
mod records;
mod trial;
mod watch;

use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context;
use candor_sim::serve::{Server, Settings};
use candor_tokio::{Config, Producer};

use crate::ending::Ending;
use crate::input::{Form, Input};
use crate::output::{self, Format, say, say_json};
use crate::progress::Progress;
use crate::run::{End, Outcome, Run};
use crate::stop::Stop;
use diary::Diary;
use plan::Plan;
use records::Records;
use trial::Trial;

/// The topic of the demo.
const TOPIC: &str = "demo";
const BROKERS: u8 = 3;
const PARTITIONS: usize = 6;
/// How long records have, but for the impatient ones.
const DEADLINE: Duration = Duration::from_secs(8);
/// Bound on finding out what became of unknown records.
const RESOLVE: Duration = Duration::from_secs(5);
/// Answers that come later than this end a connection.
const REQUEST_TIMEOUT: Duration = Duration::from_millis(2500);

/// Watch the producer at work on a cluster that loses answers, breaks connections, moves leaders and
/// restarts; then a judge reads the log back.
///
/// Some records are impatient: their deadline comes while their answer is held back, so that they are
/// unknown at first and resolved later. Exit code 0 if the judge found nothing wrong, 1 if it did.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The lines to send; - is standard input [default: 10,000 records of its own]
    file: Option<PathBuf>,
    /// A picture, or one JSON object.
    #[arg(long, value_enum, default_value_t)]
    format: Format,
    /// Which faults come when.
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Draw what happened as well: one page that needs nothing else.
    #[arg(long, value_name = "OUT")]
    html: Option<PathBuf>,
}

pub(crate) fn main(args: Args) -> anyhow::Result<Ending> {
    let page = output::page_target(args.html.as_deref(), args.file.as_deref())?;
    let records = Records::load(args.file.as_deref())?;
    let plan = Plan::new(args.seed, records.bytes());
    let listen = vec![([127, 0, 0, 1], 0).into(); usize::from(BROKERS)];
    let server = Server::start(settings(&plan), &listen)
        .context("cannot listen on 127.0.0.1: the demo needs loopback sockets")?;
    let mut diary = Diary::new();
    // One thread, so that what the producer says is heard in the order in which it says it.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let (acts, outcome) = watch::watch(&server, &plan, diary.began(), || {
        runtime.block_on(produce(&server, &plan, records, &mut diary))
    });
    let outcome = outcome?;
    // Requests that the brokers received last may still be acted upon.
    server.wait_until(|net| net.open_connections() == 0);
    let trial = Trial::hold(&server, &diary);
    server.shutdown();
    match args.format {
        Format::Json => say_json(&trial.summary(&outcome.counts))?,
        Format::Text => say(&picture::draw(args.seed, &acts, &diary, &trial, &outcome))?,
    }
    if let Some(target) = page {
        let page = page::draw(args.seed, &acts, &diary, &trial, &outcome);
        output::write_page(target, &page)?;
    }
    if let End::Failed(error) = outcome.end {
        return Err(error);
    }
    Ok(Ending::well_if(trial.is_clean()))
}

fn settings(plan: &Plan) -> Settings {
    Settings {
        brokers: BROKERS,
        replicas: usize::from(BROKERS),
        topics: vec![(TOPIC.to_owned(), PARTITIONS)],
        auto_create: None,
        faults: plan.faults().to_vec(),
        ..Settings::default()
    }
}

async fn produce(
    server: &Server,
    plan: &Plan,
    records: Records,
    diary: &mut Diary,
) -> anyhow::Result<Outcome> {
    let stop = Stop::listen().context("cannot listen for Ctrl-C")?;
    let bootstrap = server.addresses().iter().map(ToString::to_string);
    let config = Config::new(bootstrap)
        .client_id("candor-demo")
        .deadline(DEADLINE)
        .request_timeout(REQUEST_TIMEOUT)
        // Small, so that even a short demo needs many requests, and lines wait for their turn.
        .batch_size(plan.batch_size())
        .memory(plan.memory());
    let producer =
        Producer::connect(config).await.context("cannot reach the demo's own cluster")?;
    let progress = Progress::quiet(Some(records.bytes()));
    let bytes = Some(records.bytes());
    let input = Input::read("the demo's records".into(), records, Form::Lines, bytes);
    let run = Run::new(TOPIC, producer, diary, progress, stop);
    Ok(run.run(input, DEADLINE + RESOLVE).await)
}
