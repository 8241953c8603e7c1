//! One request at a time, what happens after a close, and every effect of a fault.

use super::*;
use crate::broker::NodeId;
use crate::codec::{API_VERSIONS, METADATA};

#[test]
fn pipelined_requests_are_answered_one_by_one_in_order() {
    let mut bench = Bench::three(Replication::ByHand);
    let on = bench.connect(1);
    let mut stream = Vec::new();
    let mut headers = Vec::new();
    for first in 0..3 {
        let (header, frame) = bench.frame(PRODUCE, 9, &to(0, batch(0, first, 1)).encode(9));
        headers.push(header);
        stream.extend(frame);
    }
    for byte in stream {
        bench.net.receive(bench.now, on, &[byte]);
    }
    // The second is not even looked at before the first is replicated.
    for (place, header) in headers.iter().enumerate() {
        bench.collect();
        assert!(bench.produced(on, header).is_none());
        assert_eq!(bench.end(0), place + 1);
        bench.net.cluster_mut().replicate(0);
        bench.elapse(1);
        let expected = [(0, 0, i64::try_from(place).unwrap())];
        assert_eq!(bench.produced(on, header).as_ref().map(codes).unwrap(), expected);
    }
}

#[test]
fn replicas_that_are_late_make_it_7_with_the_offset() {
    let mut bench = Bench::three(Replication::ByHand);
    let on = bench.connect(1);
    let header = bench.produce(on, &to(0, batch(0, 0, 1)));
    assert_eq!(bench.net.deadline(), Some(1_000_000));
    bench.elapse(999_999);
    assert!(bench.produced(on, &header).is_none());
    bench.elapse(1);
    assert_eq!(bench.produced(on, &header).as_ref().map(codes), Some(vec![(0, 7, 0)]));
    assert_eq!(bench.net.deadline(), None);
}

/// A slow request, three behind it, then the client closes.
fn close_behind_a_slow_one(how: Hangup) -> Bench {
    let mut bench = Bench::three(Replication::ByHand);
    let on = bench.connect(1);
    for (first, n) in [(0, 2), (2, 3), (5, 1), (6, 1)] {
        let _header = bench.produce(on, &to(0, batch(0, first, n)));
    }
    let (_, half) = bench.frame(PRODUCE, 9, &to(0, batch(0, 7, 1)).encode(9));
    bench.net.receive(bench.now, on, &half[..half.len() - 1]);
    bench.net.hang_up(bench.now, on, how);
    assert_eq!(bench.end(0), 2, "only the slow one");
    bench
}

#[test]
fn v85_a_closed_connection_does_not_cancel_what_it_sent() {
    let mut bench = close_behind_a_slow_one(Hangup::Fin);
    bench.elapse(1_000_000);
    // The slow one was answered with 7, the next is taken up, and waits in its turn.
    assert_eq!(bench.end(0), 5);
    bench.elapse(1_000_000);
    assert_eq!(bench.end(0), 5, "the second answer meets a dead socket");
    let other = bench.connect(1);
    assert_eq!(
        bench.ask(other, &all(1, vec![(0, Some(batch(0, 2, 10)))])),
        Some(vec![(0, 45, -1)])
    );
}

#[test]
fn v86_a_contest_may_overtake_what_waits_in_the_buffer() {
    let mut bench = close_behind_a_slow_one(Hangup::After(9));
    let other = bench.connect(1);
    let contest = all(1, vec![(0, Some(batch(0, 2, 10)))]);
    assert_eq!(bench.ask(other, &contest), Some(vec![(0, 0, 2)]));
    bench.elapse(1_000_000);
    assert_eq!(bench.end(0), 12, "what came late is refused");
}

#[test]
fn a_reset_loses_what_was_not_taken_up() {
    let mut bench = close_behind_a_slow_one(Hangup::Reset);
    bench.elapse(1_000_000);
    assert_eq!(bench.end(0), 2);
}

#[test]
fn everything_in_the_buffer_can_be_acted_upon_but_never_half_a_frame() {
    let mut bench = close_behind_a_slow_one(Hangup::After(9));
    for _ in 0..4 {
        bench.elapse(1_000_000);
    }
    assert_eq!(bench.end(0), 7);
    assert_eq!(bench.closed.len(), 1);
}

