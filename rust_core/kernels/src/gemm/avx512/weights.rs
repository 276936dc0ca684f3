//! Sources of a panel's weights for the loop over groups: the packed panel, or codes of fewer than 8 bits expanded to bytes
//! beforehand.
//!
//! Unpacking a group of 4-bit codes costs a dozen operations on the ports that dot products use, as much as a row; 5 and 6 bits
//! and the scales of K-quants cost three times that. A panel that is multiplied with many rows is therefore unpacked once,
//! into per-worker scratch memory that stays in its caches. The codes are the same, so results have the same bits.

use std::arch::asm;
use std::arch::x86_64::*;
use std::marker::PhantomData;

use super::{BYTES_ROWS, QUADS, UNPACKED_ROWS};
use crate::activation_quant::{TILE_ROWS, TileGroup};
use crate::arena::{Buffer, Plain};
use crate::dispatch::separate_add_pipes;
use crate::error::KernelError;
use crate::gemm::Panel;
use crate::pack::blocked::SIX_BIT_ZERO;
use crate::pack::layout::{
    BLOCK_FACTOR_BYTES, BLOCK_GROUPS, GROUP, Offset, PANEL_COLUMNS, QuantLayout,
    SIX_BIT_HIGH_OFFSET,
};
use crate::pack::{pairs, table};

/// How dot products with a format's codes are dequantised.
///
/// # Safety
/// Methods execute AVX-512 instructions, which the caller has enabled.
pub(super) trait Format {
    /// Whether each half of a group has its own scale.
    const SPLIT: bool;
    /// Whether sums are multiplied with a column scale at the end.
    const COLUMN_SCALED: bool;
    /// Added to codes when they are expanded.
    const CODE_OFFSET: i8;
    /// Arrays of 16 numbers in the scales of an expanded group.
    const ARRAYS: usize;
    /// Scales of 16 columns, for a group or half of one.
    type Scales: Copy;
    /// `sum + value * scale` with the row's activation scale, in one rounding.
    ///
    /// # Safety
    /// The trait's.
    #[inline(always)]
    unsafe fn add(sum: __m512, value: __m512, tile: &TileGroup, lane: usize) -> __m512 {
        // SAFETY: the caller's promise.
        unsafe { multiply_add(sum, value, _mm512_set1_ps(tile.scales[lane])) }
    }
    /// Rows of the largest block of a single panel whose codes are unpacked.
    const UNPACKED_ROWS: usize = UNPACKED_ROWS;
    /// Whether [`Self::tile_sums`] takes arithmetic. If not, it is the tile's initial sums.
    const COMPUTED_SUMS: bool;
    /// For each row of a tile, a multiple of the sum of the activation codes of a group, or of half `part` of it.
    ///
    /// # Safety
    /// The trait's.
    unsafe fn tile_sums(tile: &TileGroup, part: usize) -> __m128i;
    /// Initial accumulator of a row's dot products, from its number of [`Self::tile_sums`] in every lane.
    ///
    /// # Safety
    /// The trait's.
    unsafe fn initial_sum(row_sum: __m512i) -> __m512i;
    /// Dequantise a row's dot products with a group's codes, or with those of half of it. `row_sum` as in
    /// [`Self::initial_sum`].
    ///
    /// # Safety
    /// The trait's.
    unsafe fn value(dots: __m512i, scales: Self::Scales, row_sum: __m512i) -> __m512;
    /// Store the scales of an expanded group's part.
    ///
    /// # Safety
    /// The trait's; [`Self::ARRAYS`] arrays at `to`.
    unsafe fn store_scales(scales: Self::Scales, part: usize, to: *mut Array);
    /// Load what [`Self::store_scales`] stored.
    ///
    /// # Safety
    /// The trait's; [`Self::ARRAYS`] arrays at `from`.
    unsafe fn load_scales(from: *const Array, part: usize) -> Self::Scales;
}

/// Sixteen 32-bit numbers.
type Array = [i32; PANEL_COLUMNS];

