//! Reading lines, on a thread of its own: standard input can block for ever.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use anyhow::{Context, bail};
use tokio::sync::mpsc;

use crate::line::Chunk;
use crate::rejects::{self, Again};

/// Lines in a chunk, at most.
const LINES: usize = 128;
/// Bytes at which a chunk is full.
const BYTES: usize = 64 << 10;
/// Chunks that are read ahead.
const AHEAD: usize = 4;
/// No producer can be set up for longer records: brokers do not read longer requests.
const LONGEST: usize = 100 << 20;
/// A reader that says nothing for so long waits for its input.
const SILENCE: Duration = Duration::from_millis(100);

/// A file or standard input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    Stdin,
    File(PathBuf),
}

impl From<&Path> for Source {
    fn from(path: &Path) -> Self {
        if path == Path::new("-") { Self::Stdin } else { Self::File(path.to_owned()) }
    }
}

/// What stands in a source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// Each line is one to send.
    Lines,
    /// Each line is a reject of an earlier run, with the line to send in it if that is safe.
    Rejects,
}

/// An input that is being read.
#[derive(Debug)]
pub(crate) struct Input {
    chunks: mpsc::Receiver<anyhow::Result<Chunk>>,
    stopping: Arc<AtomicBool>,
    unsafe_lines: Arc<AtomicU64>,
    /// Bytes in it, if that is known.
    pub(crate) bytes: Option<u64>,
}

impl Input {
    /// Opens the source and begins to read.
    pub(crate) fn open(source: &Source, form: Form) -> anyhow::Result<Self> {
        match source {
            Source::Stdin => Ok(Self::read("standard input".into(), io::stdin(), form, None)),
            Source::File(path) => {
                let (file, bytes) = open(path)?;
                Ok(Self::read(path.display().to_string(), file, form, bytes))
            }
        }
    }

    /// Reads from anything.
    pub(crate) fn read(
        name: String,
        from: impl Read + Send + 'static,
        form: Form,
        bytes: Option<u64>,
    ) -> Self {
        let (sender, chunks) = mpsc::channel(AHEAD);
        let stopping = Arc::new(AtomicBool::new(false));
        let unsafe_lines = Arc::new(AtomicU64::new(0));
        let reader = Reader {
            from: BufReader::with_capacity(BYTES, from),
            name,
            form,
            next: 1,
            stopping: Arc::clone(&stopping),
            unsafe_lines: Arc::clone(&unsafe_lines),
        };
        std::thread::spawn(move || reader.run(&sender));
        Self { chunks, stopping, unsafe_lines, bytes }
    }

    /// The next lines; `None` at the end.
    pub(crate) async fn next(&mut self) -> Option<anyhow::Result<Chunk>> {
        self.chunks.recv().await
    }

    /// Rejects that were left out, because it is not safe to send them again.
    pub(crate) fn unsafe_lines(&self) -> u64 {
        self.unsafe_lines.load(Ordering::SeqCst)
    }

    /// Reads no more, and gives what was read ahead.
    pub(crate) async fn rest(&mut self) -> Vec<Chunk> {
        self.stopping.store(true, Ordering::SeqCst);
        let mut rest = Vec::new();
        while let Ok(Some(Ok(chunk))) = tokio::time::timeout(SILENCE, self.next()).await {
            rest.push(chunk);
        }
        rest
    }
}

/// Opens a file to be read, with its size if it has one.
pub(crate) fn open(path: &Path) -> anyhow::Result<(File, Option<u64>)> {
    let file = File::open(path).with_context(|| {
        format!("cannot read {}: check the path and its permissions", path.display())
    })?;
    let about = file.metadata().with_context(|| format!("cannot read {}", path.display()))?;
    if about.is_dir() {
        bail!("{} is a directory: name a file, or - for standard input", path.display());
    }
    Ok((file, about.is_file().then_some(about.len())))
}

struct Reader<R> {
    from: BufReader<R>,
    name: String,
    form: Form,
    next: u64,
    stopping: Arc<AtomicBool>,
    unsafe_lines: Arc<AtomicU64>,
}

/// What was read.
enum Found {
    Line,
    /// A line that is not to be sent: the one behind it begins another chunk.
    Gap,
    End,
}

