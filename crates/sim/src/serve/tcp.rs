//! The model cluster behind real sockets: the one place in this crate with threads and a clock.
//!
//! One lock guards the whole [`Net`]. Each listener has a thread that accepts, each connection
//! one that reads and one that writes, and one more thread waits for the net's next deadline.
//! Nothing sleeps to synchronise: what waits, waits for an event.

use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use super::net::{ConnectionId, Hangup, Net, Output};
use super::settings::Settings;

/// A reader waits while its connection has so many bytes that were not looked at.
const BACKLOG: usize = 8 << 20;

/// Waits are cut into pieces, as no platform takes any length.
const LONGEST_WAIT: Duration = Duration::from_secs(3_600);

/// A cluster that listens.
///
/// ```
/// use std::io::{Read, Write};
/// use candor_sim::codec::{API_VERSIONS, RequestHeader};
/// use candor_sim::serve::{Server, Settings};
///
/// let server = Server::start(Settings::default(), &["127.0.0.1:0".parse().unwrap()])?;
/// let mut client = std::net::TcpStream::connect(server.addresses()[0])?;
/// client.write_all(&RequestHeader::new(API_VERSIONS, 0, 7).frame(&[]))?;
/// let mut head = [0; 8];
/// client.read_exact(&mut head)?;
/// assert_eq!(head[4..], [0, 0, 0, 7]);
/// server.shutdown();
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug)]
pub struct Server {
    shared: Arc<Shared>,
    addresses: Vec<SocketAddr>,
    threads: Vec<JoinHandle<()>>,
}

#[derive(Debug)]
struct Shared {
    state: Mutex<State>,
    /// Something happened: to the net, to a backlog, or the end was called.
    changed: Condvar,
    clock: Clock,
}

#[derive(Debug)]
struct State {
    net: Net,
    writers: BTreeMap<ConnectionId, Sender<Vec<u8>>>,
    connections: Vec<(TcpStream, JoinHandle<()>)>,
    ending: bool,
}

/// Wall time that never goes back: read once, then carried on by the monotonic clock.
#[derive(Debug)]
struct Clock {
    wall: u64,
    since: Instant,
}

impl Clock {
    #[expect(clippy::disallowed_methods, reason = "real sockets live in real time")]
    fn start() -> Self {
        let wall = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Self { wall: micros(wall), since: Instant::now() }
    }

    fn now(&self) -> u64 {
        self.wall.saturating_add(micros(self.since.elapsed()))
    }
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

impl Server {
    /// Listens on one address per broker, the first for the broker with the lowest id. Port 0
    /// takes any free port; Metadata tells the addresses that were bound. The cluster begins now,
    /// whatever the settings say.
    ///
    /// # Errors
    /// What the operating system says to an address, and [`io::ErrorKind::InvalidInput`] if there
    /// are not as many addresses as brokers.
    pub fn start(settings: Settings, listen: &[SocketAddr]) -> io::Result<Self> {
        let clock = Clock::start();
        let mut net = Net::new(Settings { begin: clock.now(), ..settings });
        let nodes = net.nodes();
        if nodes.len() != listen.len() {
            let why =
                format!("{} brokers need as many addresses, not {}", nodes.len(), listen.len());
            return Err(io::Error::new(io::ErrorKind::InvalidInput, why));
        }
        let mut listeners = Vec::new();
        let mut addresses = Vec::new();
        for (node, address) in nodes.into_iter().zip(listen) {
            let listener = TcpListener::bind(address)?;
            let bound = listener.local_addr()?;
            net.advertise(node, &reachable(bound).ip().to_string(), bound.port());
            listeners.push((node, listener));
            addresses.push(bound);
        }
        let state = State { net, writers: BTreeMap::new(), connections: Vec::new(), ending: false };
        let shared = Arc::new(Shared { state: Mutex::new(state), changed: Condvar::new(), clock });
        let mut threads = vec![spawn(&shared, keep_time)];
        for (node, listener) in listeners {
            threads.push(spawn(&shared, move |shared| accept(shared, node, &listener)));
        }
        Ok(Self { shared, addresses, threads })
    }

    /// The bound addresses, by broker.
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// The bound addresses as a client's list of bootstrap servers: "host:port,host:port".
    pub fn bootstrap(&self) -> String {
        let all: Vec<String> = self.addresses.iter().map(SocketAddr::to_string).collect();
        all.join(",")
    }

    /// Looks at the net, or does something to it, between two events: add a fault, move a leader,
    /// read a log. `act` gets the time in microseconds since the Unix epoch.
    pub fn with<T>(&self, act: impl FnOnce(&mut Net, u64) -> T) -> T {
        let mut state = self.shared.lock();
        let now = self.shared.clock.now();
        let result = act(&mut state.net, now);
        state.net.tick(now);
        self.shared.pump(&mut state);
        result
    }

    /// Waits until the net is as wanted, looking again after every event.
    pub fn wait_until(&self, mut wanted: impl FnMut(&Net) -> bool) {
        let mut state = self.shared.lock();
        while !wanted(&state.net) && !state.ending {
            state = self.shared.wait(state);
        }
    }

    /// Closes all listeners and connections and waits for their threads. Dropping the server
    /// does the same.
    pub fn shutdown(self) {
        drop(self);
    }

