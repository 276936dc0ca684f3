//! Files as they are written, found, damaged and refused. Packing and tokens are compared in `tests/parity/test_packed_weights.py`.

use std::fs::Permissions;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::*;

/// Not a multiple of a page or chunk.
const BYTES: usize = CHUNK + 2 * PAGE + 64;

/// A folder of its own, removed afterwards.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Self {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let name = format!(
            "pravaha-packed-{}-{}",
            std::process::id(),
            COUNT.fetch_add(1, Ordering::Relaxed)
        );
        Self(std::env::temp_dir().join(name))
    }

    fn path(&self) -> PathBuf {
        location(&self.0).path(&[5; 16])
    }

    fn names(&self) -> Vec<String> {
        let entries = std::fs::read_dir(&self.0).into_iter().flatten();
        entries
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn location(folder: &Path) -> PackedLocation {
    PackedLocation {
        folder: folder.to_owned(),
        source_id: [7; 32],
        source: "/models/a.gguf".into(),
        packs_into_file: false,
    }
}

fn header() -> Header {
    Header {
        bytes: BYTES,
        source_id: [7; 32],
        plan: [5; 16],
        digest: [0; 16],
        source: "/models/a.gguf".into(),
    }
}

fn weights() -> Vec<u8> {
    (0..BYTES).map(|at| (at * 131 % 251) as u8).collect()
}

fn saving(path: PathBuf) -> PackedSaving {
    let arena = Arena::new(BYTES).unwrap();
    // SAFETY: the arena is ours alone.
    unsafe { std::ptr::copy_nonoverlapping(weights().as_ptr(), arena.as_ptr(), BYTES) };
    let header = header();
    Saving { path, header }.of(Arc::new(arena))
}

fn saved(folder: &Folder) -> PathBuf {
    let path = folder.path();
    assert_eq!(saving(path.clone()).save().unwrap(), Saved::Done);
    path
}

fn bytes_of(arena: &Arena) -> &[u8] {
    // SAFETY: mapped read-only.
    unsafe { std::slice::from_raw_parts(arena.as_ptr(), arena.len()) }
}

#[test]
fn what_is_saved_is_found_by_this_user_alone() {
    let folder = Folder::new();
    assert!(open(&folder.path(), &header()).unwrap().is_none());
    let path = saved(&folder);
    assert_eq!(
        folder.names(),
        [path.file_name().unwrap().to_str().unwrap()]
    );
    let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&folder.0), mode(&path)), (0o700, 0o600));
    let arena = open(&path, &header()).unwrap().unwrap();
    arena.populate(64..BYTES);
    assert!(arena.is_file() && (arena.as_ptr() as usize).is_multiple_of(crate::arena::ALIGN));
    assert_eq!(bytes_of(&arena), weights());
    assert_eq!(inspect(&path).unwrap().source, "/models/a.gguf");
    verify(&path).unwrap();
}

#[test]
fn a_mapping_outlives_its_file_and_a_replacement() {
    let folder = Folder::new();
    let path = saved(&folder);
    let first = open(&path, &header()).unwrap().unwrap();
    saved(&folder);
    std::fs::remove_file(&path).unwrap();
    assert_eq!(bytes_of(&first), weights());
}

#[test]
fn files_that_are_not_as_they_were_written_are_refused() {
    type Change = fn(&Path);
    let changes: [(Change, &str); 7] = [
        (|path| truncate(path, PAGE + BYTES - 1), "truncated"),
        (|path| truncate(path, PAGE + BYTES + 1), "truncated"),
        (|path| truncate(path, 100), "truncated"),
        (|path| write_at(path, 0, b"GGUF"), "no packed weights"),
        (|path| write_at(path, 20, &[9]), "header is damaged"),
        (
            |path| std::fs::set_permissions(path, Permissions::from_mode(0o620)).unwrap(),
            "other users",
        ),
        (
            |path| {
                let moved = path.with_extension("moved");
                std::fs::rename(path, &moved).unwrap();
                symlink(&moved, path).unwrap();
            },
            "symbolic links",
        ),
    ];
    for (change, expected) in changes {
        let folder = Folder::new();
        let path = saved(&folder);
        change(&path);
        let reason = open(&path, &header()).unwrap_err();
        assert!(reason.contains(expected), "{reason}");
        assert!(inspect(&path).is_err() && verify(&path).is_err());
        saved(&folder); // replaces it
        assert!(open(&path, &header()).unwrap().is_some());
    }
}

