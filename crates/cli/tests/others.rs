//! `candor demo`, `candor broker`, `candor sim` and `candor bench`.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on has failed")]

mod support;

use candor_sim::serve::Server;
use serde_json::{Value, json};

use support::{Folder, candor, cluster, stored};

#[test]
fn the_demo_has_unknown_records_resolves_them_and_finds_nothing_wrong() {
    let ended = candor(&["demo", "--format", "json"]).end();
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let summary = ended.json();
    let number = |field: &str| summary[field].as_u64().unwrap();
    assert_eq!(number("records"), 10_000);
    let verdicts = number("delivered") + number("not_delivered") + number("unknown");
    assert_eq!(verdicts, 10_000, "{summary}");
    assert!(number("unknown") > 0, "{summary}");
    assert_eq!(number("resolved") + number("never"), number("unknown"), "{summary}");
    for wrong in ["never", "duplicates", "lost", "reordered", "wrong_verdicts"] {
        assert_eq!(number(wrong), 0, "{summary}");
    }
}

#[test]
fn the_demo_draws_its_partitions_and_faults() {
    let folder = Folder::new();
    let lines: String = (0..500).map(|i| format!("line {i}\n")).collect();
    let file = folder.write("in", lines.as_bytes());
    let ended = candor(&["demo", "--seed", "3", &file]).end();
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let rows = ended.out.lines().filter(|line| line.ends_with("in the log")).count();
    assert_eq!(rows, 6, "{}", ended.out);
    for word in ["500 records", "the broker froze for 900 ms", "0 wrong verdicts"] {
        assert!(ended.out.contains(word), "{word}: {}", ended.out);
    }
}

#[test]
fn the_demo_wants_a_file() {
    let folder = Folder::new();
    let directory = folder.path().display().to_string();
    candor(&["demo", &directory]).end().assert_error(&["is a directory"]);
    candor(&["demo", &folder.file("missing")]).end().assert_error(&["cannot read"]);
    let mut piped = candor(&["demo", "-", "--format", "json"]);
    piped.feed(b"one\ntwo\n");
    assert_eq!(piped.end().json()["records"], json!(2));
}

#[test]
fn the_broker_serves_until_ctrl_c_with_the_faults_it_was_given() {
    let fault = ["--fault", "produce:1 cut-reply:3"];
    let args = ["broker", "--listen", "127.0.0.1:0", "--brokers", "3", "--partitions", "2"];
    let mut broker = candor(&[&args[..], &fault].concat());
    let head: Vec<String> = (0..4).map(|_| broker.line()).collect();
    let addresses: Vec<&str> =
        head[..3].iter().map(|line| line.rsplit_once(' ').unwrap().1).collect();
    assert_eq!(head[0], format!("broker 1 {}", addresses[0]));
    assert_eq!(head[3], format!("bootstrap {}", addresses.join(",")));
    let args = ["produce", "--bootstrap-server", addresses[1], "--topic", "t", "--format", "json"];
    let mut run = candor(&args);
    run.feed(b"a\nb\n");
    let ended = run.end();
    assert_eq!((ended.code, &ended.json()["delivered"]), (Some(0), &json!(2)), "{ended:?}");
    broker.interrupt();
    assert_eq!(broker.end().code, Some(0));
}

#[test]
fn the_broker_refuses_what_it_cannot_be() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    candor(&["broker", "--listen", &address]).end().assert_error(&["is the port free"]);
    candor(&["broker", "--listen", "9092"]).end().assert_error(&["HOST:PORT"]);
    candor(&["broker", "--listen", "127.0.0.1:70000"]).end().assert_error(&["HOST:PORT"]);
    let behind = ["broker", "--listen", "127.0.0.1:65535", "--brokers", "3"];
    candor(&behind).end().assert_error(&["65535", "choose a lower one"]);
    for (option, number) in [("--brokers", "0"), ("--brokers", "65"), ("--partitions", "10001")] {
        candor(&["broker", option, number]).end().assert_error(&[option, number]);
    }
    let nobody = ["broker", "--brokers", "2", "--fault", "produce:3 stop:3:clean:after"];
    candor(&nobody).end().assert_error(&["no broker 3", "--brokers"]);
    candor(&["broker", "--fault", "produce:3 explode"]).end().assert_error(&["cut-reply:BYTES"]);
    candor(&["broker", "--fault", "produce:3"]).end().assert_error(&["a trigger, a space"]);
    candor(&["broker", "--profile", "1.0"]).end().assert_error(&["2.4"]);
    candor(&["broker", "--fault", "produce:x drop"]).end().assert_error(&["produce:N"]);
}

