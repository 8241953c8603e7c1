//! A world without sockets and without waiting: brokers of the simulator behind byte pipes, virtual
//! time, and an executor that is stepped by hand. Who waits for nothing that can come has hung; who
//! is polled without end at one moment spins; both fail the test.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panic")]

pub(crate) mod stage;

use std::collections::{BTreeMap, VecDeque};
use std::future::Future;
use std::io::{self, IoSlice};
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Wake, Waker};
use std::time::{Duration, Instant, SystemTime};

use candor_driver::Runtime;
use candor_sim::serve::{ConnectionId, Hangup, Net, Output, Settings};
use futures_io::{AsyncRead, AsyncWrite};

/// Polls of all tasks at one moment of virtual time, before we call it spinning.
const POLLS_PER_MOMENT: usize = 20_000;

type Task = Pin<Box<dyn Future<Output = ()> + Send>>;

#[derive(Clone)]
pub(crate) struct World(Arc<Mutex<Inside>>);

pub(crate) struct Inside {
    pub(crate) net: Net,
    monotonic: Instant,
    wall: SystemTime,
    pipes: BTreeMap<ConnectionId, Pipe>,
    timers: Vec<(Instant, Waker)>,
    spawned: Vec<Task>,
    /// The most bytes that a socket takes at a time.
    pub(crate) bite: usize,
    /// Sockets break when they have taken so many more bytes.
    pub(crate) breaks_after: Option<usize>,
    /// Sockets take nothing.
    stuck: bool,
    /// New connections are refused.
    pub(crate) refuses: bool,
    /// Polls of spawned tasks.
    pub(crate) polls: usize,
    /// Most slices seen in one write.
    pub(crate) slices: usize,
}

#[derive(Default)]
struct Pipe {
    incoming: VecDeque<u8>,
    ended: bool,
    broken: bool,
    reader: Option<Waker>,
    writer: Option<Waker>,
}

impl World {
    pub(crate) fn new(settings: Settings) -> Self {
        let wall = SystemTime::UNIX_EPOCH + Duration::from_secs(1_700_000_000);
        let mut net = Net::new(Settings { begin: micros(wall), ..settings });
        for node in net.nodes() {
            net.advertise(node, "broker", 9_000 + u16::from(node));
        }
        Self(Arc::new(Mutex::new(Inside {
            net,
            monotonic: Instant::now(),
            wall,
            pipes: BTreeMap::new(),
            timers: Vec::new(),
            spawned: Vec::new(),
            bite: usize::MAX,
            breaks_after: None,
            stuck: false,
            refuses: false,
            polls: 0,
            slices: 0,
        })))
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, Inside> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Does something to the brokers.
    pub(crate) fn with<T>(&self, act: impl FnOnce(&mut Net, u64) -> T) -> T {
        let mut inside = self.lock();
        let now = micros(inside.wall);
        let result = act(&mut inside.net, now);
        inside.net.tick(now);
        inside.pump();
        result
    }

    pub(crate) fn elapsed_since(&self, before: Instant) -> Duration {
        self.lock().monotonic - before
    }

    /// The wall clock is set, and nothing else.
    pub(crate) fn set_wall_ahead(&self, by: Duration) {
        self.lock().wall += by;
    }

    /// From now on sockets take nothing, or take again what they are given.
    pub(crate) fn stick(&self, stuck: bool) {
        let mut inside = self.lock();
        inside.stuck = stuck;
        if !stuck {
            inside.pipes.values_mut().filter_map(|pipe| pipe.writer.take()).for_each(Waker::wake);
        }
    }

    /// Sockets break when they have taken so many more bytes, and new connections are refused.
    pub(crate) fn break_after(&self, bytes: usize) {
        let mut inside = self.lock();
        (inside.breaks_after, inside.refuses) = (Some(bytes), true);
    }

    pub(crate) fn bootstrap(&self) -> Vec<String> {
        self.lock()
            .net
            .nodes()
            .iter()
            .map(|node| format!("broker:{}", 9_000 + u16::from(*node)))
            .collect()
    }
}

impl Inside {
    /// Hands on what the brokers said.
    fn pump(&mut self) {
        while let Some(output) = self.net.poll() {
            let (Output::Bytes { connection, .. } | Output::Closed { connection }) = &output;
            let Some(pipe) = self.pipes.get_mut(connection) else { continue };
            match output {
                Output::Bytes { bytes, .. } => pipe.incoming.extend(bytes),
                Output::Closed { .. } => pipe.ended = true,
            }
            if let Some(reader) = pipe.reader.take() {
                reader.wake();
            }
        }
    }

