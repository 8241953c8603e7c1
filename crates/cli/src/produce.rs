//! `candor produce`: a file, line by line, to a topic.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, anyhow, bail};
use candor_tokio::{Config, ConnectError, Producer, Record};
use serde::Serialize;

use crate::ending::Ending;
use crate::files::{self, Target};
use crate::input::{Form, Input, Source};
use crate::ledger::Ledger;
use crate::line::Line;
use crate::output::{Format, complain, count, grouped, say, say_json};
use crate::progress::Progress;
use crate::rejects::Rejects;
use crate::run::{Book, End, Outcome, Run};
use crate::stop::Stop;
use crate::tally::{Counts, Reasons};
use crate::window::Heard;
use crate::words;

/// The fields of the ledger, and examples.
const MORE: &str = include_str!("produce.txt");

/// Send each line of a file as a record, and tell what became of each.
///
/// A line is what stands between newlines; nothing else is taken away (a carriage return stays),
/// and it need not be text. Exit code 0: all were delivered. 1: some were not, or it was stopped.
/// 2: bad arguments or configuration, no broker, or an error of input or output.
#[derive(Debug, clap::Args)]
#[command(after_long_help = MORE)]
pub(crate) struct Args {
    /// Brokers to ask first, separated by commas.
    #[arg(long, value_name = "HOST:PORT")]
    bootstrap_server: String,
    /// The topic.
    #[arg(long, value_name = "T", value_parser = topic)]
    topic: String,
    /// What stands before it in a line is the record's key (\t is a tab). A line without it is sent
    /// whole, without a key.
    #[arg(long, value_name = "C", value_parser = separator)]
    key_separator: Option<String>,
    /// Each record has its verdict within this time, such as 2s or 1500ms [default: 120s].
    #[arg(long, value_name = "TIME", value_parser = duration)]
    deadline: Option<Duration>,
    /// At the end, how long to find out what became of unknown records.
    #[arg(long, value_name = "TIME", value_parser = duration, default_value = "30s")]
    resolve_within: Duration,
    /// A setting by its name in the Java client, such as linger.ms=20. Can be repeated.
    #[arg(long, value_name = "KEY=VALUE", value_parser = property)]
    property: Vec<(String, String)>,
    /// Write one JSON object per record; --help tells its fields.
    #[arg(long, value_name = "FILE")]
    ledger: Option<PathBuf>,
    /// Write the lines that are not known to be in the log, one JSON object each, as in the ledger and
    /// with the line in `text`, or in `hex` if it is not UTF-8.
    #[arg(long, value_name = "FILE")]
    rejects: Option<PathBuf>,
    /// FILE holds rejects of an earlier run: send the lines that are proven not to be in the log, and
    /// leave the others alone.
    #[arg(long)]
    resend: bool,
    /// The form of the summary.
    #[arg(long, value_enum, default_value_t)]
    format: Format,
    /// What to send; - is standard input.
    #[arg(value_name = "FILE", default_value = "-")]
    file: PathBuf,
}

/// A name that Kafka allows.
fn topic(text: &str) -> Result<String, String> {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    let named = (1..=249).contains(&text.len()) && text.chars().all(plain);
    if named && !matches!(text, "." | "..") {
        Ok(text.to_owned())
    } else {
        Err("no topic can have this name: use 1 to 249 of [a-zA-Z0-9._-], not . or ..".to_owned())
    }
}

fn separator(text: &str) -> Result<String, String> {
    match text {
        "" => Err("it is empty: name the character behind the key".to_owned()),
        "\\t" => Ok("\t".to_owned()),
        text if text.contains('\n') => Err("a line cannot hold a newline".to_owned()),
        text => Ok(text.to_owned()),
    }
}

/// Reads "2s", "1500ms", "1m 30s".
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    let time = text.parse::<jiff::SignedDuration>();
    let time = time.map_err(|_| "write it as 2s, 1500ms or 1m 30s".to_owned())?;
    match Duration::try_from(time) {
        Ok(time) if !time.is_zero() => Ok(time),
        Ok(_) | Err(_) => Err("it must be longer than nothing".to_owned()),
    }
}

fn property(text: &str) -> Result<(String, String), String> {
    let (key, value) = text.split_once('=').ok_or("write it as KEY=VALUE")?;
    match key.trim() {
        "" => Err("the key is missing: write it as KEY=VALUE".to_owned()),
        key => Ok((key.to_owned(), value.trim().to_owned())),
    }
}

