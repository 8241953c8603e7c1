//! What the machine says, in the judge's words. The judge knows nothing of the machine, so these
//! are no part of it.
//!
//! ```
//! use candor_core::{Notice, Offset, Verdict};
//! use candor_sim::judge::{Noticed, Said};
//! use candor_sim::words;
//! let verdict = Verdict::Delivered { offset: Offset::new(7) };
//! assert_eq!(words::verdict(verdict), Said::Delivered(Some(7)));
//! assert_eq!(words::notice(Notice::StateLost), Noticed::StateLost);
//! ```

use candor_core::{Notice, Offset, Resolution, Verdict};

use crate::judge::{Noticed, Said};

/// A verdict.
pub fn verdict(verdict: Verdict) -> Said {
    match verdict {
        Verdict::Delivered { offset } => Said::Delivered(offset.map(Offset::get)),
        Verdict::NotDelivered(_) => Said::NotDelivered,
        Verdict::Unknown(_) => Said::Unknown,
    }
}

/// What an `Unknown` came to; `Never` is as unknown as it was.
pub fn resolution(resolution: Resolution) -> Said {
    match resolution {
        Resolution::Delivered { offset } => Said::Delivered(offset.map(Offset::get)),
        Resolution::NotDelivered(_) => Said::NotDelivered,
        Resolution::Never { .. } => Said::Unknown,
    }
}

/// A notice of a partition.
pub const fn notice(notice: Notice) -> Noticed {
    match notice {
        Notice::DataLoss { .. } => Noticed::DataLoss,
        Notice::StateLost => Noticed::StateLost,
        Notice::IdentityConflict => Noticed::IdentityConflict,
        Notice::Unfenced => Noticed::Unfenced,
        Notice::Fence { .. } => Noticed::Fence,
        Notice::Contradiction { .. } => Noticed::Contradiction,
        Notice::Stopped => Noticed::Stopped,
    }
}
