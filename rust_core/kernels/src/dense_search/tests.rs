//! Searches against sorting all scores in double precision, on every level, on memory next to guard pages.

use proptest::prelude::*;

use super::*;
use crate::guarded::{Guarded, on_both_sides};
use crate::pack::tests::Random;

fn levels() -> impl Iterator<Item = Level> {
    Level::ALL.into_iter().filter(|level| level.available())
}

fn random(len: usize, seed: u64) -> Vec<f32> {
    let mut random = Random(seed);
    (0..len).map(|_| random.unit()).collect()
}

/// Rows next to a guard page, and the vectors that they hold.
fn store(layout: RowLayout, vectors: &[f32]) -> (Guarded<u8>, Vec<f32>) {
    let count = vectors.len() / layout.dimensions;
    let mut rows = Guarded::filled(0u8, count * layout.row_bytes());
    layout.encode(vectors, &mut rows).unwrap();
    let mut held = vec![0.0; vectors.len()];
    layout.decode(&rows, &mut held).unwrap();
    (rows, held)
}

fn find(
    layout: RowLayout,
    rows: &[u8],
    queries: &[f32],
    allowed: Allowed<'_>,
    (k, threads, level): (usize, usize, Level),
) -> (Vec<i64>, Vec<f32>) {
    let results = queries.len() / layout.dimensions * k;
    let (mut slots, mut scores) = (vec![0; results], vec![0.0; results]);
    let config = SearchConfig { k, threads, level };
    // SAFETY: whole rows of a slice.
    let rows = unsafe { Rows::new(rows.as_ptr(), rows.len() / layout.row_bytes(), layout) };
    search(rows, queries, allowed, config, &mut slots, &mut scores).unwrap();
    (slots, scores)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn the_best_rows_are_found(
        seed: u64, rows in 0usize..70, dimensions in 1usize..150, queries in 0usize..7, k in 1usize..12, filtered: bool,
    ) {
        let vectors = random(rows * dimensions, seed);
        let questions = random(queries * dimensions, seed ^ 1);
        let bits = Guarded::from(&random(rows.div_ceil(8), seed ^ 2).iter().map(|x| (x * 1000.0) as i32 as u8).collect::<Vec<u8>>()[..]);
        let allowed = if filtered { Allowed::Bits(&bits) } else { Allowed::All };
        on_both_sides(|| for row_type in RowType::ALL {
            let layout = RowLayout::new(row_type, dimensions).unwrap();
            let (stored, held) = store(layout, &vectors);
            // Rows of codes are multiplied with integers that are within half of a 32,639th of the query's largest value.
            let rounding = if row_type == RowType::Int8 { dimensions as f64 / 65_278.0 } else { 0.0 };
            let tolerance = 5e-5 + rounding;
            for level in levels() {
                let (slots, scores) = find(layout, &stored, &questions, allowed, (k, 1, level));
                for (query, (slots, scores)) in slots.chunks(k).zip(scores.chunks(k)).enumerate() {
                    let question = &questions[query * dimensions..][..dimensions];
                    let exact = |slot: usize| held[slot * dimensions..][..dimensions].iter().zip(question)
                        .map(|(x, y)| f64::from(*x) * f64::from(*y)).sum::<f64>();
                    let mut expected: Vec<f64> = (0..rows).filter(|&slot| allowed.has(slot)).map(exact).collect();
                    expected.sort_by(|a, b| b.total_cmp(a));
                    for (at, (&slot, &score)) in slots.iter().zip(scores).enumerate() {
                        let Some(expected) = expected.get(at) else {
                            assert_eq!((slot, score), (NO_SLOT, f32::NEG_INFINITY));
                            continue;
                        };
                        assert!(allowed.has(slot as usize));
                        assert!((f64::from(score) - exact(slot as usize)).abs() < tolerance, "{level:?} {row_type:?}");
                        assert!((f64::from(score) - expected).abs() < 2.0 * tolerance, "{level:?} {row_type:?} {score} {expected}");
                    }
                    let mut found: Vec<i64> = slots.iter().copied().filter(|&slot| slot >= 0).collect();
                    found.sort_unstable();
                    found.dedup();
                    assert_eq!(found.len(), k.min(expected.len()), "a row is found once");
                }
            }
        });
    }

    #[test]
    fn what_is_stored_is_close(seed: u64, dimensions in 1usize..200, power in -30i32..12) {
        let vectors: Vec<f32> = random(3 * dimensions, seed).iter().map(|x| x * 2f32.powi(power)).collect();
        for row_type in RowType::ALL {
            let layout = RowLayout::new(row_type, dimensions).unwrap();
            let (_, held) = store(layout, &vectors);
            for (vector, held) in vectors.chunks(dimensions).zip(held.chunks(dimensions)) {
                let largest = vector.iter().fold(0.0f32, |most, x| most.max(x.abs()));
                let bound = match row_type {
                    RowType::F32 => 0.0,
                    RowType::F16 => (largest / 2048.0).max(3e-8),
                    RowType::Int8 => largest / 253.9,
                };
                for (x, y) in vector.iter().zip(held) {
                    assert!((x - y).abs() <= bound, "{row_type:?} {x} {y}");
                }
            }
        }
    }
}

