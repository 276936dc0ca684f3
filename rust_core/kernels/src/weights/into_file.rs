//! Packing into the file of the packed weights, for models that may be larger than memory.
//!
//! The weights are packed in the order of the file, [`BATCH_BYTES`] at a time, into memory that is written and used again. So
//! packing holds one batch, the pages of the source that it is read from, and what the system has not written to the disk yet,
//! however large the model is. The finished file is mapped.

use std::io;
use std::ops::Range;

use super::plan::{Entry, Piece, Plan};
use crate::arena::{Arena, align_up};
use crate::dispatch::Level;
use crate::error::KernelError;
use crate::packed_file::{self, Saving, UnfinishedFile};
use crate::pool::Pool;

/// Bytes that are packed and written at a time: enough for all workers, and little beside any model.
const BATCH_BYTES: usize = 16 << 20;

/// A part of the file, and the panels in it.
struct Batch {
    bytes: Range<usize>,
    /// Places are relative to the batch.
    pieces: Vec<Piece>,
}

impl Plan<'_> {
    /// Pack all weights into their file and map it. `progress` is called with the fraction done; if it returns false, nothing
    /// is left behind.
    pub(super) fn pack_into_file(
        &self,
        saving: &Saving,
        level: Level,
        pool: &mut Pool,
        progress: &mut dyn FnMut(f32) -> bool,
    ) -> Result<Arena, KernelError> {
        let failed = |error: io::Error| {
            KernelError::File(format!(
                "The packed weights cannot be written to {}: {error}.",
                saving.path.display()
            ))
        };
        let map = || packed_file::open(&saving.path, &saving.header);
        loop {
            let file = UnfinishedFile::wait_to_create(&saving.path).map_err(failed)?;
            // Another process may have completed it meanwhile.
            if let Ok(Some(arena)) = map() {
                return Ok(arena);
            }
            let Some(mut file) = file else {
                continue; // it was completed and removed, or given up
            };
            self.write(&mut file, level, pool, progress, failed)?;
            file.finish(&saving.header).map_err(failed)?;
            let mapped = map().and_then(|found| found.ok_or("it was removed".to_owned()));
            return mapped.map_err(|reason| {
                let path = saving.path.display();
                KernelError::File(format!(
                    "The packed weights at {path} cannot be used: {reason}."
                ))
            });
        }
    }

    fn write(
        &self,
        file: &mut UnfinishedFile,
        level: Level,
        pool: &mut Pool,
        progress: &mut dyn FnMut(f32) -> bool,
        failed: impl Fn(io::Error) -> KernelError,
    ) -> Result<(), KernelError> {
        let batches = batches(&self.entries, BATCH_BYTES);
        let largest = batches.iter().map(|batch| batch.bytes.len()).max();
        let arena = Arena::new(largest.unwrap_or(0))?;
        for batch in &batches {
            let len = batch.bytes.len();
            // SAFETY: inside the arena, which nothing else uses now.
            unsafe { arena.as_ptr().write_bytes(0, len) };
            self.pack(&batch.pieces, &arena, level, pool)?;
            // SAFETY: as above; initialized.
            file.append(unsafe { std::slice::from_raw_parts(arena.as_ptr(), len) })
                .map_err(&failed)?;
            if !progress(batch.bytes.end as f32 / self.bytes() as f32) {
                return Err(super::stopped());
            }
        }
        Ok(())
    }
}

/// All matrices in batches of at most about `most` bytes, if a panel is not larger.
fn batches(entries: &[Entry], most: usize) -> Vec<Batch> {
    let mut batches: Vec<Batch> = Vec::new();
    for (index, entry) in entries.iter().enumerate() {
        let (size, count) = (entry.panel_bytes(), entry.panels());
        let mut first = 0;
        while first < count {
            let start = entry.offset + first * size;
            let room = |begin: usize| (begin + most).saturating_sub(start) / size;
            if batches
                .last()
                .is_none_or(|last| room(last.bytes.start) == 0)
            {
                batches.push(Batch {
                    bytes: start..start,
                    pieces: Vec::new(),
                });
            }
            let batch = batches.last_mut().expect("just made");
            let panels = first..count.min(first + room(batch.bytes.start).max(1));
            first = panels.end;
            batch.bytes.end = entry.offset + first * size;
            batch.pieces.push(Piece {
                entry: index,
                panels,
                at: start - batch.bytes.start,
            });
        }
        // Zeros up to the next matrix.
        if let Some(last) = batches.last_mut() {
            last.bytes.end = align_up(last.bytes.end);
        }
    }
    batches
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arena::ALIGN;
    use crate::pack::PanelKind;
    use crate::quant::DType;
    use crate::spec::TensorRef;
    use crate::spec::tests::whole;
    use proptest::prelude::*;

    /// Matrices of these types and sizes, laid out one after another, and their length.
    fn entries(shapes: &[(usize, usize, usize)]) -> (Vec<Entry>, usize) {
        let (mut entries, mut bytes) = (Vec::new(), 0);
        for &(dtype, outputs, blocks) in shapes {
            let dtype = DType::ALL[dtype % DType::ALL.len()];
            let place: TensorRef = serde_json::from_value(whole("test")).unwrap();
            let entry = Entry {
                role: "up",
                place,
                kind: PanelKind::of(dtype),
                dtype,
                outputs,
                segment: outputs,
                inputs: blocks * dtype.block_len(),
                offset: bytes,
            };
            bytes = align_up(bytes + entry.panels() * entry.panel_bytes());
            entries.push(entry);
        }
        (entries, bytes)
    }

    proptest! {
        #[test]
        fn batches_are_the_file_from_its_beginning_to_its_end(
            shapes in prop::collection::vec((0usize..40, 1usize..200, 1usize..4), 1..8),
            most in 1usize..40_000,
        ) {
            let (entries, bytes) = entries(&shapes);
            let (mut end, mut next) = (0, (0, 0));
            for batch in batches(&entries, most) {
                prop_assert_eq!(batch.bytes.start, end);
                end = batch.bytes.end;
                for piece in &batch.pieces {
                    let entry = &entries[piece.entry];
                    prop_assert_eq!((piece.entry, piece.panels.start), next);
                    let first = entry.offset + piece.panels.start * entry.panel_bytes();
                    prop_assert_eq!(batch.bytes.start + piece.at, first);
                    prop_assert!(first + piece.panels.len() * entry.panel_bytes() <= end);
                    next = match piece.panels.end == entry.panels() {
                        true => (piece.entry + 1, 0),
                        false => (piece.entry, piece.panels.end),
                    };
                }
                let single = batch.pieces.len() == 1 && batch.pieces[0].panels.len() == 1;
                prop_assert!(single || batch.bytes.len() < most + ALIGN);
            }
            prop_assert_eq!((end, next), (bytes, (entries.len(), 0)));
        }
    }
}