    fn advance_to(&mut self, at: Instant) {
        let step = at.saturating_duration_since(self.monotonic);
        self.monotonic += step;
        self.wall += step;
        let now = micros(self.wall);
        self.net.tick(now);
        self.pump();
        let (due, later) = self.timers.drain(..).partition(|(at, _)| *at <= self.monotonic);
        self.timers = later;
        let due: Vec<(Instant, Waker)> = due;
        due.into_iter().for_each(|(_, waker)| waker.wake());
    }

    /// When something happens by itself.
    fn next_event(&self) -> Option<Instant> {
        let now = micros(self.wall);
        let net = self
            .net
            .deadline()
            .map(|at| self.monotonic + Duration::from_micros(at.saturating_sub(now)));
        self.timers.iter().map(|(at, _)| *at).chain(net).min()
    }
}

fn micros(wall: SystemTime) -> u64 {
    wall.duration_since(SystemTime::UNIX_EPOCH).unwrap().as_micros() as u64
}

/// The executor.
pub(crate) struct Executor {
    pub(crate) world: World,
    tasks: Vec<(Task, Arc<Woken>)>,
}

/// Whether a future wants to be polled: it does at first.
pub(crate) struct Woken(AtomicBool);

impl Woken {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self(AtomicBool::new(true)))
    }

    /// Whether it was woken since this was last asked.
    pub(crate) fn take(&self) -> bool {
        self.0.swap(false, Ordering::SeqCst)
    }
}

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::SeqCst);
    }
}

impl Executor {
    pub(crate) fn new(settings: Settings) -> Self {
        Self { world: World::new(settings), tasks: Vec::new() }
    }

    /// Runs everything until this future ends; time passes as needed.
    pub(crate) fn block_on<F: Future>(&mut self, future: F) -> F::Output {
        let mut future = pin!(future);
        let main = Woken::new();
        loop {
            let mut polls = 0;
            loop {
                if main.take() {
                    let waker = Waker::from(Arc::clone(&main));
                    let polled = future.as_mut().poll(&mut Context::from_waker(&waker));
                    if let Poll::Ready(output) = polled {
                        return output;
                    }
                }
                let polled = self.poll_tasks();
                polls += polled;
                assert!(polls < POLLS_PER_MOMENT, "a task spins");
                if polled == 0 && !main.0.load(Ordering::SeqCst) {
                    break;
                }
            }
            let mut inside = self.world.lock();
            let next = inside.next_event().expect("nothing can happen any more: it hangs");
            inside.advance_to(next);
        }
    }

    /// Runs what is ready now; no time passes.
    pub(crate) fn settle(&mut self) {
        for _ in 0..POLLS_PER_MOMENT {
            if self.poll_tasks() == 0 {
                return;
            }
        }
        panic!("a task spins");
    }

    /// Lets time pass.
    pub(crate) fn pass(&mut self, time: Duration) {
        let end = self.world.lock().monotonic + time;
        loop {
            self.settle();
            let mut inside = self.world.lock();
            let next = inside.next_event().map_or(end, |at| at.min(end));
            inside.advance_to(next);
            if next == end {
                break;
            }
        }
        self.settle();
    }

    fn poll_tasks(&mut self) -> usize {
        let spawned = std::mem::take(&mut self.world.lock().spawned);
        self.tasks.extend(spawned.into_iter().map(|task| (task, Woken::new())));
        let mut polled = 0;
        self.tasks.retain_mut(|(task, woken)| {
            if !woken.take() {
                return true;
            }
            polled += 1;
            let waker = Waker::from(Arc::clone(woken));
            task.as_mut().poll(&mut Context::from_waker(&waker)).is_pending()
        });
        self.world.lock().polls += polled;
        polled
    }

