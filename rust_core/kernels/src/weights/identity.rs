//! Identifies what a model's matrices are packed to.

use xxhash_rust::xxh3::Xxh3;

use super::plan::{Entry, Plan};
use crate::arena::Arena;
use crate::dispatch::Level;
use crate::format::TensorView;
use crate::pack::{PANEL_COLUMNS, PackScratch, PanelKind, pack_panel};
use crate::packed_file::{self, Header, PackedFile, PackedLocation, PackedState, Saving};
use crate::quant::DType;
use crate::quantize::Quantizer;

/// Increment it if equal matrices would be packed to other bytes, and [`sample_panel`] does not show that.
const LAYOUT: u32 = 1;

/// Inputs of [`sample_panel`]: two of the largest blocks.
const SAMPLE_INPUTS: usize = 512;

impl Plan<'_> {
    /// A hash of everything but the source's contents that determines the arena's bytes.
    ///
    /// The layout of panels is hashed by packing a sample, quantised first if the matrix is, so that a build that packs or
    /// quantises differently does not use the files of another one.
    pub(super) fn identity(&self) -> [u8; 16] {
        let mut hash = Xxh3::new();
        let reading = self.source.reading();
        hash.update(format!("{LAYOUT} {} {reading}", self.bytes()).as_bytes());
        let mut sampled: Vec<(DType, DType, PanelKind)> = Vec::new();
        for entry in &self.entries {
            let Entry {
                role: _,
                place,
                kind,
                dtype,
                outputs,
                segment,
                inputs,
                offset,
            } = entry;
            let line =
                format!("\n{place:?} {kind:?} {dtype:?} {outputs} {segment} {inputs} {offset}");
            hash.update(line.as_bytes());
            let stored = self
                .tensor(&place.names().next().expect("a weight has a tensor"))
                .map_or(*dtype, |tensor| tensor.dtype);
            if !sampled.contains(&(stored, *dtype, *kind)) {
                sampled.push((stored, *dtype, *kind));
                hash.update(&sample_panel(stored, *dtype, *kind));
            }
        }
        hash.digest128().to_le_bytes()
    }

    /// The mapped file, if the weights are kept and there is a usable one; what was found; and what to save, if it is missing.
    pub(super) fn find_packed(
        &self,
        location: Option<&PackedLocation>,
    ) -> (Option<Arena>, PackedState, Option<Saving>) {
        let Some(location) = location else {
            return (None, PackedState::Off, None);
        };
        let header = self.header(location);
        let path = location.path(&header.plan);
        let state = match packed_file::open(&path, &header) {
            Ok(Some(arena)) => return (Some(arena), PackedState::Mapped(path), None),
            Ok(None) => PackedState::Missing(path.clone()),
            Err(reason) => PackedState::Unusable(path.clone(), reason),
        };
        (None, state, Some(Saving { path, header }))
    }

    /// The file of the weights, which is not mapped.
    pub(super) fn packed_file(&self, location: &PackedLocation) -> PackedFile {
        let header = self.header(location);
        packed_file::find(location.path(&header.plan), &header)
    }

    /// The header of the file, without the digest.
    fn header(&self, location: &PackedLocation) -> Header {
        Header {
            bytes: self.bytes(),
            source_id: location.source_id,
            plan: self.identity(),
            digest: [0; 16],
            source: location.source.clone(),
        }
    }
}

/// A panel of a fixed pattern of type `stored`, packed as `dtype`.
fn sample_panel(stored: DType, dtype: DType, kind: PanelKind) -> Vec<u8> {
    let row_bytes = SAMPLE_INPUTS / stored.block_len() * stored.block_bytes();
    // Bytes below 64: as parts of floating-point numbers they are positive and finite.
    let bytes: Vec<u8> = (0..PANEL_COLUMNS * row_bytes)
        .map(|at| (at * 29 % 61) as u8)
        .collect();
    let tensor = TensorView {
        name: "sample",
        shape: &[PANEL_COLUMNS, SAMPLE_INPUTS],
        dtype: stored,
        bytes: &bytes,
    };
    let mut quantizer = Quantizer::default();
    let tensor = if stored == dtype {
        tensor
    } else {
        quantizer.quantize(Level::Portable, &tensor, dtype, 0..PANEL_COLUMNS)
    };
    let mut panel = vec![0; kind.panel_bytes(SAMPLE_INPUTS)];
    let mut scratch = PackScratch::default();
    pack_panel(&tensor, kind, 0..PANEL_COLUMNS, &mut scratch, &mut panel);
    panel
}