/// Cursor over the weights of a panel, group by group.
///
/// # Safety
/// Methods read the group and execute AVX-512 instructions, which the caller has enabled.
pub(super) trait Weights: Copy {
    type Format: Format;
    /// Rows of the largest block of a single panel.
    const SINGLE_PANEL_ROWS: usize = Self::Format::UNPACKED_ROWS;
    /// Whether one and two rows have blocks of their own. Expanded panels are multiplied with many, and the last few are rare.
    const FEW_ROWS: bool = true;
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

/// `sum + a * b` in one rounding, with the instruction that overwrites `sum`.
///
/// Of the intrinsic, the compiler may make one that overwrites a factor, and copy the result to the sum: twelve more
/// instructions in a loop of 225, which then took 4 % longer.
///
/// # Safety
/// AVX-512 enabled by the caller.
#[inline]
#[target_feature(enable = "avx512f")]
unsafe fn multiply_add(mut sum: __m512, a: __m512, b: __m512) -> __m512 {
    // SAFETY: registers only.
    unsafe {
        asm!(
            "vfmadd231ps {sum}, {a}, {b}",
            sum = inout(zmm_reg) sum,
            a = in(zmm_reg) a,
            b = in(zmm_reg) b,
            options(pure, nomem, nostack, preserves_flags),
        );
    }
    sum
}

/// The signed low halves of `of`, times `by`.
///
/// # Safety
/// AVX-512 enabled by the caller.
#[inline(always)]
unsafe fn low_halves_times(of: &[i32; TILE_ROWS], by: i32) -> __m128i {
    // SAFETY: the caller's promise.
    unsafe {
        let of = _mm_loadu_si128(of.as_ptr().cast());
        _mm_madd_epi16(of, _mm_set1_epi32(by & 0xffff))
    }
}

/// Scale and offset as a pair of integers ([`pairs`]). With `POWERS` the activation scales are powers of two, and their
/// exponents are added to those of the values. Multiplying by a power of two is exact, so the bits equal the multiply-add's.
pub(super) struct Paired<const POWERS: bool>;

impl<const POWERS: bool> Format for Paired<POWERS> {
    const SPLIT: bool = false;
    const COLUMN_SCALED: bool = true;
    const COMPUTED_SUMS: bool = false;
    const CODE_OFFSET: i8 = 0;
    const ARRAYS: usize = 1;
    type Scales = __m512i;

    #[inline(always)]
    unsafe fn add(sum: __m512, value: __m512, tile: &TileGroup, lane: usize) -> __m512 {
        // SAFETY: the caller's promise.
        unsafe {
            let scale = _mm512_set1_ps(tile.scales[lane]);
            if POWERS {
                _mm512_add_ps(sum, _mm512_scalef_ps(value, _mm512_getexp_ps(scale)))
            } else {
                multiply_add(sum, value, scale)
            }
        }
    }

    #[inline(always)]
    unsafe fn tile_sums(tile: &TileGroup, _: usize) -> __m128i {
        // SAFETY: the caller's promise.
        unsafe { _mm_loadu_si128(tile.initial_sums.as_ptr().cast()) }
    }

    #[inline(always)]
    unsafe fn initial_sum(row_sum: __m512i) -> __m512i {
        row_sum
    }

    #[inline(always)]
    unsafe fn value(dots: __m512i, pairs: __m512i, _: __m512i) -> __m512 {
        // SAFETY: the caller's promise.
        unsafe { _mm512_cvtepi32_ps(_mm512_madd_epi16(dots, pairs)) }
    }

    #[inline(always)]
    unsafe fn store_scales(pairs: __m512i, _: usize, to: *mut Array) {
        // SAFETY: the caller's promise.
        unsafe { _mm512_store_si512(to.cast(), pairs) }
    }

    #[inline(always)]
    unsafe fn load_scales(from: *const Array, _: usize) -> __m512i {
        // SAFETY: the caller's promise.
        unsafe { _mm512_load_si512(from.cast()) }
    }
}

/// A packed group of 4-bit codes and its pairs.
#[derive(Clone, Copy)]
pub(super) struct Nibbles {
    record: *const u8,
}

impl Nibbles {
    pub fn new(panel: Panel) -> Self {
        Self {
            record: panel.codes(QuantLayout::Q4_1, 0),
        }
    }
}

impl Weights for Nibbles {
    type Format = Paired<false>;

