//! Loading of a model's weights: look-up by name, shape check, and parallel packing by all workers.
//!
//! All packed matrices are in one arena, in the order in which a step reads them. Each worker packs the panels
//! that it will multiply with, so that on NUMA machines first touch places them on its node. Float weights are quantised
//! meanwhile if a [`WeightMode`] says so, a panel at a time. The source file's pages are released every [`RELEASED_BYTES`], so
//! a model is in memory only once. If the packed weights are kept on disk ([`crate::packed_file`]), they are mapped instead,
//! and of the source only headers and vectors are read.

use std::ops::Range;
use std::sync::Arc;

use crate::arena::{Arena, align_up};
use crate::dispatch::Level;
use crate::error::KernelError;
use crate::format::{RowBuffer, TensorSource, TensorView};
use crate::pack::{
    PANEL_COLUMNS, PackScratch, PackedMatrix, PanelKind, check_shape, pack_panel, panels_of,
};
use crate::packed_file::{PackedLocation, PackedSaving, PackedState};
use crate::pool::Pool;
use crate::quant::{DType, dequantize_row};
use crate::quantize::{Quantizer, Role, WeightMode};
use crate::spec::ModelSpec;
use crate::tensor_names::NamingScheme;

mod identity;

/// Bytes of the source after which a worker releases the pages that it has packed.
const RELEASED_BYTES: usize = 4 << 20;

/// A matrix and its bias.
#[derive(Debug)]
pub struct Linear {
    pub matrix: PackedMatrix,
    /// 16 values per panel; empty if there is no bias.
    bias: Vec<f32>,
}

impl Linear {
    /// The bias of a panel; null if there is none.
    pub fn panel_bias(&self, panel: usize) -> *const f32 {
        self.bias
            .get(panel * PANEL_COLUMNS..)
            .map_or(std::ptr::null(), |bias| {
                if bias.is_empty() {
                    std::ptr::null()
                } else {
                    bias.as_ptr()
                }
            })
    }
}

/// Weights of one transformer layer.
#[derive(Debug)]
pub struct LayerWeights {
    pub attention_norm: Vec<f32>,
    /// Packed with one segment per head.
    pub q: Linear,
    pub k: Linear,
    pub v: Linear,
    /// Per-head norms of q and k, where the model has them.
    pub q_norm: Option<Vec<f32>>,
    pub k_norm: Option<Vec<f32>>,
    pub o: Linear,
    pub mlp_norm: Vec<f32>,
    pub gate: Linear,
    pub up: Linear,
    pub down: Linear,
}

/// Weights that have not been read yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PlannedWeights {
    /// Bytes of all packed matrices.
    pub bytes: usize,
    /// The most common type that the layers' weights will be packed as.
    pub format: &'static str,
}

/// All weights of a model.
#[derive(Debug)]
pub struct Weights {
    pub embedding: PackedMatrix,
    pub layers: Vec<LayerWeights>,
    pub final_norm: Vec<f32>,
    /// The embedding matrix if the model ties them.
    pub lm_head: Linear,
    /// Divisors of the rotary frequencies, if the file has them.
    pub rope_factors: Option<Vec<f32>>,
    /// Number of parameters in the tensors that the model uses.
    pub parameters: usize,
    /// The most common type that the layers' weights were packed as.
    pub format: &'static str,
    /// Whether the packed weights come from a file.
    pub packed: PackedState,
    /// Saves them where they belong, if they are not there yet.
    pub saving: Option<Arc<PackedSaving>>,
    arena: Arc<Arena>,
}

impl Weights {
    /// Bytes of all packed matrices.
    pub fn packed_bytes(&self) -> usize {
        self.arena.len()
    }

    /// What the packed matrices of a model will be, from the shapes and types of its tensors. Reads no weights.
    pub fn planned(
        spec: &ModelSpec,
        source: &dyn TensorSource,
        mode: WeightMode,
    ) -> Result<PlannedWeights, KernelError> {
        let plan = Plan::new(spec, source, mode)?;
        Ok(PlannedWeights {
            bytes: plan.bytes,
            format: plan.commonest_format(&plan.layers),
        })
    }

