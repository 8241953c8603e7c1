//! Schedules for a single lane: every event of [`candor_core::Event`], in any order that the
//! contract allows.
//!
//! The answers of a schedule are legal, not truthful: there is no broker, and so no log to compare
//! with. What can be checked needs none: one verdict per record, by its deadline, and one resolution
//! per `Unknown`.
//!
//! ```
//! use std::collections::BTreeMap;
//! use candor_core::Action;
//! use candor_sim::strategies::lanes::{Player, schedules};
//! use proptest::prelude::*;
//!
//! proptest!(ProptestConfig::with_cases(50), |(schedule in schedules())| {
//!     let mut verdicts = BTreeMap::new();
//!     let mut player = Player::default();
//!     for step in schedule.iter().chain(&Player::END) {
//!         for action in player.play(step) {
//!             let Action::Settled(settled) = action else { continue };
//!             for (ticket, verdict) in settled.verdicts() {
//!                 prop_assert_eq!(verdicts.insert(ticket, verdict), None);
//!             }
//!         }
//!     }
//!     prop_assert_eq!(verdicts.len() as u64, player.accepted());
//! });
//! ```

use candor_core::testing::Counted;
use candor_core::{
    Action, Answer, Append, AttemptId, Event, HandedOver, Identity, Instant, Lane, LaneConfig,
    LeaderEpoch, PartitionResponse, ProducerId, RouteId, Span, Ticket,
};
use proptest::collection::vec;
use proptest::prelude::{Just, Strategy, any, prop_oneof};
use proptest::sample::select;

/// When schedules begin: 2023-11-14.
const BEGIN: Instant = Instant::from_millis(1_700_000_000_000);

/// Something that happens to a lane.
///
/// ```
/// use candor_sim::strategies::lanes::Step;
/// assert_ne!(Step::Offer, Step::Flush);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// A record comes.
    Append {
        /// Its verdict is due after so many milliseconds.
        deadline_ms: u64,
    },
    /// The caller no longer waits for one of the records.
    Cancel(u8),
    /// One of the records shall never be written, or be known to be.
    Revoke(u8),
    /// What is in doubt is given up.
    Abandon,
    /// The lane may offer a batch, if it has one.
    Offer,
    /// One of the open attempts is answered.
    Answer {
        /// Which, counted from the oldest; beyond the last, from the start again.
        attempt: u8,
        /// The error code; 0 appends.
        code: i16,
    },
    /// One of the open attempts is handed over as a whole.
    Handed(u8),
    /// The connection of one of the open attempts is over.
    Lost {
        /// Which.
        attempt: u8,
        /// Certainly less than the whole left.
        partly: bool,
    },
    /// Another connection leads to the leader.
    Reconnected,
    /// Another broker leads.
    LeaderMoved,
    /// Nobody leads.
    NoLeader,
    /// The leader is confirmed.
    Confirmed,
    /// A producer id comes, if the lane asked for one.
    Identity,
    /// Time passes, in milliseconds.
    Pass(u64),
    /// Time passes until the lane wants to be called.
    Sleep,
    /// What waits is to be sent.
    Flush,
    /// Nothing may be offered.
    Hold,
    /// It may again.
    Release,
    /// The topic was made anew.
    Recreated,
    /// Memory is needed for others.
    Shed,
    /// The lane is to end within so many milliseconds.
    Close(u64),
}

