//! Files that a command writes: opened before anything else is done, and begun when it is known that
//! there is something to write. A command that cannot do its work leaves older files as they were.

use std::fs::{File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};

/// A file that will be written.
#[derive(Debug)]
pub(crate) struct Target {
    path: PathBuf,
    what: &'static str,
    /// `None` once it is begun.
    file: Option<File>,
    /// It was not there before.
    made: bool,
    /// It is one of our own standard streams.
    standard: bool,
}

/// A file that is empty, or a stream.
#[derive(Debug)]
pub(crate) struct Begun {
    pub(crate) path: PathBuf,
    pub(crate) file: File,
    /// It is a file, and ours alone: what was written can be written over.
    pub(crate) can_be_rewritten: bool,
}

impl Target {
    /// Opens or makes the file, whose purpose is `what`; what stands in it stays.
    pub(crate) fn open(path: &Path, what: &'static str) -> anyhow::Result<Self> {
        if path.is_dir() {
            bail!("{} is a directory: name a file for the {what}", path.display());
        }
        if path == Path::new("-") {
            bail!("- is no file for the {what}: standard output is /dev/stdout, a file is ./-");
        }
        let cannot = || {
            format!("cannot create the {what} {}: check its folder and permissions", path.display())
        };
        let standard = standard(path).with_context(cannot)?;
        let is_standard = standard.is_some();
        let (file, made) = match standard {
            Some(file) => (file, false),
            None => open_or_make(path).with_context(cannot)?,
        };
        Ok(Self { path: path.to_owned(), what, file: Some(file), made, standard: is_standard })
    }

    /// Begins the file: what stood in it is gone.
    pub(crate) fn begin(mut self) -> anyhow::Result<Begun> {
        let path = std::mem::take(&mut self.path);
        let Some(file) = self.file.take() else { bail!("{} is begun already", path.display()) };
        let can_be_rewritten = !self.standard && is_regular(&file);
        if can_be_rewritten {
            file.set_len(0)
                .with_context(|| format!("cannot empty the {} {}", self.what, path.display()))?;
        }
        Ok(Begun { path, file, can_be_rewritten })
    }
}

impl Drop for Target {
    fn drop(&mut self) {
        // Nothing was written: it is as if it had not been opened.
        if self.made && self.file.take().is_some() {
            let _gone = std::fs::remove_file(&self.path);
        }
    }
}

/// One of our own streams, under its name: opened anew it would have a place of its own in the file
/// that it may be, and its lines and the summary would be written over each other.
#[cfg(unix)]
fn standard(path: &Path) -> io::Result<Option<File>> {
    use std::os::fd::AsFd;
    let stream = match path.to_str() {
        Some("/dev/stdout" | "/dev/fd/1") => io::stdout().as_fd().try_clone_to_owned(),
        Some("/dev/stderr" | "/dev/fd/2") => io::stderr().as_fd().try_clone_to_owned(),
        Some(_) | None => return Ok(None),
    };
    stream.map(|stream| Some(File::from(stream)))
}

#[cfg(not(unix))]
fn standard(_path: &Path) -> io::Result<Option<File>> {
    Ok(None)
}

fn open_or_make(path: &Path) -> io::Result<(File, bool)> {
    match OpenOptions::new().write(true).create_new(true).open(path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            // A link to nowhere exists, and yet its file has to be made.
            let file = OpenOptions::new().write(true).create(true).truncate(false).open(path)?;
            Ok((file, false))
        }
        made => made.map(|file| (file, true)),
    }
}

/// Gives a new file the owner and the rights of the one whose place it will take; an error if that
/// one has other names, under which it would stay as it is.
#[cfg(unix)]
pub(crate) fn make_alike(new: &File, old: &std::fs::Metadata) -> io::Result<()> {
    use std::os::unix::fs::{MetadataExt, fchown};
    if old.nlink() > 1 {
        return Err(io::Error::other("the file has other names"));
    }
    fchown(new, Some(old.uid()), Some(old.gid()))?;
    new.set_permissions(old.permissions())
}

#[cfg(not(unix))]
pub(crate) fn make_alike(new: &File, old: &std::fs::Metadata) -> io::Result<()> {
    new.set_permissions(old.permissions())
}

/// Whether it is a file with a length, and no pipe, terminal or device.
fn is_regular(file: &File) -> bool {
    file.metadata().is_ok_and(|about| about.is_file())
}

/// Files that are written must not be read, nor written twice. Each has the name of its purpose.
pub(crate) fn check_apart(files: &[(&str, Option<&Path>)]) -> anyhow::Result<()> {
    for (index, (one, path)) in files.iter().enumerate() {
        for (other, path_too) in &files[index + 1..] {
            if let (Some(path), Some(path_too)) = (path, path_too)
                && is_same(path, path_too)
            {
                bail!("{one} and {other} are the same file {}: name two", path.display());
            }
        }
    }
    Ok(())
}

fn is_same(one: &Path, other: &Path) -> bool {
    if let (Some(one), Some(other)) = (identity(one), identity(other))
        && one == other
    {
        return true;
    }
    match (place(one), place(other)) {
        (Some(one), Some(other)) => one == other,
        (Some(_) | None, None) | (None, Some(_)) => false,
    }
}

/// What is the same for all names of a file that is there.
#[cfg(unix)]
fn identity(path: &Path) -> Option<(u64, u64)> {
    use std::os::unix::fs::MetadataExt;
    let about = std::fs::metadata(path).ok().filter(|about| about.is_file())?;
    Some((about.dev(), about.ino()))
}

#[cfg(not(unix))]
fn identity(path: &Path) -> Option<PathBuf> {
    path.canonicalize().ok().filter(|path| path.is_file())
}

/// Where a file is, or would be; nothing for what is shared without harm (`-`, pipes, devices).
fn place(path: &Path) -> Option<PathBuf> {
    if path == Path::new("-") {
        return None;
    }
    if let Ok(there) = path.canonicalize() {
        return there.is_file().then_some(there);
    }
    let folder = path.parent().filter(|folder| *folder != Path::new(""));
    let folder = folder.unwrap_or_else(|| Path::new(".")).canonicalize().ok()?;
    Some(folder.join(path.file_name()?))
}
