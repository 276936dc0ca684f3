//! Matrices written in each format, compared with what they were written from; and tensors that do not fit each other.

use std::fs;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};

use half::{bf16, f16};
use proptest::prelude::*;

use super::{GroupedSource, Scheme};
use crate::format::{Problem, RowBuffer, TensorSource};
use crate::quant::{DType, dequantize_row};

/// A tensor of a file: what follows the stem, element type, shape, bytes.
type Part = (&'static str, &'static str, Vec<usize>, Vec<u8>);

/// A file that is removed when dropped.
struct File(PathBuf);

impl File {
    /// With these tensors of the module `m`.
    fn of(parts: &[Part]) -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("pravaha-grouped-{}-{number}", std::process::id());
        let mut header = serde_json::Map::new();
        let mut data = Vec::new();
        for (name, dtype, shape, bytes) in parts {
            let offsets = [data.len(), data.len() + bytes.len()];
            let entry =
                serde_json::json!({"dtype": dtype, "shape": shape, "data_offsets": offsets});
            header.insert(format!("m{name}"), entry);
            data.extend(bytes);
        }
        let json = serde_json::Value::from(header).to_string();
        let path = std::env::temp_dir().join(name);
        let file = [&(json.len() as u64).to_le_bytes(), json.as_bytes(), &data].concat();
        fs::write(&path, file).unwrap();
        Self(path)
    }

    fn open(&self, scheme: Scheme) -> Result<GroupedSource, Problem> {
        GroupedSource::open_files(&[&self.0], scheme).map_err(|error| error.problem)
    }
}

impl Drop for File {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

fn words(words: impl IntoIterator<Item = u32>) -> Vec<u8> {
    words.into_iter().flat_map(u32::to_le_bytes).collect()
}

/// A quantised matrix as its writer knows it.
#[derive(Debug, Clone)]
struct Written {
    bits: u32,
    outputs: usize,
    inputs: usize,
    num_groups: usize,
    /// `[outputs][inputs]`
    codes: Vec<u8>,
    /// `[outputs][groups]`
    zeros: Vec<u8>,
    /// `[outputs][groups]`
    scales: Vec<f32>,
    scale_type: DType,
    /// The group of each input.
    group_of: Vec<usize>,
    /// Whether the file names them.
    indexed: bool,
}

impl Written {
    fn weight(&self, output: usize, input: usize) -> f32 {
        let at = output * self.num_groups + self.group_of[input];
        let code = self.codes[output * self.inputs + input];
        self.scales[at] * (f32::from(code) - f32::from(self.zeros[at]))
    }

    /// Codes `code(0..count)` in words.
    fn packed(&self, count: usize, code: impl Fn(usize) -> u8) -> Vec<u32> {
        let per = 32 / self.bits as usize;
        let word = |first: usize| {
            let inside = first..count.min(first + per);
            inside.fold(0, |word, at| {
                word | u32::from(code(at)) << (self.bits as usize * (at - first))
            })
        };
        (0..count).step_by(per).map(word).collect()
    }

    /// Numbers `[outputs][groups]` in the order `[groups][outputs]`.
    fn by_group<T: Copy>(&self, numbers: &[T]) -> Vec<T> {
        let at = |at: usize| numbers[at % self.outputs * self.num_groups + at / self.outputs];
        (0..numbers.len()).map(at).collect()
    }

    fn stored_scales(&self, scales: &[f32]) -> (&'static str, Vec<u8>) {
        let each = scales.iter();
        match self.scale_type {
            DType::F16 => (
                "F16",
                each.flat_map(|&x| f16::from_f32(x).to_le_bytes()).collect(),
            ),
            DType::BF16 => (
                "BF16",
                each.flat_map(|&x| bf16::from_f32(x).to_le_bytes())
                    .collect(),
            ),
            _ => ("F32", each.flat_map(|x| x.to_le_bytes()).collect()),
        }
    }

