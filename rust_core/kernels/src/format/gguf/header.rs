//! Parsing of the whole header from a byte slice, without I/O, so that fuzz tests can call it.

use std::collections::HashMap;

use super::super::Problem;
use super::MAGIC;
use super::cursor::Cursor;
use super::metadata::{Metadata, MetadataValue};
use super::split::Split;
use super::tensor_table::{self, TensorInfo};

const DEFAULT_ALIGNMENT: u64 = 32;

/// The header of a GGUF file, with every offset and count checked against the file's length.
#[derive(Debug)]
pub struct Header {
    pub version: u32,
    /// None if the file is a whole model.
    pub split: Option<Split>,
    metadata: Metadata,
    pub tensors: Vec<TensorInfo>,
    index: HashMap<String, usize>,
}

impl Header {
    /// Parses `file`, the bytes of a whole GGUF file.
    pub fn parse(file: &[u8]) -> Result<Self, Problem> {
        if !file.starts_with(MAGIC) {
            return Err(Problem::NotGguf);
        }
        let mut cursor = Cursor::new(file);
        cursor.skip(MAGIC.len() as u64, "the header")?;
        let version = cursor.u32("the header")?;
        if !(2..=3).contains(&version) {
            let swapped = version.swap_bytes();
            return Err(if (1..=3).contains(&swapped) {
                Problem::BigEndian
            } else {
                Problem::GgufVersion(version)
            });
        }
        let tensor_count = cursor.u64("the header")?;
        let metadata_count = cursor.u64("the header")?;
        let metadata = Metadata::parse(&mut cursor, metadata_count)?;
        let split = Split::parse(&metadata, file)?;
        let alignment = alignment(&metadata, file)?;
        let tensors = tensor_table::parse(&mut cursor, tensor_count, alignment, file.len())?;
        let index = tensors
            .iter()
            .enumerate()
            .map(|(at, tensor)| (tensor.name.clone(), at))
            .collect();
        Ok(Self {
            version,
            split,
            metadata,
            tensors,
            index,
        })
    }

    /// The value of metadata `key`; `file` must be the parsed bytes.
    pub fn metadata<'a>(&self, key: &str, file: &'a [u8]) -> Option<MetadataValue<'a>> {
        self.metadata.get(key, file)
    }

    /// Every metadata key and value, in file order; `file` must be the parsed bytes.
    pub fn metadata_entries<'a>(
        &'a self,
        file: &'a [u8],
    ) -> impl Iterator<Item = (&'a str, MetadataValue<'a>)> {
        self.metadata.entries(file)
    }

    /// The tensor called `name`.
    pub fn tensor(&self, name: &str) -> Option<&TensorInfo> {
        self.index.get(name).map(|&at| &self.tensors[at])
    }
}

fn alignment(metadata: &Metadata, file: &[u8]) -> Result<u64, Problem> {
    match metadata.get("general.alignment", file) {
        None => Ok(DEFAULT_ALIGNMENT),
        Some(MetadataValue::U32(value))
            if value.is_power_of_two() && (8..=65536).contains(&value) =>
        {
            Ok(u64::from(value))
        }
        Some(_) => Err(Problem::BadAlignment),
    }
}
