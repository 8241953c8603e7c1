//! Files that a command writes: opened before anything else is done, and begun when it is known that
//! there is something to write. A command that cannot do its work leaves older files as they were.

use std::ffi::OsString;
use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, BufReader, BufWriter};
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};

/// A file that will be written.
#[derive(Debug)]
pub(crate) struct Target {
    path: PathBuf,
    what: &'static str,
    file: File,
    origin: Origin,
}

/// Where the file of a target comes from.
#[derive(Debug)]
enum Origin {
    /// It was not there before.
    Made(Made),
    /// It was.
    Found,
    /// It is one of our own standard streams.
    Standard,
}

/// A file that was made here: unless it stays, it goes as if it had never been.
#[derive(Debug)]
struct Made(Option<PathBuf>);

impl Made {
    fn stays(mut self) {
        self.0 = None;
    }
}

impl Drop for Made {
    fn drop(&mut self) {
        if let Some(path) = &self.0 {
            let _gone = fs::remove_file(path);
        }
    }
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
        let (file, origin) = open_or_make(path).with_context(cannot)?;
        Ok(Self { path: path.to_owned(), what, file, origin })
    }

    /// Begins the file: what stood in it is gone.
    pub(crate) fn begin(self) -> anyhow::Result<Begun> {
        let Self { path, what, file, origin } = self;
        let is_ours = match origin {
            Origin::Made(made) => {
                made.stays();
                true
            }
            Origin::Found => true,
            Origin::Standard => false,
        };
        let can_be_rewritten = is_ours && is_regular(&file);
        if can_be_rewritten {
            file.set_len(0)
                .with_context(|| format!("cannot empty the {what} {}", path.display()))?;
        }
        Ok(Begun { path, file, can_be_rewritten })
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

fn open_or_make(path: &Path) -> io::Result<(File, Origin)> {
    if let Some(stream) = standard(path)? {
        return Ok((stream, Origin::Standard));
    }
    match OpenOptions::new().write(true).create_new(true).open(path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            // A link to nowhere exists, and yet its file has to be made.
            let file = OpenOptions::new().write(true).create(true).truncate(false).open(path)?;
            Ok((file, Origin::Found))
        }
        made => made.map(|file| (file, Origin::Made(Made(Some(path.to_owned()))))),
    }
}

/// Puts a copy into the place of a file of so many bytes once it is whole: whoever looks, whenever, finds
/// a whole file.
pub(crate) fn replace(
    path: &Path,
    length: u64,
    copy: impl FnOnce(BufReader<File>, &mut BufWriter<File>) -> io::Result<()>,
) -> io::Result<()> {
    // Behind links, so that they stay.
    let path = path.canonicalize()?;
    let about = fs::metadata(&path)?;
    if about.len() != length {
        return Err(io::Error::other("another file has taken its place"));
    }
    let mut name = OsString::from(".");
    name.push(path.file_name().unwrap_or_default());
    name.push(format!(".{}", std::process::id()));
    let beside = path.with_file_name(name);
    let write = || {
        let old = BufReader::new(File::open(&path)?);
        let mut new = BufWriter::new(File::create_new(&beside)?);
        make_alike(new.get_ref(), &about)?;
        copy(old, &mut new)?;
        new.into_inner()?.sync_all()?;
        fs::rename(&beside, &path)
    };
    let written = write();
    if written.is_err() {
        let _gone = fs::remove_file(&beside);
    }
    written
}

/// Gives a new file the owner and the rights of the one whose place it will take; an error if that
/// one has other names, under which it would stay as it is.
#[cfg(unix)]
fn make_alike(new: &File, old: &Metadata) -> io::Result<()> {
    use std::os::unix::fs::{MetadataExt, fchown};
    if old.nlink() > 1 {
        return Err(io::Error::other("the file has other names"));
    }
    fchown(new, Some(old.uid()), Some(old.gid()))?;
    new.set_permissions(old.permissions())
}

#[cfg(not(unix))]
fn make_alike(new: &File, old: &Metadata) -> io::Result<()> {
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
    identity(one).is_some_and(|one| identity(other) == Some(one))
        || place(one).is_some_and(|one| place(other) == Some(one))
}

/// What is the same for all names of a file that is there; nothing for what is shared without harm
/// (pipes, devices).
#[cfg(unix)]
fn identity(path: &Path) -> Option<(u64, u64)> {
    use std::os::unix::fs::MetadataExt;
    let about = fs::metadata(path).ok().filter(|about| about.is_file())?;
    Some((about.dev(), about.ino()))
}

#[cfg(not(unix))]
fn identity(path: &Path) -> Option<PathBuf> {
    path.canonicalize().ok().filter(|path| path.is_file())
}

/// Where a file that is not there yet would be.
fn place(path: &Path) -> Option<PathBuf> {
    if path == Path::new("-") || path.exists() {
        return None;
    }
    let folder = path.parent().filter(|folder| *folder != Path::new(""));
    let folder = folder.unwrap_or_else(|| Path::new(".")).canonicalize().ok()?;
    Some(folder.join(path.file_name()?))
}
