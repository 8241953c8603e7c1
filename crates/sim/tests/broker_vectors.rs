//! What real brokers answered, row by row, put to the model broker.
//!
//! The numbers are those of the published list of vectors (Apache Kafka 3.9.2, 4.0.2, 4.3.1, 4.4.0).
//! Missing are 90 to 92 and the transactional part of 22's neighbours (transactions) and 24, 49 (bytes
//! on the wire, which are the codec's and the server's).
//!
//! # Notation
//!
//! A script starts with empty partitions P0..P3 of one topic and is a list of steps:
//!
//! * `(e,s,n)` is a batch of producer p: epoch, first sequence, records; `q(..)` of another one, `none(..)`
//!   of none. It goes to the leader of P0, unless `P2` or `at 3` (a broker) is said; `-> 45@-1` is code and
//!   base offset of its answer. Without an answer it has to be appended: that is how a state is set up.
//!   Each step also checks that nothing was appended but by an answer with the offset of the log's end.
//! * `-> wait A` leaves it waiting, `A -> 7@2` is its answer. Anything else waits at most 500 ms.
//! * `[ .. | .. ] -> ..` is one request of several batches, with its answers in any order.
//! * Other words: see `Stage::event`. `restart` stands for a clean one, a crash, and both in a row.

#[path = "broker_vectors/stage.rs"]
mod stage;

use candor_sim::broker::Profile;
use stage::play;

struct Row {
    number: u32,
    profiles: &'static [Profile],
    /// Several scripts where the row has alternatives; each starts afresh.
    scripts: Vec<String>,
}

fn row(number: u32, scripts: &[&str]) -> Row {
    only(&Profile::MEASURED, number, scripts)
}

fn only(profiles: &'static [Profile], number: u32, scripts: &[&str]) -> Row {
    Row { number, profiles, scripts: scripts.iter().map(|script| (*script).to_owned()).collect() }
}

const SIX: &str = "(0,0,2); (0,2,2); (0,4,2); (0,6,2); (0,8,2); (0,10,2);";
const FIVE: &str = "(0,0,2); (0,2,2); (0,4,2); (0,6,2); (0,8,2);";

/// The first `k` of five batches from sequence `first` on.
fn first_of_five(first: i32, k: i32) -> String {
    (0..k).map(|i| format!("(0,{},2);", first + 2 * i)).collect()
}

/// The five resent, with their answers: 45 for the first `lost`, 0 for the others.
fn five_resent(first: i32, lost: i32) -> String {
    let answer =
        |i: i32| if i < lost { "45@-1".to_owned() } else { format!("0@{}", first + 2 * i) };
    (0..5).map(|i| format!("(0,{},2) -> {};", first + 2 * i, answer(i))).collect()
}

