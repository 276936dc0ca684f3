//! The rows of a step, grouped by the expert that they use.
//!
//! Every use of an expert by a row has a *place*: uses are ordered by expert, then by row. An expert's places follow one
//! another, so that its rows are multiplied together. Where rows are stored in tiles, an expert's rows begin at a row tile:
//! see [`ExpertRows::first_tiled_row`].
//!
//! Grouping is a counting sort, `O(uses + experts)`. It depends on the chosen experts alone, so that every worker may compute it
//! for itself. Does not allocate.

use std::ops::Range;

use crate::amx::row_tiles::ROWS;

/// An expert that at least one row uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UsedExpert {
    pub expert: u32,
    first_place: u32,
    rows: u32,
    first_tiled_row: u32,
}

impl UsedExpert {
    /// Places of its rows.
    pub fn places(self) -> Range<usize> {
        self.first_place as usize..(self.first_place + self.rows) as usize
    }

    /// Number of its rows.
    pub fn rows(self) -> usize {
        self.rows as usize
    }

    /// Where its rows begin if those of each expert begin at a row tile.
    pub fn first_tiled_row(self) -> usize {
        self.first_tiled_row as usize
    }
}

/// Rows by expert.
#[derive(Debug)]
pub struct ExpertRows {
    /// Experts that are used, ascending.
    used: Vec<UsedExpert>,
    /// `[uses]`: the row at each place.
    row_of: Vec<u32>,
    /// `[rows, experts of a row]`: the place of each use.
    place_of: Vec<u32>,
    /// `[experts]`: counts, then the next free place.
    next: Vec<u32>,
}

/// The most rows that experts' rows take if those of each begin at a row tile.
pub fn most_tiled_rows(uses: usize, experts: usize) -> usize {
    uses.min(experts) * (ROWS - 1) + uses
}

impl ExpertRows {
    /// For at most `uses` uses of `experts` experts.
    pub fn with_capacity(uses: usize, experts: usize) -> Self {
        Self {
            used: Vec::with_capacity(uses.min(experts)),
            row_of: Vec::with_capacity(uses),
            place_of: Vec::with_capacity(uses),
            next: Vec::with_capacity(experts),
        }
    }

    /// Group rows that chose the experts `chosen`, `[rows, each]`, of `experts` experts.
    pub fn group(&mut self, chosen: &[u32], each: usize, experts: usize) {
        assert!(chosen.len() <= self.row_of.capacity() && experts <= self.next.capacity());
        self.next.clear();
        self.next.resize(experts, 0);
        for &expert in chosen {
            self.next[expert as usize] += 1;
        }
        self.used.clear();
        let (mut place, mut tiled) = (0, 0);
        for (expert, next) in self.next.iter_mut().enumerate() {
            let rows = std::mem::replace(next, place);
            if rows > 0 {
                self.used.push(UsedExpert {
                    expert: expert as u32,
                    first_place: place,
                    rows,
                    first_tiled_row: tiled,
                });
                place += rows;
                tiled += rows.next_multiple_of(ROWS as u32);
            }
        }
        self.row_of.clear();
        self.row_of.resize(chosen.len(), 0);
        self.place_of.clear();
        for (at, &expert) in chosen.iter().enumerate() {
            let place = self.next[expert as usize];
            self.next[expert as usize] += 1;
            self.row_of[place as usize] = (at / each) as u32;
            self.place_of.push(place);
        }
    }

    /// The experts that are used, ascending.
    pub fn used(&self) -> &[UsedExpert] {
        &self.used
    }

    /// The rows at some places.
    pub fn rows(&self, places: Range<usize>) -> &[u32] {
        &self.row_of[places]
    }

    /// Places of a row's uses, in the order in which it chose them, of `each`.
    pub fn places_of_row(&self, row: usize, each: usize) -> &[u32] {
        &self.place_of[row * each..(row + 1) * each]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn every_use_has_a_place_of_its_own_among_its_experts(
            rows in 0usize..70,
            seed in prop::collection::vec(0u32..9, 3 * 70),
        ) {
            let (each, experts) = (3, 9);
            let chosen = &seed[..rows * each];
            let mut grouped = ExpertRows::with_capacity(70 * each, experts);
            grouped.group(&[0; 3 * 70], each, experts); // an earlier step
            grouped.group(chosen, each, experts);
            let mut seen = vec![false; chosen.len()];
            for row in 0..rows {
                for (nth, &place) in grouped.places_of_row(row, each).iter().enumerate() {
                    let places = place as usize..place as usize + 1;
                    prop_assert_eq!(grouped.rows(places.clone()), [row as u32]);
                    let user = grouped.used().iter().find(|used| used.places().contains(&places.start));
                    prop_assert_eq!(user.unwrap().expert, chosen[row * each + nth]);
                    prop_assert!(!std::mem::replace(&mut seen[places.start], true));
                }
            }
            let mut tiled = 0;
            for (at, used) in grouped.used().iter().enumerate() {
                prop_assert!(used.rows() > 0 && grouped.rows(used.places()).is_sorted());
                prop_assert!(at == 0 || grouped.used()[at - 1].expert < used.expert);
                prop_assert_eq!(used.first_tiled_row() % ROWS, 0);
                prop_assert!(used.first_tiled_row() >= tiled);
                tiled = used.first_tiled_row() + used.rows();
            }
            prop_assert!(tiled <= most_tiled_rows(chosen.len(), experts));
        }
    }

    #[test]
    fn nothing_is_allocated_after_the_beginning() {
        let mut grouped = ExpertRows::with_capacity(8, 4);
        let before = (
            grouped.used.as_ptr(),
            grouped.row_of.as_ptr(),
            grouped.next.as_ptr(),
        );
        for last in [3, 0] {
            grouped.group(&[0, 1, 2, last, 0, 1, 2, last], 4, 4);
        }
        let after = (
            grouped.used.as_ptr(),
            grouped.row_of.as_ptr(),
            grouped.next.as_ptr(),
        );
        assert_eq!(before, after);
    }
}
