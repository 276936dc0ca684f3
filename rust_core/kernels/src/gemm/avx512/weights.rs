//! Sources of a panel's weights for the loop over groups: the packed panel, or 4-bit codes expanded to bytes beforehand.
//!
//! Unpacking a group of 4-bit codes costs a dozen operations on the ports that dot products use, as much as a row. A panel
//! that is multiplied with many rows is therefore unpacked once, into per-worker scratch memory that stays in its caches. The
//! codes are the same, so results have the same bits.

use std::arch::asm;
use std::arch::x86_64::*;

use super::QUADS;
use crate::activation_quant::TileGroup;
use crate::arena::{Buffer, Plain};
use crate::dispatch::separate_add_pipes;
use crate::error::KernelError;
use crate::gemm::Panel;
use crate::pack::layout::{GROUP, PANEL_COLUMNS, QuantLayout};
use crate::pack::pairs;

/// How dot products with a format's codes are dequantised.
///
/// # Safety
/// Methods execute AVX-512 instructions, which the caller has enabled.
pub(super) trait Format {
    const LAYOUT: QuantLayout;
    /// Whether each half of a group has its own scale.
    const SPLIT: bool = Self::LAYOUT.group < GROUP;
    /// Whether sums are multiplied with a column scale at the end.
    const COLUMN_SCALED: bool = Self::LAYOUT.column_scale_bytes() > 0;
    /// Scales of 16 columns, for a group or half of one.
    type Scales: Copy;
    /// `sum + value * scale` with the row's activation scale, in one rounding.
    ///
    /// # Safety
    /// The trait's.
    #[inline(always)]
    unsafe fn add(sum: __m512, value: __m512, tile: &TileGroup, lane: usize) -> __m512 {
        // SAFETY: the caller's promise.
        unsafe { _mm512_fmadd_ps(value, _mm512_set1_ps(tile.scales[lane]), sum) }
    }
    /// Initial accumulators of a row's dot products with a group, or with each of its halves.
    ///
    /// # Safety
    /// The trait's.
    unsafe fn initial_sums(tile: &TileGroup, lane: usize) -> [__m512i; 2];
    /// Dequantise a row's dot products with a group's codes.
    ///
    /// # Safety
    /// The trait's.
    unsafe fn value(dots: __m512i, scales: Self::Scales, tile: &TileGroup, lane: usize) -> __m512;
}

/// Cursor over the weights of a panel, group by group.
///
/// # Safety
/// Methods read the group and execute AVX-512 instructions, which the caller has enabled.
pub(super) trait Weights: Copy {
    type Format: Format;
    /// The next group.
    fn next(self) -> Self;
    /// Codes of quad `quad`.
    ///
    /// # Safety
    /// The trait's.
    unsafe fn codes(self, quad: usize) -> __m512i;
    /// Scales of the group, or of its half `part`.
    ///
    /// # Safety
    /// The trait's.
    unsafe fn scales(self, part: usize) -> <Self::Format as Format>::Scales;
}

/// The same pointer, opaque to the compiler, so that it stays in its own register.
///
/// Otherwise all tiles are addressed by one base and an index. Instructions with an indexed memory operand are split into two
/// micro-operations on Intel cores, and this loop has a hundred of them.
#[inline(always)]
#[allow(
    clippy::pointers_in_nomem_asm_block,
    reason = "nothing is read through it"
)]
pub(super) fn opaque<T>(mut pointer: *const T) -> *const T {
    // SAFETY: no instruction: the pointer passes through unchanged.
    unsafe {
        asm!("/* {0} */", inout(reg) pointer, options(nomem, nostack, preserves_flags, pure));
    }
    pointer
}

/// In every lane, the signed low half of `of` times `by`.
///
/// # Safety
/// AVX-512 enabled by the caller.
#[inline(always)]
unsafe fn low_half_times(of: i32, by: i32) -> __m512i {
    // SAFETY: the caller's promise.
    unsafe { _mm512_madd_epi16(_mm512_set1_epi32(of), _mm512_set1_epi32(by & 0xffff)) }
}

/// Scale and offset as a pair of integers ([`pairs`]). With `POWERS` the activation scales are powers of two, and their
/// exponents are added to those of the values. Multiplying by a power of two is exact, so the bits equal the multiply-add's.
pub(super) struct Paired<const POWERS: bool>;

impl<const POWERS: bool> Format for Paired<POWERS> {
    const LAYOUT: QuantLayout = QuantLayout::PAIRED;
    type Scales = __m512i;

    #[inline(always)]
    unsafe fn add(sum: __m512, value: __m512, tile: &TileGroup, lane: usize) -> __m512 {
        // SAFETY: the caller's promise.
        unsafe {
            let scale = _mm512_set1_ps(tile.scales[lane]);
            if POWERS {
                _mm512_add_ps(sum, _mm512_scalef_ps(value, _mm512_getexp_ps(scale)))
            } else {
                _mm512_fmadd_ps(value, scale, sum)
            }
        }
    }

