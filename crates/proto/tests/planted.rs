//! Planted bugs in what the producer decides beside its lanes: each takes one decision wrongly, and
//! breaks a scenario that holds without it. The table is in `docs/planted-bugs.md`.

#![allow(clippy::unwrap_used, clippy::panic)]

mod support;

use std::cell::Cell;
use std::panic::catch_unwind;

use candor_core::rules::{Honest, LeaderWord, Rules};
use candor_core::{Instant, LeaderEpoch, NeverReason, Resolution, Span, Verdict, Why};
use candor_proto::{Fault, Input, Record, Waiting};
use support::{Cluster, Script, World, config, ms, scenarios};

/// Where people read of them.
const TABLE: &str = include_str!("../../../docs/planted-bugs.md");

/// A bug, and the scenario that finds it.
struct Plant {
    name: &'static str,
    method: &'static str,
    about: &'static str,
    breaks: &'static str,
    scenario: fn(),
    decisions: Decisions,
}

/// Declares the table of decisions, and the rules that look them up in it: one producer for all
/// bugs, not a copy of it for each.
macro_rules! decisions {
    ($(fn $name:ident($($argument:ident: $type:ty),*) -> $result:ty;)*) => {
        #[derive(Clone, Copy, Debug)]
        struct Decisions {
            $($name: fn($($type),*) -> $result,)*
        }

        impl Decisions {
            const fn of<R: Rules>() -> Self {
                Self { $($name: R::$name,)* }
            }
        }

        impl Rules for Bent {
            $(fn $name($($argument: $type),*) -> $result {
                (IN_FORCE.get().$name)($($argument),*)
            })*
        }
    };
}

thread_local! {
    static IN_FORCE: Cell<Decisions> = const { Cell::new(Decisions::of::<Honest>()) };
}

/// The rules in force on this thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Bent;

decisions! {
    fn answer_belongs(asked: i32, answered: i32) -> bool;
    fn bytes_are_out(end: u64, sent: u64) -> bool;
    fn may_speak(now: Instant, until: Instant) -> bool;
    fn request_expires(asked: Instant, timeout: Span) -> Instant;
    fn end_is_failure(open: usize, up_for: Span, longest: Span) -> bool;
    fn backoff(failures: u32, base: Span, max: Span) -> Span;
    fn follows_hint(highest: LeaderEpoch, hinted: LeaderEpoch, last: LeaderWord) -> bool;
    fn follows_leader(highest: LeaderEpoch, offered: LeaderEpoch) -> bool;
    fn two_answers_count(differ: bool, apart: Span, age: Span) -> bool;
    fn insistence(others_failed_since: bool, longest_backoff: Span, age: Span) -> Span;
    fn is_another_topic(same: bool) -> bool;
    fn goes_alone(losses: u32) -> bool;
    fn may_repeat_in_request() -> bool;
    fn produce_timeout(request: Span, left: Option<Span>) -> Span;
    fn window_has_room(unsent: usize, window: usize) -> bool;
}