#[test]
fn threads_and_other_queries_do_not_change_a_result() {
    let (dimensions, k) = (96, 9);
    let vectors = random(30_000 * dimensions, 3);
    let questions = random(6 * dimensions, 4);
    for row_type in RowType::ALL {
        let layout = RowLayout::new(row_type, dimensions).unwrap();
        let (rows, _) = store(layout, &vectors);
        let level = Level::best();
        let together = find(layout, &rows, &questions, Allowed::All, (k, 1, level));
        let threaded = find(layout, &rows, &questions, Allowed::All, (k, 3, level));
        assert_eq!(together, threaded);
        for (query, question) in questions.chunks(dimensions).enumerate() {
            let (slots, scores) = find(layout, &rows, question, Allowed::All, (k, 2, level));
            assert_eq!(slots, together.0[query * k..][..k]);
            assert_eq!(scores, together.1[query * k..][..k]);
        }
    }
}

#[test]
fn integer_scores_are_the_same_on_every_level() {
    let dimensions = 384;
    let layout = RowLayout::new(RowType::Int8, dimensions).unwrap();
    let (rows, _) = store(layout, &random(500 * dimensions, 5));
    let questions = random(5 * dimensions, 6);
    let on = |level| find(layout, &rows, &questions, Allowed::All, (20, 2, level));
    let expected = on(Level::Portable);
    for level in levels() {
        assert_eq!(on(level), expected, "{level:?}");
    }
}

#[test]
fn equal_scores_are_in_the_order_of_their_slots() {
    let dimensions = 16;
    // 40,000 rows of three kinds, more than one chunk and one thread.
    let vectors: Vec<f32> = (0..40_000)
        .flat_map(|row| [[0.5f32, 1.0, 0.25][row % 3]; 16])
        .collect();
    for row_type in RowType::ALL {
        let layout = RowLayout::new(row_type, dimensions).unwrap();
        let (rows, _) = store(layout, &vectors);
        for threads in [1, 4] {
            let run = (5, threads, Level::best());
            let (slots, _) = find(layout, &rows, &[1.0; 16], Allowed::All, run);
            assert_eq!(slots, [1, 4, 7, 10, 13], "{row_type:?}");
            let (slots, _) = find(layout, &rows, &[0.0; 16], Allowed::All, run);
            assert_eq!(slots, [0, 1, 2, 3, 4], "{row_type:?}");
        }
    }
}

#[test]
fn sums_of_codes_stay_exact_at_the_largest_sizes() {
    let layout = RowLayout::new(RowType::Int8, MAX_DIMENSIONS).unwrap();
    for (stored, asked) in [(1.0, 1.0), (-1.0, 1.0), (1.0, -1e30), (1e-30, 1e-30)] {
        let (rows, _) = store(layout, &vec![stored; MAX_DIMENSIONS]);
        for level in levels() {
            let question = vec![asked; MAX_DIMENSIONS];
            let (_, scores) = find(layout, &rows, &question, Allowed::All, (1, 1, level));
            let exact = stored * asked * MAX_DIMENSIONS as f32;
            assert!(
                (scores[0] - exact).abs() <= 1e-4 * exact.abs(),
                "{level:?} {scores:?}"
            );
        }
    }
}

#[test]
fn zero_bytes_are_a_vector_of_zeros() {
    for row_type in RowType::ALL {
        let layout = RowLayout::new(row_type, 20).unwrap();
        let rows = vec![0u8; 2 * layout.row_bytes()];
        let mut held = vec![1.0; 40];
        layout.decode(&rows, &mut held).unwrap();
        assert!(held.iter().all(|&x| x == 0.0));
        for level in levels() {
            let (slots, scores) = find(layout, &rows, &[1.0; 20], Allowed::All, (2, 1, level));
            assert_eq!((slots, scores), (vec![0, 1], vec![0.0, 0.0]));
        }
    }
}

#[test]
fn what_cannot_be_stored_or_asked_is_refused_in_a_sentence() {
    let layout = RowLayout::new(RowType::F16, 4).unwrap();
    let mut row = vec![0; layout.row_bytes()];
    for bad in [f32::NAN, f32::INFINITY, 70_000.0] {
        let refused = layout.encode(&[0.0, bad, 0.0, 0.0], &mut row).unwrap_err();
        assert!(refused.to_string().contains("cannot store"), "{refused}");
    }
    assert!(layout.encode(&[0.0; 5], &mut row).is_err());
    assert!(layout.decode(&row, &mut [0.0; 8]).is_err());
    assert!(RowLayout::new(RowType::F32, 0).is_err());
    assert!(RowLayout::new(RowType::F32, MAX_DIMENSIONS + 1).is_err());
    assert!(RowType::parse("int4").is_err());
    // SAFETY: one whole row.
    let rows = unsafe { Rows::new(row.as_ptr(), 1, layout) };
    let config = SearchConfig {
        k: 1,
        threads: 1,
        level: Level::Portable,
    };
    let ask = |query: &[f32], results: usize| {
        let (mut slots, mut scores) = (vec![0; results], vec![0.0; results]);
        search(rows, query, Allowed::All, config, &mut slots, &mut scores)
    };
    assert!(ask(&[0.0; 4], 1).is_ok());
    assert!(
        ask(&[f32::NAN; 4], 1)
            .unwrap_err()
            .to_string()
            .contains("finite")
    );
    assert!(
        ask(&[0.0; 3], 1)
            .unwrap_err()
            .to_string()
            .contains("4 dimensions")
    );
    assert!(ask(&[0.0; 4], 2).is_err());
}