fn live_leader() -> Vec<Row> {
    vec![
        row(1, &["(0,0,2) -> 0@0; (0,2,1) -> 0@2; (0,0,2) -> 0@0 time=stamp"]),
        row(
            2,
            &[&format!(
                "{SIX} (0,0,2) -> 45@-1; (0,2,2) -> 0@2; (0,4,2) -> 0@4; (0,6,2) -> 0@6; (0,8,2) -> 0@8; (0,10,2) -> 0@10"
            )],
        ),
        row(3, &[&format!("{SIX} (0,10,2) other -> 0@10")]),
        row(
            4,
            &[&format!(
                "{SIX} (0,8,4) -> 45@-1; (0,10,1) -> 45@-1; (0,10,3) -> 45@-1; (0,11,1) -> 45@-1; (0,9,3) -> 45@-1; (0,12,2) -> 0@12"
            )],
        ),
        row(5, &["(0,7,2) -> 0@0; (0,9,1) -> 0@2; (0,0,2) -> 45@-1"]),
        row(6, &["(5,0,2) -> 0@0; (5,2,1) -> 0@2; (5,0,2) -> 0@0"]),
        row(7, &["(5,7,2) -> 0@0; (5,9,1) -> 0@2; (5,0,2) -> 45@-1"]),
        row(8, &["(32767,3,2) -> 0@0; (32767,5,1) -> 0@2; (32767,0,2) -> 45@-1"]),
        row(9, &["q(0,0,5); (0,7,2) -> 0@5; unheard(0,9,1) -> 0@7"]),
        row(
            10,
            &[
                "q(0,0,5); (0,7,2); (0,9,1); r(-1,0,1) -> 0@8; r(0,-1,1) -> 87@-1; none(0,0,1) -> 0@9",
            ],
        ),
        row(11, &["(0,2,2) -> 0@0; (0,0,2) -> 45@-1"]),
        row(
            12,
            &[
                "(0,0,2); (1,2,1) -> 45@-1; (1,1,1) -> 45@-1; (0,2,1) -> 0@2; (1,0,2) -> 0@3; (0,3,1) -> 47@-1; (0,2,1) -> 47@-1; (1,0,2) -> 0@3",
            ],
        ),
        row(13, &["(0,0,2); (0,2,1); (1,0,2); (2,1,1) -> 45@-1; (2,0,1) -> 0@5; (2,1,1) -> 0@6"]),
        row(
            14,
            &[
                "(0,0,2); (7,0,1) -> 0@2; (3,0,1) -> 47@-1; (32766,0,1) -> 0@3; (32767,0,1) -> 0@4; (32767,1,1) -> 0@5; (-32768,0,1) -> 47@-1",
            ],
        ),
        row(
            15,
            &[
                "(0,0,2); P1 (0,0,2); P2 (0,0,2); (1,0,1) -> 0@2; P1 (0,2,1) -> 0@2; P2 (7,0,1) -> 0@2",
            ],
        ),
        row(
            16,
            &[
                "(0,M-3,4) -> 0@0; (0,-2147483648,1) -> 87@-1; (0,1,1) -> 45@-1; (0,0,3) -> 0@4; (0,3,1) -> 0@7; (0,M-3,4) -> 0@0; (0,0,3) -> 0@4",
            ],
        ),
        row(
            17,
            &[
                "(0,M-1,5) -> 0@0; (0,3,2) -> 0@5; (0,M-1,5) -> 0@0; (0,M-1,6) -> 45@-1; (0,0,3) -> 45@-1",
            ],
        ),
        row(18, &["(0,0,3); (0,5,1) -> 45@-1 time=-1 log=0 quiet; (0,3,1) -> 0@3"]),
        row(
            19,
            &[
                "(0,0,1) bytes=5000; (0,0,1) bytes=5000 crc -> 2@-1; set max.message.bytes=1000; (0,0,1) bytes=5000 -> 10@-1; (0,1,1) -> 0@1; set max.message.bytes=9000; (0,0,1) bytes=5000 -> 0@0",
            ],
        ),
        row(
            20,
            &[
                "(0,0,1) stamp=-120s; set before.max=60s; (0,0,1) stamp=-120s -> 32@-1 errors=0; (0,1,3) stamps=now,-120s,now -> 32@-1 errors=1",
            ],
        ),
        row(21, &["(0,0,1); set compact=1; (0,1,2) keyless -> 87@-1 errors=0,1"]),
        row(
            22,
            &[
                "(0,0,1) control -> 87@-1; (0,0,1) base=5 -> 87@-1; (0,0,0) -> 87@-1; (0,0,3) delta=1 -> 87@-1; (0,0,1) cut -> 87@-1; (0,0,1) txn -> 53@-1; (0,0,1) -> 0@0",
            ],
        ),
        row(23, &["(0,0,1) bit3 -> 0@0 time=-1; attributes 0; (0,1,2) bit3 -> 0@1"]),
        row(25, &["(0,0,1) topic=u -> 3@-1; P9 (0,0,1) -> 3@-1"]),
        row(
            26,
            &[
                "(0,0,2); (0,2,5) -> 0@2; late (0,2,3) -> 45@-1; (0,7,1); (0,8,1); (0,9,1); (0,10,1); (0,11,1); (0,12,1); (0,13,1); late (0,2,3) -> 45@-1",
            ],
        ),
        row(
            27,
            &[
                "(0,0,2); (0,2,1) -> 0@2; late (0,2,3) -> 45@-1; (0,3,1) -> 0@3; (0,4,1) -> 0@4; late (0,2,3) -> 45@-1",
            ],
        ),
        row(28, &["(0,0,2); (0,2,3); (0,2,5) -> 45@-1; (0,2,3) -> 0@2"]),
        row(29, &["(0,0,2); (0,2,3); (0,2,1) -> 45@-1; (0,2,3) -> 0@2"]),
        row(
            30,
            &[
                "(0,0,2); (0,2,5) -> 0@2; late (0,2,2) -> 45@-1; late (0,4,2) -> 45@-1; late (0,6,2) -> 45@-1",
            ],
        ),
        row(31, &["(0,0,2); (0,2,2); (0,2,5) -> 45@-1; (0,4,2) -> 0@4; (0,6,2) -> 0@6"]),
        row(32, &["(0,0,2); (0,2,2) other -> 0@2; (0,2,2) -> 0@2; (0,4,2) -> 0@4"]),
        row(
            33,
            &[
                "(0,0,2); (0,2,4) -> 0@2; late (0,2,2) -> 45@-1; late (0,4,2) -> 45@-1; late (0,6,2) -> 0@6",
            ],
        ),
        row(34, &["(0,0,1) -> 0@0; late (0,0,3) -> 45@-1"]),
        row(35, &["(0,0,5) -> 0@0; late (0,0,3) -> 45@-1"]),
        row(36, &["(0,0,3); (0,0,1) -> 45@-1; (0,0,3) -> 0@0"]),
        row(
            37,
            &[
                "(0,0,2); (0,2,2); (0,4,2); (0,2,9) -> 45@-1; (0,4,7) -> 45@-1; (0,6,5) -> 0@6; late (0,6,2) -> 45@-1",
            ],
        ),
        row(
            38,
            &[
                "(0,0,2); (1,0,1) -> 0@2; late (0,2,2) -> 47@-1; (0,0,1) -> 47@-1; (1,1,4) -> 0@3; late (1,1,2) -> 45@-1",
            ],
        ),
        row(39, &["(0,0,2); q(0,0,2); (0,2,4) -> 0@4; q(0,2,2); late (0,2,3) -> 45@-1"]),
        row(40, &["(0,0,3) acks=1 -> 0@0; (0,0,1) -> 45@-1"]),
        Row {
            number: 41,
            profiles: &Profile::MEASURED,
            scripts: (0..=5)
                .map(|k| format!("(0,0,1); {} {}", first_of_five(1, k), five_resent(1, 0)))
                .collect(),
        },
        row(
            42,
            &[
                "(0,0,2); (0,2,2); (0,4,2); (0,6,2); (0,8,2); (0,10,2); (0,12,2); (0,14,2); (0,0,2) -> 45@-1; (0,2,2) -> 45@-1; (0,4,2) -> 45@-1; (0,6,2) -> 0@6; (0,8,2) -> 0@8; (0,10,2) -> 0@10; (0,12,2) -> 0@12; (0,14,2) -> 0@14",
            ],
        ),
        row(
            43,
            &["(0,0,1); (0,3,2) -> 45@-1; (0,5,2) -> 45@-1; (0,7,2) -> 45@-1; (0,9,2) -> 45@-1"],
        ),
        row(
            44,
            &[
                "(0,0,2) acks=1 -> 0@0; (0,0,2) acks=1 -> 0@0; (0,2,2) acks=0 -> silent; (0,9,1) acks=0 -> close; (0,4,1) acks=2 -> 21@-1; (0,4,1) -> 0@4",
            ],
        ),
        row(
            45,
            &[
                "[ P0 (0,0,1) | P1 (0,0,1) crc | P2 (3,0,1) | P3 q(0,0,1) | (0,0,1) topic=u ] -> P0 0@0 | P1 2@-1 | P2 0@0 | P3 0@0 | u 3@-1",
            ],
        ),
        row(
            46,
            &[
                "(0,0,1); (0,1,2) two-batches -> 87@-1; [ P0 (0,1,1) | P0 (0,2,1) ] -> P0 45@-1; [ ] -> none",
            ],
        ),
        row(
            47,
            &[
                "(0,0,2); (0,2,1) -> 0@2; (0,2,2) -> 45@-1",
                "(0,0,2); (0,2,2) -> 0@2; (0,2,1) -> 45@-1",
            ],
        ),
        row(
            48,
            &[
                "init(null,-1,-1) -> new; (0,0,1); init(null,-1,-1) -> new; init(null,p,0) -> new; init(null,p,5) -> new; init(null,p,-1) -> 42; init(\"\",-1,-1) -> 42",
            ],
        ),
    ]
}