impl Args {
    fn config(&self) -> anyhow::Result<Config> {
        let given = |key: &str| self.property.iter().any(|(name, _)| name == key);
        if given("bootstrap.servers") {
            bail!("bootstrap.servers is given as a property and as --bootstrap-server: keep one");
        }
        let mut properties = self.property.clone();
        properties.push(("bootstrap.servers".to_owned(), self.bootstrap_server.clone()));
        if let Some(deadline) = self.deadline {
            if given("delivery.timeout.ms") {
                bail!("delivery.timeout.ms is given as a property and as --deadline: keep one");
            }
            let millis = deadline.as_millis().max(1).to_string();
            properties.push(("delivery.timeout.ms".to_owned(), millis));
        }
        Ok(Config::from_properties(properties)?)
    }

    const fn form(&self) -> Form {
        if self.resend { Form::Rejects } else { Form::Lines }
    }

    /// How long a record may wait for its verdict: as configured, or by default.
    fn longest_wait(&self) -> Duration {
        let property = self.property.iter().find(|(key, _)| key == "delivery.timeout.ms");
        let property = property.and_then(|(_, value)| value.parse().ok());
        let default = Duration::from_secs(120);
        self.deadline.or_else(|| property.map(Duration::from_millis)).unwrap_or(default)
    }

    /// The files to be written, opened and left as they are.
    fn targets(&self) -> anyhow::Result<Targets> {
        files::check_apart(&[
            ("the input", Some(&self.file)),
            ("--ledger", self.ledger.as_deref()),
            ("--rejects", self.rejects.as_deref()),
        ])?;
        let open =
            |path: Option<&Path>, what| path.map(|path| Target::open(path, what)).transpose();
        Ok(Targets {
            ledger: open(self.ledger.as_deref(), "ledger")?,
            rejects: open(self.rejects.as_deref(), "file of rejects")?,
        })
    }
}

/// The files to be written.
struct Targets {
    ledger: Option<Target>,
    rejects: Option<Target>,
}

pub(crate) fn main(args: Args) -> anyhow::Result<Ending> {
    let config = args.config()?;
    // Before anybody listens for Ctrl-C: opening a pipe waits for whoever is at its other end.
    let input = Input::open(&Source::from(&*args.file), args.form())?;
    let targets = args.targets()?;
    // One thread reads and sends, another talks to brokers.
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    let runtime = runtime.worker_threads(1).enable_all().build()?;
    let ending = runtime.block_on(produce(args, config, input, targets));
    // A read of standard input that never ends must not keep the command.
    runtime.shutdown_background();
    ending
}

async fn produce(
    args: Args,
    config: Config,
    input: Input,
    targets: Targets,
) -> anyhow::Result<Ending> {
    let mut stop = Stop::listen().context("cannot listen for Ctrl-C")?;
    let producer = tokio::select! {
        connected = connect(config) => connected?,
        () = stop.asked() => {
            complain("candor: stopped before a broker answered; nothing was sent");
            return Ok(Ending::NotWell);
        }
    };
    // Only now: a command that cannot do anything leaves older files as they were.
    let mut book = Lines {
        separator: args.key_separator.clone(),
        without_key: 0,
        ledger: targets.ledger.map_or_else(|| Ok(Ledger::none()), Ledger::begin)?,
        rejects: targets.rejects.map_or_else(|| Ok(Rejects::none()), Rejects::begin)?,
        reasons: Reasons::default(),
    };
    let progress = Progress::new(input.bytes);
    let run = Run::new(&args.topic, producer, &mut book, progress, stop);
    let patience = args.longest_wait().saturating_add(args.resolve_within);
    let outcome = run.run(input, patience).await;
    if let Err(error) = book.ledger.finish() {
        complain(&format!("candor: {error:#}"));
    }
    report(&args, &book, outcome)
}

async fn connect(config: Config) -> anyhow::Result<Producer> {
    Producer::connect(config).await.map_err(|error: ConnectError| {
        let advice = words::connect(&error);
        anyhow!("{error}: {advice}")
    })
}

/// What `produce` makes of lines.
struct Lines {
    separator: Option<String>,
    without_key: u64,
    ledger: Ledger,
    rejects: Rejects,
    reasons: Reasons,
}

impl Lines {
    fn split<'l>(&self, text: &'l [u8]) -> Option<(&'l [u8], &'l [u8])> {
        let separator = self.separator.as_ref()?.as_bytes();
        let at = text.windows(separator.len()).position(|window| window == separator)?;
        Some((&text[..at], &text[at + separator.len()..]))
    }
}

impl Book for Lines {
    fn record<'l>(&mut self, topic: &'l str, line: &Line<'l>) -> Record<'l> {
        let record = Record::to(topic);
        match self.split(line.text) {
            Some((key, value)) => record.key(key).value(value),
            None => {
                self.without_key += u64::from(self.separator.is_some());
                record.value(line.text)
            }
        }
    }

