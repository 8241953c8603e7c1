//! From lines to verdicts: the loop that `produce` and `demo` share.
//!
//! There is no queue of lines here. A line is read when the one before it is with the producer,
//! whose memory is the bound; when it is full the next line waits, and so does the reader.

use std::future::{pending, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use candor_tokio::{NotDelivered, Notices, Producer, Record, Refused, Verdict, WhyNot, WhyRefused};
use tokio::time::{Interval, MissedTickBehavior, interval, sleep, timeout};

use crate::input::Input;
use crate::line::{Chunk, Line};
use crate::progress::Progress;
use crate::stop::Stop;
use crate::tally::Counts;
use crate::window::{Heard, Window};
use crate::words;

/// After Ctrl-C everything is told within this time.
pub(crate) const STOP_WITHIN: Duration = Duration::from_secs(5);
/// How often people and files learn where things stand.
const TICK: Duration = Duration::from_millis(100);
/// Records without a verdict, at most. Each costs some 60 bytes here, whatever its size.
const OUTSTANDING: usize = 1 << 18;
/// What a producer may take longer to close than it was told.
const SLACK: Duration = Duration::from_secs(2);

/// What is made of lines, and of what is said about them.
pub(crate) trait Book {
    /// The record that a line is, on its way to the topic.
    fn record<'l>(&mut self, topic: &'l str, line: &Line<'l>) -> Record<'l>;

    /// A line was read, and is about to be sent.
    fn read(&mut self, line: &Line<'_>);

    /// Something was said. An error ends the run, truthfully.
    fn hear(&mut self, line: &Line<'_>, heard: &Heard<'_>) -> anyhow::Result<()>;

    /// Some time has passed.
    fn tick(&mut self) -> anyhow::Result<()>;
}

/// Why no more lines were sent.
#[derive(Debug)]
pub(crate) enum End {
    /// There are no more.
    Finished,
    /// The user asked for it.
    Interrupted,
    /// The input or the book failed.
    Failed(anyhow::Error),
}

/// How a run went.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) end: End,
    pub(crate) counts: Counts,
    /// Number of the last line that was read.
    pub(crate) last_line: u64,
    /// Rejects that it was not safe to send again.
    pub(crate) unsafe_lines: u64,
    /// What the oldest record waited for when somebody last looked.
    pub(crate) waited_for: Option<String>,
    pub(crate) took: Duration,
}

/// A run that is going on.
pub(crate) struct Run<'b, B> {
    topic: Arc<str>,
    producer: Producer,
    notices: Option<Notices>,
    window: Window,
    book: &'b mut B,
    progress: Progress,
    counts: Counts,
    failure: Option<anyhow::Error>,
    stop: Stop,
    ticks: Interval,
    last_line: u64,
    waited_for: Option<String>,
}

impl<'b, B: Book> Run<'b, B> {
    pub(crate) fn new(
        topic: &str,
        producer: Producer,
        book: &'b mut B,
        progress: Progress,
        stop: Stop,
    ) -> Self {
        let mut ticks = interval(TICK);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        Self {
            topic: topic.into(),
            notices: Some(producer.notices()),
            producer,
            window: Window::new(),
            book,
            progress,
            counts: Counts::default(),
            failure: None,
            stop,
            ticks,
            last_line: 0,
            waited_for: None,
        }
    }

    /// Sends all lines and waits until everything is told of them, which is `patience` behind the
    /// last line at the latest.
    pub(crate) async fn run(mut self, mut input: Input, patience: Duration) -> Outcome {
        let began = Instant::now();
        let mut end = self.send(&mut input).await;
        if matches!(end, End::Interrupted) {
            for chunk in input.rest().await {
                self.leave(&chunk, 0);
            }
        }
        let whole = matches!(end, End::Finished);
        self.close(if whole { patience } else { STOP_WITHIN }).await;
        self.tick();
        self.progress.finish();
        if let Some(failure) = self.failure.take() {
            end = End::Failed(failure);
        }
        Outcome {
            end,
            counts: self.counts,
            last_line: self.last_line,
            unsafe_lines: input.unsafe_lines(),
            waited_for: self.waited_for,
            took: began.elapsed(),
        }
    }

    /// Sends lines until there are no more, or no more are to be sent.
    async fn send(&mut self, input: &mut Input) -> End {
        while !self.is_ending() {
            if self.window.waiting() >= OUTSTANDING {
                self.woken().await;
                continue;
            }
            let chunk = tokio::select! {
                biased;
                () = self.woken() => continue,
                chunk = input.next() => chunk,
            };
            match chunk {
                None => return End::Finished,
                Some(Err(error)) => return End::Failed(error),
                Some(Ok(chunk)) => self.feed(Arc::new(chunk)).await,
            }
        }
        End::Interrupted
    }

    fn is_ending(&self) -> bool {
        self.stop.is_asked() || self.failure.is_some()
    }

