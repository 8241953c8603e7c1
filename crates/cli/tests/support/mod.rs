//! Running the built command against a cluster in this process.

#![allow(
    dead_code,
    clippy::unwrap_used,
    clippy::panic,
    reason = "each test program uses a part of it, and has failed where it cannot go on"
)]

use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use candor_sim::codec::Record;
use candor_sim::serve::{Fault, Server, Settings};
use serde_json::Value;

/// Longer than anything takes; a test that waits so long has failed.
const PATIENCE: Duration = Duration::from_secs(120);

/// A cluster of three brokers; topics have three partitions.
pub(crate) fn cluster(faults: Vec<Fault>) -> Server {
    start(Settings { auto_create: Some(3), faults, ..settings() })
}

/// A cluster in which nobody creates topics.
pub(crate) fn cluster_without_topics() -> Server {
    start(Settings { auto_create: None, ..settings() })
}

fn settings() -> Settings {
    Settings { brokers: 3, replicas: 3, ..Settings::default() }
}

fn start(settings: Settings) -> Server {
    let listen = vec![([127, 0, 0, 1], 0).into(); 3];
    Server::start(settings, &listen).unwrap()
}

/// The records of all partitions, each with its partition.
pub(crate) fn stored(server: &Server, topic: &str) -> Vec<(u64, Record)> {
    let partition = |index: usize| {
        let records = server.with(|net, _| net.records(topic, index)).unwrap();
        records.into_iter().map(move |record| (index as u64, record))
    };
    (0..3).flat_map(partition).collect()
}

/// The values of all partitions, sorted.
pub(crate) fn stored_values(server: &Server, topic: &str) -> Vec<Vec<u8>> {
    let value = |(_, record): (u64, Record)| record.value.unwrap().to_vec();
    let mut values: Vec<Vec<u8>> = stored(server, topic).into_iter().map(value).collect();
    values.sort_unstable();
    values
}

/// A folder of its own, gone at the end.
pub(crate) struct Folder(PathBuf);

impl Folder {
    pub(crate) fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let name = format!("{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    pub(crate) fn file(&self, name: &str) -> String {
        self.0.join(name).display().to_string()
    }

    pub(crate) fn write(&self, name: &str, content: &[u8]) -> String {
        let file = self.file(name);
        std::fs::write(&file, content).unwrap();
        file
    }

    pub(crate) fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.file(name)).unwrap()
    }

    /// The names of all files, sorted.
    pub(crate) fn names(&self) -> Vec<String> {
        let files = std::fs::read_dir(&self.0).unwrap();
        let mut names: Vec<String> =
            files.map(|file| file.unwrap().file_name().into_string().unwrap()).collect();
        names.sort_unstable();
        names
    }

    /// The objects of a file, one per line.
    pub(crate) fn objects(&self, name: &str) -> Vec<Value> {
        self.read(name).lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _gone = std::fs::remove_dir_all(&self.0);
    }
}

/// How a command ended.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) code: Option<i32>,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Ended {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.out).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// It could not do its work, and says these things.
    #[track_caller]
    pub(crate) fn assert_error(&self, hints: &[&str]) {
        assert_eq!(self.code, Some(2), "{self:?}");
        for hint in hints {
            assert!(self.err.contains(hint), "{hint:?} is missing: {self:?}");
        }
    }
}

/// A command that runs.
pub(crate) struct Running {
    child: Child,
    err: BufReader<ChildStderr>,
    told: String,
}

pub(crate) fn candor(args: &[&str]) -> Running {
    let mut command = Command::new(env!("CARGO_BIN_EXE_candor"));
    let command = command.args(args).stdin(Stdio::piped());
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let err = BufReader::new(child.stderr.take().unwrap());
    Running { child, err, told: String::new() }
}

/// `candor produce` to a topic of this cluster.
pub(crate) fn produce(server: &Server, topic: &str, args: &[&str]) -> Running {
    let bootstrap = server.bootstrap();
    let mut all = vec!["produce", "--bootstrap-server", &bootstrap, "--topic", topic];
    all.extend(args);
    candor(&all)
}

impl Running {
    /// Gives it lines to read; more may follow.
    pub(crate) fn feed(&mut self, bytes: &[u8]) {
        let stdin = self.child.stdin.as_mut().unwrap();
        stdin.write_all(bytes).unwrap();
        stdin.flush().unwrap();
    }

    /// Its input is over.
    pub(crate) fn end_input(&mut self) {
        drop(self.child.stdin.take());
    }

    /// Waits until it says something on standard error.
    #[track_caller]
    pub(crate) fn await_word(&mut self, word: &str) {
        let mut line = String::new();
        while self.err.read_line(&mut line).unwrap() > 0 {
            self.told.push_str(&line);
            if line.contains(word) {
                return;
            }
            line.clear();
        }
        panic!("it ended and never said {word:?}: {}", self.told);
    }

    /// The next line of its output.
    pub(crate) fn line(&mut self) -> String {
        let mut line = Vec::new();
        let out = self.child.stdout.as_mut().unwrap();
        let mut byte = [0];
        while out.read(&mut byte).unwrap() == 1 && byte != [b'\n'] {
            line.push(byte[0]);
        }
        String::from_utf8(line).unwrap()
    }

    /// Nobody reads its output any more.
    pub(crate) fn stop_reading(&mut self) {
        drop(self.child.stdout.take());
    }

    /// As Ctrl-C does.
    pub(crate) fn interrupt(&self) {
        let pid = self.child.id().to_string();
        assert!(Command::new("kill").args(["-INT", &pid]).status().unwrap().success());
    }

    /// Ends it at once, whatever it is doing.
    pub(crate) fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Its input is over; waits for its end.
    pub(crate) fn end(mut self) -> Ended {
        self.end_input();
        self.wait()
    }

    /// Waits for its end, with its input open.
    pub(crate) fn wait(self) -> Ended {
        let Self { mut child, mut err, mut told } = self;
        let _open = child.stdin.take();
        let pid = child.id().to_string();
        let (sender, receiver) = mpsc::channel();
        thread::spawn(move || {
            let errors = thread::spawn(move || {
                err.read_to_string(&mut told).unwrap();
                told
            });
            let out = child.wait_with_output().unwrap();
            let (out, code) = (String::from_utf8(out.stdout).unwrap(), out.status.code());
            let _sent = sender.send(Ended { code, out, err: errors.join().unwrap() });
        });
        receiver.recv_timeout(PATIENCE).unwrap_or_else(|_| {
            let _killed = Command::new("kill").args(["-KILL", &pid]).status();
            panic!("the command hangs")
        })
    }
}
