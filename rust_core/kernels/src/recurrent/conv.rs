//! Causal depthwise convolution of 16 channels at a time, over the tokens of one run.
//!
//! Reads and writes each input, output and state once. The history of a panel of channels is its last `kernel - 1` inputs,
//! oldest first: `[kernel - 1, 16]`.

use crate::norm::silu_gate;
use crate::simd::{LANES, Lanes, by_level};

/// Longest supported convolution.
pub const MAX_KERNEL: usize = 8;

/// Tokens whose activation functions are computed together, which hides their latency.
const TOGETHER: usize = 4;

/// Factors of [`silu_gate`] that leave its result as it is.
static ONES: [f32; TOGETHER * LANES] = [1.0; TOGETHER * LANES];

/// Weights of a convolution.
#[derive(Debug)]
pub struct ConvWeights {
    pub kernel: usize,
    /// `[panels, kernel, 16]`, the oldest input's first.
    taps: Vec<f32>,
    /// `[panels, 16]`; zeros if there is none.
    bias: Vec<f32>,
}

impl ConvWeights {
    /// Arrange `[channels, kernel]` weights and `[channels]` biases.
    ///
    /// # Panics
    /// The lengths do not fit, or the kernel is longer than [`MAX_KERNEL`].
    pub fn new(kernel: usize, weights: &[f32], bias: Option<&[f32]>) -> Self {
        assert!((1..=MAX_KERNEL).contains(&kernel) && weights.len().is_multiple_of(kernel));
        let channels = weights.len() / kernel;
        assert!(bias.is_none_or(|bias| bias.len() == channels));
        let panels = channels.div_ceil(LANES);
        let mut arranged = Self {
            kernel,
            taps: vec![0.0; panels * kernel * LANES],
            bias: vec![0.0; panels * LANES],
        };
        for (channel, weights) in weights.chunks_exact(kernel).enumerate() {
            let (panel, lane) = (channel / LANES, channel % LANES);
            for (at, &weight) in weights.iter().enumerate() {
                arranged.taps[(panel * kernel + at) * LANES + lane] = weight;
            }
            if let Some(bias) = bias {
                arranged.bias[channel] = bias[channel];
            }
        }
        arranged
    }

    /// Panels of 16 channels.
    pub fn panels(&self) -> usize {
        self.bias.len() / LANES
    }

    /// Floats of a panel's history.
    pub fn history_len(&self) -> usize {
        (self.kernel - 1) * LANES
    }

    fn taps_of(&self, panel: usize) -> *const f32 {
        self.taps[panel * self.kernel * LANES..][..self.kernel * LANES].as_ptr()
    }

    fn bias_of(&self, panel: usize) -> *const f32 {
        self.bias[panel * LANES..][..LANES].as_ptr()
    }
}

/// 16 columns of some rows: row `t` begins at `start[t * stride]`.
#[derive(Debug, Clone, Copy)]
pub struct Columns {
    pub start: *mut f32,
    pub stride: usize,
}

impl Columns {
    /// Where row `row` begins.
    #[inline(always)]
    fn row(self, row: usize) -> *mut f32 {
        self.start.wrapping_add(row * self.stride)
    }
}

/// A run's convolution of one panel of channels.
#[derive(Debug, Clone, Copy)]
pub struct ConvRun<'a> {
    pub weights: &'a ConvWeights,
    pub panel: usize,
    /// [`ConvWeights::history_len`] floats, replaced by those after the run.
    pub history: *mut f32,
    /// Whether the history is that of no tokens, whatever it contains.
    pub fresh: bool,
    pub tokens: usize,
    pub input: Columns,
    pub output: Columns,
}

/// What is multiplied before and after a convolution, or computed of its result.
trait Around {
    /// The input of token `at`.
    ///
    /// # Safety
    /// The level's instructions are enabled; 16 values at `input`, and in the token's rows.
    unsafe fn input<L: Lanes>(&self, input: *const f32, at: usize) -> L;
    /// Write the outputs of tokens `at..at + count` from their convolutions.
    ///
    /// # Safety
    /// The level's instructions are enabled; no other thread accesses the outputs.
    unsafe fn write<L: Lanes>(
        &self,
        sums: &[f32; TOGETHER * LANES],
        at: usize,
        count: usize,
        output: Columns,
    );
}

/// `silu(conv(x))`.
struct Silu;

impl Around for Silu {
    #[inline(always)]
    unsafe fn input<L: Lanes>(&self, input: *const f32, _at: usize) -> L {
        // SAFETY: the caller's promise.
        unsafe { L::load(input) }
    }