/// One step; what makes records arrive is as frequent as what goes wrong.
///
/// ```
/// use candor_sim::strategies::lanes::{Step, steps};
/// use proptest::prelude::*;
/// proptest!(|(step in steps())| prop_assert_ne!(step, Step::Pass(0)));
/// ```
pub fn steps() -> impl Strategy<Value = Step> {
    let codes = select(vec![0, 0, 0, 6, 7, 19, 10, 45, 59, 3, 20, 87, -1]);
    let calm = prop_oneof![
        6 => select(vec![2_000, 30_000, 50]).prop_map(|deadline_ms| Step::Append { deadline_ms }),
        8 => Just(Step::Offer),
        8 => (0..3_u8, codes).prop_map(|(attempt, code)| Step::Answer { attempt, code }),
        3 => Just(Step::Reconnected),
        3 => Just(Step::Identity),
        3 => Just(Step::Sleep),
        2 => select(vec![1_u64, 60, 1_500, 40_000]).prop_map(Step::Pass),
        1 => Just(Step::Flush),
    ];
    let rough = prop_oneof![
        2 => (0..3_u8, any::<bool>())
            .prop_map(|(attempt, partly)| Step::Lost { attempt, partly }),
        1 => (0..3_u8).prop_map(Step::Handed),
        1 => (0..8_u8).prop_map(Step::Cancel),
        2 => (0..8_u8).prop_map(Step::Revoke),
        1 => Just(Step::LeaderMoved),
        1 => Just(Step::NoLeader),
        1 => Just(Step::Confirmed),
        1 => Just(Step::Hold),
        1 => Just(Step::Release),
        1 => prop_oneof![5 => Just(Step::Sleep), 1 => Just(Step::Recreated), 1 => Just(Step::Shed)],
        1 => prop_oneof![2 => Just(Step::Sleep), 1 => Just(Step::Abandon)],
        1 => prop_oneof![5 => Just(Step::Sleep), 1 => (0..3_000_u64).prop_map(Step::Close)],
    ];
    prop_oneof![3 => calm, 1 => rough]
}

/// Up to forty steps.
///
/// ```
/// use candor_sim::strategies::lanes::schedules;
/// use proptest::prelude::*;
/// proptest!(|(schedule in schedules())| prop_assert!(schedule.len() < 40));
/// ```
pub fn schedules() -> impl Strategy<Value = Vec<Step>> {
    vec(steps(), 0..40)
}

/// Plays steps to a lane. A step that the contract does not allow as things are is left out.
///
/// ```
/// use candor_core::Action;
/// use candor_sim::strategies::lanes::{Player, Step};
/// let mut player = Player::default();
/// player.play(&Step::Append { deadline_ms: 50 });
/// let told = player.play(&Step::Pass(50));
/// assert!(matches!(told[..], [Action::Settled(_)]));
/// ```
#[derive(Debug)]
pub struct Player {
    lane: Lane<Counted>,
    now: Instant,
    accepted: u64,
    open: Vec<AttemptId>,
    route: Option<RouteId>,
    routes: u64,
    epoch: i32,
    wants_identity: bool,
    ids: i64,
    end: i64,
}

impl Default for Player {
    fn default() -> Self {
        Self::new(LaneConfig { batch_size: 2, ..LaneConfig::default() })
    }
}

impl Player {
    /// The end of everything: play it behind a schedule, and every record has its last word.
    pub const END: [Step; 2] = [Step::Close(0), Step::Pass(0)];

    /// A fresh lane.
    #[must_use]
    pub fn new(config: LaneConfig) -> Self {
        Self {
            lane: Lane::new(config, BEGIN),
            now: BEGIN,
            accepted: 0,
            open: Vec::new(),
            route: None,
            routes: 0,
            epoch: 0,
            wants_identity: false,
            ids: 0,
            end: 0,
        }
    }

    /// The lane as it stands.
    #[must_use]
    pub const fn lane(&self) -> &Lane<Counted> {
        &self.lane
    }

    /// The time.
    #[must_use]
    pub const fn now(&self) -> Instant {
        self.now
    }

    /// How many records the lane took. Their tickets count from 0.
    #[must_use]
    pub const fn accepted(&self) -> u64 {
        self.accepted
    }

