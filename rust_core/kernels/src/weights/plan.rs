//! Layout of the packed matrices in one arena, computed from headers, and their packing.

use std::ops::Range;

use super::layer::norm_after;
use super::stored::{StoredRows, stacked_inputs};
use super::{Linear, Norm, missing};
use crate::arena::{Arena, align_up};
use crate::dispatch::Level;
use crate::error::KernelError;
use crate::format::{TensorSource, TensorView};
use crate::pack::{
    PANEL_COLUMNS, PackScratch, PackedMatrix, PanelKind, outputs_of_panel, pack_panel, panels_of,
};
use crate::pool::Pool;
use crate::quant::{DType, dequantize_row};
use crate::quantize::{Quantizer, Role, WeightMode};
use crate::spec::{ExpertsSpec, FeedForwardSpec, ModelSpec, TensorRef, Tensors};

/// Bytes of the source after which a worker releases the pages that it has packed.
const RELEASED_BYTES: usize = 4 << 20;

/// A matrix to be packed.
pub(super) struct Entry {
    /// The weight's role in its layer, or outside the layers.
    pub role: &'static str,
    pub place: TensorRef,
    pub kind: PanelKind,
    /// The type that it is packed from: that of the file, or the one to which it is quantised.
    pub dtype: DType,
    pub outputs: usize,
    pub segment: usize,
    pub inputs: usize,
    pub offset: usize,
}

impl Entry {
    pub fn panels(&self) -> usize {
        panels_of(self.outputs, self.segment)
    }

    pub fn panel_bytes(&self) -> usize {
        self.kind.panel_bytes(self.inputs)
    }

    /// Whether it is a matrix of all experts, of which a step reads those that its rows choose.
    pub fn is_of_experts(&self) -> bool {
        self.role.starts_with("experts.")
    }
}

/// Consecutive panels of a matrix, and where in an arena they are packed.
pub(super) struct Piece {
    pub entry: usize,
    pub panels: Range<usize>,
    pub at: usize,
}

/// A matrix that the model needs.
pub(super) struct Needed {
    pub role: &'static str,
    pub sensitivity: Role,
    pub outputs: usize,
    pub segment: usize,
    pub inputs: usize,
}

impl Needed {
    /// A matrix of one segment.
    pub fn whole(role: &'static str, sensitivity: Role, outputs: usize, inputs: usize) -> Self {
        Self {
            role,
            sensitivity,
            outputs,
            segment: outputs,
            inputs,
        }
    }
}

/// Layout of the arena, computed before packing.
pub(super) struct Plan<'a> {
    pub(super) source: &'a dyn TensorSource,
    mode: WeightMode,
    pub(super) entries: Vec<Entry>,
    /// The entries of each part, in the order in which a step reads them: the embeddings, each layer, and what follows.
    parts: Vec<Range<usize>>,
    bytes: usize,
    /// Of the bytes, those of experts that a token does not use.
    unused_bytes: usize,
    parameters: usize,
}

impl<'a> Plan<'a> {
    /// Check the tensors of all matrices and lay them out.
    pub fn new(
        spec: &ModelSpec,
        source: &'a dyn TensorSource,
        mode: WeightMode,
    ) -> Result<Self, KernelError> {
        let mut plan = Self {
            source,
            mode,
            entries: Vec::new(),
            parts: Vec::new(),
            bytes: 0,
            unused_bytes: 0,
            parameters: 0,
        };
        let (vocab, hidden, tensors) = (spec.vocab_size, spec.hidden_size, &spec.tensors);
        let vocabulary = |role, inputs| Needed::whole(role, Role::Vocabulary, vocab, inputs);
        let embedded = spec.layers.len() * spec.per_layer_width;
        let mut before = vec![vocabulary("embedding", hidden)];
        if tensors.contains_key("position_embedding") {
            let positions = spec.context_length;
            let needed = Needed::whole("position_embedding", Role::Vocabulary, positions, hidden);
            before.push(needed);
        }
        if embedded > 0 {
            before.push(vocabulary("per_layer_embedding", embedded));
            let role = "per_layer_model_projection";
            before.push(Needed::whole(role, Role::Other, embedded, hidden));
        }
        if let Some(streams) = spec.streams {
            before.extend(super::streams::needed(spec, streams));
        }
        plan.part(tensors, &before)?;
        for layer in &spec.layers {
            plan.part(&layer.tensors, &super::layer::needed(spec, layer))?;
            if let Some(FeedForwardSpec::Experts(experts)) = &layer.ffn {
                plan.unused_bytes += plan.unused_bytes_of(experts);
            }
        }
        let after = (!spec.tied_embeddings()).then(|| vocabulary("lm_head", hidden));
        plan.part(tensors, after.as_slice())?;
        Ok(plan)
    }

    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Bytes of the matrices that a token uses: all but those of the experts that it does not choose.
    pub fn active_bytes(&self) -> usize {
        self.bytes - self.unused_bytes
    }