    #[inline(always)]
    unsafe fn initial_sums(tile: &TileGroup, lane: usize) -> [__m512i; 2] {
        // SAFETY: the caller's promise.
        unsafe { [_mm512_set1_epi32(tile.initial_sums[lane]); 2] }
    }

    #[inline(always)]
    unsafe fn value(dots: __m512i, pairs: __m512i, _: &TileGroup, _: usize) -> __m512 {
        // SAFETY: the caller's promise.
        unsafe { _mm512_cvtepi32_ps(_mm512_madd_epi16(dots, pairs)) }
    }
}

/// A packed record of 4-bit codes.
#[derive(Clone, Copy)]
pub(super) struct Nibbles {
    record: *const u8,
}

impl Nibbles {
    pub fn new(panel: Panel) -> Self {
        Self {
            record: panel.records(QuantLayout::PAIRED),
        }
    }

    /// Expand `groups` groups to bytes, into the buffer of panel `at` in `scratch`.
    ///
    /// # Safety
    /// At least `groups` groups remain; AVX-512 enabled by the caller.
    #[inline(always)]
    pub unsafe fn expand<const POWERS: bool>(
        self,
        groups: usize,
        scratch: &mut ExpandedPanels,
        at: usize,
    ) -> ExpandedNibbles<POWERS> {
        let all = scratch.groups(groups, at);
        // SAFETY: groups `0..groups` of the panel, and of the scratch.
        unsafe {
            let mut here = self;
            for group in 0..groups {
                let to = &mut *all.add(group);
                for (quad, codes) in to.codes.iter_mut().enumerate() {
                    _mm512_store_si512(codes.as_mut_ptr().cast(), here.codes(quad));
                }
                _mm512_store_si512(to.scales.as_mut_ptr().cast(), here.scales(0));
                here = here.next();
            }
        }
        ExpandedNibbles { group: all }
    }
}

impl Weights for Nibbles {
    type Format = Paired<false>;

    #[inline(always)]
    fn next(self) -> Self {
        Self {
            record: opaque(self.record.wrapping_add(QuantLayout::PAIRED.record_bytes())),
        }
    }

    #[inline(always)]
    unsafe fn codes(self, quad: usize) -> __m512i {
        // SAFETY: the caller's promise.
        unsafe {
            let bytes = _mm512_loadu_si512(self.record.add(64 * (quad % 4)).cast());
            let nibble = _mm512_set1_epi8(15);
            if quad < 4 {
                _mm512_and_si512(bytes, nibble)
            } else {
                _mm512_and_si512(_mm512_srli_epi16::<4>(bytes), nibble)
            }
        }
    }

    #[inline(always)]
    unsafe fn scales(self, _part: usize) -> __m512i {
        // SAFETY: the caller's promise.
        unsafe { _mm512_loadu_si512(self.record.add(QuantLayout::PAIRED.code_bytes()).cast()) }
    }
}

/// 4-bit codes expanded to one byte each.
#[derive(Clone, Copy)]
pub(super) struct ExpandedNibbles<const POWERS: bool> {
    group: *const ExpandedGroup,
}

impl<const POWERS: bool> Weights for ExpandedNibbles<POWERS> {
    type Format = Paired<POWERS>;

    #[inline(always)]
    fn next(self) -> Self {
        Self {
            group: opaque(self.group.wrapping_add(1)),
        }
    }

    #[inline(always)]
    unsafe fn codes(self, quad: usize) -> __m512i {
        // SAFETY: the caller's promise.
        unsafe { _mm512_load_si512((*self.group).codes[quad].as_ptr().cast()) }
    }

    #[inline(always)]
    unsafe fn scales(self, _part: usize) -> __m512i {
        // SAFETY: the caller's promise.
        unsafe { _mm512_load_si512((*self.group).scales.as_ptr().cast()) }
    }
}

/// Scales of 8-bit codes.
#[derive(Clone, Copy)]
pub(super) struct ByteScales {
    scale: __m512,
    /// An eighth of the minimum, because code sums are stored times eight. Unused in layouts without minima.
    min: __m512,
}

/// A packed record of 8-bit codes. The layout is in const parameters, so that every branch on it is resolved at compile time.
/// `ZERO_POINT` is 0 for layouts with minima.
#[derive(Clone, Copy)]
pub(super) struct Bytes<const SPLIT: bool, const HALF: bool, const ZERO_POINT: i32> {
    record: *const u8,
}

impl<const SPLIT: bool, const HALF: bool, const ZERO_POINT: i32> Bytes<SPLIT, HALF, ZERO_POINT> {
    pub fn new(panel: Panel) -> Self {
        Self {
            record: panel.records(Self::LAYOUT),
        }
    }

