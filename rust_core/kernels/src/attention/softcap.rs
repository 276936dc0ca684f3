//! Soft-capped scores, as in Gemma 2: `softcap * tanh(score / softcap)`.

use super::CHUNK;
use super::task::Task;
use crate::simd::{LANES, Lanes, tanh};

/// The cap of a task's scores, which are of base 2.
#[derive(Debug, Clone, Copy)]
pub(super) struct Softcap {
    limit: f32,
    inverse: f32,
}

impl Softcap {
    /// None if the task has none.
    #[inline(always)]
    pub fn of(task: &Task<'_>) -> Option<Self> {
        let limit = task.softcap * std::f32::consts::LOG2_E;
        (limit > 0.0).then(|| Self {
            limit,
            inverse: 1.0 / limit,
        })
    }

    /// Cap the scores of the first `tiles` tiles of some rows.
    ///
    /// # Safety
    /// At most `CHUNK / 16` tiles; the level's instructions are enabled.
    #[inline(always)]
    pub unsafe fn apply<L: Lanes>(self, tiles: usize, rows: &mut [[f32; CHUNK]]) {
        for scores in rows {
            for scores in &mut scores.as_chunks_mut::<LANES>().0[..tiles] {
                // SAFETY: sixteen scores; the instructions are the caller's promise.
                unsafe {
                    let x = L::load(scores.as_ptr()).mul(L::splat(self.inverse));
                    let capped = tanh(x).mul(L::splat(self.limit));
                    capped.store(scores.as_mut_ptr());
                }
            }
        }
    }
}