    /// Plays one step; gives everything that the lane says to it.
    pub fn play(&mut self, step: &Step) -> Vec<Action> {
        match step {
            Step::Append { deadline_ms } => self.append(*deadline_ms),
            Step::Offer => self.offer(),
            Step::Pass(millis) => self.now = self.now + Span::from_millis(*millis),
            Step::Sleep => {
                self.now = self.lane.deadline().map_or(self.now, |deadline| deadline.at);
            }
            Step::Answer { .. }
            | Step::Cancel(_)
            | Step::Revoke(_)
            | Step::Abandon
            | Step::Handed(_)
            | Step::Lost { .. }
            | Step::Reconnected
            | Step::LeaderMoved
            | Step::NoLeader
            | Step::Confirmed
            | Step::Identity
            | Step::Flush
            | Step::Hold
            | Step::Release
            | Step::Recreated
            | Step::Shed
            | Step::Close(_) => {
                if let Some(event) = self.event(step) {
                    // A lane that stopped or closed refuses some events, and says so.
                    let _refused = self.lane.handle(self.now, event);
                }
            }
        }
        let mut told = Vec::new();
        while let Some(action) = self.lane.poll(self.now) {
            self.wants_identity |= action == Action::NeedIdentity;
            told.push(action);
        }
        told
    }

    /// What a step means as things are; `None`: nothing.
    fn event(&mut self, step: &Step) -> Option<Event<'static, Counted>> {
        Some(match step {
            Step::Cancel(ticket) => Event::Cancel(Ticket(u64::from(*ticket))),
            Step::Revoke(ticket) => Event::Revoke(Ticket(u64::from(*ticket))),
            Step::Abandon => Event::Abandon,
            Step::Answer { attempt, code } => {
                let response = match code {
                    0 => {
                        self.end += 10;
                        PartitionResponse::appended(self.end)
                    }
                    code => PartitionResponse::error(*code),
                };
                let attempt = self.take(*attempt)?;
                Event::Answered { attempt, answer: Answer::Response(response) }
            }
            Step::Handed(attempt) => Event::Handed { attempt: self.open[self.place(*attempt)?] },
            Step::Lost { attempt, partly } => {
                let handed = if *partly { HandedOver::Partly } else { HandedOver::PerhapsWhole };
                Event::Ended { attempt: self.take(*attempt)?, handed }
            }
            Step::Reconnected | Step::LeaderMoved => {
                self.epoch += i32::from(*step == Step::LeaderMoved);
                self.routes += 1;
                self.route = Some(RouteId(self.routes));
                Event::Leader { route: self.route, epoch: LeaderEpoch(self.epoch) }
            }
            Step::NoLeader => {
                self.route = None;
                Event::Leader { route: None, epoch: LeaderEpoch(self.epoch) }
            }
            Step::Confirmed => Event::LeaderConfirmed { epoch: LeaderEpoch(self.epoch) },
            Step::Identity => {
                if !core::mem::take(&mut self.wants_identity) {
                    return None;
                }
                self.ids += 1;
                Event::Identity(Identity::fresh(ProducerId::new(self.ids)?))
            }
            Step::Flush => Event::Flush,
            Step::Hold => Event::Hold,
            Step::Release => Event::Release,
            Step::Recreated => Event::TopicRecreated,
            Step::Shed => Event::Shed,
            Step::Close(millis) => Event::Close { deadline: self.now + Span::from_millis(*millis) },
            Step::Append { .. } | Step::Offer | Step::Pass(_) | Step::Sleep => return None,
        })
    }

    fn append(&mut self, deadline_ms: u64) {
        let append = Append {
            ticket: Ticket(self.accepted),
            born: self.now,
            deadline: self.now + Span::from_millis(deadline_ms),
            timestamp: self.now.as_millis(),
            record: (self.accepted % 65_536) as u16,
        };
        if self.lane.handle(self.now, Event::Append(append)).is_ok() {
            self.accepted += 1;
        }
    }

    fn offer(&mut self) {
        let Some(route) = self.route else { return };
        if let Some(offer) = self.lane.offer(self.now, route, usize::MAX) {
            self.open.push(offer.attempt);
        }
    }

    fn place(&self, attempt: u8) -> Option<usize> {
        usize::from(attempt).checked_rem(self.open.len())
    }

    fn take(&mut self, attempt: u8) -> Option<AttemptId> {
        self.place(attempt).map(|place| self.open.remove(place))
    }
}
