//! What activations that stand apart add to a panel's results: `value * weight`, in float, after the groups
//! and before bias and residual.
//!
//! Outliers of different rows are mostly the same channels. Those of a phase are therefore listed once, row by
//! row in one flat list without branches between rows, and a panel decodes each channel's weights once for all
//! rows. They are added to a block's sums while these are in the nearest cache.

use super::{Output, Panel};
use crate::activation_quant::QuantRows;
use crate::arena::{Buffer, Plain};
use crate::error::KernelError;
use crate::pack::layout::{GROUP, Offset, PANEL_COLUMNS, QuantLayout};
use crate::simd::{Lanes, by_level};

/// An outlier as kernels take it.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
struct Entry {
    row: u32,
    /// Which of the phase's channels.
    channel: u32,
    value: f32,
}

// SAFETY: plain numbers.
unsafe impl Plain for Entry {}

/// The outliers of a phase's rows, and room for the weights of their channels; one a worker.
#[derive(Debug)]
pub(super) struct OutlierIndex {
    /// `[≤ rows * inputs / 32]`, in row order, and a row's in input order.
    entries: Buffer<Entry>,
    /// `[rows + 1]`: entries of row `r` are `starts[r]..starts[r + 1]`.
    starts: Buffer<u32>,
    /// `[≤ inputs]`: the input of each channel.
    channels: Buffer<u32>,
    /// `[inputs]`: the channel of an input, if `channels` has it there.
    channel_of: Buffer<u32>,
    /// `[≤ inputs, 16]`: the weights of each channel in the panel at hand.
    weights: Buffer<f32>,
    count: usize,
}

impl OutlierIndex {
    /// For at most `rows` rows of `inputs` inputs.
    pub fn new(rows: usize, inputs: usize) -> Result<Self, KernelError> {
        Ok(Self {
            entries: Buffer::new(rows * inputs.div_ceil(GROUP))?,
            starts: Buffer::new(rows + 1)?,
            channels: Buffer::new(inputs)?,
            channel_of: Buffer::new(inputs)?,
            weights: Buffer::new(inputs * PANEL_COLUMNS)?,
            count: 0,
        })
    }

    /// List the outliers of `rows` rows of `x`.
    ///
    /// # Safety
    /// `x` holds so many rows.
    pub unsafe fn list(&mut self, x: QuantRows, rows: usize) {
        // SAFETY: buffers of our own, and `&mut self`; checked to hold so many rows and inputs.
        let (entries, starts, channels, channel_of) = unsafe {
            (
                self.entries.slice_mut(0, rows * (x.inputs / GROUP)),
                self.starts.slice_mut(0, rows + 1),
                self.channels.slice_mut(0, x.inputs),
                self.channel_of.slice_mut(0, x.inputs),
            )
        };
        let (mut end, mut count) = (0, 0);
        starts[0] = 0;
        for row in 0..rows {
            // SAFETY: `rows` rows of activations by contract, a row's outliers at most one a group.
            let outliers = unsafe {
                let outliers = x.outliers.add(row * (x.inputs / GROUP));
                std::slice::from_raw_parts(outliers, *x.outlier_counts.add(row) as usize)
            };
            for outlier in outliers {
                let channel = &mut channel_of[outlier.input as usize];
                // What an earlier phase left there may name any channel.
                if *channel as usize >= count || channels[*channel as usize] != outlier.input {
                    *channel = count as u32;
                    channels[count] = outlier.input;
                    count += 1;
                }
                entries[end] = Entry {
                    row: row as u32,
                    channel: *channel,
                    value: outlier.value,
                };
                end += 1;
            }
            starts[row + 1] = end as u32;
        }
        self.count = count;
    }

    /// Decode the weights of `panel` that the listed outliers meet.
    ///
    /// # Safety
    /// The machine has the level; a whole panel of the inputs that were listed.
    pub unsafe fn meet(
        &mut self,
        level: crate::dispatch::Level,
        layout: QuantLayout,
        panel: Panel,
    ) -> Outliers {
        // SAFETY: ours, behind `&mut self`; channels are inputs of the panel by contract.
        unsafe {
            let channels = self.channels.slice(0, self.count);
            let weights = self.weights.slice_mut(0, self.count * PANEL_COLUMNS);
            if self.count > 0 {
                decode(level, layout, panel.data, channels, weights);
            }
        }
        Outliers {
            first: 0,
            entries: self.entries.ptr(),
            starts: self.starts.ptr(),
            weights: self.weights.ptr(),
        }
    }
}