    /// Check every tensor, then map the packed weights at `location`, or pack them. `progress` is called on the calling thread
    /// with the completed fraction after each layer. `level` is one that this machine has; the weights do not depend on it.
    pub fn load(
        spec: &ModelSpec,
        source: &dyn TensorSource,
        mode: WeightMode,
        level: Level,
        location: Option<&PackedLocation>,
        pool: &mut Pool,
        progress: &mut dyn FnMut(f32),
    ) -> Result<Self, KernelError> {
        let mut plan = Plan::new(spec, source, mode)?;
        let (names, embedding, lm_head) = (plan.names, plan.embedding, plan.lm_head);
        let layers = std::mem::take(&mut plan.layers);
        let (mapped, packed, saving) = plan.find_packed(location);
        let arena = Arc::new(match mapped {
            Some(arena) => arena,
            None => Arena::new(plan.bytes)?,
        });
        let matrices: Vec<PackedMatrix> = plan
            .entries
            .iter()
            // SAFETY: offsets are aligned and inside the arena, which the weights own; it is
            // only written below, before any kernel runs.
            .map(|e| unsafe {
                let data = arena.as_ptr().add(e.offset);
                PackedMatrix::at(data, e.kind, e.outputs, e.segment, e.inputs)
            })
            .collect();
        let steps = 2 + layers.len();
        let mut pack = |entries: &[usize], done: usize| -> Result<(), KernelError> {
            if arena.is_file() {
                arena.populate(plan.range_of(entries));
            } else {
                plan.pack(entries, &matrices, &arena, level, pool)?;
            }
            progress(done as f32 / steps as f32);
            Ok(())
        };
        pack(&[embedding], 1)?;
        for (layer, entries) in layers.iter().enumerate() {
            pack(entries, 2 + layer)?;
        }
        pack(
            if spec.tied_embeddings {
                &[]
            } else {
                std::slice::from_ref(&lm_head)
            },
            steps,
        )?;

        let saving = saving.map(|saving| Arc::new(saving.of(Arc::clone(&arena))));
        let format = plan.commonest_format(&layers);
        let final_norm = plan.vector(names.final_norm(), spec.hidden_size)?;
        let layers = layers
            .iter()
            .enumerate()
            .map(|(layer, entries)| plan.finish_layer(spec, &names, layer, entries, &matrices))
            .collect::<Result<_, _>>()?;
        let rope_factors = match names.rope_factors() {
            Some(name) if source.contains(name) => Some(plan.rope_factors(name, spec)?),
            _ => None,
        };
        Ok(Self {
            embedding: matrices[embedding],
            layers,
            final_norm,
            lm_head: Linear {
                matrix: matrices[lm_head],
                bias: Vec::new(),
            },
            rope_factors,
            parameters: plan.parameters,
            format,
            packed,
            saving,
            arena,
        })
    }
}

/// A matrix to be packed, referred to by its index in [`Plan::entries`].
struct Entry {
    name: String,
    kind: PanelKind,
    /// The type that it is packed from: that of the file, or the one to which it is quantised.
    dtype: DType,
    outputs: usize,
    segment: usize,
    inputs: usize,
    offset: usize,
}

/// Layout of the arena, computed before packing.
struct Plan<'a> {
    source: &'a dyn TensorSource,
    mode: WeightMode,
    names: NamingScheme,
    entries: Vec<Entry>,
    /// Entry of the embedding matrix.
    embedding: usize,
    /// Entries of each layer: q, k, v, o, gate, up, down.
    layers: Vec<[usize; 7]>,
    /// Entry of the LM head: that of the embedding matrix if the model ties them.
    lm_head: usize,
    bytes: usize,
    parameters: usize,
}

impl<'a> Plan<'a> {
    /// Check the tensors of all matrices and lay them out.
    fn new(
        spec: &ModelSpec,
        source: &'a dyn TensorSource,
        mode: WeightMode,
    ) -> Result<Self, KernelError> {
        let mut plan = Self {
            source,
            mode,
            names: NamingScheme::detect(source),
            entries: Vec::new(),
            embedding: 0,
            layers: Vec::new(),
            lm_head: 0,
            bytes: 0,
            parameters: 0,
        };
        let (names, vocab) = (plan.names, spec.vocab_size);
        let hidden = spec.hidden_size;
        plan.embedding = plan.matrix(names.embedding(), Role::Vocabulary, vocab, vocab, hidden)?;
        plan.layers = (0..spec.num_layers)
            .map(|layer| plan.layer(spec, &names, layer))
            .collect::<Result<_, _>>()?;
        plan.lm_head = if spec.tied_embeddings {
            plan.embedding
        } else {
            plan.matrix(names.lm_head(), Role::Vocabulary, vocab, vocab, hidden)?
        };
        Ok(plan)
    }

