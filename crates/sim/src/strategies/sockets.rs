//! Virtual sockets, as a loop that never blocks sees them.

use std::collections::BTreeMap;

use bytes::{Bytes, BytesMut};
use candor_core::RouteId;
use candor_proto::{Address, Loss};

use super::plan::{Plan, TOPIC, Wire, WireFault};
use super::{PARTITIONS, harness::BEGIN};
use crate::serve::{ConnectionId, Hangup, Net, Output, Settings};

/// How long a connection takes to be there, in microseconds.
const DIAL: u64 = 1_000;

/// What a socket holds if nothing is wrong with it, in bytes.
const WINDOW: usize = 64 << 10;

/// Requests that a broker still acts on when its client is gone.
const ORPHANS: u32 = 8;

/// How a connection stands.
///
/// ```
/// use candor_proto::Loss;
/// use candor_sim::strategies::Status;
/// assert_ne!(Status::Connecting, Status::Over(Loss::Refused));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// It is not there yet.
    Connecting,
    /// It is there.
    Up,
    /// It is over, for this reason, or never was.
    Over(Loss),
}

#[derive(Debug)]
struct Socket {
    node: u8,
    status: Status,
    due: u64,
    server: Option<ConnectionId>,
    out: BytesMut,
    inbox: BytesMut,
    accepted: u64,
    heard: u64,
    breaks_out: u64,
    breaks_in: u64,
    window: usize,
    chunk: usize,
    refused: bool,
    /// The broker closed it, behind what is in the inbox.
    closed: bool,
}

/// All connections of a loop. Calls never block: they do what can be done now.
///
/// ```
/// use candor_core::RouteId;
/// use candor_sim::strategies::{Sockets, Status};
/// fn is_up(sockets: &Sockets, conn: RouteId) -> bool {
///     sockets.status(conn) == Status::Up
/// }
/// ```
#[derive(Debug)]
pub struct Sockets {
    pub(super) net: Net,
    sockets: BTreeMap<RouteId, Socket>,
    faults: Vec<WireFault>,
    dialled: u64,
    pub(super) now: u64,
    /// Something was done since it was looked at last.
    pub(super) moved: bool,
    pub(super) story: Vec<(u64, String)>,
}

impl Sockets {
    pub(super) fn new(plan: &Plan) -> Self {
        let mut net = Net::new(Settings {
            profile: plan.profile,
            brokers: 3,
            replicas: 3,
            topics: vec![(TOPIC.to_owned(), PARTITIONS as usize)],
            begin: BEGIN,
            faults: plan.broker_faults.clone(),
            ..Settings::default()
        });
        for node in net.nodes() {
            net.advertise(node, &format!("broker-{node}"), 9092);
        }
        Self {
            net,
            sockets: BTreeMap::new(),
            faults: plan.wire_faults.clone(),
            dialled: 0,
            now: BEGIN,
            moved: false,
            story: Vec::new(),
        }
    }

    /// Begins to open a connection.
    pub fn connect(&mut self, conn: RouteId, address: &Address) {
        self.dialled += 1;
        let node = address.host().strip_prefix("broker-").and_then(|node| node.parse().ok());
        let mut socket = Socket {
            node: node.unwrap_or_default(),
            status: Status::Connecting,
            due: self.now + DIAL,
            server: None,
            out: BytesMut::new(),
            inbox: BytesMut::new(),
            accepted: 0,
            heard: 0,
            breaks_out: u64::MAX,
            breaks_in: u64::MAX,
            window: WINDOW,
            chunk: WINDOW,
            refused: false,
            closed: false,
        };
        for fault in self.faults.iter().filter(|fault| fault.connection == self.dialled) {
            match fault.wire {
                Wire::Refused => socket.refused = true,
                Wire::BreaksOut(at) => socket.breaks_out = at,
                Wire::BreaksIn(at) => socket.breaks_in = at,
                Wire::Narrow(bytes) => socket.window = bytes.max(1),
                Wire::Chunked(bytes) => socket.chunk = bytes.max(1),
            }
        }
        self.tell(format!("connection {} is opened to {address}", conn.0));
        self.sockets.insert(conn, socket);
        self.moved = true;
    }

    /// How a connection stands. What came before its end is still to be [read](Self::read).
    pub fn status(&self, conn: RouteId) -> Status {
        self.sockets.get(&conn).map_or(Status::Over(Loss::Asked), |socket| socket.status)
    }

