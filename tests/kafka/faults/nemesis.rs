//! Carries a plan out.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::sync::{Mutex as Lock, MutexGuard, Semaphore};

use super::book::Book;
use super::hands::Hands;
use super::plan::{Kind, NODES, Node, Step, Way};
use super::proxy::{Door, Flow, Proxies, Rule};
use super::{FLEETING, SIZED, STEADY, Topic};

/// One step in so many befalls a node although another is down.
const BOTH: u64 = 8;
/// One fault of the way in so many befalls the way to all nodes.
const EVERYWHERE: u64 = 4;
/// How long answers are lost before a limit is lowered.
const DOUBT: Duration = Duration::from_millis(400);

/// Who does it all.
pub(crate) struct Nemesis {
    hands: Arc<Hands>,
    proxies: Proxies,
    book: Arc<Book>,
    topics: Vec<Topic>,
    nodes: [Lock<()>; NODES],
    ways: [Lock<()>; NODES],
    down: Semaphore,
    topic: Lock<()>,
    wishes: AtomicU64,
    done: Mutex<BTreeMap<Kind, Done>>,
}

/// What became of the steps of one kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Done {
    /// They happened.
    pub(crate) happened: u64,
    /// Somebody else was busy with the node or the way.
    pub(crate) skipped: u64,
    /// The cluster could not do it, as it was.
    pub(crate) failed: u64,
}

/// How a step ended.
enum End {
    Happened,
    Skipped,
    Failed,
}

impl Nemesis {
    pub(crate) fn new(
        hands: &Arc<Hands>,
        proxies: Proxies,
        book: &Arc<Book>,
        topics: Vec<Topic>,
    ) -> Self {
        Self {
            hands: Arc::clone(hands),
            proxies,
            book: Arc::clone(book),
            topics,
            nodes: Default::default(),
            ways: Default::default(),
            down: Semaphore::new(1),
            topic: Lock::default(),
            wishes: AtomicU64::new(0),
            done: Mutex::default(),
        }
    }

    /// Carries the steps out, each at its time, and waits until the last is over.
    pub(crate) async fn carry_out(self: &Arc<Self>, steps: Vec<Step>) {
        let begun = tokio::time::Instant::now();
        let mut running = tokio::task::JoinSet::new();
        for step in steps {
            tokio::time::sleep_until(begun + step.at).await;
            let this = Arc::clone(self);
            running.spawn(async move { this.befall(step).await });
        }
        while running.join_next().await.is_some() {}
    }

    /// What happened, by kind.
    pub(crate) fn told(&self) -> BTreeMap<Kind, Done> {
        self.done.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The end of all proxies.
    pub(crate) fn over(self) {
        self.proxies.stop();
    }

    async fn befall(&self, step: Step) {
        let end = match step.kind {
            Kind::Node(how) => self.node(step, how).await,
            Kind::Cut => self.cut(step),
            Kind::Orphan => self.orphan(step).await,
            Kind::Way(how) => self.way(step, how).await,
            Kind::MoveLeader => self.move_leader(step).await,
            Kind::LowerLimit => self.lower_limit(step).await,
            Kind::Recreate => self.recreate().await,
        };
        let mut done = self.done.lock().unwrap_or_else(PoisonError::into_inner);
        let done = done.entry(step.kind).or_default();
        match end {
            End::Happened => done.happened += 1,
            End::Skipped => done.skipped += 1,
            End::Failed => done.failed += 1,
        }
    }

    async fn ask(&self, what: &str, with: Value) -> bool {
        let mut command = with;
        command["do"] = what.into();
        self.hands.ask(command).await.is_ok()
    }

    async fn node(&self, step: Step, how: Node) -> End {
        let Ok(_busy) = self.nodes[step.node].try_lock() else { return End::Skipped };
        let _down = match self.down.try_acquire() {
            Ok(down) => Some(down),
            Err(_) if step.draw.is_multiple_of(BOTH) => None,
            Err(_) => return End::Skipped,
        };
        let (ends, begins) = match how {
            Node::Kill => ("kill", "start"),
            Node::Restart => ("stop", "start"),
            Node::Pause => ("pause", "resume"),
        };
        let node = json!({ "node": step.node });
        let ended = self.ask(ends, node.clone()).await;
        tokio::time::sleep(step.lasts).await;
        let begun = self.ask(begins, node).await;
        if ended && begun { End::Happened } else { End::Failed }
    }

    async fn move_leader(&self, step: Step) -> End {
        // Two of three go to where most of the load is.
        let topic = if step.draw.is_multiple_of(3) { SIZED } else { STEADY };
        let topic = &self.topics[topic as usize];
        let partition = step.draw / 3 % topic.partitions as u64;
        let to = json!({ "topic": topic.name, "partition": partition, "node": step.node });
        if self.ask("lead", to).await { End::Happened } else { End::Failed }
    }

    /// Batches are in doubt everywhere when the limit sinks below what they are.
    async fn lower_limit(&self, step: Step) -> End {
        let Some(ways) = self.ways_of(Step { draw: 0, ..step }) else { return End::Skipped };
        let topic = &self.topics[SIZED as usize].name;
        ways.rule(|rule| rule.replies = Flow::Lose);
        tokio::time::sleep(DOUBT).await;
        let bytes = 300 + step.draw % 1_500;
        let lowered = self.ask("limit", json!({ "topic": topic, "bytes": bytes })).await;
        ways.heal();
        drop(ways);
        tokio::time::sleep(step.lasts).await;
        let raised = self.ask("limit", json!({ "topic": topic, "bytes": null })).await;
        if lowered && raised { End::Happened } else { End::Failed }
    }

    async fn recreate(&self) -> End {
        let Ok(_busy) = self.topic.try_lock() else { return End::Skipped };
        let topic = &self.topics[FLEETING as usize];
        self.book.going();
        let made = json!({ "topic": topic.name, "partitions": topic.partitions });
        let made = self.ask("recreate", made).await;
        self.book.made_anew(topic.partitions);
        if made { End::Happened } else { End::Failed }
    }

    /// The way to a node, or now and then to all of them, if nobody else is busy with it.
    fn ways_of(&self, step: Step) -> Option<Ways<'_>> {
        let everywhere = step.draw.is_multiple_of(EVERYWHERE);
        let nodes = if everywhere { 0..NODES } else { step.node..step.node + 1 };
        let busy = nodes.clone().map(|node| self.ways[node].try_lock().ok()).collect::<Option<_>>();
        busy.map(|busy| Ways { proxies: &self.proxies, nodes, _busy: busy })
    }

