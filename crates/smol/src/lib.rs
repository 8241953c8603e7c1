//! Candor for smol
