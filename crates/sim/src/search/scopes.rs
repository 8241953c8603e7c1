//! Named scopes: small ones that each put a few rules to the test, and large ones for long runs.

use crate::broker::Profile;

use super::scope::{FOREVER_MS, Fault, Limits, Plan, Say, Scope, Size, Ticks};

use Fault::{
    Depose, Elect, Forget, Lag, Lift, LoseCut, LoseGone, LoseWhole, Neighbour, Purge, Recreate,
    Refuse, Reign, Reroute, Shed, Shrink, Timeout, Unclean,
};
use Say::{After, AfterBlind, Before, Below};

const LONG: Plan = Plan::LONG;
const SHORT: Plan = Plan::SHORT;
/// Two seconds.
const MEDIUM: Plan = Plan { due_ms: 2_000, ..LONG };
/// Stamped before the broker's memory reaches back.
const OLD: Plan = Plan { stamped_ago_ms: 90_000_000, ..LONG };
/// What the broker knows us by ages faster than what comes behind it.
const AGING: &[Plan] = &[
    Plan { stamped_ago_ms: 20_000_000, due_ms: 300_000_000, ..LONG },
    Plan { due_ms: 67_000_000, ..LONG },
    Plan { due_ms: 300_000_000, ..LONG },
    Plan { due_ms: 300_000_000, ..LONG },
];

/// Named by the broker as bad.
const BAD: Plan = Plan { bad: true, ..LONG };
/// Nothing here is a reason to raise an alarm.
const QUIET: Limits = Limits { alarms: false, unfenced: false, ..Scope::BASE.limits };
/// Nothing here is a reason to fail anybody.
const SPARED: Limits = Limits { losses: false, ..QUIET };

/// The lane may stop.
const STOPS: Limits = Limits { stops: true, ..Scope::BASE.limits };

/// Every kind of fault under which brokers keep what they promise (A1 to A5), and that a lane with
/// batches of one record can tell from the others.
const KINDS: &[Fault] =
    &[LoseWhole, LoseCut, LoseGone, Elect, Depose, Reign, Reroute, Timeout, Purge, Recreate, Shed];

/// One code of every class (`Rules::class`); of those that may or may not say that the leader is
/// elsewhere, one of each; of those that may come before or after the append, each.
const CODES: &[Say] = &[
    Before(2),
    Before(5),
    Before(19),
    Before(10),
    Before(29),
    Before(87),
    Before(45),
    Before(47),
    Before(59),
    Below,
    Before(3),
    After(6),
    AfterBlind(7),
];

/// What the search is for.
const EVERYTHING: Scope = Scope {
    name: "everything",
    about: "three batches, two leaders, two faults of any kind, a restart, a deadline",
    size: Size::Wide,
    faults: 2,
    kinds: KINDS,
    codes: CODES,
    restarts: 1,
    ticks: Ticks::Deadlines(1),
    state_ttl_ms: FOREVER_MS,
    limits: STOPS,
    ..Scope::BASE
};

/// One replica, no time passes, nothing is appended and lost.
const LONE: Scope = Scope {
    replicas: 1,
    eager: true,
    ticks: Ticks::Never,
    records: &[LONG, LONG, LONG],
    ..Scope::BASE
};

/// A slot is contested behind what was delivered, and frames are lost.
const CONTESTED: Scope = Scope {
    records: &[LONG; 4],
    at_once: 1,
    batch_size: 2,
    faults: 2,
    kinds: &[LoseWhole],
    revokes: &[1],
    state_ttl_ms: FOREVER_MS,
    ..LONE
};

