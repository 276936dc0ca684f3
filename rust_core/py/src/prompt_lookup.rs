//! `draft_by_lookup`: prompt lookup for many rows in one call.

use numpy::{
    PyReadonlyArray1, PyReadonlyArray2, PyReadwriteArray1, PyReadwriteArray2, PyUntypedArrayMethods,
};
use pravaha_core::prompt_lookup::{continue_from, find};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// See `engine/_core.pyi`.
#[pyfunction]
#[pyo3(signature = (token_table, rows, num_tokens, stop_ids, room, drafts, lengths, matched, *, least, most))]
#[allow(clippy::too_many_arguments)]
fn draft_by_lookup(
    token_table: PyReadonlyArray2<'_, i32>,
    rows: PyReadonlyArray1<'_, i32>,
    num_tokens: PyReadonlyArray1<'_, i32>,
    stop_ids: PyReadonlyArray2<'_, i32>,
    room: PyReadonlyArray1<'_, i32>,
    mut drafts: PyReadwriteArray2<'_, i32>,
    mut lengths: PyReadwriteArray1<'_, i32>,
    mut matched: PyReadwriteArray1<'_, i32>,
    least: usize,
    most: usize,
) -> PyResult<()> {
    let (width, stops, most_drafts) = (
        token_table.shape()[1],
        stop_ids.shape()[1],
        drafts.shape()[1],
    );
    let (table, stop_table) = (token_table.as_slice()?, stop_ids.as_slice()?);
    let (rows, known, room) = (rows.as_slice()?, num_tokens.as_slice()?, room.as_slice()?);
    let (drafts, lengths) = (drafts.as_slice_mut()?, lengths.as_slice_mut()?);
    let matched = matched.as_slice_mut()?;
    let count = rows.len();
    let fits = room.len() == count
        && lengths.len() == count
        && matched.len() == count
        && drafts.len() == count * most_drafts
        && table.len() == known.len() * width
        && stop_table.len() == known.len() * stops
        && (1..=most).contains(&least);
    let sane = rows.iter().zip(room).all(|(&row, &room)| {
        let known = usize::try_from(row).ok().and_then(|row| known.get(row));
        known.is_some_and(|&known| (0..=width as i64).contains(&i64::from(known)))
            && (0..=most_drafts as i64).contains(&i64::from(room))
    });
    if !fits || !sane {
        return Err(PyValueError::new_err(
            "The rows to guess for do not fit their tables.",
        ));
    }
    for at in 0..count {
        let row = rows[at] as usize;
        let tokens = &table[row * width..][..known[row] as usize];
        let found = find(tokens, least, most);
        matched[at] = found.map_or(0, |found| found.length as i32);
        lengths[at] = found.map_or(0, |found| {
            let draft = &mut drafts[at * most_drafts..][..room[at] as usize];
            continue_from(tokens, found, &stop_table[row * stops..][..stops], draft) as i32
        });
    }
    Ok(())
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(draft_by_lookup, module)?)
}
