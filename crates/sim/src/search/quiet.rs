//! The quiet phase: faults stop, everything arrives, and everything must end.

use crate::judge::{Anomaly, Class, Said};

use super::fingerprint::Seen;
use super::machine::Machine;
use super::scope::{Plan, Scope};
use super::step::Step;
use super::world::{Taken, World};

/// More steps than any quiet phase needs.
const MANY: usize = 500;

/// What happens in a quiet phase, most urgent first. Old frames arrive before new ones.
fn next_steps<M: Machine>(world: &World<M>) -> Vec<Step> {
    let mut steps = vec![Step::Learn, Step::Replicate];
    for index in (0_u8..).take(world.flights.len()) {
        steps.push(Step::Deliver(index));
    }
    for index in (0_u8..).take(world.flights.len()) {
        steps.push(Step::Answer(index));
    }
    steps.extend([Step::Follow, Step::Append, Step::Offer]);
    steps
}

/// Runs the quiet phase of a state. States from which one is known to end well are `calm`.
pub(super) fn ends_well<M: Machine>(
    scope: &Scope,
    world: &mut World<M>,
    calm: &mut Seen,
) -> Result<(), Anomaly> {
    world.calm_down();
    world.note(|| "-- from here on nothing goes wrong".to_owned());
    if !run(scope, world, calm)? {
        return Ok(());
    }
    let patient = scope.expires_ms.is_some() || scope.linger_ms + scope.backoff_ms > 0;
    if !world.machine.is_idle() && (world.refusing || patient) {
        // Somebody refuses for good, or batches wait: time ends it.
        while !world.machine.is_idle() && world.take(scope, Step::Tick)? == Taken::Yes {
            if !run(scope, world, calm)? {
                return Ok(());
            }
        }
    }
    if !world.machine.is_idle() {
        let stuck = world.watch.untold().chain(world.watch.unresolved()).next();
        let hung = Anomaly::new(Class::Hung);
        return Err(stuck.map_or(hung, |record| hung.record(record)));
    }
    if !heals(scope, world, calm)? {
        return Ok(());
    }
    world.last_judgement(scope)
}

/// A fresh record is delivered, unless the lane stopped and said so, or was closed. `false`: as for [`run`].
fn heals<M: Machine>(
    scope: &Scope,
    world: &mut World<M>,
    calm: &mut Seen,
) -> Result<bool, Anomaly> {
    if world.machine.is_stopped() && !scope.limits.stops {
        return Err(Anomaly::new(Class::NotHealed));
    }
    if world.machine.is_stopped() || world.is_closed() {
        return Ok(true);
    }
    world.refuse(None);
    let fresh = world.sent as u64;
    world.note(|| format!("-- the caller sends record {fresh}"));
    let due_ms = world.elapsed_ms() + Plan::LONG.due_ms;
    world.send_now(Plan { due_ms, stamped_ago_ms: -(world.elapsed_ms() as i64), bad: false })?;
    if !run(scope, world, calm)? {
        return Ok(false);
    }
    while scope.linger_ms + scope.backoff_ms > 0
        && world.watch.verdict(fresh).is_none()
        && world.take(scope, Step::Tick)? == Taken::Yes
    {
        if !run(scope, world, calm)? {
            return Ok(false);
        }
    }
    match world.watch.verdict(fresh) {
        Some(Said::Delivered(_)) => Ok(true),
        // What it was answered made the lane stop.
        _ if world.machine.is_stopped() && scope.limits.stops => Ok(true),
        Some(Said::NotDelivered | Said::Unknown) | None => {
            Err(Anomaly::new(Class::NotHealed).record(fresh))
        }
    }
}

/// Steps until nothing happens without time passing. `false`: a state was reached that is known
/// to end well.
fn run<M: Machine>(scope: &Scope, world: &mut World<M>, calm: &mut Seen) -> Result<bool, Anomaly> {
    for _ in 0..MANY {
        if world.notes.is_none() && !calm.insert(world.fingerprint(true)) {
            return Ok(false);
        }
        if !step(scope, world)? {
            return Ok(true);
        }
    }
    Err(Anomaly::new(Class::Busy))
}

/// Takes the first step that changes something.
fn step<M: Machine>(scope: &Scope, world: &mut World<M>) -> Result<bool, Anomaly> {
    for step in next_steps(world) {
        let at = world.notes.as_ref().map(Vec::len);
        world.note(|| step.to_string());
        if world.take(scope, step)? == Taken::Yes {
            return Ok(true);
        }
        if let (Some(notes), Some(at)) = (&mut world.notes, at) {
            notes.truncate(at);
        }
    }
    Ok(false)
}
