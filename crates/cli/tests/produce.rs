//! `candor produce` against a cluster in this process: ledger, rejects and exit codes hold what the
//! log holds.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on has failed")]

mod support;

use std::collections::BTreeMap;

use candor_sim::codec::PRODUCE;
use candor_sim::serve::{Effect, Fault, Moment, Release, Server};
use serde_json::{Value, json};

use support::{Folder, cluster, cluster_without_topics, produce, stored, stored_values};

const TOPIC: &str = "orders";

fn hold(release: Release) -> Fault {
    Fault::on_produce(1, Effect::HoldReply(release))
}

/// A deadline that comes soon, and not before a busy machine has handed the records over: what has
/// left by then is unknown.
const SOON: &str = "2s";

/// Lets all answers go that are held, once there is one; how many.
fn release(server: &Server) -> usize {
    server.wait_until(|net| !net.held().is_empty());
    server.with(|net, now| {
        let held = net.held();
        held.iter().for_each(|(connection, _)| net.release(now, *connection));
        held.len()
    })
}

fn lines(n: u32) -> Vec<u8> {
    (1..=n).flat_map(|i| format!("key-{}:value {i}\n", i % 50).into_bytes()).collect()
}

/// Every entry that says "delivered" names a record of the log, and no record is left.
#[track_caller]
fn assert_ledger_is_log(server: &Server, ledger: &[Value], value_of: impl Fn(u64) -> Vec<u8>) {
    let mut log: BTreeMap<(u64, i64), Vec<u8>> = stored(server, TOPIC)
        .into_iter()
        .map(|(partition, record)| ((partition, record.offset), record.value.unwrap().to_vec()))
        .collect();
    for entry in ledger {
        let delivered = [&entry["verdict"], &entry["resolution"]].contains(&&json!("delivered"));
        let line = entry["line"].as_u64().unwrap();
        assert!(entry["at_ms"].is_u64(), "{entry}");
        if delivered {
            let place = (entry["partition"].as_u64().unwrap(), entry["offset"].as_i64().unwrap());
            assert_eq!(log.remove(&place), Some(value_of(line)), "{entry}");
        }
    }
    assert_eq!(log, BTreeMap::new());
}

fn line_numbers(objects: &[Value]) -> Vec<u64> {
    let mut numbers: Vec<u64> = objects.iter().map(|one| one["line"].as_u64().unwrap()).collect();
    numbers.sort_unstable();
    numbers
}

#[test]
fn every_line_is_a_record_and_the_ledger_says_where() {
    let (server, folder) = (cluster(vec![]), Folder::new());
    let file = folder.write("in", &lines(2_000));
    let (ledger, rejects) = (folder.file("ledger"), folder.file("rejects"));
    let args = ["--key-separator", ":", "--format", "json", "--ledger", &ledger];
    let ended =
        produce(&server, TOPIC, &[&args[..], &["--rejects", &rejects, &file]].concat()).end();
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let summary = ended.json();
    assert_eq!((&summary["records"], &summary["delivered"]), (&json!(2000), &json!(2000)));
    assert_eq!(summary["complete"], json!(true));
    assert_eq!(ended.err, "", "nothing is to be told on a pipe");
    let ledger = folder.objects("ledger");
    assert_eq!(line_numbers(&ledger), (1..=2_000).collect::<Vec<_>>());
    assert_ledger_is_log(&server, &ledger, |line| format!("value {line}").into_bytes());
    let of_key = |(partition, record): (u64, candor_sim::codec::Record)| (record.key, partition);
    let homes: BTreeMap<_, _> = stored(&server, TOPIC).into_iter().map(of_key).collect();
    assert_eq!(homes.len(), 50, "a key has one partition");
    assert_eq!(folder.read("rejects"), "");
    let fields = ["line", "partition", "verdict", "offset", "reason", "resolution", "at_ms"];
    assert!(fields.iter().all(|field| ledger[0].get(field).is_some()), "{}", ledger[0]);
}

#[test]
fn bytes_are_bytes() {
    let server = cluster(vec![]);
    let mut run = produce(&server, TOPIC, &[]);
    run.feed(b"\xff\xfe\n\ncarriage\r\nno newline");
    let ended = run.end();
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let expected = [&b""[..], b"carriage\r", b"no newline", b"\xff\xfe"];
    assert_eq!(stored_values(&server, TOPIC), expected);
}

