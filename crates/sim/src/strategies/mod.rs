//! For users who verify a loop of their own over `candor_proto`, with proptest and without sockets:
//! strategies for records, callers that change their mind, configurations, broker profiles, faults of
//! brokers and of networks, and whole plans of a run; and a [`Harness`] that runs a loop by a plan,
//! in virtual time, against the model brokers, and has the judge compare what was said with what the
//! log holds.
//!
//! Everything shrinks to less: fewer records, fewer faults, the newest broker. A worked example is
//! `examples/own_loop.rs`; a guide is `docs/proptest.md`. [`lanes`] has schedules for those who drive
//! a [`candor_core::Lane`] themselves.
//!
//! ```
//! use candor_sim::strategies::{Harness, Turn, plans};
//! use proptest::strategy::{Strategy, ValueTree};
//! use proptest::test_runner::TestRunner;
//!
//! // A loop that does nothing tells nobody anything, which is not right.
//! let idle = |_: &mut Turn<'_>| ();
//! let plan = plans().new_tree(&mut TestRunner::deterministic()).unwrap().current();
//! let report = Harness::new(&plan).run(&mut { idle });
//! assert!(!report.is_clean());
//! ```

mod caller;
mod harness;
pub mod lanes;
mod plan;
mod sockets;

pub use harness::{EventLoop, Harness, Report, Turn};
pub use plan::{Call, PARTITIONS, Plan, Regret, TOPIC, Wire, WireFault, Wish};
pub use sockets::{Sockets, Status};

use core::time::Duration;

use candor_proto::{Config, Record};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::{Just, Strategy, any, prop_oneof};
use proptest::sample::select;

use crate::broker::Profile;
use crate::codec::{INIT_PRODUCER_ID, METADATA};
use crate::serve::{Effect, Fault, Moment, Release, Trigger, Upset};

/// Every version that the model brokers imitate, the newest measured one first.
///
/// ```
/// use candor_sim::{broker::Profile, strategies::profiles};
/// use proptest::prelude::*;
/// proptest!(|(profile in profiles())| prop_assert!(profile != Profile::V4_5));
/// ```
pub fn profiles() -> impl Strategy<Value = Profile> {
    select(vec![Profile::V4_4, Profile::V4_3, Profile::V4_0, Profile::V3_9, Profile::V2_4])
}

/// Configurations that work, for these brokers: those settings vary that change what a loop sees,
/// within times that suit a run of some seconds.
///
/// ```
/// use candor_sim::strategies::configs;
/// use proptest::prelude::*;
/// proptest!(|(config in configs("broker-1:9092"))| prop_assert!(config.check().is_ok()));
/// ```
pub fn configs(bootstrap: &str) -> impl Strategy<Value = Config> + use<> {
    let millis = Duration::from_millis;
    let bootstrap = bootstrap.to_owned();
    (select(vec![0, 5]), select(vec![16_384, 200]), select(vec![5, 1]), select(vec![1_000, 300]))
        .prop_map(move |(linger, batch, in_flight, timeout)| {
            Config::new([bootstrap.clone()])
                .client_id("own-loop")
                .linger(millis(linger))
                .batch_size(batch)
                .max_in_flight(in_flight)
                .request_timeout(millis(timeout))
                .connect_timeout(millis(timeout))
                .metadata_max_age(millis(5_000))
        })
}

/// Any record for a topic: keys, values and headers of arbitrary bytes, null ones, old timestamps.
///
/// ```
/// use candor_sim::strategies::records;
/// use proptest::prelude::*;
/// proptest!(|(record in records("orders"))| prop_assert_eq!(record.topic(), "orders"));
/// ```
pub fn records(topic: &str) -> impl Strategy<Value = Record<'static>> + use<> {
    let topic = topic.to_owned();
    let bytes = || option::of(vec(any::<u8>(), 0..40));
    let headers = vec(("[a-z]{0,5}", bytes()), 0..3);
    (bytes(), bytes(), headers, option::of(0..2_000_000_000_000_i64)).prop_map(
        move |(key, value, headers, timestamp)| {
            let mut record = Record::to(topic.clone());
            record = key.into_iter().fold(record, |record, key| record.key(key));
            record = value.into_iter().fold(record, |record, value| record.value(value));
            for (name, value) in headers {
                record = match value {
                    Some(value) => record.header(name, value),
                    None => record.header_null(name),
                };
            }
            timestamp.into_iter().fold(record, |record, timestamp| record.timestamp(timestamp))
        },
    )
}

/// One record of a plan.
///
/// ```
/// use candor_sim::strategies::{PARTITIONS, wishes};
/// use proptest::prelude::*;
/// proptest!(|(wish in wishes())| prop_assert!(wish.partition < PARTITIONS));
/// ```
pub fn wishes() -> impl Strategy<Value = Wish> {
    let deadline = select(vec![2_000, 20, 200, 30_000]);
    let regret = option::weighted(0.3, regrets());
    (0..40_u64, 0..PARTITIONS, select(vec![0, 10, 500]), deadline, regret).prop_map(
        |(after_ms, partition, bytes, deadline_ms, regret)| Wish {
            after_ms,
            partition,
            bytes,
            deadline_ms,
            regret,
        },
    )
}

