//! Candor for async-std