impl<R: Read> Reader<R> {
    fn run(mut self, chunks: &mpsc::Sender<anyhow::Result<Chunk>>) {
        loop {
            let (chunk, over) = match self.chunk() {
                Ok((chunk, over)) => (Ok(chunk), over),
                Err(error) => (Err(error), true),
            };
            let empty = chunk.as_ref().is_ok_and(|chunk| chunk.lines.is_empty());
            // Nobody listens any more: then nobody misses it.
            if (!empty && chunks.blocking_send(chunk).is_err()) || over {
                return;
            }
        }
    }

    /// The next lines, and whether they are the last. Waits for the first line, and never for more:
    /// a line that is there is sent, whenever the next one comes.
    fn chunk(&mut self) -> anyhow::Result<(Chunk, bool)> {
        let mut chunk = Chunk { first: self.next, ..Chunk::default() };
        while chunk.lines.len() < LINES && chunk.text.len() < BYTES {
            if !self.from.buffer().contains(&b'\n') {
                let stopping = self.stopping.load(Ordering::SeqCst);
                if stopping || !chunk.lines.is_empty() {
                    return Ok((chunk, stopping));
                }
            }
            match self.line(&mut chunk)? {
                Found::Line => {}
                Found::Gap if chunk.lines.is_empty() => chunk.first = self.next,
                Found::Gap => return Ok((chunk, false)),
                Found::End => return Ok((chunk, true)),
            }
        }
        Ok((chunk, false))
    }

    /// Adds a line to the chunk.
    fn line(&mut self, chunk: &mut Chunk) -> anyhow::Result<Found> {
        let start = chunk.text.len();
        let most = LONGEST as u64 + 1;
        let read = self.from.by_ref().take(most).read_until(b'\n', &mut chunk.text);
        let read =
            read.with_context(|| format!("cannot read {} from line {} on", self.name, self.next))?;
        if read == 0 {
            return Ok(Found::End);
        }
        let end = chunk.text.len() - usize::from(chunk.text.last() == Some(&b'\n'));
        if end - start > LONGEST {
            bail!(
                "line {} of {} is longer than 100 MiB, which no broker takes: split it",
                self.next,
                self.name
            );
        }
        chunk.text.truncate(end);
        let found = match self.form {
            Form::Lines => Found::Line,
            Form::Rejects => self.unwrap_reject(chunk, start)?,
        };
        if matches!(found, Found::Line) {
            chunk.lines.push(start..chunk.text.len());
        }
        self.next += 1;
        Ok(found)
    }

    /// Puts the line that a reject holds into the reject's place.
    fn unwrap_reject(&self, chunk: &mut Chunk, start: usize) -> anyhow::Result<Found> {
        let again = rejects::read(&chunk.text[start..]);
        let again = again.with_context(|| {
            format!("line {} of {} is no reject of an earlier run", self.next, self.name)
        })?;
        chunk.text.truncate(start);
        match again {
            Again::Safe(line) => {
                chunk.text.extend_from_slice(&line);
                Ok(Found::Line)
            }
            Again::Unsafe => {
                self.unsafe_lines.fetch_add(1, Ordering::SeqCst);
                Ok(Found::Gap)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(bytes: &'static [u8]) -> Vec<Vec<u8>> {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let mut input = Input::read("test".into(), bytes, Form::Lines, None);
            let mut all = Vec::new();
            while let Some(chunk) = input.next().await {
                let chunk = chunk.unwrap();
                assert_eq!(chunk.first, all.len() as u64 + 1);
                all.extend((0..chunk.lines.len()).map(|index| chunk.line(index).to_vec()));
            }
            all
        })
    }

    #[test]
    fn a_line_is_what_stands_between_newlines_and_nothing_else_is_changed() {
        assert_eq!(lines(b""), Vec::<Vec<u8>>::new());
        assert_eq!(lines(b"a\n\nb"), [&b"a"[..], b"", b"b"]);
        assert_eq!(lines(b"a\r\n\xff\xfe\n"), [&b"a\r"[..], b"\xff\xfe"]);
    }

    #[test]
    fn chunks_are_cut_at_lines() {
        let many: &'static [u8] = Box::leak(b"line\n".repeat(1000).into_boxed_slice());
        assert_eq!(lines(many), vec![b"line".to_vec(); 1000]);
        let long: &'static [u8] = Box::leak(vec![b'x'; 200 << 10].into_boxed_slice());
        assert_eq!(lines(long), [long.to_vec()]);
    }
}
