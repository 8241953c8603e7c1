use super::*;
use candor_core::{Identity, NeverReason, ProducerId, Sequence};

const HERE: PlaceId = PlaceId::NOWHERE;

fn quiet() -> Context<'static> {
    Context::from_waker(Waker::noop())
}

fn delivered(offset: i64) -> Verdict {
    Verdict::Delivered { offset: Offset::new(offset) }
}

fn doubt() -> Doubt {
    Doubt {
        identity: Identity::fresh(ProducerId::new(1).unwrap()),
        first: Sequence::ZERO,
        count: 1,
        index: 0,
        last_acknowledged: None,
    }
}

fn never() -> Resolution {
    Resolution::Never { reason: NeverReason::Closed, facts: doubt() }
}

#[test]
fn a_slot_is_small() {
    assert_eq!(size_of::<Slot>(), 24);
}

#[test]
fn a_verdict_waits_for_its_claim_and_is_claimed_once() {
    let (mut slots, mut wakers) = (Slots::default(), Wakers::default());
    slots.open(Ticket(0), None);
    assert_eq!(slots.claim(Ticket(0), &quiet(), &mut wakers), Poll::Pending);
    slots.tell(Ticket(0), delivered(7), HERE, &mut wakers);
    assert_eq!(wakers.woken.len(), 1);
    let claimed = Claimed::Delivered { place: HERE, offset: Offset::new(7) };
    assert_eq!(slots.claim(Ticket(0), &quiet(), &mut wakers), Poll::Ready(Some(claimed)));
    assert_eq!(slots.claim(Ticket(0), &quiet(), &mut wakers), Poll::Ready(None));
}

#[test]
fn a_record_without_a_partition_has_its_topic_with_it() {
    let (mut slots, mut wakers) = (Slots::default(), Wakers::default());
    let topic: Arc<str> = Arc::from("orders");
    for ticket in [0, 1, 2].map(Ticket) {
        slots.open(ticket, None);
    }
    assert!(slots.detach(Ticket(2), &mut wakers));
    for ticket in [0, 1, 2].map(Ticket) {
        let topic = Arc::clone(&topic);
        slots.tell_unrouted(ticket, topic, Proof::NeverOffered, &mut wakers);
    }
    assert_eq!(Arc::strong_count(&topic), 3, "nobody asks for the third");
    let claimed = Claimed::Unrouted { topic: Arc::clone(&topic), proof: Proof::NeverOffered };
    assert_eq!(slots.claim(Ticket(0), &quiet(), &mut wakers), Poll::Ready(Some(claimed)));
    assert!(!slots.detach(Ticket(1), &mut wakers), "it has its verdict");
    assert_eq!((Arc::strong_count(&topic), slots.unclaimed()), (1, 2), "nothing keeps it");
}

#[test]
fn offset_zero_and_no_offset_are_different() {
    let (mut slots, mut wakers) = (Slots::default(), Wakers::default());
    for (ticket, offset) in [(0, Offset::new(0)), (1, None), (2, Offset::new(i64::MAX))] {
        slots.open(Ticket(ticket), None);
        slots.tell(Ticket(ticket), Verdict::Delivered { offset }, HERE, &mut wakers);
        let claimed = Claimed::Delivered { place: HERE, offset };
        assert_eq!(slots.claim(Ticket(ticket), &quiet(), &mut wakers), Poll::Ready(Some(claimed)));
    }
}

#[test]
fn a_resolution_may_come_before_the_verdict_is_claimed_or_after() {
    let (mut slots, mut wakers) = (Slots::default(), Wakers::default());
    for (ticket, early) in [(0, true), (1, false)] {
        let ticket = Ticket(ticket);
        slots.open(ticket, None);
        slots.tell(ticket, Verdict::Unknown(doubt()), HERE, &mut wakers);
        if early {
            slots.resolve(ticket, Resolved::Told(never()), &mut wakers);
        }
        let claimed = Claimed::Unknown { place: HERE, doubt: Some(doubt()) };
        assert_eq!(slots.claim(ticket, &quiet(), &mut wakers), Poll::Ready(Some(claimed)));
        if !early {
            assert_eq!(slots.claim_resolution(ticket, &quiet(), &mut wakers), Poll::Pending);
            slots.resolve(ticket, Resolved::Told(never()), &mut wakers);
            assert_eq!(wakers.woken.len(), 1);
        }
        let resolved = Poll::Ready(Resolved::Told(never()));
        assert_eq!(slots.claim_resolution(ticket, &quiet(), &mut wakers), resolved);
    }
}

#[test]
fn what_nobody_asks_for_is_counted() {
    let (mut slots, mut wakers) = (Slots::default(), Wakers::default());
    for ticket in (0..3).map(Ticket) {
        slots.open(ticket, None);
    }
    assert!(slots.detach(Ticket(0), &mut wakers));
    slots.tell(Ticket(0), Verdict::Unknown(doubt()), HERE, &mut wakers);
    slots.resolve(Ticket(0), Resolved::Told(never()), &mut wakers);
    slots.tell(Ticket(1), delivered(1), HERE, &mut wakers);
    assert!(!slots.detach(Ticket(1), &mut wakers));
    assert!(slots.detach(Ticket(2), &mut wakers));
    assert_eq!(slots.unclaimed(), 2);
}

#[test]
fn the_end_of_the_driver_ends_everything() {
    let (mut slots, mut wakers) = (Slots::default(), Wakers::default());
    for ticket in (0..3).map(Ticket) {
        slots.open(ticket, Some(Waker::noop().clone()));
    }
    slots.tell(Ticket(0), delivered(1), HERE, &mut wakers);
    slots.tell(Ticket(1), Verdict::Unknown(doubt()), HERE, &mut wakers);
    let first = slots.claim(Ticket(1), &quiet(), &mut wakers);
    assert!(matches!(first, Poll::Ready(Some(Claimed::Unknown { .. }))));
    assert_eq!(slots.claim_resolution(Ticket(1), &quiet(), &mut wakers), Poll::Pending);
    slots.end_all(&mut wakers);
    assert_eq!(wakers.woken.len(), 4);
    let kept = slots.claim(Ticket(0), &quiet(), &mut wakers);
    assert!(matches!(kept, Poll::Ready(Some(Claimed::Delivered { .. }))));
    let ended = slots.claim(Ticket(2), &quiet(), &mut wakers);
    assert_eq!(ended, Poll::Ready(Some(Claimed::Unknown { place: HERE, doubt: None })));
    for ticket in [Ticket(1), Ticket(2)] {
        let resolved = slots.claim_resolution(ticket, &quiet(), &mut wakers);
        assert_eq!(resolved, Poll::Ready(Resolved::DriverGone));
    }
}

#[test]
fn segments_are_used_again_and_one_slow_record_keeps_one() {
    let (mut slots, mut wakers) = (Slots::default(), Wakers::default());
    slots.open(Ticket(0), None);
    for ticket in (1..100 * SEGMENT as u64).map(Ticket) {
        slots.open(ticket, None);
        slots.tell(ticket, delivered(1), HERE, &mut wakers);
        assert!(slots.claim(ticket, &quiet(), &mut wakers).is_ready());
    }
    assert_eq!(slots.segments.iter().flatten().count(), 1);
    assert!(slots.spare.len() <= SPARE);
    slots.tell(Ticket(0), delivered(0), HERE, &mut wakers);
    assert!(slots.claim(Ticket(0), &quiet(), &mut wakers).is_ready());
    assert!(slots.segments.is_empty());
}
