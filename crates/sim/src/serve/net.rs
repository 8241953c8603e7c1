//! The network side of the cluster: connections, requests one at a time, answers, faults.

use std::collections::{BTreeMap, VecDeque};

use bytes::Bytes;

use super::connection::{Busy, Connection, Next, Peer, Ticket, Until};
use super::fault::{Fault, Faults, Release, Reply, Upset};
use super::requests::{Asked, Reaction};
use super::settings::{Replication, Settings};
use super::{answers, produce, versions};
use crate::broker::{self, Cluster, NodeId, PartAnswer, Partition};
use crate::codec::{Batch, BatchError, Endpoint, PRODUCE, Record, decode_request};

/// Names one connection for as long as the net lives; never used again.
///
/// ```
/// use candor_sim::serve::{Net, Settings};
/// let mut net = Net::new(Settings::default());
/// assert_ne!(net.connect(1), net.connect(1));
/// assert_eq!(net.connect(9), None);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ConnectionId(u64);

/// How a client went away, and so how far the broker still gets with what it has received.
///
/// ```
/// assert_ne!(candor_sim::serve::Hangup::Fin, candor_sim::serve::Hangup::Reset);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hangup {
    /// An orderly close: as measured on 3.9 to 4.4, the request in progress and one more are
    /// still acted upon, because only the second answer meets the reset of the closed socket.
    Fin,
    /// A reset: only the request in progress is.
    Reset,
    /// So many requests are, the one in progress included; the rest of the buffer is lost. Any
    /// number can happen.
    After(u32),
}

/// What the net has for the other ends.
///
/// ```
/// use candor_sim::serve::{Net, Output, Settings};
/// let mut net = Net::new(Settings::default());
/// let connection = net.connect(1).unwrap();
/// net.receive(0, connection, b"GET / HTTP/1.1\r\n");
/// assert_eq!(net.poll(), Some(Output::Closed { connection }));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output {
    /// Bytes for a client. If it hung up they meet nobody.
    Bytes {
        /// Which connection.
        connection: ConnectionId,
        /// The bytes.
        bytes: Vec<u8>,
    },
    /// The broker closed, behind all bytes it sent.
    Closed {
        /// Which connection.
        connection: ConnectionId,
    },
}

/// Brokers and their connections, without sockets and without a clock.
///
/// Bytes go in with [`Self::receive`], in any chunks; bytes come out of [`Self::poll`]. Each
/// connection is served one request at a time: the next one is not looked at before the answer
/// to the last is out. Time comes with the calls, in microseconds since the Unix epoch;
/// [`Self::deadline`] says when to call [`Self::tick`] if nothing else happens.
///
/// ```
/// use candor_sim::codec::{INIT_PRODUCER_ID, InitProducerIdRequest, RequestHeader};
/// use candor_sim::serve::{Net, Output, Settings};
/// let mut net = Net::new(Settings::default());
/// let connection = net.connect(1).unwrap();
/// let body = InitProducerIdRequest::idempotent().encode(4);
/// net.receive(0, connection, &RequestHeader::new(INIT_PRODUCER_ID, 4, 1).frame(&body));
/// assert!(matches!(net.poll(), Some(Output::Bytes { .. })));
/// assert_eq!(net.poll(), None);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Net {
    pub(super) cluster: Cluster<Bytes>,
    pub(super) nodes: Vec<u8>,
    pub(super) endpoints: BTreeMap<u8, Endpoint>,
    pub(super) replicas: usize,
    pub(super) auto_create: Option<usize>,
    replication: Replication,
    pub(super) connections: BTreeMap<ConnectionId, Connection>,
    next_connection: u64,
    faults: Faults,
    outputs: VecDeque<Output>,
}

/// Building, and looking.
impl Net {
    /// Brokers that all run, without connections.
    pub fn new(settings: Settings) -> Self {
        let nodes: Vec<u8> = (1..=settings.brokers).collect();
        let ids: Vec<NodeId> = nodes.iter().copied().map(NodeId).collect();
        let mut cluster = Cluster::new(settings.profile, &ids, millis(settings.begin));
        for (name, partitions) in &settings.topics {
            cluster.create_topic(name, *partitions, settings.replicas);
        }
        let mut faults = Faults::default();
        settings.faults.into_iter().for_each(|fault| faults.add(fault));
        let mut net = Self {
            cluster,
            endpoints: BTreeMap::new(),
            replicas: settings.replicas,
            auto_create: settings.auto_create,
            replication: settings.replication,
            connections: BTreeMap::new(),
            next_connection: 0,
            faults,
            outputs: VecDeque::new(),
            nodes,
        };
        net.nodes().into_iter().for_each(|node| net.advertise(node, "localhost", 9092));
        net
    }

