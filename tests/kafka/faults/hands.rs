//! The other half of the harness keeps the nodes: it is asked one line at a time, and answers each
//! when the thing is done.

use std::collections::BTreeMap;
use std::io::{BufRead as _, Write as _};
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::Result;
use serde_json::{Value, json};
use tokio::sync::oneshot;

/// Who is asked to do things with nodes.
#[derive(Debug, Default)]
pub(crate) struct Hands(Mutex<Inside>);

#[derive(Debug, Default)]
struct Inside {
    asked: u64,
    waiting: BTreeMap<u64, oneshot::Sender<Result<(), String>>>,
}

impl Hands {
    /// Listens for answers from now on.
    pub(crate) fn listen() -> Arc<Self> {
        let hands = Arc::new(Self::default());
        let listening = Arc::clone(&hands);
        std::thread::spawn(move || {
            for line in std::io::stdin().lock().lines() {
                if let Ok(answer) = line.map_err(drop).and_then(|l| parse(&l).ok_or(())) {
                    listening.answered(answer);
                }
            }
            // Nobody will answer any more: who waits is told so.
            listening.0.lock().unwrap_or_else(PoisonError::into_inner).waiting.clear();
        });
        hands
    }

    fn answered(&self, (id, answer): (u64, Result<(), String>)) {
        let mut inside = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(waiting) = inside.waiting.remove(&id) {
            // Who asked may have ended with the run.
            let _heard = waiting.send(answer);
        }
    }

    /// Asks for something, `{"do": what, ..}`, and waits until it is done.
    pub(crate) async fn ask(&self, mut command: Value) -> Result<(), String> {
        let answer = {
            let mut inside = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            inside.asked += 1;
            let (tell, answer) = oneshot::channel();
            command["id"] = inside.asked.into();
            let id = inside.asked;
            inside.waiting.insert(id, tell);
            answer
        };
        say(&command).map_err(|why| why.to_string())?;
        answer.await.unwrap_or_else(|_| Err("the harness is gone".to_owned()))
    }
}

fn parse(line: &str) -> Option<(u64, Result<(), String>)> {
    let answer: Value = serde_json::from_str(line).ok()?;
    let id = answer["id"].as_u64()?;
    let result = match answer["error"].as_str() {
        Some(error) => Err(error.to_owned()),
        None => Ok(()),
    };
    Some((id, result))
}

/// Says one line.
pub(crate) fn say(event: &Value) -> Result<()> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{event}")?;
    Ok(out.flush()?)
}

/// Says how far the run is.
pub(crate) fn note(text: &str) -> Result<()> {
    say(&json!({ "note": text }))
}
