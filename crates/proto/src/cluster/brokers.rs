//! Who can be reached where, and when the next try may be made (faults 89, 101, 103, 131).

use std::collections::{BTreeMap, BTreeSet};

use candor_core::rules::Rules;
use candor_core::{Instant, RouteId, Span};
use candor_wire::NodeId;

use crate::address::Address;
use crate::jitter::{backoff, mix};
use crate::lanes::LaneKey;

/// Whom a connection is meant for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Endpoint {
    /// A bootstrap address, by its place in the configuration.
    Seed(usize),
    /// A broker that metadata named.
    Broker(NodeId),
}

impl Endpoint {
    /// The broker, if it is known which one it is.
    pub(crate) const fn broker(self) -> Option<NodeId> {
        match self {
            Self::Seed(_) => None,
            Self::Broker(node) => Some(node),
        }
    }
}

/// Whether there is a connection, or when there may be one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Dial {
    Free,
    NotBefore(Instant),
    Open(RouteId),
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Peer {
    address: Address,
    dial: Dial,
    /// Its last tries failed.
    failed: Option<Failed>,
    /// Running number of the last try.
    tried: u64,
    /// Named by the newest metadata.
    listed: bool,
    /// Lanes with work whose leader it is.
    lanes: BTreeSet<LaneKey>,
}

/// Tries that failed in a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Failed {
    times: u32,
    /// The last time.
    at: Instant,
}

/// So many brokers are remembered without a reason.
const FEW: usize = 128;

/// Waits between tries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Redial {
    pub(crate) first: Span,
    pub(crate) longest: Span,
    pub(crate) seed: u64,
}

/// All endpoints.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Brokers {
    peers: BTreeMap<Endpoint, Peer>,
    redial: Redial,
    tries: u64,
}

impl Brokers {
    pub(crate) fn new(seeds: Vec<Address>, redial: Redial) -> Self {
        let seeds = seeds.into_iter().enumerate();
        let peers = seeds.map(|(at, address)| (Endpoint::Seed(at), Peer::new(address))).collect();
        Self { peers, redial, tries: 0 }
    }

    /// Takes in the brokers of a metadata answer: the first [`FEW`], and whoever else is `wanted` or
    /// in use, since a list of many costs more memory than its bytes. Those that it does not name
    /// are forgotten, unless something still hangs on them. `moved` hears of the connections to
    /// addresses that are no longer right.
    pub(crate) fn take_list(
        &mut self,
        brokers: impl IntoIterator<Item = (NodeId, Address)>,
        wanted: &BTreeSet<NodeId>,
        mut moved: impl FnMut(RouteId),
    ) {
        for (endpoint, peer) in &mut self.peers {
            peer.listed = matches!(endpoint, Endpoint::Seed(_));
        }
        for (at, (node, address)) in brokers.into_iter().enumerate() {
            let in_use = || self.peers.get(&Endpoint::Broker(node)).is_some_and(Peer::is_in_use);
            if at < FEW || wanted.contains(&node) || in_use() {
                self.take_address(node, address).into_iter().for_each(&mut moved);
            }
        }
        self.peers.retain(|_, peer| peer.listed || peer.is_in_use());
    }

    /// Takes in one broker's address; gives the connection to the address that it had before.
    pub(crate) fn take_address(&mut self, node: NodeId, address: Address) -> Option<RouteId> {
        let peer =
            self.peers.entry(Endpoint::Broker(node)).or_insert_with(|| Peer::new(address.clone()));
        peer.listed = true;
        if peer.address == address {
            return None;
        }
        peer.address = address;
        peer.failed = None;
        match core::mem::replace(&mut peer.dial, Dial::Free) {
            Dial::Open(conn) => Some(conn),
            Dial::Free | Dial::NotBefore(_) => None,
        }
    }

    /// KIP-1102: only the bootstrap addresses count from now on. Gives the lanes that were attached.
    pub(crate) fn forget_all(&mut self) -> BTreeSet<LaneKey> {
        let mut lanes = BTreeSet::new();
        self.peers.retain(|endpoint, peer| {
            lanes.append(&mut peer.lanes);
            matches!(endpoint, Endpoint::Seed(_))
        });
        lanes
    }

