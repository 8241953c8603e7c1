//! Compares what was said with what is in the logs.

use std::collections::BTreeMap;

use candor_core::{Resolution, Ticket, Verdict};

use super::World;

/// What a log holds of a record: in which incarnation, where, and whether it is committed.
type Places = BTreeMap<u64, Vec<(usize, i64)>>;

fn places(world: &World, topic: &str, partition: i32) -> Places {
    let mut places: Places = BTreeMap::new();
    for (incarnation, log) in world.cluster.logs(topic, partition).into_iter().enumerate() {
        for entry in &log.entries {
            for (index, value) in entry.values.iter().enumerate() {
                let at = (incarnation, entry.base + index as i64);
                places.entry(*value).or_default().push(at);
            }
        }
    }
    places
}

/// The promise, record by record.
pub fn judge(world: &World) {
    let mut partitions: BTreeMap<(&str, i32), Vec<Ticket>> = BTreeMap::new();
    for (ticket, sent) in &world.sent {
        match sent.partition {
            Some(partition) => partitions.entry((sent.topic, partition)).or_default().push(*ticket),
            None => assert!(matches!(told(world, *ticket), Told::NotDelivered), "{ticket}"),
        }
    }
    elsewhere(world);
    for ((topic, partition), tickets) in partitions {
        let places = places(world, topic, partition);
        let mut last: BTreeMap<usize, (i64, Ticket)> = BTreeMap::new();
        for ticket in tickets {
            let sent = &world.sent[&ticket];
            let found = places.get(&ticket.0).map_or(&[][..], Vec::as_slice);
            let told = told(world, ticket);
            match told {
                Told::Delivered(offset) => {
                    assert!(!found.is_empty(), "{ticket} {sent:?} is in no log");
                    for pair in found.windows(2) {
                        assert!(pair[0].0 != pair[1].0, "{ticket} {sent:?} twice: {found:?}");
                    }
                    if let Some(offset) = offset {
                        assert!(
                            found.iter().any(|it| it.1 == offset),
                            "{ticket} {sent:?}: {found:?}"
                        );
                    }
                    if let [(log, at)] = found {
                        let before = last.insert(*log, (*at, ticket));
                        assert!(before.is_none_or(|it| it.0 < *at), "{ticket} behind {before:?}");
                    }
                }
                Told::NotDelivered => assert!(found.is_empty(), "{ticket} {sent:?}: {found:?}"),
                Told::Never => {}
            }
        }
    }
}

enum Told {
    Delivered(Option<i64>),
    NotDelivered,
    Never,
}

fn told(world: &World, ticket: Ticket) -> Told {
    let sent = &world.sent[&ticket];
    let (_, verdict) = sent.verdict.unwrap_or_else(|| panic!("no verdict for {ticket}"));
    match (verdict, sent.resolution) {
        (Verdict::Delivered { offset }, None) => Told::Delivered(offset.map(|it| it.get())),
        (Verdict::NotDelivered(_), None) => Told::NotDelivered,
        (Verdict::Unknown(_), Some(Resolution::Delivered { offset })) => {
            Told::Delivered(offset.map(|it| it.get()))
        }
        (Verdict::Unknown(_), Some(Resolution::NotDelivered(_))) => Told::NotDelivered,
        (Verdict::Unknown(_), Some(Resolution::Never { .. })) => Told::Never,
        other => panic!("{ticket}: {other:?}"),
    }
}

/// No record is in a partition that it was not meant for.
fn elsewhere(world: &World) {
    for topic in ["x", "y", "z"] {
        for partition in 0..8 {
            for ticket in places(world, topic, partition).keys() {
                let sent = &world.sent[&Ticket(*ticket)];
                assert_eq!((sent.topic, sent.partition), (topic, Some(partition)), "{ticket}");
            }
        }
    }
}
