//! Arbitrary schedules: what happens, and what the broker is in the mood for.

use proptest::prelude::*;

use super::broker::Kind;

/// What the broker does with a request before or after it looked at the sequence.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Mood {
    Honest,
    /// Refuses before the append.
    Definite(i16),
    /// 87 that names this record.
    Names(u8),
    /// Appends (or tries to), and answers this code.
    AppendsBut(i16),
    /// Does not look at it, and answers a code that proves nothing.
    Doubtful(i16),
    AppendsWithoutEntry,
}

#[derive(Clone, Debug)]
pub(crate) enum Step {
    Append {
        deadline: u64,
        flush: bool,
        old: bool,
    },
    Cancel(u8),
    Revoke(u8),
    /// What is under way is lost, and one of its records is revoked while others wait behind.
    Contest {
        behind: u8,
        end_old: bool,
        newer: u64,
    },
    Abandon,
    Offer,
    /// Some records, and all that may be offered.
    Burst(u8),
    /// All goes well for a moment.
    Calm,
    /// The broker takes the next request of a connection (0: the newest), or a late copy.
    Process {
        which: u8,
        mood: Mood,
    },
    /// The lane hears the next answer of a connection.
    Answer(u8),
    Lose {
        partly: u8,
    },
    NewRoute {
        epoch: bool,
        end_old: bool,
    },
    NoRoute,
    NewEpoch,
    SameRouteBack,
    /// The new leader is none, and says 45 to what it lacks.
    StaleLeader,
    /// All records are deleted; the broker remembers us.
    Purge,
    /// The broker looks for producers whose newest batch is a day old.
    Expire,
    /// Nothing being in doubt, another replica leads that never saw us.
    Forget,
    Confirm,
    ConfirmOther,
    Identity,
    Hold,
    Release,
    Flush,
    Wait(u64),
    TimeGoesBack,
    Restart,
    Shed,
    Recreate,
    Close(u64),
}

pub(crate) fn mood() -> impl Strategy<Value = Mood> {
    prop_oneof![
        6 => Just(Mood::Honest),
        3 => prop::sample::select(vec![19, 10, 87, 29, 2, 18]).prop_map(Mood::Definite),
        1 => (0u8..4).prop_map(Mood::Names),
        1 => prop::bool::weighted(0.1).prop_map(|yes| Mood::Definite(if yes { 90 } else { 19 })),
        2 => prop::sample::select(vec![7, 6, 3, 20, 56, -1, 999]).prop_map(Mood::AppendsBut),
        2 => prop::sample::select(vec![6, 3, 56, -1]).prop_map(Mood::Doubtful),
        1 => Just(Mood::AppendsWithoutEntry),
    ]
}

pub(crate) fn step() -> impl Strategy<Value = Step> {
    let millis = prop::sample::select(vec![0, 1, 5, 60, 150, 400, 1_500, 8_000]);
    let deadline = prop::sample::select(vec![50, 300, 300, 2_000, 2_000, 30_000, 30_000, 120_000]);
    prop_oneof![
        6 => (deadline, prop::bool::weighted(0.7), prop::bool::weighted(0.1))
            .prop_map(|(deadline, flush, old)| Step::Append { deadline, flush, old }),
        3 => (0u8..8).prop_map(Step::Cancel),
        5 => (0u8..8).prop_map(Step::Revoke),
        16 => (0u8..8, any::<bool>(), prop::sample::select(vec![300, 2_500, 30_000]))
            .prop_map(|(behind, end_old, newer)| Step::Contest { behind, end_old, newer }),
        1 => prop::bool::weighted(0.3)
            .prop_map(|yes| if yes { Step::Abandon } else { Step::Offer }),
        14 => Just(Step::Offer),
        6 => (1u8..6).prop_map(Step::Burst),
        3 => Just(Step::Calm),
        20 => (prop::sample::select(vec![0, 0, 0, 1, 2, 7]), mood())
            .prop_map(|(which, mood)| Step::Process { which, mood }),
        20 => prop::sample::select(vec![0, 0, 0, 1, 2]).prop_map(Step::Answer),
        2 => (0u8..4).prop_map(|partly| Step::Lose { partly }),
        3 => any::<(bool, bool)>()
            .prop_map(|(epoch, end_old)| Step::NewRoute { epoch, end_old }),
        1 => Just(Step::NoRoute),
        1 => Just(Step::NewEpoch),
        1 => Just(Step::SameRouteBack),
        1 => Just(Step::StaleLeader),
        1 => prop::bool::weighted(0.3).prop_map(|yes| if yes { Step::Purge } else { Step::Offer }),
        1 => Just(Step::Forget),
        2 => Just(Step::Expire),
        2 => Just(Step::Confirm),
        1 => Just(Step::ConfirmOther),
        2 => Just(Step::Identity),
        1 => Just(Step::Hold),
        1 => Just(Step::Release),
        1 => Just(Step::Flush),
        8 => millis.prop_map(Step::Wait),
        1 => Just(Step::TimeGoesBack),
        1 => Just(Step::Restart),
        1 => prop::bool::weighted(0.15).prop_map(|yes| if yes { Step::Shed } else { Step::Offer }),
        1 => prop::bool::weighted(0.1)
            .prop_map(|yes| if yes { Step::Recreate } else { Step::Offer }),
        1 => (prop::bool::weighted(0.05), 0u64..3_000)
            .prop_map(|(yes, t)| if yes { Step::Close(t) } else { Step::Offer }),
    ]
}

/// Where the lane starts: fresh, or in the middle of an epoch.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Start {
    pub(crate) preset: Option<(i16, i32)>,
    pub(crate) kind: Kind,
    pub(crate) batch_size: usize,
    /// Some records are a day old.
    pub(crate) old: bool,
}

pub(crate) fn start() -> impl Strategy<Value = Start> {
    let epoch = prop::sample::select(vec![0, 3, 32_764, 32_765, 32_766]);
    let next = prop::sample::select(vec![1, 40, i32::MAX - 1, i32::MAX, i32::MAX - 4]);
    let kind = prop::sample::select(vec![Kind::Any, Kind::Any, Kind::Strict, Kind::Old]);
    (prop::option::of((epoch, next)), kind, 1usize..4, prop::bool::weighted(0.3))
        .prop_map(|(preset, kind, batch_size, old)| Start { preset, kind, batch_size, old })
}
