//! A loop of one's own over `candor_proto`, and how it is verified: right as it stands, and with
//! a bug that is easily made, which the property finds and shrinks.
//!
//! `cargo run -p candor-sim --features proptest --example own_loop` prints what is found;
//! `cargo test -p candor-sim --example own_loop` checks that it is.

use std::collections::{BTreeMap, VecDeque};

use bytes::Bytes;
use candor_core::RouteId;
use candor_proto::{Handed, Input, Loss, Output};
use candor_sim::strategies::{EventLoop, Harness, Plan, Report, Status, Turn, plans};
use proptest::test_runner::{Config, RngAlgorithm, TestCaseError, TestError, TestRng, TestRunner};

/// What the loop gets wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Bug {
    None,
    /// It keeps no count of what sockets took, and says at the end of a connection that nothing
    /// was handed over. What the broker has written nevertheless may then be reported as not
    /// delivered.
    ForgetsWhatItWrote,
}

/// The loop's side of a connection.
#[derive(Default)]
struct Line {
    up: bool,
    unsent: VecDeque<Bytes>,
    /// Bytes that the socket took.
    handed: u64,
}

struct OwnLoop {
    bug: Bug,
    lines: BTreeMap<RouteId, Line>,
}

impl OwnLoop {
    const fn new(bug: Bug) -> Self {
        Self { bug, lines: BTreeMap::new() }
    }

    /// Everything that the producer has to say.
    fn obey(&mut self, turn: &mut Turn<'_>) -> bool {
        let mut some = false;
        while let Some(output) = turn.producer.poll(turn.now) {
            some = true;
            match output {
                Output::Connect { conn, address } => {
                    turn.sockets.connect(conn, &address);
                    self.lines.insert(conn, Line::default());
                }
                Output::Disconnect { conn, .. } => {
                    turn.sockets.close(conn);
                    self.lost(turn, conn, Loss::Asked);
                }
                other @ (Output::Settled(_)
                | Output::Notice(_)
                | Output::Flushed(_)
                | Output::Closed) => turn.pass_on(other),
            }
        }
        some
    }

    fn lost(&mut self, turn: &mut Turn<'_>, conn: RouteId, why: Loss) {
        let Some(line) = self.lines.remove(&conn) else { return };
        let handed = match self.bug {
            Bug::ForgetsWhatItWrote => Handed::AtMost(0),
            Bug::None => Handed::AtMost(line.handed),
        };
        tell(turn, Input::Lost { conn, handed, why });
    }

    /// One connection: is it up, what came, what goes. Gives whether anything happened.
    fn serve(&mut self, turn: &mut Turn<'_>, conn: RouteId) -> bool {
        let Some(line) = self.lines.get_mut(&conn) else { return false };
        let mut some = false;
        if !line.up && turn.sockets.status(conn) == Status::Up {
            line.up = true;
            some = true;
            tell(turn, Input::Connected { conn });
        }
        match turn.sockets.read(conn) {
            Ok(Some(bytes)) => {
                some = true;
                tell(turn, Input::Received { conn, bytes });
            }
            Ok(None) => {}
            Err(why) => {
                self.lost(turn, conn, why);
                return true;
            }
        }
        self.write(turn, conn) || some
    }

    fn write(&mut self, turn: &mut Turn<'_>, conn: RouteId) -> bool {
        let Some(line) = self.lines.get_mut(&conn).filter(|line| line.up) else { return false };
        if line.unsent.is_empty() {
            let mut bytes = Vec::new();
            turn.producer.transmit(turn.now, conn, 64 << 10, &mut bytes);
            line.unsent.extend(bytes);
        }
        let mut some = false;
        while let Some(first) = line.unsent.front_mut() {
            match turn.sockets.write(conn, first) {
                Ok(0) => break,
                Ok(n) => {
                    some = true;
                    line.handed += n as u64;
                    drop(first.split_to(n));
                    if first.is_empty() {
                        line.unsent.pop_front();
                    }
                    if self.bug != Bug::ForgetsWhatItWrote {
                        tell(turn, Input::Sent { conn, n });
                    }
                }
                Err(why) => {
                    self.lost(turn, conn, why);
                    return true;
                }
            }
        }
        some
    }
}

fn tell(turn: &mut Turn<'_>, input: Input) {
    if let Err(misuse) = turn.producer.handle(turn.now, input) {
        unreachable!("this loop reports every fact once: {misuse}");
    }
}

impl EventLoop for OwnLoop {
    fn turn(&mut self, turn: &mut Turn<'_>) {
        loop {
            let mut some = self.obey(turn);
            for conn in self.lines.keys().copied().collect::<Vec<_>>() {
                some |= self.serve(turn, conn);
            }
            if !some {
                return;
            }
        }
    }
}

