//! A panel's weights as the loop over groups takes them: as they are packed, or expanded beforehand.
//!
//! Taking a group of Q4_1 apart costs seventeen operations on the ports that dot products need, as much as a
//! row and a half. A panel that many rows share is therefore taken apart once, into memory of the worker that
//! stays in its caches. The numbers are the same, and so are a row's bits.

use std::arch::asm;
use std::arch::x86_64::*;

use super::QUADS;
use crate::arena::{Buffer, Plain};
use crate::error::KernelError;
use crate::gemm::{MAGIC, Panel};
use crate::pack::layout::{GROUP, Offset, PANEL_COLUMNS, QuantLayout};

/// What becomes of 16 columns' dot products over a group, or over half of one.
#[derive(Clone, Copy)]
pub(super) struct Scales {
    pub scale: __m512,
    /// `-MAGIC * scale`; unused unless scales are halves.
    pub back: __m512,
    pub min: __m512,
}

/// The same, in memory.
#[repr(C, align(64))]
#[derive(Debug, Clone, Copy)]
struct WideScales {
    scale: [f32; PANEL_COLUMNS],
    back: [f32; PANEL_COLUMNS],
    min: [f32; PANEL_COLUMNS],
}

// SAFETY: plain numbers.
unsafe impl Plain for WideScales {}

/// The weights of one group and of those behind it.
///
/// # Safety
/// Methods read the group and execute AVX-512 instructions, which the caller has enabled.
pub(super) trait Weights: Copy {
    /// The group's halves have scales of their own.
    const SPLIT: bool;
    /// Scales are halves: eleven bits.
    const HALF: bool;
    /// The group behind this one.
    fn next(self) -> Self;
    /// Codes of quad `quad`.
    ///
    /// # Safety
    /// The trait's.
    unsafe fn codes(self, quad: usize) -> __m512i;
    /// Of the group, or of its half `part`.
    ///
    /// # Safety
    /// The trait's.
    unsafe fn scales(self, part: usize) -> Scales;
}

/// The same pointer, of which the compiler knows nothing, so that it keeps it in a register of its own.
///
/// Otherwise it addresses all tiles by one base and an index. An instruction with an indexed memory operand
/// is two in the pipeline of Intel's cores, and this loop has a hundred of them.
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

/// A record as it is packed, its layout as types, so that every branch on it is decided at compile time.
#[derive(Clone, Copy)]
pub(super) struct Packed<const BITS: u32, const SPLIT: bool, const HALF: bool, const MIN: bool> {
    record: *const u8,
    zero: f32,
}

impl<const BITS: u32, const SPLIT: bool, const HALF: bool, const MIN: bool>
    Packed<BITS, SPLIT, HALF, MIN>
{
    /// Both offsets stand for `Offset::Zero(_)` where there are no minima: only sizes are asked for.
    pub const LAYOUT: QuantLayout = QuantLayout {
        bits: BITS,
        group: if SPLIT { GROUP / 2 } else { GROUP },
        half_scales: HALF,
        offset: if MIN { Offset::Min } else { Offset::Zero(0) },
    };

    pub fn new(panel: Panel, zero: i32) -> Self {
        Self {
            record: panel.data,
            zero: zero as f32,
        }
    }

    /// Sixteen scales or minima.
    ///
    /// # Safety
    /// They stand at `from`; AVX-512 enabled by the caller.
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

    /// Take `groups` groups apart into `scratch`.
    ///
    /// # Safety
    /// So many groups stand here; AVX-512 enabled by the caller.
    #[inline(always)]
    pub unsafe fn expand(
        self,
        groups: usize,
        scratch: &mut ExpandedPanel,
    ) -> Expanded<SPLIT, HALF> {
        let parts = if SPLIT { 2 } else { 1 };
        assert!(groups * EXPANDED_BYTES <= scratch.codes.len());
        assert!(groups * parts <= scratch.scales.len());
        let (codes, scales) = (scratch.codes.ptr(), scratch.scales.ptr());
        let in_place = BITS == 8;
        // SAFETY: groups `0..groups` of the panel, and of the scratch (checked), which is ours alone by `&mut`.
        unsafe {
            let mut here = self;
            for group in 0..groups {
                if !in_place {
                    let codes = codes.add(group * EXPANDED_BYTES);
                    for quad in 0..QUADS {
                        _mm512_store_si512(codes.add(64 * quad).cast(), here.codes(quad));
                    }
                }
                for part in 0..parts {
                    let wide = &mut *scales.add(group * parts + part);
                    let Scales { scale, back, min } = here.scales(part);
                    _mm512_store_ps(wide.scale.as_mut_ptr(), scale);
                    _mm512_store_ps(wide.back.as_mut_ptr(), back);
                    _mm512_store_ps(wide.min.as_mut_ptr(), min);
                }
                here = here.next();
            }
        }
        Expanded {
            codes: if in_place { self.record } else { codes },
            codes_stride: if in_place {
                Self::LAYOUT.record_bytes()
            } else {
                EXPANDED_BYTES
            },
            scales,
        }
    }
}

