//! Planted bugs in what the driver decides: each takes one decision wrongly, and breaks a scenario
//! that holds without it. The table is in `docs/planted-bugs.md`.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panic")]

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::time::Duration;

use bytes::Bytes;
use candor_core::Instant;
use candor_proto::{Config, ErrorCode, WhyRefused};
use candor_sim::serve::Settings;

use crate::conduct::{Conduct, Dropped, Honest};
use crate::line::LineId;
use crate::runtime::Runtime;
use crate::verdict::{Verdict, WhyNot};
use crate::world::stage::{
    cancel_behind_a_stuck_socket, filled, holding, is_pending, log, record, release, settings,
};
use crate::world::{Executor, World};

type Producer = crate::Producer<World>;
type Ways = &'static dyn Conduct;

/// Where people read of them, and where the decisions are declared.
const TABLE: &str = include_str!("../../../docs/planted-bugs.md");
const DECISIONS: &str = include_str!("conduct.rs");

const SECOND: Duration = Duration::from_secs(1);

/// A bug, and the scenario that finds it.
struct Plant {
    name: &'static str,
    method: &'static str,
    about: &'static str,
    breaks: &'static str,
    scenario: fn(Ways),
    ways: Ways,
}

macro_rules! plants {
    ($($(#[doc = $about:literal])+ $name:ident breaks $scenario:ident {
        fn $method:ident(&self $(, $argument:ident: $type:ty)*) -> $result:ty $body:block
    })*) => {
        $(
            $(#[doc = $about])+
            struct $name;

            impl Conduct for $name {
                fn $method(&self $(, $argument: $type)*) -> $result $body
            }
        )*

        const PLANTS: &[Plant] = &[$(Plant {
            name: stringify!($name),
            method: stringify!($method),
            about: concat!($($about),+),
            breaks: stringify!($scenario),
            scenario: $scenario,
            ways: &$name,
        }),*];
    };
}

plants! {
    /// Callers never wake the driver.
    NeverRings breaks a_record_is_sent_at_once {
        fn rings(&self, _due: Instant, _looks_at: Instant) -> bool {
            false
        }
    }
    /// Whoever looks at something wakes the driver.
    AlwaysRings breaks who_only_looks_wakes_nobody {
        fn rings(&self, _due: Instant, _looks_at: Instant) -> bool {
            true
        }
    }
    /// Work that was cut off at its bound is forgotten.
    StopsHalfway breaks a_socket_that_takes_a_few_bytes_is_enough {
        fn goes_on(&self) -> bool {
            false
        }
    }
    /// A turn has no bound.
    NeverYields breaks others_have_their_turn {
        fn times(&self, _most: usize) -> usize {
            usize::MAX
        }
    }
    /// Connections are given bytes although the socket has not taken those before.
    BindsEarly breaks nothing_is_bound_behind_a_stuck_socket {
        fn takes_bytes(&self, _segments_waiting: usize) -> bool {
            true
        }
    }
    /// What was to be written counts as handed over.
    HandedAll breaks a_frame_that_was_cut_was_not_delivered {
        fn handed(&self, taken: u64, waiting: &VecDeque<Bytes>) -> u64 {
            taken + bytes(waiting)
        }
    }
    /// Bytes are forgotten when they were to be written.
    ForgetsEarly breaks bytes_count_until_the_socket_took_them {
        fn out(&self, taken: u64, waiting: &VecDeque<Bytes>) -> u64 {
            taken + bytes(waiting)
        }
    }
    /// A connection that cannot be written to is not read any more.
    DeafAtTheEnd breaks answers_of_a_broken_connection_are_heard {
        fn hears_the_dying(&self) -> bool {
            false
        }
    }
    /// Only the monotonic clock counts.
    SleepsThroughSuspend breaks a_jump_of_the_wall_clock_takes_deadlines_along {
        fn jump(&self, _ticked: Duration, _walked: Duration) -> Option<Duration> {
            None
        }
    }
    /// The driver sleeps until something is due, however long.
    SleepsLong breaks a_jump_of_the_wall_clock_takes_deadlines_along {
        fn sleep(&self, left: Duration) -> Duration {
            left
        }
    }
    /// The clock of a record starts when it is accepted.
    LateClock breaks a_deadline_counts_from_the_call {
        fn born(&self, _called: Instant, now: Instant) -> Instant {
            now
        }
    }
    /// Whoever finds room is accepted, whoever waits.
    Overtakes breaks nobody_is_overtaken {
        fn may_accept(&self, _line_is_empty: bool) -> bool {
            true
        }
    }
    /// Whoever leaves the line leaves a gap.
    StandsStill breaks who_leaves_the_line_makes_room {
        fn moves_up(&self) -> bool {
            false
        }
    }
    /// Dropping a `send` future lets the record go on.
    SendDetaches breaks a_send_that_is_dropped_is_cancelled {
        fn send_dropped(&self) -> Dropped {
            Dropped::GoesOn
        }
    }
    /// Dropping a handle cancels the record.
    HandleCancels breaks a_record_whose_handle_is_dropped_goes_on {
        fn handle_dropped(&self) -> Dropped {
            Dropped::Cancelled
        }
    }
    /// A flush does not wait for those who wait for room.
    FlushOvertakes breaks a_flush_waits_for_the_line {
        fn flush_begins(&self, _front: Option<LineId>, _end: LineId) -> bool {
            true
        }
    }
    /// Closing turns away those who wait for room.
    ClosesAtOnce breaks closing_leaves_those_in_the_line_their_chance {
        fn closing_begins(&self, _line_is_empty: bool, _deadline: Instant, _now: Instant) -> bool {
            true
        }
    }
    /// Closing waits for the line, whatever its deadline.
    ClosesLate breaks closing_ends_by_its_deadline {
        fn closing_begins(&self, line_is_empty: bool, _deadline: Instant, _now: Instant) -> bool {
            line_is_empty
        }
    }
    /// A driver that is dropped says nothing.
    DiesSilently breaks the_end_of_the_driver_is_told {
        fn tells_at_the_end(&self) -> bool {
            false
        }
    }
    /// Whatever a broker says instead of a producer id ends `connect`.
    GivesUpEarly breaks a_broker_that_has_just_started_is_asked_again {
        fn is_final(&self, _refusal: ErrorCode) -> bool {
            true
        }
    }
    /// Whoever has no rights is asked for ever.
    NeverGivesUp breaks a_refusal_for_good_ends_the_wait {
        fn is_final(&self, _refusal: ErrorCode) -> bool {
            false
        }
    }
}

fn bytes(waiting: &VecDeque<Bytes>) -> u64 {
    waiting.iter().map(|segment| segment.len() as u64).sum()
}

#[test]
fn every_planted_bug_breaks_its_scenario() {
    let mut missed = Vec::new();
    for Plant { name, method, about, breaks, scenario, ways } in PLANTS {
        scenario(&Honest);
        if catch_unwind(AssertUnwindSafe(|| scenario(*ways))).is_ok() {
            missed.push(name);
        }
        println!("| {name} | `{method}` | {} | `{breaks}` |", about.trim());
    }
    assert!(missed.is_empty(), "not found: {missed:?}");
}

#[test]
fn every_decision_is_inverted_and_the_table_names_every_planted_bug() {
    let (_, table) = TABLE.split_once("## In the driver").unwrap();
    let rows: Vec<&str> = table.lines().filter(|line| line.starts_with("| ")).skip(1).collect();
    assert_eq!(rows.len(), PLANTS.len(), "one row each in docs/planted-bugs.md");
    for Plant { name, method, about, breaks, .. } in PLANTS {
        let row = format!("| {name} | `{method}` | {} | `{breaks}` |", about.trim());
        assert!(rows.contains(&&*row), "{row}");
    }
    let (_, decisions) = DECISIONS.split_once("pub(crate) trait Conduct").unwrap();
    let (decisions, _) = decisions.split_once("\n}\n").unwrap();
    for decision in decisions.lines().filter_map(|line| line.strip_prefix("    fn ")) {
        let (decision, _) = decision.split_once('(').unwrap();
        assert!(PLANTS.iter().any(|plant| plant.method == decision), "nothing inverts {decision}");
    }
}

fn start(
    ways: Ways,
    settings: Settings,
    set: impl FnOnce(Config) -> Config,
) -> (Executor, Producer) {
    let executor = Executor::new(settings);
    let config = set(Config::new(executor.world.bootstrap()));
    let parts = Producer::parts_under(executor.world.clone(), config, ways);
    let (producer, driver) = parts.unwrap();
    executor.world.spawn(driver);
    (executor, producer)
}

/// A producer whose memory is full: its only answer is held back.
fn full(ways: Ways) -> (Executor, Producer, crate::Handle) {
    let (mut executor, producer) = start(ways, holding(1), |config| config.memory(70_000));
    let held = producer.try_send(filled(0, 30_000)).unwrap();
    executor.pass(SECOND);
    (executor, producer, held)
}

fn a_record_is_sent_at_once(ways: Ways) {
    let (mut executor, producer) = start(ways, settings(1), |config| config);
    executor.pass(SECOND);
    let before = executor.world.now();
    assert!(executor.block_on(producer.send(record(1))).is_delivered());
    assert!(executor.world.elapsed_since(before) < SECOND);
}

fn who_only_looks_wakes_nobody(ways: Ways) {
    let (mut executor, producer) = start(ways, settings(1), |config| config.linger(10 * SECOND));
    let handle = producer.try_send(record(1)).unwrap();
    executor.pass(SECOND);
    let before = executor.world.lock().polls;
    for _ in 0..100 {
        let _looked = (producer.stats(), handle.why());
        executor.settle();
    }
    assert_eq!(executor.world.lock().polls, before);
}

fn a_socket_that_takes_a_few_bytes_is_enough(ways: Ways) {
    let (mut executor, producer) = start(ways, settings(1), |config| config);
    executor.world.lock().bite = 7;
    let verdicts = executor.block_on(producer.send_all((0..200).map(record)));
    assert!(verdicts.iter().all(Verdict::is_delivered));
}

fn others_have_their_turn(ways: Ways) {
    let (mut executor, producer) = start(ways, settings(1), |config| config);
    executor.world.lock().bite = 7;
    let before = executor.world.lock().polls;
    assert!(executor.block_on(producer.send(filled(1, 10_000))).is_delivered());
    let polls = executor.world.lock().polls - before;
    assert!(polls > 20, "{polls} polls for 1,400 writes");
}

fn nothing_is_bound_behind_a_stuck_socket(ways: Ways) {
    let (mut executor, producer) = start(ways, settings(1), |config| config);
    let (stuck, behind) = cancel_behind_a_stuck_socket(&mut executor, &producer);
    assert!(matches!(executor.block_on(behind), Verdict::NotDelivered(_)));
    executor.world.stick(false);
    assert!(executor.block_on(stuck).is_delivered());
    assert_eq!(log(&executor.world, 0), ["0", "1"]);
}

fn bytes_count_until_the_socket_took_them(ways: Ways) {
    let (mut executor, producer) = start(ways, settings(1), |config| config);
    assert!(executor.block_on(producer.send(record(0))).is_delivered());
    executor.world.stick(true);
    let before = producer.stats().machine.memory;
    let stuck = producer.try_send(filled(1, 5_000)).unwrap();
    executor.pass(SECOND);
    producer.abandon("t", 0).unwrap();
    executor.pass(SECOND);
    assert!(producer.stats().machine.memory > before + 5_000);
    executor.world.stick(false);
    assert!(!executor.block_on(stuck).is_delivered());
    executor.pass(SECOND);
    assert_eq!(producer.stats().machine.memory, before);
}

fn a_frame_that_was_cut_was_not_delivered(ways: Ways) {
    let (mut executor, producer) = start(ways, settings(1), |config| config);
    assert!(executor.block_on(producer.send(record(0))).is_delivered());
    executor.world.break_after(60);
    let verdict = executor.block_on(producer.send(record(1).deadline(5 * SECOND)));
    assert!(matches!(verdict, Verdict::NotDelivered(_)), "{verdict:?}");
}

fn answers_of_a_broken_connection_are_heard(ways: Ways) {
    for cut in (1..=500).step_by(3) {
        let set = |config: Config| config.batch_size(300).linger(Duration::ZERO);
        let (mut executor, producer) = start(ways, settings(1), set);
        assert!(executor.block_on(producer.send(record(0))).is_delivered());
        executor.world.break_after(cut);
        let records = (1..=4).map(|n| filled(n, 200).deadline(SECOND));
        let verdicts = executor.block_on(producer.send_all(records));
        let written = log(&executor.world, 0).len() - 1;
        let delivered = verdicts.iter().filter(|verdict| verdict.is_delivered()).count();
        assert_eq!(delivered, written, "cut {cut}: {verdicts:?}");
    }
}

fn a_jump_of_the_wall_clock_takes_deadlines_along(ways: Ways) {
    let (mut executor, producer) = start(ways, holding(1), |config| config);
    let handle = producer.try_send(record(1)).unwrap();
    executor.pass(SECOND);
    executor.world.set_wall_ahead(3600 * SECOND);
    let before = executor.world.now();
    let verdict = executor.block_on(handle);
    assert!(matches!(verdict, Verdict::Unknown(_)), "{verdict:?}");
    assert!(executor.world.elapsed_since(before) <= 10 * SECOND);
}

fn a_deadline_counts_from_the_call(ways: Ways) {
    let (mut executor, producer) = start(ways, settings(1), |config| config);
    let send = producer.send(record(1).deadline(SECOND));
    executor.pass(2 * SECOND);
    let verdict = executor.block_on(send);
    assert!(matches!(verdict, Verdict::NotDelivered(_)), "{verdict:?}");
}

fn nobody_is_overtaken(ways: Ways) {
    let (_executor, producer, _held) = full(ways);
    let mut waits = pin!(producer.send(filled(1, 50_000)));
    assert!(is_pending(waits.as_mut()));
    let refused = producer.try_send(record(2)).map(drop).unwrap_err();
    assert_eq!(refused.why, WhyRefused::Full);
}

fn who_leaves_the_line_makes_room(ways: Ways) {
    let (mut executor, producer, _held) = full(ways);
    let mut fits = pin!(producer.enqueue(record(2)));
    {
        let mut too_much = pin!(producer.enqueue(filled(1, 50_000)));
        assert!(is_pending(too_much.as_mut()) && is_pending(fits.as_mut()));
        executor.pass(SECOND);
    }
    let before = executor.world.now();
    drop(executor.block_on(fits).unwrap());
    assert_eq!(executor.world.elapsed_since(before), Duration::ZERO);
}

fn a_send_that_is_dropped_is_cancelled(ways: Ways) {
    let (mut executor, producer) = start(ways, settings(1), |config| config.linger(SECOND));
    {
        let mut send = pin!(producer.send(record(1)));
        assert!(is_pending(send.as_mut()));
    }
    executor.block_on(producer.flush());
    assert_eq!(log(&executor.world, 0), [""; 0]);
}

fn a_record_whose_handle_is_dropped_goes_on(ways: Ways) {
    let (mut executor, producer) = start(ways, settings(1), |config| config.linger(SECOND));
    drop(executor.block_on(producer.enqueue(record(1))).unwrap());
    executor.block_on(producer.flush());
    assert_eq!(log(&executor.world, 0), ["1"]);
}

fn a_flush_waits_for_the_line(ways: Ways) {
    let (mut executor, producer, _held) = full(ways);
    let (mut waits, mut flush) = (pin!(producer.send(filled(1, 50_000))), pin!(producer.flush()));
    assert!(is_pending(waits.as_mut()) && is_pending(flush.as_mut()));
    executor.world.with(release);
    executor.block_on(flush);
    assert_eq!(producer.stats().machine.counts.delivered, 2);
}

fn closing_leaves_those_in_the_line_their_chance(ways: Ways) {
    let (mut executor, producer, _held) = full(ways);
    let mut waits = pin!(producer.send(filled(1, 50_000)));
    let mut close = pin!(producer.close(10 * SECOND));
    assert!(is_pending(waits.as_mut()) && is_pending(close.as_mut()));
    executor.world.with(release);
    let verdict = executor.block_on(waits);
    assert!(verdict.is_delivered(), "{verdict:?}");
}

fn closing_ends_by_its_deadline(ways: Ways) {
    let (mut executor, producer, _held) = full(ways);
    let mut waits = pin!(producer.send(filled(1, 50_000)));
    assert!(is_pending(waits.as_mut()));
    let before = executor.world.now();
    let summary = executor.block_on(producer.close(2 * SECOND));
    assert_eq!(executor.world.elapsed_since(before), 2 * SECOND);
    assert_eq!((summary.accepted, summary.unknown), (1, 1));
    let Verdict::NotDelivered(no) = executor.block_on(waits) else { panic!("never accepted") };
    assert_eq!(no.why, WhyNot::NoRoom);
}

fn the_end_of_the_driver_is_told(ways: Ways) {
    let (mut executor, _producer, held) = full(ways);
    executor.shut_down();
    let Verdict::Unknown(unknown) = executor.block_on(held) else { panic!("it was written") };
    assert!(matches!(executor.block_on(unknown.resolved()), crate::Resolution::Never(_)));
}

/// A broker that answers its first requests for a producer id with this code.
fn connect(ways: Ways, code: i16, times: u64) -> Result<Producer, crate::ConnectError> {
    let refusal = |nth| format!("request:22:{nth} answer:{code}:before").parse().unwrap();
    let faults = (1..=times).map(refusal).collect();
    let mut executor = Executor::new(Settings { faults, ..settings(1) });
    let config = Config::new(executor.world.bootstrap());
    let world = executor.world.clone();
    executor.block_on(Producer::connect_under(world, config, ways))
}

fn a_broker_that_has_just_started_is_asked_again(ways: Ways) {
    assert!(connect(ways, 14, 2).is_ok());
}

fn a_refusal_for_good_ends_the_wait(ways: Ways) {
    assert!(connect(ways, 31, 2).is_err());
}
