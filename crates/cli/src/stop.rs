//! Ctrl-C, and what asks a process to end otherwise.

use tokio::sync::watch;

/// Tells when the user wants the command to end.
#[derive(Clone, Debug)]
pub(crate) struct Stop(watch::Receiver<bool>);

impl Stop {
    /// Listens from now on. To be called on a runtime, once.
    pub(crate) fn listen() -> std::io::Result<Self> {
        let (sender, receiver) = watch::channel(false);
        let signal = signal()?;
        tokio::spawn(async move {
            signal.await;
            // Nobody listens any more: then the command is over already.
            let _heard = sender.send(true);
            // Keeps the channel open: its end is no signal.
            sender.closed().await;
        });
        Ok(Self(receiver))
    }

    /// Ends when the user asked for it, and at once from then on.
    pub(crate) async fn asked(&mut self) {
        if self.0.wait_for(|asked| *asked).await.is_err() {
            std::future::pending::<()>().await;
        }
    }

    /// Whether the user asked for it.
    pub(crate) fn is_asked(&self) -> bool {
        *self.0.borrow()
    }
}

#[cfg(unix)]
fn signal() -> std::io::Result<impl Future<Output = ()>> {
    use tokio::signal::unix::{SignalKind, signal};
    let (mut interrupt, mut terminate) =
        (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
    Ok(async move {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
    })
}

#[cfg(not(unix))]
fn signal() -> std::io::Result<impl Future<Output = ()>> {
    Ok(async {
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending::<()>().await;
        }
    })
}
