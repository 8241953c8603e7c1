//! What cannot work is refused with exit code 2 and a sentence that says what to do, before
//! anything is sent or written over.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on has failed")]

mod support;

use std::io::{Read, Write};
use std::net::TcpListener;
use std::thread;

use support::{Folder, candor, cluster, produce, stored_values};

const TOPIC: &str = "orders";

#[test]
fn a_refused_connection() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    drop(listener);
    let folder = Folder::new();
    let ledger = folder.write("ledger", b"of an earlier run");
    let args = ["produce", "--bootstrap-server", &address, "--topic", TOPIC, "--ledger", &ledger];
    candor(&args).end().assert_error(&[&address, "refused", "--bootstrap-server"]);
    assert_eq!(folder.read("ledger"), "of an earlier run");
    let fresh = folder.file("fresh");
    let args = ["produce", "--bootstrap-server", &address, "--topic", TOPIC, "--ledger", &fresh];
    candor(&args).end().assert_error(&["refused"]);
    assert_eq!(folder.names(), ["ledger"], "nothing was written");
}

#[test]
fn garbage_from_the_peer() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let _asked = stream.read(&mut [0; 64]);
            let _answered = stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n");
        }
    });
    let ended = candor(&["produce", "--bootstrap-server", &address, "--topic", TOPIC]).end();
    ended.assert_error(&[&address, "is a Kafka broker listening there"]);
}

#[test]
fn an_address_that_is_none() {
    let ended = candor(&["produce", "--bootstrap-server", "localhost", "--topic", TOPIC]).end();
    ended.assert_error(&["bootstrap.servers", "localhost"]);
}

#[test]
fn files_that_are_none() {
    let (server, folder) = (cluster(vec![]), Folder::new());
    let directory = folder.path().display().to_string();
    produce(&server, TOPIC, &[&directory]).end().assert_error(&["is a directory", &directory]);
    let missing = folder.file("missing");
    produce(&server, TOPIC, &[&missing]).end().assert_error(&["cannot read", &missing]);
    let file = folder.write("in", b"line\n");
    for option in ["--ledger", "--rejects"] {
        let ended = produce(&server, TOPIC, &[option, &directory, &file]).end();
        ended.assert_error(&["is a directory", &directory]);
        let nowhere = folder.file("no/folder");
        produce(&server, TOPIC, &[option, &nowhere, &file]).end().assert_error(&["cannot create"]);
        let dash = produce(&server, TOPIC, &[option, "-", &file]).end();
        dash.assert_error(&["/dev/stdout"]);
    }
    assert_eq!(stored_values(&server, TOPIC), Vec::<Vec<u8>>::new(), "nothing was sent");
}

#[test]
fn one_file_for_two_purposes() {
    let (server, folder) = (cluster(vec![]), Folder::new());
    let file = folder.write("in", b"line\n");
    produce(&server, TOPIC, &["--rejects", &file, &file]).end().assert_error(&["same file"]);
    let twice = folder.file("out");
    let ended = produce(&server, TOPIC, &["--rejects", &twice, "--ledger", &twice, &file]).end();
    ended.assert_error(&["same file"]);
    let detour = format!("{}/./out", folder.path().display());
    let ended = produce(&server, TOPIC, &["--rejects", &detour, "--ledger", &twice, &file]).end();
    ended.assert_error(&["same file"]);
    let hard = folder.file("hard");
    std::fs::hard_link(&file, &hard).unwrap();
    produce(&server, TOPIC, &["--ledger", &hard, &file]).end().assert_error(&["same file"]);
    std::fs::remove_file(&hard).unwrap();
    let ended = candor(&["demo", "--html", &file, &file]).end();
    ended.assert_error(&["same file", "--html"]);
    let ended = candor(&["sim", "run", "--html", &file, &file]).end();
    ended.assert_error(&["same file", "--html"]);
    assert_eq!((folder.read("in"), folder.names()), ("line\n".into(), vec!["in".into()]));
}

#[test]
fn an_output_that_cannot_be_is_told_before_anything_is_done() {
    let (server, folder) = (cluster(vec![]), Folder::new());
    let file = folder.write("in", b"line\n");
    let old = folder.write("ledger", b"of an earlier run\n");
    let nowhere = folder.file("no/folder");
    let args = ["--ledger", &*old, "--rejects", &nowhere, &file];
    produce(&server, TOPIC, &args).end().assert_error(&["cannot create the file of rejects"]);
    assert_eq!(folder.read("ledger"), "of an earlier run\n");
    let replay = concat!(env!("CARGO_MANIFEST_DIR"), "/../sim/replays/");
    let directory = folder.path().display().to_string();
    for page in [&nowhere, &directory] {
        for command in [&["demo", "--html", page][..], &["sim", "run", replay, "--html", page]] {
            let ended = candor(command).end();
            ended.assert_error(&["page"]);
            assert_eq!(ended.out, "", "nothing was done: {command:?}");
        }
    }
    assert_eq!(folder.names(), ["in", "ledger"]);
    assert_eq!(stored_values(&server, TOPIC), Vec::<Vec<u8>>::new(), "nothing was sent");
}