    #[inline(always)]
    fn next(self) -> Self {
        Self {
            record: opaque(self.record.wrapping_add(QuantLayout::Q4_1.block_bytes())),
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
        unsafe { _mm512_loadu_si512(self.record.add(QuantLayout::Q4_1.code_bytes()).cast()) }
    }
}

/// Codes expanded to one byte each, with the scales of their format.
pub(super) struct Expanded<F> {
    /// The group's codes, one array per quad, followed by its scales.
    group: *const Array,
    format: PhantomData<F>,
}

impl<F> Clone for Expanded<F> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<F> Copy for Expanded<F> {}

impl<F: Format> Expanded<F> {
    /// A panel that [`expand`] has written to `first`.
    pub fn new(first: *const u8) -> Self {
        Self {
            group: first.cast(),
            format: PhantomData,
        }
    }
}

/// Zero point of expanded codes in formats with zero points. One for all of them, so that all share a kernel.
pub(super) const EXPANDED_ZERO_POINT: i32 = 128;

/// Expand `groups` groups from `weights` on: the group's codes, one byte each and one array per quad, then its scales.
///
/// # Safety
/// At least `groups` groups remain, and there is room for as many at `to`, a cache line's address; the machine has AVX-512.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq,avx512vnni,avx2,fma,f16c")]
pub(super) unsafe fn expand<W: Weights>(mut weights: W, groups: usize, to: *mut u8) {
    let mut to: *mut Array = to.cast();
    for _ in 0..groups {
        // SAFETY: a group of the panel, and its place, by contract.
        unsafe {
            for quad in 0..QUADS {
                let mut codes = weights.codes(quad);
                if W::Format::CODE_OFFSET != 0 {
                    codes = _mm512_add_epi8(codes, _mm512_set1_epi8(W::Format::CODE_OFFSET));
                }
                _mm512_store_si512(to.add(quad).cast(), codes);
            }
            for part in 0..if W::Format::SPLIT { 2 } else { 1 } {
                W::Format::store_scales(weights.scales(part), part, to.add(QUADS));
            }
            to = to.add(QUADS + W::Format::ARRAYS);
        }
        weights = weights.next();
    }
}

impl<F: Format> Weights for Expanded<F> {
    type Format = F;
    const SINGLE_PANEL_ROWS: usize = BYTES_ROWS;
    const FEW_ROWS: bool = false;

    #[inline(always)]
    fn next(self) -> Self {
        Self {
            group: opaque(self.group.wrapping_add(QUADS + F::ARRAYS)),
            ..self
        }
    }

    #[inline(always)]
    unsafe fn codes(self, quad: usize) -> __m512i {
        // SAFETY: the caller's promise.
        unsafe { _mm512_load_si512(self.group.add(quad).cast()) }
    }

    #[inline(always)]
    unsafe fn scales(self, part: usize) -> F::Scales {
        // SAFETY: the caller's promise.
        unsafe { F::load_scales(self.group.add(QUADS), part) }
    }
}

/// A packed group of a K-quant, with codes of 2 to 6 bits.
#[derive(Clone, Copy)]
pub(super) struct Blocked<const BITS: u32> {
    /// The group's block, which begins with its factors.
    block: *const u8,
    scales: *const u8,
    codes: *const u8,
}

impl<const BITS: u32> Blocked<BITS> {
    const LAYOUT: QuantLayout = match BITS {
        2 => QuantLayout::Q2_K,
        3 => QuantLayout::Q3_K,
        4 => QuantLayout::Q4_K,
        5 => QuantLayout::Q5_K,
        _ => QuantLayout::Q6_K,
    };

    pub fn new(panel: Panel) -> Self {
        Self {
            block: panel.block(Self::LAYOUT, 0),
            scales: panel.scales(Self::LAYOUT, 0),
            codes: panel.codes(Self::LAYOUT, 0),
        }
    }

    #[inline(always)]
    fn next_group(self) -> Self {
        let stride = Self::LAYOUT.scale_bytes();
        let last_scales = BLOCK_FACTOR_BYTES + (BLOCK_GROUPS - 1) * stride;
        let codes = self.codes.wrapping_add(Self::LAYOUT.code_bytes());
        if self.scales.addr() - self.block.addr() == last_scales {
            // The codes of a block end where the next block begins.
            return Self {
                block: codes,
                scales: opaque(codes.wrapping_add(BLOCK_FACTOR_BYTES)),
                codes: opaque(codes.wrapping_add(Self::LAYOUT.header_bytes())),
            };
        }
        Self {
            block: self.block,
            scales: opaque(self.scales.wrapping_add(stride)),
            codes: opaque(codes),
        }
    }

    /// A factor (0: of scales, 1: of minima) times the integers of the group's first or second array.
    ///
    /// # Safety
    /// The group is in the panel; AVX-512 enabled by the caller.
    #[inline(always)]
    unsafe fn product(self, factor: usize, array: usize) -> __m512 {
        // SAFETY: the caller's promise.
        unsafe { product(self.block, self.scales, factor, array) }
    }

