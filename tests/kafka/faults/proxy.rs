//! A byte proxy in front of every node: it cuts, stalls, holds and lets go, in either direction.
//!
//! It knows nothing of Kafka; who listens to what passes is told bytes. The proxies have a thread of
//! their own, so that they do not slow the producers down.

use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use anyhow::{Context as _, Result};
use bytes::{Buf as _, BytesMut};
use tokio::io::AsyncWriteExt as _;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

use super::wire::{Conversation, Wire};

/// So much is kept of what passes; who sends more has to wait.
const WINDOW: usize = 64 << 10;
/// So much is kept while a direction is held.
const HELD: usize = 32 << 20;
/// The pause between two chunks of a trickle.
const TRICKLE: Duration = Duration::from_millis(2);

/// What a direction does with bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Flow {
    /// They pass.
    #[default]
    Pass,
    /// Nobody reads them.
    Stall,
    /// They are read and kept.
    Hold,
    /// They are read and lost; the connection ends when that is over.
    Lose,
    /// They pass a few at a time.
    Trickle,
    /// The connection ends after so many more of them. The second number names the wish.
    Break(u64, u64),
}

/// What happens to who connects.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Door {
    /// Connections are made.
    #[default]
    Open,
    /// They end at once.
    Refuse,
    /// Nothing follows.
    Hang,
}

/// How a proxy behaves now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Rule {
    /// From the client to the broker.
    pub(crate) requests: Flow,
    /// From the broker to the client.
    pub(crate) replies: Flow,
    /// New connections.
    pub(crate) door: Door,
    /// Counts the cuts: connections that were there before one end.
    pub(crate) cuts: u64,
    /// The same for cuts of the client's side alone.
    pub(crate) orphans: u64,
}

/// The proxies of all nodes.
#[derive(Debug)]
pub(crate) struct Proxies {
    rules: Vec<watch::Sender<Rule>>,
    thread: Option<JoinHandle<()>>,
}

impl Proxies {
    /// Listens on these ports of 127.0.0.1, each in front of the port beside it.
    pub(crate) fn start(ports: &[(u16, u16)], wire: &Arc<Wire>) -> Result<Self> {
        let mut rules = Vec::new();
        let mut doors = Vec::new();
        for &(port, target) in ports {
            let listener = std::net::TcpListener::bind(("127.0.0.1", port))
                .with_context(|| format!("the proxy's port {port}"))?;
            listener.set_nonblocking(true)?;
            let (rule, ruled) = watch::channel(Rule::default());
            rules.push(rule);
            doors.push((listener, target, ruled));
        }
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let wire = Arc::clone(wire);
        let thread = thread::spawn(move || runtime.block_on(serve_all(doors, wire)));
        Ok(Self { rules, thread: Some(thread) })
    }

    /// Changes the rule of one node's proxy.
    pub(crate) fn rule(&self, node: usize, change: impl FnOnce(&mut Rule)) {
        if let Some(rule) = self.rules.get(node) {
            rule.send_modify(change);
        }
    }

    /// Ends all connections and listeners.
    pub(crate) fn stop(mut self) {
        self.rules.clear();
        if let Some(thread) = self.thread.take() {
            // A proxy that panicked has said so, and the run cannot have gone well.
            let _ended = thread.join();
        }
    }
}

async fn serve_all(
    doors: Vec<(std::net::TcpListener, u16, watch::Receiver<Rule>)>,
    wire: Arc<Wire>,
) {
    let mut serving = tokio::task::JoinSet::new();
    for (listener, target, ruled) in doors {
        if let Ok(listener) = TcpListener::from_std(listener) {
            serving.spawn(serve(listener, target, ruled, Arc::clone(&wire)));
        }
    }
    while serving.join_next().await.is_some() {}
}

/// Until the sender of rules is gone.
async fn serve(
    listener: TcpListener,
    target: u16,
    mut ruled: watch::Receiver<Rule>,
    wire: Arc<Wire>,
) {
    loop {
        tokio::select! {
            changed = ruled.changed() => if changed.is_err() { return },
            accepted = listener.accept() => if let Ok((client, _)) = accepted {
                tokio::spawn(carry(client, target, ruled.clone(), Arc::clone(&wire)));
            },
        }
    }
}

/// One connection, from its begin to its end.
async fn carry(client: TcpStream, target: u16, mut ruled: watch::Receiver<Rule>, wire: Arc<Wire>) {
    let door = ruled.borrow_and_update().door;
    match door {
        Door::Open => {}
        Door::Refuse => return,
        Door::Hang => {
            // It lasts until the next change of any rule; the client has its own patience.
            let _over = ruled.changed().await;
            return;
        }
    }
    // A broker that is down refuses, and so do we.
    let Ok(broker) = TcpStream::connect(("127.0.0.1", target)).await else { return };
    if client.set_nodelay(true).and_then(|()| broker.set_nodelay(true)).is_err() {
        return;
    }
    let born = *ruled.borrow_and_update();
    let (over, ends) = watch::channel(false);
    let talk = Arc::new(Conversation::new(wire));
    let (from_client, to_client) = client.into_split();
    let (from_broker, to_broker) = broker.into_split();
    let pump = |way, source, sink| Pump {
        way,
        source: Some(source),
        sink,
        kept: BytesMut::new(),
        hole: false,
        breaks: None,
        born,
        ruled: ruled.clone(),
        over: over.clone(),
        ends: ends.clone(),
        talk: Arc::clone(&talk),
    };
    let requests = pump(Way::Requests, from_client, to_broker);
    let replies = pump(Way::Replies, from_broker, to_client);
    tokio::join!(requests.run(), replies.run());
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    Requests,
    Replies,
}

