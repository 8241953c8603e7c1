//! S13, S20, K6: what the broker may have forgotten, and what offsets tell.

use candor_core::rules::{
    Bounds, DoubtFacts, Honest, Loss, LossFacts, MemoryFacts, OffsetFacts, Rules, SettledAs,
};
use candor_core::{Instant, Offset, Span};

use crate::answers;

const TTL: Span = Span::from_secs(100);
const NOW: Instant = Instant::from_millis(1_000_000);
/// As long ago as a broker remembers, and a little later and earlier, in milliseconds.
const FORGOTTEN: u64 = 900_000;
const REMEMBERED: u64 = 900_001;

fn offset(number: i64) -> Offset {
    Offset::new(number).unwrap()
}

/// All is well, and just in time.
fn memory() -> MemoryFacts {
    MemoryFacts {
        now: NOW,
        state_ttl: TTL,
        last_zero: Some(Instant::from_millis(REMEMBERED)),
        newest_timestamp: REMEMBERED as i64,
        doubt_timestamp: Some(REMEMBERED as i64),
        log_append_time: false,
        last_acknowledged: Some(offset(5)),
        log_start: Some(offset(5)),
    }
}

fn old(facts: MemoryFacts, log_append_time: bool) -> MemoryFacts {
    let newest_timestamp = FORGOTTEN as i64;
    MemoryFacts { log_append_time, newest_timestamp, ..facts }
}

#[test]
fn a_broker_is_known_to_remember() {
    let facts = memory();
    assert!(Honest::known(&facts));
    assert!(Honest::known(&MemoryFacts { doubt_timestamp: None, ..facts }));
    assert!(Honest::known(&MemoryFacts { last_acknowledged: None, ..facts }));
    assert!(Honest::known(&MemoryFacts { log_start: None, ..facts }));
    assert!(Honest::known(&MemoryFacts { log_start: Some(offset(4)), ..facts }));
    // The timestamps of the future, and those of a topic with LogAppendTime, are no clock.
    assert!(Honest::known(&MemoryFacts { newest_timestamp: 2_000_000, ..facts }));
    assert!(Honest::known(&old(facts, true)));
    assert!(Honest::known(&MemoryFacts { newest_timestamp: -1, log_append_time: true, ..facts }));
}

#[test]
fn each_reason_to_forget_is_enough() {
    let facts = memory();
    let zero = Some(Instant::from_millis(FORGOTTEN));
    let doubt_timestamp = Some(FORGOTTEN as i64);
    let forgetful = [
        MemoryFacts { last_zero: None, ..facts },
        MemoryFacts { last_zero: zero, ..facts },
        old(facts, false),
        MemoryFacts { newest_timestamp: -1, ..facts },
        MemoryFacts { doubt_timestamp, ..facts },
        MemoryFacts { doubt_timestamp: Some(-1), ..facts },
        MemoryFacts { log_start: Some(offset(6)), ..facts },
    ];
    for facts in forgetful {
        assert!(!Honest::known(&facts), "{facts:?}");
    }
}

#[test]
fn what_is_in_doubt_is_resent_while_it_would_be_recognised() {
    let fresh = DoubtFacts {
        memory: memory(),
        first_offer: Instant::from_millis(REMEMBERED),
        max_timestamp: REMEMBERED as i64,
        written_behind: Some(REMEMBERED as i64),
        log_start_moved_past: false,
        beyond_memory: false,
    };
    assert!(Honest::resendable(&fresh));
    assert!(Honest::resendable(&DoubtFacts { written_behind: None, ..fresh }));
    let aged = FORGOTTEN as i64;
    let stale = [
        DoubtFacts { first_offer: Instant::from_millis(FORGOTTEN), ..fresh },
        DoubtFacts { max_timestamp: aged, ..fresh },
        DoubtFacts { max_timestamp: -1, ..fresh },
        DoubtFacts { written_behind: Some(aged), ..fresh },
        DoubtFacts { log_start_moved_past: true, ..fresh },
    ];
    for facts in stale {
        assert!(!Honest::resendable(&facts), "{facts:?}");
        // Whoever asked for it takes the risk of a second copy.
        assert!(Honest::resendable(&DoubtFacts { beyond_memory: true, ..facts }));
    }
    let stamped = MemoryFacts { log_append_time: true, ..memory() };
    let aged =
        DoubtFacts { max_timestamp: aged, written_behind: Some(aged), memory: stamped, ..fresh };
    assert!(Honest::resendable(&aged));
}

fn between(previous_end: Option<i64>, next_base: Option<i64>, before: u64, behind: u64) -> Bounds {
    let [previous_end, next_base] = [previous_end, next_base].map(|at| at.map(offset));
    Bounds { previous_end, next_base, room_before: before, room_behind: behind }
}

/// A batch of two records at 10 and 11.
#[test]
fn written_batches_have_room_between_their_neighbours() {
    let rows = [
        (between(None, None, 0, 0), true),
        (between(Some(10), None, 0, 0), true),
        (between(Some(11), None, 0, 0), false),
        (between(Some(8), None, 2, 0), true),
        (between(Some(8), None, 3, 0), false),
        (between(None, None, 10, 0), true),
        (between(None, None, 11, 0), false),
        (between(None, Some(12), 0, 0), true),
        (between(None, Some(11), 0, 0), false),
        (between(None, Some(15), 0, 3), true),
        (between(None, Some(15), 0, 4), false),
        (between(Some(10), Some(12), 0, 0), true),
        (between(Some(11), Some(12), 0, 0), false),
        (between(Some(10), Some(11), 0, 0), false),
    ];
    for (bounds, agree) in rows {
        let facts = OffsetFacts { bounds, base: offset(10), count: 2 };
        assert_eq!(Honest::offsets_agree(facts), agree, "{bounds:?}");
        // The same neighbours hold for what was concluded without an offset.
        let concluded = SettledAs::Concluded { bounds, count: 2 };
        assert_eq!(Honest::contradicts(concluded, Some(offset(10))), !agree, "{bounds:?}");
        assert!(!Honest::contradicts(concluded, None));
    }
}

#[test]
fn a_late_zero_contradicts_what_was_settled_otherwise() {
    let written = SettledAs::Written { base: offset(10) };
    for (base, contradicts) in [(None, false), (Some(10), false), (Some(9), true), (Some(11), true)]
    {
        assert_eq!(Honest::contradicts(written, base.map(offset)), contradicts, "{base:?}");
        assert!(Honest::contradicts(SettledAs::NotWritten, base.map(offset)));
        assert!(!Honest::contradicts(SettledAs::Forgotten, base.map(offset)));
    }
}

#[test]
fn a_loss_is_one_of_data_unless_something_explains_it() {
    for [later_written, known] in answers() {
        for (log_start, last_acknowledged, deleted_together) in [
            (None, None, false),
            (None, Some(5), false),
            (Some(5), None, false),
            (Some(5), Some(5), false),
            (Some(4), Some(5), false),
            (Some(6), Some(5), true),
        ] {
            let [log_start, last_acknowledged] =
                [log_start, last_acknowledged].map(|it| it.map(offset));
            let facts = LossFacts { last_acknowledged, log_start, later_written, known };
            let expected = match (later_written || deleted_together, known) {
                (true, _) => Loss::Harmless,
                (false, true) => Loss::OfData,
                (false, false) => Loss::OfState,
            };
            assert_eq!(Honest::loss(facts), expected, "{facts:?}");
        }
    }
}