    /// Sixteen scales or minima.
    ///
    /// # Safety
    /// Sixteen values at `from`; AVX-512 enabled by the caller.
    #[inline(always)]
    unsafe fn load(from: *const u8) -> __m512 {
        // SAFETY: the caller's promise.
        unsafe {
            if HALF {
                _mm512_cvtph_ps(_mm256_loadu_si256(from.cast()))
            } else {
                _mm512_loadu_ps(from.cast())
            }
        }
    }
}

impl<const SPLIT: bool, const HALF: bool, const ZERO_POINT: i32> Weights
    for Bytes<SPLIT, HALF, ZERO_POINT>
{
    type Format = Self;

    #[inline(always)]
    fn next(self) -> Self {
        Self {
            record: opaque(self.record.wrapping_add(Self::LAYOUT.record_bytes())),
        }
    }

    #[inline(always)]
    unsafe fn codes(self, quad: usize) -> __m512i {
        // SAFETY: the caller's promise.
        unsafe { _mm512_loadu_si512(self.record.add(64 * quad).cast()) }
    }

    #[inline(always)]
    unsafe fn scales(self, part: usize) -> ByteScales {
        // SAFETY: the caller's promise; a part's scales and minima are inside the record.
        unsafe {
            let from = self.record.add(Self::LAYOUT.code_bytes());
            let scale = Self::load(from.add(part * Self::LAYOUT.scale_bytes() / 2));
            let min = if ZERO_POINT == 0 {
                let min = Self::load(from.add(Self::LAYOUT.scale_bytes()));
                _mm512_mul_ps(min, _mm512_set1_ps(1.0 / pairs::ZERO_POINT as f32))
            } else {
                scale
            };
            ByteScales { scale, min }
        }
    }
}

impl<const SPLIT: bool, const HALF: bool, const ZERO_POINT: i32> Format
    for Bytes<SPLIT, HALF, ZERO_POINT>
{
    const LAYOUT: QuantLayout = QuantLayout::bytes(SPLIT, HALF, ZERO_POINT);
    type Scales = ByteScales;

    /// Minus the zero point times the sum of the activation codes.
    #[inline(always)]
    unsafe fn initial_sums(tile: &TileGroup, lane: usize) -> [__m512i; 2] {
        // SAFETY: the caller's promise.
        unsafe {
            if ZERO_POINT == 0 {
                return [_mm512_setzero_si512(); 2];
            }
            // The low half of an initial sum is the code sum times -8.
            let all = low_half_times(tile.initial_sums[lane], ZERO_POINT / pairs::ZERO_POINT);
            if !SPLIT {
                return [all; 2];
            }
            let low = low_half_times(tile.low_sums[lane], -ZERO_POINT);
            [low, _mm512_sub_epi32(all, low)]
        }
    }

    #[inline(always)]
    unsafe fn value(dots: __m512i, scales: ByteScales, tile: &TileGroup, lane: usize) -> __m512 {
        // SAFETY: the caller's promise.
        unsafe {
            let value = _mm512_mul_ps(_mm512_cvtepi32_ps(dots), scales.scale);
            if ZERO_POINT != 0 {
                return value;
            }
            let sum = low_half_times(tile.initial_sums[lane], -1);
            _mm512_fmadd_ps(_mm512_cvtepi32_ps(sum), scales.min, value)
        }
    }
}

/// A group of one panel with one byte per code.
#[repr(C, align(64))]
#[derive(Debug, Clone, Copy)]
pub(super) struct ExpandedGroup {
    codes: [[u8; 4 * PANEL_COLUMNS]; QUADS],
    scales: [i32; PANEL_COLUMNS],
}

// SAFETY: plain numbers.
unsafe impl Plain for ExpandedGroup {}

/// Buffers for two expanded panels.
#[derive(Debug)]
pub(in crate::gemm) struct ExpandedPanels {
    /// `[2, ≤ inputs / 32]`
    groups: Buffer<ExpandedGroup>,
    /// See [`separate_add_pipes`].
    pub(in crate::gemm) separate_add_pipes: bool,
}

impl ExpandedPanels {
    /// For panels of at most `inputs` inputs.
    pub fn new(inputs: usize) -> Result<Self, KernelError> {
        Ok(Self {
            groups: Buffer::new(2 * inputs.div_ceil(GROUP))?,
            separate_add_pipes: separate_add_pipes(),
        })
    }

    /// Buffer for `groups` groups of the first or second panel.
    ///
    /// # Panics
    /// If the panel is longer than the `inputs` given to `new`.
    fn groups(&mut self, groups: usize, at: usize) -> *mut ExpandedGroup {
        assert!((at + 1) * groups <= self.groups.len());
        // SAFETY: inside the buffer by the check.
        unsafe { self.groups.ptr().add(at * groups) }
    }

    /// Buffer for the codes of `groups` groups, one byte per code.
    ///
    /// # Panics
    /// As [`Self::groups`].
    pub fn codes(&mut self, groups: usize) -> *mut u8 {
        self.groups(groups, 0).cast()
    }
}
