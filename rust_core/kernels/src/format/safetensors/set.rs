//! Several safetensors files combined into one [`TensorSource`].

use std::collections::HashMap;
use std::fmt;
use std::ops::Range;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, Visitor};

use super::super::error::quoted;
use super::super::{FormatError, MappedFile, Problem, TensorSource, TensorView};
use super::header::parse_json;
use super::{SafetensorsFile, TensorInfo};

const SINGLE: &str = "model.safetensors";
const INDEX: &str = "model.safetensors.index.json";
/// An index of a hundred thousand tensors is about 12 MB.
const MAX_INDEX_BYTES: usize = 64 << 20;
const MAX_SHARDS: u64 = 4096;

/// The shards of one model. Each tensor name occurs in exactly one of them.
#[derive(Debug)]
pub struct SafetensorsSet {
    shards: Vec<SafetensorsFile>,
    /// Tensor name → position in `shards`.
    shard_of: HashMap<String, usize>,
    /// Path used in error messages about the whole model: its directory, or its first file.
    path: PathBuf,
}

impl SafetensorsSet {
    /// Opens a model directory: by its index if there is one, else `model.safetensors`.
    pub fn open_directory(directory: &Path) -> Result<Self, FormatError> {
        let index_path = directory.join(INDEX);
        if !index_path.exists() {
            let single = directory.join(SINGLE);
            if !single.exists() {
                return Err(FormatError::new(directory, Problem::NoSafetensors));
            }
            return Self::open_files(&[single]);
        }
        let weight_map = read_index(&index_path)?;
        let mut names: Vec<&str> = weight_map.iter().map(|(_, shard)| shard.as_str()).collect();
        names.sort_unstable();
        names.dedup();
        let paths: Vec<PathBuf> = names.iter().map(|name| directory.join(name)).collect();
        let mut set = Self::open_files(&paths)?;
        set.path = directory.to_owned();
        for (name, shard) in &weight_map {
            let at = names
                .binary_search(&shard.as_str())
                .expect("names come from the map");
            if !set.shards[at].contains(name) {
                let (name, shard) = (quoted(name), quoted(shard));
                let problem = Problem::MissingFromShard { name, shard };
                return Err(FormatError::new(directory, problem));
            }
        }
        Ok(set)
    }

    /// Opens the given files as one model.
    pub fn open_files(paths: &[impl AsRef<Path>]) -> Result<Self, FormatError> {
        let path = match paths.first() {
            Some(path) => path.as_ref().to_owned(),
            None => return Err(FormatError::new(Path::new(""), Problem::NoSafetensors)),
        };
        let mut set = Self {
            shards: Vec::new(),
            shard_of: HashMap::new(),
            path,
        };
        for (at, path) in paths.iter().enumerate() {
            let shard = SafetensorsFile::open(path.as_ref())?;
            for name in shard.names() {
                if set.shard_of.insert(name.to_owned(), at).is_some() {
                    let problem = Problem::Duplicate {
                        what: "tensor",
                        name: quoted(name),
                    };
                    return Err(FormatError::new(shard.path(), problem));
                }
            }
            set.shards.push(shard);
        }
        Ok(set)
    }

    /// The files, in the order they were opened.
    pub fn paths(&self) -> impl Iterator<Item = &Path> {
        self.shards.iter().map(SafetensorsFile::path)
    }

    /// The description and the bytes of a tensor of any element type.
    pub fn entry(&self, name: &str) -> Option<(&TensorInfo, &[u8])> {
        self.shard(name)?.entry(name)
    }

    /// The path that stands for the whole model in messages.
    pub fn path(&self) -> &Path {
        &self.path
    }

    fn shard(&self, name: &str) -> Option<&SafetensorsFile> {
        self.shard_of.get(name).map(|&at| &self.shards[at])
    }
}

impl TensorSource for SafetensorsSet {
    fn names(&self) -> Vec<&str> {
        self.shards.iter().flat_map(TensorSource::names).collect()
    }

    fn tensor(&self, name: &str) -> Result<TensorView<'_>, FormatError> {
        match self.shard(name) {
            Some(shard) => shard.tensor(name),
            None => Err(FormatError::new(
                &self.path,
                Problem::NoTensor(quoted(name)),
            )),
        }
    }

    fn contains(&self, name: &str) -> bool {
        self.shard_of.contains_key(name)
    }

    fn release(&self, name: &str) {
        if let Some(shard) = self.shard(name) {
            shard.release(name);
        }
    }

    fn release_rows(&self, name: &str, rows: Range<usize>) {
        if let Some(shard) = self.shard(name) {
            shard.release_rows(name, rows);
        }
    }
}

/// Pairs of tensor name and validated shard name of an index file.
fn read_index(path: &Path) -> Result<Vec<(String, String)>, FormatError> {
    let fail = |problem| FormatError::new(path, problem);
    let file = MappedFile::open(path)?;
    if file.len() > MAX_INDEX_BYTES {
        return Err(fail(Problem::HeaderTooLarge(MAX_INDEX_BYTES)));
    }
    let index: Index = parse_json(&file).map_err(fail)?;
    let mut shards = std::collections::HashSet::new();
    for (_, shard) in &index.weight_map.0 {
        if !is_plain_shard_name(shard) {
            return Err(fail(Problem::BadShardName(quoted(shard))));
        }
        shards.insert(shard.as_str());
    }
    let count = shards.len() as u64;
    if count > MAX_SHARDS {
        return Err(fail(Problem::TooMany {
            what: "weight files",
            count,
            limit: MAX_SHARDS,
        }));
    }
    if count == 0 {
        return Err(fail(Problem::NoSafetensors));
    }
    Ok(index.weight_map.0)
}

/// Whether a name can only refer to a file in the directory of the index: no separator, parent or device name.
fn is_plain_shard_name(name: &str) -> bool {
    name.ends_with(".safetensors")
        && !name.starts_with('.')
        && name.len() <= 255
        && name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte))
}

#[derive(Deserialize)]
struct Index {
    weight_map: WeightMap,
}

/// Pairs in file order. A map would silently drop duplicate names.
struct WeightMap(Vec<(String, String)>);

impl<'de> Deserialize<'de> for WeightMap {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Pairs;

        impl<'de> Visitor<'de> for Pairs {
            type Value = WeightMap;

            fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                out.write_str("an object from tensor names to file names")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<WeightMap, A::Error> {
                let mut pairs = Vec::new();
                while let Some(pair) = map.next_entry()? {
                    pairs.push(pair);
                }
                Ok(WeightMap(pairs))
            }
        }

        deserializer.deserialize_map(Pairs)
    }
}