    /// The brokers' ids.
    pub fn nodes(&self) -> Vec<u8> {
        self.nodes.clone()
    }

    /// Where Metadata says that a broker listens. Default: localhost, 9092.
    pub fn advertise(&mut self, node: u8, host: &str, port: u16) {
        let (id, port) = (i32::from(node), i32::from(port));
        let endpoint = Endpoint { node: id, host: host.to_owned(), port, rack: None };
        self.endpoints.insert(node, endpoint);
    }

    /// The connections that hold an answer back, with the brokers they lead to.
    pub fn held(&self) -> Vec<(ConnectionId, u8)> {
        let holds = |open: &Connection| matches!(open.busy, Busy::Holding { .. });
        self.connections.iter().filter(|(_, c)| holds(c)).map(|(id, c)| (*id, c.node)).collect()
    }

    /// Bytes that a connection has received and not looked at.
    pub fn backlog(&self, connection: ConnectionId) -> usize {
        self.connections.get(&connection).map_or(0, Connection::backlog)
    }

    /// How many connections brokers still know, whatever their clients did.
    pub fn open_connections(&self) -> usize {
        self.connections.len()
    }

    /// Whether the broker still knows the connection, whatever its client did.
    pub fn is_open(&self, connection: ConnectionId) -> bool {
        self.connections.contains_key(&connection)
    }

    /// How many requests of an API were taken up, by all brokers.
    pub fn taken_up(&self, api: i16) -> u64 {
        self.faults.taken_up(api)
    }

    /// The faults that have not acted yet.
    pub fn faults(&self) -> &[Fault] {
        self.faults.waiting()
    }

    /// The cluster.
    pub fn cluster(&self) -> &Cluster<Bytes> {
        &self.cluster
    }

    /// The batches that a consumer could ever read of a partition, committed or not yet, as they
    /// lie in the log. Empty if there is no such partition.
    pub fn log(&self, topic: &str, partition: usize) -> Vec<Batch> {
        let log = self.cluster.partition(topic, partition).map(Partition::log);
        answers::stored(log.unwrap_or_default())
    }

    /// The records of [`Self::log`], in offset order.
    ///
    /// # Errors
    /// [`BatchError::Compressed`] for batches that only a codec can open.
    pub fn records(&self, topic: &str, partition: usize) -> Result<Vec<Record>, BatchError> {
        let mut all = Vec::new();
        for batch in self.log(topic, partition) {
            all.extend(batch.records()?);
        }
        Ok(all)
    }
}

/// What happens from outside.
impl Net {
    /// Opens a connection to a broker; `None` if it does not run.
    pub fn connect(&mut self, node: u8) -> Option<ConnectionId> {
        if !self.cluster.is_running(NodeId(node)) {
            return None;
        }
        self.next_connection += 1;
        let id = ConnectionId(self.next_connection);
        self.connections.insert(id, Connection::new(node));
        Some(id)
    }

    /// Bytes of a client have arrived. On a connection that is gone they meet nobody.
    pub fn receive(&mut self, now: u64, connection: ConnectionId, bytes: &[u8]) {
        if let Some(open) = self.connections.get_mut(&connection)
            && open.peer == Peer::There
        {
            open.receive(bytes);
            self.tick(now);
        }
    }

    /// The client is gone. What the broker had received may still be acted upon.
    pub fn hang_up(&mut self, now: u64, connection: ConnectionId, how: Hangup) {
        let Some(open) = self.connections.get_mut(&connection) else { return };
        let answers = match how {
            Hangup::Fin => 2,
            Hangup::Reset => 1,
            Hangup::After(n) => n,
        };
        open.peer = Peer::Gone { answers };
        self.tick(now);
    }

    /// Lets a held answer go, whatever it waits for.
    pub fn release(&mut self, now: u64, connection: ConnectionId) {
        if let Some(open) = self.connections.get_mut(&connection)
            && let Busy::Holding { until, .. } = &mut open.busy
        {
            *until = Until::Time(now);
        }
        self.tick(now);
    }