#[test]
fn garbage_closes_the_connection() {
    let mut bench = Bench::new();
    for garbage in [&b"GET / HTTP/1.1\r\n\r\n"[..], &[0, 0, 0, 0], &[255; 4], &[0, 0, 0, 1, 7]] {
        let on = bench.connect(1);
        bench.net.receive(0, on, garbage);
        bench.collect();
        assert_eq!(bench.closed.pop(), Some(on), "{garbage:?}");
    }
}

#[test]
fn a_dropped_reply_leaves_the_batch_in_the_log() {
    let mut bench = Bench::new();
    let on = bench.connect(1);
    bench.fault(Trigger::Produce(2), Effect::DropReply);
    assert_eq!(bench.ask(on, &to(0, batch(0, 0, 1))), Some(vec![(0, 0, 0)]));
    assert_eq!(bench.ask(on, &to(0, batch(0, 1, 1))), None);
    assert_eq!(bench.ask(on, &to(0, batch(0, 2, 1))), Some(vec![(0, 0, 2)]));
    assert_eq!((bench.end(0), bench.net.faults()), (3, &[][..]));
}

#[test]
fn a_reply_is_cut_at_every_byte() {
    let whole = {
        let mut bench = Bench::new();
        let on = bench.connect(1);
        let _header = bench.produce(on, &to(0, batch(0, 0, 1)));
        bench.arrived[&on].clone()
    };
    for at in 0..whole.len() {
        let mut bench = Bench::new();
        let on = bench.connect(1);
        bench.fault(Trigger::Produce(1), Effect::CutReply(at));
        let _header = bench.produce(on, &to(0, batch(0, 0, 1)));
        assert_eq!(bench.arrived.remove(&on).unwrap_or_default(), whole[..at]);
        assert_eq!((bench.closed, bench.net.records("t", 0).unwrap().len()), (vec![on], 1));
    }
}

#[test]
fn a_request_is_cut_at_every_byte() {
    let frame = Bench::new().frame(PRODUCE, 9, &to(0, batch(0, 0, 1)).encode(9)).1;
    for at in 0..=frame.len() {
        let mut bench = Bench::new();
        let on = bench.connect(1);
        bench.fault(Trigger::Produce(1), Effect::CutRequest(at));
        let mut taken = 0;
        for byte in &frame {
            bench.net.receive(0, on, &[*byte]);
            taken += usize::from(bench.net.is_open(on));
        }
        bench.collect();
        assert_eq!((bench.closed.clone(), bench.end(0)), (vec![on], 0));
        // The API is known after six bytes; the last byte of all makes it a whole request.
        assert_eq!(taken + 1, at.clamp(6, frame.len()), "cut at {at}");
    }
}

#[test]
fn a_code_can_be_put_in_before_and_after_the_append() {
    let mut bench = Bench::new();
    let on = bench.connect(1);
    let two = |first| all(-1, vec![(0, Some(batch(0, first, 1))), (1, Some(batch(0, first, 1)))]);
    let put = |nth, code, at| Fault::on_partition("t", 1, nth, Effect::Answer { code, at });
    bench.net.inject(put(1, 19, Moment::Before));
    bench.net.inject(put(2, 7, Moment::After));
    assert_eq!(bench.ask(on, &two(0)), Some(vec![(0, 0, 0), (1, 19, -1)]));
    assert_eq!((bench.end(0), bench.end(1)), (1, 0));
    assert_eq!(bench.ask(on, &two(0)), Some(vec![(0, 0, 0), (1, 7, 0)]));
    assert_eq!((bench.end(0), bench.end(1)), (1, 1));
    assert_eq!(bench.ask(on, &two(0)), Some(vec![(0, 0, 0), (1, 0, 0)]));
    bench.fault(Trigger::Produce(4), Effect::Answer { code: 29, at: Moment::Before });
    assert_eq!(bench.ask(on, &two(1)), Some(vec![(0, 29, -1), (1, 29, -1)]));
}

