//! Outliers: activations kept in fp32. Each adds `value * weight` to a panel's results, after the groups and before bias
//! and residual.
//!
//! Outliers of different rows are mostly in the same channels. Those of a phase are therefore listed once, by channel for
//! each tile of four rows, and each panel dequantises a channel's weights once for all rows. A row without an outlier in a
//! channel where another row of its tile has one adds zero. This changes no bit: sums begin at +0, and no group's
//! contribution is small enough to be rounded to -0. (An infinite weight would give NaN instead; then the column's group sums
//! are not finite either.)

use super::{Panel, PanelGemm, by_layout, group_scales};
use crate::activation_quant::{NO_OUTLIER, QuantRows, TILE_ROWS};
use crate::arena::{Buffer, Plain};
use crate::dispatch::Level;
use crate::error::KernelError;
use crate::pack::layout::{GROUP, Offset, PANEL_COLUMNS, QuantLayout, Scales};
use crate::pack::pairs;
use crate::simd::{Lanes, ROUND, by_level, prefetch_line};

/// Prefetch distance in groups with outliers: they may be in another core's cache.
const PREFETCH_DISTANCE: usize = 8;

/// Outlier values of a tile's rows in one channel; 0 for rows without one.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
struct Entry {
    /// Index into the phase's channels.
    channel: u32,
    values: [f32; TILE_ROWS],
}

// SAFETY: plain numbers.
unsafe impl Plain for Entry {}

/// A group in which at least one of a tile's rows has an outlier.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
struct Candidate {
    tile: u32,
    group: u32,
    /// The tile's [`crate::activation_quant::OutlierPositions`], packed into one integer.
    outlier_positions: u32,
}

// SAFETY: plain numbers.
unsafe impl Plain for Candidate {}

/// The outliers of a phase's rows, and buffers for the weights of their channels. One per worker.
#[derive(Debug)]
pub(super) struct OutlierIndex {
    /// `[≤ rows * inputs / 32]`, ordered by tile, then by input.
    entries: Buffer<Entry>,
    /// `[tiles + 1]`: entries of tile `t` are `starts[t]..starts[t + 1]`.
    starts: Buffer<u32>,
    /// `[≤ inputs]`: the input of each channel.
    channels: Buffer<u32>,
    /// `[inputs]`: the channel index of an input. Valid only if `channels` holds the input at that index.
    channel_of: Buffer<u32>,
    /// `[≤ rows / 4 * inputs / 32]`: groups with outliers, in the order of `entries`.
    candidates: Buffer<Candidate>,
    /// `[2, ≤ inputs, 16]`: the weights of each channel in the current panels.
    weights: Buffer<f32>,
    count: usize,
}

impl OutlierIndex {
    /// For at most `rows` rows of `inputs` inputs.
    pub fn new(rows: usize, inputs: usize) -> Result<Self, KernelError> {
        Ok(Self {
            entries: Buffer::new(rows * inputs.div_ceil(GROUP))?,
            starts: Buffer::new(rows.div_ceil(TILE_ROWS) + 1)?,
            channels: Buffer::new(inputs)?,
            channel_of: Buffer::new(inputs)?,
            candidates: Buffer::new(rows.div_ceil(TILE_ROWS) * inputs.div_ceil(GROUP))?,
            weights: Buffer::new(2 * inputs * PANEL_COLUMNS)?,
            count: 0,
        })
    }

