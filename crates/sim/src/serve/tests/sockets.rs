//! The same over loopback.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};

use super::*;
use crate::codec::{
    FETCH, FetchPartition, FetchRequest, FetchResponse, LATEST, LIST_OFFSETS, ListOffsetsRequest,
    ListOffsetsResponse, METADATA, MetadataQuery, MetadataRequest, MetadataResponse, batches,
};

fn loopback(n: usize) -> Vec<SocketAddr> {
    vec![SocketAddr::from(([127, 0, 0, 1], 0)); n]
}

/// A client with a socket.
struct Client {
    stream: TcpStream,
    correlation: i32,
}

impl Client {
    fn connect(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).unwrap();
        // An answer that never comes fails its test instead of hanging it.
        stream.set_read_timeout(Some(std::time::Duration::from_secs(60))).unwrap();
        Self { stream, correlation: 0 }
    }

    fn send(&mut self, api: i16, version: i16, body: &[u8]) -> RequestHeader {
        self.correlation += 1;
        let header = RequestHeader::new(api, version, self.correlation);
        self.stream.write_all(&header.frame(body)).unwrap();
        header
    }

    /// The answer, or `None` if the connection ends instead.
    fn answer(&mut self, to: &RequestHeader) -> Option<Reader> {
        let mut length = [0; 4];
        self.stream.read_exact(&mut length).ok()?;
        let mut frame = vec![0; u32::from_be_bytes(length) as usize];
        self.stream.read_exact(&mut frame).ok()?;
        let (correlation, reader) = to.open_answer(frame.into()).unwrap();
        assert_eq!(correlation, to.correlation);
        Some(reader)
    }

    fn produce(&mut self, request: &ProduceRequest) -> Option<Vec<(i32, i16, i64)>> {
        let header = self.send(PRODUCE, 12, &request.encode(12));
        let mut reader = self.answer(&header)?;
        Some(codes(&ProduceResponse::decode(&mut reader, 12).unwrap()))
    }

    fn metadata(&mut self) -> MetadataResponse {
        let topics = Some(vec![MetadataQuery { id: [0; 16], name: Some("t".into()) }]);
        let request = MetadataRequest { topics, allow_auto_topic_creation: true };
        let header = self.send(METADATA, 12, &request.encode(12));
        MetadataResponse::decode(&mut self.answer(&header).unwrap(), 12).unwrap()
    }
}

#[test]
fn records_go_in_and_come_out_again() {
    let settings = Settings { brokers: 2, auto_create: Some(2), ..Settings::default() };
    let server = Server::start(settings, &loopback(2)).unwrap();
    let mut client = Client::connect(server.addresses()[0]);
    assert_eq!(client.metadata().topics[0].error, 3, "created, but not seen yet");
    let metadata = client.metadata();
    let ports: Vec<i32> = metadata.brokers.iter().map(|broker| broker.port).collect();
    let bound: Vec<i32> = server.addresses().iter().map(|at| i32::from(at.port())).collect();
    assert_eq!(ports, bound);
    let leaders: Vec<i32> = metadata.topics[0].partitions.iter().map(|one| one.leader).collect();
    assert_eq!(leaders, [1, 2]);
    assert_eq!(client.produce(&to(0, batch(0, 0, 2))), Some(vec![(0, 0, 0)]));
    assert_eq!(client.produce(&to(0, batch(0, 2, 1))), Some(vec![(0, 0, 2)]));
    assert_eq!(client.produce(&to(1, batch(0, 0, 1))), Some(vec![(1, 6, -1)]));

    let values: Vec<String> = server.with(|net, _| {
        let records = net.records("t", 0).unwrap();
        records
            .iter()
            .map(|one| String::from_utf8_lossy(one.value.as_deref().unwrap()).into())
            .collect()
    });
    assert_eq!(values, ["4000/0/0", "4000/0/1", "4000/0/2"]);

    let list = ListOffsetsRequest { topics: vec![("t".into(), vec![(0, LATEST)])] };
    let header = client.send(LIST_OFFSETS, 7, &list.encode(7));
    let listed = ListOffsetsResponse::decode(&mut client.answer(&header).unwrap(), 7).unwrap();
    assert_eq!(listed.topics[0].1[0].offset, 3);
    let from = FetchPartition { index: 0, offset: 0, max_bytes: 1 << 20 };
    let fetch =
        FetchRequest { max_wait_ms: 0, min_bytes: 1, topics: vec![("t".into(), vec![from])] };
    let header = client.send(FETCH, 12, &fetch.encode(12));
    let fetched = FetchResponse::decode(&mut client.answer(&header).unwrap(), 12).unwrap();
    let batches = batches(fetched.topics[0].1[0].records.clone()).unwrap();
    let offsets: Vec<i64> =
        batches.iter().flat_map(|b| b.records().unwrap()).map(|record| record.offset).collect();
    assert_eq!(offsets, [0, 1, 2]);
    server.shutdown();
}