    /// Whether it failed last time.
    pub(crate) fn is_suspect(&self, endpoint: Endpoint) -> bool {
        self.peers.get(&endpoint).is_some_and(|peer| peer.failed.is_some())
    }

    /// Whether everybody who could be dialled for anything failed last time.
    pub(crate) fn nobody_works(&self) -> bool {
        self.peers.values().all(|peer| peer.failed.is_some() || !peer.listed)
    }

    /// How many brokers the cluster has, as far as we know.
    pub(crate) fn listed(&self) -> usize {
        let broker = |(endpoint, peer): &(&Endpoint, &Peer)| {
            matches!(endpoint, Endpoint::Broker(_)) && peer.listed
        };
        self.peers.iter().filter(broker).count()
    }

    /// Since when every other listed broker was tried in vain; `None` if one of them was not, or
    /// works.
    pub(crate) fn others_failed(&self, broker: NodeId) -> Option<Instant> {
        let others = self.peers.iter().filter(|(endpoint, peer)| {
            peer.listed && endpoint.broker().is_some_and(|other| other != broker)
        });
        let failed: Option<Vec<Failed>> = others.map(|(_, peer)| peer.failed).collect();
        failed?.into_iter().map(|failed| failed.at).min()
    }

    /// Says that a lane with work has this leader.
    pub(crate) fn attach(&mut self, node: NodeId, lane: LaneKey) -> bool {
        let peer = self.peers.get_mut(&Endpoint::Broker(node));
        peer.map(|peer| peer.lanes.insert(lane)).is_some()
    }

    /// The lane has no more work, or another leader.
    pub(crate) fn detach(&mut self, node: NodeId, lane: LaneKey) {
        if let Some(peer) = self.peers.get_mut(&Endpoint::Broker(node)) {
            peer.lanes.remove(&lane);
        }
    }