/// One direction of one connection.
struct Pump {
    way: Way,
    source: Option<OwnedReadHalf>,
    sink: OwnedWriteHalf,
    kept: BytesMut,
    /// Bytes were lost: nothing may follow.
    hole: bool,
    /// Which wish to break it is, and after how many more bytes.
    breaks: Option<(u64, u64)>,
    born: Rule,
    ruled: watch::Receiver<Rule>,
    over: watch::Sender<bool>,
    ends: watch::Receiver<bool>,
    talk: Arc<Conversation>,
}

impl Pump {
    async fn run(mut self) {
        while let Some(flow) = self.flow() {
            self.step(flow).await;
        }
        if self.hole || self.breaks.is_some_and(|(left, _)| left == 0) {
            self.over.send_replace(true);
        }
        // Either side may be gone already.
        let _closed = self.sink.shutdown().await;
    }

    /// What to do with bytes now; `None` if this direction is at its end.
    fn flow(&mut self) -> Option<Flow> {
        let rule = *self.ruled.borrow_and_update();
        let gone = self.ruled.has_changed().is_err();
        if gone || *self.ends.borrow_and_update() || rule.cuts != self.born.cuts {
            return None;
        }
        let orphaned = rule.orphans != self.born.orphans;
        let flow = match self.way {
            Way::Requests => rule.requests,
            Way::Replies if orphaned => return None,
            Way::Replies => rule.replies,
        };
        if orphaned {
            // The client hangs up; what it sent is still on its way.
            self.source = None;
        }
        match flow {
            Flow::Break(after, wish) if self.breaks.is_none_or(|(_, known)| known != wish) => {
                self.breaks = Some((after, wish));
            }
            Flow::Break(..) => {}
            Flow::Pass | Flow::Stall | Flow::Hold | Flow::Lose | Flow::Trickle => {
                self.breaks = None;
            }
        }
        let broken = self.hole && flow != Flow::Lose;
        let done = self.source.is_none() && self.kept.is_empty() && flow != Flow::Hold;
        let cut = self.breaks.is_some_and(|(left, _)| left == 0);
        (!broken && !done && !cut).then_some(flow)
    }

    /// Waits for one thing to happen, and does it.
    async fn step(&mut self, flow: Flow) {
        let room = match flow {
            Flow::Pass | Flow::Trickle | Flow::Break(..) => WINDOW,
            Flow::Hold => HELD,
            Flow::Lose => usize::MAX,
            Flow::Stall => 0,
        };
        let most = match flow {
            Flow::Pass => self.kept.len(),
            Flow::Trickle => self.kept.len().min(20),
            Flow::Break(..) => self.left().min(self.kept.len()),
            Flow::Stall | Flow::Hold | Flow::Lose => 0,
        };
        let reads = self.kept.len() < room;
        tokio::select! {
            changed = self.ruled.changed() => drop(changed),
            ended = self.ends.changed() => drop(ended),
            read = read(self.source.as_ref()), if reads && self.source.is_some() => match read {
                Some(bytes) => self.take(flow, &bytes),
                None => self.source = None,
            },
            wrote = self.sink.write(&self.kept[..most]), if most > 0 => {
                let wrote = wrote.unwrap_or(0);
                if wrote == 0 {
                    // Nobody listens any more.
                    (self.source, self.hole) = (None, true);
                    self.kept.clear();
                    return;
                }
                self.kept.advance(wrote);
                if let Some((left, _)) = &mut self.breaks {
                    *left -= wrote as u64;
                }
                if flow == Flow::Trickle {
                    tokio::time::sleep(TRICKLE).await;
                }
            },
        }
    }

    fn left(&self) -> usize {
        let left = self.breaks.map_or(0, |(left, _)| left);
        usize::try_from(left).unwrap_or(usize::MAX)
    }

    fn take(&mut self, flow: Flow, bytes: &[u8]) {
        match self.way {
            Way::Requests => self.talk.asks(bytes),
            Way::Replies => self.talk.answers(bytes),
        }
        if flow == Flow::Lose {
            self.hole = true;
        } else {
            self.kept.extend_from_slice(bytes);
        }
    }
}