fn reload() -> Vec<Row> {
    let again = format!("{} {} (0,10,1) -> 0@10", five_resent(0, 4), five_resent(0, 4));
    let purged = "(0,0,2); (0,2,5); q(0,0,1); delete 8;";
    let purged_and_more = "(0,0,2); (0,2,5); roll; q(0,0,1); roll; q(0,1,1); delete 8;";
    vec![
        row(
            50,
            &[
                &format!("{FIVE} restart; {again}"),
                &format!("(0,0,2); (0,2,2); (0,4,2); roll; (0,6,2); (0,8,2); restart; {again}"),
            ],
        ),
        Row {
            number: 51,
            profiles: &Profile::MEASURED,
            scripts: (1..=4)
                .map(|k| format!("{} restart; {}", first_of_five(0, k), five_resent(0, k - 1)))
                .collect(),
        },
        row(52, &["(0,0,2); (0,2,5); restart; late (0,2,3) -> 45@-1; (0,2,5) -> 0@2"]),
        row(53, &["(0,0,2); (0,2,1); restart; late (0,2,3) -> 45@-1; (0,2,1) -> 0@2"]),
        row(
            54,
            &[
                "(0,0,2); (0,2,5); (0,7,1); (0,8,1); (0,9,1); (0,10,1); (0,11,1); (0,12,1); restart; late (0,2,3) -> 45@-1; (0,2,5) -> 45@-1",
            ],
        ),
        row(55, &["(0,0,2); (0,2,3); restart; (0,2,3) -> 0@2; (0,2,5) -> 45@-1"]),
        row(
            56,
            &["(0,0,2); (0,2,3); (0,5,1); (0,6,1); restart; (0,2,3) -> 45@-1; (0,2,1) -> 45@-1"],
        ),
        row(57, &["(0,0,1); restart; late (0,0,3) -> 45@-1"]),
        row(58, &["(0,M-1,5); restart; (0,M-1,5) -> 0@0; (0,3,1) -> 0@5"]),
        row(59, &["(0,M-3,4); restart; (0,M-3,4) -> 0@0; (0,0,1) -> 0@4"]),
        row(60, &["(0,0,2); (1,0,1); restart; (0,2,1) -> 47@-1; (1,1,1) -> 0@3"]),
        row(
            61,
            &["(0,0,2) stamp=-25h; (0,2,5) stamp=-25h; restart; (0,2,5) -> 0@7; (0,2,3) -> 45@-1"],
        ),
        row(
            62,
            &[
                &format!("{purged} clean; (0,2,5) -> 0@8 log=8"),
                &format!("{purged} clean; late (0,2,3) -> 0@8; (0,7,1) -> 45@-1"),
            ],
        ),
        row(
            63,
            &[&format!(
                "{purged_and_more} clean; (0,2,5) -> 0@2 log=8; late (0,2,3) -> 45@-1 log=8"
            )],
        ),
        row(
            64,
            &[&format!(
                "{purged_and_more} clean; crash; (0,2,5) -> 0@9 log=8; (0,2,3) -> 45@-1 log=8"
            )],
        ),
        row(
            65,
            &[
                &format!("{purged} crash; (0,2,5) -> 0@2 log=0; late (0,2,3) -> 45@-1 log=0"),
                &format!(
                    "{purged_and_more} crash; (0,2,5) -> 0@2 log=0; late (0,2,3) -> 45@-1 log=0"
                ),
            ],
        ),
    ]
}