impl<const BITS: u32, const SPLIT: bool, const HALF: bool, const MIN: bool> Weights
    for Packed<BITS, SPLIT, HALF, MIN>
{
    const SPLIT: bool = SPLIT;
    const HALF: bool = HALF;

    #[inline(always)]
    fn next(self) -> Self {
        let record = opaque(self.record.wrapping_add(Self::LAYOUT.record_bytes()));
        Self { record, ..self }
    }

    #[inline(always)]
    unsafe fn codes(self, quad: usize) -> __m512i {
        let register = if BITS == 8 { quad } else { quad % 4 };
        // SAFETY: the caller's promise.
        unsafe {
            let bytes = _mm512_loadu_si512(self.record.add(64 * register).cast());
            let nibble = _mm512_set1_epi8(15);
            match (BITS, quad / 4) {
                (8, _) => bytes,
                (_, 0) => _mm512_and_si512(bytes, nibble),
                _ => _mm512_and_si512(_mm512_srli_epi16::<4>(bytes), nibble),
            }
        }
    }

    #[inline(always)]
    unsafe fn scales(self, part: usize) -> Scales {
        // SAFETY: the caller's promise; a part's scales and minima are inside the record.
        unsafe {
            let from = self.record.add(Self::LAYOUT.code_bytes());
            let scale = Self::load(from.add(part * Self::LAYOUT.scale_bytes() / 2));
            Scales {
                scale,
                back: _mm512_mul_ps(scale, _mm512_set1_ps(-MAGIC)),
                min: if MIN {
                    Self::load(from.add(Self::LAYOUT.scale_bytes()))
                } else {
                    _mm512_mul_ps(scale, _mm512_set1_ps(-self.zero))
                },
            }
        }
    }
}

/// Bytes of a group's expanded codes.
const EXPANDED_BYTES: usize = PANEL_COLUMNS * GROUP;

/// Room for one panel taken apart.
#[derive(Debug)]
pub(in crate::gemm) struct ExpandedPanel {
    codes: Buffer<u8>,
    scales: Buffer<WideScales>,
}

impl ExpandedPanel {
    /// For panels of at most `inputs` inputs.
    pub fn new(inputs: usize) -> Result<Self, KernelError> {
        let groups = inputs.div_ceil(GROUP);
        Ok(Self {
            codes: Buffer::new(groups * EXPANDED_BYTES)?,
            // Some formats have scales for each half of a group.
            scales: Buffer::new(2 * groups)?,
        })
    }

    /// Room for the codes of `groups` groups, a byte a code.
    ///
    /// # Panics
    /// The panel is longer than the longest this was made for.
    pub fn codes(&mut self, groups: usize) -> *mut u8 {
        assert!(groups * EXPANDED_BYTES <= self.codes.len());
        self.codes.ptr()
    }
}

/// A byte a code, and scales as floats.
#[derive(Clone, Copy)]
pub(super) struct Expanded<const SPLIT: bool, const HALF: bool> {
    codes: *const u8,
    codes_stride: usize,
    scales: *const WideScales,
}

impl<const SPLIT: bool, const HALF: bool> Weights for Expanded<SPLIT, HALF> {
    const SPLIT: bool = SPLIT;
    const HALF: bool = HALF;

    #[inline(always)]
    fn next(self) -> Self {
        let parts = if SPLIT { 2 } else { 1 };
        Self {
            codes: opaque(self.codes.wrapping_add(self.codes_stride)),
            scales: opaque(self.scales.wrapping_add(parts)),
            ..self
        }
    }

    #[inline(always)]
    unsafe fn codes(self, quad: usize) -> __m512i {
        // SAFETY: the caller's promise.
        unsafe { _mm512_loadu_si512(self.codes.add(64 * quad).cast()) }
    }

    #[inline(always)]
    unsafe fn scales(self, part: usize) -> Scales {
        // SAFETY: the caller's promise.
        unsafe {
            let wide = &*self.scales.add(part);
            Scales {
                scale: _mm512_load_ps(wide.scale.as_ptr()),
                back: _mm512_load_ps(wide.back.as_ptr()),
                min: _mm512_load_ps(wide.min.as_ptr()),
            }
        }
    }
}
