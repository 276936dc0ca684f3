//! A BERT encoder's weights: matrices packed in panels, everything else as floats.

use super::int8::ByteMatrix;
use super::{BertSpec, Precision};
use crate::arena::Buffer;
use crate::error::KernelError;
use crate::format::{TensorSource, TensorView};
use crate::pack::{PackScratch, PackedMatrix, PanelKind, check_shape, pack_panel, panels_of};
use crate::quant::dequantize_row;

/// A matrix and its bias in the encoder's precision.
#[derive(Debug)]
pub(super) enum Matrix {
    Float(FloatMatrix),
    Bytes(ByteMatrix),
}

/// A matrix of floats and its bias.
#[derive(Debug)]
pub(super) struct FloatMatrix {
    pub matrix: PackedMatrix,
    pub bias: Vec<f32>,
    /// Memory of the packed matrix.
    _memory: Buffer<u8>,
}

/// Scale and shift of a layer norm.
#[derive(Debug)]
pub(super) struct Norm {
    pub weight: Vec<f32>,
    pub bias: Vec<f32>,
}

#[derive(Debug)]
pub(super) struct Layer {
    pub query: Matrix,
    pub key: Matrix,
    pub value: Matrix,
    pub attention: Matrix,
    pub attention_norm: Norm,
    pub up: Matrix,
    pub down: Matrix,
    pub norm: Norm,
}

#[derive(Debug)]
pub(super) struct BertWeights {
    /// `[vocab, hidden]`
    pub words: Vec<f32>,
    /// `[positions, hidden]`, with the embedding of token type 0 added, which is the type of every token.
    pub positions: Vec<f32>,
    pub norm: Norm,
    pub layers: Vec<Layer>,
}

impl BertWeights {
    pub fn load(
        spec: &BertSpec,
        source: &dyn TensorSource,
        precision: Precision,
    ) -> Result<Self, KernelError> {
        precision.check(spec)?;
        let read = Reader {
            source,
            precision,
            prefix: if source.contains("bert.embeddings.word_embeddings.weight") {
                "bert."
            } else {
                ""
            },
            scratch: PackScratch::default(),
        };
        read.read_all(spec)
    }
}

struct Reader<'a> {
    source: &'a dyn TensorSource,
    precision: Precision,
    /// Name prefix of the encoder in checkpoints that have a task head.
    prefix: &'static str,
    scratch: PackScratch,
}

impl Reader<'_> {
    fn read_all(mut self, spec: &BertSpec) -> Result<BertWeights, KernelError> {
        let (hidden, inner) = (spec.hidden_size, spec.intermediate_size);
        let words = self.table("embeddings.word_embeddings", spec.vocab_size, hidden)?;
        let mut positions =
            self.table("embeddings.position_embeddings", spec.max_positions, hidden)?;
        let types = self.table("embeddings.token_type_embeddings", spec.token_types, hidden)?;
        for row in positions.chunks_mut(hidden) {
            for (value, first) in row.iter_mut().zip(&types) {
                *value += first;
            }
        }
        let norm = self.norm("embeddings.LayerNorm", hidden)?;
        let mut layers = Vec::with_capacity(spec.num_layers);
        for at in 0..spec.num_layers {
            let name = |part: &str| format!("encoder.layer.{at}.{part}");
            layers.push(Layer {
                query: self.dense(&name("attention.self.query"), hidden, hidden)?,
                key: self.dense(&name("attention.self.key"), hidden, hidden)?,
                value: self.dense(&name("attention.self.value"), hidden, hidden)?,
                attention: self.dense(&name("attention.output.dense"), hidden, hidden)?,
                attention_norm: self.norm(&name("attention.output.LayerNorm"), hidden)?,
                up: self.dense(&name("intermediate.dense"), inner, hidden)?,
                down: self.dense(&name("output.dense"), hidden, inner)?,
                norm: self.norm(&name("output.LayerNorm"), hidden)?,
            });
        }
        Ok(BertWeights {
            words,
            positions,
            norm,
            layers,
        })
    }

    fn tensor(&self, name: &str) -> Result<TensorView<'_>, KernelError> {
        let name = format!("{}{name}", self.prefix);
        self.source
            .tensor(&name)
            .map_err(|error| KernelError::model(error.to_string()))
    }

    /// A tensor as floats, if it has this shape.
    fn floats(&self, name: &str, shape: &[usize]) -> Result<Vec<f32>, KernelError> {
        let tensor = self.tensor(name)?;
        if tensor.shape != shape {
            return Err(KernelError::model(format!(
                "Tensor {name} has shape {:?}, but this encoder needs {shape:?}.",
                tensor.shape
            )));
        }
        let mut values = vec![0.0; shape.iter().product()];
        for (row, out) in values.chunks_mut(tensor.cols()).enumerate() {
            dequantize_row(tensor.dtype, tensor.row(row), out);
        }
        Ok(values)
    }

    fn table(&self, name: &str, rows: usize, columns: usize) -> Result<Vec<f32>, KernelError> {
        self.floats(&format!("{name}.weight"), &[rows, columns])
    }

    fn norm(&self, name: &str, width: usize) -> Result<Norm, KernelError> {
        Ok(Norm {
            weight: self.floats(&format!("{name}.weight"), &[width])?,
            bias: self.floats(&format!("{name}.bias"), &[width])?,
        })
    }

    fn dense(&mut self, name: &str, outputs: usize, inputs: usize) -> Result<Matrix, KernelError> {
        let bias = self.floats(&format!("{name}.bias"), &[outputs])?;
        let name = format!("{name}.weight");
        let tensor = self.tensor(&name)?;
        if tensor.dtype.is_quantized() {
            return Err(KernelError::model(format!(
                "Tensor {name} is quantised; encoders run from float weights."
            )));
        }
        if self.precision == Precision::Int8 {
            let weights = self.floats(&name, &[outputs, inputs])?;
            return Ok(Matrix::Bytes(ByteMatrix::new(&weights, bias, inputs)?));
        }
        let mut scratch = std::mem::take(&mut self.scratch);
        let tensor = self.tensor(&name)?;
        check_shape(&tensor, outputs, inputs)?;
        let kind = PanelKind::of(tensor.dtype);
        let size = kind.panel_bytes(inputs);
        let memory = Buffer::<u8>::new(panels_of(outputs, outputs) * size)?;
        // SAFETY: the buffer is aligned, has exactly the matrix's bytes, and is stored beside it.
        let matrix = unsafe { PackedMatrix::at(memory.ptr(), kind, outputs, outputs, inputs) };
        for panel in 0..matrix.panels() {
            // SAFETY: the buffer is not shared until the weights are returned.
            let out = unsafe { memory.slice_mut(panel * size, size) };
            pack_panel(
                &tensor,
                kind,
                matrix.panel_outputs(panel),
                &mut scratch,
                out,
            );
        }
        self.scratch = scratch;
        Ok(Matrix::Float(FloatMatrix {
            matrix,
            bias,
            _memory: memory,
        }))
    }
}