    /// One more fault to come. Its trigger counts from the start of the net.
    pub fn inject(&mut self, fault: Fault) {
        self.faults.add(fault);
    }

    /// Something befalls the cluster now.
    pub fn upset(&mut self, now: u64, upset: &Upset) {
        self.befall(now, upset);
        self.tick(now);
    }

    /// A broker that was stopped runs again, with what is on its disk.
    pub fn start_node(&mut self, now: u64, node: u8) {
        self.cluster.start(NodeId(node), millis(now));
        self.tick(now);
    }

    /// The cluster, to be changed: call [`Self::tick`] afterwards. To stop a broker and start it
    /// again in one go use [`Self::upset`], which also ends its connections.
    pub fn cluster_mut(&mut self) -> &mut Cluster<Bytes> {
        &mut self.cluster
    }

    /// The next thing for the outside.
    pub fn poll(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    /// When [`Self::tick`] is due for the sake of a client, if nothing else happens; `None` for
    /// never.
    pub fn deadline(&self) -> Option<u64> {
        let due = |open: &Connection| match &open.busy {
            Busy::Waiting { deadline, .. } => Some(*deadline),
            Busy::Holding { until: Until::Time(at), .. } => Some(*at),
            Busy::Holding { until: Until::Produce(_) | Until::ByHand | Until::Never, .. }
            | Busy::Idle
            | Busy::Stuck => None,
        };
        self.connections.values().filter_map(due).min()
    }

    /// When [`Self::tick`] is due for what brokers do by the clock: forgetting producers that
    /// expired, and checkpoints. It never ends.
    pub fn housekeeping(&self) -> u64 {
        micros(self.cluster.next_timer())
    }

    /// Goes on wherever something can go on.
    pub fn tick(&mut self, now: u64) {
        self.cluster.advance(millis(now));
        loop {
            if self.replication == Replication::AtOnce {
                self.cluster.replicate(millis(now));
            }
            let completed = self.cluster.completed(millis(now));
            let mut moved = !completed.is_empty();
            for (request, answers) in completed {
                self.complete(now, request, &answers);
            }
            let ids: Vec<ConnectionId> = self.connections.keys().copied().collect();
            for id in ids {
                moved |= self.advance(now, id);
            }
            if !moved {
                return;
            }
        }
    }
}

/// One connection, step by step.
impl Net {
    /// One step of one connection. Returns whether there was one.
    fn advance(&mut self, now: u64, id: ConnectionId) -> bool {
        let Some(open) = self.connections.get_mut(&id) else { return false };
        if open.peer == (Peer::Gone { answers: 0 }) || !self.cluster.is_running(NodeId(open.node)) {
            self.close(id);
            return true;
        }
        match &mut open.busy {
            Busy::Idle => self.look_for_request(now, id),
            Busy::Waiting { .. } => false,
            Busy::Holding { answer, until } => {
                let due = match until {
                    Until::Time(at) => now >= *at,
                    Until::Produce(nth) => self.faults.taken_up(PRODUCE) >= *nth,
                    Until::ByHand => false,
                    Until::Never => return self.give_up(id),
                };
                if due {
                    let answer = std::mem::take(answer);
                    self.send(id, answer);
                }
                due
            }
            Busy::Stuck => self.give_up(id),
        }
    }

    /// A connection that has nothing more to say ends when its client is gone.
    fn give_up(&mut self, id: ConnectionId) -> bool {
        let gone = self.connections.get(&id).is_some_and(|open| open.peer != Peer::There);
        if gone {
            self.close(id);
        }
        gone
    }

    fn look_for_request(&mut self, now: u64, id: ConnectionId) -> bool {
        let Some(open) = self.connections.get_mut(&id) else { return false };
        match open.next() {
            Next::Frame(frame) => self.take_up(now, id, frame),
            Next::BadLength => self.close(id),
            Next::Partial { api, here } => {
                let cut = api.and_then(|api| Some((api, self.faults.cut_ahead(api)?)));
                match cut {
                    Some((api, at)) if here >= at => {
                        let _cut = self.faults.take_up(api, &[]);
                        self.close(id);
                    }
                    // Half a request of a client that is gone stays half.
                    Some(_) | None => return self.give_up(id),
                }
            }
        }
        true
    }

