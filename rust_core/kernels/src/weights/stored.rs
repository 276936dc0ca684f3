//! Rows of a weight as they are stored: a whole tensor, some of its rows, columns of a transposed one, or rows that its source
//! unpacks.

use std::ops::Range;

use crate::format::{RowBuffer, TensorSource, TensorView};
use crate::pack::PANEL_COLUMNS;
use crate::spec::TensorRef;

/// Up to 16 rows of a weight, copied together if they do not follow one another in the tensor. Reuses its memory.
#[derive(Debug, Default)]
pub struct StoredRows {
    bytes: Vec<u8>,
    shape: [usize; 2],
    unpacked: RowBuffer,
}

impl StoredRows {
    /// Rows `rows` (at most 16) of the weight at `place` in `tensor` of `source`: a matrix, and which of its rows they are.
    ///
    /// # Panics
    /// If the rows are not in the tensor.
    pub fn of<'a>(
        &'a mut self,
        source: &'a dyn TensorSource,
        tensor: &TensorView<'a>,
        place: &TensorRef,
        rows: Range<usize>,
    ) -> (TensorView<'a>, Range<usize>) {
        assert!(rows.len() <= PANEL_COLUMNS);
        if place.transposed {
            return (self.columns(tensor, place, rows.clone()), 0..rows.len());
        }
        let first = place.row(rows.start);
        let together = rows
            .clone()
            .all(|row| place.row(row) == first + row - rows.start);
        let stored = first..first + rows.len();
        match (together, tensor.is_stored()) {
            (true, true) => return (*tensor, stored),
            (true, false) => {
                let view = source.rows(tensor, stored, &mut self.unpacked);
                return (view, 0..rows.len());
            }
            _ => self.bytes.clear(),
        }
        for row in rows.clone().map(|row| place.row(row)) {
            let row = source.rows(tensor, row..row + 1, &mut self.unpacked);
            self.bytes.extend_from_slice(row.bytes);
        }
        self.shape = [rows.len(), tensor.cols()];
        (self.view(tensor), 0..rows.len())
    }

    /// Columns of a matrix of floats, or of a stack of such, as rows.
    fn columns<'a>(
        &'a mut self,
        tensor: &TensorView<'a>,
        place: &TensorRef,
        rows: Range<usize>,
    ) -> TensorView<'a> {
        let size = tensor.dtype.block_bytes();
        let inputs = stacked_inputs(tensor);
        self.bytes.clear();
        for row in rows.clone().map(|row| place.row(row)) {
            let (matrix, column) = (row / tensor.cols(), row % tensor.cols());
            for input in 0..inputs {
                let row = tensor.row(matrix * inputs + input);
                self.bytes.extend_from_slice(&row[column * size..][..size]);
            }
        }
        self.shape = [rows.len(), inputs];
        self.view(tensor)
    }

    fn view<'a>(&'a self, tensor: &TensorView<'a>) -> TensorView<'a> {
        TensorView {
            name: tensor.name,
            shape: &self.shape,
            dtype: tensor.dtype,
            bytes: &self.bytes,
        }
    }
}