    /// List the outliers of `rows` rows of `x`.
    ///
    /// # Safety
    /// `x` holds at least `rows` rows.
    pub unsafe fn list(&mut self, x: QuantRows, rows: usize) {
        let (groups, tiles) = (x.inputs / GROUP, rows.div_ceil(TILE_ROWS));
        // SAFETY: own buffers, borrowed by `&mut self`; `slice_mut` checks the lengths.
        let (entries, starts, channels, channel_of, candidates) = unsafe {
            (
                self.entries.slice_mut(0, rows * groups),
                self.starts.slice_mut(0, tiles + 1),
                self.channels.slice_mut(0, x.inputs),
                self.channel_of.slice_mut(0, x.inputs),
                self.candidates.slice_mut(0, tiles * groups),
            )
        };
        let mut found = 0;
        for tile in 0..tiles {
            // Lanes beyond the last row hold arbitrary values: mark them as having no outlier.
            let lanes = TILE_ROWS.min(rows - tile * TILE_ROWS);
            let absent = u32::MAX.checked_shl(8 * lanes as u32).unwrap_or(0);
            // SAFETY: `rows` rows of activations by contract.
            let outlier_positions = unsafe { x.outlier_positions(tile) }.unwrap_or_default();
            // Branch-free: which groups have outliers is unpredictable.
            for (group, outlier_positions) in outlier_positions.iter().enumerate() {
                let outlier_positions = u32::from_le_bytes(*outlier_positions) | absent;
                candidates[found] = Candidate {
                    tile: tile as u32,
                    group: group as u32,
                    outlier_positions,
                };
                found += usize::from(outlier_positions != u32::MAX);
            }
        }
        let candidates = &candidates[..found];
        // SAFETY: as above.
        let group_of =
            |at: &Candidate| unsafe { x.tile(at.tile as usize * TILE_ROWS).add(at.group as usize) };
        let (mut tile, mut end, mut count) = (0, 0, 0);
        for (at, candidate) in candidates.iter().enumerate() {
            if let Some(later) = candidates.get(at + PREFETCH_DISTANCE) {
                // SAFETY: a prefetch never faults.
                prefetch_line(unsafe { &raw const (*group_of(later)).outliers }.cast());
            }
            starts[tile..=candidate.tile as usize].fill(end as u32);
            tile = candidate.tile as usize + 1;
            // SAFETY: as above.
            let outliers = unsafe { (*group_of(candidate)).outliers };
            let mut outlier_positions = candidate.outlier_positions.to_le_bytes();
            // Every input of the group at which some row has an outlier, in order.
            while outlier_positions != [NO_OUTLIER; TILE_ROWS] {
                let position = outlier_positions.into_iter().min().expect("four lanes");
                let matches = outlier_positions.map(|other| other == position);
                let values = std::array::from_fn(|lane| {
                    f32::from_bits(outliers[lane].to_bits() * u32::from(matches[lane]))
                });
                outlier_positions = std::array::from_fn(|lane| {
                    outlier_positions[lane] | (NO_OUTLIER * u8::from(matches[lane]))
                });
                let input = candidate.group * GROUP as u32 + u32::from(position);
                let channel = &mut channel_of[input as usize];
                // An entry left by an earlier phase may name any channel.
                if *channel as usize >= count || channels[*channel as usize] != input {
                    *channel = count as u32;
                    channels[count] = input;
                    count += 1;
                }
                entries[end] = Entry {
                    channel: *channel,
                    values,
                };
                end += 1;
            }
        }
        starts[tile..].fill(end as u32);
        self.count = count;
    }

    /// Dequantise the weights of the listed channels in `panel`, into the first (`at` 0) or second (`at` 1) half of the buffer.
    ///
    /// # Safety
    /// The machine has the level; a whole panel of the inputs that were listed.
    pub unsafe fn dequantize_channels(
        &mut self,
        level: Level,
        layout: QuantLayout,
        panel: Panel,
        at: usize,
    ) -> Outliers {
        let first = at * self.count * PANEL_COLUMNS;
        // SAFETY: own buffers, borrowed by `&mut self`; channels are inputs of the panel by contract.
        unsafe {
            let channels = self.channels.slice(0, self.count);
            let weights = self.weights.slice_mut(first, self.count * PANEL_COLUMNS);
            if self.count > 0 {
                decode(level, layout, panel, channels, weights);
            }
        }
        Outliers {
            entries: self.entries.ptr(),
            starts: self.starts.ptr(),
            weights: self.weights.ptr().wrapping_add(first),
        }
    }
}