    fn read(&mut self, _line: &Line<'_>) {}

    fn hear(&mut self, line: &Line<'_>, heard: &Heard<'_>) -> anyhow::Result<()> {
        self.reasons.hear(line.number, heard);
        if let Some(entry) = self.ledger.hear(line, heard)? {
            self.rejects.keep(&entry, line.text)?;
        }
        Ok(())
    }

    fn tick(&mut self) -> anyhow::Result<()> {
        self.ledger.flush()?;
        self.rejects.flush()
    }
}

/// The summary as an object.
#[derive(Serialize)]
struct Summary {
    #[serde(flatten)]
    counts: Counts,
    /// The whole input was read.
    complete: bool,
    seconds: f64,
}

fn report(args: &Args, book: &Lines, outcome: Outcome) -> anyhow::Result<Ending> {
    let Outcome { end, counts, last_line, unsafe_lines, waited_for, took } = outcome;
    let complete = matches!(end, End::Finished);
    let summary = Summary { counts, complete, seconds: took.as_secs_f64() };
    match args.format {
        Format::Json => say_json(&summary)?,
        Format::Text => say(&text(&summary, book))?,
    }
    if book.reasons.ran_out_of_time()
        && let Some(waited_for) = waited_for
    {
        complain(&format!("candor: records waited for {waited_for}"));
    }
    if unsafe_lines > 0 {
        complain(&format!(
            "candor: {} not sent again, since the log may hold them: look for them there",
            count(unsafe_lines, "reject")
        ));
    }
    match end {
        End::Failed(error) => Err(error),
        End::Interrupted => {
            complain(&format!(
                "candor: stopped; the input from line {} on was not sent",
                last_line + 1
            ));
            Ok(Ending::NotWell)
        }
        End::Finished => Ok(Ending::well_if(counts.all_delivered() && unsafe_lines == 0)),
    }
}

fn text(summary: &Summary, book: &Lines) -> String {
    let Summary { counts, seconds, .. } = summary;
    let mut text = format!("{}\n{}", counts.line(), book.reasons.lines());
    if book.without_key > 0 {
        let lines = grouped(book.without_key);
        text.push_str(&format!("  {lines} without the key separator were sent without a key\n"));
    }
    let rate = counts.records as f64 / seconds.max(0.001);
    text.push_str(&format!("  {seconds:.2} s, {} records/s\n", grouped(rate as u64)));
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_as_people_write_them() {
        assert_eq!(duration("2s"), Ok(Duration::from_secs(2)));
        assert_eq!(duration("2000ms"), Ok(Duration::from_secs(2)));
        assert_eq!(duration("1m 30s"), Ok(Duration::from_secs(90)));
        for bad in ["", "2", "0s", "-2s", "soon"] {
            assert!(duration(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn the_help_tells_every_field_of_the_ledger_in_order() {
        let line = Line { number: 1, text: b"", read: std::time::Instant::now() };
        let why = candor_tokio::WhyNot::Cancelled;
        let no = candor_tokio::NotDelivered { topic: "t".into(), partition: None, why };
        let entry = crate::ledger::Entry::new(&line, &candor_tokio::Verdict::NotDelivered(no));
        let json = serde_json::to_string(&entry).unwrap();
        let fields = json.trim_matches(['{', '}']).split(',').map(|field| {
            let name = field.split(':').next().unwrap();
            name.trim_matches('"').to_owned()
        });
        let told = MORE.lines().filter_map(|line| line.strip_prefix("    "));
        let told = told.take_while(|line| !line.contains("--"));
        let told = told.filter(|line| line.starts_with(char::is_alphabetic));
        let told = told.filter_map(|line| line.split(' ').next().map(str::to_owned));
        assert_eq!(told.collect::<Vec<_>>(), fields.collect::<Vec<_>>());
    }

    #[test]
    fn topics_have_names_that_kafka_allows() {
        let longest = "x".repeat(249);
        for good in ["orders", "a.b_c-D9", "...", &longest] {
            assert_eq!(topic(good).as_deref(), Ok(good));
        }
        for bad in ["", ".", "..", "no topic!", "café", &format!("{longest}x")] {
            assert!(topic(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn the_key_ends_at_the_first_separator() {
        let book = |separator: &str| Lines {
            separator: Some(separator.into()),
            without_key: 0,
            ledger: Ledger::none(),
            rejects: Rejects::none(),
            reasons: Reasons::default(),
        };
        assert_eq!(book(":").split(b"a:b:c"), Some((&b"a"[..], &b"b:c"[..])));
        assert_eq!(book("::").split(b"a:b::"), Some((&b"a:b"[..], &b""[..])));
        assert_eq!(book(":").split(b"\xffa"), None);
    }
}
