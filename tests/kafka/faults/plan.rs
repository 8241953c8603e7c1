//! What befalls the brokers and the way to them, drawn from a seed before the run begins.

use std::time::Duration;

use fastrand::Rng;

/// How many nodes the cluster has.
pub(crate) const NODES: usize = 3;
/// Nothing befalls anybody at first: a run begins with records that are delivered.
const CALM_BEFORE: Duration = Duration::from_secs(2);
/// The mean time between two steps.
const BETWEEN: u64 = 900;

/// One kind of fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    /// A node stops working for a while.
    Node(Node),
    /// All connections to a node end, at once and in both directions.
    Cut,
    /// The client's side ends; what was under way still reaches the broker.
    Orphan,
    /// The way to a node is bad for a while.
    Way(Way),
    /// A partition gets another leader.
    MoveLeader,
    /// Answers are lost everywhere, and `max.message.bytes` is lowered while batches are in doubt.
    LowerLimit,
    /// A topic is deleted and made anew.
    Recreate,
}

/// How a node stops working.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Node {
    /// `kill -9`, and a start a little later.
    Kill,
    /// A clean stop, and a start.
    Restart,
    /// SIGSTOP, and SIGCONT later.
    Pause,
}

/// How the way to a node is bad.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Way {
    /// Connections end in the middle of what the client sends.
    BreakRequest,
    /// Connections end in the middle of an answer.
    BreakReply,
    /// Nobody reads what the client sends.
    StallRequests,
    /// Nobody reads what the broker answers.
    StallReplies,
    /// What the client sends is read, kept and let go later, even if the client is gone by then.
    HoldRequests,
    /// The same with answers.
    HoldReplies,
    /// Answers are lost, then the connection ends.
    LoseReplies,
    /// Both directions stand still: a peer that is gone without a word.
    HalfOpen,
    /// Bytes trickle.
    Trickle,
    /// Connections are refused.
    Refuse,
    /// Connections are accepted and nothing follows.
    Hang,
}

/// Every kind with its name, how often it is drawn, and how long it lasts in milliseconds.
///
/// Nothing is held back for so long that a broker could forget its producer meanwhile (A3): the
/// sum of what can delay a request stays below `producer.id.expiration.ms` less `state_ttl`.
const KINDS: [(Kind, &str, u32, u64, u64); 19] = [
    (Kind::Node(Node::Kill), "kill -9", 6, 300, 2_500),
    (Kind::Node(Node::Restart), "clean restart", 3, 100, 1_000),
    (Kind::Node(Node::Pause), "SIGSTOP", 8, 200, 4_000),
    (Kind::MoveLeader, "leader moved", 12, 0, 0),
    (Kind::Cut, "connections cut", 10, 0, 0),
    (Kind::Orphan, "client's side cut", 10, 200, 2_000),
    (Kind::Way(Way::BreakRequest), "cut in a request", 8, 300, 1_500),
    (Kind::Way(Way::BreakReply), "cut in an answer", 8, 300, 1_500),
    (Kind::Way(Way::StallRequests), "requests stalled", 6, 200, 3_000),
    (Kind::Way(Way::StallReplies), "answers stalled", 6, 200, 3_000),
    (Kind::Way(Way::HoldRequests), "requests held", 8, 200, 3_000),
    (Kind::Way(Way::HoldReplies), "answers held", 8, 200, 3_000),
    (Kind::Way(Way::LoseReplies), "answers lost", 10, 200, 1_500),
    (Kind::Way(Way::HalfOpen), "half open", 5, 500, 3_000),
    (Kind::Way(Way::Trickle), "trickle", 4, 200, 2_000),
    (Kind::Way(Way::Refuse), "connections refused", 3, 200, 2_000),
    (Kind::Way(Way::Hang), "connections hang", 3, 200, 3_000),
    (Kind::LowerLimit, "limit lowered in doubt", 6, 500, 3_000),
    (Kind::Recreate, "topic made anew", 3, 0, 0),
];

impl Kind {
    /// Every kind.
    pub(crate) fn all() -> impl Iterator<Item = Self> {
        KINDS.iter().map(|(kind, ..)| *kind)
    }

    /// For reports.
    pub(crate) fn name(self) -> &'static str {
        KINDS.iter().find(|(kind, ..)| *kind == self).map_or("", |(_, name, ..)| name)
    }
}

/// One fault at its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Step {
    /// When it begins, from the start of the run.
    pub(crate) at: Duration,
    /// How long it lasts.
    pub(crate) lasts: Duration,
    /// What it is.
    pub(crate) kind: Kind,
    /// Which node it befalls, from 0.
    pub(crate) node: usize,
    /// A number for what else is to be drawn.
    pub(crate) draw: u64,
}

/// The steps of a run of this length, in order of time. Every kind comes at least once if there is
/// room for as many steps.
pub(crate) fn plan(seed: u64, length: Duration) -> Vec<Step> {
    let mut rng = Rng::with_seed(seed);
    let mut owed: Vec<Kind> = Kind::all().collect();
    rng.shuffle(&mut owed);
    let mut steps = Vec::new();
    let mut at = CALM_BEFORE;
    while at < length {
        // Half of the steps see to it that every kind has come.
        let kind = if rng.bool() { owed.pop() } else { None }.unwrap_or_else(|| draw(&mut rng));
        let (_, _, _, least, most) =
            KINDS.into_iter().find(|row| row.0 == kind).unwrap_or(KINDS[0]);
        steps.push(Step {
            at,
            lasts: Duration::from_millis(rng.u64(least..=most)),
            kind,
            node: rng.usize(0..NODES),
            draw: rng.u64(..),
        });
        at += Duration::from_millis(rng.u64(0..2 * BETWEEN));
        // Now and then there is time to recover.
        if rng.u8(0..12) == 0 {
            at += Duration::from_millis(rng.u64(2_000..6_000));
        }
    }
    steps
}

fn draw(rng: &mut Rng) -> Kind {
    let total: u32 = KINDS.iter().map(|row| row.2).sum();
    let mut left = rng.u32(0..total);
    for (kind, _, weight, ..) in KINDS {
        if left < weight {
            return kind;
        }
        left -= weight;
    }
    Kind::Cut
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plan_depends_on_its_seed_alone_and_has_every_kind() {
        let length = Duration::from_secs(150);
        let first = plan(7, length);
        assert_eq!(first, plan(7, length));
        assert_ne!(first, plan(8, length));
        for kind in Kind::all() {
            assert!(first.iter().any(|step| step.kind == kind), "{}", kind.name());
        }
        assert!(first.is_sorted_by_key(|step| step.at));
    }
}