#[test]
fn properties_that_are_wrong_or_in_conflict() {
    let server = cluster(vec![]);
    let refused: [(&[&str], &[&str]); 12] = [
        (&["=x"], &["KEY=VALUE"]),
        (&["linger.ms=-1"], &["whole number"]),
        (&["acks=1"], &["acks=all"]),
        (&["enable.idempotence=false"], &["always idempotent"]),
        (&["linger.mss=1"], &["linger.mss", "unknown"]),
        (&["linger.ms=soon"], &["whole number"]),
        (&["linger.ms"], &["KEY=VALUE"]),
        (&["linger.ms=1", "linger.ms=2"], &["twice"]),
        (&["max.in.flight.requests.per.connection=6"], &["max_in_flight"]),
        (&["bootstrap.servers=localhost:9092"], &["--bootstrap-server"]),
        (&["batch.size=2000000"], &["batch_size", "max_request_size"]),
        (&["transactional.id=x"], &["transactions"]),
    ];
    for (properties, hints) in refused {
        let args: Vec<&str> = properties.iter().flat_map(|one| ["--property", one]).collect();
        produce(&server, TOPIC, &args).end().assert_error(hints);
    }
    let both = ["--deadline", "2s", "--property", "delivery.timeout.ms=2000"];
    produce(&server, TOPIC, &both).end().assert_error(&["--deadline", "keep one"]);
    produce(&server, TOPIC, &["--deadline", "2"]).end().assert_error(&["2s"]);
    produce(&server, TOPIC, &["--deadline", "100h"]).end().assert_error(&["deadline"]);
    produce(&server, TOPIC, &["--key-separator", ""]).end().assert_error(&["empty"]);
}

#[test]
fn a_topic_that_cannot_be() {
    let server = cluster(vec![]);
    for topic in ["no topic!", "..", &"x".repeat(250)] {
        produce(&server, topic, &[]).end().assert_error(&["[a-zA-Z0-9._-]", "249"]);
    }
}

#[test]
fn addresses_with_ports_out_of_range() {
    for address in ["127.0.0.1:99999", "127.0.0.1:0", "127.0.0.1:port", "127.0.0.1:-1"] {
        let ended = candor(&["produce", "--bootstrap-server", address, "--topic", TOPIC]).end();
        ended.assert_error(&["bootstrap.servers", address, "host:port", "1..=65535"]);
    }
    let none = ["produce", "--bootstrap-server", "", "--topic", TOPIC];
    candor(&none).end().assert_error(&["name at least one broker"]);
    let nowhere = ["produce", "--bootstrap-server", "nowhere.invalid:9092", "--topic", TOPIC];
    candor(&nowhere).end().assert_error(&["nowhere.invalid:9092", "the name has no address"]);
}

#[test]
fn times_that_are_none() {
    let (server, folder) = (cluster(vec![]), Folder::new());
    let file = folder.write("in", b"line\n");
    for option in ["--deadline", "--resolve-within"] {
        for (time, hint) in [
            ("0", "2s"),
            ("0s", "longer than nothing"),
            ("=-2s", "longer than nothing"),
            ("soon", "1500ms"),
            ("2", "2s"),
            ("", option),
        ] {
            let option = match time.strip_prefix('=') {
                Some(time) => vec![format!("{option}={time}")],
                None => vec![option.to_owned(), time.to_owned()],
            };
            let args: Vec<&str> = option.iter().map(String::as_str).chain([&*file]).collect();
            produce(&server, TOPIC, &args).end().assert_error(&[hint]);
        }
    }
    assert_eq!(stored_values(&server, TOPIC), Vec::<Vec<u8>>::new(), "nothing was sent");
}

#[cfg(target_os = "linux")]
#[test]
fn an_input_that_cannot_be_read() {
    let server = cluster(vec![]);
    let ended = produce(&server, TOPIC, &["/proc/self/mem"]).end();
    ended.assert_error(&["cannot read /proc/self/mem from line 1 on"]);
}

#[test]
fn an_output_that_nobody_reads() {
    let server = cluster(vec![]);
    let mut run = produce(&server, TOPIC, &[]);
    run.stop_reading();
    run.feed(b"line\n");
    run.end().assert_error(&["standard output"]);
    assert_eq!(stored_values(&server, TOPIC), [b"line"], "and yet it was sent");
}

#[cfg(target_os = "linux")]
#[test]
fn a_disk_that_is_full() {
    let server = cluster(vec![]);
    let mut run = produce(&server, TOPIC, &["--ledger", "/dev/full"]);
    run.feed(b"line\n");
    run.end().assert_error(&["/dev/full", "disk full"]);
}
