//! The one generic async loop that runs the pure producer over sockets