    /// Writes what the socket takes now; gives how many bytes that was.
    ///
    /// # Errors
    /// The connection is over.
    pub fn write(&mut self, conn: RouteId, bytes: &[u8]) -> Result<usize, Loss> {
        let Some(socket) = self.sockets.get_mut(&conn) else { return Err(Loss::Asked) };
        match socket.status {
            Status::Over(loss) => return Err(loss),
            Status::Connecting => return Ok(0),
            Status::Up if socket.closed => return Err(Loss::Ended),
            Status::Up => {}
        }
        let left = usize::try_from(socket.breaks_out - socket.accepted).unwrap_or(usize::MAX);
        let room = socket.window.saturating_sub(socket.out.len());
        let n = bytes.len().min(room).min(left);
        socket.out.extend_from_slice(&bytes[..n]);
        socket.accepted += n as u64;
        let broke = socket.accepted >= socket.breaks_out;
        if broke {
            socket.over(Loss::Broken);
        }
        self.moved |= n > 0;
        if broke {
            self.tell(format!("connection {} breaks, {n} bytes being written", conn.0));
        }
        Ok(n)
    }

    /// Reads what has come, if something has.
    ///
    /// # Errors
    /// The connection is over, and nothing is left to be read.
    pub fn read(&mut self, conn: RouteId) -> Result<Option<Bytes>, Loss> {
        let Some(socket) = self.sockets.get_mut(&conn) else { return Err(Loss::Asked) };
        if socket.inbox.is_empty() {
            return match socket.status {
                Status::Over(loss) => Err(loss),
                Status::Up if socket.closed => Err(Loss::Ended),
                Status::Up | Status::Connecting => Ok(None),
            };
        }
        let left = usize::try_from(socket.breaks_in - socket.heard).unwrap_or(usize::MAX);
        let n = socket.inbox.len().min(socket.chunk).min(left);
        let bytes = socket.inbox.split_to(n).freeze();
        socket.heard += n as u64;
        let broke = socket.heard >= socket.breaks_in;
        if broke {
            socket.over(Loss::Broken);
        }
        self.moved = true;
        if broke {
            self.tell(format!("connection {} breaks, {n} bytes being read", conn.0));
        }
        Ok(Some(bytes))
    }

    /// Closes a connection. What was written still arrives.
    pub fn close(&mut self, conn: RouteId) {
        if let Some(socket) = self.sockets.get_mut(&conn) {
            socket.over(Loss::Asked);
            self.moved = true;
            self.tell(format!("connection {} is closed", conn.0));
        }
    }

    fn tell(&mut self, text: String) {
        self.story.push((self.now, text));
    }

    /// The network does what it can do now.
    pub(super) fn flow(&mut self) {
        let (now, mut told) = (self.now, Vec::new());
        for (conn, socket) in &mut self.sockets {
            if socket.status == Status::Connecting && socket.due <= now {
                socket.server = self.net.connect(socket.node).filter(|_| !socket.refused);
                let up = socket.server.is_some();
                socket.status = if up { Status::Up } else { Status::Over(Loss::Refused) };
                self.moved = true;
                if !up {
                    told.push(format!("connection {} is refused", conn.0));
                }
            }
            let Some(server) = socket.server else { continue };
            if !socket.out.is_empty() {
                let bytes = socket.out.split().freeze();
                self.net.receive(now, server, &bytes);
                self.moved = true;
            }
            if matches!(socket.status, Status::Over(_)) {
                self.net.hang_up(now, server, Hangup::After(ORPHANS));
                socket.server = None;
            }
        }
        self.net.tick(now);
        while let Some(output) = self.net.poll() {
            self.moved = true;
            told.extend(self.hear(output));
        }
        told.into_iter().for_each(|text| self.tell(text));
    }

    fn hear(&mut self, output: Output) -> Option<String> {
        let (connection, bytes) = match output {
            Output::Bytes { connection, bytes } => (connection, Some(bytes)),
            Output::Closed { connection } => (connection, None),
        };
        let mut all = self.sockets.iter_mut();
        let (conn, socket) = all.find(|(_, socket)| socket.server == Some(connection))?;
        match bytes {
            Some(bytes) => {
                socket.inbox.extend_from_slice(&bytes);
                None
            }
            None => {
                socket.closed = true;
                socket.server = None;
                Some(format!("the broker closes connection {}", conn.0))
            }
        }
    }

    /// When the network does something by itself.
    pub(super) fn deadline(&self) -> Option<u64> {
        let dials = self.sockets.values().filter(|s| s.status == Status::Connecting);
        dials.map(|socket| socket.due).chain(self.net.deadline()).min()
    }

    /// The client is gone, and all that is under way arrives.
    pub(super) fn end(&mut self) {
        self.sockets.values_mut().for_each(|socket| socket.over(Loss::Asked));
        self.flow();
        while let Some(at) = self.net.deadline() {
            self.now = self.now.max(at);
            self.flow();
        }
    }
}

impl Socket {
    fn over(&mut self, why: Loss) {
        if !matches!(self.status, Status::Over(_)) {
            self.status = Status::Over(why);
            self.inbox.clear();
        }
    }
}