fn run(plan: &Plan, bug: Bug) -> Report {
    Harness::new(plan).run(&mut OwnLoop::new(bug))
}

/// The property: whatever happens, nothing wrong is said. Gives the smallest plan that refutes it,
/// the same one every time.
fn refuted(bug: Bug, cases: u32) -> Option<Plan> {
    let config = Config { cases, failure_persistence: None, ..Config::default() };
    let rng = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
    let mut runner = TestRunner::new_with_rng(config, rng);
    let found = runner.run(&plans(), |plan| {
        let report = run(&plan, bug);
        if report.is_clean() { Ok(()) } else { Err(TestCaseError::fail(report.to_string())) }
    });
    match found {
        Ok(()) => None,
        Err(TestError::Fail(_, plan)) => Some(plan),
        Err(TestError::Abort(reason)) => unreachable!("no plan is rejected: {reason}"),
    }
}

fn main() {
    for bug in [Bug::None, Bug::ForgetsWhatItWrote] {
        match refuted(bug, 500) {
            None => println!("{bug:?}: nothing wrong in 500 runs\n"),
            Some(plan) => println!("{bug:?} is found by {plan:?}\n{}", run(&plan, bug)),
        }
    }
}

#[cfg(test)]
mod tests {
    use core::time::Duration;

    use candor_sim::broker::Profile;
    use candor_sim::serve::{Effect, Fault};
    use candor_sim::strategies::{Call, Regret, Wish};
    use proptest::strategy::{Strategy, ValueTree};

    use super::*;

    #[test]
    fn the_right_loop_says_nothing_wrong() {
        if let Some(plan) = refuted(Bug::None, 400) {
            panic!("{plan:?}\n{}", run(&plan, Bug::None));
        }
    }

    #[test]
    fn a_loop_that_forgets_what_it_wrote_is_found_and_the_plan_is_short() {
        let plan = refuted(Bug::ForgetsWhatItWrote, 2_000).expect("the bug is found");
        let report = run(&plan, Bug::ForgetsWhatItWrote).to_string();
        println!("{plan:?}\n{report}");
        assert!(report.contains("GHOST"), "{plan:?}\n{report}");
        assert!(plan.wishes.len() <= 2, "{plan:?}");
        assert_eq!(plan.broker_faults.len() + plan.wire_faults.len(), 1, "{plan:?}");
        assert!(run(&plan, Bug::None).is_clean(), "{plan:?}");
    }

    /// Record 1 is revoked while nobody knows what became of it, with two more records behind it.
    fn revoked(effect: Effect) -> Plan {
        let wish = |after_ms, regret| Wish {
            after_ms,
            partition: 0,
            bytes: 10,
            deadline_ms: 30_000,
            regret,
        };
        let revoke = Regret { after_ms: 20, call: Call::Revoke };
        Plan {
            profile: Profile::V4_4,
            config: candor_proto::Config::new(["broker-1:9092"])
                .linger(Duration::ZERO)
                .max_in_flight(1)
                .request_timeout(Duration::from_millis(300)),
            wishes: vec![wish(0, None), wish(50, Some(revoke)), wish(1, None), wish(0, None)],
            broker_faults: vec![Fault::on_produce(2, effect)],
            wire_faults: vec![],
        }
    }

    #[test]
    fn who_revokes_is_told_whether_others_took_the_place() {
        for (effect, word) in [
            (Effect::CutRequest(40), "record 1 is resolved: NotDelivered(SlotTaken)"),
            (Effect::CutReply(0), "record 1 is resolved: Delivered"),
        ] {
            let report = run(&revoked(effect), Bug::None);
            assert!(report.is_clean(), "{report}");
            assert!(report.to_string().contains(word), "{report}");
        }
    }

    #[test]
    fn what_is_said_of_a_revoked_record_is_judged() {
        let report = run(&revoked(Effect::CutReply(0)), Bug::ForgetsWhatItWrote).to_string();
        assert!(report.contains("GHOST of record 1"), "{report}");
    }

    #[test]
    fn plans_have_callers_that_change_their_mind() {
        let mut runner = TestRunner::deterministic();
        let mut said = BTreeMap::new();
        for _ in 0..1_500 {
            let plan = plans().new_tree(&mut runner).expect("a plan").current();
            let report = run(&plan, Bug::None);
            assert!(report.is_clean(), "{plan:?}\n{report}");
            for word in [": Cancel", ": Revoke", ": Abandon", "SlotTaken"] {
                let so_often = report.story.iter().filter(|line| line.contains(word)).count();
                *said.entry(word).or_insert(0) += so_often;
            }
        }
        println!("{said:?}");
        assert!(said.values().all(|times| *times > 0), "{said:?}");
    }
}
