//! What a scenario wants to see, and what it never wants to.

use super::super::error::ScriptError;
use super::super::script::{Expect, Never, Said, Setup, Spot};
use super::super::words::{Words, names, place, range};
use super::{broker, steps};

type Read<T> = Result<T, ScriptError>;

const WANT: &str = "delivered, not-delivered, unknown, waiting, resolved, unresolved, notice, no, \
    flushed, flushing, closed, open, log, asked, unasked, dialled, undialled, room, memory, within \
    or spread";

pub(super) fn expect(words: &mut Words, setup: &Setup) -> Read<Expect> {
    let word = words.word(WANT)?;
    Ok(match &*word {
        "delivered" => verdict(words, |words| Ok(Said::Delivered(spot(words)?)))?,
        "not-delivered" => verdict(words, |words| Ok(Said::NotDelivered(reason(words))))?,
        "unknown" => verdict(words, |_| Ok(Said::Unknown))?,
        "waiting" => verdict(words, |_| Ok(Said::Nothing))?,
        "resolved" => resolved(words)?,
        "unresolved" => Expect::Resolution { names: words.names()?, said: Said::Nothing },
        "notice" => Expect::Notice(words.word("a notice such as DataLoss")?),
        "no" => no(words)?,
        "flushed" => Expect::Flushed(words.word("a flush")?),
        "flushing" => Expect::Flushing(words.word("a flush")?),
        "closed" => Expect::Closed(true),
        "open" => Expect::Closed(false),
        "log" => {
            let place = words.place()?;
            let names = if words.is_empty() { Vec::new() } else { words.names()? };
            Expect::Log { place, names }
        }
        "asked" => asked(words, setup, true)?,
        "unasked" => asked(words, setup, false)?,
        "dialled" => Expect::Dialled { broker: broker(words, setup)?, is: true },
        "undialled" => Expect::Dialled { broker: broker(words, setup)?, is: false },
        "room" => {
            words.must("back")?;
            Expect::RoomBack
        }
        "memory" => {
            words.must("below")?;
            Expect::MemoryBelow(words.number()?)
        }
        "within" => Expect::Within(words.span()?),
        "spread" => {
            let topic = words.word("a topic")?;
            words.must("within")?;
            Expect::Spread { topic, within: words.number()? }
        }
        other => return Err(words.not(Some(other), WANT)),
    })
}

fn verdict(words: &mut Words, said: impl FnOnce(&mut Words) -> Read<Said>) -> Read<Expect> {
    let names = words.names()?;
    Ok(Expect::Verdict { names, said: said(words)? })
}

fn spot(words: &mut Words) -> Read<Spot> {
    if words.is_empty() {
        return Ok(Spot::Anywhere);
    }
    words.read("an offset such as @100, or @?", |word| match word.strip_prefix('@')? {
        "?" => Some(Spot::Untold),
        offset => offset.parse().ok().map(Spot::At),
    })
}

fn reason(words: &mut Words) -> Option<String> {
    if words.is_empty() { None } else { Some(words.rest()) }
}

fn resolved(words: &mut Words) -> Read<Expect> {
    let names = words.names()?;
    const HOW: &str = "delivered, not-delivered or never";
    let how = words.word(HOW)?;
    let said = match &*how {
        "delivered" => Said::Delivered(spot(words)?),
        "not-delivered" => Said::NotDelivered(reason(words)),
        "never" => Said::Never(reason(words)),
        other => return Err(words.not(Some(other), HOW)),
    };
    Ok(Expect::Resolution { names, said })
}

fn no(words: &mut Words) -> Read<Expect> {
    if words.take("bump") {
        let place = words.maybe(place);
        return Ok(Expect::NoBump(place.unwrap_or_default()));
    }
    words.must("notice")?;
    Ok(Expect::NoNotice(reason(words)))
}

fn asked(words: &mut Words, setup: &Setup, is: bool) -> Read<Expect> {
    if words.take("about") {
        return Ok(Expect::AskedAbout { topic: words.word("a topic")?, is });
    }
    if words.is_empty() {
        return Ok(Expect::Asked { broker: None, is });
    }
    let broker = broker(words, setup)?;
    Ok(match words.take("id") {
        true => Expect::IdAsked { broker, is },
        false => Expect::Asked { broker: Some(broker), is },
    })
}

pub(super) fn never(words: &mut Words, setup: &Setup, line: usize) -> Read<Never> {
    let mut never = Never {
        line,
        broker: None,
        place: None,
        range: None,
        epoch: None,
        names: None,
        bump: false,
    };
    if words.take("bump") {
        never.bump = true;
        never.place = Some(words.maybe(place).unwrap_or_default());
        return Ok(never);
    }
    words.must("out")?;
    while !words.is_empty() {
        if let Some(at) = words.maybe(range) {
            never.range = Some(at);
        } else if let Some(at) = words.maybe(place) {
            never.place = Some(at);
        } else if let Some(epoch) = words.maybe(steps::epoch) {
            never.epoch = Some(epoch);
        } else if words.take("to") {
            never.broker = Some(broker(words, setup)?);
        } else {
            let named = words.read("sequences, an epoch, a partition or records", names)?;
            never.names = Some(named);
        }
    }
    Ok(never)
}
