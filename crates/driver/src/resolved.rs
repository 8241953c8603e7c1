//! Waiting for what became of an `Unknown`.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use candor_core::{NeverReason, Offset};

use crate::slots;
use crate::verdict::{At, Never, NotDelivered, Resolution, Unknown, WhyNot};

/// The future of [`Unknown::resolved`]. Always ends: at the latest when the producer closes, or its
/// driver future is dropped.
///
/// ```no_run
/// # async fn example(u: candor_driver::Unknown) {
/// eprintln!("may be written; later: {}", u.resolved().await);
/// # }
/// ```
#[must_use = "futures do nothing unless awaited"]
#[derive(Debug)]
pub struct Resolved(Unknown);

impl Resolved {
    pub(crate) const fn new(unknown: Unknown) -> Self {
        Self(unknown)
    }

    fn told(&self, resolution: candor_core::Resolution) -> Resolution {
        let (topic, partition) = self.0.place();
        match resolution {
            candor_core::Resolution::Delivered { offset } => Resolution::Delivered(At {
                topic,
                partition: partition.unwrap_or_default(),
                offset: offset.map(Offset::get),
            }),
            candor_core::Resolution::NotDelivered(proof) => {
                Resolution::NotDelivered(NotDelivered {
                    topic,
                    partition,
                    why: WhyNot::Proven(proof),
                })
            }
            candor_core::Resolution::Never { reason, facts } => {
                Resolution::Never(Never { topic, partition, reason, facts: Some(facts) })
            }
        }
    }

    fn driver_gone(&self) -> Resolution {
        let (topic, partition) = self.0.place();
        let facts = self.0.facts();
        Resolution::Never(Never { topic, partition, reason: NeverReason::Closed, facts })
    }
}

impl Future for Resolved {
    type Output = Resolution;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Resolution> {
        let (shared, ticket) = (Arc::clone(self.0.shared()), self.0.ticket());
        let claimed =
            shared.with(|state| state.slots.claim_resolution(ticket, cx, &mut state.wakers));
        match claimed {
            Poll::Pending => Poll::Pending,
            Poll::Ready(resolved) => {
                self.0.settle();
                Poll::Ready(match resolved {
                    slots::Resolved::Told(resolution) => self.told(resolution),
                    slots::Resolved::DriverGone => self.driver_gone(),
                })
            }
        }
    }
}
