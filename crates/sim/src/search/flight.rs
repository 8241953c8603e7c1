//! A batch on its way: the frame, the broker's work on it, the answer.

use std::hash::{Hash, Hasher};

use candor_core::testing::Counted;
use candor_core::{AttemptId, Offer, Payload, RouteId};

use crate::broker::{Answer, Batch, Names, NodeId, Wait};
use crate::judge::Attempt;

use super::scope::Plan;

/// The records of a batch: up to eight numbers below 256, the first one highest.
pub(super) type Content = u64;

/// The numbers in a content, in order.
pub(super) fn records(content: Content) -> impl Iterator<Item = u64> {
    content.to_be_bytes().into_iter().filter(|byte| *byte != 0).map(u64::from)
}

/// Record `n` of the scenario stands in contents as `n + 1`, so that none is zero.
fn content(batch: &Counted) -> Content {
    batch.records().iter().fold(0, |content, record| content << 8 | u64::from(*record + 1))
}

/// How far a flight got.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Stage {
    /// The frame is under way.
    Sent,
    /// The broker appended it and waits for its follower.
    Waiting(Wait),
    /// The answer is under way.
    Answered(Answer),
}

/// One attempt between its offer and its answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Flight {
    pub(super) attempt: AttemptId,
    pub(super) route: RouteId,
    pub(super) node: NodeId,
    /// The leader epoch that the lane believed in.
    pub(super) leader_epoch: i32,
    /// The connection lives: the lane still waits for this attempt.
    pub(super) alive: bool,
    /// It is addressed to a topic that is gone.
    pub(super) stale: bool,
    pub(super) batch: Batch<Content>,
    /// It takes the slot of others (C).
    pub(super) replacement: bool,
    pub(super) stage: Stage,
}

impl Flight {
    pub(super) fn new(
        offer: &Offer<Counted>,
        node: NodeId,
        leader_epoch: i32,
        plans: &[Plan],
    ) -> Self {
        let count = i32::try_from(Payload::count(&offer.batch)).unwrap_or(i32::MAX);
        let bad = |record: &u16| plans.get(usize::from(*record)).is_some_and(|plan| plan.bad);
        let records = offer.batch.records();
        let batch = Batch {
            keyless: (0..).zip(&records).filter(|(_, r)| bad(r)).map(|(index, _)| index).collect(),
            bytes: i32::try_from(Payload::bytes(&offer.batch)).unwrap_or(i32::MAX),
            ..Batch::new(
                offer.identity.id.get(),
                offer.identity.epoch.get(),
                offer.first.get(),
                count,
                Payload::max_timestamp(&offer.batch),
                content(&offer.batch),
            )
        };
        Self {
            attempt: offer.attempt,
            route: offer.route,
            node,
            leader_epoch,
            alive: true,
            stale: false,
            batch,
            replacement: offer.replacement,
            stage: Stage::Sent,
        }
    }

    /// The attempt as the judge sees it.
    pub(super) fn as_attempt(&self) -> Attempt {
        Attempt {
            id: self.attempt.0,
            connection: self.route.0,
            leader_epoch: self.leader_epoch,
            producer_id: self.batch.pid,
            epoch: self.batch.epoch,
            first: self.batch.first,
            count: u32::try_from(self.batch.count).unwrap_or_default(),
            content: self.batch.content,
            records: records(self.batch.content).map(|record| record - 1).collect(),
            max_timestamp: self.batch.stamps.max(),
            replacement: self.replacement,
        }
    }
}

impl Flight {
    /// Feeds what matters into a hasher; the connection is left to whoever asks, and order tells
    /// flights apart.
    pub(super) fn fingerprint(&self, names: &Names, into: &mut impl Hasher) {
        (names.node(self.node), self.stale).hash(into);
        let batch = &self.batch;
        (batch.pid, batch.epoch, batch.first, batch.count, batch.content).hash(into);
        match &self.stage {
            Stage::Sent => 1_u8.hash(into),
            Stage::Waiting(wait) => {
                2_u8.hash(into);
                wait.fingerprint(names, into);
            }
            Stage::Answered(answer) => {
                3_u8.hash(into);
                answer.fingerprint(into);
            }
        }
    }
}

impl std::fmt::Display for Flight {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let batch = &self.batch;
        let numbers: Vec<String> = records(batch.content).map(|r| (r - 1).to_string()).collect();
        write!(
            f,
            "records [{}] as ({}, e{}, {}, {}) on connection {} to broker {}",
            numbers.join(" "),
            batch.pid,
            batch.epoch,
            batch.first,
            batch.count,
            self.route.0,
            self.node.0
        )
    }
}
