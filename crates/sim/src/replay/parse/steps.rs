//! The steps of a scenario.

use candor_core::Span;

use super::super::error::ScriptError;
use super::super::script::{
    Answer, Blow, Body, Condition, Meta, Out, Part, Piece, Send, Setup, Step, Tick, Vouched,
};
use super::super::words::{Place, Words, names, place, range};
use super::{broker, setup, wants};

type Read<T> = Result<T, ScriptError>;

const STEP: &str = "a step: send, cancel, flush, close, out, no, in, append, frame, eof, up, down, \
    hang, mute, stick, meta, id, move, forget, purge, recreate, restart, stop, start, \
    brokers, tick, expect or never";

/// Reads one step.
pub(super) fn read(words: &mut Words, setup: &Setup, line: usize) -> Read<Step> {
    let word = words.word(STEP)?;
    Ok(match &*word {
        "send" => Step::Send(send(words)?),
        "cancel" => Step::Cancel(words.names()?),
        "flush" => Step::Flush(words.word("a name for the flush")?),
        "close" => Step::Close(words.span()?),
        "out" => Step::Out(out(words, setup)?),
        "no" => {
            words.must("out")?;
            let to = if words.is_empty() { None } else { Some(broker(words, setup)?) };
            Step::NoOut(to)
        }
        "in" => Step::Answer(answer(words, setup)?),
        "append" => Step::Append { broker: broker(words, setup)? },
        "frame" => frame(words, setup)?,
        "eof" => eof(words, setup)?,
        "up" | "down" | "hang" | "mute" | "stick" => condition(&word, words, setup)?,
        "meta" => Step::Meta(meta(words, setup)?),
        "id" => Step::Id(match words.take("err") {
            true => Err(words.number()?),
            false => Ok(setup::identity(words)?),
        }),
        "brokers" => Step::Auto(words.read("answer or wait", |word| match word {
            "answer" => Some(true),
            "wait" => Some(false),
            _ => None,
        })?),
        "tick" => Step::Tick(tick(words, setup)?),
        "expect" => Step::Expect(wants::expect(words, setup)?),
        "never" => Step::Never(wants::never(words, setup, line)?),
        _ => Step::Blow(blow(&word, words, setup)?),
    })
}

fn send(words: &mut Words) -> Read<Send> {
    let mut send = Send {
        names: words.names()?,
        topic: "t".to_owned(),
        partition: Some(0),
        key: None,
        headers: Vec::new(),
        timestamp: None,
        deadline: None,
        body: Body::Named(0),
        refused: None,
    };
    while !words.is_empty() {
        if words.take("to") {
            let word = words.word("a topic or a partition")?;
            (send.topic, send.partition) = match place(&word) {
                Some(place) => (place.topic, u32::try_from(place.partition).ok()),
                None => (word, None),
            };
        } else if words.take("key") {
            send.key = Some(words.word("a key")?);
        } else if words.take("header") {
            let text = words.word("a header such as name=value or name")?;
            send.headers.push(match text.split_once('=') {
                Some((name, value)) => (name.to_owned(), Some(value.to_owned())),
                None => (text, None),
            });
        } else if words.take("stamped") {
            send.timestamp = Some(words.number()?);
        } else if words.take("deadline") {
            send.deadline = Some(words.span()?);
        } else if words.take("size") {
            send.body = Body::Named(words.read("a size up to 8000000", |word| {
                word.parse().ok().filter(|size| *size <= 8_000_000)
            })?);
        } else if words.take("null") {
            send.body = Body::Null;
        } else if words.take("empty") {
            send.body = Body::Empty;
        } else if words.take("refused") {
            send.refused = Some(words.word("why: Full, Closed, TooLarge, BadTopic, ..")?);
        } else {
            break;
        }
    }
    Ok(send)
}

fn out(words: &mut Words, setup: &Setup) -> Read<Out> {
    let mut out = Out {
        broker: broker(words, setup)?,
        place: Place { topic: "t".to_owned(), partition: 0 },
        range: (0, 0),
        epoch: None,
        pid: None,
        names: None,
        version: None,
        at_most: None,
    };
    if let Some(at) = words.maybe(place) {
        out.place = at;
    }
    out.range = words.read("sequences such as [0-9] or [5]", range)?;
    while !words.is_empty() {
        if let Some(epoch) = words.maybe(epoch) {
            out.epoch = Some(epoch);
        } else if words.take("pid") {
            out.pid = Some(words.number()?);
        } else if words.take("version") {
            out.version = Some(words.number()?);
        } else if words.take("bytes") {
            words.must("up")?;
            words.must("to")?;
            out.at_most = Some(words.number()?);
        } else if let Some(named) = words.maybe(names) {
            out.names = Some(named);
        } else {
            break;
        }
    }
    Ok(out)
}

/// `e0`, `e32767`.
pub(super) fn epoch(word: &str) -> Option<i16> {
    word.strip_prefix('e')?.parse().ok()
}

fn answer(words: &mut Words, setup: &Setup) -> Read<Answer> {
    let broker = broker(words, setup)?;
    let mut answer = Answer { broker, parts: Some(Vec::new()), throttle: Span::ZERO };
    if words.take("stored") {
        answer.parts = None;
    } else {
        let mut parts = vec![part(words, setup)?];
        while words.take("and") {
            parts.push(part(words, setup)?);
        }
        answer.parts = Some(parts);
    }
    if words.take("throttle") {
        answer.throttle = words.span()?;
    }
    Ok(answer)
}

