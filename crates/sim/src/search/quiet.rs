//! The quiet phase: faults stop, everything arrives, and everything must end.

use std::sync::Mutex;

use crate::judge::{Anomaly, Class, Said};

use super::explore::Shown;
use super::fingerprint::{Fingerprint, Shared};
use super::machine::Machine;
use super::scope::{Plan, Scope};
use super::step::Step;
use super::world::{Taken, World};

/// More steps than any quiet phase needs, between two wakeups.
const MANY: usize = 300;

/// More wakeups than any quiet phase needs.
const MOST_TICKS: usize = 1_000;

/// How a stretch of the quiet phase ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stretch {
    /// Nothing happens any more without time passing.
    Still,
    /// A state was reached from which the quiet phase is known to end well.
    Known,
}

/// Runs the quiet phase of a state. `calm` holds the states from which one is known to end well.
pub(super) fn ends_well<M: Machine>(
    scope: &Scope,
    world: &mut World<M>,
    calm: &Shared,
    shown: &Mutex<Shown>,
) -> Result<(), Anomaly> {
    world.note(|| "-- from here on nothing goes wrong".to_owned());
    world.calm_down()?;
    let mut quiet = Quiet { scope, world, calm, shown, way: Vec::new(), orphans: false };
    let reached = quiet.run()? == Stretch::Still;
    let way = quiet.way;
    if world.notes.is_none() && reached {
        Shown::note_end(shown, world.end());
    }
    for print in way {
        calm.insert(print);
    }
    Ok(())
}

struct Quiet<'q, M> {
    scope: &'q Scope,
    world: &'q mut World<M>,
    calm: &'q Shared,
    shown: &'q Mutex<Shown>,
    /// The states that this run went through.
    way: Vec<Fingerprint>,
    /// Frames on connections that the lane no longer uses arrive as well.
    orphans: bool,
}

impl<M: Machine> Quiet<'_, M> {
    fn run(&mut self) -> Result<Stretch, Anomaly> {
        let scope = self.scope;
        if self.stretch()? == Stretch::Known {
            return Ok(Stretch::Known);
        }
        // L1: nobody waits for old connections, unless somebody refuses for good or time is needed.
        let waits = scope.expires_ms.is_some() || scope.linger_ms + scope.backoff_ms > 0;
        if !self.world.refusing
            && !waits
            && let Some(record) = self.world.watch.untold().next()
        {
            return Err(Anomaly::new(Class::Hung).record(record));
        }
        self.world.note(|| "-- old connections answer".to_owned());
        self.orphans = true;
        if self.stretch()? == Stretch::Known {
            return Ok(Stretch::Known);
        }
        // Somebody refuses for good, or batches wait: then time ends it.
        for _ in 0..MOST_TICKS {
            let patient = self.world.refusing || waits;
            if self.world.machine.is_idle()
                || !patient
                || self.world.take(scope, Step::Tick)? == Taken::No
            {
                break;
            }
            if self.stretch()? == Stretch::Known {
                return Ok(Stretch::Known);
            }
        }
        if !self.world.machine.is_idle() {
            let watch = &self.world.watch;
            let stuck = watch.untold().chain(watch.unresolved()).next();
            let hung = Anomaly::new(Class::Hung);
            return Err(stuck.map_or(hung, |record| hung.record(record)));
        }
        match self.heal()? {
            Stretch::Known => Ok(Stretch::Known),
            Stretch::Still => self.world.last_judgement(scope).map(|()| Stretch::Still),
        }
    }

    /// A fresh record is delivered, unless the lane may stop and did, or was closed.
    fn heal(&mut self) -> Result<Stretch, Anomaly> {
        let (scope, may_stop) = (self.scope, self.scope.limits.stops);
        if self.world.machine.is_stopped() && !may_stop {
            return Err(Anomaly::new(Class::NotHealed));
        }
        if self.world.machine.is_stopped() || self.world.is_closed() {
            return Ok(Stretch::Still);
        }
        self.world.refuse(None);
        let fresh = self.world.sent as u64;
        self.world.note(|| format!("-- the caller sends record {fresh}"));
        let elapsed = self.world.elapsed_ms();
        let due_ms = elapsed + Plan::LONG.due_ms;
        self.world.send_now(Plan { due_ms, stamped_ago_ms: -(elapsed as i64), bad: false })?;
        for _ in 0..MOST_TICKS {
            if self.stretch()? == Stretch::Known {
                return Ok(Stretch::Known);
            }
            let waits = scope.linger_ms + scope.backoff_ms > 0;
            let told = self.world.watch.verdict(fresh);
            match told {
                Some(Said::Delivered(_)) => return Ok(Stretch::Still),
                // What it was answered made the lane stop.
                _ if self.world.machine.is_stopped() && may_stop => return Ok(Stretch::Still),
                None if waits && self.world.take(scope, Step::Tick)? == Taken::Yes => {}
                Some(Said::NotDelivered | Said::Unknown) | None => {
                    break;
                }
            }
        }
        Err(Anomaly::new(Class::NotHealed).record(fresh))
    }

    /// Steps until nothing happens without time passing.
    fn stretch(&mut self) -> Result<Stretch, Anomaly> {
        for _ in 0..MANY {
            if self.world.notes.is_none() {
                let print = self.world.calm_fingerprint(self.orphans);
                if self.calm.contains(print) {
                    return Ok(Stretch::Known);
                }
                self.way.push(print);
            }
            if !self.step()? {
                return Ok(Stretch::Still);
            }
        }
        Err(Anomaly::new(Class::Busy))
    }

    /// Takes the first step that changes something.
    fn step(&mut self) -> Result<bool, Anomaly> {
        for step in next_steps(self.world, self.orphans) {
            let at = self.world.notes.as_ref().map(Vec::len);
            self.world.note(|| step.to_string());
            if self.world.take(self.scope, step)? == Taken::Yes {
                Shown::note_contest(self.shown, self.world.contest.take());
                return Ok(true);
            }
            if let (Some(notes), Some(at)) = (&mut self.world.notes, at) {
                notes.truncate(at);
            }
        }
        Ok(false)
    }
}

/// What happens in a quiet phase, most urgent first.
fn next_steps<M: Machine>(world: &World<M>, orphans: bool) -> Vec<Step> {
    let mut steps = vec![Step::Learn, Step::Replicate];
    let flies = |flight: &u8| orphans || world.is_current(*flight);
    let flights = || (0_u8..).take(world.flights.len()).filter(flies);
    steps.extend(flights().map(Step::Deliver));
    steps.extend(flights().map(Step::Answer));
    steps.extend([Step::Follow, Step::Append, Step::Offer]);
    steps
}