/// The codes of all 16 columns for input `input` of a group.
///
/// # Safety
/// A group's codes; the level's instructions enabled.
#[inline(always)]
unsafe fn codes<L: Lanes>(layout: QuantLayout, codes: *const u8, input: usize) -> L {
    let byte = 8 * (input % 4);
    // Macros, because a closure with vector operations may be compiled as a function without the level's instructions, whose
    // every operation is a call.
    macro_rules! bits {
        ($register:expr, $shift:expr, $mask:literal) => {
            L::load_bits(
                codes.add(64 * $register).cast(),
                (byte + $shift) as u32,
                $mask,
            )
        };
    }
    // SAFETY: registers of the group's codes; instructions are the caller's promise.
    unsafe {
        let (register, shift) = (input % 16 / 4, 4 * (input / 16));
        if let Some(table) = layout.table {
            let words = codes.add(64 * register).cast();
            return L::load_from_table(words, (byte + shift) as u32, table.floats());
        }
        match layout.bits {
            8 => return bits!(input / 4, 0, 255),
            2 | 3 => {
                let low = bits!(input / 16, 2 * (input % 16 / 4), 3);
                if layout.bits == 2 {
                    return low;
                }
                return bits!(2, input / 4, 1).mul_add(L::splat(4.0), low);
            }
            _ => {}
        }
        let nibbles = bits!(register, shift, 15);
        let high = match layout.bits {
            6 => bits!(4 + input / 16, 2 * (input % 16 / 4), 3),
            5 => bits!(4, input / 4, 1),
            _ => return nibbles,
        };
        high.mul_add(L::splat(16.0), nibbles)
    }
}

/// The weights of all 16 columns for input `input`.
///
/// # Safety
/// A whole panel; the level's instructions enabled.
#[inline(always)]
unsafe fn weights<L: Lanes>(layout: QuantLayout, panel: Panel, input: usize) -> L {
    let (group, input) = (input / GROUP, input % GROUP);
    let part = input / layout.group;
    // SAFETY: inside the input's group and block.
    unsafe {
        let code = codes::<L>(layout, panel.codes(layout, group), input);
        let zero = L::splat(pairs::ZERO_POINT as f32);
        let weights = match (layout.offset, layout.scales) {
            (Offset::Min, _) => {
                let scale = group_scales::scale::<L>(layout, panel, group, part);
                return code.mul_add(scale, group_scales::min(layout, panel, group, part));
            }
            (Offset::ZeroPoint(zero), _) => {
                let scale = group_scales::scale::<L>(layout, panel, group, part);
                return code.sub(L::splat(zero as f32)).mul(scale);
            }
            (Offset::Paired, Scales::Blocked) => {
                let scale = group_scales::scale::<L>(layout, panel, group, part);
                let offset = scale.sub(group_scales::min(layout, panel, group, part));
                let offset = offset.add(L::splat(ROUND)).sub(L::splat(ROUND));
                let scale = scale.add(L::splat(ROUND)).sub(L::splat(ROUND));
                code.sub(zero).mul_add(scale, offset.mul(zero))
            }
            (Offset::Paired, Scales::Integers) => {
                let scale = group_scales::scale::<L>(layout, panel, group, part);
                code.sub(zero).mul(scale)
            }
            (Offset::Paired, _) => {
                let register = panel.codes(layout, group).add(64 * (input % 16 / 4));
                let shift = (8 * (input % 4) + 4 * (input / 16)) as u32;
                let pairs = panel.scales(layout, group);
                L::load_dequantized_codes(register.cast(), shift, pairs.cast())
            }
        };
        weights.mul(L::load(panel.column_scales()))
    }
}

/// # Safety
/// A whole panel that has inputs `channels`, with the level's instructions enabled.
#[inline(always)]
unsafe fn decode_all<L: Lanes>(
    layout: QuantLayout,
    panel: Panel,
    channels: &[u32],
    out: &mut [f32],
) {
    let out = out.as_chunks_mut::<PANEL_COLUMNS>().0;
    for (&input, out) in channels.iter().zip(out) {
        // SAFETY: the caller's promise.
        unsafe { weights::<L>(layout, panel, input as usize).store(out.as_mut_ptr()) };
    }
}