#[test]
fn a_throttled_answer_says_for_how_long() {
    let mut bench = Bench::three(Replication::ByHand);
    let on = bench.connect(1);
    bench.fault(Trigger::Produce(1), Effect::Throttle(250));
    bench.fault(Trigger::Produce(2), Effect::Throttle(350));
    for (acks, throttle_ms) in [(-1, 250), (1, 350), (1, 0)] {
        let header = bench.produce(on, &all(acks, vec![(0, Some(batch(0, 0, 1)))]));
        bench.net.cluster_mut().replicate(0);
        bench.elapse(1);
        assert_eq!(bench.produced(on, &header).unwrap().throttle_ms, throttle_ms);
    }
}

#[test]
fn a_held_reply_holds_back_all_behind_it_until_its_time() {
    let mut bench = Bench::new();
    let on = bench.connect(1);
    bench.fault(Trigger::Produce(1), Effect::HoldReply(Release::Elapsed(500)));
    let first = bench.produce(on, &to(0, batch(0, 0, 1)));
    let second = bench.produce(on, &to(0, batch(0, 1, 1)));
    assert_eq!((bench.net.deadline(), bench.end(0)), (Some(500), 1));
    bench.elapse(499);
    assert!(bench.produced(on, &first).is_none());
    bench.elapse(1);
    assert_eq!(bench.produced(on, &first).as_ref().map(codes), Some(vec![(0, 0, 0)]));
    assert_eq!(bench.produced(on, &second).as_ref().map(codes), Some(vec![(0, 0, 1)]));
}

#[test]
fn a_held_reply_waits_for_an_event_or_for_a_hand_or_for_ever() {
    let mut bench = Bench::new();
    let (one, two, three, four) =
        (bench.connect(1), bench.connect(1), bench.connect(1), bench.connect(1));
    bench.fault(Trigger::Produce(1), Effect::HoldReply(Release::Produce(3)));
    bench.fault(Trigger::Produce(2), Effect::HoldReply(Release::ByHand));
    bench.fault(Trigger::Request { api: API_VERSIONS, nth: 1 }, Effect::HoldReply(Release::Never));
    let first = bench.produce(one, &to(0, batch(0, 0, 1)));
    let second = bench.produce(two, &to(0, batch(0, 1, 1)));
    assert!(bench.produced(one, &first).is_none());
    assert_eq!(bench.net.held(), [(one, 1), (two, 1)]);
    assert_eq!(bench.ask(three, &to(0, batch(0, 2, 1))), Some(vec![(0, 0, 2)]));
    assert!(bench.produced(one, &first).is_some());
    bench.elapse(1 << 40);
    assert!(bench.produced(two, &second).is_none());
    bench.net.release(bench.now, two);
    bench.collect();
    assert!(bench.produced(two, &second).is_some());
    let never = bench.send(four, API_VERSIONS, 0, &[]);
    bench.elapse(1 << 40);
    assert!(bench.answer(four, &never).is_none());
    bench.net.hang_up(bench.now, four, Hangup::Fin);
    assert!(!bench.net.is_open(four));
}

#[test]
fn a_leader_moved_before_the_append_refuses_and_names_the_new_one() {
    let mut bench = Bench::three(Replication::AtOnce);
    bench.net.advertise(2, "two", 9);
    let on = bench.connect(1);
    let upset = Upset::MoveLeader { topic: "t".into(), partition: 0, to: 2 };
    bench.fault(Trigger::Produce(1), Effect::Upset { upset, at: Moment::Before });
    let header = bench.send(on, PRODUCE, 10, &to(0, batch(0, 0, 1)).encode(10));
    let response = bench.produced(on, &header).unwrap();
    assert_eq!(codes(&response), [(0, 6, -1)]);
    let leader = response.topics[0].partitions[0].leader.unwrap();
    assert_eq!((leader.node, leader.epoch), (2, 1));
    let endpoint = &response.endpoints[0];
    assert_eq!((endpoint.node, endpoint.host.as_str(), endpoint.port), (2, "two", 9));
    let there = bench.connect(2);
    assert_eq!(bench.ask(there, &to(0, batch(0, 0, 1))), Some(vec![(0, 0, 0)]));
}

#[test]
fn a_leader_moved_after_the_append_answers_6_with_the_offset() {
    let mut bench = Bench::three(Replication::ByHand);
    let on = bench.connect(1);
    let upset = Upset::MoveLeader { topic: "t".into(), partition: 0, to: 2 };
    bench.fault(Trigger::Produce(1), Effect::Upset { upset, at: Moment::After });
    assert_eq!(bench.ask(on, &to(0, batch(0, 0, 1))), Some(vec![(0, 6, 0)]));
}