/// The weights of all 16 columns for input `input`.
///
/// # Safety
/// A whole panel; the level's instructions enabled.
#[inline(always)]
unsafe fn weights<L: Lanes>(layout: QuantLayout, panel: *const u8, input: usize) -> L {
    let (group, input) = (input / GROUP, input % GROUP);
    let (register, shift, mask) = if layout.bits == 4 {
        (input % 16 / 4, 8 * (input % 4) + 4 * (input / 16), 15)
    } else {
        (input / 4, 8 * (input % 4), 255)
    };
    let part = input / layout.group * PANEL_COLUMNS * if layout.half_scales { 2 } else { 4 };
    // SAFETY: inside the record of the input's group.
    unsafe {
        let record = panel.add(group * layout.record_bytes());
        let load = |values: *const u8| -> L {
            if layout.half_scales {
                L::load_f16(values.cast())
            } else {
                L::load(values.cast())
            }
        };
        let scales = record.add(layout.code_bytes());
        let scale = load(scales.add(part));
        let code = L::load_bits(record.add(64 * register).cast(), shift as u32, mask);
        match layout.offset {
            Offset::Min => code.mul_add(scale, load(scales.add(layout.scale_bytes() + part))),
            Offset::Zero(zero) => code.sub(L::splat(zero as f32)).mul(scale),
        }
    }
}

/// # Safety
/// A whole panel that has inputs `channels`, with the level's instructions enabled.
#[inline(always)]
unsafe fn decode_body<L: Lanes>(
    layout: QuantLayout,
    panel: *const u8,
    channels: &[u32],
    out: &mut [f32],
) {
    let out = out.as_chunks_mut::<PANEL_COLUMNS>().0;
    for (&input, out) in channels.iter().zip(out) {
        // SAFETY: the caller's promise.
        unsafe { weights::<L>(layout, panel, input as usize).store(out.as_mut_ptr()) };
    }
}

by_level! {
    /// Decode the weights of inputs `channels`, 16 each.
    ///
    /// # Safety
    /// The machine has the level; a whole panel that has these inputs.
    unsafe fn decode(layout: QuantLayout, panel: *const u8, channels: &[u32], out: &mut [f32]) = decode_body;
}

/// Listed outliers of the rows from one on, and the weights that they meet in one panel.
#[derive(Clone, Copy)]
pub(super) struct Outliers {
    first: usize,
    entries: *const Entry,
    starts: *const u32,
    weights: *const f32,
}

impl Outliers {
    /// Those of the rows behind the first `rows` of these.
    pub fn skip(self, rows: usize) -> Self {
        Self {
            first: self.first + rows,
            ..self
        }
    }
}

/// Finish the first rows of `output`, whose sums are given: outliers, bias, residual.
///
/// # Safety
/// The outliers are those of `output`'s rows; as [`super::Products::panel`] for the output; the level's instructions
/// enabled.
#[inline(always)]
pub(super) unsafe fn finish<L: Lanes>(
    sums: &mut [[f32; PANEL_COLUMNS]],
    outliers: Outliers,
    output: Output,
) {
    // SAFETY: the caller's promise; entries name rows among these and channels that were decoded.
    unsafe {
        let start = *outliers.starts.add(outliers.first) as usize;
        let end = *outliers.starts.add(outliers.first + sums.len()) as usize;
        for at in start..end {
            let entry = &*outliers.entries.add(at);
            let sum = sums
                .get_unchecked_mut(entry.row as usize - outliers.first)
                .as_mut_ptr();
            let weights = L::load(outliers.weights.add(PANEL_COLUMNS * entry.channel as usize));
            L::splat(entry.value)
                .mul_add(weights, L::load(sum))
                .store(sum);
        }
        for (row, sums) in sums.iter().enumerate() {
            output.write(row, L::load(sums.as_ptr()));
        }
    }
}
