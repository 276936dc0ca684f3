//! Blocks that are written and read again, and tensors that do not fit each other.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::{env, fs, process};

use proptest::prelude::*;

use super::*;
use crate::quant::dequantize_row;

/// Values of the 4-bit floats without sign.
const VALUES: [f32; 8] = [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0];

type Part = (&'static str, &'static str, Vec<usize>);

/// A file that is removed when dropped.
struct File(PathBuf);

impl File {
    /// With these tensors: name, element type and shape; byte `i` of all of them is `byte(i)`.
    fn of(parts: &[Part], byte: impl Fn(usize) -> u8) -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let (mut header, mut len) = (serde_json::Map::new(), 0);
        for (name, dtype, shape) in parts {
            let size = if *dtype == "F32" { 4 } else { 1 };
            let end = len + size * shape.iter().product::<usize>();
            let entry =
                serde_json::json!({"dtype": dtype, "shape": shape, "data_offsets": [len, end]});
            header.insert((*name).to_owned(), entry);
            len = end;
        }
        let json = serde_json::Value::from(header).to_string();
        let data: Vec<u8> = (0..len).map(byte).collect();
        let path = env::temp_dir().join(format!("pravaha-mxfp4-{}-{number}", process::id()));
        let file = [&(json.len() as u64).to_le_bytes(), json.as_bytes(), &data].concat();
        fs::write(&path, file).unwrap();
        Self(path)
    }

    fn open(&self) -> Result<Mxfp4Source, Problem> {
        Mxfp4Source::open_files(&[&self.0]).map_err(|error| error.problem)
    }
}

impl Drop for File {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

fn parts() -> Vec<Part> {
    vec![
        ("m_blocks", "U8", vec![2, 3, 2, 16]),
        ("m_scales", "U8", vec![2, 3, 2]),
        ("n", "F32", vec![2]),
    ]
}

proptest! {
    #[test]
    fn rows_have_the_values_of_their_codes(
        bytes in prop::collection::vec(any::<u8>(), 204),
        first in 0usize..6,
    ) {
        let file = File::of(&parts(), |at| bytes.get(at).copied().unwrap_or(0));
        let source = file.open().unwrap();
        let (tensor, mut buffer) = (source.tensor("m").unwrap(), RowBuffer::default());
        prop_assert_eq!(tensor.shape, [2, 3, 64]);
        let view = source.rows(&tensor, first..6, &mut buffer);
        prop_assert_eq!(view.shape, [6 - first, 64]);
        for row in first..6 {
            let mut values = [0.0; 64];
            dequantize_row(view.dtype, view.row(row - first), &mut values);
            for (input, value) in values.into_iter().enumerate() {
                let block = row * 2 + input / 32;
                let code = bytes[block * 16 + input % 32 / 2] >> (4 * (input % 2)) & 0xf;
                let scale = f64::from(bytes[192 + block]) - 127.0;
                let sign = if code & 8 == 0 { 1.0 } else { -1.0 };
                let exact = sign * f64::from(VALUES[usize::from(code & 7)]) * scale.exp2();
                // The two smallest scales are read as 0; with the largest, values are beyond f32.
                if (2..252).contains(&bytes[192 + block]) {
                    prop_assert_eq!(f64::from(value), exact);
                }
            }
        }
    }
}

#[test]
fn other_tensors_are_those_of_the_file() {
    let source = File::of(&parts(), |_| 0).open().unwrap();
    assert_eq!(source.names(), ["m", "n"]);
    assert_eq!(source.tensor("n").unwrap().bytes.len(), 8);
    assert!(source.contains("m") && !source.contains("o") && source.tensor("o").is_err());
}

#[test]
fn tensors_that_do_not_fit_are_refused() {
    let refusal = |change: fn(&mut Vec<Part>)| {
        let mut parts = parts();
        change(&mut parts);
        File::of(&parts, |_| 0).open().err().unwrap().to_string()
    };
    assert!(refusal(|parts| drop(parts.remove(1))).contains("no tensor \"m_scales\""));
    assert!(refusal(|parts| drop(parts.remove(0))).contains("no tensor \"*_blocks\""));
    assert!(refusal(|parts| parts[0].2[3] = 8).contains("do not fit"));
    assert!(refusal(|parts| parts[1].2 = vec![2, 3, 1]).contains("do not fit"));
    assert!(refusal(|parts| parts[1].2 = vec![3, 2, 2]).contains("do not fit"));
    assert!(refusal(|parts| (parts[0].2, parts[1].2) = (vec![16], vec![])).contains("do not fit"));
    assert!(refusal(|parts| parts[0].1 = "I8").contains("element type \"I8\""));
    assert!(refusal(|parts| parts[2].0 = "m").contains("twice"));
    let empty = |parts: &mut Vec<Part>| {
        (parts[0].2, parts[1].2) = (vec![0, 2, 16], vec![0, 2]);
    };
    assert!(refusal(empty).contains("do not fit"));
}