#[test]
fn a_search_closes_and_a_planted_bug_is_found() {
    let ended = candor(&["sim", "search", "--scope", "calm"]).end();
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(ended.out.contains(" calm: ") && ended.out.contains(", closed"), "{ended:?}");
    let ended = candor(&["sim", "search", "--scope", "calm", "--states", "10"]).end();
    assert_eq!(ended.code, Some(1), "the limit is no success: {ended:?}");
    let ended = candor(&["sim", "search", "--scope", "calm", "--replay", "0.0"]).end();
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(ended.out.ends_with("=> fine\n"), "{ended:?}");
    let ended = candor(&["sim", "search", "--scope", "calm", "--replay", "0.999"]).end();
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert!(ended.out.contains("there is no step 999 here"), "{ended:?}");
    let list = candor(&["sim", "search", "--list"]).end();
    assert!(list.out.lines().count() > 10, "{list:?}");
    candor(&["sim", "search", "--scope", "nowhere"]).end().assert_error(&["--list"]);
    let planted = candor(&["sim", "search", "--planted", "--scope", "first-contact"]).end();
    assert_eq!(planted.code, Some(0), "{planted:?}");
}

fn bench(server: &Server, args: &[&str]) -> support::Ended {
    let bootstrap = server.addresses()[0].to_string();
    let mut all = vec!["bench", "--bootstrap", &bootstrap, "--partitions", "3"];
    all.extend(args);
    candor(&all).end()
}

#[test]
fn the_bench_prints_the_instruments_line() {
    let server = cluster(vec![]);
    let ended = bench(&server, &["--records", "3000", "--size", "50", "--idempotent"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let line = ended.json();
    assert_eq!((&line["peer"], &line["acked"]), (&json!("candor"), &json!(3000)));
    assert_eq!(line["samples"], json!(30), "one in a hundred is timed");
    let fields = [
        "peer",
        "records",
        "size",
        "partitions",
        "acked",
        "failed",
        "seconds",
        "records_per_s",
        "mb_per_s",
        "user_s",
        "sys_s",
        "cpu_ns_per_record",
        "max_rss_mb",
        "p50_us",
        "p99_us",
        "samples",
    ];
    let Value::Object(object) = &line else { panic!("{line}") };
    let mut names: Vec<&str> = object.keys().map(String::as_str).collect();
    names.sort_unstable();
    let mut expected = fields;
    expected.sort_unstable();
    assert_eq!(names, expected);
    let records = stored(&server, "bench");
    assert_eq!(records.len(), 3_300, "a tenth of them warmed up");
    assert!(records.iter().all(|(_, record)| record.value.as_ref().unwrap().len() == 50));
}

#[test]
fn the_bench_keeps_to_a_rate_and_refuses_what_is_not_there() {
    let server = cluster(vec![]);
    let rate = ["--records", "100", "--rate", "1000", "--linger-ms", "0", "--warmup", "10"];
    let ended = bench(&server, &rate);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let line = ended.json();
    assert_eq!(line["samples"], json!(100), "all are timed");
    assert!(line["seconds"].as_f64().unwrap() >= 0.099, "{line}");
    bench(&server, &["--compression", "lz4"]).assert_error(&["--compression"]);
    bench(&server, &["--acks", "1"]).assert_error(&["acks=all"]);
    candor(&["bench", "--bootstrap", "127.0.0.1:1"])
        .end()
        .assert_error(&["127.0.0.1:1", "refused"]);
    candor(&["bench", "--records", "0"]).end().assert_error(&["--records"]);
}