    /// Scale and minimum of half `part`, which share a byte.
    ///
    /// # Safety
    /// As [`Self::product`].
    #[inline(always)]
    unsafe fn nibbles(self, part: usize) -> [__m512; 2] {
        // SAFETY: the caller's promise.
        unsafe {
            let both = _mm_loadu_si128(self.scales.add(PANEL_COLUMNS * part).cast());
            let nibble = _mm_set1_epi8(15);
            let mins = _mm_and_si128(_mm_srli_epi16::<4>(both), nibble);
            [
                times_factors(self.block, 0, _mm_and_si128(both, nibble)),
                times_factors(self.block, 1, mins),
            ]
        }
    }

    /// The 6-bit scales of half `part`.
    ///
    /// # Safety
    /// As [`Self::product`].
    #[inline(always)]
    unsafe fn six_bit_scales(self, part: usize) -> __m512 {
        let group = (self.scales.addr() - self.block.addr() - BLOCK_FACTOR_BYTES) / PANEL_COLUMNS;
        let high = SIX_BIT_HIGH_OFFSET + group / 2 * PANEL_COLUMNS;
        // SAFETY: the caller's promise.
        unsafe {
            let low = _mm_loadu_si128(self.scales.cast());
            let high = _mm_loadu_si128(self.block.add(high).cast());
            // The group's bits to bit 0, then those of the half to bit 4.
            let high = _mm_srl_epi16(high, _mm_cvtsi32_si128((group % 2 * 4) as i32));
            let (low, high) = if part == 0 {
                (low, _mm_slli_epi16::<4>(high))
            } else {
                (_mm_srli_epi16::<4>(low), _mm_slli_epi16::<2>(high))
            };
            let low = _mm_and_si128(low, _mm_set1_epi8(15));
            let high = _mm_and_si128(high, _mm_set1_epi8(0x30));
            let integers = _mm_sub_epi8(_mm_or_si128(low, high), _mm_set1_epi8(SIX_BIT_ZERO));
            times_factors(self.block, 0, integers)
        }
    }
}

/// A factor of `block` (0: of scales, 1: of minima) times the integers of the first or second array at `scales`.
///
/// # Safety
/// A block's factors and a group's integers; AVX-512 enabled by the caller.
#[inline(always)]
unsafe fn product(block: *const u8, scales: *const u8, factor: usize, array: usize) -> __m512 {
    // SAFETY: the caller's promise.
    unsafe {
        let integers = _mm_loadu_si128(scales.add(PANEL_COLUMNS * array).cast());
        times_factors(block, factor, integers)
    }
}

/// A factor of `block` (0: of scales, 1: of minima) times 16 signed bytes.
///
/// # Safety
/// A block's factors; AVX-512 enabled by the caller.
#[inline(always)]
unsafe fn times_factors(block: *const u8, factor: usize, integers: __m128i) -> __m512 {
    // SAFETY: the caller's promise.
    unsafe {
        let factors = _mm256_loadu_si256(block.add(2 * PANEL_COLUMNS * factor).cast());
        let integers = _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(integers));
        _mm512_mul_ps(integers, _mm512_cvtph_ps(factors))
    }
}

/// Codes of 2 or 3 bits of quad `quad`.
///
/// # Safety
/// A group's codes of `bits` bits at `codes`; AVX-512 enabled by the caller.
#[inline(always)]
unsafe fn short_codes(bits: u32, codes: *const u8, quad: usize) -> __m512i {
    // SAFETY: the caller's promise.
    unsafe {
        let load = |register: usize| _mm512_loadu_si512(codes.add(64 * register).cast());
        let low = match quad % 4 {
            0 => load(quad / 4),
            1 => _mm512_srli_epi16::<2>(load(quad / 4)),
            2 => _mm512_srli_epi16::<4>(load(quad / 4)),
            _ => _mm512_srli_epi16::<6>(load(quad / 4)),
        };
        let low = _mm512_and_si512(low, _mm512_set1_epi8(3));
        if bits == 2 {
            return low;
        }
        // Move the quad's high bit to bit 2.
        let high = match quad {
            0 => _mm512_slli_epi16::<2>(load(2)),
            1 => _mm512_slli_epi16::<1>(load(2)),
            2 => load(2),
            3 => _mm512_srli_epi16::<1>(load(2)),
            4 => _mm512_srli_epi16::<2>(load(2)),
            5 => _mm512_srli_epi16::<3>(load(2)),
            6 => _mm512_srli_epi16::<4>(load(2)),
            _ => _mm512_srli_epi16::<5>(load(2)),
        };
        // low | high & 4
        _mm512_ternarylogic_epi32::<0xf8>(low, high, _mm512_set1_epi8(4))
    }
}

/// Codes of quad `quad` of a group's codes: four low bits from the nibbles, the rest from the plane of high bits.
///
/// # Safety
/// A group's codes of `bits` bits at `codes`; AVX-512 enabled by the caller.
#[inline(always)]
unsafe fn quad_codes(bits: u32, codes: *const u8, quad: usize) -> __m512i {
    // SAFETY: the caller's promise.
    unsafe {
        if bits < 4 {
            return short_codes(bits, codes, quad);
        }
        let load = |register: usize| _mm512_loadu_si512(codes.add(64 * register).cast());
        let mut low = load(quad % 4);
        if quad >= 4 {
            low = _mm512_srli_epi16::<4>(low);
        }
        low = _mm512_and_si512(low, _mm512_set1_epi8(15));
        // Move the quad's high bits to bit 4.
        let (high, mask) = match (bits, quad) {
            (6, 0 | 4) => (_mm512_slli_epi16::<4>(load(4 + quad / 4)), 0x30),
            (6, 1 | 5) => (_mm512_slli_epi16::<2>(load(4 + quad / 4)), 0x30),
            (6, 2 | 6) => (load(4 + quad / 4), 0x30),
            (6, _) => (_mm512_srli_epi16::<2>(load(4 + quad / 4)), 0x30),
            (5, 0) => (_mm512_slli_epi16::<4>(load(4)), 0x10),
            (5, 1) => (_mm512_slli_epi16::<3>(load(4)), 0x10),
            (5, 2) => (_mm512_slli_epi16::<2>(load(4)), 0x10),
            (5, 3) => (_mm512_slli_epi16::<1>(load(4)), 0x10),
            (5, 4) => (load(4), 0x10),
            (5, 5) => (_mm512_srli_epi16::<1>(load(4)), 0x10),
            (5, 6) => (_mm512_srli_epi16::<2>(load(4)), 0x10),
            (5, _) => (_mm512_srli_epi16::<3>(load(4)), 0x10),
            _ => return low,
        };
        // low | high & mask
        _mm512_ternarylogic_epi32::<0xf8>(low, high, _mm512_set1_epi8(mask))
    }
}

/// Weights of a K-quant: a cursor with its format, and the scales of a part from a cursor.
macro_rules! blocked_weights {
    ($bits:literal, $format:ty, |$weights:ident, $part:ident| $scales:expr) => {
        impl Weights for Blocked<$bits> {
            type Format = $format;

            #[inline(always)]
            fn next(self) -> Self {
                self.next_group()
            }

            #[inline(always)]
            unsafe fn codes(self, quad: usize) -> __m512i {
                // SAFETY: the caller's promise.
                unsafe { quad_codes($bits, self.codes, quad) }
            }

            #[inline(always)]
            unsafe fn scales(self, $part: usize) -> <$format as Format>::Scales {
                let $weights = self;
                // SAFETY: the caller's promise.
                unsafe { $scales }
            }
        }
    };
}

blocked_weights!(4, Paired<false>, |weights, _part| {
    // See `pack::blocked` for the arithmetic.
    let scale = weights.product(0, 0);
    let offset = _mm512_cvtps_epi32(_mm512_sub_ps(scale, weights.product(1, 1)));
    let offset = _mm512_slli_epi32::<16>(offset);
    _mm512_mask_blend_epi16(0xaaaa_aaaa, _mm512_cvtps_epi32(scale), offset)
});

blocked_weights!(5, Floats<false, 0>, |weights, _part| FloatScales::new(
    weights.product(0, 0),
    Some(weights.product(1, 1)),
));

blocked_weights!(6, Floats<true, 32>, |weights, part| FloatScales::new(
    weights.product(0, part),
    None,
));

blocked_weights!(2, Floats<true, 0>, |weights, part| {
    let [scale, min] = weights.nibbles(part);
    FloatScales::new(scale, Some(min))
});

blocked_weights!(3, Floats<true, 4>, |weights, part| FloatScales::new(
    weights.six_bit_scales(part),
    None,
));

/// A packed group of a format with blocks of 32 weights whose scales precede the codes of the layout's blocks. `LAYOUT` is the
/// layout's index.
#[derive(Clone, Copy)]
pub(super) struct Grouped<const LAYOUT: usize> {
    /// The group's block.
    block: *const u8,
    scales: *const u8,
    codes: *const u8,
}

impl<const LAYOUT: usize> Grouped<LAYOUT> {
    const LAYOUT: QuantLayout = QuantLayout::ALL[LAYOUT];

