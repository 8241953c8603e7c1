//! `candor sim run`, and the pages that commands draw.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on has failed")]

mod support;

use std::fs;

use support::{Folder, candor};

const FINE: &str =
    "title fine\nsend r1\nout A [0]\nin A ok 7\nexpect delivered r1 @7\nexpect no bump\n";

#[test]
fn the_sample_of_the_documentation_comes_as_it_should() {
    let page = include_str!("../../../docs/replays.md");
    let samples = page.split("```text\n").skip(1).filter_map(|rest| rest.split("```").next());
    let scenarios: Vec<&str> = samples.filter(|sample| sample.contains("\ntitle ")).collect();
    assert_eq!(scenarios.len(), 1);
    let folder = Folder::new();
    let file = folder.write("sample.replay", scenarios[0].as_bytes());
    let ended = candor(&["sim", "run", &file]).end();
    assert_eq!(ended.code, Some(0), "{ended:?}");
}

#[test]
fn a_scenario_is_fine_or_shows_the_line_that_is_not() {
    let folder = Folder::new();
    let fine = folder.write("fine.replay", FINE.as_bytes());
    let ended = candor(&["sim", "run", &fine]).end();
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(ended.out.starts_with("fine: "), "{}", ended.out);
    let wrong = folder.write("wrong.replay", FINE.replace("@7", "@8").as_bytes());
    let ended = candor(&["sim", "run", &wrong]).end();
    assert_eq!(ended.code, Some(1), "{ended:?}");
    for line in
        [":5: expect delivered r1 @8", "expected: r1 delivered @8", "happened: delivered @7"]
    {
        assert!(ended.out.contains(line), "{line}: {}", ended.out);
    }
    assert!(ended.out.contains(&format!("candor sim run {wrong}")), "{}", ended.out);
}

#[test]
fn what_is_no_scenario_is_an_error_with_its_line() {
    let folder = Folder::new();
    let bad = folder.write("bad.replay", b"title x\nsend r1\nout A\n");
    candor(&["sim", "run", &bad]).end().assert_error(&["bad.replay", "line 3", "[0-9]"]);
    candor(&["sim", "run", &folder.file("none")]).end().assert_error(&["cannot read"]);
    let empty = folder.path().join("empty");
    fs::create_dir(&empty).unwrap();
    let empty = empty.display().to_string();
    candor(&["sim", "run", &empty]).end().assert_error(&[".replay"]);
}

#[test]
fn a_directory_runs_whole_and_the_page_shows_what_failed() {
    let folder = Folder::new();
    folder.write("1.replay", FINE.as_bytes());
    folder.write("2.replay", FINE.replace("@7", "@8").as_bytes());
    folder.write("3.replay", FINE.as_bytes());
    let (directory, out) = (folder.path().display().to_string(), folder.file("page.html"));
    let ended = candor(&["sim", "run", &directory, "--html", &out]).end();
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert_eq!(ended.out.matches("fine: ").count(), 2, "{}", ended.out);
    let page = fs::read_to_string(&out).unwrap();
    assert!(page.contains(r#"<li class="failed">expect delivered r1 @8</li>"#));
    assert!(!page.contains("<script"));
}

#[test]
fn the_demo_draws_a_page() {
    let folder = Folder::new();
    let lines: String = (0..500).map(|i| format!("</svg><script>{i}\n")).collect();
    let file = folder.write("in", lines.as_bytes());
    let out = folder.file("page.html");
    let ended = candor(&["demo", "--html", &out, &file]).end();
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let page = fs::read_to_string(&out).unwrap();
    assert!(page.contains("demo-5") && page.contains("as it should"), "{page}");
    assert!(!page.contains("<script"));
}

#[test]
fn a_seed_that_fails_draws_a_page_that_names_what_is_wrong() {
    let folder = Folder::new();
    let out = folder.file("seed.html");
    let seed = ["sim", "replay", "0", "--brief", "--html", &out];
    let fine = candor(&seed).end();
    assert_eq!(fine.code, Some(0), "{fine:?}");
    assert!(fs::read_to_string(&out).is_err(), "there is nothing to draw");
    let swarm = candor(&["sim", "swarm", "--seeds", "1", "--html", &out]).end();
    assert!(swarm.err.contains("no seed failed"), "{swarm:?}");
    assert!(fs::read_to_string(&out).is_err(), "there is nothing to draw");
    let ended = candor(&[&seed[..], &["--planted", "NoGate"]].concat()).end();
    assert_eq!(ended.code, Some(1), "{ended:?}");
    let wrong = ended.out.lines().find_map(|line| line.strip_prefix("WRONG: ")).unwrap();
    let page = fs::read_to_string(&out).unwrap();
    assert!(page.contains(wrong), "{wrong} is not in the page");
    candor(&["sim", "replay", "0", "--planted", "Nobody"]).end().assert_error(&["planted-bugs.md"]);
}