fn forgetting() -> Vec<Row> {
    let resent = "pass 900ms; (0,0,2) stamp=first -> 0@";
    let copies: String =
        [0, 0, 0, 0, 2, 4, 6, 8, 10, 12].iter().map(|at| format!("{resent}{at};")).collect();
    vec![
        row(66, &["memory 4s; (0,0,2); (0,2,3); pass 5s; (0,2,3) -> 0@5"]),
        row(67, &["memory 4s; (0,0,2); (0,2,5); pass 5s; late (0,2,3) -> 0@7"]),
        row(68, &["memory 4s; (0,0,2); (1,0,1); pass 5s; late (0,2,3) -> 0@3; (1,1,1) -> 45@-1"]),
        row(69, &[&format!("memory 4s; (0,0,2); {copies} copies 7")]),
        row(
            70,
            &[
                "memory 4s; (0,0,2) stamp=-1h; pass 600ms; forgotten; (0,0,2) stamp=-1h -> 0@2",
                "memory 4s; (0,0,2) stamp=none; pass 600ms; forgotten; (0,0,2) stamp=none -> 0@2",
            ],
        ),
        row(71, &["memory 4s; (0,0,2) stamp=+50min; pass 5s; (0,0,2) stamp=+50min -> 0@0"]),
        row(
            72,
            &[
                "memory 4s; (0,0,2); (0,2,2) stamp=-1h; pass 600ms; forgotten",
                "memory 4s; (0,0,2) stamp=-1h; (0,2,2); pass 600ms; known last=3",
            ],
        ),
        row(
            73,
            &[
                "memory 4s; set log-append-time=1; (0,0,2) stamp=-1h; pass 1500ms; (0,0,2) stamp=-1h -> 0@0",
            ],
        ),
    ]
}

