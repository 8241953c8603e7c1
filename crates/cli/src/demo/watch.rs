//! Watching faults act.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use candor_sim::serve::{Fault, Server};

use super::plan::{Plan, describe};

/// A fault that acted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Act {
    /// Since the beginning.
    pub(crate) at: Duration,
    /// For people.
    pub(crate) what: String,
}

/// Does something, and tells which faults acted meanwhile.
pub(crate) fn watch<T>(
    server: &Server,
    plan: &Plan,
    began: Instant,
    act: impl FnOnce() -> T,
) -> (Vec<Act>, T) {
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        let watcher = scope.spawn(|| note(server, plan, began, &over));
        let done = act();
        over.store(true, Ordering::SeqCst);
        // Looks at nothing, and makes the watcher look again.
        server.with(|_, _| ());
        (watcher.join().unwrap_or_default(), done)
    })
}

fn note(server: &Server, plan: &Plan, began: Instant, over: &AtomicBool) -> Vec<Act> {
    let mut acts = Vec::new();
    let mut waiting: Vec<&Fault> = plan.faults().iter().collect();
    server.wait_until(|net| {
        waiting.retain(|fault| {
            let waits = net.faults().contains(fault);
            if !waits {
                acts.push(Act { at: began.elapsed(), what: describe(fault) });
            }
            waits
        });
        over.load(Ordering::SeqCst)
    });
    acts
}
