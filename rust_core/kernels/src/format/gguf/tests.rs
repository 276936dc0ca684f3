//! Each rejected file is a valid file with one defect.

use super::{GgufSet, Header, MetadataValue, Split};
use crate::format::{Problem, TensorSource};
use crate::quant::DType;

const U32: u32 = 4;
const STRING: u32 = 8;
const ARRAY: u32 = 9;

/// Writes GGUF bytes without checking anything.
struct Builder {
    magic: [u8; 4],
    version: u32,
    metadata: Vec<Vec<u8>>,
    tensors: Vec<Vec<u8>>,
    data: usize,
    alignment: usize,
    tensor_count: Option<u64>,
    metadata_count: Option<u64>,
}

fn text(text: &str) -> Vec<u8> {
    [&(text.len() as u64).to_le_bytes(), text.as_bytes()].concat()
}

impl Builder {
    fn new() -> Self {
        Self {
            magic: *b"GGUF",
            version: 3,
            metadata: vec![],
            tensors: vec![],
            data: 0,
            alignment: 32,
            tensor_count: None,
            metadata_count: None,
        }
    }

    fn metadata(mut self, key: &str, kind: u32, value: &[u8]) -> Self {
        self.metadata
            .push([&text(key), &kind.to_le_bytes()[..], value].concat());
        self
    }

    fn tensor(mut self, name: &str, ne: &[u64], kind: u32, offset: u64) -> Self {
        let mut entry = text(name);
        entry.extend((ne.len() as u32).to_le_bytes());
        ne.iter()
            .for_each(|extent| entry.extend(extent.to_le_bytes()));
        entry.extend(kind.to_le_bytes());
        entry.extend(offset.to_le_bytes());
        self.tensors.push(entry);
        self
    }

    fn data(mut self, bytes: usize) -> Self {
        self.data = bytes;
        self
    }

    fn build(&self) -> Vec<u8> {
        let mut file = self.magic.to_vec();
        file.extend(self.version.to_le_bytes());
        file.extend(
            self.tensor_count
                .unwrap_or(self.tensors.len() as u64)
                .to_le_bytes(),
        );
        file.extend(
            self.metadata_count
                .unwrap_or(self.metadata.len() as u64)
                .to_le_bytes(),
        );
        file.extend(self.metadata.concat());
        file.extend(self.tensors.concat());
        file.resize(file.len().next_multiple_of(self.alignment) + self.data, 0);
        file
    }

    fn problem(&self) -> Problem {
        Header::parse(&self.build()).expect_err("this file must be refused")
    }
}

fn array(element: u32, count: u64, bytes: &[u8]) -> Vec<u8> {
    [&element.to_le_bytes()[..], &count.to_le_bytes(), bytes].concat()
}

#[test]
fn a_valid_file_gives_its_metadata_and_tensors() {
    let file = Builder::new()
        .metadata("general.architecture", STRING, &text("llama"))
        .metadata(
            "tokens",
            ARRAY,
            &array(STRING, 2, &[text("a"), text("ü")].concat()),
        )
        .metadata(
            "scores",
            ARRAY,
            &array(6, 2, &[1f32.to_le_bytes(), 2f32.to_le_bytes()].concat()),
        )
        .metadata("flag", 7, &[1])
        .metadata("i8", 1, &[0xff])
        .metadata("f64", 12, &0.5f64.to_le_bytes())
        .tensor("w", &[64, 3], 3, 0)
        .tensor("norm", &[8], 0, 128)
        .data(160)
        .build();
    let header = Header::parse(&file).unwrap();
    let value = |key| header.metadata(key, &file).unwrap();
    assert_eq!(
        value("general.architecture"),
        MetadataValue::String("llama")
    );
    assert_eq!(value("flag"), MetadataValue::Bool(true));
    assert_eq!(value("i8"), MetadataValue::I8(-1));
    assert_eq!(value("f64"), MetadataValue::F64(0.5));
    let MetadataValue::Array(tokens) = value("tokens") else {
        panic!("an array")
    };
    assert!(
        tokens
            .iter()
            .eq([MetadataValue::String("a"), MetadataValue::String("ü")])
    );
    let MetadataValue::Array(scores) = value("scores") else {
        panic!("an array")
    };
    assert!(
        scores
            .iter()
            .eq([MetadataValue::F32(1.0), MetadataValue::F32(2.0)])
    );
    let tensor = header.tensor("w").unwrap();
    assert_eq!(
        (&tensor.shape[..], tensor.dtype),
        (&[3, 64][..], DType::Q4_1)
    );
    assert_eq!(tensor.range.len(), 3 * 2 * 20);
    assert_eq!(
        header.tensor("norm").unwrap().range,
        file.len() - 32..file.len()
    );
}