    /// Lanes with work whose leader it is.
    pub(crate) fn lanes(&self, endpoint: Endpoint) -> impl Iterator<Item = LaneKey> + '_ {
        self.peers.get(&endpoint).into_iter().flat_map(|peer| peer.lanes.iter().copied())
    }

    /// The connection to an endpoint, if there is one, in whatever state.
    pub(crate) fn connection(&self, endpoint: Endpoint) -> Option<RouteId> {
        match self.peers.get(&endpoint)?.dial {
            Dial::Open(conn) => Some(conn),
            Dial::Free | Dial::NotBefore(_) => None,
        }
    }

    /// When it may be dialled again, if it may not now.
    #[cfg(test)]
    fn not_before(&self, endpoint: Endpoint) -> Option<Instant> {
        match self.peers.get(&endpoint)?.dial {
            Dial::NotBefore(until) => Some(until),
            Dial::Free | Dial::Open(_) => None,
        }
    }

    /// Whether lanes with work wait for a connection to it that may be opened now.
    pub(crate) fn wants_dial(&self, endpoint: Endpoint) -> bool {
        let wanted = |peer: &Peer| peer.dial == Dial::Free && !peer.lanes.is_empty();
        self.peers.get(&endpoint).is_some_and(wanted)
    }

    /// Whom to dial in order to ask anything of anybody: who failed least and was tried longest
    /// ago. Bootstrap addresses only while no broker is known to work (KIP-899), those to which a
    /// connection has been opened in vain for a while (`is_slow`) not being known to. `None`: nobody may
    /// be dialled, or nobody is more promising than those that are being `opened` just now.
    pub(crate) fn dial_anybody(
        &self,
        opened: impl Iterator<Item = Endpoint>,
        is_slow: impl Fn(RouteId) -> bool,
    ) -> Option<Endpoint> {
        let failures = |endpoint| self.peers.get(&endpoint).map(Peer::failures);
        let promising = opened.filter_map(failures).min().unwrap_or(u32::MAX);
        let brokers = || self.peers.iter().filter(|(_, peer)| peer.listed);
        let works = |peer: &Peer| match peer.dial {
            Dial::Open(conn) => peer.failed.is_none() && !is_slow(conn),
            Dial::Free | Dial::NotBefore(_) => peer.failed.is_none(),
        };
        let hopeless =
            !brokers().any(|(endpoint, peer)| endpoint.broker().is_some() && works(peer));
        brokers()
            .filter(|(endpoint, _)| hopeless || endpoint.broker().is_some())
            .filter(|(_, peer)| peer.dial == Dial::Free && peer.failures() < promising)
            .min_by_key(|(_, peer)| (peer.failures(), peer.tried))
            .map(|(endpoint, _)| *endpoint)
    }

    /// A connection is being opened; gives the address to dial.
    pub(crate) fn opening(&mut self, endpoint: Endpoint, conn: RouteId) -> Option<Address> {
        self.tries += 1;
        let peer = self.peers.get_mut(&endpoint)?;
        peer.dial = Dial::Open(conn);
        peer.tried = self.tries;
        Some(peer.address.clone())
    }

    /// The broker greeted us: it works. (Not before: fault 89.)
    pub(crate) fn greeted(&mut self, endpoint: Endpoint) {
        if let Some(peer) = self.peers.get_mut(&endpoint) {
            peer.failed = None;
        }
    }

    /// The connection is of no more use. After a failure, gives when the next try may be made.
    pub(crate) fn closed<R: Rules>(
        &mut self,
        endpoint: Endpoint,
        conn: RouteId,
        now: Instant,
        failed: bool,
    ) -> Option<Instant> {
        let redial = self.redial;
        let peer = self.peers.get_mut(&endpoint)?;
        if peer.dial != Dial::Open(conn) {
            return None;
        }
        if !failed {
            peer.dial = Dial::Free;
            return None;
        }
        let times = peer.failures().saturating_add(1);
        peer.failed = Some(Failed { times, at: now });
        let hash = mix(redial.seed, conn.0);
        let wait = backoff::<R>(redial.first, redial.longest, times, hash);
        peer.dial = Dial::NotBefore(now + wait);
        Some(now + wait)
    }

    /// The wait is over.
    pub(crate) fn may_dial_again(&mut self, endpoint: Endpoint) {
        if let Some(peer) = self.peers.get_mut(&endpoint)
            && let Dial::NotBefore(_) = peer.dial
        {
            peer.dial = Dial::Free;
        }
    }
}

impl Peer {
    const fn new(address: Address) -> Self {
        Self {
            address,
            dial: Dial::Free,
            failed: None,
            tried: 0,
            listed: true,
            lanes: BTreeSet::new(),
        }
    }

    /// Failures in a row.
    fn failures(&self) -> u32 {
        self.failed.map_or(0, |failed| failed.times)
    }

    fn is_in_use(&self) -> bool {
        !self.lanes.is_empty() || matches!(self.dial, Dial::Open(_))
    }
}

#[cfg(test)]
mod tests {
    use candor_core::rules::Honest;

    use super::*;

    fn address(port: i32) -> Address {
        Address::new("h", port).unwrap()
    }

    fn node(id: i32) -> NodeId {
        NodeId::new(id).unwrap()
    }

    fn brokers() -> Brokers {
        let redial =
            Redial { first: Span::from_millis(50), longest: Span::from_millis(1000), seed: 3 };
        Brokers::new(vec![address(1), address(2)], redial)
    }

    fn take_list(brokers: &mut Brokers, list: impl IntoIterator<Item = (NodeId, Address)>) {
        brokers.take_list(list, &BTreeSet::from([node(1_000)]), |_| ());
    }

    #[test]
    fn of_very_many_brokers_those_that_matter_are_remembered() {
        let mut brokers = brokers();
        take_list(&mut brokers, (0..2_000).map(|id| (node(id), address(9092))));
        assert_eq!(brokers.listed(), FEW + 1);
        assert!(brokers.attach(node(1_000), LaneKey(0)), "it was wanted");
        assert!(!brokers.attach(node(1_001), LaneKey(0)));
        let list = (0..2_000).map(|id| (node(3_000 - id), address(9092)));
        brokers.take_list(list, &BTreeSet::new(), |_| ());
        assert_eq!(brokers.listed(), FEW);
        assert!(brokers.attach(node(1_000), LaneKey(1)), "a lane hangs on it");
    }

