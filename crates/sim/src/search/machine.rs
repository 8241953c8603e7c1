//! What the search drives: the shipped lane under some rules, or a control that is wrong on purpose.

use std::fmt::Debug;
use std::hash::{Hash, Hasher};

use candor_core::rules::Rules;
use candor_core::testing::{Counted, Preset};
use candor_core::{
    Action, Deadline, Event, Instant, Lane, LaneConfig, Misuse, Names, Offer, RouteId,
};

/// The face of a lane, as far as schedules need it.
///
/// ```
/// use candor_core::{Instant, Lane, LaneConfig, testing::Counted};
/// use candor_sim::search::Machine;
/// let lane: Lane<Counted> = Machine::start(LaneConfig::default(), Instant::EPOCH, None);
/// assert!(Machine::is_idle(&lane));
/// ```
pub trait Machine: Clone + Debug + Send {
    /// A lane without records, or in the middle of an epoch.
    fn start(config: LaneConfig, now: Instant, preset: Option<Preset>) -> Self;
    /// Takes a fact or a wish.
    ///
    /// # Errors
    /// What the machine calls a misuse: in a search this convicts it.
    fn handle(&mut self, now: Instant, event: Event<'_, Counted>) -> Result<(), Misuse>;
    /// The next verdict, notice or question.
    fn poll(&mut self, now: Instant) -> Option<Action>;
    /// The next batch for this route.
    fn offer(&mut self, now: Instant, route: RouteId, max: usize) -> Option<Offer<Counted>>;
    /// Whether [`offer`](Self::offer) would give something now.
    fn offerable(&self, now: Instant) -> bool;
    /// When to poll again.
    fn deadline(&self) -> Option<Deadline>;
    /// Whether everything was told.
    fn is_idle(&self) -> bool;
    /// Whether it stopped for good.
    fn is_stopped(&self) -> bool;
    /// Another partition of the same producer lost its identity. It is no business of a lane.
    fn neighbour_bumps(&mut self) {}
    /// Feeds the canonical state into a hasher, connections and leader epochs by these names.
    fn fingerprint(&self, now: Instant, names: Names<'_>, into: &mut impl Hasher);
}

impl<R: Rules + Send> Machine for Lane<Counted, R> {
    fn start(config: LaneConfig, now: Instant, preset: Option<Preset>) -> Self {
        match preset {
            Some(preset) => Self::preset(config, now, preset),
            None => Self::new(config, now),
        }
    }

    fn handle(&mut self, now: Instant, event: Event<'_, Counted>) -> Result<(), Misuse> {
        Self::handle(self, now, event)
    }

    fn poll(&mut self, now: Instant) -> Option<Action> {
        Self::poll(self, now)
    }

    fn offer(&mut self, now: Instant, route: RouteId, max: usize) -> Option<Offer<Counted>> {
        Self::offer(self, now, route, max)
    }

    fn offerable(&self, now: Instant) -> bool {
        Self::offerable(self, now)
    }

    fn deadline(&self) -> Option<Deadline> {
        Self::deadline(self)
    }

    fn is_idle(&self) -> bool {
        Self::is_idle(self)
    }

    fn is_stopped(&self) -> bool {
        Self::is_stopped(self)
    }

    fn fingerprint(&self, now: Instant, names: Names<'_>, into: &mut impl Hasher) {
        self.digest_by(now, names).hash(into);
    }
}