macro_rules! plants {
    ($($(#[doc = $about:literal])+ $name:ident breaks $scenario:ident {
        fn $method:ident($($argument:tt)*) -> $result:ty $body:block
    })*) => {
        $(
            $(#[doc = $about])+
            #[derive(Clone, Copy, Debug, PartialEq, Eq)]
            struct $name;

            impl Rules for $name {
                fn $method($($argument)*) -> $result $body
            }
        )*

        const PLANTS: &[Plant] = &[$(Plant {
            name: stringify!($name),
            method: stringify!($method),
            about: concat!($($about),+),
            breaks: stringify!($scenario),
            scenario: $scenario,
            decisions: Decisions::of::<$name>(),
        }),*];
    };
}

plants! {
    /// An answer is taken for that of the oldest request, whatever it says.
    AnswersAnything breaks an_answer_to_another_request_decides_nothing {
        fn answer_belongs(_: i32, _: i32) -> bool {
            true
        }
    }
    /// A frame counts as sent with its first byte.
    FirstByteIsOut breaks bytes_count_until_they_are_sent {
        fn bytes_are_out(_: u64, _: u64) -> bool {
            true
        }
    }
    /// A broker that throttles us is spoken to.
    Interrupts breaks a_throttle_is_obeyed {
        fn may_speak(_: Instant, _: Instant) -> bool {
            true
        }
    }
    /// A request is waited for without end.
    WaitsForEver breaks a_silent_broker_is_given_up {
        fn request_expires(_: Instant, _: Span) -> Instant {
            Instant::NEVER
        }
    }
    /// The end of a connection that was idle is a failure.
    IdleFails breaks an_idle_connection_ends_without_harm {
        fn end_is_failure(_: usize, _: Span, _: Span) -> bool {
            true
        }
    }
    /// No end of a connection is a failure.
    NothingFails breaks a_connection_that_breaks_is_told {
        fn end_is_failure(_: usize, _: Span, _: Span) -> bool {
            false
        }
    }
    /// The wait before the next try does not grow.
    KnocksOn breaks waits_grow {
        fn backoff(_: u32, first: Span, _: Span) -> Span {
            first
        }
    }
    /// A leader hint is followed at the same and at an older epoch.
    StaleHintLeads breaks older_hints_are_not_followed {
        fn follows_hint(_: LeaderEpoch, _: LeaderEpoch, last: LeaderWord) -> bool {
            last == LeaderWord::Metadata
        }
    }
    /// A newer leader hint is followed each time, without metadata in between.
    EachHintLeads breaks hints_make_no_busy_loop {
        fn follows_hint(highest: LeaderEpoch, hinted: LeaderEpoch, _: LeaderWord) -> bool {
            hinted > highest
        }
    }
    /// A leader with a lower epoch is followed at once.
    LastWordLeads breaks one_broker_is_not_two {
        fn follows_leader(_: LeaderEpoch, _: LeaderEpoch) -> bool {
            true
        }
    }
    /// One broker that says the same twice counts as two.
    OneCountsTwice breaks one_broker_is_not_two {
        fn two_answers_count(_: bool, _: Span, _: Span) -> bool {
            true
        }
    }
    /// Two brokers that agree count as one.
    TwoCountOnce breaks two_brokers_are_two {
        fn two_answers_count(_: bool, apart: Span, age: Span) -> bool {
            apart >= age
        }
    }
    /// The one broker that is left must insist as long as any other.
    InsistsForAges breaks one_broker_that_is_left_confirms_a_leader_after_a_wait {
        fn insistence(_: bool, _: Span, age: Span) -> Span {
            age
        }
    }
    /// A broker need not insist while others could be reached.
    InsistsShortly breaks a_broker_that_knows_nothing_yet_is_waited_for {
        fn insistence(_: bool, longest_backoff: Span, _: Span) -> Span {
            longest_backoff
        }
    }
    /// A topic keeps its place when its id changes.
    IdUnseen breaks a_topic_made_anew_gets_nothing_in_doubt {
        fn is_another_topic(_: bool) -> bool {
            false
        }
    }
    /// Partitions whose requests are lost again and again stay together.
    NeverAlone breaks who_is_lost_twice_goes_alone {
        fn goes_alone(_: u32) -> bool {
            false
        }
    }
    /// A partition may stand in a request twice.
    TwiceInRequest breaks a_partition_stands_in_a_request_once {
        fn may_repeat_in_request() -> bool {
            true
        }
    }
    /// Brokers may take as long as we do.
    PatientBroker breaks brokers_give_up_before_we_do {
        fn produce_timeout(request_timeout: Span, _: Option<Span>) -> Span {
            request_timeout
        }
    }
    /// Nobody waits until bytes are sent.
    BottomlessWindow breaks a_full_window_takes_nothing {
        fn window_has_room(_: usize, _: usize) -> bool {
            true
        }
    }
}

#[test]
fn every_planted_bug_breaks_its_scenario() {
    let mut missed = Vec::new();
    for Plant { name, method, about, breaks, scenario, decisions } in PLANTS {
        IN_FORCE.set(Decisions::of::<Honest>());
        scenario();
        IN_FORCE.set(*decisions);
        if catch_unwind(scenario).is_ok() {
            missed.push(name);
        }
        println!("| {name} | `{method}` | {} | `{breaks}` |", about.trim());
    }
    assert!(missed.is_empty(), "not found: {missed:?}");
}

#[test]
fn the_table_names_every_planted_bug() {
    let (_, table) = TABLE.split_once("## Beside the lanes").unwrap();
    for Plant { name, method, breaks, .. } in PLANTS {
        let row = table.lines().find(|line| line.starts_with(&format!("| {name} |")));
        let row = row.unwrap_or_else(|| panic!("{name} is missing in docs/planted-bugs.md"));
        assert!(row.contains(&format!("`{method}`")), "{row}");
        assert!(row.contains(&format!("`{breaks}`")), "{row}");
    }
}

/// S15.
fn an_answer_to_another_request_decides_nothing() {
    let mut world = World::<Bent>::warm(&config(), Cluster::new(1, 1));
    world.cluster.script = [Script::WrongCorrelation].into();
    let ticket = world.say("a");
    world.settle();
    assert_eq!(world.verdict(ticket), None);
}

/// S16: what was given up is still in the transport's way.
fn bytes_count_until_they_are_sent() {
    let mut world = World::<Bent>::warm(&config(), Cluster::new(1, 1));
    world.stuck.insert("b1".to_owned());
    let before = world.producer.stats().memory;
    let ticket = world.send(Record::to("t").partition(0).value("x".repeat(5_000)));
    world.settle();
    let conn = world.conns("b1")[0];
    world.producer.handle(world.now, Input::Sent { conn, n: 1 }).unwrap();
    assert_eq!(world.producer.why(ticket), Waiting::Partition(Why::Transmit));
    world.producer.abandon(world.now, "t", 0).unwrap();
    world.settle();
    assert!(world.producer.stats().memory > before + 5_000);
    world.cut("b1");
    world.settle();
    assert_eq!(world.producer.stats().memory, before);
}

/// S17.
fn a_throttle_is_obeyed() {
    let mut world = World::<Bent>::under(&config(), Cluster::new(1, 1));
    let first = world.say("a");
    world.cluster.throttle_ms = 60_000;
    world.settle();
    world.assert_offset(first, 0);
    world.cluster.throttle_ms = 0;
    let second = world.say("b");
    world.run(ms(59_000));
    assert_eq!(world.verdict(second), None, "spoken to while it throttles");
    world.run(ms(2_000));
    world.assert_offset(second, 1);
}

/// L1, D5.
fn a_silent_broker_is_given_up() {
    let mut world = World::<Bent>::warm(&config(), Cluster::new(1, 1));
    world.cluster.script = [Script::Swallow].into();
    let ticket = world.say("a");
    world.run_until_told(&[ticket]);
    world.assert_offset(ticket, 1);
    assert_eq!(world.faults(), [&Fault::RequestTimeout]);
}

/// L3.
fn an_idle_connection_ends_without_harm() {
    let mut world = World::<Bent>::warm(&config(), Cluster::new(1, 1));
    world.run(ms(60_000));
    world.cut("b1");
    world.settle();
    let ticket = world.say("a");
    world.settle();
    world.assert_offset(ticket, 1);
    assert!(world.faults().is_empty(), "{:?}", world.faults());
}

/// L3.
fn a_connection_that_breaks_is_told() {
    let mut world = World::<Bent>::warm(&config(), Cluster::new(1, 1));
    world.cluster.script = [Script::AppendAndCut].into();
    let ticket = world.say("a");
    world.run_until_told(&[ticket]);
    assert_eq!(world.faults().len(), 1);
}

/// L3.
fn waits_grow() {
    let mut world = World::<Bent>::under(&config(), Cluster::new(1, 1));
    world.down.insert("seed".to_owned());
    world.say("a");
    world.run(ms(60_000));
    let tries = world.connects.len();
    assert!((30..130).contains(&tries), "{tries} tries in a minute");
}

/// S21.
fn older_hints_are_not_followed() {
    let mut cluster = Cluster::new(3, 1);
    cluster.partition("t", 0).epoch = 7;
    let mut world = World::<Bent>::warm(&config(), cluster);
    // Metadata has nothing to say.
    world.cluster.topics.get_mut("t").unwrap().error = 5;
    world.cluster.script = [Script::Moved(2, 7), Script::Moved(2, 6)].into();
    let ticket = world.say("a");
    world.run(ms(5_000));
    world.assert_offset(ticket, 1);
    assert!(world.cluster.seen.iter().all(|seen| seen.node == 1));
}

/// L3, S21.
fn hints_make_no_busy_loop() {
    scenarios::hints_make_no_busy_loop::<Bent>();
}

/// S21: the broker that was the leader says that an older leader is one again.
fn one_broker_is_not_two() {
    let mut cluster = Cluster::new(3, 1);
    cluster.partition("t", 0).epoch = 7;
    let mut world = World::<Bent>::warm(&config(), cluster);
    world.down.extend(["b2", "b3"].map(str::to_owned));
    world.cluster.partition("t", 0).leader = 2;
    world.cluster.partition("t", 0).epoch = 6;
    world.say("a");
    world.run(ms(20_000));
    world.cluster.seen.clear();
    world.run(ms(20_000));
    assert!(world.cluster.seen.iter().any(|seen| seen.node == 1), "another one is followed");
}

/// S21.
fn two_brokers_are_two() {
    scenarios::two_brokers_are_two::<Bent>();
}

/// K5.
fn one_broker_that_is_left_confirms_a_leader_after_a_wait() {
    scenarios::one_broker_that_is_left_confirms_a_leader_after_a_wait::<Bent>();
}

/// K5.
fn a_broker_that_knows_nothing_yet_is_waited_for() {
    scenarios::a_broker_that_knows_nothing_yet_is_waited_for::<Bent>();
}

/// S18.
fn a_topic_made_anew_gets_nothing_in_doubt() {
    let mut world = World::<Bent>::warm(&config(), Cluster::new(1, 1));
    world.cluster.script = [Script::AppendAndCut].into();
    let doubtful = world.say("a");
    world.settle();
    world.cluster.create("t", 2, 1);
    world.run_until_told(&[doubtful]);
    world.run(ms(1_000));
    assert!(matches!(world.verdict(doubtful), Some(Verdict::Unknown(_))));
    let (_, resolution) = world.resolutions[&doubtful];
    assert!(
        matches!(resolution, Resolution::Never { reason: NeverReason::TopicRecreated, .. }),
        "{resolution:?}"
    );
}

/// L7.
fn who_is_lost_twice_goes_alone() {
    scenarios::who_is_lost_twice_goes_alone::<Bent>();
}

/// U4.
fn a_partition_stands_in_a_request_once() {
    let mut world = World::<Bent>::warm(&config().batch_size(500), Cluster::new(1, 1));
    for _ in 0..4 {
        world.send(Record::to("t").partition(0).value("x".repeat(400)));
    }
    world.settle();
    assert!(world.cluster.seen.iter().all(|seen| seen.batches.len() == 1));
}

/// L9.
fn brokers_give_up_before_we_do() {
    let world = &mut World::<Bent>::under(&config(), Cluster::new(1, 1));
    world.say("a");
    world.settle();
    assert!(world.cluster.seen.iter().all(|seen| seen.timeout_ms <= 15_000));
}

/// U3.
fn a_full_window_takes_nothing() {
    let config = config().write_window(1_000).batch_size(500);
    let mut world = World::<Bent>::warm(&config, Cluster::new(1, 1));
    world.stuck.insert("b1".to_owned());
    for _ in 0..20 {
        world.send(Record::to("t").partition(0).value("x".repeat(400)));
    }
    let before = world.producer.stats().counts.offers;
    world.settle();
    let offers = world.producer.stats().counts.offers - before;
    assert!(offers <= 3, "{offers} offers into a window of 1000 bytes");
}
