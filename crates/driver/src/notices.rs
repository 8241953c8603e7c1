//! Notices for whoever listens.

use std::collections::{BTreeMap, VecDeque};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use candor_proto::Notice;
use futures_core::Stream;

use crate::shared::Shared;
use crate::slots::Wakers;

/// Notices that wait for one listener; older ones make room.
const BACKLOG: usize = 1024;

/// One listener.
#[derive(Debug, Default)]
struct Feed {
    queue: VecDeque<Notice>,
    missed: u64,
    waker: Option<Waker>,
}

/// All listeners.
#[derive(Debug, Default)]
pub(crate) struct Feeds {
    feeds: BTreeMap<u64, Feed>,
    next: u64,
    ended: bool,
}

impl Feeds {
    pub(crate) fn open(&mut self) -> u64 {
        let id = self.next;
        self.next += 1;
        self.feeds.insert(id, Feed::default());
        id
    }

    pub(crate) fn close(&mut self, id: u64, wakers: &mut Wakers) {
        wakers.retire(self.feeds.remove(&id).and_then(|feed| feed.waker));
    }

    pub(crate) fn push(&mut self, notice: &Notice, wakers: &mut Wakers) {
        for feed in self.feeds.values_mut() {
            if feed.queue.len() == BACKLOG {
                feed.queue.pop_front();
                feed.missed += 1;
            }
            feed.queue.push_back(notice.clone());
            wakers.wake(feed.waker.take());
        }
    }

    /// There will be no more.
    pub(crate) fn end(&mut self, wakers: &mut Wakers) {
        self.ended = true;
        self.feeds.values_mut().for_each(|feed| wakers.wake(feed.waker.take()));
    }

    fn next(&mut self, id: u64, cx: &Context<'_>, wakers: &mut Wakers) -> Poll<Option<Notice>> {
        let Some(feed) = self.feeds.get_mut(&id) else { return Poll::Ready(None) };
        match feed.queue.pop_front() {
            Some(notice) => Poll::Ready(Some(notice)),
            None if self.ended => Poll::Ready(None),
            None => {
                wakers.retire(feed.waker.replace(cx.waker().clone()));
                Poll::Pending
            }
        }
    }
}

/// A stream of what people should know, from the moment it was asked for until the producer is
/// closed. Nothing depends on its being read: beyond 1024 unread notices the oldest are dropped and
/// counted.
///
/// ```no_run
/// # async fn example<R: candor_driver::Runtime>(producer: candor_driver::Producer<R>) {
/// let mut notices = producer.notices();
/// while let Some(notice) = notices.next().await {
///     eprintln!("{notice}");
/// }
/// # }
/// ```
#[must_use = "notices come only to those who read them"]
pub struct Notices {
    shared: Arc<Shared>,
    id: u64,
}

impl Notices {
    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        let id = shared.enter(|state, _| state.feeds.open());
        Self { shared, id }
    }

    /// The next notice; `None` when the producer is closed.
    pub async fn next(&mut self) -> Option<Notice> {
        std::future::poll_fn(|cx| Pin::new(&mut *self).poll_next(cx)).await
    }

    /// How many were dropped because nobody read them in time.
    pub fn missed(&self) -> u64 {
        self.shared.enter(|state, _| state.feeds.feeds.get(&self.id).map_or(0, |feed| feed.missed))
    }
}

impl Stream for Notices {
    type Item = Notice;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Notice>> {
        self.shared.enter(|state, _| state.feeds.next(self.id, cx, &mut state.wakers))
    }
}

impl Drop for Notices {
    fn drop(&mut self) {
        self.shared.enter(|state, _| state.feeds.close(self.id, &mut state.wakers));
    }
}

impl std::fmt::Debug for Notices {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Notices").field("id", &self.id).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn notice() -> Notice {
        Notice::TopicRecreated { topic: "t".into() }
    }

    #[test]
    fn every_listener_hears_everything_from_its_start() {
        let (mut feeds, mut wakers) = (Feeds::default(), Wakers::default());
        let cx = Context::from_waker(Waker::noop());
        let first = feeds.open();
        feeds.push(&notice(), &mut wakers);
        let second = feeds.open();
        feeds.push(&notice(), &mut wakers);
        for id in [first, first, second] {
            assert_eq!(feeds.next(id, &cx, &mut wakers), Poll::Ready(Some(notice())));
        }
        assert_eq!(feeds.next(first, &cx, &mut wakers), Poll::Pending);
        feeds.end(&mut wakers);
        assert_eq!(feeds.next(first, &cx, &mut wakers), Poll::Ready(None));
        feeds.close(first, &mut wakers);
    }

    #[test]
    fn who_does_not_read_misses_the_oldest() {
        let (mut feeds, mut wakers) = (Feeds::default(), Wakers::default());
        let id = feeds.open();
        (0..BACKLOG + 3).for_each(|_| feeds.push(&notice(), &mut wakers));
        assert_eq!((feeds.feeds[&id].missed, feeds.feeds[&id].queue.len()), (3, BACKLOG));
    }
}