#[test]
fn an_empty_input_is_delivered() {
    let server = cluster(vec![]);
    let ended = produce(&server, TOPIC, &["--format", "json"]).end();
    assert_eq!((ended.code, &ended.json()["records"]), (Some(0), &json!(0)), "{ended:?}");
}

#[test]
fn an_unknown_record_is_in_the_ledger_at_once_and_resolved_in_place() {
    let (server, folder) = (cluster(vec![hold(Release::ByHand)]), Folder::new());
    let (ledger, rejects) = (folder.file("ledger"), folder.file("rejects"));
    let args = ["--deadline", SOON, "--ledger", &ledger, "--rejects", &rejects];
    let mut run = produce(&server, TOPIC, &args);
    run.feed(b"one\ntwo\n");
    run.await_word("waiting for what became of 2 unknown records");
    let early = folder.objects("ledger");
    assert_eq!(line_numbers(&early), [1, 2]);
    for entry in &early {
        assert_eq!((&entry["verdict"], &entry["resolution"]), (&json!("unknown"), &Value::Null));
        let at = entry["at_ms"].as_u64().unwrap();
        assert!(at >= 2_000, "told at its deadline: {entry}");
    }
    release(&server);
    let ended = run.end();
    assert_eq!(ended.code, Some(0), "delivered in the end: {ended:?}");
    let late = folder.objects("ledger");
    assert_eq!(late.len(), 2, "one object per record");
    assert_eq!(late[0]["verdict"], json!("unknown"));
    for (before, after) in early.iter().zip(&late) {
        let reason = |entry: &Value| entry["reason"].as_str().unwrap().to_owned();
        assert!(reason(before).contains("may be in the log"), "{before}");
        assert!(reason(after).contains("proves that it is in the log"), "{after}");
    }
    let text = folder.read("ledger");
    assert!(text.lines().all(|line| line.ends_with('}')), "no blanks are left: {text:?}");
    assert_eq!(folder.names(), ["ledger", "rejects"], "nor anything else");
    assert_ledger_is_log(&server, &late, |line| ["one", "two"][line as usize - 1].into());
    assert_eq!(folder.read("rejects"), "");
}

#[cfg(unix)]
#[test]
fn a_ledger_behind_a_link_stays_there_with_its_rights() {
    use std::os::unix::fs::{PermissionsExt, symlink};
    let held = |nth| Fault::on_produce(nth, Effect::HoldReply(Release::Never));
    let (server, folder) = (cluster(vec![held(1), held(2)]), Folder::new());
    let (ledger, link) = (folder.write("ledger", b"of an earlier run\n"), folder.file("link"));
    std::fs::set_permissions(&ledger, PermissionsExt::from_mode(0o640)).unwrap();
    symlink(&ledger, &link).unwrap();
    let times = ["--deadline", SOON, "--resolve-within", "300ms"];
    let mut run = produce(&server, TOPIC, &[&times[..], &["--ledger", &link]].concat());
    run.feed(b"one\n");
    assert_eq!(run.end().code, Some(1));
    assert!(std::fs::symlink_metadata(&link).unwrap().is_symlink());
    assert_eq!(std::fs::metadata(&ledger).unwrap().permissions().mode() & 0o777, 0o640);
    let text = folder.read("ledger");
    assert!(text.ends_with("}\n") && text.lines().count() == 1, "{text:?}");
    assert_eq!(folder.objects("ledger")[0]["resolution"], json!("never"));
    // Under another name it would stay as it is: it is left alone, and that is told.
    std::fs::hard_link(&ledger, folder.file("other")).unwrap();
    let mut run = produce(&server, TOPIC, &[&times[..], &["--ledger", &link]].concat());
    run.feed(b"two\n");
    let ended = run.end();
    assert!(ended.err.contains("is whole") && ended.err.contains("other names"), "{ended:?}");
    assert_eq!(folder.read("other"), folder.read("ledger"));
    assert_eq!(folder.objects("ledger").len(), 1);
    assert_eq!(folder.names(), ["ledger", "link", "other"], "{ended:?}");
}

