//! The broker's own codec: requests in, responses out. It shares nothing with `candor-wire`.