fn three_replicas() -> Vec<Row> {
    let five = five_resent(0, 0);
    let only_at_1 =
        "nodes 3 x 3; (0,0,2); stall 2; stall 3; (0,2,3) -> wait A; at 1 (0,2,5) -> 45@-1;";
    vec![
        row(
            74,
            &[
                &format!("nodes 3 x 3; {FIVE} lead 2; {five}"),
                &format!("nodes 3 x 3; {} kill 1; {five}", first_of_five(0, 4)),
            ],
        ),
        row(
            75,
            &[
                &format!(
                    "nodes 3 x 3; {FIVE} stop 2; start 2; replicate; lead 2; {}",
                    five_resent(0, 4)
                ),
                &format!(
                    "nodes 3 x 3; {FIVE} kill 2; start 2; replicate; lead 2; {}",
                    five_resent(0, 4)
                ),
            ],
        ),
        row(
            76,
            &[
                "nodes 3 x 3; (0,0,2); (0,2,5); lead 2; at 2 (0,2,3) -> 45@-1; at 1 (0,2,3) -> 6@-1 leader=2; replicate; lead 1; at 1 (0,2,3) -> 45@-1",
            ],
        ),
        row(77, &["nodes 3 x 3; (0,0,2); (1,0,1); lead 2; (0,2,3) -> 47@-1"]),
        row(
            78,
            &[
                "nodes 3 x 3; (0,0,2); stall 3; (0,2,2) -> 7@2; again (0,2,2) -> 7@2; (0,2,5) -> 45@-1; (0,4,1) -> 7@4; (0,2,2) acks=1 -> 0@2; wake 3; (0,2,2) -> 0@2",
            ],
        ),
        row(
            79,
            &[
                // The new leader has the batch already ..
                "nodes 3 x 3; (0,0,1); stall 3; (0,1,2) -> wait A; lead 2; A -> 6@1 leader=2; at 1 (0,1,2) -> 6@-1; wake 3; at 2 (0,1,2) -> 0@1",
                // .. or has not.
                "nodes 3 x 3; (0,0,1); stall 2; stall 3; (0,1,2) -> wait A; lead 2; A -> 6@1 leader=2; at 1 (0,1,2) -> 6@-1; wake 2; wake 3; at 2 (0,1,2) -> 0@1",
            ],
        ),
        row(
            80,
            &[
                "nodes 3 x 3; set min.insync=3; (0,0,1); stall 3; (0,1,2) -> wait A; shrink 3; pass 500ms; A -> 7@1; (0,1,2) -> 19@-1; (0,3,1) -> 19@-1; (0,1,2) acks=1 -> 0@1; wake 3; replicate; (0,1,2) -> 0@1",
            ],
        ),
        row(
            81,
            &[&format!(
                "{only_at_1} kill 1; wake 2; wake 3; at 2 (0,2,5) -> 0@2; late (0,2,3) -> 45@-1; start 1; replicate; lead 1; at 1 (0,2,3) -> 45@-1; holds 2 (0,2,5)"
            )],
        ),
        row(
            82,
            &[&format!(
                "{only_at_1} cut 1; wake 2; wake 3; at 2 (0,2,5) -> 0@2; wake 1; A -> 6@2; replicate; holds 2 (0,2,5)"
            )],
        ),
        row(
            83,
            &[
                "nodes 2 x 1; (0,0,2); (0,2,5); q(0,0,3); reassign 2; late (0,2,3) -> 45@-1; (0,7,1) -> 0@10",
            ],
        ),
        row(
            84,
            &[
                "nodes 2 x 1; (0,0,2); (0,2,5); q(0,0,3); delete 7; reassign 2; late (0,2,3) -> 0@10 log=7; (0,7,1) -> 45@-1",
                "nodes 2 x 1; (0,0,2); (0,2,5); q(0,0,3); delete 7; reassign 2; (0,2,5) -> 0@10",
            ],
        ),
        // What the network keeps in its buffers is its own; the broker judges in the order it is handed.
        row(
            85,
            &[
                "nodes 3 x 3; (0,0,2); stall 3; q(0,0,1) -> wait slow; pass 500ms; slow -> 7@2; wake 3; (0,2,3) -> 0@3; (0,2,10) -> 45@-1",
            ],
        ),
        row(
            86,
            &[
                "(0,0,2); (0,2,10) -> 0@2; late (0,2,3) -> 45@-1; late (0,5,3) -> 45@-1; late (0,8,3) -> 45@-1",
            ],
        ),
    ]
}

