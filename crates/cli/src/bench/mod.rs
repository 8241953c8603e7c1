//! `candor bench`: this producer as a peer of the measuring instrument, which compares Kafka
//! producers on one core. The command line and the output are the instrument's.

mod load;
mod meter;

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use anyhow::{anyhow, bail};
use candor_tokio::{Config, Handle, NotDelivered, Producer, Record, Refused, WhyRefused};
use clap::ValueEnum;
use tokio::time::sleep_until;

use crate::ending::Ending;
use crate::output::say_json;
use load::Load;
use meter::{Meter, Samples};

/// Measure this producer: records per second, CPU per record, latency; one JSON line.
///
/// Record i goes to partition i mod P, without a key; every verdict is awaited. Runs on one thread.
/// Exit code 1 unless all records were acknowledged.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The broker to ask first.
    #[arg(long, value_name = "HOST:PORT", default_value = "127.0.0.1:19092")]
    bootstrap: String,
    /// The topic.
    #[arg(long, value_name = "T", default_value = "bench")]
    topic: String,
    /// How many partitions it has.
    #[arg(long, value_name = "P", default_value_t = 6, value_parser = clap::value_parser!(u32).range(1..))]
    partitions: u32,
    /// Records to measure.
    #[arg(long, value_name = "N", default_value_t = 1_000_000, value_parser = clap::value_parser!(u64).range(1..))]
    records: u64,
    /// Bytes of a record's value.
    #[arg(long, value_name = "BYTES", default_value_t = 100)]
    size: usize,
    /// How long a batch waits to be filled.
    #[arg(long, value_name = "MS", default_value_t = 5.0, value_parser = number)]
    linger_ms: f64,
    /// Size at which a batch is full.
    #[arg(long, value_name = "BYTES", default_value_t = 1_000_000)]
    batch_bytes: usize,
    /// Only "all": this producer is idempotent.
    #[arg(long, value_enum, default_value_t = Acks::All)]
    acks: Acks,
    /// Accepted: this producer always is.
    #[arg(long)]
    idempotent: bool,
    /// Only "none" so far.
    #[arg(long, value_enum, default_value_t = Compression::None)]
    compression: Compression,
    /// Records to send before measuring [default: a tenth; a second's worth with --rate]
    #[arg(long, value_name = "N")]
    warmup: Option<u64>,
    /// Records per second; 0 is as fast as possible.
    #[arg(long, value_name = "R", default_value_t = 0.0, value_parser = number)]
    rate: f64,
    /// Records without a verdict, at most.
    #[arg(long, value_name = "M", default_value_t = 100_000)]
    max_outstanding: usize,
    /// Accepted, and without a meaning here.
    #[arg(long, hide = true)]
    api: Option<String>,
    /// Accepted: verdicts are always awaited.
    #[arg(long, hide = true)]
    delivery_report: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Acks {
    All,
    #[value(name = "1")]
    Leader,
    #[value(name = "0")]
    None,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Compression {
    None,
    Lz4,
    Zstd,
}

fn number(text: &str) -> Result<f64, String> {
    let number = text.parse::<f64>().ok().filter(|number| number.is_finite() && *number >= 0.0);
    number.ok_or_else(|| "it must be a number, not negative".to_owned())
}

impl Args {
    fn config(&self) -> anyhow::Result<Config> {
        if self.acks != Acks::All {
            bail!("--acks: idempotence needs acks=all, and this producer is always idempotent");
        }
        if self.compression != Compression::None {
            bail!("--compression: there is none yet");
        }
        let config = Config::new(self.bootstrap.split(','))
            .linger(Duration::from_secs_f64(self.linger_ms / 1000.0))
            .batch_size(self.batch_bytes)
            .max_request_size(self.batch_bytes.max(1 << 20));
        config.check()?;
        Ok(config)
    }

    fn warmup(&self) -> u64 {
        let default = if self.rate > 0.0 { self.rate as u64 } else { self.records / 10 };
        self.warmup.unwrap_or_else(|| default.min(self.records))
    }
}

pub(crate) fn main(args: &Args) -> anyhow::Result<Ending> {
    let config = args.config()?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let connected = Producer::connect(config).await;
        let producer = connected.map_err(|error| {
            anyhow!("{error}: is a Kafka broker listening there? See --bootstrap")
        })?;
        let load = Load::new(args.size);
        send(args, &producer, &load, args.warmup()).await?;
        let meter = Meter::start()?;
        let sent = send(args, &producer, &load, args.records).await?;
        let report = meter.finish(args.records, args.size, args.partitions, sent)?;
        say_json(&report)?;
        Ok(Ending::well_if(report.all_acked()))
    })
}

/// Records in the order of sending, each with the time of its sending if that is wanted.
type Outstanding = VecDeque<(Handle, Option<Instant>)>;

/// Sends so many records and awaits their verdicts.
async fn send(args: &Args, producer: &Producer, load: &Load, n: u64) -> anyhow::Result<Samples> {
    let mut samples = Samples::default();
    let mut outstanding = Outstanding::new();
    let every = if args.rate > 0.0 { 1 } else { 100 };
    let most = args.max_outstanding.max(1);
    let began = Instant::now();
    for i in 0..n {
        if args.rate > 0.0 {
            let due = began + Duration::from_secs_f64(i as f64 / args.rate);
            listen_until(due, &mut outstanding, &mut samples).await;
        }
        let stamp = i.is_multiple_of(every).then(Instant::now);
        let partition = (i % u64::from(args.partitions)) as u32;
        let record = Record::to(&*args.topic).partition(partition).value(load.value(i));
        let handle = match producer.try_send(record) {
            Ok(handle) => handle,
            Err(refused) => again(producer, refused, &mut outstanding, &mut samples).await?,
        };
        outstanding.push_back((handle, stamp));
        if outstanding.len() >= most {
            settle(&mut outstanding, most * 3 / 4, &mut samples).await;
        }
    }
    settle(&mut outstanding, 0, &mut samples).await;
    Ok(samples)
}

/// Sends a record for which there was no room. Verdicts make some: a quarter of all that are
/// outstanding is awaited, so that the driver has its turn seldom.
async fn again(
    producer: &Producer,
    mut refused: Refused<'_>,
    outstanding: &mut Outstanding,
    samples: &mut Samples,
) -> anyhow::Result<Handle> {
    while refused.why == WhyRefused::Full && !outstanding.is_empty() {
        settle(outstanding, outstanding.len() * 3 / 4, samples).await;
        refused = match producer.try_send(refused.record) {
            Ok(handle) => return Ok(handle),
            Err(refused) => refused,
        };
    }
    Err(anyhow!(NotDelivered::from(refused)))
}

/// Awaits verdicts until so many records are left without one.
async fn settle(outstanding: &mut Outstanding, left: usize, samples: &mut Samples) {
    while outstanding.len() > left {
        let Some((handle, stamp)) = outstanding.pop_front() else { return };
        let verdict = handle.await;
        samples.count(verdict.is_delivered(), stamp);
    }
}

/// Awaits verdicts until then.
async fn listen_until(due: Instant, outstanding: &mut Outstanding, samples: &mut Samples) {
    let mut due = std::pin::pin!(sleep_until(due.into()));
    while let Some((handle, stamp)) = outstanding.front_mut() {
        tokio::select! {
            biased;
            verdict = handle => {
                samples.count(verdict.is_delivered(), *stamp);
                outstanding.pop_front();
            }
            () = &mut due => return,
        }
    }
    due.await;
}