    fn cut(&self, step: Step) -> End {
        let Some(ways) = self.ways_of(step) else { return End::Skipped };
        ways.rule(|rule| rule.cuts += 1);
        End::Happened
    }

    async fn orphan(&self, step: Step) -> End {
        let Some(ways) = self.ways_of(step) else { return End::Skipped };
        ways.rule(|rule| rule.requests = Flow::Hold);
        tokio::time::sleep(step.lasts / 2).await;
        ways.rule(|rule| rule.orphans += 1);
        tokio::time::sleep(step.lasts / 2).await;
        ways.heal();
        End::Happened
    }

    async fn way(&self, step: Step, how: Way) -> End {
        let Some(ways) = self.ways_of(step) else { return End::Skipped };
        let wish = self.wishes.fetch_add(1, Ordering::Relaxed);
        ways.rule(|rule| begin(rule, how, step.draw >> 8, wish));
        tokio::time::sleep(step.lasts).await;
        ways.heal();
        End::Happened
    }
}

/// Ways that somebody is busy with.
struct Ways<'n> {
    proxies: &'n Proxies,
    nodes: Range<usize>,
    _busy: Vec<MutexGuard<'n, ()>>,
}

impl Ways<'_> {
    fn rule(&self, change: impl Fn(&mut Rule)) {
        self.nodes.clone().for_each(|node| self.proxies.rule(node, &change));
    }

    fn heal(&self) {
        self.rule(|rule| {
            *rule = Rule { cuts: rule.cuts, orphans: rule.orphans, ..Rule::default() }
        });
    }
}

/// What a fault of the way is, while it lasts.
fn begin(rule: &mut Rule, how: Way, draw: u64, wish: u64) {
    match how {
        Way::BreakRequest => rule.requests = Flow::Break(draw % 3_000, wish),
        Way::BreakReply => rule.replies = Flow::Break(draw % 200, wish),
        Way::StallRequests => rule.requests = Flow::Stall,
        Way::StallReplies => rule.replies = Flow::Stall,
        Way::HoldRequests => rule.requests = Flow::Hold,
        Way::HoldReplies => rule.replies = Flow::Hold,
        Way::LoseReplies => rule.replies = Flow::Lose,
        Way::HalfOpen => (rule.requests, rule.replies) = (Flow::Stall, Flow::Stall),
        Way::Trickle => (rule.requests, rule.replies) = (Flow::Trickle, Flow::Trickle),
        Way::Refuse => (rule.door, rule.cuts) = (Door::Refuse, rule.cuts + 1),
        Way::Hang => (rule.door, rule.cuts) = (Door::Hang, rule.cuts + 1),
    }
}