fn by_version() -> Vec<Row> {
    use Profile::{V2_4, V3_9, V4_0, V4_3, V4_4, V4_5};
    vec![
        only(&[V3_9], 87, &["(0,0,1) stamp=+2h -> 0@0"]),
        only(&[V4_0, V4_3, V4_4], 87, &["(0,0,1) stamp=+2h -> 32@-1 errors=0"]),
        row(88, &["(0,0,2); delete-topic; (0,2,3) -> 3@-1; create-topic; (0,2,3) -> 0@0"]),
        only(
            &[V4_3, V4_4],
            89,
            &[
                "(0,0,1); (0,1,1) id=zero -> 100@-1; (0,1,1) id=old -> 100@-1; (0,1,1) id -> 0@1; delete-topic; (0,2,1) id=old -> 100@-1; create-topic; (0,2,1) id=old -> 100@-1",
            ],
        ),
        // Not in the list: 2.4 as its code reads, and 4.5 as announced.
        only(
            &[V2_4],
            1001,
            &[
                "(0,7,2) -> 59@-1; (0,0,2) -> 0@0; (0,7,2) -> 45@-1; (5,0,1) -> 0@2; (0,2,1) -> 47@-1",
            ],
        ),
        only(&[V2_4], 1002, &["q(0,0,5); (3,2,1) -> 59@-1; (3,0,1) -> 0@5"]),
        only(
            &[V2_4],
            1003,
            &[&format!("{SIX} (0,0,2) -> 45@-1; (0,2,2) -> 0@2; (0,10,1) -> 45@-1")],
        ),
        only(
            &[V2_4],
            1004,
            &[
                "memory 4s; (0,0,2); (0,2,3); pass 5s; (0,2,3) -> 59@-1; (0,5,1) -> 59@-1; (0,0,1) -> 0@5",
            ],
        ),
        only(
            &[V2_4],
            1005,
            &[
                "nodes 3 x 3; set min.insync=3; (0,0,1); stall 3; (0,1,2) -> wait A; shrink 3; A -> 20@1; (0,1,2) -> 19@-1",
            ],
        ),
        only(&[V2_4], 1006, &["(0,0,1) zstd v=6 -> 76@-1; (0,0,1) zstd v=7 -> 0@0"]),
        only(&[V4_5], 1007, &["(0,2,2) -> 45@-1; (0,0,2) -> 0@0; q(0,7,1) -> 0@2"]),
    ]
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
    let groups = [live_leader(), reload(), forgetting(), three_replicas(), by_version()];
    let (mut played, mut wrong) = (0, Vec::new());
    for row in groups.iter().flatten() {
        for (profile, script) in row
            .profiles
            .iter()
            .flat_map(|profile| row.scripts.iter().map(move |script| (*profile, script)))
        {
            for script in kinds(script) {
                played += 1;
                if let Err(why) = play(profile, &script) {
                    wrong.push(format!("#{} {profile:?} {why}\n    in {script}", row.number));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{} of {played} scripts:\n{}", wrong.len(), wrong.join("\n"));
    // All rows but 24, 49 and 90 to 92 are there.
    let mut numbers: Vec<u32> =
        groups.iter().flatten().map(|row| row.number).filter(|n| *n < 1000).collect();
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