#[cfg(unix)]
#[test]
fn a_ledger_on_standard_output_and_the_summary_leave_each_other_alone() {
    let (server, folder) = (cluster(vec![hold(Release::Never)]), Folder::new());
    let input = std::fs::File::open(folder.write("in", b"one\ntwo\n")).unwrap();
    let out = std::fs::File::create(folder.file("out")).unwrap();
    let bootstrap = server.bootstrap();
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_candor"));
    command.args(["produce", "--bootstrap-server", &bootstrap, "--topic", TOPIC]);
    command.args(["--deadline", SOON, "--resolve-within", "300ms"]);
    command.args(["--ledger", "/dev/stdout", "--format", "json"]);
    let ended = command.stdin(input).stdout(out).output().unwrap();
    assert_eq!(ended.status.code(), Some(1), "{ended:?}");
    let objects = folder.objects("out");
    assert_eq!(line_numbers(&objects[..2]), [1, 2]);
    assert_eq!((objects.len(), &objects[2]["never"]), (3, &json!(2)), "{objects:?}");
    assert!(folder.read("out").lines().all(|line| line.ends_with('}')), "no blanks");
}

#[test]
fn a_ledger_is_whole_although_the_command_is_killed() {
    let (server, folder) = (cluster(vec![hold(Release::Never)]), Folder::new());
    let ledger = folder.file("ledger");
    let mut run = produce(&server, TOPIC, &["--deadline", SOON, "--ledger", &ledger]);
    run.feed(b"one\ntwo\n");
    run.await_word("waiting for what became of 2 unknown records");
    run.kill();
    let entries = folder.objects("ledger");
    assert_eq!(line_numbers(&entries), [1, 2]);
    assert!(entries.iter().all(|entry| entry["verdict"] == json!("unknown")), "{entries:?}");
}

#[cfg(unix)]
#[test]
fn a_ledger_in_a_pipe_has_each_record_once_and_no_blanks() {
    let server = cluster(vec![hold(Release::ByHand)]);
    let args = ["--deadline", SOON, "--ledger", "/dev/stdout", "--format", "json"];
    let mut run = produce(&server, TOPIC, &args);
    run.feed(b"one\n");
    run.await_word("waiting for what became of 1 unknown record");
    release(&server);
    let ended = run.end();
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let lines: Vec<&str> = ended.out.lines().collect();
    assert_eq!(lines.len(), 2, "the record and the summary: {ended:?}");
    let entry: Value = serde_json::from_str(lines[0]).unwrap();
    assert_eq!((&entry["verdict"], &entry["offset"]), (&json!("unknown"), &json!(0)));
    assert!(lines[0].ends_with('}'), "{ended:?}");
}

#[test]
fn what_nobody_can_find_out_is_rejected_with_its_line() {
    let (server, folder) = (cluster(vec![hold(Release::Never)]), Folder::new());
    let (ledger, rejects) = (folder.file("ledger"), folder.file("rejects"));
    let times = ["--deadline", SOON, "--resolve-within", "300ms", "--format", "json"];
    let files = ["--ledger", &*ledger, "--rejects", &rejects];
    let mut run = produce(&server, TOPIC, &[&times[..], &files].concat());
    run.feed(b"text \xc3\xa9\n\xff\x00\n");
    let ended = run.end();
    assert_eq!(ended.code, Some(1), "{ended:?}");
    let summary = ended.json();
    assert_eq!((&summary["unknown"], &summary["never"]), (&json!(2), &json!(2)), "{summary}");
    let rejects = folder.objects("rejects");
    assert_eq!(line_numbers(&rejects), [1, 2]);
    assert_eq!((&rejects[0]["text"], &rejects[1]["hex"]), (&json!("text é"), &json!("ff00")));
    assert_eq!(
        (&rejects[0]["verdict"], &rejects[0]["resolution"]),
        (&json!("unknown"), &json!("never"))
    );
    assert!(rejects[0]["reason"].as_str().unwrap().contains("producer id"), "facts for a search");
    assert_eq!(folder.objects("ledger").len(), 2);
}

#[test]
fn a_refused_record_is_rejected_and_the_others_go_on() {
    let refuse = Effect::Answer { code: 87, at: Moment::Before };
    let (server, folder) = (cluster(vec![Fault::on_produce(1, refuse)]), Folder::new());
    let rejects = folder.file("rejects");
    let mut run = produce(&server, TOPIC, &["--rejects", &rejects]);
    run.feed(b"bad\n");
    server.wait_until(|net| net.taken_up(PRODUCE) > 0);
    run.feed(b"good\n");
    let ended = run.end();
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert!(ended.out.contains("INVALID_RECORD"), "{ended:?}");
    let rejects = folder.objects("rejects");
    assert_eq!((rejects.len(), &rejects[0]["text"]), (1, &json!("bad")));
    assert_eq!(stored_values(&server, TOPIC), [b"good"]);
}