    fn parts(&self, scheme: Scheme) -> Vec<Part> {
        let (outputs, inputs, groups) = (self.outputs, self.inputs, self.num_groups);
        let per = 32 / self.bits as usize;
        let indices = words(self.group_of.iter().map(|&group| group as u32));
        if scheme == Scheme::PackQuantized {
            let codes = (0..outputs)
                .flat_map(|output| self.packed(inputs, |at| self.codes[output * inputs + at]));
            let columns: Vec<_> = (0..groups)
                .map(|group| self.packed(outputs, |at| self.zeros[at * groups + group]))
                .collect();
            let zero_rows = outputs.div_ceil(per);
            let zeros = (0..zero_rows * groups).map(|at| columns[at % groups][at / groups]);
            let (dtype, scales) = self.stored_scales(&self.scales);
            let shape = [outputs as i64, inputs as i64]
                .map(i64::to_le_bytes)
                .concat();
            let mut parts: Vec<Part> = vec![
                (
                    ".weight_packed",
                    "I32",
                    vec![outputs, inputs.div_ceil(per)],
                    words(codes),
                ),
                (".weight_scale", dtype, vec![outputs, groups], scales),
                (".weight_shape", "I64", vec![2], shape),
            ];
            if self.zeros.iter().any(|&zero| zero != 1 << (self.bits - 1)) {
                parts.push((
                    ".weight_zero_point",
                    "I32",
                    vec![zero_rows, groups],
                    words(zeros),
                ));
            }
            if self.indexed {
                parts.push((".weight_g_idx", "I32", vec![inputs], indices));
            }
            return parts;
        }
        let order = |position: usize| [0, 2, 4, 6, 1, 3, 5, 7][position % 8];
        let column = |at: usize| match scheme {
            Scheme::Awq => at / 8 * 8 + order(at),
            _ => at,
        };
        let code = |input: usize, at: usize| self.codes[column(at) * inputs + input];
        let codes: Vec<u32> = match scheme {
            Scheme::Awq => (0..inputs)
                .flat_map(|input| self.packed(outputs, |at| code(input, at)))
                .collect(),
            _ => {
                let columns: Vec<_> = (0..outputs)
                    .map(|output| self.packed(inputs, |at| code(at, output)))
                    .collect();
                let count = outputs * inputs.div_ceil(per);
                (0..count)
                    .map(|at| columns[at % outputs][at / outputs])
                    .collect()
            }
        };
        let one = if self.bits == 4 {
            0x1111_1111
        } else {
            0x0101_0101
        };
        let less = if scheme == Scheme::Gptq { one } else { 0 };
        let zeros = (0..groups)
            .flat_map(|group| self.packed(outputs, |at| self.zeros[column(at) * groups + group]))
            .map(|word| word.wrapping_sub(less));
        let code_shape = match scheme {
            Scheme::Awq => vec![inputs, outputs / per],
            _ => vec![inputs.div_ceil(per), outputs],
        };
        let (dtype, scales) = self.stored_scales(&self.by_group(&self.scales));
        let mut parts: Vec<Part> = vec![
            (".qweight", "I32", code_shape, words(codes)),
            (
                ".qzeros",
                "I32",
                vec![groups, outputs.div_ceil(per)],
                words(zeros),
            ),
            (".scales", dtype, vec![groups, outputs], scales),
        ];
        if self.indexed && scheme != Scheme::Awq {
            parts.push((".g_idx", "I32", vec![inputs], indices));
        }
        parts
    }

