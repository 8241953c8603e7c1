//! Rules 5: deadlines and waits; and the arithmetic of time, which never goes round.

use candor_core::rules::{Honest, Rules};
use candor_core::{Instant, Span};

use crate::yes;

fn at(micros: u64) -> Instant {
    Instant::from_micros(micros)
}

fn span(micros: u64) -> Span {
    Span::from_micros(micros)
}

#[test]
fn a_record_is_due_at_its_deadline_and_not_before() {
    let due = [9, 10, 11].map(|now| Honest::expired(at(now), at(10)));
    assert_eq!(due, [false, true, true]);
}

#[test]
fn verdicts_go_before_offers() {
    let may = yes(|[due, undrained]| Honest::may_offer_before_poll(due, undrained));
    assert_eq!(may, [[false, false]]);
}

#[test]
fn a_batch_waits_for_linger_or_half_of_the_time_that_is_left() {
    let due = |linger, deadline| Honest::due(at(100), span(linger), at(deadline));
    assert_eq!(due(0, 1_000), at(100));
    assert_eq!(due(5, 1_000), at(105));
    assert_eq!(due(700, 1_000), at(550));
    assert_eq!(due(5, 50), at(100));
}

#[test]
fn waits_double_up_to_the_longest() {
    let wait = |failures| Honest::backoff(failures, span(100), span(1_000)).as_micros();
    assert_eq!([0, 1, 2, 3, 4, 5].map(wait), [100, 100, 200, 400, 800, 1_000]);
    let endless = |failures| Honest::backoff(failures, span(1), Span::FOREVER).as_micros();
    assert_eq!([33, 34, u32::MAX].map(endless), [1 << 32; 3]);
    assert_eq!(Honest::backoff(u32::MAX, Span::FOREVER, Span::FOREVER), Span::FOREVER);
}

/// L9: half of the request's timeout, or what the shortest record has left, but a tenth of a second at least.
#[test]
fn brokers_are_given_less_time_than_we_have() {
    let timeout = |left: Option<u64>| {
        Honest::produce_timeout(Span::from_secs(30), left.map(Span::from_millis)).as_millis()
    };
    let rows = [None, Some(20_000), Some(15_001), Some(700), Some(100), Some(3)];
    assert_eq!(rows.map(timeout), [15_000, 15_000, 15_000, 700, 100, 100]);
    let short = Honest::produce_timeout(Span::from_millis(60), Some(Span::ZERO));
    assert_eq!(short.as_millis(), 30);
}

#[test]
fn a_request_has_its_time_and_a_throttle_too() {
    assert_eq!(Honest::request_expires(at(7), span(30)), at(37));
    let speaks = [9, 10, 11].map(|now| Honest::may_speak(at(now), at(10)));
    assert_eq!(speaks, [false, true, true]);
}

#[test]
fn time_saturates() {
    assert_eq!(
        (Span::from_millis(3).as_micros(), Span::from_millis(u64::MAX)),
        (3_000, Span::FOREVER)
    );
    assert_eq!(
        (Span::from_secs(3).as_micros(), Span::from_secs(u64::MAX)),
        (3_000_000, Span::FOREVER)
    );
    assert_eq!(span(4_999).as_millis(), 4);
    assert_eq!(span(9).half(), span(4));
    assert_eq!((span(9).times(3), Span::FOREVER.times(2)), (span(27), Span::FOREVER));
    assert_eq!(
        (Instant::from_millis(3), Instant::from_millis(u64::MAX)),
        (at(3_000), Instant::NEVER)
    );
    assert_eq!((at(4_999).as_millis(), at(12).as_micros()), (4, 12));
    assert_eq!((at(9).since(at(2)), at(2).since(at(9))), (span(7), Span::ZERO));
    assert_eq!((at(9) + span(2), Instant::NEVER + span(2)), (at(11), Instant::NEVER));
}

/// Jitter is a fifth in either direction.
#[test]
fn waits_are_spread_around_their_length() {
    let spread: Vec<_> = (0..1_000).map(|hash| span(100).spread(hash).as_micros()).collect();
    assert_eq!((spread.iter().min(), spread.iter().max()), (Some(&80), Some(&120)));
    assert_eq!([0, 1, 40, 41].map(|hash| span(100).spread(hash)), [80, 81, 120, 80].map(span));
    assert_eq!(span(4).spread(u64::MAX), span(4));
    assert!(Span::FOREVER.spread(u64::MAX - 1) > Span::FOREVER.half());
}
