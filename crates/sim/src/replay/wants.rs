//! What a scenario expects, checked.

use candor_core::rules::Rules;
use candor_core::{Resolution, Verdict};
use candor_proto::Notice;

use super::book::{reason, resolution_text, verdict_text};
use super::run::{Mismatch, mismatch};
use super::script::{Expect, Said, Spot};
use super::words::{Place, briefly};
use super::world::{Asked, BEGIN, Side, World};
use crate::timeline::Word;

type Done = Result<(), Mismatch>;

/// The first word of how a value is written for debugging: its variant.
pub(super) fn ident(value: &impl std::fmt::Debug) -> String {
    format!("{value:?}").chars().take_while(|c| c.is_alphanumeric()).collect()
}

/// What a notice is called in scenarios.
pub(super) fn notice_name(notice: &Notice) -> String {
    match notice {
        Notice::Partition { notice, .. } => ident(notice),
        Notice::ConnectionFailed { why: candor_proto::Fault::Lost(loss), .. } => ident(loss),
        Notice::ConnectionFailed { why, .. } => ident(why),
        Notice::NoProducerId { .. }
        | Notice::TopicRefused { .. }
        | Notice::TopicRecreated { .. } => ident(notice),
    }
}

impl<R: Rules> World<R> {
    /// Checks one expectation.
    pub(super) fn expect(&mut self, expect: &Expect) -> Done {
        match expect {
            Expect::Verdict { names, said } => self.expect_verdicts(names, said),
            Expect::Resolution { names, said } => self.expect_resolutions(names, said),
            Expect::Notice(name) => self.expect_notice(name),
            Expect::NoNotice(name) => self.expect_no_notice(name.as_deref()),
            Expect::NoBump(place) => {
                let all = self.offers.identities(place);
                let text = || format!("{all:?}");
                want(all.len() <= 1, &format!("one identity on {place}"), text)
            }
            Expect::Flushed(name) | Expect::Flushing(name) => {
                let Some(id) = self.flushes.get(name) else {
                    return mismatch("a flush that was begun", name);
                };
                let over = self.flushed.contains(id);
                let wanted = matches!(expect, Expect::Flushed(_));
                let word = |over: bool| if over { "over" } else { "under way" };
                want(over == wanted, word(wanted), || word(over).to_owned())
            }
            Expect::Closed(wanted) => {
                let word = |closed: bool| if closed { "closed" } else { "open" };
                want(self.closed == *wanted, word(*wanted), || word(self.closed).to_owned())
            }
            Expect::Log { place, names } => self.expect_log(place, names),
            Expect::Asked { .. }
            | Expect::Dialled { .. }
            | Expect::AskedAbout { .. }
            | Expect::IdAsked { .. } => self.expect_asked(expect),
            Expect::RoomBack => {
                let room = self.producer.room();
                // What a page of tickets and of lanes costs stays.
                let least = self.room.saturating_sub(4_096);
                want(room >= least, &format!("room for {least} bytes"), || room.to_string())
            }
            Expect::MemoryBelow(limit) => {
                let used = self.producer.stats().memory;
                want(used < *limit, &format!("less than {limit} bytes"), || used.to_string())
            }
            Expect::Within(span) => {
                let took = self.now.since(BEGIN);
                let text = || format!("{} ms", took.as_millis());
                want(
                    took <= *span,
                    &format!("at most {} ms since the start", span.as_millis()),
                    text,
                )
            }
            Expect::Spread { topic, within } => self.expect_spread(topic, *within),
        }
    }

    fn expect_verdicts(&mut self, names: &[String], said: &Said) -> Done {
        for (place, name) in (0..).zip(names) {
            let Some(sheet) = self.book.find_mut(name) else {
                return mismatch("a record that was sent", name);
            };
            sheet.expected = true;
            let came = sheet.verdict;
            let text = || came.map_or_else(|| "no verdict yet".to_owned(), told);
            want(is_verdict(came, said, place), &format!("{name} {}", wanted(said, place)), text)?;
        }
        Ok(())
    }

