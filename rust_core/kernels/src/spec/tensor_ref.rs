//! Where a model's weights are stored.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::feed_forward::MAX_EXPERTS;
use crate::error::KernelError;

/// Where a weight is stored: row `j` of it is row `start + j / run * step + j % run` of the tensor.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TensorRef {
    pub name: String,
    pub start: usize,
    /// Rows taken together; 0 for all.
    pub run: usize,
    pub step: usize,
    /// Stored as `[inputs, outputs]`; floats only.
    pub transposed: bool,
    /// Added to each element; vectors only.
    pub add: f32,
    /// Tensors that are taken together, row after row, `name` having `{}` for their index; 0 for a single one.
    pub parts: usize,
    /// Where the weight's rows from some row on are, if they are elsewhere in the tensor; ascending.
    #[serde(default)]
    pub further: Vec<RowRange>,
}

/// Rows of a weight from row `first` on: row `first + j` is row `start + j / run * step + j % run` of the tensor.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RowRange {
    pub first: usize,
    pub start: usize,
    pub run: usize,
    pub step: usize,
}

/// Most rows of a tensor.
const MAX_ROWS: usize = 1 << 40;

impl RowRange {
    fn is_sound(&self) -> bool {
        let bounded = |value: usize| value <= MAX_ROWS;
        [self.first, self.start, self.run, self.step]
            .into_iter()
            .all(bounded)
            && 0 < self.first
            && 0 < self.run
            // Without a step, a single row stands for all.
            && (self.run <= self.step || (self.run, self.step) == (1, 0))
    }
}

/// Role of a weight to where it is stored; `engine/models/spec.py` lists the roles.
pub type Tensors = BTreeMap<String, TensorRef>;

impl TensorRef {
    pub(super) fn validate(&self) -> Result<(), KernelError> {
        let ascending = self
            .further
            .is_sorted_by(|one, next| one.first < next.first);
        let sound = self.start <= MAX_ROWS
            && self.run <= MAX_ROWS
            && self.step <= MAX_ROWS
            && self.parts <= MAX_EXPERTS
            && (self.parts == 0 || self.is_whole() && !self.transposed)
            && (self.run == 0 || self.step >= self.run)
            && self.add.is_finite()
            && ascending
            && self.further.iter().all(RowRange::is_sound);
        if sound {
            return Ok(());
        }
        Err(KernelError::model(format!(
            "The model takes impossible rows of tensor {}.",
            self.name
        )))
    }

    /// Whether the weight is all of the tensor.
    pub fn is_whole(&self) -> bool {
        self.start == 0 && self.run == 0 && self.further.is_empty()
    }

    /// Whether the weight's rows follow one another in the tensor.
    pub fn is_contiguous(&self) -> bool {
        !self.transposed && self.further.is_empty() && (self.run == 0 || self.step == self.run)
    }

    /// The names of the tensors that are taken together.
    pub fn names(&self) -> impl Iterator<Item = String> + '_ {
        let name = |part: usize| match self.parts {
            0 => self.name.clone(),
            _ => self.name.replacen("{}", &part.to_string(), 1),
        };
        (0..self.parts.max(1)).map(name)
    }

    /// The tensor's row that is row `row` of the weight.
    pub fn row(&self, row: usize) -> usize {
        let mut later = self.further.iter().rev();
        let (row, start, run, step) = match later.find(|range| range.first <= row) {
            Some(range) => (row - range.first, range.start, range.run, range.step),
            None => (row, self.start, self.run, self.step),
        };
        match run {
            0 => start + row,
            run => start + row / run * step + row % run,
        }
    }

    /// The fewest rows of a tensor that holds `rows` rows of the weight.
    pub fn stored_rows(&self, rows: usize) -> usize {
        // Inside a range, later rows are stored later.
        let ends = self.further.iter().map(|range| range.first).chain([rows]);
        let ends = ends.filter(|end| (1..=rows).contains(end));
        ends.map(|end| self.row(end - 1) + 1).max().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::tests::whole;

    /// Three times two rows of every eight: rows 0 and 1, then 2 to 4, then 6 and 7.
    fn ranges() -> TensorRef {
        let mut value = whole("x");
        (value["run"], value["step"]) = (2.into(), 8.into());
        value["further"] = serde_json::json!([
            {"first": 4, "start": 2, "run": 3, "step": 8},
            {"first": 10, "start": 6, "run": 2, "step": 8},
        ]);
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn ranges_follow_one_another() {
        let rows: Vec<usize> = (0..14).map(|row| ranges().row(row)).collect();
        assert_eq!(rows, [0, 1, 8, 9, 2, 3, 4, 10, 11, 12, 6, 7, 14, 15]);
        assert!(!ranges().is_whole() && !ranges().is_contiguous());
    }

    #[test]
    fn the_last_row_may_be_one_of_any_range() {
        let rows = [0, 1, 4, 5, 10, 11, 14].map(|rows| ranges().stored_rows(rows));
        assert_eq!(rows, [0, 1, 10, 10, 13, 13, 16]);
    }

    #[test]
    fn a_row_may_stand_for_all() {
        let mut tensor = ranges();
        tensor.further.truncate(1);
        (tensor.further[0].run, tensor.further[0].step) = (1, 0);
        assert!(tensor.validate().is_ok());
        let rows: Vec<usize> = (2..7).map(|row| tensor.row(row)).collect();
        assert_eq!(rows, [8, 9, 2, 2, 2]);
        assert_eq!(tensor.stored_rows(7), 10);
    }

    #[test]
    fn ranges_that_do_not_ascend_are_refused() {
        assert!(ranges().validate().is_ok());
        let mut wrong = ranges();
        wrong.further.swap(0, 1);
        assert!(wrong.validate().is_err());
        for (run, step) in [(0, 8), (3, 2), (2, 0), (1, usize::MAX)] {
            let mut wrong = ranges();
            (wrong.further[0].run, wrong.further[0].step) = (run, step);
            assert!(wrong.validate().is_err());
        }
        let mut parts = ranges();
        parts.parts = 2;
        assert!(parts.validate().is_err());
    }
}
