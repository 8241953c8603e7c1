//! Seeded swarms: random schedules with all faults, in virtual time.