fn truncate(path: &Path, len: usize) {
    let file = OpenOptions::new().write(true).open(path).unwrap();
    file.set_len(len as u64).unwrap();
}

fn write_at(path: &Path, at: u64, bytes: &[u8]) {
    use std::os::unix::fs::FileExt;
    let file = OpenOptions::new().write(true).open(path).unwrap();
    file.write_all_at(bytes, at).unwrap();
}

#[test]
fn weights_of_another_source_plan_or_size_are_refused() {
    let folder = Folder::new();
    let path = saved(&folder);
    let others: [fn(&mut Header); 3] = [
        |header| header.source_id[31] += 1,
        |header| header.plan[0] += 1,
        |header| header.bytes -= 64,
    ];
    for other in others {
        let mut wanted = header();
        other(&mut wanted);
        let reason = open(&path, &wanted).unwrap_err();
        assert!(reason.contains("other weights"), "{reason}");
    }
}

#[test]
fn damaged_contents_are_found_by_verifying() {
    let folder = Folder::new();
    let path = saved(&folder);
    write_at(&path, (PAGE + BYTES - 1) as u64, &[255]);
    assert!(open(&path, &header()).unwrap().is_some());
    let message = verify(&path).unwrap_err().to_string();
    assert!(message.contains("contents are damaged"), "{message}");
}

#[test]
fn a_cancelled_or_failed_attempt_leaves_nothing() {
    let folder = Folder::new();
    let cancelled = saving(folder.path());
    cancelled.cancel();
    assert_eq!(cancelled.save().unwrap(), Saved::Cancelled);
    assert_eq!(cancelled.save().unwrap(), Saved::Cancelled);
    assert!(folder.names().is_empty());
    std::fs::create_dir(folder.path()).unwrap(); // nothing can be renamed to its place
    assert!(saving(folder.path()).save().is_err());
    assert_eq!(folder.names().len(), 1);
}

#[test]
fn an_unfinished_file_is_overwritten_unless_its_writer_lives() {
    let folder = Folder::new();
    std::fs::create_dir(&folder.0).unwrap();
    let unfinished = folder.path().with_extension("packed.part");
    let other = File::create(&unfinished).unwrap();
    other.lock().unwrap();
    assert_eq!(saving(folder.path()).save().unwrap(), Saved::Busy);
    assert_eq!(folder.names().len(), 1);
    drop(other); // as when its process is killed
    let path = saved(&folder);
    assert_eq!(folder.names().len(), 1);
    verify(&path).unwrap();
}

#[test]
fn a_file_that_is_not_finished_is_removed() {
    let folder = Folder::new();
    let mut file = UnfinishedFile::create(&folder.path()).unwrap().unwrap();
    file.append(&weights()[..1000]).unwrap();
    assert_eq!(folder.names().len(), 1);
    drop(file);
    assert!(folder.names().is_empty());
}

#[test]
fn parts_that_are_appended_are_the_file() {
    let folder = Folder::new();
    let path = folder.path();
    let mut file = UnfinishedFile::create(&path).unwrap().unwrap();
    for part in weights().chunks(CHUNK / 3) {
        file.append(part).unwrap();
    }
    file.finish(&header()).unwrap();
    verify(&path).unwrap();
    let arena = open(&path, &header()).unwrap().unwrap();
    assert_eq!(bytes_of(&arena), weights());
    assert_eq!(find(path.clone(), &header()).bytes, PAGE + BYTES);
    assert!(find(path.clone(), &header()).found);
    truncate(&path, 100);
    assert!(!find(path, &header()).found);
}

#[test]
fn who_waits_for_another_writer_leaves_its_file_whole() {
    let folder = Folder::new();
    let path = folder.path();
    for finishes in [false, true] {
        let mut other = UnfinishedFile::create(&path).unwrap().unwrap();
        assert!(UnfinishedFile::create(&path).unwrap().is_none());
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| drop(UnfinishedFile::wait_to_create(&path).unwrap()));
            other.append(&weights()).unwrap();
            if finishes {
                other.finish(&header()).unwrap();
            } else {
                drop(other);
            }
            waiting.join().unwrap();
        });
        assert_eq!(folder.names().len(), usize::from(finishes));
    }
    verify(&path).unwrap();
}