/// Some bytes, or `None` at the end, however it came.
async fn read(source: Option<&OwnedReadHalf>) -> Option<Vec<u8>> {
    let source = source?;
    loop {
        source.readable().await.ok()?;
        let mut bytes = vec![0; 16 << 10];
        match source.try_read(&mut bytes) {
            Ok(0) => return None,
            Ok(n) => {
                bytes.truncate(n);
                return Some(bytes);
            }
            Err(why) if why.kind() == std::io::ErrorKind::WouldBlock => {}
            Err(_) => return None,
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panic")]
mod tests {
    use std::io::{Read as _, Write as _};
    use std::net::{TcpListener, TcpStream};

    use super::super::wire::tests::produce;
    use super::*;

    /// A broker of one connection, and the proxy in front of it.
    fn world() -> (TcpListener, u16, Proxies) {
        let (broker, port, proxies, _) = watched();
        (broker, port, proxies)
    }

    fn watched() -> (TcpListener, u16, Proxies, Arc<Wire>) {
        let broker = TcpListener::bind("127.0.0.1:0").unwrap();
        // A port that was free a moment ago.
        let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let ports = [(free, broker.local_addr().unwrap().port())];
        let wire = Arc::new(Wire::default());
        let proxies = Proxies::start(&ports, &wire).unwrap();
        (broker, free, proxies, wire)
    }

    /// Both ends of a connection through the proxy, after a byte in each direction.
    fn connect(broker: &TcpListener, port: u16) -> (TcpStream, TcpStream) {
        let mut client = TcpStream::connect(("127.0.0.1", port)).unwrap();
        let mut served = broker.accept().unwrap().0;
        client.write_all(b"?").unwrap();
        assert_eq!(bytes(&mut served, 1), b"?");
        served.write_all(b"!").unwrap();
        assert_eq!(bytes(&mut client, 1), b"!");
        (client, served)
    }

    fn bytes(stream: &mut TcpStream, count: usize) -> Vec<u8> {
        let mut read = vec![0; count];
        stream.read_exact(&mut read).unwrap();
        read
    }

    /// All that still comes; a reset is an end as well.
    fn rest(stream: &mut TcpStream) -> Vec<u8> {
        let mut read = Vec::new();
        // What was read before an error stays.
        let _ended = stream.read_to_end(&mut read);
        read
    }

    #[test]
    fn what_is_held_arrives_although_the_client_is_gone() {
        let (broker, port, proxies, wire) = watched();
        let mut client = TcpStream::connect(("127.0.0.1", port)).unwrap();
        let mut served = broker.accept().unwrap().0;
        proxies.rule(0, |rule| rule.requests = Flow::Hold);
        let request = produce(1, 0);
        client.write_all(&request).unwrap();
        while wire.told().0.requests == 0 {
            thread::yield_now();
        }
        proxies.rule(0, |rule| rule.orphans += 1);
        assert_eq!(rest(&mut client), b"", "the client's side is cut at once");
        served.set_nonblocking(true).unwrap();
        assert!(served.read(&mut [0; 9]).is_err(), "and nothing came yet");
        served.set_nonblocking(false).unwrap();
        proxies.rule(0, |rule| rule.requests = Flow::Pass);
        assert_eq!(rest(&mut served), request);
        proxies.stop();
    }

    #[test]
    fn a_connection_breaks_after_so_many_bytes() {
        let (broker, port, proxies) = world();
        let (mut client, mut served) = connect(&broker, port);
        proxies.rule(0, |rule| rule.requests = Flow::Break(3, 1));
        client.write_all(b"abcdef").unwrap();
        assert_eq!(rest(&mut served), b"abc");
        assert_eq!(rest(&mut client), b"");
        proxies.stop();
    }

    #[test]
    fn lost_answers_are_followed_by_nothing() {
        let (broker, port, proxies) = world();
        let (mut client, mut served) = connect(&broker, port);
        proxies.rule(0, |rule| rule.replies = Flow::Break(2, 1));
        served.write_all(b"answer").unwrap();
        assert_eq!(rest(&mut client), b"an");
        proxies.rule(0, |rule| rule.replies = Flow::Lose);
        let (mut client, mut served) = {
            let client = TcpStream::connect(("127.0.0.1", port)).unwrap();
            (client, broker.accept().unwrap().0)
        };
        served.write_all(b"answer").unwrap();
        served.shutdown(std::net::Shutdown::Write).unwrap();
        assert_eq!(rest(&mut client), b"");
        proxies.stop();
    }

    #[test]
    fn a_cut_ends_both_sides_and_new_connections_are_made() {
        let (broker, port, proxies) = world();
        let (mut client, mut served) = connect(&broker, port);
        proxies.rule(0, |rule| rule.cuts += 1);
        assert_eq!((rest(&mut client), rest(&mut served)), (Vec::new(), Vec::new()));
        drop(connect(&broker, port));
        proxies.rule(0, |rule| rule.door = Door::Refuse);
        let mut refused = TcpStream::connect(("127.0.0.1", port)).unwrap();
        assert_eq!(rest(&mut refused), b"");
        proxies.stop();
    }
}