/// The caller changes its mind, at once or as late as after a request timeout: mostly it revokes,
/// so that other records are offered in the record's place (rules C).
///
/// ```
/// use candor_sim::strategies::regrets;
/// use proptest::prelude::*;
/// proptest!(|(regret in regrets())| prop_assert!(regret.after_ms < 2_000));
/// ```
pub fn regrets() -> impl Strategy<Value = Regret> {
    let call = prop_oneof![
        1 => Just(Call::Cancel),
        4 => Just(Call::Revoke),
        1 => Just(Call::Abandon),
    ];
    let after = prop_oneof![2 => 0..60_u64, 1 => 0..2_000_u64];
    (after, call).prop_map(|(after_ms, call)| Regret { after_ms, call })
}

/// A fault of a broker: of those that leave the promise intact (assumptions A1 to A5), each at one
/// of the first requests. Answers are lost, cut, late, or name an error; brokers throttle, restart,
/// and hand their partitions over.
///
/// ```
/// use candor_sim::{serve::Effect, strategies::broker_faults};
/// use proptest::prelude::*;
/// proptest!(|(fault in broker_faults())| {
///     prop_assert!(fault.effect != Effect::HoldReply(candor_sim::serve::Release::Never));
/// });
/// ```
pub fn broker_faults() -> impl Strategy<Value = Fault> {
    let produce = (1..5_u64, effects()).prop_map(|(nth, effect)| Fault::on_produce(nth, effect));
    let other = (select(vec![METADATA, INIT_PRODUCER_ID]), 1..4_u64, 0..30_usize).prop_map(
        |(api, nth, bytes)| Fault {
            trigger: Trigger::Request { api, nth },
            effect: Effect::CutReply(bytes),
        },
    );
    prop_oneof![4 => produce, 1 => other]
}

fn effects() -> impl Strategy<Value = Effect> {
    let refused = select(vec![6, 3, 5, 19]).prop_map(|code| (code, Moment::Before));
    let doubtful = (select(vec![7, 6, 20, 56]), select(vec![Moment::After, Moment::Before]));
    let upset = prop_oneof![
        (1..4_u8).prop_map(|node| Upset::Restart { node, crash: false }),
        (0..PARTITIONS as i32, 1..4_u8).prop_map(|(partition, to)| Upset::MoveLeader {
            topic: TOPIC.to_owned(),
            partition,
            to,
        }),
    ];
    prop_oneof![
        3 => (0..60_usize).prop_map(Effect::CutReply),
        3 => (0..200_usize).prop_map(Effect::CutRequest),
        1 => (1..800_i32).prop_map(Effect::Throttle),
        2 => (1_000..5_000_000_u64).prop_map(|us| Effect::HoldReply(Release::Elapsed(us))),
        2 => prop_oneof![refused, doubtful].prop_map(|(code, at)| Effect::Answer { code, at }),
        2 => (upset, select(vec![Moment::After, Moment::Before]))
            .prop_map(|(upset, at)| Effect::Upset { upset, at }),
    ]
}

/// A fault of the network, on one of the first connections.
///
/// ```
/// use candor_sim::strategies::wire_faults;
/// use proptest::prelude::*;
/// proptest!(|(fault in wire_faults())| prop_assert!(fault.connection > 0));
/// ```
pub fn wire_faults() -> impl Strategy<Value = WireFault> {
    let wire = prop_oneof![
        Just(Wire::Refused),
        (1..400_u64).prop_map(Wire::BreaksOut),
        (1..900_u64).prop_map(Wire::BreaksIn),
        (1..100_usize).prop_map(Wire::Narrow),
        (1..50_usize).prop_map(Wire::Chunked),
    ];
    (1..5_u64, wire).prop_map(|(connection, wire)| WireFault { connection, wire })
}

/// A whole run: brokers, a configuration, up to six records, and up to three faults of each kind.
///
/// ```
/// use candor_sim::strategies::plans;
/// use proptest::prelude::*;
/// proptest!(|(plan in plans())| prop_assert!(!plan.wishes.is_empty()));
/// ```
pub fn plans() -> impl Strategy<Value = Plan> {
    let faults = (vec(broker_faults(), 0..4), vec(wire_faults(), 0..4));
    (profiles(), configs(plan::BOOTSTRAP), vec(wishes(), 1..7), faults).prop_map(
        |(profile, config, wishes, (broker_faults, wire_faults))| Plan {
            profile,
            config,
            wishes,
            broker_faults,
            wire_faults,
        },
    )
}
