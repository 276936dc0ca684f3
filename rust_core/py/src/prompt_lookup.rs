//! `draft_by_lookup`: prompt lookup for the rows of a step in one call.

use numpy::{
    PyReadonlyArray1, PyReadonlyArray2, PyReadwriteArray1, PyReadwriteArray2, PyUntypedArrayMethods,
};
use pravaha_core::prompt_lookup::{continue_from, find};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// See `engine/_core.pyi`.
#[pyfunction]
#[pyo3(signature = (token_table, stop_ids, num_tokens, room, rows, drafts, lengths, matched, *, min_match, max_match))]
#[allow(clippy::too_many_arguments)]
fn draft_by_lookup(
    token_table: PyReadonlyArray2<'_, i32>,
    stop_ids: PyReadonlyArray2<'_, i32>,
    num_tokens: PyReadonlyArray1<'_, i32>,
    room: PyReadonlyArray1<'_, i32>,
    rows: PyReadonlyArray1<'_, i32>,
    mut drafts: PyReadwriteArray2<'_, i32>,
    mut lengths: PyReadwriteArray1<'_, i32>,
    mut matched: PyReadwriteArray1<'_, i32>,
    min_match: usize,
    max_match: usize,
) -> PyResult<bool> {
    let (width, stops) = (token_table.shape()[1], stop_ids.shape()[1]);
    let widest = drafts.shape()[1];
    let (table, stop_table) = (token_table.as_slice()?, stop_ids.as_slice()?);
    let (rows, known, room) = (rows.as_slice()?, num_tokens.as_slice()?, room.as_slice()?);
    let (drafts, lengths) = (drafts.as_slice_mut()?, lengths.as_slice_mut()?);
    let matched = matched.as_slice_mut()?;
    let count = rows.len();
    let fits = room.len() == count
        && lengths.len() == count
        && matched.len() == count
        && drafts.len() == count * widest
        && table.len() == known.len() * width
        && stop_table.len() == known.len() * stops
        && (1..=max_match).contains(&min_match);
    let sane = rows.iter().all(|&row| {
        let known = usize::try_from(row).ok().and_then(|row| known.get(row));
        known.is_some_and(|&known| (0..=width as i64).contains(&i64::from(known)))
    });
    if !fits || !sane {
        return Err(PyValueError::new_err(
            "The rows to draft for do not fit their tables.",
        ));
    }
    lengths.fill(0);
    matched.fill(0);
    for at in 0..count {
        let (row, room) = (rows[at] as usize, widest.min(room[at].max(0) as usize));
        let tokens = &table[row * width..][..known[row] as usize];
        if room == 0 {
            continue;
        }
        if let Some(found) = find(tokens, min_match, max_match) {
            let draft = &mut drafts[at * widest..][..room];
            let stops = &stop_table[row * stops..][..stops];
            matched[at] = found.length as i32;
            lengths[at] = continue_from(tokens, found, stops, draft) as i32;
        }
    }
    Ok(lengths.iter().any(|&length| length > 0))
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(draft_by_lookup, module)?)
}
