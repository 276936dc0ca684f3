//! Headers, directories and shards. Each rejected file is a valid file with one defect.

use std::fs;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};

use super::{Header, SafetensorsSet};
use crate::format::{Problem, TensorSource, open_weights};
use crate::quant::DType;

fn file(json: &str, data: usize) -> Vec<u8> {
    [
        &(json.len() as u64).to_le_bytes(),
        json.as_bytes(),
        &vec![0; data],
    ]
    .concat()
}

fn tensor(name: &str, dtype: &str, shape: &str, begin: u64, end: u64) -> String {
    format!(r#""{name}":{{"dtype":"{dtype}","shape":{shape},"data_offsets":[{begin},{end}]}}"#)
}

fn problem(json: &str, data: usize) -> Problem {
    Header::parse(&file(json, data)).expect_err("this file must be refused")
}

/// A temporary directory, removed when dropped.
struct Directory(PathBuf);

impl Directory {
    fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let name = format!(
            "pravaha-safetensors-{}-{}",
            std::process::id(),
            NEXT.fetch_add(1, Ordering::Relaxed)
        );
        let path = std::env::temp_dir().join(name);
        fs::create_dir(&path).unwrap();
        Self(path)
    }

    fn write(&self, name: &str, bytes: impl AsRef<[u8]>) -> &Self {
        fs::write(self.0.join(name), bytes).unwrap();
        self
    }

    fn problem(&self) -> Problem {
        SafetensorsSet::open_directory(&self.0)
            .expect_err("this directory must be refused")
            .problem
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[test]
fn a_valid_header_gives_its_tensors() {
    let json = format!(
        r#"{{"__metadata__":{{"format":"pt"}},{},{},{}}}"#,
        tensor("b", "F32", "[2]", 12, 20),
        tensor("a", "BF16", "[2,3]", 0, 12),
        tensor("empty", "F16", "[0,4]", 12, 12),
    );
    let header = Header::parse(&file(&json, 20)).unwrap();
    let names: Vec<_> = header
        .tensors
        .iter()
        .map(|tensor| tensor.name.as_str())
        .collect();
    assert_eq!(names, ["a", "empty", "b"]);
    assert_eq!(header.tensor("a").unwrap().shape, [2, 3]);
    assert_eq!(
        header.tensor("b").unwrap().range,
        8 + json.len() + 12..8 + json.len() + 20
    );
}

#[test]
fn every_truncation_is_refused() {
    let whole = file(&format!("{{{}}}", tensor("a", "F32", "[2]", 0, 8)), 8);
    for length in 0..whole.len() {
        assert!(
            Header::parse(&whole[..length]).is_err(),
            "{length} bytes of {}",
            whole.len()
        );
    }
    Header::parse(&whole).unwrap();
}

#[test]
fn damaged_headers_are_refused() {
    let name = || "\"a\"".to_owned();
    let one = |shape: &str, begin, end| {
        problem(&format!("{{{}}}", tensor("a", "F32", shape, begin, end)), 8)
    };
    assert_eq!(one("[2]", 0, 9), Problem::OutOfRange(name()));
    assert_eq!(one("[2]", 8, 0), Problem::OutOfRange(name()));
    assert_eq!(one("[2]", 0, u64::MAX), Problem::OutOfRange(name()));
    assert_eq!(one("[3]", 0, 8), Problem::SizeMismatch(name()));
    assert_eq!(
        one("[4294967296,4294967296,4294967296]", 0, 8),
        Problem::BadShape(name())
    );
    assert_eq!(one("[1]", 0, 4), Problem::UnusedBytes("at its end".into()));
    assert_eq!(
        one("[1]", 4, 8),
        Problem::UnusedBytes("before \"a\"".into())
    );
    assert!(matches!(
        one("[1,1,1,1,1,1,1,1,2]", 0, 8),
        Problem::Dimensions { count: 9, .. }
    ));
    assert!(matches!(one("[-2]", 0, 8), Problem::BadJson(_)));
    assert!(matches!(
        problem(&"{\"a\":".repeat(1000), 0),
        Problem::BadJson(_)
    ));
    assert_eq!(problem("[]", 0), Problem::UnknownFormat);
    let huge = [&u64::MAX.to_le_bytes()[..], b"{}"].concat();
    assert!(matches!(
        Header::parse(&huge),
        Err(Problem::HeaderTooLarge(_))
    ));
}

#[test]
fn tensors_that_share_a_name_or_bytes_are_refused() {
    let (a, b) = (
        tensor("a", "F32", "[2]", 0, 8),
        tensor("b", "F32", "[2]", 4, 12),
    );
    let overlap = Problem::Overlap("\"a\"".into(), "\"b\"".into());
    assert_eq!(problem(&format!("{{{a},{b}}}"), 12), overlap);
    let again = tensor("a", "F32", "[2]", 8, 16);
    let duplicate = Problem::Duplicate {
        what: "tensor",
        name: "\"a\"".into(),
    };
    assert_eq!(problem(&format!("{{{a},{again}}}"), 16), duplicate);
}

#[test]
fn an_unsupported_element_type_is_an_error_only_when_its_tensor_is_read() {
    let json = format!("{{{}}}", tensor("ids", "I64", "[1]", 0, 8));
    let directory = Directory::new();
    directory.write("model.safetensors", file(&json, 8));
    let set = SafetensorsSet::open_directory(&directory.0).unwrap();
    assert!(set.contains("ids"));
    assert!(matches!(
        set.tensor("ids").unwrap_err().problem,
        Problem::UnsupportedType { kind, .. } if kind == "\"I64\""
    ));
}

#[test]
fn shards_are_one_source_of_tensors() {
    let directory = Directory::new();
    let shard = |name: &str| file(&format!("{{{}}}", tensor(name, "F16", "[1,2]", 0, 4)), 4);
    directory
        .write("one.safetensors", shard("a"))
        .write("two.safetensors", shard("b"))
        .write(
            "model.safetensors.index.json",
            r#"{"metadata":{},"weight_map":{"a":"one.safetensors","b":"two.safetensors"}}"#,
        );
    let set = open_weights(&[&directory.0]).unwrap();
    assert_eq!(set.names(), ["a", "b"]);
    let view = set.tensor("b").unwrap();
    assert_eq!((view.rows(), view.cols(), view.dtype), (1, 2, DType::F16));
    set.release("b");
    assert_eq!(set.tensor("b").unwrap().bytes, [0; 4]);
    assert!(matches!(
        set.tensor("c").unwrap_err().problem,
        Problem::NoTensor(_)
    ));
}

#[test]
fn an_index_cannot_name_files_elsewhere() {
    for shard in [
        "../x.safetensors",
        "/etc/x.safetensors",
        "a/x.safetensors",
        ".x.safetensors",
        "x.bin",
        "x\\u0000.safetensors",
        "..\\\\x.safetensors",
    ] {
        let directory = Directory::new();
        let index = format!(r#"{{"weight_map":{{"a":"{shard}"}}}}"#);
        directory.write("model.safetensors.index.json", index);
        assert!(
            matches!(directory.problem(), Problem::BadShardName(_)),
            "{shard}"
        );
    }
}

#[test]
fn an_index_that_disagrees_with_its_shards_is_refused() {
    let directory = Directory::new();
    let one = file(&format!("{{{}}}", tensor("a", "F32", "[1]", 0, 4)), 4);
    directory.write("one.safetensors", &one);
    let index = |text: &str| {
        directory.write("model.safetensors.index.json", text);
        directory.problem()
    };
    assert!(matches!(
        index(r#"{"weight_map":{"b":"one.safetensors"}}"#),
        Problem::MissingFromShard { .. }
    ));
    assert!(matches!(
        index(r#"{"weight_map":{"a":"two.safetensors"}}"#),
        Problem::Io(_)
    ));
    assert_eq!(index(r#"{"weight_map":{}}"#), Problem::NoSafetensors);
    assert!(matches!(
        index(r#"{"weight_map":["a"]}"#),
        Problem::BadJson(_)
    ));
    directory.write("two.safetensors", &one);
    assert_eq!(
        index(r#"{"weight_map":{"a":"one.safetensors","c":"two.safetensors"}}"#),
        Problem::Duplicate {
            what: "tensor",
            name: "\"a\"".into()
        }
    );
}

#[test]
fn paths_without_a_model_are_rejected() {
    let directory = Directory::new();
    assert_eq!(directory.problem(), Problem::NoSafetensors);
    directory
        .write("notes.txt", "hello, this is no model")
        .write("empty", "");
    let problem = |name: &str| {
        open_weights(&[directory.0.join(name)])
            .err()
            .unwrap()
            .problem
    };
    assert_eq!(problem("notes.txt"), Problem::UnknownFormat);
    assert!(matches!(problem("empty"), Problem::Truncated(_)));
    assert!(matches!(problem("absent"), Problem::Io(_)));
}