#[test]
fn version_2_is_read_and_others_are_refused() {
    let mut builder = Builder::new();
    builder.version = 2;
    assert_eq!(Header::parse(&builder.build()).unwrap().version, 2);
    builder.version = 1;
    assert_eq!(builder.problem(), Problem::GgufVersion(1));
    builder.version = 3u32.swap_bytes();
    assert_eq!(builder.problem(), Problem::BigEndian);
    builder.magic = *b"PK\x03\x04";
    assert_eq!(builder.problem(), Problem::NotGguf);
}

#[test]
fn every_truncation_is_refused() {
    let builder = Builder::new()
        .metadata("key", STRING, &text("value"))
        .tensor("w", &[32, 2], 2, 0)
        .data(36);
    let file = builder.build();
    for length in 0..file.len() {
        assert!(
            Header::parse(&file[..length]).is_err(),
            "{length} bytes of {}",
            file.len()
        );
    }
    Header::parse(&file).unwrap();
}

#[test]
fn counts_beyond_the_file_are_refused() {
    let mut builder = Builder::new();
    builder.tensor_count = Some(u64::MAX);
    assert!(matches!(
        builder.problem(),
        Problem::TooMany {
            what: "tensors",
            ..
        }
    ));
    let mut builder = Builder::new();
    builder.metadata_count = Some(1 << 40);
    assert!(matches!(
        builder.problem(),
        Problem::TooMany {
            what: "metadata entries",
            ..
        }
    ));
    let builder = Builder::new().metadata("a", ARRAY, &array(U32, u64::MAX / 2, &[]));
    assert!(matches!(builder.problem(), Problem::TooMany { .. }));
    let builder = Builder::new().metadata("a", STRING, &u64::MAX.to_le_bytes());
    assert_eq!(
        builder.problem(),
        Problem::Truncated("metadata \"a\"".into())
    );
}

#[test]
fn damaged_metadata_is_refused() {
    let key = || "\"a\"".to_owned();
    let builder = Builder::new().metadata("a", ARRAY, &array(ARRAY, 1, &array(U32, 0, &[])));
    assert_eq!(builder.problem(), Problem::NestedArray(key()));
    let builder = Builder::new().metadata("a", 13, &[0; 8]);
    assert_eq!(
        builder.problem(),
        Problem::MetadataType {
            key: key(),
            kind: 13
        }
    );
    let builder = Builder::new().metadata("a", 7, &[2]);
    assert_eq!(builder.problem(), Problem::BadBool(key()));
    let builder = Builder::new().metadata("a", STRING, &[2, 0, 0, 0, 0, 0, 0, 0, 0xc3, 0x28]);
    assert_eq!(builder.problem(), Problem::NotUtf8("metadata \"a\"".into()));
    let builder = Builder::new()
        .metadata("a", U32, &[0; 4])
        .metadata("a", U32, &[0; 4]);
    assert_eq!(
        builder.problem(),
        Problem::Duplicate {
            what: "metadata key",
            name: key()
        }
    );
}

#[test]
fn a_bad_alignment_is_refused() {
    for value in [0u32, 4, 48, 1 << 31] {
        let builder = Builder::new().metadata("general.alignment", U32, &value.to_le_bytes());
        assert_eq!(builder.problem(), Problem::BadAlignment, "{value}");
    }
    let builder = Builder::new().metadata("general.alignment", STRING, &text("32"));
    assert_eq!(builder.problem(), Problem::BadAlignment);
}

#[test]
fn tensor_data_starts_at_the_files_own_alignment() {
    let mut builder = Builder::new()
        .metadata("general.alignment", U32, &512u32.to_le_bytes())
        .tensor("w", &[8], 0, 512)
        .data(544);
    builder.alignment = 512;
    let header = Header::parse(&builder.build()).unwrap();
    assert_eq!(header.tensor("w").unwrap().range, 1024..1056);
}