#[test]
fn a_record_too_large_is_rejected_byte_for_byte() {
    let (server, folder) = (cluster(vec![]), Folder::new());
    let large = "x".repeat(2_000_000);
    let file = folder.write("in", format!("before\n{large}\nafter\n").as_bytes());
    let rejects = folder.file("rejects");
    let ended = produce(&server, TOPIC, &["--rejects", &rejects, &file]).end();
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert!(ended.out.contains("max.request.size"), "says what to do: {ended:?}");
    let entries = folder.objects("rejects");
    assert_eq!((entries.len(), &entries[0]["line"]), (1, &json!(2)));
    assert_eq!(entries[0]["text"], json!(large));
    assert_eq!(stored_values(&server, TOPIC), [&b"after"[..], b"before"]);
    server.with(|net, _| {
        net.cluster_mut().configure(TOPIC, |topic| topic.max_message_bytes = 3_000_000)
    });
    let raised = ["--property", "max.request.size=3000000", "--resend", &rejects];
    let ended = produce(&server, TOPIC, &raised).end();
    assert_eq!(ended.code, Some(0), "fed back: {ended:?}");
    assert_eq!(stored_values(&server, TOPIC), [&b"after"[..], b"before", large.as_bytes()]);
}

#[test]
fn rejects_are_sent_again_unless_the_log_may_hold_them() {
    let (server, folder) = (cluster(vec![]), Folder::new());
    let rejects = [
        json!({"line": 3, "verdict": "not_delivered", "resolution": null, "text": "three"}),
        json!({"line": 4, "verdict": "unknown", "resolution": "never", "text": "four"}),
        json!({"line": 9, "verdict": "unknown", "resolution": "not_delivered", "hex": "ff0a"}),
    ];
    let rejects: String = rejects.iter().map(|one| format!("{one}\n")).collect();
    let file = folder.write("rejects", rejects.as_bytes());
    let ledger = folder.file("ledger");
    let ended = produce(&server, TOPIC, &["--resend", "--ledger", &ledger, &file]).end();
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert!(ended.err.contains("1 reject not sent again"), "{ended:?}");
    assert_eq!(stored_values(&server, TOPIC), [&b"three"[..], b"\xff\n"]);
    assert_eq!(line_numbers(&folder.objects("ledger")), [1, 3], "lines of the file of rejects");
    let file = folder.write("lines", b"no reject\n");
    let ended = produce(&server, TOPIC, &["--resend", &file]).end();
    ended.assert_error(&["line 1 of", "is no reject"]);
}

#[test]
fn an_unknown_topic_is_named_long_before_the_deadline() {
    let (server, folder) = (cluster_without_topics(), Folder::new());
    let rejects = folder.file("rejects");
    let mut run = produce(&server, "nowhere", &["--deadline", "4s", "--rejects", &rejects]);
    run.feed(b"a\nb\nc\n");
    run.await_word("partitions of topic nowhere");
    run.feed(b"d\n");
    let ended = run.end();
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert!(ended.err.contains("--topic"), "says what to do: {ended:?}");
    let text = |one: &Value| one["text"].as_str().unwrap().to_owned();
    let mut rejected: Vec<String> = folder.objects("rejects").iter().map(text).collect();
    rejected.sort_unstable();
    assert_eq!(rejected, ["a", "b", "c", "d"]);
}

#[test]
fn a_full_buffer_makes_lines_wait_and_loses_none() {
    let (server, folder) = (cluster(vec![hold(Release::ByHand)]), Folder::new());
    let file = folder.write("in", &lines(5_000));
    let ledger = folder.file("ledger");
    let small = ["--property", "buffer.memory=40000", "--property", "batch.size=4000"];
    let more = ["--key-separator", ":", "--format", "json", "--ledger", &ledger, &file];
    let mut run = produce(&server, TOPIC, &[&small[..], &more].concat());
    run.await_word("waiting for");
    assert_eq!(release(&server), 1);
    let ended = run.end();
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert_eq!(ended.json()["delivered"], json!(5_000));
    let value = |line| format!("value {line}").into_bytes();
    assert_ledger_is_log(&server, &folder.objects("ledger"), value);
}

