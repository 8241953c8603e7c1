//! Rules 2: sequences, gate, identities.

use candor_core::rules::{
    GateFacts, Honest, LeaderChange, LeaderWord, Mark, NextIdentity, Rules, StopCause,
};
use candor_core::{LeaderEpoch, ProducerEpoch, Sequence};

use crate::{answers, yes};

fn sequence(number: i32) -> Sequence {
    Sequence::new(number).unwrap()
}

fn epoch(number: i16) -> ProducerEpoch {
    ProducerEpoch::new(number).unwrap()
}

#[test]
fn sequences_begin_at_zero_and_go_round_behind_the_last() {
    assert_eq!(Honest::first_sequence(), sequence(0));
    let rows = [(0, 3, 3), (7, 1, 8), (i32::MAX, 1, 0), (i32::MAX - 1, 3, 1), (i32::MAX, 5, 4)];
    for (first, count, behind) in rows {
        assert_eq!(Honest::next_sequence(sequence(first), count), sequence(behind), "{first}");
    }
}

#[test]
fn five_batches_fill_the_span() {
    let room: Vec<_> = (0..8).filter(|&span| Honest::span_has_room(span)).collect();
    assert_eq!(room, [0, 1, 2, 3, 4]);
}

#[test]
fn the_gate_opens_by_a_zero_of_here_and_now() {
    for [same_route, same_leader_epoch, same_identity, known] in answers() {
        let facts = GateFacts { same_route, same_leader_epoch, same_identity, known };
        let all = [same_route, same_leader_epoch, same_identity, known] == [true; 4];
        assert_eq!(Honest::opens_gate(facts), all, "{facts:?}");
    }
}

#[test]
fn the_gate_closes_by_anything_else_on_the_route_in_use() {
    let closes = yes(|[appended, orphaned]| Honest::closes_gate(appended, orphaned));
    assert_eq!(closes, [[false, false]]);
}

#[test]
fn behind_a_closed_gate_one_attempt_is_open_at_a_time() {
    for open in 0..4 {
        assert!(Honest::may_offer(true, open));
        assert_eq!(Honest::may_offer(false, open), open == 0);
    }
}

#[test]
fn a_pass_goes_on_behind_what_was_answered() {
    assert!(!Honest::pass_goes_on(Mark::Unasked));
    for behind_out_of_order in [false, true] {
        assert!(Honest::pass_goes_on(Mark::Refused { behind_out_of_order }));
    }
    assert!(Honest::pass_goes_on(Mark::OutOfOrder) && Honest::pass_goes_on(Mark::UnknownProducer));
}

#[test]
fn another_way_to_the_leader_orphans_what_was_sent_before() {
    let orphans = [LeaderChange::None, LeaderChange::Route, LeaderChange::Epoch];
    assert_eq!(orphans.map(Honest::orphans), [false, true, true]);
}

#[test]
fn only_answers_to_what_this_pass_asked_count_in_it() {
    let counts = yes(|[offered, orphaned]| Honest::counts_in_pass(offered, orphaned));
    assert_eq!(counts, [[true, false]]);
}

/// S8, S10: the last epoch is used as a fence only.
#[test]
fn the_epoch_that_follows() {
    for left_in_doubt in [false, true] {
        for at in [0, 1, i16::MAX - 2] {
            let next = NextIdentity::Epoch(epoch(at + 1));
            assert_eq!(Honest::next_identity(epoch(at), left_in_doubt), next, "{at}");
        }
        let last = Honest::next_identity(epoch(i16::MAX), left_in_doubt);
        assert_eq!(last, NextIdentity::Fresh);
    }
    let before_last = epoch(i16::MAX - 1);
    assert_eq!(Honest::next_identity(before_last, false), NextIdentity::Fresh);
    assert_eq!(Honest::next_identity(before_last, true), NextIdentity::Epoch(epoch(i16::MAX)));
}

#[test]
fn the_fence_is_used_up_by_one_acknowledgement() {
    for at in [0, i16::MAX - 1, i16::MAX] {
        assert!(!Honest::epoch_is_used_up(epoch(at), false));
        assert_eq!(Honest::epoch_is_used_up(epoch(at), true), at == i16::MAX);
    }
}

#[test]
fn a_new_topic_lifts_a_stop_by_contradiction_only() {
    let causes = [StopCause::Contradiction, StopCause::DataLoss, StopCause::Conflict];
    assert_eq!(causes.map(Honest::recreation_lifts_stop), [true, false, false]);
}

#[test]
fn what_needs_no_more_than_a_word() {
    assert!(Honest::touches_counters(true) && !Honest::touches_counters(false));
    assert_eq!([1, 2, 3].map(Honest::shows_timestamp_type), [true, false, false]);
    assert!(!Honest::resend_to_new_topic());
    assert!(Honest::may_still_be_proved(false) && !Honest::may_still_be_proved(true));
    assert_eq!([1, 2, 3].map(Honest::conflict_stops), [false, true, true]);
}

#[test]
fn leaders_are_followed_forward() {
    let at = LeaderEpoch;
    let followed = [3, 4, 5].map(|offered| Honest::follows_leader(at(4), at(offered)));
    assert_eq!(followed, [false, true, true]);
    let hinted = |last| [3, 4, 5].map(|offered| Honest::follows_hint(at(4), at(offered), last));
    assert_eq!(hinted(LeaderWord::Metadata), [false, false, true]);
    assert_eq!(hinted(LeaderWord::Hint), [false; 3], "metadata has the word first");
    let at_once = [3, 4, 5].map(|offered| Honest::retries_at_once(at(4), at(offered)));
    assert_eq!(at_once, [false, false, true]);
}
