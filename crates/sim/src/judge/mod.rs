//! The judge: was anything said that the log contradicts?
