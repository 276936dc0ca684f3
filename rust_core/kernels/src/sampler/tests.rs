use super::dry::Breakers;
use super::*;
use crate::pack::tests::Random;

const PLAIN: SamplingRow = SamplingRow {
    temperature: 1.0,
    top_p: 1.0,
    min_p: 0.0,
    repetition_penalty: 1.0,
    presence_penalty: 0.0,
    frequency_penalty: 0.0,
    dry_multiplier: 0.0,
    dry_base: 1.75,
    dry_allowed_length: 2,
    dry_penalty_last_n: -1,
    first_breaker: 0,
    num_breakers: 0,
    top_k: 0,
    num_logprobs: -1,
    seed: 0,
};

fn run(logits: &[f32], row: &RowContext<'_>) -> (Sampled, Vec<i32>, Vec<f32>) {
    let mut results = Vec::new();
    for level in Level::ALL.into_iter().filter(|level| level.available()) {
        let mut scratch = Scratch::new(logits.len(), row.tokens.len());
        let (mut ids, mut logprobs) = (vec![-1; MAX_TOP_LOGPROBS], vec![0.0; MAX_TOP_LOGPROBS]);
        // Twice with the same scratch: no state may remain between rows.
        for _ in 0..2 {
            // SAFETY: the level is available.
            let sampled = unsafe {
                sample(
                    level,
                    &mut logits.to_vec(),
                    row,
                    &mut scratch,
                    &mut ids,
                    &mut logprobs,
                )
            };
            results.push((sampled, ids.clone(), logprobs.clone()));
        }
    }
    for other in &results[1..] {
        assert_eq!(other.0.token, results[0].0.token);
        assert_eq!(other.1, results[0].1);
    }
    results.swap_remove(0)
}

fn row<'a>(params: &'a SamplingRow, tokens: &'a [i32], position: u64) -> RowContext<'a> {
    RowContext {
        params,
        tokens,
        penalty_start: 1,
        position,
        bias_ids: &[],
        bias_values: &[],
        breakers: Breakers::default(),
        mask: None,
    }
}

/// Steps 5 to 7 of the algorithm by sorting everything.
fn naive_sample(logits: &[f32], params: &SamplingRow, position: u64) -> i32 {
    let scaled: Vec<f32> = logits.iter().map(|x| x / params.temperature).collect();
    let mut order: Vec<usize> = (0..logits.len()).collect();
    order.sort_by(|&a, &b| scaled[b].total_cmp(&scaled[a]).then(a.cmp(&b)));
    if params.top_k > 0 {
        order.truncate(params.top_k as usize);
    }
    let top = f64::from(scaled[order[0]]);
    let shares: Vec<f64> = order
        .iter()
        .map(|&id| (f64::from(scaled[id]) - top).exp())
        .collect();
    let total: f64 = shares.iter().sum();
    let mut reached = 0.0;
    let mut kept = Vec::new();
    for (&id, share) in order.iter().zip(shares) {
        if kept.is_empty()
            || (reached < f64::from(params.top_p) && share >= f64::from(params.min_p))
        {
            kept.push(id);
        }
        reached += share / total;
    }
    kept.sort_unstable();
    let key = gumbel::row_key(params.seed, position);
    let mut best = (f64::NEG_INFINITY, 0);
    for id in kept {
        let h = gumbel::mix64(key ^ (id as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15));
        let value = f64::from(scaled[id]) + gumbel::gumbel((h >> 40) as u32);
        if value > best.0 {
            best = (value, id as i32);
        }
    }
    best.1
}

#[test]
fn samples_equal_the_naive_algorithm() {
    let mut random = Random(11);
    for case in 0..400 {
        let vocab = 1 + random.bits() as usize % 700;
        let spread = [0.5, 3.0, 12.0][case % 3];
        let logits: Vec<f32> = (0..vocab).map(|_| random.unit() * spread).collect();
        let params = SamplingRow {
            temperature: 0.1 + random.unit().abs() * 2.0,
            top_k: if case % 2 == 0 {
                0
            } else {
                1 + (random.bits() % 50) as i32
            },
            top_p: if case % 5 < 2 {
                1.0
            } else {
                0.05 + 0.9 * random.unit().abs()
            },
            min_p: if case % 7 < 4 {
                0.0
            } else {
                random.unit().abs() * 0.5
            },
            seed: random.bits(),
            ..PLAIN
        };
        for position in 0..4 {
            let expected = naive_sample(&logits, &params, position);
            let (sampled, _, _) = run(&logits, &row(&params, &[], position));
            assert_eq!(sampled.token, Some(expected), "case {case}: {params:?}");
        }
    }
}

#[test]
fn greedy_breaks_ties_by_lowest_id() {
    let mut logits = vec![0.0; 300];
    (logits[70], logits[200]) = (2.5, 2.5);
    let params = SamplingRow {
        temperature: 0.0,
        ..PLAIN
    };
    assert_eq!(run(&logits, &row(&params, &[], 0)).0.token, Some(70));
}