    fn expect_resolutions(&mut self, names: &[String], said: &Said) -> Done {
        for (place, name) in (0..).zip(names) {
            let Some(sheet) = self.book.find_mut(name) else {
                return mismatch("a record that was sent", name);
            };
            sheet.expected = true;
            let came = sheet.resolution;
            let text = || came.map_or_else(|| "no resolution yet".to_owned(), resolved);
            let wish = format!("{name} resolved {}", wanted(said, place));
            want(is_resolution(came, said, place), &wish, text)?;
        }
        Ok(())
    }

    fn expect_notice(&mut self, name: &str) -> Done {
        let mine =
            |heard: &&mut super::world::Heard| !heard.claimed && notice_name(&heard.notice) == name;
        match self.notices.iter_mut().find(mine) {
            Some(heard) => {
                heard.claimed = true;
                Ok(())
            }
            None => mismatch(&format!("the notice {name}"), &self.heard()),
        }
    }

    fn heard(&self) -> String {
        let names: Vec<String> = self
            .notices
            .iter()
            .map(|heard| {
                let sign = if heard.claimed { " (expected before)" } else { "" };
                format!("{}{sign}", notice_name(&heard.notice))
            })
            .collect();
        if names.is_empty() { "no notice at all".to_owned() } else { names.join(", ") }
    }

    fn expect_no_notice(&self, name: Option<&str>) -> Done {
        let found = self
            .notices
            .iter()
            .find(|heard| name.map_or(!heard.claimed, |name| notice_name(&heard.notice) == name));
        match found {
            None => Ok(()),
            Some(heard) => mismatch("no such notice", &heard.notice.to_string()),
        }
    }

    fn expect_log(&mut self, place: &Place, names: &[String]) -> Done {
        let Side::Modelled(net) = &self.side else {
            return mismatch("modelled brokers, which have a log", "they are scripted");
        };
        let index = usize::try_from(place.partition).unwrap_or(usize::MAX);
        let stored = match net.records(&place.topic, index) {
            Ok(stored) => stored,
            Err(why) => return mismatch("a log that can be read", &why.to_string()),
        };
        let topic = self.book.topic(&place.topic);
        let of = |record| self.book.recognise(topic, place.partition, record, None);
        let numbers: Vec<usize> = stored.iter().filter_map(of).collect();
        let found = self.book.names(&numbers);
        let wish = format!("{} in the log", briefly(names));
        want(found == names, &wish, || briefly(&found))
    }

    fn expect_asked(&mut self, expect: &Expect) -> Done {
        let (what, is, count) = match expect {
            Expect::Asked { broker: None, is } => {
                let all = self.asked.values_mut();
                let sum = all.map(|asked| std::mem::take(&mut asked.metadata)).sum();
                ("metadata asked of anybody".to_owned(), is, sum)
            }
            Expect::Asked { broker: Some(broker), is } => {
                let asked = self.asked.entry(broker.clone()).or_default();
                (format!("metadata asked of {broker}"), is, std::mem::take(&mut asked.metadata))
            }
            Expect::IdAsked { broker, is } => {
                let asked = self.asked.entry(broker.clone()).or_default();
                (format!("a producer id asked of {broker}"), is, std::mem::take(&mut asked.ids))
            }
            Expect::Dialled { broker, is } => {
                let asked: &mut Asked = self.asked.entry(broker.clone()).or_default();
                (format!("a connection opened to {broker}"), is, std::mem::take(&mut asked.dials))
            }
            Expect::AskedAbout { topic, is } => {
                let asked = self.asked_about.contains(topic);
                self.asked_about.clear();
                (format!("metadata asked about {topic}"), is, u32::from(asked))
            }
            Expect::Verdict { .. }
            | Expect::Resolution { .. }
            | Expect::Notice(_)
            | Expect::NoNotice(_)
            | Expect::NoBump(_)
            | Expect::Flushed(_)
            | Expect::Flushing(_)
            | Expect::Closed(_)
            | Expect::Log { .. }
            | Expect::RoomBack
            | Expect::MemoryBelow(_)
            | Expect::Within(_)
            | Expect::Spread { .. } => return Ok(()),
        };
        let wish = if *is { what } else { format!("no {what}") };
        want((count > 0) == *is, &wish, || format!("{count} times since the last look"))
    }

