//! Faults as text, for command lines: `produce:3 drop-reply`.

use std::fmt;
use std::str::FromStr;

use super::fault::{Effect, Fault, Moment, Release, Trigger, Upset};

/// What can be written.
const TRIGGERS: &str = "produce:N, produce:N:TOPIC-PARTITION or request:API:N";
const EFFECTS: &str = "drop-reply, cut-reply:BYTES, cut-request:BYTES, answer:CODE:WHEN, \
    throttle:MILLISECONDS, hold:MICROSECONDS, hold:produce:N, hold:by-hand, hold:never, \
    move-leader:TOPIC-PARTITION:NODE:WHEN, forget:TOPIC-PARTITION:WHEN, restart:NODE:HOW:WHEN, \
    stop:NODE:HOW:WHEN or recreate:TOPIC:WHEN, with WHEN before or after and HOW clean or crash";

/// A text that is no fault.
///
/// ```
/// use candor_sim::serve::Fault;
/// let wrong = "produce:x drop-reply".parse::<Fault>().unwrap_err();
/// assert!(wrong.to_string().starts_with("\"produce:x\" is no trigger: write produce:N,"));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FaultSyntax {
    /// Not two words.
    Words(String),
    /// The first word is no trigger.
    Trigger(String),
    /// The second word is no effect.
    Effect(String),
}

impl fmt::Display for FaultSyntax {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Words(text) => {
                write!(
                    f,
                    "{text:?} is no fault: write a trigger, a space and an effect, such as \
                     \"produce:3 drop-reply\""
                )
            }
            Self::Trigger(text) => write!(f, "{text:?} is no trigger: write {TRIGGERS}"),
            Self::Effect(text) => write!(f, "{text:?} is no effect: write {EFFECTS}"),
        }
    }
}

impl std::error::Error for FaultSyntax {}

/// Reads "TRIGGER EFFECT".
///
/// ```
/// use candor_sim::serve::{Effect, Fault, Moment};
/// let fault: Fault = "produce:2:orders-0 answer:7:after".parse().unwrap();
/// let effect = Effect::Answer { code: 7, at: Moment::After };
/// assert_eq!(fault, Fault::on_partition("orders", 0, 2, effect));
/// ```
impl FromStr for Fault {
    type Err = FaultSyntax;

    fn from_str(text: &str) -> Result<Self, FaultSyntax> {
        let mut words = text.split_whitespace();
        let (Some(first), Some(second), None) = (words.next(), words.next(), words.next()) else {
            return Err(FaultSyntax::Words(text.to_owned()));
        };
        Ok(Self {
            trigger: trigger(first).ok_or_else(|| FaultSyntax::Trigger(first.to_owned()))?,
            effect: effect(second).ok_or_else(|| FaultSyntax::Effect(second.to_owned()))?,
        })
    }
}

fn trigger(word: &str) -> Option<Trigger> {
    match parts(word)[..] {
        ["produce", nth] => Some(Trigger::Produce(count(nth)?)),
        ["produce", nth, place] => {
            let (topic, partition) = partition(place)?;
            Some(Trigger::ProduceTo { topic, partition, nth: count(nth)? })
        }
        ["request", api, nth] => {
            Some(Trigger::Request { api: api.parse().ok()?, nth: count(nth)? })
        }
        _ => None,
    }
}

fn effect(word: &str) -> Option<Effect> {
    Some(match parts(word)[..] {
        ["drop-reply"] => Effect::DropReply,
        ["cut-reply", bytes] => Effect::CutReply(bytes.parse().ok()?),
        ["cut-request", bytes] => Effect::CutRequest(bytes.parse().ok()?),
        ["answer", code, at] => Effect::Answer { code: code.parse().ok()?, at: moment(at)? },
        ["throttle", millis] => Effect::Throttle(millis.parse().ok()?),
        ["hold", "never"] => Effect::HoldReply(Release::Never),
        ["hold", "by-hand"] => Effect::HoldReply(Release::ByHand),
        ["hold", "produce", nth] => Effect::HoldReply(Release::Produce(count(nth)?)),
        ["hold", micros] => Effect::HoldReply(Release::Elapsed(micros.parse().ok()?)),
        [ref upset @ .., at] => Effect::Upset { upset: self::upset(upset)?, at: moment(at)? },
        [] => return None,
    })
}

fn upset(words: &[&str]) -> Option<Upset> {
    Some(match *words {
        ["move-leader", place, node] => {
            let (topic, partition) = partition(place)?;
            Upset::MoveLeader { topic, partition, to: node.parse().ok()? }
        }
        ["forget", place] => {
            let (topic, partition) = partition(place)?;
            Upset::ForgetProducers { topic, partition }
        }
        ["restart", node, how] => Upset::Restart { node: node.parse().ok()?, crash: crash(how)? },
        ["stop", node, how] => Upset::Stop { node: node.parse().ok()?, crash: crash(how)? },
        ["recreate", topic] => Upset::RecreateTopic { topic: topic.to_owned() },
        _ => return None,
    })
}

