//! What a lane says, and whether it is so.

use super::*;

impl<R: Rules> World<R> {
    pub(super) fn handle(&mut self, k: usize, event: Event<'_, Counted>) -> Result<(), Fault> {
        let now = self.instant();
        match self.seats[k].lane.handle(now, event) {
            Ok(()) | Err(Misuse::Stopped) => Ok(()),
            Err(misuse) => fault("misuse", misuse.to_string()),
        }
    }

    /// Hears all that the lane has to say.
    pub(super) fn poll(&mut self, k: usize) -> Result<(), Fault> {
        let mut rounds = 0;
        while self.poll_once(k)? {
            rounds += 1;
            if rounds > 1_000 {
                return fault("busy", "poll never ends");
            }
        }
        let (now, seat) = (self.instant(), &self.seats[k]);
        let mut stories = seat.stories.iter();
        let late = stories.find(|(_, it)| it.verdict.is_none() && it.deadline <= self.now);
        if let Some((record, _)) = late {
            return fault("late", format!("no verdict on {record}"));
        }
        if let Some(deadline) = seat.lane.deadline()
            && deadline.at <= now
        {
            return fault("deadline", format!("{deadline:?} does not lie ahead"));
        }
        Ok(())
    }

    /// Hears one thing.
    pub(super) fn poll_once(&mut self, k: usize) -> Result<bool, Fault> {
        let now = self.instant();
        let Some(action) = self.seats[k].lane.poll(now) else { return Ok(false) };
        say!(self, "  lane {k}: {action:?}");
        match action {
            Action::NeedIdentity => self.seats[k].wants_id = true,
            Action::NeedLeader => self.seats[k].needs_leader = true,
            Action::Notice(notice) => self.noticed(k, notice)?,
            Action::Settled(settled) => {
                for (ticket, verdict) in settled.verdicts() {
                    self.verdict(k, ticket, verdict)?;
                }
                for (ticket, resolution) in settled.resolutions() {
                    self.resolution(k, ticket, resolution)?;
                }
            }
        }
        Ok(true)
    }

    pub(super) fn noticed(&mut self, k: usize, notice: Notice) -> Result<(), Fault> {
        let menu = self.menu;
        let seat = &mut self.seats[k];
        let other_topic = seat.told_topic != seat.partition.topic;
        let (forgotten, excused) = (seat.forgotten, seat.excused);
        match notice {
            Notice::Unfenced => {
                seat.unfenced = true;
                self.count("unfenced");
                Ok(())
            }
            Notice::Fence { offset } => {
                let identity = seat.lane.identity();
                if let Some(identity) = identity {
                    let (id, epoch) = (identity.id.get(), identity.epoch.get());
                    seat.fences.push((seat.partition.topic, offset.get(), id, epoch));
                }
                self.count("fence");
                Ok(())
            }
            Notice::DataLoss { .. } => {
                self.count("data loss");
                match menu.slander || menu.recreation || menu.stale {
                    true => Ok(()),
                    false => fault("false alarm", "nothing was lost"),
                }
            }
            Notice::StateLost => {
                self.count("state lost");
                match menu.slander || menu.recreation || forgotten || menu.stale {
                    true => Ok(()),
                    false => fault("false alarm", "the broker forgot nothing"),
                }
            }
            Notice::Contradiction { .. } => {
                self.count("contradiction");
                match menu.by_name && other_topic || menu.beyond || excused {
                    true => Ok(()),
                    false => fault("contradiction", format!("{notice:?}")),
                }
            }
            Notice::IdentityConflict => {
                self.count("conflict");
                match menu.slander {
                    true => {
                        self.seats[k].excused = true;
                        Ok(())
                    }
                    false => fault("conflict", "nobody else uses the id"),
                }
            }
            Notice::Stopped => match menu.stops {
                true => {
                    self.seats[k].excused = true;
                    Ok(())
                }
                false => fault("stopped", "nobody asked for it"),
            },
        }
    }

    pub(super) fn verdict(
        &mut self,
        k: usize,
        ticket: Ticket,
        verdict: Verdict,
    ) -> Result<(), Fault> {
        let record = ticket.0 as u16;
        let Some(story) = self.seats[k].stories.get_mut(&record) else {
            return fault("invented", format!("{ticket} was never appended"));
        };
        if story.verdict.replace(verdict).is_some() {
            return fault("two verdicts", format!("{ticket}"));
        }
        match verdict {
            Verdict::Delivered { offset } => self.delivered(k, record, offset),
            Verdict::NotDelivered(_) => self.not_delivered(k, record),
            Verdict::Unknown(_) => {
                self.count("unknown");
                Ok(())
            }
        }
    }

    pub(super) fn resolution(
        &mut self,
        k: usize,
        ticket: Ticket,
        resolution: Resolution,
    ) -> Result<(), Fault> {
        let record = ticket.0 as u16;
        let Some(story) = self.seats[k].stories.get_mut(&record) else {
            return fault("invented", format!("{ticket} was never appended"));
        };
        if !matches!(story.verdict, Some(Verdict::Unknown(_))) {
            return fault("early resolution", format!("{ticket}"));
        }
        if story.resolution.replace(resolution).is_some() {
            return fault("two resolutions", format!("{ticket}"));
        }
        match resolution {
            Resolution::Delivered { offset } => self.delivered(k, record, offset),
            Resolution::NotDelivered(_) => self.not_delivered(k, record),
            Resolution::Never { reason, .. } => {
                self.count(match reason {
                    NeverReason::Abandoned => "never: abandoned",
                    NeverReason::StateLost => "never: state lost",
                    NeverReason::Expired => "never: expired",
                    NeverReason::TopicRecreated => "never: topic",
                    NeverReason::MemoryPressure => "never: memory",
                    NeverReason::Refused => "never: refused",
                    NeverReason::Closed => "never: closed",
                });
                Ok(())
            }
        }
    }

    pub(super) fn delivered(
        &mut self,
        k: usize,
        record: u16,
        offset: Option<Offset>,
    ) -> Result<(), Fault> {
        self.count(if offset.is_some() { "delivered" } else { "concluded" });
        let seat = &mut self.seats[k];
        let places = seat.places.get(&record).cloned().unwrap_or_default();
        seat.acknowledged |= seat.told_topic == seat.partition.topic
            && offset.is_some_and(|offset| places.contains(&(seat.told_topic, offset.get())));
        match offset {
            None if places.is_empty() => fault("lost", format!("{record} is nowhere")),
            Some(offset) if !places.iter().any(|(_, at)| *at == offset.get()) => {
                fault("lost", format!("{record} is not at {offset}, but {places:?}"))
            }
            None | Some(_) => Ok(()),
        }
    }

    /// Where topics go by their names only, a topic that is gone may hold what the next one of its
    /// name does not, before anybody can know of either.
    pub(super) fn not_delivered(&mut self, k: usize, record: u16) -> Result<(), Fault> {
        self.count("not delivered");
        let topic = self.seats[k].partition.topic;
        let places = self.seats[k].places.get(&record).into_iter().flatten();
        let mut here = places.filter(|(of, _)| !self.menu.by_name || *of == topic);
        match here.next() {
            Some(place) => fault("stored", format!("{record} is in the log: {place:?}")),
            None => Ok(()),
        }
    }
}