fn part(words: &mut Words, setup: &Setup) -> Read<Part> {
    let place = words.maybe(place);
    let mut part =
        Part { place, code: 0, offset: -1, log_start: -1, records: Vec::new(), hint: None };
    if words.take("ok") {
        part.offset = words.number()?;
        part.log_start = 0;
    } else {
        if !words.take("err") {
            return Err(words.wanted("ok, err or stored"));
        }
        part.code = words.number()?;
    }
    while !words.is_empty() {
        if words.take("start") {
            part.log_start = words.number()?;
        } else if words.take("offset") {
            part.offset = words.number()?;
        } else if words.take("hint") {
            part.hint = Some((broker(words, setup)?, words.number()?));
        } else if words.take("records") {
            while let Some(index) = words.maybe(|word| word.parse().ok()) {
                let text = words.maybe(|word| {
                    let free = word.parse::<i64>().is_err() && word != "and";
                    free.then(|| word.to_owned())
                });
                part.records.push((index, text));
            }
        } else {
            break;
        }
    }
    Ok(part)
}

fn frame(words: &mut Words, setup: &Setup) -> Read<Step> {
    let broker = broker(words, setup)?;
    let mut pieces = Vec::new();
    while !words.is_empty() {
        let piece = |word: &str| match word {
            "correlation" => Some(vec![Piece::Correlation]),
            _ => hex(word),
        };
        pieces.extend(words.read("hexadecimal bytes, or `correlation`", piece)?);
    }
    Ok(Step::Frame { broker, pieces })
}

fn hex(word: &str) -> Option<Vec<Piece>> {
    if !word.is_ascii() || !word.len().is_multiple_of(2) {
        return None;
    }
    let byte = |at: usize| u8::from_str_radix(&word[at..at + 2], 16).ok().map(Piece::Byte);
    (0..word.len()).step_by(2).map(byte).collect()
}

fn eof(words: &mut Words, setup: &Setup) -> Read<Step> {
    let broker = broker(words, setup)?;
    let stored = words.take("stored");
    let mut vouched = Vouched::WhatWasTaken;
    if words.take("unvouched") {
        vouched = Vouched::Nothing;
    }
    Ok(Step::End { broker, stored, vouched })
}

fn condition(word: &str, words: &mut Words, setup: &Setup) -> Read<Step> {
    let broker = broker(words, setup)?;
    let condition = match word {
        "up" => Condition::Up,
        "down" => Condition::Down,
        "hang" => Condition::Hung,
        "mute" => Condition::Mute,
        _ => Condition::Stuck(if words.take("after") { words.number()? } else { 0 }),
    };
    Ok(Step::Condition { broker, condition })
}

fn meta(words: &mut Words, setup: &Setup) -> Read<Meta> {
    if words.take("rebootstrap") {
        return Ok(Meta::Rebootstrap);
    }
    if words.take("as") {
        words.must("usual")?;
        return Ok(Meta::Usual);
    }
    if let Some(place) = words.maybe(place) {
        let leader = match words.take("to") {
            true => Some(broker(words, setup)?),
            false => {
                words.must("leaderless")?;
                None
            }
        };
        let epoch = if words.take("epoch") { Some(words.number()?) } else { None };
        return Ok(Meta::Leader { place, broker: leader, epoch });
    }
    let topic = words.word("a topic, a partition, rebootstrap or `as usual`")?;
    const WHAT: &str = "missing, back, renewed, err or partitions";
    let what = words.word(WHAT)?;
    Ok(match &*what {
        "missing" => Meta::Missing { topic },
        "back" => Meta::Back { topic },
        "renewed" => Meta::Renewed { topic },
        "err" => Meta::Refused { topic, code: words.number()? },
        "partitions" => Meta::Grown {
            topic,
            partitions: words
                .read("a number up to 2000", |word| word.parse().ok().filter(|n| *n <= 2_000))?,
        },
        other => return Err(words.not(Some(other), WHAT)),
    })
}

fn tick(words: &mut Words, setup: &Setup) -> Read<Tick> {
    if words.take("next") {
        return Ok(Tick::Next);
    }
    if !words.take("until") {
        return Ok(Tick::For(words.span()?));
    }
    if words.take("told") {
        return Ok(Tick::UntilTold(words.names()?));
    }
    words.must("out")?;
    Ok(Tick::UntilOut(broker(words, setup)?))
}

fn blow(word: &str, words: &mut Words, setup: &Setup) -> Read<Blow> {
    Ok(match word {
        "move" => {
            let place = words.place()?;
            words.must("to")?;
            Blow::Move { place, broker: broker(words, setup)? }
        }
        "forget" => Blow::Forget { place: words.place()? },
        "purge" => {
            let place = words.place()?;
            words.must("before")?;
            Blow::Purge { place, before: words.number()? }
        }
        "recreate" => Blow::Recreate { topic: words.word("a topic")? },
        "restart" => Blow::Restart { broker: broker(words, setup)?, crash: words.take("crash") },
        "stop" => Blow::Stop { broker: broker(words, setup)?, crash: words.take("crash") },
        "start" => Blow::Start { broker: broker(words, setup)? },
        other => return Err(words.not(Some(other), STEP)),
    })
}