/// Rows of each matrix of a stack: the inputs of a transposed weight.
pub fn stacked_inputs(tensor: &TensorView<'_>) -> usize {
    let rank = tensor.shape.len();
    rank.checked_sub(2).map_or(1, |at| tensor.shape[at])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::FormatError;
    use crate::pack::tests::TestTensor;
    use crate::quant::{DType, dequantize_row};
    use crate::spec::tests::whole;

    fn place(start: usize, run: usize, step: usize, transposed: bool) -> TensorRef {
        let mut value = whole("test");
        value["start"] = start.into();
        value["run"] = run.into();
        value["step"] = step.into();
        value["transposed"] = transposed.into();
        serde_json::from_value(value).unwrap()
    }

    /// Six rows from row 16 on, then those from row 3 on.
    fn ranges() -> TensorRef {
        let mut value = whole("test");
        (value["start"], value["run"], value["step"]) = (16.into(), 6.into(), 6.into());
        value["further"] = serde_json::json!([{"first": 6, "start": 3, "run": 4, "step": 4}]);
        serde_json::from_value(value).unwrap()
    }

    /// A source of one tensor, whose rows it may unpack.
    struct One<'t> {
        tensor: &'t TestTensor,
        unpacks: bool,
    }

    impl TensorSource for One<'_> {
        fn names(&self) -> Vec<&str> {
            vec!["test"]
        }

        fn tensor(&self, _name: &str) -> Result<TensorView<'_>, FormatError> {
            let mut view = self.tensor.view();
            if self.unpacks {
                view.bytes = &[];
            }
            Ok(view)
        }

        fn rows<'a>(
            &'a self,
            _tensor: &TensorView<'a>,
            rows: Range<usize>,
            buffer: &'a mut RowBuffer,
        ) -> TensorView<'a> {
            buffer.select(&self.tensor.view(), rows)
        }

        fn release(&self, _name: &str) {}

        fn release_rows(&self, _name: &str, _rows: Range<usize>) {}
    }

    /// The values of `rows` of the weight at `place`, whether or not its source unpacks them.
    fn values(tensor: &TestTensor, place: &TensorRef, rows: Range<usize>) -> Vec<Vec<f32>> {
        let values = values_of(tensor, false, place, rows.clone());
        if !place.transposed {
            assert_eq!(values_of(tensor, true, place, rows), values);
        }
        values
    }

    fn values_of(
        tensor: &TestTensor,
        unpacks: bool,
        place: &TensorRef,
        rows: Range<usize>,
    ) -> Vec<Vec<f32>> {
        let mut stored = StoredRows::default();
        let source = One { tensor, unpacks };
        let view = source.tensor("test").unwrap();
        let (matrix, rows) = stored.of(&source, &view, place, rows);
        let row = |row| {
            let mut values = vec![0.0; matrix.cols()];
            dequantize_row(matrix.dtype, matrix.row(row), &mut values);
            values
        };
        rows.map(row).collect()
    }

    #[test]
    fn rows_are_those_of_the_tensor_wherever_they_are() {
        let inputs = 64;
        for dtype in [DType::F32, DType::BF16, DType::Q4_0] {
            let tensor = TestTensor::random(dtype, 24, inputs, 5);
            for place in [
                place(0, 0, 0, false),
                place(5, 0, 0, false),
                place(1, 1, 2, false),
                ranges(),
            ] {
                for (at, row) in values(&tensor, &place, 2..10).into_iter().enumerate() {
                    let stored = place.row(2 + at);
                    assert_eq!(row, tensor.values[stored * inputs..][..inputs]);
                }
            }
        }
    }

    #[test]
    fn columns_of_a_stack_of_transposed_matrices_are_rows() {
        let tensor = TestTensor::random(DType::BF16, 3 * 7, 24, 8);
        let stack = [3, 7, 24];
        let view = TensorView {
            shape: &stack,
            ..tensor.view()
        };
        let mut stored = StoredRows::default();
        // Every second column: those of matrix 1 begin at row 12 of the weight.
        let source = One {
            tensor: &tensor,
            unpacks: false,
        };
        let (matrix, rows) = stored.of(&source, &view, &place(1, 1, 2, true), 12..16);
        assert_eq!((matrix.shape, rows), (&[4, 7][..], 0..4));
        let mut values = vec![0.0; 7];
        for row in 0..4 {
            dequantize_row(DType::BF16, matrix.row(row), &mut values);
            let column: Vec<f32> = (0..7)
                .map(|input| tensor.values[(7 + input) * 24 + 1 + 2 * row])
                .collect();
            assert_eq!(values, column);
        }
    }

    #[test]
    fn columns_of_a_transposed_tensor_are_rows() {
        for (dtype, start) in [(DType::F32, 0), (DType::F16, 8)] {
            let tensor = TestTensor::random(dtype, 7, 24, 6);
            let place = place(start, 12, 12, true);
            for (at, row) in values(&tensor, &place, 3..9).into_iter().enumerate() {
                let first = start + 3 + at;
                let column: Vec<f32> = (0..7).map(|r| tensor.values[r * 24 + first]).collect();
                assert_eq!(row, column);
            }
        }
    }
}
