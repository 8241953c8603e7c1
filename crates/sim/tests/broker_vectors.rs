//! What real brokers answered, row by row, put to the model broker: `broker_vectors/vectors.txt`
//! has the rows and explains their notation.

#[path = "broker_vectors/stage.rs"]
mod stage;

use candor_sim::broker::Profile;
use stage::play;

const VECTORS: &str = include_str!("broker_vectors/vectors.txt");

struct Row {
    number: u32,
    profiles: Vec<Profile>,
    script: String,
}

/// Reads the table: comments, `NAME = text`, rows, and their indented continuations.
fn rows() -> Result<Vec<Row>, String> {
    let mut lines: Vec<String> = Vec::new();
    for line in VECTORS.lines().filter(|line| !line.starts_with('#') && !line.trim().is_empty()) {
        match lines.last_mut().filter(|_| line.starts_with(' ')) {
            Some(begun) => *begun = format!("{begun} {}", line.trim()),
            None => lines.push(line.to_owned()),
        }
    }
    let (named, rows): (Vec<_>, Vec<_>) =
        lines.into_iter().partition(|line| line.split(' ').nth(1) == Some("="));
    let named: Vec<(&str, &str)> = named.iter().filter_map(|line| line.split_once(" = ")).collect();
    rows.iter().map(|line| row(line, &named)).collect()
}

fn row(line: &str, named: &[(&str, &str)]) -> Result<Row, String> {
    let (number, rest) = line.split_once(' ').ok_or("a number and a script")?;
    // `[3.9 4.0] ..` and not `[ P0 ..`.
    let versions = rest
        .trim()
        .strip_prefix('[')
        .filter(|inner| inner.starts_with(|c: char| c.is_ascii_digit()));
    let (profiles, rest) = match versions.and_then(|inner| inner.split_once(']')) {
        Some((versions, rest)) => {
            (versions.split(' ').map(profile).collect::<Result<_, _>>()?, rest)
        }
        None => (Profile::MEASURED.to_vec(), rest),
    };
    let steps = rest.split(';').map(str::trim);
    let known = |step| named.iter().find(|(name, _)| *name == step).map_or(step, |known| known.1);
    let script = steps.map(known).collect::<Vec<_>>().join("; ");
    let number = number.parse().map_err(|_| format!("no number: `{number}`"))?;
    Ok(Row { number, profiles, script })
}

fn profile(version: &str) -> Result<Profile, String> {
    Ok(match version {
        "2.4" => Profile::V2_4,
        "3.9" => Profile::V3_9,
        "4.0" => Profile::V4_0,
        "4.3" => Profile::V4_3,
        "4.4" => Profile::V4_4,
        "4.5" => Profile::V4_5,
        other => return Err(format!("no profile `{other}`")),
    })
}

/// `restart` stands for each of the three kinds.
fn kinds(script: &str) -> Vec<String> {
    if !script.contains("restart") {
        return vec![script.to_owned()];
    }
    ["clean", "crash", "both"].iter().map(|kind| script.replace("restart", kind)).collect()
}

#[test]
fn the_model_answers_as_real_brokers_did() {
    let rows = rows().unwrap();
    let mut played = 0;
    let mut wrong = Vec::new();
    for row in &rows {
        for profile in &row.profiles {
            for script in kinds(&row.script) {
                played += 1;
                if let Err(why) = play(*profile, &script) {
                    wrong.push(format!("#{} {profile:?} {why}\n    in {script}", row.number));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{} of {played} scripts:\n{}", wrong.len(), wrong.join("\n"));
    assert!(played > 500, "only {played} scripts");
}

#[test]
fn every_published_row_is_there() {
    let mut numbers: Vec<u32> =
        rows().unwrap().iter().map(|row| row.number).filter(|n| *n < 1000).collect();
    numbers.dedup();
    let published: Vec<u32> = (1..=89).filter(|n| ![24, 49].contains(n)).collect();
    assert_eq!(numbers, published);
}

/// The scripts can fail: wrong codes, offsets, details and appends are all noticed.
#[test]
fn wrong_expectations_are_noticed() {
    for script in [
        "(0,0,2) -> 0@1",
        "(0,0,2) -> 45@-1",
        "(0,0,2) -> 0@0 log=3",
        "(0,0,2); (0,5,1)",
        "(0,0,2); (0,2,1) acks=0 -> close",
        "[ P0 (0,0,1) | P1 (0,0,1) ] -> P0 0@0",
        "(0,0,2); copies 2",
        "(0,0,2); forgotten",
        "nodes 3 x 3; stall 2; (0,0,1) -> wait A; A -> 0@0",
        "init(null,-1,-1) -> 42",
        "(0,0,1) bit4 -> 0@0",
    ] {
        assert!(play(Profile::V4_4, script).is_err(), "accepted: {script}");
    }
}