    fn end(&mut self) {
        let mut state = self.shared.lock();
        state.ending = true;
        state.writers.clear();
        let connections = std::mem::take(&mut state.connections);
        for (stream, _) in &connections {
            // Wakes whoever reads or writes; one that is closed already has nobody to wake.
            let _closed = stream.shutdown(Shutdown::Both);
        }
        self.shared.changed.notify_all();
        drop(state);
        for address in &self.addresses {
            // Wakes the accepting thread; that it cannot be reached means that it is gone already.
            let _woken = TcpStream::connect(reachable(*address));
        }
        let connections = connections.into_iter().map(|(_, thread)| thread);
        for thread in self.threads.drain(..).chain(connections) {
            let _ended = thread.join();
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.end();
    }
}

/// An address to reach a listener at that is bound to all interfaces.
fn reachable(mut address: SocketAddr) -> SocketAddr {
    if address.ip().is_unspecified() {
        match address {
            SocketAddr::V4(_) => address.set_ip(std::net::Ipv4Addr::LOCALHOST.into()),
            SocketAddr::V6(_) => address.set_ip(std::net::Ipv6Addr::LOCALHOST.into()),
        }
    }
    address
}

fn spawn(shared: &Arc<Shared>, run: impl FnOnce(&Arc<Shared>) + Send + 'static) -> JoinHandle<()> {
    let shared = Arc::clone(shared);
    thread::spawn(move || run(&shared))
}

impl Shared {
    /// The state. A thread that panicked while it held the lock has failed a test already; the
    /// others may end in peace.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait<'a>(&self, state: MutexGuard<'a, State>) -> MutexGuard<'a, State> {
        self.changed.wait(state).unwrap_or_else(PoisonError::into_inner)
    }

    /// Hands on what the net has for its clients, and wakes whoever waits for a change.
    fn pump(&self, state: &mut State) {
        while let Some(output) = state.net.poll() {
            match output {
                Output::Bytes { connection, bytes } => {
                    if let Some(writer) = state.writers.get(&connection) {
                        // A writer that is gone has met a dead socket: its reader reports it.
                        let _handed = writer.send(bytes);
                    }
                }
                Output::Closed { connection } => {
                    state.writers.remove(&connection);
                }
            }
        }
        self.changed.notify_all();
    }
}

/// Ticks the net when its deadline comes.
fn keep_time(shared: &Arc<Shared>) {
    let mut state = shared.lock();
    while !state.ending {
        let now = shared.clock.now();
        let due = state.net.housekeeping();
        let due = state.net.deadline().map_or(due, |at| at.min(due));
        if due > now {
            let wait = Duration::from_micros(due - now).min(LONGEST_WAIT);
            let waited = shared.changed.wait_timeout(state, wait);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        } else {
            state.net.tick(now);
            shared.pump(&mut state);
        }
    }
}

fn accept(shared: &Arc<Shared>, node: u8, listener: &TcpListener) {
    for stream in listener.incoming() {
        let mut state = shared.lock();
        if state.ending {
            return;
        }
        // A failed accept concerns one client only: it is gone.
        if let Ok(stream) = stream {
            let _served = serve(shared, &mut state, node, stream);
        }
    }
}

/// Starts a connection's two threads. A broker that is down closes it at once.
fn serve(shared: &Arc<Shared>, state: &mut State, node: u8, stream: TcpStream) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let (reads, writes, ends) = (stream.try_clone()?, stream.try_clone()?, stream);
    let Some(connection) = state.net.connect(node) else { return Ok(()) };
    let (sender, outgoing) = mpsc::channel();
    state.writers.insert(connection, sender);
    state.connections.retain(|(_, thread)| !thread.is_finished());
    let both = move |shared: &Arc<Shared>| {
        let writer = spawn(shared, move |_| write(writes, &outgoing));
        read(shared, connection, reads);
        let _ended = writer.join();
    };
    state.connections.push((ends, spawn(shared, both)));
    Ok(())
}

fn read(shared: &Arc<Shared>, connection: ConnectionId, mut stream: TcpStream) {
    let mut buffer = vec![0; 64 << 10];
    loop {
        let received = stream.read(&mut buffer);
        let mut state = shared.lock();
        let now = shared.clock.now();
        let hangup = match received {
            Ok(0) => Some(Hangup::Fin),
            Ok(n) => {
                state.net.receive(now, connection, &buffer[..n]);
                None
            }
            Err(why) if why.kind() == io::ErrorKind::Interrupted => continue,
            Err(_) => Some(Hangup::Reset),
        };
        if let Some(hangup) = hangup {
            state.net.hang_up(now, connection, hangup);
        }
        shared.pump(&mut state);
        while state.net.backlog(connection) > BACKLOG && !state.ending {
            state = shared.wait(state);
        }
        if hangup.is_some() || state.ending {
            return;
        }
    }
}

fn write(mut stream: TcpStream, outgoing: &Receiver<Vec<u8>>) {
    for bytes in outgoing {
        if stream.write_all(&bytes).is_err() {
            break;
        }
    }
    // Either side may have ended already.
    let _closed = stream.shutdown(Shutdown::Both);
}