    async fn feed(&mut self, chunk: Arc<Chunk>) {
        self.window.begin(Arc::clone(&chunk));
        let mut index = 0;
        while index < chunk.lines.len() && !self.is_ending() {
            self.send_line(&chunk, index).await;
            index += 1;
        }
        self.window.end();
        self.leave(&chunk, index);
        // The driver's turn, if it has no thread of its own.
        tokio::task::yield_now().await;
    }

    async fn send_line(&mut self, chunk: &Chunk, index: usize) {
        let line = chunk.at(index, Instant::now());
        self.read(&line);
        self.progress.sent(line.text.len() + 1);
        let topic = Arc::clone(&self.topic);
        let record = self.book.record(&topic, &line);
        match self.producer.try_send(record) {
            Ok(handle) => self.window.push(index, line.read, handle),
            Err(Refused { record, why: WhyRefused::Full }) => {
                self.wait_for_room(index, &line, record).await;
            }
            Err(refused) => self.refused(&line, NotDelivered::from(refused)),
        }
    }

    fn read(&mut self, line: &Line<'_>) {
        self.last_line = line.number;
        self.book.read(line);
    }

    async fn wait_for_room(&mut self, index: usize, line: &Line<'_>, record: Record<'_>) {
        let mut enqueue = pin!(self.producer.enqueue(record));
        let mut hurried = false;
        loop {
            if self.is_ending() && !hurried {
                hurried = true;
                // It may be accepted this very moment: its place in the line must not be dropped.
                self.begin_to_close(STOP_WITHIN);
            }
            tokio::select! {
                biased;
                accepted = &mut enqueue => {
                    match accepted {
                        Ok(handle) => self.window.push(index, line.read, handle),
                        Err(no) => self.refused(line, no),
                    }
                    return;
                }
                () = self.woken() => {}
            }
        }
    }

    /// The lines from `from` on will not be sent.
    fn leave(&mut self, chunk: &Chunk, from: usize) {
        for index in from..chunk.lines.len() {
            let line = chunk.at(index, Instant::now());
            self.read(&line);
            let topic = Arc::clone(&self.topic);
            self.refused(&line, NotDelivered { topic, partition: None, why: WhyNot::Cancelled });
        }
    }

    fn refused(&mut self, line: &Line<'_>, no: NotDelivered) {
        let verdict = Verdict::NotDelivered(no);
        let heard = Heard::Verdict(&verdict);
        self.counts.hear(&heard);
        if self.failure.is_none() {
            self.failure = self.book.hear(line, &heard).err();
        }
    }

    /// Waits until something happens, and sees to it.
    async fn woken(&mut self) {
        let Self { window, book, counts, failure, progress, notices, ticks, stop, .. } = self;
        let listen = poll_fn(|cx| {
            window.listen(cx, &mut |line, heard| {
                counts.hear(&heard);
                if failure.is_none() {
                    *failure = book.hear(&line, &heard).err();
                }
            })
        });
        let notice = async {
            match notices {
                Some(notices) => notices.next().await,
                None => pending().await,
            }
        };
        tokio::select! {
            biased;
            _ = ticks.tick() => self.tick(),
            () = stop.asked(), if !stop.is_asked() => {
                progress.tell(&format!("candor: stopping, within {} s", STOP_WITHIN.as_secs()));
            }
            () = listen => progress.heard(),
            notice = notice => match notice {
                Some(notice) => progress.notice(notice.to_string()),
                None => *notices = None,
            },
        }
    }

    fn tick(&mut self) {
        if self.progress.is_silent(TICK)
            && let Some(oldest) = self.window.oldest()
            && let Some(what) = words::waiting(&self.topic, &oldest.why())
        {
            self.waited_for = Some(what);
        }
        let waits = (self.window.waiting() > 0).then_some(self.waited_for.as_deref()).flatten();
        self.progress.show(&self.counts, waits, self.window.unresolved());
        if self.failure.is_none() {
            self.failure = self.book.tick().err();
        }
    }

    fn begin_to_close(&self, within: Duration) {
        tokio::spawn(self.producer.close(within));
    }

    /// Waits until everything is told; if the user asks for it, not as long as that.
    async fn close(&mut self, within: Duration) {
        self.begin_to_close(within);
        let mut late = pin!(sleep(within.saturating_add(SLACK)));
        let mut hurried = false;
        while !self.window.is_empty() {
            if self.is_ending() && !hurried {
                hurried = true;
                self.begin_to_close(STOP_WITHIN);
                late.set(sleep(STOP_WITHIN + SLACK));
            }
            tokio::select! {
                biased;
                () = self.woken() => {}
                () = &mut late => {
                    let untold = self.window.waiting() + self.window.unresolved();
                    self.failure = Some(anyhow::anyhow!(
                        "the producer is closed and has not told of {untold} records: \
                         this is a bug, please report it"
                    ));
                    return;
                }
            }
        }
        // Everything is told: what is left is to close connections in order.
        let _closed = timeout(SLACK, self.producer.close(Duration::ZERO)).await;
    }
}
