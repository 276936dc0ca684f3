//! The DRY penalty of one row, for executors that sample elsewhere.

use numpy::{PyReadonlyArray1, PyReadonlyArray2, PyUntypedArrayMethods};
use pravaha_kernels::sampler::dry::{Breakers, MAX_BREAKER_TAIL, Params, Scratch, penalties};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// See `engine/_core.pyi`.
#[pyfunction]
#[pyo3(signature = (tokens, *, multiplier, base, allowed_length, penalty_last_n, breaker_heads, breaker_tails))]
#[allow(clippy::too_many_arguments)]
fn dry_penalties(
    tokens: PyReadonlyArray1<'_, i32>,
    multiplier: f32,
    base: f32,
    allowed_length: u32,
    penalty_last_n: i32,
    breaker_heads: PyReadonlyArray2<'_, u32>,
    breaker_tails: PyReadonlyArray2<'_, i32>,
) -> PyResult<Vec<(usize, f32)>> {
    let tokens = tokens.as_slice()?;
    let (patterns, words) = (breaker_heads.shape()[0], breaker_heads.shape()[1]);
    let vocab = tokens.iter().max().map_or(0, |&most| most as usize + 1);
    let fits = patterns == 0 || vocab <= words * 32;
    if tokens.iter().any(|&id| id < 0) || !fits {
        return Err(PyValueError::new_err("A token id is out of range."));
    }
    if breaker_tails.shape() != [patterns, MAX_BREAKER_TAIL] {
        return Err(PyValueError::new_err(
            "The arrays of breakers contradict each other.",
        ));
    }
    let breakers = Breakers::new(breaker_heads.as_slice()?, breaker_tails.as_slice()?, words);
    let params = Params {
        multiplier,
        base,
        allowed_length: allowed_length as usize,
        last_n: usize::try_from(penalty_last_n).unwrap_or(usize::MAX),
    };
    let mut scratch = Scratch::new(vocab, tokens.len());
    Ok(penalties(tokens, params, breakers, &mut scratch).collect())
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("MAX_BREAKER_TAIL", MAX_BREAKER_TAIL)?;
    module.add_function(wrap_pyfunction!(dry_penalties, module)?)
}
