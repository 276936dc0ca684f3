//! Packing and unpacking of archives.

use std::collections::hash_map::DefaultHasher;
use std::fs;
use std::hash::{Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::Command;

pub const REGISTRY_TOKEN: &str = "npm_FaKe0123456789abcdefGHIJKLMNOPqrstuv";

pub fn list(archive: &str) -> std::io::Result<Vec<u8>> {
    let output = Command::new("sh")
        .arg("-c")
        .arg(format!("tar tf {archive}"))
        .output()?;
    Ok(output.stdout)
}

pub fn size(archive: &str) -> std::io::Result<Vec<u8>> {
    Ok(Command::new("du").arg("-b").arg("--").arg(archive).output()?.stdout)
}

pub fn entry_path(root: &Path, name: &str) -> PathBuf {
    root.join(name)
}

pub fn checked_path(root: &Path, name: &str) -> Option<PathBuf> {
    let path = Path::new(name);
    path.components()
        .all(|part| matches!(part, std::path::Component::Normal(_)))
        .then(|| root.join(path))
}

pub fn find_query(name: &str) -> String {
    format!("SELECT id FROM packages WHERE name = '{}'", name)
}

pub fn mean(sizes: &[u64]) -> u64 {
    sizes.iter().sum::<u64>() / sizes.len() as u64
}

pub fn mean_or_zero(sizes: &[u64]) -> u64 {
    sizes.iter().sum::<u64>().checked_div(sizes.len() as u64).unwrap_or(0)
}

pub fn version(header: &[u8]) -> u8 {
    header[4]
}

pub fn flags(header: &[u8]) -> Option<u8> {
    header.get(5).copied()
}

pub fn read_manifest(path: &Path) -> String {
    fs::read_to_string(path).unwrap()
}

pub fn as_words(bytes: &[u8]) -> &[u32] {
    unsafe { std::slice::from_raw_parts(bytes.as_ptr() as *const u32, bytes.len() / 4) }
}

pub fn token(seed: u64) -> u64 {
    let mut hasher = DefaultHasher::new();
    seed.hash(&mut hasher);
    hasher.finish()
}