/// # Safety
/// A whole panel that has inputs `channels`, with the level's instructions enabled.
#[inline(always)]
unsafe fn decode_body<L: Lanes>(
    layout: QuantLayout,
    panel: Panel,
    channels: &[u32],
    out: &mut [f32],
) {
    // Layouts known at compile time halve the time per channel.
    // SAFETY: the caller's promise.
    unsafe {
        macro_rules! run {
            ($layout:ident) => {
                decode_all::<L>(QuantLayout::$layout, panel, channels, out)
            };
        }
        by_layout!(layout, run)
    }
}

by_level! {
    /// Dequantise the 16 weights of each input in `channels`.
    ///
    /// # Safety
    /// The machine has the level; a whole panel that has these inputs.
    unsafe fn decode(layout: QuantLayout, panel: Panel, channels: &[u32], out: &mut [f32]) = decode_body;
}

/// The listed outliers from some tile on, and their channels' weights in one panel.
#[derive(Clone, Copy)]
pub(super) struct Outliers {
    entries: *const Entry,
    starts: *const u32,
    weights: *const f32,
}

impl Outliers {
    /// The same without the first `rows` rows, a multiple of the tile height.
    ///
    /// # Safety
    /// At least `rows` rows were listed.
    #[inline(always)]
    pub unsafe fn skip(self, rows: usize) -> Self {
        debug_assert!(rows.is_multiple_of(TILE_ROWS));
        Self {
            // SAFETY: the caller's promise.
            starts: unsafe { self.starts.add(rows / TILE_ROWS) },
            ..self
        }
    }
}

/// Epilogue of `LANES` rows of tile `at`, starting at its lane `lane`, for one or two panels: add outliers, bias and residual
/// to the given sums and store them. Rows beyond the last one are padding and skipped.
///
/// # Safety
/// As [`super::Gemm::panels`]; the level's instructions enabled.
#[inline(always)]
pub(super) unsafe fn finish_tile<L: Lanes, const PANELS: usize, const LANES: usize>(
    mut sums: [[L; LANES]; PANELS],
    at: usize,
    lane: usize,
    gemms: &[PanelGemm; PANELS],
) {
    let outliers = &gemms[0].outliers;
    // SAFETY: the caller's promise; entries are the same for all panels, and name channels that were decoded.
    unsafe {
        let start = *outliers.starts.add(at) as usize;
        let end = *outliers.starts.add(at + 1) as usize;
        for entry in start..end {
            let entry = &*outliers.entries.add(entry);
            let channel = PANEL_COLUMNS * entry.channel as usize;
            for (sums, gemm) in sums.iter_mut().zip(gemms) {
                let weights = L::load(gemm.outliers.weights.add(channel));
                for (sum, value) in sums.iter_mut().zip(&entry.values[lane..lane + LANES]) {
                    *sum = L::splat(*value).mul_add(weights, *sum);
                }
            }
        }
        for (sums, gemm) in sums.into_iter().zip(gemms) {
            let row = at * TILE_ROWS + lane;
            gemm.output.write(row, gemm.rows, sums);
        }
    }
}

/// Epilogue of all rows of `gemm`, whose sums are given as tiles: see [`finish_tile`].
///
/// # Safety
/// As [`finish_tile`].
#[inline(always)]
pub(super) unsafe fn finish<L: Lanes>(sums: &[[[f32; PANEL_COLUMNS]; TILE_ROWS]], gemm: PanelGemm) {
    for (at, sums) in sums.iter().enumerate() {
        // SAFETY: the caller's promise.
        unsafe {
            let sums = [
                L::load(sums[0].as_ptr()),
                L::load(sums[1].as_ptr()),
                L::load(sums[2].as_ptr()),
                L::load(sums[3].as_ptr()),
            ];
            finish_tile([sums], at, 0, &[gemm]);
        }
    }
}