    /// Bytes of the experts that a token does not choose, of the layer that was planned last.
    fn unused_bytes_of(&self, experts: &ExpertsSpec) -> usize {
        let last = self.parts.last().cloned().unwrap_or_default();
        let of_experts = self.entries[last].iter().filter(|one| one.is_of_experts());
        let each = of_experts.map(|one| one.panels() / experts.count * one.panel_bytes());
        (experts.count - experts.used) * each.sum::<usize>()
    }

    pub fn parameters(&self) -> usize {
        self.parameters
    }

    /// The entries of each part: before the layers, each layer, after them.
    pub fn parts(&self) -> Vec<Range<usize>> {
        self.parts.clone()
    }

    /// The entry of a matrix outside the layers.
    pub fn outer(&self, role: &str) -> Option<usize> {
        let (first, last) = (self.parts.first()?, self.parts.last()?);
        let mut entries = first.clone().chain(last.clone());
        entries.find(|&entry| self.entries[entry].role == role)
    }

    /// The entry of a layer's matrix.
    pub fn of_layer(&self, layer: usize, role: &str) -> Option<usize> {
        let mut entries = self.parts[1 + layer].clone();
        entries.find(|&entry| self.entries[entry].role == role)
    }

    /// Reserve the matrices of a part.
    fn part(&mut self, tensors: &Tensors, needed: &[Needed]) -> Result<(), KernelError> {
        let first = self.entries.len();
        for one in needed {
            let place = tensors.get(one.role).ok_or_else(|| missing(one.role))?;
            self.matrix(place, one)?;
        }
        self.parts.push(first..self.entries.len());
        Ok(())
    }