    const NOW: Instant = Instant::from_millis(1000);

    /// Dials, fails, and lets the wait pass.
    fn fail(brokers: &mut Brokers, endpoint: Endpoint, conn: u64) -> Span {
        brokers.opening(endpoint, RouteId(conn)).unwrap();
        let until = brokers.closed::<Honest>(endpoint, RouteId(conn), NOW, true).unwrap();
        assert_eq!(brokers.not_before(endpoint), Some(until));
        brokers.may_dial_again(endpoint);
        until.since(NOW)
    }

    fn dial(brokers: &Brokers) -> Option<Endpoint> {
        brokers.dial_anybody([].into_iter(), |_| false)
    }

    #[test]
    fn seeds_take_turns_and_give_way_to_brokers_that_work() {
        let mut brokers = brokers();
        assert_eq!(dial(&brokers), Some(Endpoint::Seed(0)));
        fail(&mut brokers, Endpoint::Seed(0), 1);
        assert_eq!(dial(&brokers), Some(Endpoint::Seed(1)));
        fail(&mut brokers, Endpoint::Seed(1), 2);
        assert_eq!(dial(&brokers), Some(Endpoint::Seed(0)));
        take_list(&mut brokers, [(node(5), address(5))]);
        assert_eq!(dial(&brokers), Some(Endpoint::Broker(node(5))));
        fail(&mut brokers, Endpoint::Broker(node(5)), 3);
        assert!(matches!(dial(&brokers), Some(Endpoint::Seed(_))));
    }

    #[test]
    fn waits_grow_until_the_broker_greets() {
        let mut brokers = brokers();
        let waits: Vec<_> =
            (0..8).map(|conn| fail(&mut brokers, Endpoint::Seed(0), conn).as_millis()).collect();
        assert!(waits.windows(2).take(4).all(|pair| pair[1] > pair[0]), "{waits:?}");
        assert!(waits.iter().all(|wait| *wait <= 1000), "{waits:?}");
        brokers.greeted(Endpoint::Seed(0));
        assert!(fail(&mut brokers, Endpoint::Seed(0), 9).as_millis() <= 60);
    }

    #[test]
    fn an_end_that_is_no_failure_costs_no_wait() {
        let mut brokers = brokers();
        brokers.opening(Endpoint::Seed(0), RouteId(1)).unwrap();
        assert_eq!(brokers.closed::<Honest>(Endpoint::Seed(0), RouteId(1), NOW, false), None);
        assert_eq!(brokers.not_before(Endpoint::Seed(0)), None);
    }

    #[test]
    fn a_new_address_is_dialled_at_once() {
        let mut brokers = brokers();
        take_list(&mut brokers, [(node(5), address(5))]);
        brokers.opening(Endpoint::Broker(node(5)), RouteId(1)).unwrap();
        brokers.closed::<Honest>(Endpoint::Broker(node(5)), RouteId(1), NOW, true);
        take_list(&mut brokers, [(node(5), address(6))]);
        let dialled = brokers.opening(Endpoint::Broker(node(5)), RouteId(2));
        assert_eq!(dialled, Some(address(6)));
    }

    #[test]
    fn a_broker_that_is_gone_is_kept_while_lanes_hang_on_it() {
        let mut brokers = brokers();
        take_list(&mut brokers, [(node(5), address(5))]);
        assert!(brokers.attach(node(5), LaneKey(0)));
        take_list(&mut brokers, [(node(6), address(6))]);
        assert!(brokers.wants_dial(Endpoint::Broker(node(5))));
        brokers.detach(node(5), LaneKey(0));
        take_list(&mut brokers, [(node(6), address(6))]);
        assert!(!brokers.attach(node(5), LaneKey(0)));
        assert_eq!(brokers.listed(), 1);
    }
}