/// A file with the metadata of part `number` of `count`.
fn part(number: u16, count: u16, tensors: i32) -> Builder {
    Builder::new()
        .metadata("split.no", 2, &(number - 1).to_le_bytes())
        .metadata("split.count", 2, &count.to_le_bytes())
        .metadata("split.tensors.count", 5, &tensors.to_le_bytes())
}

#[test]
fn a_files_place_in_a_split_model_is_read() {
    let header = Header::parse(&part(2, 3, 7).build()).unwrap();
    let place = Split {
        index: 1,
        count: 3,
        tensors: 7,
    };
    assert_eq!(header.split, Some(place));
    let whole = Builder::new().metadata("split.count", 2, &1u16.to_le_bytes());
    assert_eq!(Header::parse(&whole.build()).unwrap().split, None);
}

#[test]
fn a_wrong_place_in_a_split_model_is_refused() {
    assert_eq!(part(4, 3, 7).problem(), Problem::BadSplit("split.no"));
    let negative = part(1, 3, -1).problem();
    assert_eq!(negative, Problem::BadSplit("split.tensors.count"));
    let no_number = Builder::new().metadata("split.count", 2, &3u16.to_le_bytes());
    assert_eq!(no_number.problem(), Problem::BadSplit("split.no"));
    let text = Builder::new().metadata("split.count", STRING, &text("3"));
    assert_eq!(text.problem(), Problem::BadSplit("split.count"));
    assert!(matches!(
        part(1, u16::MAX, 7).problem(),
        Problem::TooMany { .. }
    ));
}

/// A folder of files that is deleted afterwards.
struct Folder(std::path::PathBuf);