fn parts(word: &str) -> Vec<&str> {
    word.split(':').collect()
}

/// Counting begins at 1.
fn count(word: &str) -> Option<u64> {
    word.parse().ok().filter(|nth| *nth > 0)
}

fn partition(word: &str) -> Option<(String, i32)> {
    let (topic, partition) = word.rsplit_once('-')?;
    Some((topic.to_owned(), partition.parse().ok()?))
}

fn moment(word: &str) -> Option<Moment> {
    match word {
        "before" => Some(Moment::Before),
        "after" => Some(Moment::After),
        _ => None,
    }
}

fn crash(word: &str) -> Option<bool> {
    match word {
        "crash" => Some(true),
        "clean" => Some(false),
        _ => None,
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.trigger {
            Trigger::Produce(nth) => write!(f, "produce:{nth} ")?,
            Trigger::ProduceTo { topic, partition, nth } => {
                write!(f, "produce:{nth}:{topic}-{partition} ")?;
            }
            Trigger::Request { api, nth } => write!(f, "request:{api}:{nth} ")?,
        }
        match &self.effect {
            Effect::DropReply => f.write_str("drop-reply"),
            Effect::CutReply(bytes) => write!(f, "cut-reply:{bytes}"),
            Effect::CutRequest(bytes) => write!(f, "cut-request:{bytes}"),
            Effect::Answer { code, at } => write!(f, "answer:{code}:{at}"),
            Effect::Throttle(millis) => write!(f, "throttle:{millis}"),
            Effect::HoldReply(Release::Elapsed(micros)) => write!(f, "hold:{micros}"),
            Effect::HoldReply(Release::Produce(nth)) => write!(f, "hold:produce:{nth}"),
            Effect::HoldReply(Release::ByHand) => f.write_str("hold:by-hand"),
            Effect::HoldReply(Release::Never) => f.write_str("hold:never"),
            Effect::Upset { upset, at } => write!(f, "{upset}:{at}"),
        }
    }
}

impl fmt::Display for Moment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Before => "before",
            Self::After => "after",
        })
    }
}

impl fmt::Display for Upset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let how = |crash: &bool| if *crash { "crash" } else { "clean" };
        match self {
            Self::MoveLeader { topic, partition, to } => {
                write!(f, "move-leader:{topic}-{partition}:{to}")
            }
            Self::ForgetProducers { topic, partition } => write!(f, "forget:{topic}-{partition}"),
            Self::Restart { node, crash } => write!(f, "restart:{node}:{}", how(crash)),
            Self::Stop { node, crash } => write!(f, "stop:{node}:{}", how(crash)),
            Self::RecreateTopic { topic } => write!(f, "recreate:{topic}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_fault_can_be_written_and_read_back() {
        let triggers = ["produce:1", "produce:2:my-topic-3", "request:18:4"];
        let effects = [
            "drop-reply",
            "cut-reply:7",
            "cut-request:0",
            "answer:-1:before",
            "answer:45:after",
            "throttle:50",
            "hold:500",
            "hold:produce:9",
            "hold:by-hand",
            "hold:never",
            "move-leader:t-0:2:before",
            "forget:t-0:after",
            "restart:1:crash:after",
            "stop:3:clean:before",
            "recreate:t:after",
        ];
        let mut seen: Vec<Fault> = Vec::new();
        for text in triggers.iter().flat_map(|t| effects.map(|e| format!("{t} {e}"))) {
            let fault: Fault = text.parse().unwrap();
            assert_eq!(fault.to_string(), text);
            assert!(!seen.contains(&fault), "{text}");
            seen.push(fault);
        }
    }

    #[test]
    fn what_is_no_fault_is_named() {
        let read = |text: &str| text.parse::<Fault>().unwrap_err();
        for text in ["", "produce:1", "produce:1 drop-reply now"] {
            assert_eq!(read(text), FaultSyntax::Words(text.to_owned()));
        }
        for trigger in ["produce:0", "produce", "produce:1:t", "produce:1:t-x", "fetch:1"] {
            let named = FaultSyntax::Trigger(trigger.to_owned());
            assert_eq!(read(&format!("{trigger} drop-reply")), named);
        }
        for effect in ["drop", "answer:7", "answer:7:later", "stop:1:hard:before", "hold:", ":"] {
            let named = FaultSyntax::Effect(effect.to_owned());
            assert_eq!(read(&format!("produce:1 {effect}")), named);
        }
    }
}