    pub fn new(panel: Panel) -> Self {
        Self {
            block: panel.block(Self::LAYOUT, 0),
            scales: panel.scales(Self::LAYOUT, 0),
            codes: panel.codes(Self::LAYOUT, 0),
        }
    }

    #[inline(always)]
    fn next_group(self) -> Self {
        let layout = Self::LAYOUT;
        if layout.block_groups() == 1 {
            return Self {
                block: self.block,
                scales: opaque(self.scales.wrapping_add(layout.block_bytes())),
                codes: opaque(self.codes.wrapping_add(layout.block_bytes())),
            };
        }
        let codes = self.codes.wrapping_add(layout.code_bytes());
        let last_scales = layout.header_bytes() - layout.scale_bytes();
        if self.scales.addr() - self.block.addr() == last_scales {
            // The codes of a block end where the next block begins.
            return Self {
                block: codes,
                scales: opaque(codes.wrapping_add(layout.factor_bytes())),
                codes: opaque(codes.wrapping_add(layout.header_bytes())),
            };
        }
        Self {
            block: self.block,
            scales: opaque(self.scales.wrapping_add(layout.scale_bytes())),
            codes: opaque(codes),
        }
    }

    /// # Safety
    /// The group is in the panel; AVX-512 enabled by the caller.
    #[inline(always)]
    unsafe fn quad_codes(self, quad: usize) -> __m512i {
        // SAFETY: the caller's promise.
        unsafe {
            let codes = quad_codes(Self::LAYOUT.bits, self.codes, quad);
            match Self::LAYOUT.table {
                None => codes,
                Some(table) => {
                    let table = _mm_loadu_si128(table.codes().as_ptr().cast());
                    _mm512_shuffle_epi8(_mm512_broadcast_i32x4(table), codes)
                }
            }
        }
    }