impl Folder {
    fn new() -> Self {
        use std::sync::atomic::{AtomicU32, Ordering};
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("pravaha-gguf-{}-{number}", std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    /// Opens these files as one model.
    fn open(&self, files: &[&Builder]) -> Result<GgufSet, Problem> {
        let paths: Vec<_> = (0..files.len())
            .map(|at| self.0.join(at.to_string()))
            .collect();
        for (path, file) in paths.iter().zip(files) {
            std::fs::write(path, file.build()).unwrap();
        }
        GgufSet::open_files(&paths).map_err(|error| error.problem)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[test]
fn parts_are_one_model() {
    let folder = Folder::new();
    let first = part(1, 2, 3)
        .metadata("general.architecture", STRING, &text("llama"))
        .tensor("a", &[8], 0, 0)
        .data(32);
    let second = part(2, 2, 3)
        .tensor("b", &[8, 2], 0, 0)
        .tensor("c", &[16], 0, 64)
        .data(128);
    let set = folder.open(&[&first, &second]).unwrap();
    assert_eq!(set.names(), ["a", "b", "c"]);
    assert_eq!(set.tensor("b").unwrap().shape, [2, 8]);
    assert_eq!(set.tensor("c").unwrap().bytes, [0; 64]);
    set.release("c");
    assert!(matches!(
        set.tensor("d").unwrap_err().problem,
        Problem::NoTensor(_)
    ));
    assert_eq!(set.metadata_entries().count(), 4);
    let opened = crate::format::open_weights(&[folder.0.join("0"), folder.0.join("1")]).unwrap();
    assert!(opened.contains("a") && opened.contains("c"));
}

#[test]
fn files_that_are_not_the_parts_of_one_model_are_refused() {
    let folder = Folder::new();
    let first = part(1, 2, 2).tensor("a", &[8], 0, 0).data(32);
    let second = part(2, 2, 2).tensor("b", &[8], 0, 0).data(32);
    assert!(folder.open(&[&first, &second]).is_ok());
    let problem = |files: &[&Builder]| folder.open(files).unwrap_err();
    assert_eq!(
        problem(&[&second]),
        Problem::LonePart {
            number: 2,
            count: 2
        }
    );
    let wrong = |number, count, wanted, parts| Problem::WrongPart {
        number,
        count,
        wanted,
        parts,
    };
    assert_eq!(problem(&[&second, &first]), wrong(2, 2, 1, 2));
    assert_eq!(problem(&[&first, &second, &second]), wrong(1, 2, 1, 3));
    assert_eq!(problem(&[&first, &part(2, 3, 2)]), wrong(2, 3, 2, 2));
    let whole = Builder::new().tensor("b", &[8], 0, 0).data(32);
    assert_eq!(problem(&[&first, &whole]), Problem::NotSplit);
    assert_eq!(problem(&[&whole, &second]), Problem::NotSplit);
    let again = part(2, 2, 2).tensor("a", &[8], 0, 0).data(32);
    assert_eq!(
        problem(&[&first, &again]),
        Problem::InAnotherPart("\"a\"".into())
    );
    let other_count = part(2, 2, 9).tensor("b", &[8], 0, 0).data(32);
    assert!(matches!(
        problem(&[&first, &other_count]),
        Problem::OtherModel { .. }
    ));
    assert_eq!(
        problem(&[&first, &part(2, 2, 2)]),
        Problem::PartTensors {
            tensors: 1,
            count: 2,
            expected: 2
        }
    );
    let named =
        |builder: Builder, name: &str| builder.metadata("general.name", STRING, &text(name));
    let first = named(part(1, 2, 2), "one").tensor("a", &[8], 0, 0).data(32);
    let second = |name| named(part(2, 2, 2), name).tensor("b", &[8], 0, 0).data(32);
    assert!(folder.open(&[&first, &second("one")]).is_ok());
    assert_eq!(
        problem(&[&first, &second("two")]),
        Problem::OtherModel {
            key: "\"general.name\"".into()
        }
    );
}

#[test]
fn damaged_tensors_are_refused() {
    let name = || "\"w\"".to_owned();
    let with = |ne: &[u64], kind, offset| {
        Builder::new()
            .tensor("w", ne, kind, offset)
            .data(128)
            .problem()
    };
    assert_eq!(with(&[8], 0, 4), Problem::Misaligned(name()));
    assert_eq!(with(&[8], 0, 128), Problem::OutOfRange(name()));
    assert_eq!(with(&[8], 0, u64::MAX - 31), Problem::OutOfRange(name()));
    assert_eq!(with(&[0, 8], 0, 0), Problem::BadShape(name()));
    assert_eq!(with(&[1 << 32, 1 << 32], 0, 0), Problem::BadShape(name()));
    assert_eq!(with(&[u64::MAX], 0, 0), Problem::BadShape(name()));
    assert_eq!(
        with(&[], 0, 0),
        Problem::Dimensions {
            name: name(),
            count: 0,
            limit: 4
        }
    );
    assert_eq!(
        with(&[1; 5], 0, 0),
        Problem::Dimensions {
            name: name(),
            count: 5,
            limit: 4
        }
    );
    let unsupported = |kind: &str| Problem::UnsupportedType {
        name: name(),
        kind: kind.into(),
    };
    assert_eq!(with(&[256], 16, 0), unsupported("IQ2_XXS"));
    assert_eq!(with(&[256], 34, 0), unsupported("TQ1_0"));
    assert_eq!(with(&[256], 40, 0), unsupported("NVFP4"));
    assert_eq!(with(&[256], 41, 0), unsupported("Q1_0"));
    assert_eq!(with(&[256], 999, 0), unsupported("number 999"));
    assert_eq!(
        with(&[33], 2, 0),
        Problem::PartialBlock {
            name: name(),
            cols: 33,
            dtype: "Q4_0",
            block: 32
        }
    );
}

#[test]
fn tensors_that_share_a_name_or_bytes_are_refused() {
    let builder = Builder::new()
        .tensor("w", &[8], 0, 0)
        .tensor("w", &[8], 0, 32)
        .data(64);
    assert_eq!(
        builder.problem(),
        Problem::Duplicate {
            what: "tensor",
            name: "\"w\"".into()
        }
    );
    let builder = Builder::new()
        .tensor("a", &[16], 0, 0)
        .tensor("b", &[8], 0, 32)
        .data(64);
    assert_eq!(
        builder.problem(),
        Problem::Overlap("\"a\"".into(), "\"b\"".into())
    );
}

#[test]
fn messages_are_one_sentence_of_plain_text() {
    let problem = Builder::new()
        .tensor("w\x1b[2J\n", &[8], 999, 0)
        .data(64)
        .problem();
    let message = problem.to_string();
    assert!(!message.contains(['\n', '\x1b']), "{message:?}");
    assert!(message.contains("number 999"), "{message}");
}
