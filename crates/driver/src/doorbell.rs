//! How the driver is woken: by producers, by sockets, by itself.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Wake, Waker};

/// Wakes the driver's task, once per turn however often it is rung.
#[derive(Debug, Default)]
pub(crate) struct Doorbell {
    rung: AtomicBool,
    task: Mutex<Option<Waker>>,
}

impl Doorbell {
    /// The driver is about to look at everything; who rings from now on wakes it again.
    pub(crate) fn answer(&self, task: &Waker) {
        let mut seat = self.task.lock().unwrap_or_else(PoisonError::into_inner);
        let before = match &mut *seat {
            Some(known) if known.will_wake(task) => None,
            known => known.replace(task.clone()),
        };
        self.rung.store(false, Ordering::SeqCst);
        drop(seat);
        // What a waker holds is dropped outside of the lock.
        drop(before);
    }

    /// Wakes the driver, unless it was rung already.
    pub(crate) fn ring(&self) {
        if self.rung.swap(true, Ordering::SeqCst) {
            return;
        }
        let task = self.task.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some(task) = task {
            task.wake();
        }
    }
}

/// One thing the driver may look at again: a direction of a socket, or an attempt to connect. It is
/// the waker that the thing gets, so that a turn looks only at what moved.
#[derive(Debug)]
pub(crate) struct Flag {
    up: AtomicBool,
    doorbell: Arc<Doorbell>,
}

/// A flag and the waker that raises it.
#[derive(Debug)]
pub(crate) struct Readiness {
    flag: Arc<Flag>,
    waker: Waker,
}

impl Readiness {
    /// Up from the start: the thing was never looked at.
    pub(crate) fn new(doorbell: &Arc<Doorbell>) -> Self {
        let flag = Arc::new(Flag { up: AtomicBool::new(true), doorbell: Arc::clone(doorbell) });
        Self { waker: Waker::from(Arc::clone(&flag)), flag }
    }

    pub(crate) fn is_up(&self) -> bool {
        self.flag.up.load(Ordering::SeqCst)
    }

    /// Lowers the flag, before the thing is looked at.
    pub(crate) fn lower(&self) {
        self.flag.up.store(false, Ordering::SeqCst);
    }

    /// There is more to see than was looked at.
    pub(crate) fn raise(&self) {
        self.flag.up.store(true, Ordering::SeqCst);
    }

    pub(crate) const fn waker(&self) -> &Waker {
        &self.waker
    }
}

impl Wake for Flag {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.up.store(true, Ordering::SeqCst);
        self.doorbell.ring();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicUsize;

    #[derive(Default)]
    struct Count(AtomicUsize);

    impl Wake for Count {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }

    #[test]
    fn it_rings_once_until_it_is_answered() {
        let (bell, count) = (Doorbell::default(), Arc::new(Count::default()));
        bell.answer(&Waker::from(Arc::clone(&count)));
        bell.ring();
        bell.ring();
        assert_eq!(count.0.load(Ordering::SeqCst), 1);
        bell.answer(&Waker::from(Arc::clone(&count)));
        bell.ring();
        assert_eq!(count.0.load(Ordering::SeqCst), 2);
    }

    #[test]
    fn a_flag_tells_who_moved() {
        let bell = Arc::new(Doorbell::default());
        let (a, b) = (Readiness::new(&bell), Readiness::new(&bell));
        a.lower();
        b.lower();
        a.waker().wake_by_ref();
        assert!(a.is_up() && !b.is_up());
    }
}