    /// Scales, and minima if the layout has them, as f16.
    ///
    /// # Safety
    /// The group is in the panel; AVX-512 enabled by the caller.
    #[inline(always)]
    unsafe fn halves(self) -> FloatScales {
        // SAFETY: the caller's promise.
        unsafe {
            let scales = _mm512_cvtph_ps(_mm256_loadu_si256(self.scales.cast()));
            if !matches!(Self::LAYOUT.offset, Offset::Min) {
                return FloatScales::new(scales, None);
            }
            let mins = self.scales.add(2 * PANEL_COLUMNS);
            let mins = _mm512_cvtph_ps(_mm256_loadu_si256(mins.cast()));
            FloatScales::new(scales, Some(mins))
        }
    }

    /// Scales as exponents.
    ///
    /// # Safety
    /// The group is in the panel; AVX-512 enabled by the caller.
    #[inline(always)]
    unsafe fn exponents(self) -> FloatScales {
        // SAFETY: the caller's promise.
        unsafe {
            let exponents = _mm512_cvtepu8_epi32(_mm_loadu_si128(self.scales.cast()));
            let scales = _mm512_castsi512_ps(_mm512_slli_epi32::<23>(exponents));
            FloatScales::new(scales, None)
        }
    }

    /// Scales as integers times a factor of the block.
    ///
    /// # Safety
    /// The group is in the panel; AVX-512 enabled by the caller.
    #[inline(always)]
    unsafe fn products(self) -> FloatScales {
        // SAFETY: the caller's promise.
        unsafe { FloatScales::new(product(self.block, self.scales, 0, 0), None) }
    }

