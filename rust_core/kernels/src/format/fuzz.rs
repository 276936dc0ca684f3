//! Fuzz tests with mutated headers of both formats: parsing succeeds or returns an error, never panics, and never allocates
//! more than a small multiple of the file size.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use proptest::prelude::*;

use super::gguf::{self, MetadataValue};
use super::safetensors;

/// The allocator of all of this crate's tests. Tracks the thread's live bytes and their peak.
struct Counting;

thread_local! {
    static LIVE: Cell<isize> = const { Cell::new(0) };
    static PEAK: Cell<isize> = const { Cell::new(0) };
}

fn count(bytes: isize) {
    // Fails only while the thread ends, when nothing is measured.
    let _ = LIVE.try_with(|live| {
        live.set(live.get() + bytes);
        let _ = PEAK.try_with(|peak| peak.set(peak.get().max(live.get())));
    });
}

// SAFETY: forwards to the system allocator and only counts.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as isize);
        // SAFETY: the caller's contract is the same.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        count(-(layout.size() as isize));
        // SAFETY: the caller's contract is the same.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// The result of `work` and its peak of live bytes.
fn peak_of<T>(work: impl FnOnce() -> T) -> (T, isize) {
    let before = LIVE.get();
    PEAK.set(before);
    let result = work();
    (result, PEAK.get() - before)
}

fn text(out: &mut Vec<u8>, text: &str) {
    out.extend((text.len() as u64).to_le_bytes());
    out.extend(text.as_bytes());
}

/// A small GGUF file with every kind of metadata, the first part of a split model.
fn gguf_file() -> Vec<u8> {
    let mut file = b"GGUF\x03\0\0\0\x02\0\0\0\0\0\0\0\x07\0\0\0\0\0\0\0".to_vec();
    text(&mut file, "general.name");
    file.extend(8u32.to_le_bytes());
    text(&mut file, "tiny");
    text(&mut file, "general.alignment");
    file.extend([4u32.to_le_bytes(), 32u32.to_le_bytes()].concat());
    text(&mut file, "tokenizer.ggml.tokens");
    file.extend([9u32.to_le_bytes(), 8u32.to_le_bytes()].concat());
    file.extend(3u64.to_le_bytes());
    for token in ["a", "b", "c"] {
        text(&mut file, token);
    }
    text(&mut file, "flags");
    file.extend([9u32.to_le_bytes(), 7u32.to_le_bytes()].concat());
    file.extend(2u64.to_le_bytes());
    file.extend([0, 1]);
    for (key, value) in [
        ("split.no", 0u32),
        ("split.count", 2),
        ("split.tensors.count", 3),
    ] {
        text(&mut file, key);
        file.extend([4u32.to_le_bytes(), value.to_le_bytes()].concat());
    }
    for (name, ne, kind, offset) in [("w", [64u64, 2], 3u32, 0u64), ("norm", [8, 1], 0, 96)] {
        text(&mut file, name);
        file.extend(2u32.to_le_bytes());
        file.extend([ne[0].to_le_bytes(), ne[1].to_le_bytes()].concat());
        file.extend(kind.to_le_bytes());
        file.extend(offset.to_le_bytes());
    }
    file.resize(file.len().next_multiple_of(32) + 128, 1);
    file
}

fn safetensors_file() -> Vec<u8> {
    let json = br#"{"__metadata__":{"format":"pt"},"a":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]},"b":{"dtype":"BF16","shape":[4],"data_offsets":[24,32]}}"#;
    [&(json.len() as u64).to_le_bytes()[..], json, &[1; 32]].concat()
}

/// One change of a file's bytes.
#[derive(Debug, Clone)]
enum Mutation {
    Byte {
        at: usize,
        value: u8,
    },
    Bit {
        at: usize,
        bit: u8,
    },
    Word {
        at: usize,
        value: u64,
    },
    Half {
        at: usize,
        value: u32,
    },
    Truncate {
        at: usize,
    },
    Repeat {
        from: usize,
        count: usize,
        at: usize,
    },
}