    /// Offered bytes per partition differ by no more than this.
    fn expect_spread(&self, topic: &str, within: usize) -> Done {
        let plan = self.setup.topics.iter().find(|plan| plan.name == topic);
        let mut bytes = vec![0_usize; plan.map_or(0, |plan| plan.partitions)];
        for offered in self.offers.all.iter().filter(|one| one.place.topic == topic) {
            let index = usize::try_from(offered.place.partition).unwrap_or(usize::MAX);
            if let Some(sum) = bytes.get_mut(index) {
                *sum += offered.bytes;
            }
        }
        let most = bytes.iter().max().copied().unwrap_or(0);
        let least = bytes.iter().min().copied().unwrap_or(0);
        let wish = format!("bytes of partitions within {within} of each other");
        want(most - least <= within, &wish, || format!("{bytes:?}"))
    }
}

fn want(well: bool, wanted: &str, came: impl FnOnce() -> String) -> Done {
    if well { Ok(()) } else { mismatch(wanted, &came()) }
}

fn is_verdict(came: Option<Verdict>, said: &Said, place: i64) -> bool {
    match (came, said) {
        (None, Said::Nothing) | (Some(Verdict::Unknown(_)), Said::Unknown) => true,
        (Some(Verdict::Delivered { offset }), Said::Delivered(spot)) => {
            is_at(offset.map(candor_core::Offset::get), *spot, place)
        }
        (Some(Verdict::NotDelivered(proof)), Said::NotDelivered(why)) => {
            why.as_ref().is_none_or(|why| *why == reason(&proof))
        }
        (
            None | Some(Verdict::Delivered { .. } | Verdict::NotDelivered(_) | Verdict::Unknown(_)),
            Said::Delivered(_)
            | Said::NotDelivered(_)
            | Said::Unknown
            | Said::Never(_)
            | Said::Nothing,
        ) => false,
    }
}

fn is_resolution(came: Option<Resolution>, said: &Said, place: i64) -> bool {
    match (came, said) {
        (None, Said::Nothing) => true,
        (Some(Resolution::Delivered { offset }), Said::Delivered(spot)) => {
            is_at(offset.map(candor_core::Offset::get), *spot, place)
        }
        (Some(Resolution::NotDelivered(proof)), Said::NotDelivered(why)) => {
            why.as_ref().is_none_or(|why| *why == reason(&proof))
        }
        (Some(Resolution::Never { reason, .. }), Said::Never(why)) => {
            why.as_ref().is_none_or(|why| *why == format!("{reason:?}"))
        }
        (
            None
            | Some(
                Resolution::Delivered { .. }
                | Resolution::NotDelivered(_)
                | Resolution::Never { .. },
            ),
            Said::Delivered(_)
            | Said::NotDelivered(_)
            | Said::Unknown
            | Said::Never(_)
            | Said::Nothing,
        ) => false,
    }
}

fn is_at(offset: Option<i64>, spot: Spot, place: i64) -> bool {
    match spot {
        Spot::Anywhere => true,
        Spot::Untold => offset.is_none(),
        Spot::At(base) => offset == Some(base + place),
    }
}

fn wanted(said: &Said, place: i64) -> String {
    let why = |why: &Option<String>| why.as_ref().map_or(String::new(), |why| format!(" {why}"));
    match said {
        Said::Delivered(Spot::Anywhere) => "delivered".to_owned(),
        Said::Delivered(Spot::Untold) => "delivered @?".to_owned(),
        Said::Delivered(Spot::At(base)) => format!("delivered @{}", base + place),
        Said::NotDelivered(proof) => format!("not delivered{}", why(proof)),
        Said::Unknown => "unknown".to_owned(),
        Said::Never(reason) => format!("never{}", why(reason)),
        Said::Nothing => "waiting".to_owned(),
    }
}

fn told(verdict: Verdict) -> String {
    let (word, text) = verdict_text(verdict);
    words(word, &text, "unknown")
}

fn resolved(resolution: Resolution) -> String {
    let (word, text) = resolution_text(resolution);
    words(word, &text, "never")
}

fn words(word: Word, text: &str, unknown: &str) -> String {
    let word = match word {
        Word::Delivered => "delivered",
        Word::NotDelivered => "not delivered",
        Word::Unknown => unknown,
    };
    format!("{word} {text}").trim_end().to_owned()
}