    /// Scales as integers, in pairs with offset 0.
    ///
    /// # Safety
    /// The group is in the panel; AVX-512 enabled by the caller.
    #[inline(always)]
    unsafe fn integers(self) -> __m512i {
        // SAFETY: the caller's promise.
        unsafe { _mm512_cvtepu16_epi32(_mm256_loadu_si256(self.scales.cast())) }
    }
}

/// Weights of a layout: a cursor, its format, and the method that loads the scales.
macro_rules! weights_of {
    ($cursor:ty, $format:ty, $scales:ident) => {
        impl Weights for $cursor {
            type Format = $format;

            #[inline(always)]
            fn next(self) -> Self {
                self.next_group()
            }

            #[inline(always)]
            unsafe fn codes(self, quad: usize) -> __m512i {
                // SAFETY: the caller's promise.
                unsafe { self.quad_codes(quad) }
            }

            #[inline(always)]
            unsafe fn scales(self, _part: usize) -> <$format as Format>::Scales {
                // SAFETY: the caller's promise.
                unsafe { self.$scales() }
            }
        }
    };
}

pub(super) type Q4_0 = Grouped<{ QuantLayout::Q4_0.index() }>;
pub(super) type Q5_0 = Grouped<{ QuantLayout::Q5_0.index() }>;
pub(super) type Q5_1 = Grouped<{ QuantLayout::Q5_1.index() }>;
pub(super) type Iq4Nl = Grouped<{ QuantLayout::IQ4_NL.index() }>;
pub(super) type Iq4Xs = Grouped<{ QuantLayout::IQ4_XS.index() }>;
pub(super) type Mxfp4 = Grouped<{ QuantLayout::MXFP4.index() }>;

weights_of!(Q4_0, Paired<false>, integers);
weights_of!(Q5_0, Floats<false, 16>, halves);
weights_of!(Q5_1, Floats<false, 0>, halves);
weights_of!(Iq4Nl, Floats<false, { table::ZERO_POINT }>, halves);
weights_of!(Iq4Xs, Floats<false, { table::ZERO_POINT }>, products);
weights_of!(Mxfp4, Floats<false, { table::ZERO_POINT }>, exponents);

/// Scales and minima as floats.
#[derive(Clone, Copy)]
pub(super) struct FloatScales {
    scale: __m512,
    /// An eighth of the minimum, because code sums are stored times eight. Unused in layouts without minima.
    min: __m512,
}

impl FloatScales {
    /// # Safety
    /// AVX-512 enabled by the caller.
    #[inline(always)]
    unsafe fn new(scale: __m512, min: Option<__m512>) -> Self {
        // SAFETY: the caller's promise.
        let min = min.map_or(scale, |min| unsafe {
            _mm512_mul_ps(min, _mm512_set1_ps(1.0 / pairs::ZERO_POINT as f32))
        });
        Self { scale, min }
    }
}

/// A packed group of Q8_0.
#[derive(Clone, Copy)]
pub(super) struct Bytes {
    record: *const u8,
}

impl Bytes {
    pub fn new(panel: Panel) -> Self {
        Self {
            record: panel.codes(QuantLayout::Q8_0, 0),
        }
    }
}

impl Weights for Bytes {
    type Format = Floats<false, 128>;
    const SINGLE_PANEL_ROWS: usize = BYTES_ROWS;

    #[inline(always)]
    fn next(self) -> Self {
        Self {
            record: opaque(self.record.wrapping_add(QuantLayout::Q8_0.block_bytes())),
        }
    }

    #[inline(always)]
    unsafe fn codes(self, quad: usize) -> __m512i {
        // SAFETY: the caller's promise.
        unsafe { _mm512_loadu_si512(self.record.add(64 * quad).cast()) }
    }

    #[inline(always)]
    unsafe fn scales(self, _part: usize) -> FloatScales {
        // SAFETY: the caller's promise; the scales are inside the group.
        unsafe {
            let scales = self.record.add(QuantLayout::Q8_0.code_bytes());
            FloatScales::new(_mm512_cvtph_ps(_mm256_loadu_si256(scales.cast())), None)
        }
    }
}

/// Scales, and minima if `ZERO_POINT` is 0, as floats. The layout is in const parameters, so that every branch on it is resolved
/// at compile time. `SPLIT`: each half of a group has its own scale.
pub(super) struct Floats<const SPLIT: bool, const ZERO_POINT: i32>;

impl<const SPLIT: bool, const ZERO_POINT: i32> Format for Floats<SPLIT, ZERO_POINT> {
    const SPLIT: bool = SPLIT;
    const COLUMN_SCALED: bool = false;
    /// With minima, 16 rows took 1.7 times as long as two blocks of eight (Q5_K): dot products were spilled, too.
    const UNPACKED_ROWS: usize = if ZERO_POINT == 0 {
        BYTES_ROWS
    } else {
        UNPACKED_ROWS
    };
    const COMPUTED_SUMS: bool = true;
    const CODE_OFFSET: i8 = if ZERO_POINT == 0 {
        0
    } else {
        (EXPANDED_ZERO_POINT - ZERO_POINT) as i8
    };
    const ARRAYS: usize = if SPLIT { 2 } else { 1 } * if ZERO_POINT == 0 { 2 } else { 1 };
    type Scales = FloatScales;

