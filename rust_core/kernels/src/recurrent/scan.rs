//! The recurrence of a head of gated DeltaNet or Mamba2, over some tokens of one run.
//!
//! The state is a matrix `S` of `key_dim` rows and `value_dim` columns. For each token, with a decay `a` and a strength `b`:
//!
//! * Mamba2: `S = a S + k (b v)ᵀ`, where B is `k`, C is `q`, and `b` is the time step;
//! * gated DeltaNet: `S = a S + k (b (v - a Sᵀ k))ᵀ`;
//!
//! and the output is `o = Sᵀ q`. Columns are independent of each other. The state is stored in panels of 16 columns,
//! `[panels, key_dim, 16]`, two of which stay in the first-level cache while the tokens pass: memory is read and written once
//! a call. `Sᵀ k` of a token is summed while the previous token's update is applied.
//!
//! Each sum runs over the state's rows in order, whether it was computed alone or with the previous token's update: the bits
//! do not depend on how tokens are divided among calls.

use crate::arena::Buffer;
use crate::dispatch::Level;
use crate::error::KernelError;
use crate::norm::rms_scale;
use crate::simd::{LANES, Lanes, by_level};

/// The most tokens of a call: their queries and keys stay in the first-level cache beside the state.
pub const MAX_TOKENS: usize = 16;

/// Panels of the state that pass over the tokens together.
const TOGETHER: usize = 2;

/// Added to the square of a length before vectors are divided by it.
const LENGTH_EPS: f32 = 1e-6;

/// Shape of a head's state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HeadShape {
    pub key_dim: usize,
    pub value_dim: usize,
    /// Whether the values that the state already holds for the key are subtracted (the delta rule).
    pub delta: bool,
}

impl HeadShape {
    /// `value_dim`, padded to whole panels.
    pub fn padded(&self) -> usize {
        self.value_dim.next_multiple_of(LANES)
    }

    /// Floats of a state.
    pub fn state_len(&self) -> usize {
        self.key_dim * self.padded()
    }
}

/// Inputs and outputs of up to [`MAX_TOKENS`] tokens of one head.
#[derive(Debug)]
pub struct ScanScratch {
    /// `[MAX_TOKENS, key_dim]`
    pub q: Buffer<f32>,
    pub k: Buffer<f32>,
    /// `[MAX_TOKENS, value_dim padded]`
    pub v: Buffer<f32>,
    pub o: Buffer<f32>,
    pub decay: [f32; MAX_TOKENS],
    pub strength: [f32; MAX_TOKENS],
}

impl ScanScratch {
    /// For heads of at most these dimensions.
    pub fn new(key_dim: usize, value_dim: usize) -> Result<Self, KernelError> {
        let padded = value_dim.next_multiple_of(LANES);
        Ok(Self {
            q: Buffer::new(MAX_TOKENS * key_dim)?,
            k: Buffer::new(MAX_TOKENS * key_dim)?,
            v: Buffer::new(MAX_TOKENS * padded)?,
            o: Buffer::new(MAX_TOKENS * padded)?,
            decay: [0.0; MAX_TOKENS],
            strength: [0.0; MAX_TOKENS],
        })
    }
}

/// `x / |x|` times `factor`.
///
/// # Safety
/// The machine has the level.
pub unsafe fn normalize_length(level: Level, x: &[f32], factor: f32, out: &mut [f32]) {
    let n = x.len() as f32;
    // SAFETY: the caller's promise.
    let scale = unsafe { rms_scale(level, x, LENGTH_EPS / n) } / n.sqrt() * factor;
    for (out, x) in out.iter_mut().zip(x) {
        *out = x * scale;
    }
}

/// Tokens of a head, as they are in a [`ScanScratch`].
#[derive(Debug, Clone, Copy)]
struct Tokens<'a> {
    shape: HeadShape,
    q: *const f32,
    k: *const f32,
    v: *const f32,
    o: *mut f32,
    decay: &'a [f32],
    strength: &'a [f32],
}

impl Tokens<'_> {
    /// Query and key of a token.
    #[inline(always)]
    fn q_and_k(&self, token: usize) -> (*const f32, *const f32) {
        let at = token * self.shape.key_dim;
        (self.q.wrapping_add(at), self.k.wrapping_add(at))
    }

    /// Where a token's elements from `column` on are in `v` and `o`.
    #[inline(always)]
    fn column(&self, token: usize, column: usize) -> usize {
        token * self.shape.padded() + column
    }
}

/// `Sᵀ k` of `P` panels of the state.
///
/// # Safety
/// The level's instructions are enabled; the panels and `k` have `rows` rows.
#[inline(always)]
#[allow(
    clippy::needless_range_loop,
    reason = "iterators over arrays of registers put them into memory"
)]
unsafe fn recall<L: Lanes, const P: usize>(
    state: *const f32,
    rows: usize,
    k: *const f32,
) -> [L; P] {
    // SAFETY: the caller's promise.
    unsafe {
        let mut sums = [L::splat(0.0); P];
        for i in 0..rows {
            let k = L::splat(*k.add(i));
            for p in 0..P {
                let row = L::load(state.add((p * rows + i) * LANES));
                sums[p] = row.mul_add(k, sums[p]);
            }
        }
        sums
    }
}

