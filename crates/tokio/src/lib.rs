//! Candor for tokio