    /// The largest error that the presented type may have in a run of 32 weights, of which `largest` is the largest.
    fn tolerance(&self, dtype: DType, largest: f32) -> f32 {
        match dtype {
            DType::Int4 => 0.0,
            // Scales are at least 2^-14.
            DType::Q4_0 => 0.0,
            DType::Q8_0 if self.bits == 8 && self.scale_type != DType::F32 => 0.0,
            DType::Q8_0 if self.bits == 8 => largest / 2048.0,
            DType::Q8_0 => largest / 254.0 * 1.13,
            _ => largest / 2048.0,
        }
    }
}

#[derive(Debug, Clone, Copy)]
enum Order {
    /// Groups in order, without indices.
    Plain,
    /// Groups in order, with indices.
    Indexed,
    /// Inputs of any group.
    Shuffled,
}

const SCHEMES: [Scheme; 4] = [
    Scheme::Gptq,
    Scheme::GptqV2,
    Scheme::Awq,
    Scheme::PackQuantized,
];

fn written() -> impl Strategy<Value = (Scheme, Written)> {
    let size = prop::sample::select(vec![8usize, 16, 32, 64, 128]);
    let order = prop::sample::select(vec![Order::Plain, Order::Indexed, Order::Shuffled]);
    let scheme = prop::sample::select(SCHEMES.to_vec());
    let floats = prop::sample::select(vec![DType::F16, DType::BF16, DType::F32]);
    let shape = (1usize..6, size, 1usize..4, any::<bool>(), any::<bool>());
    (scheme, order, floats, shape, any::<u64>()).prop_map(
        |(scheme, order, scale_type, shape, seed)| {
            let (eights, size, num_groups, wide, symmetric) = shape;
            let bits = if wide && scheme != Scheme::Awq { 8 } else { 4 };
            // Not only whole words of outputs, where the format allows it; more than the four of which shapes do not show the width.
            let outputs = 8 * eights
                - if scheme == Scheme::Awq {
                    0
                } else {
                    seed as usize % 4
                };
            let inputs = size * num_groups;
            let mut random = crate::pack::tests::Random(seed);
            let mut group_of: Vec<usize> = (0..inputs).map(|input| input / size).collect();
            let shuffled = matches!(order, Order::Shuffled) && scheme != Scheme::Awq;
            if shuffled {
                for at in (1..inputs).rev() {
                    group_of.swap(at, random.bits() as usize % (at + 1));
                }
            }
            let of_type = |x: f32| match scale_type {
                DType::F16 => f16::from_f32(x).to_f32(),
                DType::BF16 => bf16::from_f32(x).to_f32(),
                _ => x,
            };
            let numbers = outputs * num_groups;
            let written = Written {
                bits,
                outputs,
                inputs,
                num_groups,
                codes: (0..outputs * inputs)
                    .map(|_| (random.bits() % (1 << bits)) as u8)
                    .collect(),
                zeros: (0..numbers)
                    .map(|_| {
                        if symmetric {
                            1 << (bits - 1)
                        } else {
                            (random.bits() % (1 << bits)) as u8
                        }
                    })
                    .collect(),
                scales: (0..numbers)
                    .map(|_| of_type(0.01 + 0.01 * random.unit().abs()))
                    .collect(),
                scale_type,
                group_of,
                indexed: shuffled || !matches!(order, Order::Plain),
            };
            (scheme, written)
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn unpacked_weights_are_those_that_were_written((scheme, written) in written(), cut: u64) {
        let file = File::of(&written.parts(scheme));
        let source = file.open(scheme).unwrap();
        prop_assert_eq!(source.names(), ["m.weight"]);
        let tensor = source.tensor("m.weight").unwrap();
        prop_assert_eq!(tensor.shape, [written.outputs, written.inputs]);
        let mut buffer = RowBuffer::default();
        let cut = cut as usize % (written.outputs + 1);
        for rows in [0..cut, cut..written.outputs] {
            let view = source.rows(&tensor, rows.clone(), &mut buffer);
            prop_assert_eq!(view.shape, [rows.len(), written.inputs]);
            for (row, output) in rows.enumerate() {
                let mut weights = vec![0.0; written.inputs];
                dequantize_row(view.dtype, view.row(row), &mut weights);
                for (run, weights) in weights.chunks(32).enumerate() {
                    let expected: Vec<f32> =
                        (0..weights.len()).map(|at| written.weight(output, 32 * run + at)).collect();
                    let largest = expected.iter().fold(0f32, |most, x| most.max(x.abs()));
                    let tolerance = written.tolerance(view.dtype, largest);
                    for (weight, expected) in weights.iter().zip(expected) {
                        prop_assert!((weight - expected).abs() <= tolerance, "{weight} {expected}");
                    }
                }
            }
        }
    }

    /// Tensors of any shapes and types give a source whose rows can be unpacked, or one sentence.
    #[test]
    fn tensors_that_do_not_fit_are_refused(
        scheme in prop::sample::select(SCHEMES.to_vec()),
        shapes in prop::collection::vec(prop::collection::vec(0usize..18, 0..4), 5),
        fit in prop::collection::vec(any::<bool>(), 5),
        types in prop::collection::vec(0usize..8, 5),
        (_, whole) in written(),
        seed: u64,
    ) {
        let mut random = crate::pack::tests::Random(seed);
        let mut parts = Written { bits: 4, outputs: 16, inputs: 64, num_groups: 2, ..whole };
        parts.codes = vec![3; 16 * 64];
        parts.zeros = vec![5; 32];
        parts.scales = vec![0.5; 32];
        parts.group_of = (0..64).map(|input| input / 32).collect();
        let mut parts = parts.parts(scheme);
        for (at, (_, dtype, shape, bytes)) in parts.iter_mut().enumerate() {
            if fit[at] {
                continue;
            }
            let (name, size) = [
                ("I32", 4), ("I32", 4), ("I64", 8), ("F16", 2), ("BF16", 2), ("F32", 4), ("I8", 1), ("I32", 4),
            ][types[at]];
            shape.clone_from(&shapes[at]);
            let count = size * shape.iter().product::<usize>();
            *dtype = name;
            *bytes = (0..count).map(|_| random.bits() as u8 & [0xff, 1][seed as usize % 2]).collect();
        }
        let file = File::of(&parts);
        match file.open(scheme) {
            Err(problem) => prop_assert!(!problem.to_string().contains('\n')),
            Ok(source) => {
                let tensor = source.tensor("m.weight").unwrap();
                let view_rows = tensor.rows();
                let mut buffer = RowBuffer::default();
                let view = source.rows(&tensor, 0..view_rows, &mut buffer);
                prop_assert_eq!(view.bytes.len(), view.rows() * view.row_bytes());
            }
        }
    }
}

/// Sixteen outputs, 64 inputs in two groups, 4 bits.
fn small() -> Written {
    Written {
        bits: 4,
        outputs: 16,
        inputs: 64,
        num_groups: 2,
        codes: vec![3; 16 * 64],
        zeros: vec![8; 32],
        scales: vec![0.5; 32],
        scale_type: DType::F16,
        group_of: (0..64).map(|input| input / 32).collect(),
        indexed: true,
    }
}

/// The type that a matrix is presented in.
fn presented(written: &Written, scheme: Scheme) -> DType {
    let file = File::of(&written.parts(scheme));
    let source = file.open(scheme).unwrap();
    source.tensor("m.weight").unwrap().dtype
}

#[test]
fn the_type_follows_from_groups_and_zero_points() {
    for scheme in SCHEMES {
        let mut written = small();
        assert_eq!(presented(&written, scheme), DType::Q4_0);
        written.scale_type = DType::F32;
        assert_eq!(presented(&written, scheme), DType::Int4);
        written.scale_type = DType::BF16;
        written.zeros[31] = 7;
        assert_eq!(presented(&written, scheme), DType::Int4);
        if scheme == Scheme::Awq {
            continue;
        }
        written.bits = 8;
        assert_eq!(presented(&written, scheme), DType::F16);
        written.zeros.fill(128);
        assert_eq!(presented(&written, scheme), DType::Q8_0);
        written.group_of.swap(0, 63);
        assert_eq!(presented(&written, scheme), DType::F16);
        written.bits = 4;
        assert_eq!(presented(&written, scheme), DType::Q8_0);
    }
}

#[test]
fn a_zero_point_of_zero_borrows_in_the_first_version() {
    let mut written = small();
    written.zeros = (0..32).map(|at| (at % 3) as u8).collect();
    for scheme in [Scheme::Gptq, Scheme::GptqV2] {
        let file = File::of(&written.parts(scheme));
        let source = file.open(scheme).unwrap();
        let (tensor, mut buffer) = (source.tensor("m.weight").unwrap(), RowBuffer::default());
        let view = source.rows(&tensor, 0..16, &mut buffer);
        for output in 0..16 {
            let mut weights = [0.0; 64];
            dequantize_row(view.dtype, view.row(output), &mut weights);
            assert_eq!(weights[33], written.weight(output, 33));
        }
    }
}

#[test]
fn groups_that_are_none_are_refused() {
    let with_index = |index: i32| {
        let mut parts = small().parts(Scheme::GptqV2);
        parts[3].3[..4].copy_from_slice(&index.to_le_bytes());
        File::of(&parts).open(Scheme::GptqV2)
    };
    assert!(with_index(1).is_ok());
    for index in [2, -1, i32::MIN, i32::MAX] {
        let problem = with_index(index).err().unwrap().to_string();
        assert!(problem.contains("\"m\" with a group index"), "{problem}");
    }
}

#[test]
fn a_module_without_group_indices_yet_has_its_groups_in_order() {
    let mut parts = small().parts(Scheme::PackQuantized);
    let indices = parts
        .iter_mut()
        .find(|part| part.0 == ".weight_g_idx")
        .unwrap();
    indices.3.fill(0xff);
    let source = File::of(&parts).open(Scheme::PackQuantized).unwrap();
    assert_eq!(source.tensor("m.weight").unwrap().dtype, DType::Q4_0);
}

#[test]
fn missing_or_doubled_tensors_are_refused() {
    let parts = small().parts(Scheme::Gptq);
    for missing in 0..3 {
        let mut parts = parts.clone();
        parts.remove(missing);
        assert!(matches!(
            File::of(&parts).open(Scheme::Gptq),
            Err(Problem::NoTensor(_) | Problem::BadGroups { .. })
        ));
    }
    let mut parts = parts;
    parts.push((".weight", "F16", vec![1], vec![0; 2]));
    assert!(matches!(
        File::of(&parts).open(Scheme::Gptq),
        Err(Problem::Duplicate { .. })
    ));
}

#[test]
fn other_tensors_are_those_of_the_files() {
    let mut parts = small().parts(Scheme::Awq);
    parts.push((".bias", "F16", vec![2], vec![0, 0x3c, 0, 0]));
    let source = File::of(&parts).open(Scheme::Awq).unwrap();
    assert_eq!(source.names(), ["m.weight", "m.bias"]);
    let bias = source.tensor("m.bias").unwrap();
    assert_eq!((bias.shape, bias.bytes.len()), (&[2][..], 4));
    assert!(source.contains("m.weight") && !source.contains("n.weight"));
}