/// `S = a S + k dᵀ` of `P` panels; returns `Sᵀ q`, and `Sᵀ next` if `RECALL`.
///
/// # Safety
/// The level's instructions are enabled; the panels, `q`, `k` and `next` have `rows` rows.
#[inline(always)]
#[allow(
    clippy::needless_range_loop,
    reason = "iterators over arrays of registers put them into memory"
)]
unsafe fn update<L: Lanes, const P: usize, const RECALL: bool>(
    state: *mut f32,
    rows: usize,
    decay: L,
    (q, k, next): (*const f32, *const f32, *const f32),
    addend: [L; P],
) -> ([L; P], [L; P]) {
    // SAFETY: the caller's promise.
    unsafe {
        let (mut outputs, mut recalled) = ([L::splat(0.0); P], [L::splat(0.0); P]);
        for i in 0..rows {
            let (q, k) = (L::splat(*q.add(i)), L::splat(*k.add(i)));
            for p in 0..P {
                let at = state.add((p * rows + i) * LANES);
                let row = k.mul_add(addend[p], L::load(at).mul(decay));
                row.store(at);
                outputs[p] = row.mul_add(q, outputs[p]);
                if RECALL {
                    recalled[p] = row.mul_add(L::splat(*next.add(i)), recalled[p]);
                }
            }
        }
        (outputs, recalled)
    }
}

/// Pass the tokens over `P` panels of the state, whose first column is `column`.
///
/// # Safety
/// As [`scan_tokens`], with the level's instructions enabled.
#[inline(always)]
#[allow(
    clippy::needless_range_loop,
    reason = "iterators over arrays of registers put them into memory"
)]
unsafe fn scan_panels<L: Lanes, const P: usize>(
    tokens: Tokens<'_>,
    state: *mut f32,
    column: usize,
) {
    let (rows, delta) = (tokens.shape.key_dim, tokens.shape.delta);
    let count = tokens.decay.len();
    // SAFETY: the caller's promise.
    unsafe {
        let mut recalled = [L::splat(0.0); P];
        if delta {
            recalled = recall::<L, P>(state, rows, tokens.k);
        }
        for token in 0..count {
            let (decay, strength) = (
                L::splat(tokens.decay[token]),
                L::splat(tokens.strength[token]),
            );
            let mut addend = [L::splat(0.0); P];
            for p in 0..P {
                let at = tokens.column(token, column + p * LANES);
                let mut value = L::load(tokens.v.add(at));
                if delta {
                    value = value.sub(recalled[p].mul(decay));
                }
                addend[p] = value.mul(strength);
            }
            let (q, k) = tokens.q_and_k(token);
            let outputs;
            if delta && token + 1 < count {
                let (_, next) = tokens.q_and_k(token + 1);
                (outputs, recalled) =
                    update::<L, P, true>(state, rows, decay, (q, k, next), addend);
            } else {
                (outputs, _) = update::<L, P, false>(state, rows, decay, (q, k, k), addend);
            }
            for p in 0..P {
                let at = tokens.column(token, column + p * LANES);
                outputs[p].store(tokens.o.add(at));
            }
        }
    }
}

/// # Safety
/// As [`scan_tokens`], with the level's instructions enabled.
#[inline(always)]
unsafe fn scan_body<L: Lanes>(tokens: Tokens<'_>, state: *mut f32) {
    let (columns, panel) = (tokens.shape.padded(), tokens.shape.key_dim * LANES);
    let paired = columns / LANES / TOGETHER * TOGETHER * LANES;
    // SAFETY: the caller's promise, panel by panel.
    unsafe {
        for column in (0..paired).step_by(TOGETHER * LANES) {
            scan_panels::<L, TOGETHER>(tokens, state.add(column / LANES * panel), column);
        }
        if paired < columns {
            scan_panels::<L, 1>(tokens, state.add(paired / LANES * panel), paired);
        }
    }
}

by_level! {
    /// # Safety
    /// The machine has the level; the arrays are valid for the tokens, and no other thread accesses `o` and the state.
    unsafe fn scan_tokens(tokens: Tokens<'_>, state: *mut f32) = scan_body;
}

/// Apply `tokens` tokens to a head's state, from `scratch.q`, `k`, `v`, `decay` and `strength`; writes `scratch.o`.
///
/// # Safety
/// The machine has the level; the state has [`HeadShape::state_len`] floats, which no other thread accesses.
///
/// # Panics
/// There are more than [`MAX_TOKENS`] tokens, or the scratch is of smaller heads.
pub unsafe fn scan(
    level: Level,
    shape: HeadShape,
    tokens: usize,
    scratch: &mut ScanScratch,
    state: *mut f32,
) {
    assert!(tokens <= MAX_TOKENS);
    let (keys, values) = (tokens * shape.key_dim, tokens * shape.padded());
    assert!(scratch.q.len() >= keys && scratch.k.len() >= keys);
    assert!(scratch.v.len() >= values && scratch.o.len() >= values);
    if tokens == 0 {
        return;
    }
    let of_scratch = Tokens {
        shape,
        q: scratch.q.ptr(),
        k: scratch.k.ptr(),
        v: scratch.v.ptr(),
        o: scratch.o.ptr(),
        decay: &scratch.decay[..tokens],
        strength: &scratch.strength[..tokens],
    };
    // SAFETY: by contract; the arrays are long enough (checked).
    unsafe { scan_tokens(level, of_scratch, state) };
}