    /// Tasks that have not ended.
    pub(crate) fn tasks(&self) -> usize {
        self.tasks.len()
    }

    /// The runtime goes down: all tasks are dropped.
    pub(crate) fn shut_down(&mut self) {
        self.tasks.clear();
    }
}

impl Runtime for World {
    type Stream = Stream;
    type Sleep = Sleep;

    async fn connect(self, host: Arc<str>, port: u16) -> io::Result<Stream> {
        if &*host != "broker" {
            return Err(io::ErrorKind::NotFound.into());
        }
        let mut inside = self.lock();
        let refused = io::Error::from(io::ErrorKind::ConnectionRefused);
        if inside.refuses {
            return Err(refused);
        }
        let node = u8::try_from(port - 9_000).unwrap();
        let connection = inside.net.connect(node).ok_or(refused)?;
        inside.pipes.insert(connection, Pipe::default());
        drop(inside);
        Ok(Stream { world: self, connection })
    }

    fn sleep_until(&self, at: Instant) -> Sleep {
        Sleep { world: self.clone(), at }
    }

    fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        self.lock().spawned.push(Box::pin(task));
    }

    fn now(&self) -> Instant {
        self.lock().monotonic
    }

    fn wall(&self) -> SystemTime {
        self.lock().wall
    }
}

pub(crate) struct Sleep {
    world: World,
    at: Instant,
}

impl Future for Sleep {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let mut inside = self.world.lock();
        if inside.monotonic >= self.at {
            return Poll::Ready(());
        }
        inside.timers.push((self.at, cx.waker().clone()));
        Poll::Pending
    }
}

pub(crate) struct Stream {
    world: World,
    connection: ConnectionId,
}

impl Stream {
    /// The socket takes bytes; the broker has them at once.
    fn take(&self, bytes: &[u8]) -> io::Result<usize> {
        let mut inside = self.world.lock();
        let inside = &mut *inside;
        let Some(pipe) = inside.pipes.get_mut(&self.connection) else {
            return Err(io::ErrorKind::NotConnected.into());
        };
        if pipe.broken || pipe.ended {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        let mut n = bytes.len().min(inside.bite);
        if let Some(left) = &mut inside.breaks_after {
            n = n.min(*left);
            *left -= n;
            pipe.broken = *left == 0;
        }
        let now = micros(inside.wall);
        inside.net.receive(now, self.connection, &bytes[..n]);
        if pipe.broken {
            inside.breaks_after = None;
            inside.net.hang_up(now, self.connection, Hangup::Reset);
            pipe.reader.take().into_iter().for_each(Waker::wake);
        }
        inside.pump();
        Ok(n)
    }
}

impl AsyncRead for Stream {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut [u8],
    ) -> Poll<io::Result<usize>> {
        let mut inside = self.world.lock();
        let pipe = inside.pipes.get_mut(&self.connection).unwrap();
        let n = pipe.incoming.len().min(buffer.len());
        if n == 0 && pipe.broken {
            return Poll::Ready(Err(io::ErrorKind::ConnectionReset.into()));
        }
        if n == 0 && !pipe.ended {
            pipe.reader = Some(cx.waker().clone());
            return Poll::Pending;
        }
        for (to, from) in buffer.iter_mut().zip(pipe.incoming.drain(..n)) {
            *to = from;
        }
        Poll::Ready(Ok(n))
    }
}

impl AsyncWrite for Stream {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let mut inside = self.world.lock();
        if inside.stuck
            && let Some(pipe) = inside.pipes.get_mut(&self.connection)
        {
            pipe.writer = Some(cx.waker().clone());
            return Poll::Pending;
        }
        drop(inside);
        Poll::Ready(self.take(bytes))
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let mut inside = self.world.lock();
        inside.slices = inside.slices.max(slices.len());
        drop(inside);
        let bytes: Vec<u8> = slices.iter().flat_map(|slice| slice.iter().copied()).collect();
        self.poll_write(cx, &bytes)
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_close(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        let mut inside = self.world.lock();
        let now = micros(inside.wall);
        inside.pipes.remove(&self.connection);
        inside.net.hang_up(now, self.connection, Hangup::Reset);
        inside.pump();
    }
}