fn mutation() -> impl Strategy<Value = Mutation> {
    let at = any::<usize>;
    let edges = prop::sample::select(vec![
        0,
        1,
        31,
        32,
        0xffff,
        0x7fff_ffff,
        0x8000_0000,
        0xffff_ffff,
        1 << 32,
        1 << 40,
        i64::MAX as u64,
        i64::MAX as u64 + 1,
        u64::MAX - 31,
        u64::MAX,
    ]);
    prop_oneof![
        (at(), any::<u8>()).prop_map(|(at, value)| Mutation::Byte { at, value }),
        (at(), 0..8u8).prop_map(|(at, bit)| Mutation::Bit { at, bit }),
        (at(), edges).prop_map(|(at, value)| Mutation::Word { at, value }),
        (at(), 0..40u32).prop_map(|(at, value)| Mutation::Half { at, value }),
        at().prop_map(|at| Mutation::Truncate { at }),
        (at(), 1..64usize, at()).prop_map(|(from, count, at)| Mutation::Repeat { from, count, at }),
    ]
}

fn overwrite(file: &mut [u8], at: usize, bytes: &[u8]) {
    let at = at % file.len();
    let count = bytes.len().min(file.len() - at);
    file[at..at + count].copy_from_slice(&bytes[..count]);
}

fn mutate(file: &mut Vec<u8>, mutation: &Mutation) {
    if file.is_empty() {
        return;
    }
    let length = file.len();
    match *mutation {
        Mutation::Byte { at, value } => overwrite(file, at, &[value]),
        Mutation::Bit { at, bit } => file[at % length] ^= 1 << bit,
        Mutation::Word { at, value } => overwrite(file, at, &value.to_le_bytes()),
        Mutation::Half { at, value } => overwrite(file, at, &value.to_le_bytes()),
        Mutation::Truncate { at } => file.truncate(at % length),
        Mutation::Repeat { from, count, at } => {
            let from = from % length;
            let copied = file[from..(from + count).min(length)].to_vec();
            let at = at % length;
            file.splice(at..at, copied);
        }
    }
}

/// Generous for the small files here: an error message alone is some hundred bytes.
fn allowance(file: &[u8]) -> isize {
    16 * file.len() as isize + 4096
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4096))]

    #[test]
    fn mutated_gguf_is_read_or_refused(mutations in prop::collection::vec(mutation(), 1..4)) {
        let mut file = gguf_file();
        gguf::Header::parse(&file).unwrap();
        mutations.iter().for_each(|mutation| mutate(&mut file, mutation));
        let (outcome, peak) = peak_of(|| gguf::Header::parse(&file));
        prop_assert!(peak <= allowance(&file), "{peak} bytes for a file of {}", file.len());
        match outcome {
            Err(problem) => prop_assert!(!problem.to_string().contains('\n')),
            Ok(header) => {
                if let Some(split) = header.split {
                    prop_assert!(split.index < split.count && (2..=4096).contains(&split.count));
                }
                for (_, value) in header.metadata_entries(&file) {
                    if let MetadataValue::Array(array) = value {
                        prop_assert_eq!(array.iter().count(), array.len);
                    }
                }
                let mut ranges: Vec<_> = header.tensors.iter().map(|t| t.range.clone()).collect();
                ranges.sort_by_key(|range| range.start);
                prop_assert!(ranges.iter().all(|range| range.end <= file.len()));
                prop_assert!(ranges.windows(2).all(|pair| pair[0].end <= pair[1].start));
            }
        }
    }

    #[test]
    fn mutated_safetensors_is_read_or_refused(mutations in prop::collection::vec(mutation(), 1..4)) {
        let mut file = safetensors_file();
        safetensors::Header::parse(&file).unwrap();
        mutations.iter().for_each(|mutation| mutate(&mut file, mutation));
        let (outcome, peak) = peak_of(|| safetensors::Header::parse(&file));
        prop_assert!(peak <= allowance(&file), "{peak} bytes for a file of {}", file.len());
        match outcome {
            Err(problem) => prop_assert!(!problem.to_string().contains('\n')),
            Ok(header) => {
                let covered: usize = header.tensors.iter().map(|tensor| tensor.range.len()).sum();
                prop_assert!(covered < file.len());
            }
        }
    }
}
