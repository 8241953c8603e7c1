//! Exhaustive search of the shipped lane against the model broker, in small scopes.
