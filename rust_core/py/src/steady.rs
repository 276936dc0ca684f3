//! `SteadyRows`: the update between two steps of rows that only decode.

use numpy::{
    IntoPyArray, PyArray1, PyReadonlyArray1, PyReadonlyArray2, PyReadwriteArray1, PyReadwriteArray2,
};
use pravaha_core::steady;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::held_array::HeldArray;

/// See `engine/_core.pyi`.
#[pyclass(module = "engine._core")]
struct SteadyRows {
    token_ids: HeldArray<i32>,
    positions: HeldArray<i32>,
    tables: Tables,
    /// The array of the last step's tokens; an executor reuses it.
    sampled: Option<HeldArray<i32>>,
    /// A copy of the tokens, so that no slice of an array is in use while others are written.
    tokens: Vec<i32>,
    latencies: Vec<f64>,
}

struct Tables {
    rows: HeldArray<i32>,
    token_table: HeldArray<i32>,
    block_tables: HeldArray<i32>,
    num_tokens: HeldArray<i32>,
    num_computed: HeldArray<i32>,
    num_blocks: HeldArray<i32>,
    num_indexed: HeldArray<i32>,
    max_total: HeldArray<i32>,
    stop_ids: HeldArray<i32>,
    last_token_at: HeldArray<f64>,
    drained: HeldArray<bool>,
    block_size: usize,
}

impl Tables {
    fn view(&mut self) -> steady::SteadyRows<'_> {
        steady::SteadyRows {
            rows: self.rows.slice(),
            token_table: self.token_table.slice_mut(),
            block_tables: self.block_tables.slice_mut(),
            num_tokens: self.num_tokens.slice_mut(),
            num_computed: self.num_computed.slice_mut(),
            num_blocks: self.num_blocks.slice_mut(),
            num_indexed: self.num_indexed.slice(),
            max_total: self.max_total.slice(),
            stop_ids: self.stop_ids.slice(),
            last_token_at: self.last_token_at.slice_mut(),
            drained: self.drained.slice_mut(),
            block_size: self.block_size,
        }
    }
}

type Int32Array<'py> = Bound<'py, PyArray1<i32>>;
type Filled<'py> = (Int32Array<'py>, Int32Array<'py>, Int32Array<'py>);
type Advance<'py> = (
    u64,
    Bound<'py, PyBytes>,
    Vec<(i32, bool)>,
    Option<Filled<'py>>,
);

impl SteadyRows {
    /// Copy the step's tokens; calls no Python if they are in the same array as the last step's.
    fn take_tokens(&mut self, sampled: &Bound<'_, PyAny>) -> PyResult<()> {
        let held = match self.sampled.take().filter(|held| held.is(sampled)) {
            Some(held) => held,
            None => HeldArray::reading(&sampled.extract::<PyReadonlyArray1<'_, i32>>()?)?,
        };
        self.tokens.clear();
        self.tokens.extend_from_slice(held.slice());
        self.sampled = Some(held);
        Ok(())
    }
}

#[pymethods]
impl SteadyRows {
    #[new]
    #[pyo3(signature = (rows, token_ids, positions, *, token_table, block_tables, num_tokens, num_computed, num_blocks, num_indexed, max_total, stop_ids, last_token_at, drained, block_size))]
    #[allow(clippy::too_many_arguments)]
    fn new(
        rows: PyReadonlyArray1<'_, i32>,
        token_ids: PyReadwriteArray1<'_, i32>,
        positions: PyReadwriteArray1<'_, i32>,
        token_table: PyReadwriteArray2<'_, i32>,
        block_tables: PyReadwriteArray2<'_, i32>,
        num_tokens: PyReadwriteArray1<'_, i32>,
        num_computed: PyReadwriteArray1<'_, i32>,
        num_blocks: PyReadwriteArray1<'_, i32>,
        num_indexed: PyReadonlyArray1<'_, i32>,
        max_total: PyReadonlyArray1<'_, i32>,
        stop_ids: PyReadonlyArray2<'_, i32>,
        last_token_at: PyReadwriteArray1<'_, f64>,
        drained: PyReadwriteArray1<'_, bool>,
        block_size: usize,
    ) -> PyResult<Self> {
        let mut this = Self {
            token_ids: HeldArray::writing(&token_ids)?,
            positions: HeldArray::writing(&positions)?,
            tables: Tables {
                rows: HeldArray::reading(&rows)?,
                token_table: HeldArray::writing(&token_table)?,
                block_tables: HeldArray::writing(&block_tables)?,
                num_tokens: HeldArray::writing(&num_tokens)?,
                num_computed: HeldArray::writing(&num_computed)?,
                num_blocks: HeldArray::writing(&num_blocks)?,
                num_indexed: HeldArray::reading(&num_indexed)?,
                max_total: HeldArray::reading(&max_total)?,
                stop_ids: HeldArray::reading(&stop_ids)?,
                last_token_at: HeldArray::writing(&last_token_at)?,
                drained: HeldArray::writing(&drained)?,
                block_size,
            },
            sampled: None,
            tokens: Vec::new(),
            latencies: Vec::new(),
        };
        let count = this.tables.rows.slice().len();
        let places = [&this.token_ids, &this.positions].map(|places| places.slice().len());
        if places != [count; 2] || !this.tables.view().fits() {
            return Err(PyValueError::new_err(
                "The steady rows do not fit their tables.",
            ));
        }
        this.latencies = vec![0.0; count];
        Ok(this)
    }

    fn look_up(&mut self) -> Option<usize> {
        let (token_ids, positions) = (self.token_ids.slice_mut(), self.positions.slice_mut());
        self.tables.view().look_up(token_ids, positions)
    }

    #[pyo3(signature = (min_match, /))]
    fn repeats(&mut self, min_match: usize) -> bool {
        self.tables.view().repeats(min_match)
    }

    #[pyo3(signature = (blocks, /))]
    fn append_blocks(&mut self, blocks: PyReadonlyArray1<'_, i32>) -> PyResult<()> {
        if !self.tables.view().append_blocks(blocks.as_slice()?) {
            return Err(PyValueError::new_err(
                "There is not one block for each row that needs one, or no room for it.",
            ));
        }
        Ok(())
    }

    fn take_drained(&mut self) -> bool {
        self.tables.view().take_drained()
    }

    #[pyo3(signature = (sampled, now, /))]
    fn advance<'py>(
        &mut self,
        py: Python<'py>,
        sampled: &Bound<'py, PyAny>,
        now: f64,
    ) -> PyResult<Option<Advance<'py>>> {
        self.take_tokens(sampled)?;
        let mut rows = self.tables.view();
        let Some(change) = rows.advance(&self.tokens, now, &mut self.latencies) else {
            return Ok(None);
        };
        let filled = (!change.filled.is_empty()).then(|| {
            let part = |pick: fn(&(i32, i32, i32)) -> i32| {
                let numbers: Vec<i32> = change.filled.iter().map(pick).collect();
                numbers.into_pyarray(py)
            };
            (part(|run| run.0), part(|run| run.1), part(|run| run.2))
        });
        let size = self.latencies.len() * size_of::<f64>();
        let latencies = PyBytes::new_with(py, size, |bytes| {
            let places = bytes.chunks_exact_mut(size_of::<f64>());
            for (place, latency) in places.zip(&self.latencies) {
                place.copy_from_slice(&latency.to_ne_bytes());
            }
            Ok(())
        })?;
        Ok(Some((change.kv_tokens, latencies, change.finished, filled)))
    }
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<SteadyRows>()
}
