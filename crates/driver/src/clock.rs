//! The one clock of a producer: anchored once to the wall, then carried on by the larger of
//! monotonic and wall progress.

use std::time::{Duration, Instant as Monotonic, SystemTime, UNIX_EPOCH};

use candor_core::Instant;

use crate::conduct::Conduct;

/// Where the two clocks and ours last met.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    monotonic: Monotonic,
    wall: SystemTime,
    ours: Instant,
}

impl Clock {
    pub(crate) fn anchored(monotonic: Monotonic, wall: SystemTime) -> Self {
        let since_epoch = wall.duration_since(UNIX_EPOCH).unwrap_or_default();
        Self { monotonic, wall, ours: Instant::from_micros(micros(since_epoch)) }
    }

    /// Our time at a moment of the monotonic clock.
    pub(crate) fn at(&self, monotonic: Monotonic) -> Instant {
        let elapsed = monotonic.saturating_duration_since(self.monotonic);
        Instant::from_micros(self.ours.as_micros().saturating_add(micros(elapsed)))
    }

    /// Our time, after a look at both clocks. A wall clock that ran ahead takes us along; one that
    /// was set back does not.
    pub(crate) fn look(
        &mut self,
        monotonic: Monotonic,
        wall: SystemTime,
        conduct: &dyn Conduct,
    ) -> Instant {
        let ticked = monotonic.saturating_duration_since(self.monotonic);
        let walked = wall.duration_since(self.wall).unwrap_or_default();
        if let Some(progress) = conduct.jump(ticked, walked) {
            let elapsed = micros(progress);
            let ours = Instant::from_micros(self.ours.as_micros().saturating_add(elapsed));
            *self = Self { monotonic, wall, ours };
        }
        self.at(monotonic)
    }

    /// When to wake up, on the monotonic clock, for something at `at`.
    pub(crate) fn wake_at(&self, now: Monotonic, at: Instant, conduct: &dyn Conduct) -> Monotonic {
        let left = at.since(self.at(now)).as_micros();
        now + conduct.sleep(Duration::from_micros(left))
    }
}

/// In microseconds; stays at the largest number.
pub(crate) fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conduct::Honest;

    const SECOND: Duration = Duration::from_secs(1);

    fn start() -> (Clock, Monotonic, SystemTime) {
        let (monotonic, wall) = (Monotonic::now(), UNIX_EPOCH + 1_000 * SECOND);
        (Clock::anchored(monotonic, wall), monotonic, wall)
    }

    #[test]
    fn it_starts_at_the_wall_and_goes_on_with_the_monotonic_clock() {
        let (mut clock, monotonic, wall) = start();
        assert_eq!(clock.at(monotonic), Instant::from_millis(1_000_000));
        let slewed = wall + Duration::from_millis(1_050);
        assert_eq!(
            clock.look(monotonic + SECOND, slewed, &Honest),
            Instant::from_millis(1_001_000)
        );
    }

    #[test]
    fn a_suspended_machine_takes_us_along() {
        let (mut clock, monotonic, wall) = start();
        let later = clock.look(monotonic + SECOND, wall + 3_600 * SECOND, &Honest);
        assert_eq!(later, Instant::from_millis(4_600_000));
        assert_eq!(clock.at(monotonic + 2 * SECOND), Instant::from_millis(4_601_000));
    }

    #[test]
    fn a_wall_clock_set_back_stops_nothing() {
        let (mut clock, monotonic, wall) = start();
        let later = clock.look(monotonic + SECOND, wall - 500 * SECOND, &Honest);
        assert_eq!(later, Instant::from_millis(1_001_000));
        let later = clock.look(monotonic + 2 * SECOND, wall - 499 * SECOND, &Honest);
        assert_eq!(later, Instant::from_millis(1_002_000));
    }

    #[test]
    fn many_looks_do_not_add_up_their_noise() {
        let (mut clock, monotonic, wall) = start();
        for step in 1..=1_000 {
            let noise = Duration::from_millis(if step % 2 == 0 { 50 } else { 0 });
            let elapsed = step * Duration::from_millis(1);
            assert_eq!(
                clock.look(monotonic + elapsed, wall + elapsed + noise, &Honest).as_micros(),
                1_000_000_000 + micros(elapsed)
            );
        }
    }

    #[test]
    fn alarms_are_cut_to_a_length_at_which_jumps_are_noticed() {
        let (clock, monotonic, _) = start();
        let due = Instant::from_millis(1_000_500);
        assert_eq!(clock.wake_at(monotonic, due, &Honest), monotonic + SECOND / 2);
        assert_eq!(clock.wake_at(monotonic + SECOND, due, &Honest), monotonic + SECOND);
        assert_eq!(clock.wake_at(monotonic, Instant::NEVER, &Honest), monotonic + 10 * SECOND);
    }
}