#[test]
fn a_forgotten_producer_is_written_twice() {
    let mut bench = Bench::new();
    let on = bench.connect(1);
    let upset = Upset::ForgetProducers { topic: "t".into(), partition: 0 };
    bench.fault(Trigger::Produce(2), Effect::Upset { upset, at: Moment::Before });
    assert_eq!(bench.ask(on, &to(0, batch(0, 0, 1))), Some(vec![(0, 0, 0)]));
    assert_eq!(bench.ask(on, &to(0, batch(0, 0, 1))), Some(vec![(0, 0, 1)]));
    assert_eq!(bench.ask(on, &to(0, batch(0, 0, 1))), Some(vec![(0, 0, 1)]));
}

#[test]
fn a_restarted_broker_cuts_its_connections_and_knows_the_newest_batch() {
    for at in [Moment::Before, Moment::After] {
        let mut bench = Bench::new();
        let (on, idle) = (bench.connect(1), bench.connect(1));
        let upset = Upset::Restart { node: 1, crash: true };
        bench.fault(Trigger::Produce(3), Effect::Upset { upset, at });
        for first in 0..2 {
            assert!(bench.ask(on, &to(0, batch(0, first, 1))).is_some());
        }
        assert_eq!(bench.ask(on, &to(0, batch(0, 2, 1))), None);
        assert_eq!(bench.closed, [on, idle]);
        let written = 2 + usize::from(at == Moment::After);
        assert_eq!(bench.end(0), written);
        let again = bench.connect(1);
        let newest = i32::try_from(written).unwrap() - 1;
        let older = to(0, batch(0, newest - 1, 1));
        assert_eq!(bench.ask(again, &older), Some(vec![(0, 45, -1)]));
        let newest_at = Some(vec![(0, 0, i64::from(newest))]);
        assert_eq!(bench.ask(again, &to(0, batch(0, newest, 1))), newest_at);
    }
}

#[test]
fn a_stopped_broker_takes_no_connections_until_it_is_started() {
    let mut bench = Bench::three(Replication::AtOnce);
    let on = bench.connect(1);
    let upset = Upset::Stop { node: 1, crash: false };
    bench.fault(
        Trigger::Request { api: METADATA, nth: 1 },
        Effect::Upset { upset, at: Moment::Before },
    );
    let header = bench.send(on, METADATA, 0, &[0, 0, 0, 0]);
    assert!(bench.answer(on, &header).is_none());
    assert_eq!((bench.closed.clone(), bench.net.connect(1)), (vec![on], None));
    let leader = |bench: &Bench| bench.net.cluster().partition("t", 0).unwrap().leader();
    assert_eq!(leader(&bench), Some(NodeId(2)));
    bench.net.start_node(5, 1);
    let back = bench.connect(1);
    assert_eq!(bench.ask(back, &to(0, batch(0, 0, 1))), Some(vec![(0, 6, -1)]));
}

#[test]
fn a_recreated_topic_is_empty_and_takes_any_sequence() {
    let mut bench = Bench::new();
    let on = bench.connect(1);
    assert_eq!(bench.ask(on, &to(3, batch(0, 0, 1))), Some(vec![(3, 0, 0)]));
    bench.net.upset(0, &Upset::RecreateTopic { topic: "t".into() });
    assert_eq!(bench.end(3), 0);
    assert_eq!(bench.ask(on, &to(3, batch(0, 5, 1))), Some(vec![(3, 0, 0)]));
}

#[test]
fn a_net_can_be_cloned_in_the_middle_and_both_go_on_alike() {
    let mut bench = Bench::three(Replication::ByHand);
    let on = bench.connect(1);
    let _header = bench.produce(on, &to(0, batch(0, 0, 1)));
    let mut twin = bench.net.clone();
    assert_eq!(twin, bench.net);
    twin.cluster_mut().replicate(0);
    twin.tick(1);
    assert_ne!(twin, bench.net);
    bench.net.cluster_mut().replicate(0);
    bench.net.tick(1);
    assert_eq!(twin, bench.net);
    assert!(matches!(twin.poll(), Some(Output::Bytes { connection, .. }) if connection == on));
}
