//! The model cluster behind byte connections and TCP listeners.