    pub(super) fn tensor(&self, name: &str) -> Result<TensorView<'_>, KernelError> {
        self.source
            .tensor(name)
            .map_err(|error| KernelError::model(error.to_string()))
    }

    /// The tensors that a weight is stored in.
    fn parts_of(&self, place: &TensorRef) -> Result<Vec<TensorView<'_>>, KernelError> {
        place.names().map(|name| self.tensor(&name)).collect()
    }

    /// Check a matrix's shape and reserve arena space for it.
    fn matrix(&mut self, place: &TensorRef, needed: &Needed) -> Result<(), KernelError> {
        let &Needed {
            role,
            sensitivity,
            outputs,
            segment,
            inputs,
        } = needed;
        let tensors = self.parts_of(place)?;
        let tensor = &tensors[0];
        check_place(tensor, place, outputs / tensors.len(), inputs)?;
        for part in &tensors[1..] {
            if part.dtype != tensor.dtype || part.shape != tensor.shape {
                return Err(KernelError::model(format!(
                    "Tensors {} and {} must have the same shape and type.",
                    tensor.name, part.name
                )));
            }
        }
        let dtype = self.mode.target(tensor.dtype, sensitivity, inputs);
        let kind = PanelKind::of(dtype);
        let offset = self.bytes;
        let size = panels_of(outputs, segment).checked_mul(kind.panel_bytes(inputs));
        let end = size.and_then(|size| offset.checked_add(size));
        let end = end.ok_or_else(|| {
            KernelError::Memory("The model's weights would not fit in memory.".into())
        })?;
        self.bytes = align_up(end);
        self.parameters += outputs * inputs;
        self.entries.push(Entry {
            role,
            place: place.clone(),
            kind,
            dtype,
            outputs,
            segment,
            inputs,
            offset,
        });
        Ok(())
    }

    /// The matrices, by entry, in `arena`.
    pub fn matrices(&self, arena: &Arena) -> Vec<PackedMatrix> {
        let at = |e: &Entry| {
            // SAFETY: offsets are aligned and inside the arena, which the weights own; it is only written by `pack`,
            // before any kernel runs.
            unsafe {
                let data = arena.as_ptr().add(e.offset);
                PackedMatrix::at(data, e.kind, e.outputs, e.segment, e.inputs)
            }
        };
        self.entries.iter().map(at).collect()
    }

    /// The part of the arena that consecutive entries take; empty if there are none.
    pub fn range_of(&self, entries: &Range<usize>) -> Range<usize> {
        if entries.is_empty() {
            return 0..0;
        }
        let after = self.entries.get(entries.end);
        self.entries[entries.start].offset..after.map_or(self.bytes, |entry| entry.offset)
    }

    /// The entries of a part, without the experts': a step reads few of those, and a model may be larger than memory.
    pub fn read_by_every_step(&self, part: &Range<usize>) -> Vec<Range<usize>> {
        let is_read = |entry: &usize| !self.entries[*entry].is_of_experts();
        let read: Vec<usize> = part.clone().filter(is_read).collect();
        let runs = read.chunk_by(|one, next| one + 1 == *next);
        runs.map(|run| run[0]..run[run.len() - 1] + 1).collect()
    }

    /// The whole matrices of some entries, at their places in the arena of all.
    pub fn whole(&self, entries: Range<usize>) -> Vec<Piece> {
        let piece = |entry: usize| Piece {
            entry,
            panels: 0..self.entries[entry].panels(),
            at: self.entries[entry].offset,
        };
        entries.map(piece).collect()
    }

    /// Pack some panels in parallel into zeroed memory, each worker its share of each piece, and release the source's pages.
    pub fn pack(
        &self,
        pieces: &[Piece],
        arena: &Arena,
        level: Level,
        pool: &mut Pool,
    ) -> Result<(), KernelError> {
        let tensors: Vec<Vec<TensorView<'_>>> = pieces
            .iter()
            .map(|piece| self.parts_of(&self.entries[piece.entry].place))
            .collect::<Result<_, _>>()?;
        pool.run(&|worker| {
            let (mut scratch, mut quantizer) = (PackScratch::default(), Quantizer::default());
            let mut stored = StoredRows::default();
            for (piece, parts) in pieces.iter().zip(&tensors) {
                let entry = &self.entries[piece.entry];
                let part_rows = entry.outputs / parts.len();
                let size = entry.panel_bytes();
                let mut unreleased = 0..0; // rows of the tensor
                for nth in worker.share(piece.panels.len()) {
                    let at = piece.at + nth * size;
                    assert!(at + size <= arena.len());
                    // SAFETY: the panel is inside the arena (checked) and packed by this worker only.
                    let out =
                        unsafe { std::slice::from_raw_parts_mut(arena.as_ptr().add(at), size) };
                    let outputs = outputs_of_panel(piece.panels.start + nth, entry.segment);
                    // A panel has rows of one part: a part is as long as a segment, or there is one.
                    let (part, first) = (outputs.start / part_rows, outputs.start % part_rows);
                    let tensor = &parts[part];
                    let outputs = first..first + outputs.len();
                    let (rows_of, rows) = stored.of(self.source, tensor, &entry.place, outputs);
                    if tensor.dtype == entry.dtype {
                        pack_panel(&rows_of, entry.kind, rows.clone(), &mut scratch, out);
                    } else {
                        let quantized =
                            quantizer.quantize(level, &rows_of, entry.dtype, rows.clone());
                        pack_panel(&quantized, entry.kind, 0..rows.len(), &mut scratch, out);
                    }
                    if !entry.place.is_contiguous() || parts.len() > 1 {
                        continue; // released as a whole
                    }
                    if unreleased.is_empty() {
                        unreleased.start = rows.start;
                    }
                    unreleased.end = rows.end;
                    if unreleased.len() * tensor.row_bytes() >= RELEASED_BYTES {
                        let name = &entry.place.name;
                        self.source.release_rows(name, unreleased.clone());
                        unreleased = 0..0;
                    }
                }
            }
        })?;
        for piece in pieces {
            let entry = &self.entries[piece.entry];
            let outputs = |panel| outputs_of_panel(panel, entry.segment);
            let part_rows = entry.outputs / entry.place.parts.max(1);
            let first = outputs(piece.panels.start).start / part_rows;
            let after = outputs(piece.panels.end - 1).end.div_ceil(part_rows);
            for name in entry.place.names().take(after).skip(first) {
                self.source.release(&name);
            }
        }
        Ok(())
    }

    /// Load the vector of a role; None if there is none.
    pub fn vector(
        &mut self,
        tensors: &Tensors,
        role: &str,
        len: usize,
    ) -> Result<Option<Vec<f32>>, KernelError> {
        let Some(place) = tensors.get(role) else {
            return Ok(None);
        };
        let name = &place.name;
        let tensor = self.tensor(name)?;
        let elements: usize = tensor.shape.iter().product();
        let fits = place.stored_rows(len) <= elements && (!place.is_whole() || elements == len);
        if !fits || tensor.dtype.is_quantized() || !tensor.is_stored() || place.transposed {
            return Err(KernelError::model(format!(
                "Tensor {name} has shape {:?} and type {}, but this model needs {len} floats.",
                tensor.shape,
                tensor.dtype.name()
            )));
        }
        let size = tensor.dtype.block_bytes();
        let mut values = vec![0.0; len];
        for (at, value) in values.iter_mut().enumerate() {
            let bytes = &tensor.bytes[place.row(at) * size..][..size];
            dequantize_row(tensor.dtype, bytes, std::slice::from_mut(value));
            *value += place.add;
        }
        self.source.release(name);
        self.parameters += len;
        Ok(Some(values))
    }

    /// A norm; None if there is none.
    pub fn norm(
        &mut self,
        tensors: &Tensors,
        role: &str,
        len: usize,
    ) -> Result<Option<Norm>, KernelError> {
        let Some(weight) = self.vector(tensors, role, len)? else {
            return Ok(None);
        };
        let bias = self.vector(tensors, &format!("{role}.bias"), len)?;
        Ok(Some(Norm {
            weight,
            bias: bias.unwrap_or_default(),
        }))
    }

    /// A packed matrix with the bias of its role, if it has one.
    pub fn linear(
        &mut self,
        tensors: &Tensors,
        role: &str,
        matrix: PackedMatrix,
    ) -> Result<Linear, KernelError> {
        let mut linear = Linear::without_bias(matrix);
        linear.normalized_outputs = norm_after(role).is_some_and(|norm| tensors.contains_key(norm));
        let Some(values) = self.vector(tensors, &format!("{role}.bias"), matrix.outputs)? else {
            return Ok(linear);
        };
        let mut bias = vec![0.0; matrix.panels() * PANEL_COLUMNS];
        for (panel, bias) in bias.chunks_exact_mut(PANEL_COLUMNS).enumerate() {
            let outputs = matrix.panel_outputs(panel);
            bias[..outputs.len()].copy_from_slice(&values[outputs]);
        }
        Ok(Linear { bias, ..linear })
    }

    /// The most common type of the layers' matrices.
    pub fn commonest_format(&self) -> &'static str {
        let layers = &self.parts[1..self.parts.len() - 1];
        let weights_of = |dtype: DType| -> usize {
            let entries = layers.iter().cloned().flatten();
            let entries = entries.map(|entry| &self.entries[entry]);
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

/// Check that a weight of this shape is in `tensor`.
fn check_place(
    tensor: &TensorView<'_>,
    place: &TensorRef,
    outputs: usize,
    inputs: usize,
) -> Result<(), KernelError> {
    // Of a stack of matrices, the rows of each follow those of the one before.
    let [rows, cols] = if place.transposed {
        let inputs = stacked_inputs(tensor);
        [tensor.rows() / inputs.max(1) * tensor.cols(), inputs]
    } else {
        [tensor.rows(), tensor.cols()]
    };
    let inside = place.stored_rows(outputs) <= rows && (!place.is_whole() || rows == outputs);
    let fits = inside && cols == inputs;
    let floats = !tensor.dtype.is_quantized() && tensor.is_stored();
    if fits && (floats || !place.transposed) {
        return Ok(());
    }
    let (needed, kind) = if place.transposed {
        ([inputs, outputs], " floats")
    } else {
        ([outputs, inputs], "")
    };
    Err(KernelError::model(format!(
        "Tensor {} has shape {:?} and type {}, but this model needs {needed:?}{kind}.",
        tensor.name,
        tensor.shape,
        tensor.dtype.name()
    )))
}