#[test]
fn faults_act_over_sockets_too() {
    let topics = vec![("t".into(), 1)];
    let faults = vec![
        Fault::on_produce(1, Effect::CutReply(7)),
        Fault::on_produce(3, Effect::HoldReply(Release::Elapsed(20_000))),
    ];
    let settings = Settings { topics, faults, ..Settings::default() };
    let server = Server::start(settings, &loopback(1)).unwrap();
    let mut first = Client::connect(server.addresses()[0]);
    assert_eq!(first.produce(&to(0, batch(0, 0, 1))), None);
    let mut second = Client::connect(server.addresses()[0]);
    assert_eq!(second.produce(&to(0, batch(0, 0, 1))), Some(vec![(0, 0, 0)]), "in the log");
    // Nothing but the server's own timer lets this one go.
    assert_eq!(second.produce(&to(0, batch(0, 1, 1))), Some(vec![(0, 0, 1)]));
    assert!(server.with(|net, _| net.faults().is_empty()));
}

#[test]
fn what_was_sent_before_a_close_is_acted_upon() {
    let settings = Settings { topics: vec![("t".into(), 1)], ..Settings::default() };
    let server = Server::start(settings, &loopback(1)).unwrap();
    let mut client = Client::connect(server.addresses()[0]);
    let _header = client.send(PRODUCE, 9, &to(0, batch(0, 0, 1)).encode(9));
    drop(client);
    server.wait_until(|net| net.taken_up(PRODUCE) == 1);
    assert_eq!(server.with(|net, _| net.records("t", 0).unwrap().len()), 1);
}

#[test]
fn a_stopped_broker_closes_new_connections_at_once() {
    let server = Server::start(Settings::default(), &loopback(1)).unwrap();
    let mut before = Client::connect(server.addresses()[0]);
    let _answer = before.metadata();
    server.with(|net, now| net.upset(now, &Upset::Stop { node: 1, crash: true }));
    assert_eq!(before.stream.read(&mut [0]).unwrap_or(0), 0);
    let mut during = Client::connect(server.addresses()[0]);
    assert_eq!(during.stream.read(&mut [0]).unwrap_or(0), 0);
    server.with(|net, now| net.start_node(now, 1));
    let mut after = Client::connect(server.addresses()[0]);
    assert_eq!(after.metadata().brokers.len(), 1);
}

#[test]
fn a_shutdown_ends_everything_while_clients_do_nothing() {
    let settings = Settings { topics: vec![("t".into(), 1)], ..Settings::default() };
    let server = Server::start(settings, &loopback(1)).unwrap();
    let address = server.addresses()[0];
    server.with(|net, _| {
        net.inject(Fault::on_produce(1, Effect::HoldReply(Release::Never)));
    });
    let mut stuck = Client::connect(address);
    let header = stuck.send(PRODUCE, 9, &to(0, batch(0, 0, 1)).encode(9));
    let mut idle = Client::connect(address);
    server.wait_until(|net| net.taken_up(PRODUCE) == 1);
    server.shutdown();
    assert!(stuck.answer(&header).is_none());
    assert_eq!(idle.stream.read(&mut [0]).unwrap_or(0), 0);
    assert!(TcpStream::connect(address).is_err());
}

#[test]
fn addresses_must_match_the_brokers() {
    let two = Settings { brokers: 2, ..Settings::default() };
    let refused = Server::start(two, &loopback(1)).unwrap_err();
    assert_eq!(refused.to_string(), "2 brokers need as many addresses, not 1");
}

/// One of several clients that produce on fresh connections and often do not wait.
fn come_and_go(address: SocketAddr, partition: i32) {
    for first in 0..20 {
        let Ok(stream) = TcpStream::connect(address) else { return };
        let mut client = Client { stream, correlation: 0 };
        let request = to(partition, of(P + i64::from(partition), 0, first, 1));
        let header = RequestHeader::new(PRODUCE, 9, 1);
        // The server may end in the middle of anything.
        if client.stream.write_all(&header.frame(&request.encode(9))).is_err() {
            return;
        }
        if first % 3 == 0 {
            let _answer = client.answer(&header);
        }
    }
}

#[test]
fn clients_come_and_go_and_the_server_ends_among_them() {
    for wanted in [1, 40, 80, 160] {
        let settings = Settings { topics: vec![("t".into(), 8)], ..Settings::default() };
        let server = Server::start(settings, &loopback(1)).unwrap();
        let address = server.addresses()[0];
        let client = |partition| std::thread::spawn(move || come_and_go(address, partition));
        let clients: Vec<_> = (0..8).map(client).collect();
        server.wait_until(|net| net.taken_up(PRODUCE) >= wanted);
        server.shutdown();
        for client in clients {
            client.join().unwrap();
        }
    }
}