    /// Minus the zero point times the sums, as integers; without a zero point, eight times the sums, as floats.
    #[inline(always)]
    unsafe fn tile_sums(tile: &TileGroup, part: usize) -> __m128i {
        // The low half of an initial sum is the code sum times -8.
        let (of_all, of_low) = if ZERO_POINT == 0 {
            (-1, pairs::ZERO_POINT)
        } else {
            (ZERO_POINT / pairs::ZERO_POINT, -ZERO_POINT)
        };
        // SAFETY: the caller's promise.
        unsafe {
            let all = || {
                if ZERO_POINT == pairs::ZERO_POINT / 2 {
                    _mm_srai_epi32::<1>(low_halves_times(&tile.initial_sums, 1))
                } else {
                    low_halves_times(&tile.initial_sums, of_all)
                }
            };
            let low = || low_halves_times(&tile.low_sums, of_low);
            let sums = match (SPLIT, part) {
                (false, _) => all(),
                (true, 0) => low(),
                (true, _) => _mm_sub_epi32(all(), low()),
            };
            if ZERO_POINT == 0 {
                _mm_castps_si128(_mm_cvtepi32_ps(sums))
            } else {
                sums
            }
        }
    }

    #[inline(always)]
    unsafe fn initial_sum(row_sum: __m512i) -> __m512i {
        if ZERO_POINT == 0 {
            // SAFETY: the caller's promise.
            unsafe { _mm512_setzero_si512() }
        } else {
            row_sum
        }
    }

    #[inline(always)]
    unsafe fn value(dots: __m512i, scales: FloatScales, row_sum: __m512i) -> __m512 {
        // SAFETY: the caller's promise.
        unsafe {
            let value = _mm512_mul_ps(_mm512_cvtepi32_ps(dots), scales.scale);
            if ZERO_POINT != 0 {
                return value;
            }
            _mm512_fmadd_ps(_mm512_castsi512_ps(row_sum), scales.min, value)
        }
    }

    #[inline(always)]
    unsafe fn store_scales(scales: FloatScales, part: usize, to: *mut Array) {
        // SAFETY: the caller's promise.
        unsafe {
            if ZERO_POINT == 0 {
                _mm512_store_ps(to.add(2 * part).cast(), scales.scale);
                _mm512_store_ps(to.add(2 * part + 1).cast(), scales.min);
            } else {
                _mm512_store_ps(to.add(part).cast(), scales.scale);
            }
        }
    }

    #[inline(always)]
    unsafe fn load_scales(from: *const Array, part: usize) -> FloatScales {
        // SAFETY: the caller's promise.
        unsafe {
            if ZERO_POINT == 0 {
                return FloatScales {
                    scale: _mm512_load_ps(from.add(2 * part).cast()),
                    min: _mm512_load_ps(from.add(2 * part + 1).cast()),
                };
            }
            let scale = _mm512_load_ps(from.add(part).cast());
            FloatScales { scale, min: scale }
        }
    }
}

/// One cache line.
#[repr(C, align(64))]
#[derive(Debug, Clone, Copy)]
struct Line(Array);

// SAFETY: plain numbers.
unsafe impl Plain for Line {}

/// Most cache lines of an expanded group: its codes, and scales with minima or scales of two halves.
pub(in crate::gemm) const MAX_EXPANDED_LINES: usize = QUADS + 4;

/// Buffers for two expanded panels.
#[derive(Debug)]
pub(in crate::gemm) struct ExpandedPanels {
    /// `[2, ≤ inputs / 32 * MAX_EXPANDED_LINES]`
    lines: Buffer<Line>,
    /// See [`separate_add_pipes`].
    pub(in crate::gemm) separate_add_pipes: bool,
}

impl ExpandedPanels {
    /// For panels of at most `inputs` inputs.
    pub fn new(inputs: usize) -> Result<Self, KernelError> {
        Ok(Self {
            lines: Buffer::new(2 * inputs.div_ceil(GROUP) * MAX_EXPANDED_LINES)?,
            separate_add_pipes: separate_add_pipes(),
        })
    }

    /// Buffer for `groups` expanded groups of the first or second panel.
    ///
    /// # Panics
    /// If the panel is longer than the `inputs` given to `new`.
    pub fn panel(&mut self, groups: usize, at: usize) -> *mut u8 {
        let count = groups * MAX_EXPANDED_LINES;
        assert!((at + 1) * count <= self.lines.len());
        // SAFETY: inside the buffer by the check.
        unsafe { self.lines.ptr().add(at * count).cast() }
    }
}