    fn tensor(&self, name: &str) -> Result<TensorView<'_>, KernelError> {
        self.source
            .tensor(name)
            .map_err(|error| KernelError::model(error.to_string()))
    }

    /// Check a matrix's shape and reserve arena space for it.
    fn matrix(
        &mut self,
        name: String,
        role: Role,
        outputs: usize,
        segment: usize,
        inputs: usize,
    ) -> Result<usize, KernelError> {
        let tensor = self.tensor(&name)?;
        check_shape(&tensor, outputs, inputs)?;
        let dtype = self.mode.target(tensor.dtype, role, inputs);
        let kind = PanelKind::of(dtype);
        let offset = self.bytes;
        // Cannot overflow: the file contains the tensor, and these products are close to its size.
        self.bytes = align_up(offset + panels_of(outputs, segment) * kind.panel_bytes(inputs));
        self.parameters += outputs * inputs;
        self.entries.push(Entry {
            name,
            kind,
            dtype,
            outputs,
            segment,
            inputs,
            offset,
        });
        Ok(self.entries.len() - 1)
    }

    /// Reserve a layer's matrices: q, k, v, o, gate, up, down.
    fn layer(
        &mut self,
        spec: &ModelSpec,
        names: &NamingScheme,
        layer: usize,
    ) -> Result<[usize; 7], KernelError> {
        let (hidden, inter, dim) = (spec.hidden_size, spec.intermediate_size, spec.head_dim);
        let (q, kv) = (spec.num_heads * dim, spec.num_kv_heads * dim);
        let mut matrix = |part, role, outputs, segment, inputs| {
            let name = names.layer(layer, part, "weight");
            self.matrix(name, role, outputs, segment, inputs)
        };
        Ok([
            matrix("q", Role::Other, q, dim, hidden)?,
            matrix("k", Role::Other, kv, dim, hidden)?,
            matrix("v", Role::Sensitive, kv, dim, hidden)?,
            matrix("o", Role::Other, hidden, hidden, q)?,
            matrix("gate", Role::Other, inter, inter, hidden)?,
            matrix("up", Role::Other, inter, inter, hidden)?,
            matrix("down", Role::Sensitive, hidden, hidden, inter)?,
        ])
    }

    /// The part of the arena that consecutive entries take; empty if there are none.
    fn range_of(&self, entries: &[usize]) -> Range<usize> {
        let (Some(&first), Some(&last)) = (entries.first(), entries.last()) else {
            return 0..0;
        };
        let after = self.entries.get(last + 1);
        self.entries[first].offset..after.map_or(self.bytes, |entry| entry.offset)
    }

    /// Pack some matrices in parallel, each worker its own panels, and release the source's pages.
    fn pack(
        &self,
        entries: &[usize],
        matrices: &[PackedMatrix],
        arena: &Arena,
        level: Level,
        pool: &mut Pool,
    ) -> Result<(), KernelError> {
        let tensors: Vec<TensorView<'_>> = entries
            .iter()
            .map(|&entry| self.tensor(&self.entries[entry].name))
            .collect::<Result<_, _>>()?;
        pool.run(&|worker| {
            let (mut scratch, mut quantizer) = (PackScratch::default(), Quantizer::default());
            let mut buffer = RowBuffer::default();
            for (&entry, tensor) in entries.iter().zip(&tensors) {
                let (matrix, entry) = (&matrices[entry], &self.entries[entry]);
                let size = matrix.panel_bytes();
                let mut unreleased = 0..0; // rows
                for panel in worker.share(matrix.panels()) {
                    // SAFETY: the panel is inside the arena and packed by this worker only.
                    let out = unsafe {
                        let start = arena.as_ptr().add(entry.offset + panel * size);
                        std::slice::from_raw_parts_mut(start, size)
                    };
                    let rows = matrix.panel_outputs(panel);
                    let (own, all) = (
                        self.source.rows(tensor, rows.clone(), &mut buffer),
                        0..rows.len(),
                    );
                    if tensor.dtype == entry.dtype {
                        pack_panel(&own, entry.kind, all, &mut scratch, out);
                    } else {
                        let quantized = quantizer.quantize(level, &own, entry.dtype, all.clone());
                        pack_panel(&quantized, entry.kind, all, &mut scratch, out);
                    }
                    if unreleased.is_empty() {
                        unreleased.start = rows.start;
                    }
                    unreleased.end = rows.end;
                    if unreleased.len() * tensor.row_bytes() >= RELEASED_BYTES {
                        self.source.release_rows(&entry.name, unreleased.clone());
                        unreleased = 0..0;
                    }
                }
            }
        })?;
        entries
            .iter()
            .for_each(|&entry| self.source.release(&self.entries[entry].name));
        Ok(())
    }

    /// Load a vector of floats.
    fn vector(&mut self, name: String, len: usize) -> Result<Vec<f32>, KernelError> {
        let tensor = self.tensor(&name)?;
        if tensor.shape != [len] || tensor.dtype.is_quantized() {
            return Err(KernelError::model(format!(
                "Tensor {name} has shape {:?} and type {}, but this model needs {len} floats.",
                tensor.shape,
                tensor.dtype.name()
            )));
        }
        let mut values = vec![0.0; len];
        dequantize_row(tensor.dtype, tensor.bytes, &mut values);
        self.source.release(&name);
        self.parameters += len;
        Ok(values)
    }

    fn rope_factors(&mut self, name: &str, spec: &ModelSpec) -> Result<Vec<f32>, KernelError> {
        let factors = self.vector(name.to_owned(), spec.head_dim / 2)?;
        if factors
            .iter()
            .any(|factor| !(factor.is_finite() && *factor > 0.0))
        {
            return Err(KernelError::model(format!(
                "Tensor {name} must hold rotary factors above 0."
            )));
        }
        Ok(factors)
    }

    fn linear(
        &mut self,
        matrix: PackedMatrix,
        bias_name: Option<String>,
    ) -> Result<Linear, KernelError> {
        let Some(name) = bias_name else {
            return Ok(Linear {
                matrix,
                bias: Vec::new(),
            });
        };
        let values = self.vector(name, matrix.outputs)?;
        let mut bias = vec![0.0; matrix.panels() * PANEL_COLUMNS];
        for (panel, bias) in bias.chunks_exact_mut(PANEL_COLUMNS).enumerate() {
            let outputs = matrix.panel_outputs(panel);
            bias[..outputs.len()].copy_from_slice(&values[outputs]);
        }
        Ok(Linear { matrix, bias })
    }

    /// Assemble a layer from its packed matrices and its vectors.
    fn finish_layer(
        &mut self,
        spec: &ModelSpec,
        names: &NamingScheme,
        layer: usize,
        entries: &[usize; 7],
        matrices: &[PackedMatrix],
    ) -> Result<LayerWeights, KernelError> {
        let has_bias = [
            spec.qkv_bias,
            spec.qkv_bias,
            spec.qkv_bias,
            spec.output_bias,
            spec.mlp_bias,
            spec.mlp_bias,
            spec.mlp_bias,
        ];
        let parts = ["q", "k", "v", "o", "gate", "up", "down"];
        let mut linears = Vec::with_capacity(parts.len());
        for ((part, has_bias), &entry) in parts.into_iter().zip(has_bias).zip(entries) {
            let bias = has_bias.then(|| names.layer(layer, part, "bias"));
            linears.push(self.linear(matrices[entry], bias)?);
        }
        let [q, k, v, o, gate, up, down]: [Linear; 7] =
            linears.try_into().expect("seven matrices a layer");
        let mut head_norm = |part: &str| {
            let wanted = spec.qk_norm.then(|| names.layer(layer, part, "weight"));
            wanted
                .map(|name| self.vector(name, spec.head_dim))
                .transpose()
        };
        let (q_norm, k_norm) = (head_norm("q_norm")?, head_norm("k_norm")?);
        let attention_norm = self.vector(
            names.layer(layer, "attention_norm", "weight"),
            spec.hidden_size,
        )?;
        let mlp_norm = self.vector(names.layer(layer, "mlp_norm", "weight"), spec.hidden_size)?;
        Ok(LayerWeights {
            attention_norm,
            q,
            k,
            v,
            q_norm,
            k_norm,
            o,
            mlp_norm,
            gate,
            up,
            down,
        })
    }

    fn commonest_format(&self, layers: &[[usize; 7]]) -> &'static str {
        let weights_of = |dtype: DType| -> usize {
            let entries = layers.iter().flatten().map(|&entry| &self.entries[entry]);
            entries
                .filter(|e| e.dtype == dtype)
                .map(|e| e.outputs * e.inputs)
                .sum()
        };
        DType::ALL
            .into_iter()
            .max_by_key(|&dtype| weights_of(dtype))
            .expect("types")
            .name()
    }
}