#[test]
fn negative_zero_ties_with_zero() {
    let logits = [-0.0, 0.0, -1.0];
    let params = SamplingRow {
        temperature: 0.0,
        num_logprobs: 2,
        ..PLAIN
    };
    let (sampled, ids, _) = run(&logits, &row(&params, &[], 0));
    assert_eq!((sampled.token, &ids[..2]), (Some(0), &[0, 1][..]));
}

#[test]
fn top_one_is_greedy_at_any_temperature() {
    let mut random = Random(5);
    let logits: Vec<f32> = (0..500).map(|_| random.unit()).collect();
    let greedy = SamplingRow {
        temperature: 0.0,
        ..PLAIN
    };
    let top_one = SamplingRow {
        temperature: 3.0,
        top_k: 1,
        ..PLAIN
    };
    let tiny_p = SamplingRow {
        temperature: 3.0,
        top_p: 1e-6,
        ..PLAIN
    };
    let expected = run(&logits, &row(&greedy, &[], 9)).0.token;
    assert_eq!(run(&logits, &row(&top_one, &[], 9)).0.token, expected);
    assert_eq!(run(&logits, &row(&tiny_p, &[], 9)).0.token, expected);
}

#[test]
fn logprobs_are_of_the_raw_logits() {
    let mut random = Random(6);
    let logits: Vec<f32> = (0..1000).map(|_| random.unit() * 8.0).collect();
    let params = SamplingRow {
        temperature: 0.7,
        num_logprobs: 5,
        repetition_penalty: 1.7,
        presence_penalty: 1.0,
        ..PLAIN
    };
    let total: f64 = logits.iter().map(|&x| f64::from(x).exp()).sum();
    let tokens: Vec<i32> = (0..1000).collect();
    let (sampled, ids, logprobs) = run(&logits, &row(&params, &tokens, 3));
    let token = sampled.token.unwrap() as usize;
    assert!((f64::from(sampled.logprob) - (f64::from(logits[token]) - total.ln())).abs() < 1e-5);
    let mut order: Vec<usize> = (0..1000).collect();
    order.sort_by(|&a, &b| logits[b].total_cmp(&logits[a]));
    for at in 0..5 {
        assert_eq!(ids[at] as usize, order[at]);
        let exact = f64::from(logits[order[at]]) - total.ln();
        assert!((f64::from(logprobs[at]) - exact).abs() < 1e-5);
    }
}

#[test]
fn penalties_follow_their_formulas() {
    let logits = [2.0, -1.0, 1.9, 0.5];
    let greedy = SamplingRow {
        temperature: 0.0,
        ..PLAIN
    };
    let choose = |params: SamplingRow, tokens: &[i32]| {
        run(&logits, &row(&params, tokens, 0)).0.token.unwrap()
    };
    // Repetition reads the prompt (token 0 is one), presence and frequency only the output.
    assert_eq!(
        choose(
            SamplingRow {
                repetition_penalty: 1.2,
                ..greedy
            },
            &[0]
        ),
        2
    );
    assert_eq!(
        choose(
            SamplingRow {
                presence_penalty: 0.5,
                ..greedy
            },
            &[0]
        ),
        0
    );
    assert_eq!(
        choose(
            SamplingRow {
                presence_penalty: 0.5,
                ..greedy
            },
            &[1, 0, 0]
        ),
        2
    );
    assert_eq!(
        choose(
            SamplingRow {
                frequency_penalty: 0.06,
                ..greedy
            },
            &[1, 0]
        ),
        0
    );
    assert_eq!(
        choose(
            SamplingRow {
                frequency_penalty: 0.06,
                ..greedy
            },
            &[1, 0, 0]
        ),
        2
    );
}

/// One bit per token, set for those in `ids`.
fn mask_of(vocab: usize, ids: &[usize]) -> Vec<u32> {
    let mut mask = vec![0; vocab.div_ceil(32)];
    for id in ids {
        mask[id / 32] |= 1 << (id % 32);
    }
    mask
}

#[test]
fn masked_sampling_equals_sampling_without_the_forbidden_tokens() {
    let mut random = Random(5);
    for case in 0..200 {
        let vocab = 1 + random.bits() as usize % 300;
        let logits: Vec<f32> = (0..vocab).map(|_| random.unit() * 4.0).collect();
        let mut allowed: Vec<usize> = (0..vocab)
            .filter(|_| random.bits().is_multiple_of(16))
            .collect();
        allowed.push(random.bits() as usize % vocab);
        if case % 10 == 0 {
            allowed = (0..vocab).collect();
        }
        let mask = mask_of(vocab, &allowed);
        let forbidden: Vec<f32> = (0..vocab)
            .map(|id| {
                let keep = allowed.contains(&id);
                if keep { logits[id] } else { f32::NEG_INFINITY }
            })
            .collect();
        let params = SamplingRow {
            temperature: [0.0, 1.0, 1.0, 0.7][case % 4],
            top_k: [0, 0, 7, 0][case % 4],
            top_p: [1.0, 0.6, 1.0, 1.0][case % 4],
            min_p: [0.0, 0.0, 0.0, 0.05][case % 4],
            seed: random.bits(),
            num_logprobs: 3,
            ..PLAIN
        };
        let unmasked = row(&params, &[], 9);
        let masked = RowContext {
            mask: Some(&mask),
            ..unmasked
        };
        let (sampled, ids, logprobs) = run(&logits, &masked);
        assert_eq!(sampled.token, run(&forbidden, &unmasked).0.token);
        // Alternatives and logprobs are those of the raw logits.
        let (_, raw_ids, raw_logprobs) = run(&logits, &unmasked);
        assert_eq!((ids, logprobs), (raw_ids, raw_logprobs));
        let total: f64 = logits.iter().map(|&x| f64::from(x).exp()).sum();
        let own = f64::from(logits[sampled.token.unwrap() as usize]) - total.ln();
        assert!((f64::from(sampled.logprob) - own).abs() < 1e-4);
    }
}