/// Every named scope, in the order in which they are best run.
///
/// ```
/// use candor_sim::search::SCOPES;
/// assert!(SCOPES.iter().any(|scope| scope.name == "failover"));
/// ```
pub const SCOPES: &[Scope] = &[
    Scope { name: "calm", about: "nothing goes wrong but deadlines", ..Scope::BASE },
    Scope {
        name: "first-contact",
        about: "a partition that never saw us: refusals and lost frames before the first 0",
        faults: 1,
        kinds: &[LoseWhole, LoseCut, LoseGone],
        codes: &[Before(19), Before(6), Before(2), AfterBlind(7)],
        limits: QUIET,
        ..LONE
    },
    Scope {
        name: "lost-answers",
        about: "connections that break twice, and one broker restart",
        faults: 2,
        kinds: &[LoseWhole, LoseCut, LoseGone],
        restarts: 1,
        limits: SPARED,
        ..LONE
    },
    Scope {
        name: "deadline",
        about: "a deadline while connections break and answers are doubtful",
        records: &[SHORT, LONG, LONG],
        ticks: Ticks::Always,
        faults: 2,
        kinds: &[LoseWhole, LoseCut],
        codes: &[Before(19), After(7), After(6)],
        limits: QUIET,
        ..LONE
    },
    Scope {
        name: "neighbour",
        about: "lost answers and a deadline, while another partition loses its identity",
        records: &[SHORT, LONG, LONG],
        ticks: Ticks::Always,
        faults: 2,
        kinds: &[LoseWhole, LoseGone, Neighbour],
        ..LONE
    },
    Scope {
        name: "refused",
        about: "codes that come before the append, for good and for a while",
        faults: 2,
        kinds: &[LoseWhole],
        codes: &[Before(19), Before(87), Before(10), Before(29), AfterBlind(-1)],
        limits: QUIET,
        ..LONE
    },
    Scope {
        name: "failover",
        about: "elections, with a deposed leader that goes on, and appends that are lost",
        ticks: Ticks::Never,
        faults: 2,
        kinds: &[Elect, Depose, LoseWhole],
        records: &[LONG, LONG, LONG],
        limits: QUIET,
        ..Scope::BASE
    },
    Scope {
        name: "stale-leader",
        about: "45 and 59 from a leader that should know better",
        faults: 2,
        kinds: &[LoseWhole],
        codes: &[Before(45), Before(59)],
        restarts: 1,
        ..LONE
    },
    Scope {
        name: "one-45",
        about: "a single 45 that means nothing",
        faults: 1,
        codes: &[Before(45)],
        restarts: 1,
        limits: SPARED,
        ..LONE
    },
    Scope {
        name: "whole-pass",
        about: "45 until the lane believes it",
        records: &[LONG, LONG, LONG],
        faults: 4,
        codes: &[Before(45)],
        ..LONE
    },
    Scope {
        name: "conflict",
        about: "somebody else seems to use our id",
        faults: 2,
        kinds: &[LoseWhole],
        codes: &[Before(47), Before(90)],
        limits: Limits { stops: true, ..Scope::BASE.limits },
        ..LONE
    },
    Scope {
        name: "one-conflict",
        about: "a single 47",
        faults: 1,
        codes: &[Before(47)],
        limits: Limits { losses: true, unfenced: true, ..SPARED },
        ..LONE
    },
    Scope {
        name: "taken-over",
        about: "47 for ever",
        faults: 1,
        kinds: &[Refuse],
        refusal: 47,
        limits: Limits { stops: true, ..Scope::BASE.limits },
        ..LONE
    },
    Scope {
        name: "foreign-46",
        about: "46 for a batch that was never offered before",
        faults: 2,
        codes: &[Before(46), Before(19)],
        limits: Limits { stops: true, ..Scope::BASE.limits },
        ..LONE
    },
    Scope {
        name: "says-46",
        about: "a broker that says 46 for all that lies below what it expects",
        faults: 2,
        kinds: &[LoseWhole, LoseGone],
        restarts: 1,
        says_46: true,
        limits: QUIET,
        ..LONE
    },
    Scope {
        name: "old-broker",
        about: "a broker that answers 59 where it has no state (2.4), and forgets",
        records: &[OLD, LONG, LONG],
        faults: 1,
        kinds: &[LoseWhole],
        codes: &[Before(19)],
        expires_ms: Some(86_400_000),
        profile: Profile::V2_4,
        ..LONE
    },
    Scope {
        name: "old-stamps",
        about: "record timestamps older than the broker's memory",
        records: &[OLD, LONG, OLD],
        faults: 2,
        kinds: &[LoseWhole, LoseGone],
        codes: &[Before(19)],
        expires_ms: Some(86_400_000),
        ..LONE
    },
    Scope {
        name: "old-stamps-late",
        about: "fresh records before old ones, and answers that are lost",
        records: &[LONG, OLD, OLD],
        faults: 2,
        kinds: &[LoseWhole, LoseGone],
        expires_ms: Some(86_400_000),
        ..LONE
    },
    Scope {
        name: "old-behind-fresh",
        about: "an old record is written behind a fresh one that is in doubt",
        records: &[LONG, LONG, OLD],
        faults: 2,
        kinds: &[LoseWhole],
        codes: &[AfterBlind(7), Before(19)],
        expires_ms: Some(86_400_000),
        ..LONE
    },
    Scope {
        name: "log-append-time",
        about: "old timestamps do not matter where the broker stamps",
        records: &[OLD, OLD, OLD],
        faults: 1,
        kinds: &[LoseWhole, LoseGone],
        log_append_time: true,
        limits: Limits { losses: true, ..SPARED },
        ..LONE
    },
    Scope {
        name: "long-absence",
        about: "nobody answers until the broker may have forgotten us",
        records: &[
            Plan { due_ms: 200_000_000, ..LONG },
            Plan { due_ms: 200_000_000, ..LONG },
            Plan { due_ms: 300_000_000, ..LONG },
        ],
        ticks: Ticks::Always,
        faults: 2,
        kinds: &[LoseWhole],
        expires_ms: Some(86_400_000),
        ..LONE
    },
    Scope {
        name: "purge",
        about: "what was delivered is deleted, and the broker restarts",
        faults: 2,
        kinds: &[LoseWhole, Purge],
        restarts: 1,
        ..LONE
    },
    Scope {
        name: "purge-late",
        about: "a late answer shows that the log moved past us",
        records: &[LONG; 4],
        at_once: 4,
        faults: 2,
        kinds: &[Reroute, Purge],
        limits: QUIET,
        ..LONE
    },
    Scope {
        name: "aging",
        about: "the newest acknowledged batch ages faster than what is in doubt behind it",
        records: AGING,
        at_once: 4,
        ticks: Ticks::Always,
        faults: 2,
        kinds: &[LoseGone, LoseWhole],
        codes: &[Before(29), Before(45)],
        expires_ms: Some(86_400_000),
        ..LONE
    },
    Scope {
        name: "purge-old",
        about: "data and state go together, and the broker says so (2.4)",
        faults: 1,
        kinds: &[Purge],
        restarts: 1,
        profile: Profile::V2_4,
        limits: Limits { losses: true, ..SPARED },
        ..LONE
    },
    Scope {
        name: "recreated",
        about: "the topic is deleted and made anew",
        faults: 2,
        kinds: &[LoseWhole, Recreate],
        ..LONE
    },
    Scope {
        name: "wrap",
        about: "the sequence passes 2^31 - 1",
        preset: Some((3, i32::MAX)),
        records: &[LONG, LONG, LONG, LONG],
        batch_size: 2,
        faults: 1,
        kinds: &[LoseWhole],
        codes: &[Before(19)],
        restarts: 1,
        limits: QUIET,
        ..LONE
    },
    Scope {
        name: "last-epoch",
        about: "the epoch cannot grow any more",
        preset: Some((32_766, 5)),
        faults: 2,
        kinds: &[LoseWhole],
        codes: &[Before(87), Before(45)],
        ..LONE
    },
    Scope {
        name: "last-epoch-shed",
        about: "what is in doubt is given up at the last epoch",
        preset: Some((32_766, 5)),
        faults: 3,
        kinds: &[LoseWhole, Shed, Elect],
        codes: &[Before(87)],
        records: &[LONG, LONG, LONG, LONG],
        ..LONE
    },
    Scope {
        name: "last-epoch-fence",
        about: "the last epoch fences what was given up, and nothing is in its way",
        preset: Some((32_766, 5)),
        faults: 1,
        kinds: &[Shed],
        limits: QUIET,
        ..LONE
    },
    Scope {
        name: "last-epoch-refused",
        about: "the fence of the last epoch is refused while late answers come",
        preset: Some((32_766, 5)),
        records: &[LONG; 5],
        at_once: 5,
        faults: 3,
        kinds: &[LoseWhole, Shed],
        codes: &[Before(87)],
        ..LONE
    },
    Scope {
        name: "shrink",
        about: "batches of two that must be split",
        records: &[LONG, LONG, LONG, LONG],
        batch_size: 2,
        faults: 1,
        kinds: &[Shrink],
        limits: Limits { epochs: 2, ..SPARED },
        ..LONE
    },
    Scope {
        name: "bad-record",
        about: "the broker names the record that it refuses",
        records: &[LONG, BAD, LONG, LONG],
        batch_size: 2,
        limits: SPARED,
        ..LONE
    },
    Scope {
        name: "bad-behind-doubt",
        about: "a bad record behind one whose answer is doubtful",
        records: &[LONG, LONG, BAD, LONG],
        at_once: 4,
        faults: 1,
        codes: &[AfterBlind(-1)],
        limits: SPARED,
        ..LONE
    },
    Scope {
        name: "bad-before-doubt",
        about: "a bad record before one whose answer is lost",
        records: &[LONG, BAD, LONG],
        faults: 1,
        kinds: &[Reign],
        codes: &[AfterBlind(-1)],
        limits: Limits { losses: true, ..SPARED },
        ..LONE
    },
    Scope {
        name: "linger",
        about: "batches that wait for more records than come",
        records: &[Plan { due_ms: 120_000, ..LONG }; 2],
        batch_size: 5,
        ticks: Ticks::Wakeups,
        linger_ms: 500_000,
        limits: SPARED,
        ..LONE
    },
    Scope {
        name: "patience",
        about: "time between attempts",
        records: &[LONG, LONG],
        ticks: Ticks::Wakeups,
        state_ttl_ms: FOREVER_MS,
        backoff_ms: 100,
        faults: 2,
        kinds: &[LoseWhole, LoseGone],
        codes: &[Before(19)],
        limits: SPARED,
        ..LONE
    },
    Scope {
        name: "patience-failover",
        about: "time between attempts, and newer leader epochs",
        records: &[LONG, LONG],
        ticks: Ticks::Wakeups,
        state_ttl_ms: FOREVER_MS,
        backoff_ms: 100,
        faults: 1,
        kinds: &[Elect, LoseWhole],
        eager: true,
        limits: SPARED,
        ..Scope::BASE
    },
    Scope {
        name: "forgetful",
        about: "the broker forgets us for no reason, and late answers show it",
        faults: 3,
        kinds: &[Reign, Forget],
        codes: &[Before(87)],
        limits: Limits { stops: true, ..Scope::BASE.limits },
        ..LONE
    },
    Scope {
        name: "forgets-once",
        about: "the broker forgets us behind a refused batch",
        faults: 2,
        kinds: &[Forget],
        codes: &[Before(87)],
        ..LONE
    },
    Scope {
        name: "unclean",
        about: "acknowledged data is lost",
        ticks: Ticks::Never,
        records: &[LONG, LONG, LONG],
        faults: 2,
        kinds: &[Lag, Unclean],
        limits: Limits { stops: true, ..Scope::BASE.limits },
        ..Scope::BASE
    },
    Scope {
        name: "split",
        about: "batches of two that must be split while something is in doubt, and bad records",
        records: &[LONG, LONG, LONG, LONG],
        at_once: 4,
        batch_size: 2,
        ticks: Ticks::Wakeups,
        backoff_ms: 30_000,
        faults: 2,
        kinds: &[LoseWhole, Shrink],
        codes: &[Before(87)],
        limits: QUIET,
        ..LONE
    },
    Scope {
        name: "mixed",
        about: "different deadlines in one batch",
        records: &[SHORT, LONG, LONG],
        batch_size: 2,
        ticks: Ticks::Always,
        faults: 2,
        kinds: &[LoseWhole, LoseCut],
        codes: &[Before(19)],
        limits: QUIET,
        ..LONE
    },
    Scope {
        name: "cancel",
        about: "the caller cancels at any time",
        cancels: &[0, 1],
        faults: 2,
        kinds: &[LoseWhole, LoseCut],
        codes: &[Before(19)],
        limits: QUIET,
        ..LONE
    },
    Scope {
        name: "close",
        about: "the producer is closed at any time",
        closes: Some(500),
        ticks: Ticks::Always,
        faults: 2,
        kinds: &[LoseWhole, LoseCut],
        codes: &[Before(19)],
        limits: QUIET,
        ..LONE
    },
    Scope {
        name: "stuck",
        about: "a refusal that does not pass while something is in doubt",
        records: &[SHORT, LONG],
        ticks: Ticks::Always,
        backoff_ms: 10_000,
        faults: 2,
        kinds: &[LoseWhole, LoseGone, Refuse, Lift],
        ..LONE
    },
    Scope {
        name: "stuck-head",
        about: "a bad record in doubt at the head of others",
        records: &[Plan { bad: true, ..SHORT }, LONG],
        ticks: Ticks::Wakeups,
        backoff_ms: 400,
        faults: 1,
        kinds: &[LoseWhole, LoseGone],
        limits: SPARED,
        ..LONE
    },
    Scope {
        name: "span",
        about: "more batches than a broker remembers",
        records: &[LONG; 7],
        faults: 1,
        kinds: &[LoseWhole],
        codes: &[AfterBlind(7)],
        limits: QUIET,
        ..LONE
    },
    Scope {
        name: "slow-followers",
        about: "requests that time out while they wait for replication",
        ticks: Ticks::Never,
        records: &[LONG, LONG, LONG],
        faults: 2,
        kinds: &[Timeout, Elect],
        limits: QUIET,
        ..Scope::BASE
    },
    Scope {
        name: "revoke-two",
        about: "two batches in doubt, of which records are revoked; what was closed goes on",
        records: &[LONG; 5],
        at_once: 0,
        batch_size: 3,
        revokes: &[0, 1],
        limits: SPARED,
        ..CONTESTED
    },
    Scope {
        name: "revoke-purge",
        about: "a slot is contested while the log moves past what was acknowledged",
        faults: 3,
        kinds: &[LoseWhole, Purge],
        restarts: 1,
        revokes: &[1, 2],
        ..CONTESTED
    },
    Scope {
        name: "revoke-one-45",
        about: "a record is revoked while a single 45 means nothing",
        codes: &[Before(45)],
        ..CONTESTED
    },
    Scope {
        name: "abandon",
        about: "the caller abandons the partition at any time",
        faults: 2,
        kinds: &[LoseWhole, LoseGone],
        codes: &[Before(19)],
        restarts: 1,
        abandons: true,
        limits: QUIET,
        ..LONE
    },
    Scope {
        name: "any-fault",
        about: "three batches, two leaders, a fault of any kind, a restart, deadlines, long silence",
        faults: 1,
        kinds: KINDS,
        codes: CODES,
        restarts: 1,
        limits: STOPS,
        ..Scope::BASE
    },
    Scope {
        name: "two-faults",
        about: "two batches, two leaders, two faults of any kind, a restart, a deadline",
        size: Size::Small,
        records: &[SHORT, LONG],
        at_once: 2,
        ..EVERYTHING
    },
    EVERYTHING,
    Scope {
        name: "five-batches",
        about: "five batches, and brokers that restart and remember only the newest",
        size: Size::Wide,
        records: &[LONG; 5],
        at_once: 5,
        faults: 2,
        kinds: &[LoseWhole, LoseCut, LoseGone],
        codes: &[AfterBlind(7), Before(19)],
        restarts: 1,
        limits: QUIET,
        ..LONE
    },
    Scope {
        name: "mixed-deadlines",
        about: "records of one batch with deadlines of their own, elections, restarts",
        size: Size::Wide,
        records: &[SHORT, LONG, MEDIUM, LONG],
        at_once: 4,
        batch_size: 2,
        faults: 2,
        kinds: &[LoseWhole, LoseCut, LoseGone, Elect, Timeout],
        codes: &[Before(19), Before(87), AfterBlind(7)],
        restarts: 1,
        ticks: Ticks::Deadlines(2),
        state_ttl_ms: FOREVER_MS,
        limits: QUIET,
        ..Scope::BASE
    },
    Scope {
        name: "expiry",
        about: "records older than the brokers' memory, elections, restarts",
        size: Size::Wide,
        records: &[LONG, OLD, LONG],
        faults: 2,
        kinds: &[LoseWhole, LoseGone, Elect, Depose],
        codes: &[Before(19)],
        restarts: 1,
        ticks: Ticks::Never,
        expires_ms: Some(86_400_000),
        ..Scope::BASE
    },
    Scope {
        name: "unclean-elections",
        about: "acknowledged data is lost while connections break: loudly",
        size: Size::Wide,
        faults: 3,
        kinds: &[Lag, Unclean, LoseWhole, LoseGone],
        records: &[LONG, LONG, LONG],
        restarts: 1,
        ticks: Ticks::Never,
        limits: STOPS,
        ..Scope::BASE
    },
    Scope {
        name: "revoke-three",
        about: "three batches in doubt, of which records are revoked, at a broker that restarts",
        size: Size::Wide,
        records: &[LONG; 6],
        at_once: 0,
        batch_size: 3,
        restarts: 1,
        revokes: &[0, 1, 2],
        limits: SPARED,
        ..CONTESTED
    },
    Scope {
        name: "revoke-refused",
        about: "contested slots and codes, at a broker that restarts",
        size: Size::Wide,
        codes: &[Before(19), Before(45), Before(87), AfterBlind(7)],
        restarts: 1,
        revokes: &[1, 2],
        ..CONTESTED
    },
    Scope {
        name: "revoke-aging",
        about: "a record is revoked whose broker may forget it",
        size: Size::Wide,
        records: AGING,
        at_once: 1,
        batch_size: 2,
        ticks: Ticks::Always,
        faults: 2,
        kinds: &[LoseGone],
        codes: &[Before(29)],
        revokes: &[1],
        expires_ms: Some(86_400_000),
        ..LONE
    },
    Scope {
        name: "revoke-failover",
        about: "contested slots, two leaders, a deadline, a fault of any kind and a restart",
        size: Size::Wide,
        records: &[SHORT, LONG, LONG, LONG],
        batch_size: 2,
        faults: 1,
        revokes: &[1],
        ..EVERYTHING
    },
    Scope {
        name: "abandon-failover",
        about: "the caller abandons the partition at any time, and leaders change",
        size: Size::Wide,
        faults: 2,
        kinds: &[LoseWhole, LoseGone, Elect],
        codes: &[Before(19)],
        restarts: 1,
        ticks: Ticks::Never,
        abandons: true,
        limits: QUIET,
        ..Scope::BASE
    },
    Scope {
        name: "four-batches",
        about: "four batches, two leaders, two faults of any kind, a restart, a deadline",
        size: Size::Night,
        records: &[SHORT, LONG, LONG, LONG],
        at_once: 4,
        ..EVERYTHING
    },
];

/// The scope of this name.
pub fn scope(name: &str) -> Option<&'static Scope> {
    SCOPES.iter().find(|scope| scope.name == name)
}