    /// A whole request is here and the connection is free for it.
    fn take_up(&mut self, now: u64, id: ConnectionId, frame: Bytes) {
        let served = versions::served(self.cluster.profile());
        let Ok((header, request)) = decode_request(frame, &served) else { return self.close(id) };
        let plan = self.faults.take_up(header.api, &self.partitions_of(&request));
        if plan.cut_request {
            return self.close(id);
        }
        self.befall_all(now, &plan.before);
        // The broker itself may have gone down with the request.
        let Some(node) = self.connections.get(&id).map(|open| open.node) else { return };
        let reaction = self.act(Asked { node, now }, &header, request, &plan);
        let ticket = Ticket { header, reply: plan.reply, throttle_ms: plan.throttle_ms };
        // From here on the request has been acted upon: what befalls now does not undo it.
        self.react(now, id, ticket, reaction, &plan.after);
    }

    fn react(
        &mut self,
        now: u64,
        id: ConnectionId,
        ticket: Ticket,
        reaction: Reaction,
        after: &[Upset],
    ) {
        self.befall_all(now, after);
        let Some(open) = self.connections.get_mut(&id) else { return };
        match reaction {
            Reaction::Answer(body) => self.answer(now, id, &ticket, &body),
            Reaction::Later(body, micros) => {
                let reply = match ticket.reply {
                    Reply::Send => Reply::Hold(Release::Elapsed(micros)),
                    other @ (Reply::Drop | Reply::Cut(_) | Reply::Hold(_)) => other,
                };
                self.answer(now, id, &Ticket { reply, ..ticket }, &body);
            }
            Reaction::Waiting(request, deadline) => {
                open.busy = Busy::Waiting { request, ticket, deadline };
            }
            Reaction::Silent => {}
            Reaction::Close => self.close(id),
            Reaction::Stuck => open.busy = Busy::Stuck,
        }
    }

    /// A request that waited has its answers.
    fn complete(&mut self, now: u64, done: broker::RequestId, answers: &[PartAnswer]) {
        let waits = |open: &Connection| match &open.busy {
            Busy::Waiting { request, ticket, .. } if *request == done => Some(ticket.clone()),
            Busy::Waiting { .. } | Busy::Idle | Busy::Holding { .. } | Busy::Stuck => None,
        };
        let found = self.connections.iter().find_map(|(id, open)| Some((*id, waits(open)?)));
        let Some((id, ticket)) = found else { return };
        let response = produce::to_wire(answers, &self.endpoints, ticket.throttle_ms);
        self.answer(now, id, &ticket, &response.encode(ticket.header.version));
    }

    fn answer(&mut self, now: u64, id: ConnectionId, ticket: &Ticket, body: &[u8]) {
        let frame = ticket.header.answer(body);
        match ticket.reply {
            Reply::Send => self.send(id, frame),
            Reply::Drop => self.send(id, Vec::new()),
            Reply::Cut(after) => {
                self.send(id, frame.into_iter().take(after).collect());
                self.close(id);
            }
            Reply::Hold(release) => {
                if let Some(open) = self.connections.get_mut(&id) {
                    let until = Until::of(release, now);
                    open.busy = Busy::Holding { answer: frame, until };
                }
            }
        }
    }

    /// The answer goes out, and the connection is free again.
    fn send(&mut self, id: ConnectionId, bytes: Vec<u8>) {
        let Some(open) = self.connections.get_mut(&id) else { return };
        open.busy = Busy::Idle;
        if let Peer::Gone { answers } = &mut open.peer {
            *answers = answers.saturating_sub(1);
        }
        if !bytes.is_empty() {
            self.outputs.push_back(Output::Bytes { connection: id, bytes });
        }
    }

    pub(super) fn close(&mut self, id: ConnectionId) {
        if self.connections.remove(&id).is_some() {
            self.outputs.push_back(Output::Closed { connection: id });
        }
    }
}

/// Brokers count in milliseconds.
pub(super) fn millis(micros: u64) -> i64 {
    i64::try_from(micros / 1_000).unwrap_or(i64::MAX)
}

fn micros(millis: i64) -> u64 {
    u64::try_from(millis).unwrap_or(0).saturating_mul(1_000)
}