#[test]
fn logprobs_of_token_ids_are_the_log_softmax_in_the_order_asked() {
    let mut random = Random(17);
    for level in Level::ALL.into_iter().filter(|level| level.available()) {
        for vocab in [1, 15, 16, 600] {
            let logits: Vec<f32> = (0..vocab).map(|_| random.unit() * 9.0).collect();
            let total: f64 = logits.iter().map(|&x| f64::from(x).exp()).sum();
            let ids = [vocab as i32 - 1, 0, vocab as i32 / 2, 0];
            let (mut scratch, mut logprobs) = (Scratch::new(vocab, 0), [0.0; 4]);
            // SAFETY: the level is available.
            unsafe { token_id_logprobs(level, &logits, &ids, &mut scratch, &mut logprobs) };
            for (id, logprob) in ids.into_iter().zip(logprobs) {
                let expected = f64::from(logits[id as usize]) - total.ln();
                assert!((f64::from(logprob) - expected).abs() < 1e-5);
            }
            let broken = vec![f32::NAN; vocab];
            // SAFETY: the level is available.
            unsafe { token_id_logprobs(level, &broken, &ids, &mut scratch, &mut logprobs) };
            assert!(logprobs.iter().all(|logprob| logprob.is_nan()));
        }
    }
}

#[test]
fn bias_does_not_unmask_a_token_and_an_empty_mask_fails_the_row() {
    let params = SamplingRow {
        temperature: 0.0,
        ..PLAIN
    };
    let mask = mask_of(4, &[1]);
    let biased = RowContext {
        bias_ids: &[3],
        bias_values: &[100.0],
        mask: Some(&mask),
        ..row(&params, &[], 0)
    };
    assert_eq!(run(&[1.0, 0.0, 0.0, 0.0], &biased).0.token, Some(1));
    let all_forbidden = RowContext {
        mask: Some(&[0]),
        ..biased
    };
    assert_eq!(run(&[1.0, 0.0, 0.0, 0.0], &all_forbidden).0.token, None);
}

#[test]
fn bias_selects_a_token() {
    let params = SamplingRow {
        temperature: 0.0,
        ..PLAIN
    };
    let biased = RowContext {
        bias_ids: &[3],
        bias_values: &[5.0],
        ..row(&params, &[], 0)
    };
    assert_eq!(run(&[1.0, 0.0, 0.0, 0.0], &biased).0.token, Some(3));
}

#[test]
fn nan_logits_fail_the_row_and_single_minus_infinities_do_not() {
    let fails = |logits: &[f32]| {
        [0.0, 1.0].iter().all(|&temperature| {
            let params = SamplingRow {
                temperature,
                num_logprobs: 3,
                ..PLAIN
            };
            run(logits, &row(&params, &[], 0)).0.token.is_none()
        })
    };
    let mut logits = vec![0.0; 100];
    logits[99] = f32::NAN;
    assert!(fails(&logits));
    logits[99] = f32::INFINITY;
    assert!(fails(&logits));
    logits[99] = f32::NEG_INFINITY;
    assert!(!fails(&logits));
    assert!(fails(&[f32::NEG_INFINITY; 70]));
}

#[test]
fn frequencies_follow_the_softmax() {
    let logits = [1.0f32, 0.0, -1.0, 2.0];
    let total: f64 = logits.iter().map(|&x| f64::from(x).exp()).sum();
    let mut counts = [0u32; 4];
    let draws = 20_000;
    for seed in 0..draws {
        let params = SamplingRow { seed, ..PLAIN };
        counts[run_once(&logits, &row(&params, &[], 7)) as usize] += 1;
    }
    let chi_square: f64 = logits
        .iter()
        .zip(counts)
        .map(|(&x, count)| {
            let expected = draws as f64 * f64::from(x).exp() / total;
            (f64::from(count) - expected).powi(2) / expected
        })
        .sum();
    assert!(
        chi_square < 16.27,
        "three degrees of freedom, p = 0.001: {chi_square}"
    );
}

fn run_once(logits: &[f32], row: &RowContext<'_>) -> i32 {
    let mut scratch = Scratch::new(logits.len(), row.tokens.len());
    // SAFETY: portable always runs.
    let sampled = unsafe {
        sample(
            Level::Portable,
            &mut logits.to_vec(),
            row,
            &mut scratch,
            &mut [],
            &mut [],
        )
    };
    sampled.token.unwrap()
}