    #[inline(always)]
    unsafe fn write<L: Lanes>(
        &self,
        sums: &[f32; TOGETHER * LANES],
        at: usize,
        count: usize,
        output: Columns,
    ) {
        // SAFETY: the caller's promise; the arrays hold so many values.
        unsafe {
            if count == 1 {
                let [y] = silu_gate::<L, 1>(sums.as_ptr(), ONES.as_ptr());
                return y.store(output.row(at));
            }
            let activated = silu_gate::<L, TOGETHER>(sums.as_ptr(), ONES.as_ptr());
            for (i, y) in activated.into_iter().enumerate().take(count) {
                y.store(output.row(at + i));
            }
        }
    }
}

/// `after * conv(before * x)`.
struct Gates {
    before: Columns,
    after: Columns,
}

impl Around for Gates {
    #[inline(always)]
    unsafe fn input<L: Lanes>(&self, input: *const f32, at: usize) -> L {
        // SAFETY: the caller's promise.
        unsafe { L::load(input).mul(L::load(self.before.row(at))) }
    }

    #[inline(always)]
    unsafe fn write<L: Lanes>(
        &self,
        sums: &[f32; TOGETHER * LANES],
        at: usize,
        count: usize,
        output: Columns,
    ) {
        for i in 0..count {
            // SAFETY: the caller's promise; the array holds so many values.
            unsafe {
                let y = L::load(sums.as_ptr().add(i * LANES));
                y.mul(L::load(self.after.row(at + i)))
                    .store(output.row(at + i));
            }
        }
    }
}

/// # Safety
/// As [`convolve_silu`], with the level's instructions enabled; the kernel is `K`.
#[inline(always)]
#[allow(
    clippy::needless_range_loop,
    reason = "iterators over arrays of registers put them into memory"
)]
unsafe fn convolve<L: Lanes, const K: usize>(run: ConvRun<'_>, around: &impl Around) {
    // SAFETY: the caller's promise; taps and bias were measured with the weights.
    unsafe {
        let (taps, bias) = (
            run.weights.taps_of(run.panel),
            run.weights.bias_of(run.panel),
        );
        let mut past = [L::splat(0.0); K];
        if !run.fresh {
            for i in 0..K - 1 {
                past[i + 1] = L::load(run.history.add(i * LANES));
            }
        }
        for first in (0..run.tokens).step_by(TOGETHER) {
            let count = TOGETHER.min(run.tokens - first);
            let mut sums = [0.0; TOGETHER * LANES];
            for i in 0..count {
                for j in 0..K - 1 {
                    past[j] = past[j + 1];
                }
                past[K - 1] = around.input::<L>(run.input.row(first + i), first + i);
                let mut sum = L::load(bias);
                for j in 0..K {
                    sum = past[j].mul_add(L::load(taps.add(j * LANES)), sum);
                }
                sum.store(sums.as_mut_ptr().add(i * LANES));
            }
            around.write::<L>(&sums, first, count, run.output);
        }
        if run.tokens > 0 {
            for i in 0..K - 1 {
                past[i + 1].store(run.history.add(i * LANES));
            }
        }
    }
}

/// # Safety
/// As [`convolve_silu`], with the level's instructions enabled.
#[inline(always)]
unsafe fn by_kernel<L: Lanes>(run: ConvRun<'_>, around: &impl Around) {
    // SAFETY: the caller's promise.
    unsafe {
        match run.weights.kernel {
            1 => convolve::<L, 1>(run, around),
            2 => convolve::<L, 2>(run, around),
            3 => convolve::<L, 3>(run, around),
            4 => convolve::<L, 4>(run, around),
            5 => convolve::<L, 5>(run, around),
            6 => convolve::<L, 6>(run, around),
            7 => convolve::<L, 7>(run, around),
            8 => convolve::<L, 8>(run, around),
            _ => unreachable!("checked when the weights were arranged"),
        }
    }
}

/// # Safety
/// As [`convolve_silu`], with the level's instructions enabled.
#[inline(always)]
unsafe fn convolve_silu_body<L: Lanes>(run: ConvRun<'_>) {
    // SAFETY: the caller's promise.
    unsafe { by_kernel::<L>(run, &Silu) }
}

by_level! {
    /// `output = silu(conv(input))`.
    ///
    /// # Safety
    /// The machine has the level. Input and output are valid for 16 columns of the run's tokens and the history for its
    /// length; no other thread accesses history and output; the output is not the input.
    pub unsafe fn convolve_silu(run: ConvRun<'_>) = convolve_silu_body;
}

/// # Safety
/// As [`convolve_gated`], with the level's instructions enabled.
#[inline(always)]
unsafe fn convolve_gated_body<L: Lanes>(run: ConvRun<'_>, before: Columns, after: Columns) {
    // SAFETY: the caller's promise.
    unsafe { by_kernel::<L>(run, &Gates { before, after }) }
}

by_level! {
    /// `output = after * conv(before * input)`; the history is that of `before * input`.
    ///
    /// # Safety
    /// As [`convolve_silu`]; `before` and `after` are valid for as many rows as the input.
    pub unsafe fn convolve_gated(run: ConvRun<'_>, before: Columns, after: Columns) = convolve_gated_body;
}
