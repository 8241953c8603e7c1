//! The model broker: partitions, replicas, elections and memory, over raw integers.