#[test]
fn ctrl_c_ends_within_its_bound_and_accounts_for_every_line() {
    let (server, folder) = (cluster(vec![hold(Release::Never)]), Folder::new());
    let (ledger, rejects) = (folder.file("ledger"), folder.file("rejects"));
    let mut run = produce(&server, TOPIC, &["--ledger", &ledger, "--rejects", &rejects]);
    run.feed(b"one\ntwo\nthree\n");
    server.wait_until(|net| !net.held().is_empty());
    let asked = std::time::Instant::now();
    run.interrupt();
    let ended = run.wait();
    assert!(asked.elapsed() < std::time::Duration::from_secs(20), "a bound of 5 s, on a busy host");
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert!(ended.err.contains("line 4 on was not sent"), "{ended:?}");
    let entries = folder.objects("ledger");
    assert_eq!(line_numbers(&entries), [1, 2, 3]);
    for entry in &entries {
        let told = (entry["verdict"].as_str().unwrap(), entry["resolution"].as_str());
        let honest = [
            ("unknown", Some("never")),
            ("unknown", Some("delivered")),
            ("delivered", None),
            ("not_delivered", None),
        ];
        assert!(honest.contains(&told), "{entry}");
    }
    let delivered = |one: &Value| {
        one["verdict"] == json!("delivered") || one["resolution"] == json!("delivered")
    };
    let left = entries.iter().filter(|one| !delivered(one)).count();
    assert_eq!(folder.objects("rejects").len(), left);
    let stored = stored_values(&server, TOPIC);
    let doubted = entries.iter().filter(|one| one["resolution"] == json!("never")).count();
    assert!(entries.len() - left <= stored.len() && stored.len() <= entries.len() - left + doubted);
}

#[test]
fn ctrl_c_with_a_full_buffer_accounts_for_what_waited() {
    let (server, folder) = (cluster(vec![hold(Release::Never)]), Folder::new());
    let (ledger, rejects) = (folder.file("ledger"), folder.file("rejects"));
    let small = ["--property", "buffer.memory=40000", "--property", "batch.size=4000"];
    let files = ["--ledger", &*ledger, "--rejects", &rejects];
    let mut run = produce(&server, TOPIC, &[&small[..], &files].concat());
    run.feed(&lines(3_000));
    run.await_word("waiting for");
    let asked = std::time::Instant::now();
    run.interrupt();
    let ended = run.wait();
    assert!(asked.elapsed() < std::time::Duration::from_secs(20), "a bound of 5 s, on a busy host");
    assert_eq!(ended.code, Some(1), "{ended:?}");
    let numbers = line_numbers(&folder.objects("ledger"));
    let last = *numbers.last().unwrap();
    assert_eq!(numbers, (1..=last).collect::<Vec<_>>());
    assert!(ended.err.contains(&format!("line {} on was not sent", last + 1)), "{ended:?}");
    let entries = folder.objects("ledger");
    let delivered = |one: &&Value| {
        one["verdict"] == json!("delivered") || one["resolution"] == json!("delivered")
    };
    let left = entries.len() - entries.iter().filter(delivered).count();
    let rejects = folder.objects("rejects");
    assert_eq!(rejects.len(), left);
    let cancelled = rejects
        .iter()
        .filter(|one| one["reason"].as_str().unwrap().contains("cancelled before it was accepted"));
    assert!(cancelled.count() > 100, "lines that were read ahead");
}

#[test]
fn ctrl_c_at_the_end_does_not_wait_for_the_deadline() {
    let (server, folder) = (cluster(vec![hold(Release::Never)]), Folder::new());
    let ledger = folder.file("ledger");
    let mut run = produce(&server, TOPIC, &["--ledger", &ledger, "--format", "json"]);
    run.feed(b"one\n");
    run.end_input();
    run.await_word("waiting for the broker's answer");
    let asked = std::time::Instant::now();
    run.interrupt();
    let ended = run.wait();
    assert!(asked.elapsed() < std::time::Duration::from_secs(20), "not 120 s");
    assert_eq!((ended.code, &ended.json()["complete"]), (Some(1), &json!(true)), "{ended:?}");
    let entries = folder.objects("ledger");
    assert_eq!((entries.len(), &entries[0]["verdict"]), (1, &json!("unknown")));
}

#[test]
fn ctrl_c_before_a_broker_answers_sends_nothing() {
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = silent.local_addr().unwrap().to_string();
    let args = ["produce", "--bootstrap-server", &address, "--topic", TOPIC];
    let run = support::candor(&args);
    let _connection = silent.accept().unwrap();
    run.interrupt();
    let ended = run.wait();
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert!(ended.err.contains("nothing was sent"), "{ended:?}");
}
