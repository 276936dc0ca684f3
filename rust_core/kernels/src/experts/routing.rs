//! Routing: from a router's logits of a row to the experts that it uses, and their weights.
//!
//! Invariant: the result depends on the row's logits alone. Equal scores prefer the lower index, and the chosen experts are in
//! ascending order, in which their outputs are added. A logit that is not a number is chosen last; a row with one has weights
//! that are no numbers, so that it fails as any other row with such values.
//!
//! Costs `count * used` comparisons in the worst case and an exponential per expert. Does not allocate.

use crate::activation::sigmoid;
use crate::spec::{ExpertsSpec, MAX_USED_EXPERTS, RoutingScores};

/// Kept in the denominator of renormalised weights, so that scores of zero give weights of zero.
const LEAST_SUM: f32 = 1e-20;

/// Chooses the experts of rows of one layer.
#[derive(Debug, Clone, Copy)]
pub struct Router<'a> {
    pub spec: &'a ExpertsSpec,
    /// `[count]`: added to the scores by which experts are chosen, if any.
    pub correction: Option<&'a [f32]>,
    /// `[count]`: factor of each expert's weight, if any.
    pub expert_scale: Option<&'a [f32]>,
}

impl Router<'_> {
    /// Choose the experts of a row with these logits, which are overwritten. Writes the indices of the chosen experts to
    /// `chosen`, ascending, and their weights to `weights`; both have `used` entries.
    pub fn choose(&self, logits: &mut [f32], chosen: &mut [u32], weights: &mut [f32]) {
        let routing = &self.spec.routing;
        assert_eq!(logits.len(), self.spec.count);
        assert!(chosen.len() == self.spec.used && weights.len() == self.spec.used);
        if routing.logit_scale != 1.0 {
            logits.iter_mut().for_each(|x| *x *= routing.logit_scale);
        }
        let scores = logits;
        match routing.scores {
            RoutingScores::Softmax => softmax(scores),
            RoutingScores::SoftmaxOfUsed => {}
            RoutingScores::Sigmoid => scores.iter_mut().for_each(|x| *x = sigmoid(*x)),
        }
        self.choose_best(scores, chosen);
        for (weight, &expert) in weights.iter_mut().zip(&*chosen) {
            *weight = scores[expert as usize];
        }
        if routing.scores == RoutingScores::SoftmaxOfUsed {
            softmax(weights);
        }
        if routing.renormalise {
            let sum = weights.iter().sum::<f32>() + LEAST_SUM;
            weights.iter_mut().for_each(|weight| *weight /= sum);
        }
        if scores.iter().any(|score| score.is_nan()) {
            weights.fill(f32::NAN);
        }
        for (weight, &expert) in weights.iter_mut().zip(&*chosen) {
            let scale = self
                .expert_scale
                .map_or(1.0, |scale| scale[expert as usize]);
            *weight *= routing.scale * scale;
        }
    }

    /// The score by which an expert is chosen.
    fn choice(&self, scores: &[f32], expert: usize) -> f32 {
        let score = scores[expert] + self.correction.map_or(0.0, |correction| correction[expert]);
        if score.is_nan() {
            f32::NEG_INFINITY
        } else {
            score
        }
    }

    /// Write the indices of the best experts, ascending.
    fn choose_best(&self, scores: &[f32], chosen: &mut [u32]) {
        let routing = &self.spec.routing;
        let each = self.spec.count / routing.groups;
        let mut best = Best::of(chosen.len());
        if routing.groups == 1 {
            (0..self.spec.count).for_each(|expert| best.offer(expert, self.choice(scores, expert)));
        } else {
            let mut groups = Best::of(routing.used_groups);
            for group in 0..routing.groups {
                let mut two = Best::of(2);
                let members = group * each..(group + 1) * each;
                members.for_each(|expert| two.offer(expert, self.choice(scores, expert)));
                groups.offer(group, two.scores[0] + two.scores[1]);
            }
            // Ascending, so that equal scores prefer the lower index.
            for &group in groups.ascending() {
                let members = group as usize * each..(group as usize + 1) * each;
                members.for_each(|expert| best.offer(expert, self.choice(scores, expert)));
            }
        }
        chosen.copy_from_slice(best.ascending());
    }
}

/// The best of what was offered, in descending order of scores and then in the order of the offers.
struct Best {
    scores: [f32; MAX_USED_EXPERTS],
    indices: [u32; MAX_USED_EXPERTS],
    len: usize,
    most: usize,
}

impl Best {
    /// Keeps at most `most`.
    fn of(most: usize) -> Self {
        assert!(most <= MAX_USED_EXPERTS);
        Self {
            scores: [f32::NEG_INFINITY; MAX_USED_EXPERTS],
            indices: [0; MAX_USED_EXPERTS],
            len: 0,
            most,
        }
    }

    fn offer(&mut self, index: usize, score: f32) {
        if self.len == self.most {
            if score <= self.scores[self.len - 1] {
                return;
            }
        } else {
            self.len += 1;
        }
        let mut at = self.len - 1;
        while at > 0 && score > self.scores[at - 1] {
            self.scores[at] = self.scores[at - 1];
            self.indices[at] = self.indices[at - 1];
            at -= 1;
        }
        (self.scores[at], self.indices[at]) = (score, index as u32);
    }

    fn ascending(&mut self) -> &[u32] {
        let indices = &mut self.indices[..self.len];
        indices.sort_unstable();
        indices
    }
}

/// Softmax in place.
fn softmax(values: &mut [f32]) {
    let largest = values.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let mut sum = 0.0;
    for value in values.iter_mut() {
        *value = (*value - largest).exp();
        sum += *value;
    }
    values.iter_mut().for_each(|value| *value /= sum);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::{Activation, RoutingSpec};
    use proptest::prelude::*;

    fn experts(count: usize, used: usize, scores: RoutingScores, renormalise: bool) -> ExpertsSpec {
        ExpertsSpec {
            count,
            used,
            intermediate_size: 32,
            routing: RoutingSpec {
                scores,
                renormalise,
                scale: 1.0,
                logit_scale: 1.0,
                groups: 1,
                used_groups: 1,
            },
            activation: Activation::Silu,
            shared: None,
        }
    }

    fn choose(router: Router<'_>, logits: &[f32]) -> (Vec<u32>, Vec<f32>) {
        let (mut logits, used) = (logits.to_vec(), router.spec.used);
        let (mut chosen, mut weights) = (vec![u32::MAX; used], vec![f32::NAN; used]);
        router.choose(&mut logits, &mut chosen, &mut weights);
        (chosen, weights)
    }

    fn plain(spec: &ExpertsSpec) -> Router<'_> {
        Router {
            spec,
            correction: None,
            expert_scale: None,
        }
    }

    /// The same in double precision, by sorting whole lists; and the smallest difference between two scores that were compared.
    fn oracle(router: Router<'_>, logits: &[f32]) -> (Vec<u32>, Vec<f64>, f64) {
        let (spec, routing) = (router.spec, &router.spec.routing);
        let logits: Vec<f64> = logits
            .iter()
            .map(|&x| f64::from(x) * f64::from(routing.logit_scale))
            .collect();
        let softmax = |values: &[f64]| -> Vec<f64> {
            let all: f64 = values.iter().map(|x| x.exp()).sum();
            values.iter().map(|x| x.exp() / all).collect()
        };
        let scores = match routing.scores {
            RoutingScores::Softmax => softmax(&logits),
            RoutingScores::SoftmaxOfUsed => logits.clone(),
            RoutingScores::Sigmoid => logits.iter().map(|x| 1.0 / (1.0 + (-x).exp())).collect(),
        };
        let by: Vec<f64> = (0..spec.count)
            .map(|at| scores[at] + router.correction.map_or(0.0, |all| f64::from(all[at])))
            .collect();
        let best_first = |indices: Vec<usize>, score: &dyn Fn(usize) -> f64| {
            let mut indices = indices;
            indices.sort_by(|&one, &other| {
                score(other)
                    .partial_cmp(&score(one))
                    .unwrap()
                    .then(one.cmp(&other))
            });
            indices
        };
        let each = spec.count / routing.groups;
        let group_score = |group: usize| {
            let members = (group * each..(group + 1) * each).collect();
            let best = best_first(members, &|at| by[at]);
            best[..2.min(each)].iter().map(|&at| by[at]).sum::<f64>()
        };
        let groups = best_first((0..routing.groups).collect(), &group_score);
        let allowed: Vec<usize> = groups[..routing.used_groups]
            .iter()
            .flat_map(|group| group * each..(group + 1) * each)
            .collect();
        let mut chosen = best_first(allowed, &|at| by[at])[..spec.used].to_vec();
        chosen.sort_unstable();
        let mut weights: Vec<f64> = chosen.iter().map(|&at| scores[at]).collect();
        if routing.scores == RoutingScores::SoftmaxOfUsed {
            weights = softmax(&weights);
        }
        if routing.renormalise {
            let sum: f64 = weights.iter().sum();
            weights.iter_mut().for_each(|weight| *weight /= sum);
        }
        for (weight, &at) in weights.iter_mut().zip(&chosen) {
            *weight *= f64::from(routing.scale);
            *weight *= router.expert_scale.map_or(1.0, |all| f64::from(all[at]));
        }
        let least_gap = |mut scores: Vec<f64>| {
            scores.sort_by(f64::total_cmp);
            let gaps = scores.windows(2).map(|pair| pair[1] - pair[0]);
            gaps.fold(f64::INFINITY, f64::min)
        };
        let group_scores = (0..routing.groups).map(group_score).collect();
        let margin = least_gap(by.clone()).min(least_gap(group_scores));
        let chosen = chosen.into_iter().map(|at| at as u32).collect();
        (chosen, weights, margin)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(200))]
        #[test]
        fn routing_equals_the_oracle(
            kind in 0..3,
            renormalise: bool,
            corrected: bool,
            scaled: bool,
            groups in 1usize..4,
            seed in prop::collection::vec(-40i8..40, 48),
            used in 1usize..5,
        ) {
            let scores = [RoutingScores::Softmax, RoutingScores::SoftmaxOfUsed, RoutingScores::Sigmoid];
            let mut spec = experts(24, used, scores[kind as usize], renormalise);
            (spec.routing.groups, spec.routing.used_groups) = (groups, groups.div_ceil(2));
            if scaled {
                (spec.routing.scale, spec.routing.logit_scale) = (2.5, 0.5);
            }
            // Single scores are often equal. Sums of two are rounded, so that equal ones may differ: they are kept apart.
            let sums = corrected || groups > 1;
            let apart = |at: usize| if sums { at as f32 * 0.0137 } else { 0.0 };
            let value = |(at, &x): (usize, &i8)| f32::from(x) / 16.0 + apart(at);
            let values: Vec<f32> = seed.iter().enumerate().map(value).collect();
            let router = Router {
                spec: &spec,
                correction: corrected.then_some(&values[24..]),
                expert_scale: scaled.then_some(&values[24..]),
            };
            let (wanted, exact, margin) = oracle(router, &values[..24]);
            prop_assume!(!sums || margin > 1e-5);
            let (chosen, weights) = choose(router, &values[..24]);
            prop_assert_eq!(chosen, wanted);
            for (weight, exact) in weights.iter().zip(&exact) {
                prop_assert!((f64::from(*weight) - exact).abs() <= 1e-5 * exact.abs().max(1.0));
            }
        }

        #[test]
        fn any_bits_choose_different_experts(
            bits in prop::collection::vec(any::<u32>(), 16),
            kind in 0..3,
        ) {
            let scores = [RoutingScores::Softmax, RoutingScores::SoftmaxOfUsed, RoutingScores::Sigmoid];
            let spec = experts(16, 6, scores[kind as usize], true);
            let logits: Vec<f32> = bits.into_iter().map(f32::from_bits).collect();
            let (chosen, _) = choose(plain(&spec), &logits);
            prop_assert!(chosen.is_sorted_by(|one, next| one < next));
            prop_assert!(chosen.iter().all(|&expert| expert < 16));
        }
    }

    #[test]
    fn ties_prefer_the_lower_index() {
        let spec = experts(6, 3, RoutingScores::Softmax, true);
        let (chosen, weights) = choose(plain(&spec), &[1.0, 2.0, 1.0, 2.0, 1.0, 0.0]);
        assert_eq!(chosen, [0, 1, 3]);
        assert_eq!(weights[1].to_bits(), weights[2].to_bits());
    }

    #[test]
    fn a_correction_chooses_but_does_not_weigh() {
        let spec = experts(4, 1, RoutingScores::Sigmoid, false);
        let router = Router {
            correction: Some(&[0.0, 0.0, 1.0, 0.0]),
            ..plain(&spec)
        };
        let (chosen, weights) = choose(router, &[0.0; 4]);
        assert_eq!((chosen, weights), (vec![2], vec![0.5]));
    }

    #[test]
    fn groups_are_chosen_by_their_two_best() {
        let mut spec = experts(6, 2, RoutingScores::SoftmaxOfUsed, false);
        (spec.routing.groups, spec.routing.used_groups) = (2, 1);
        // The best expert is in the first group, the best pair in the second.
        let (chosen, _) = choose(plain(&spec), &[5.0, 0.0, 0.0, 3.0, 1.0, 3.0]);
        assert_eq!(chosen, [3, 5]);
    }

    #[test]
    fn a_row_with_a_nan_has_no_weights() {
        let spec = experts(4, 2, RoutingScores::Sigmoid, true);
        let (chosen, weights) = choose(plain(&spec), &[f32::NAN, 1.0, f32::NAN, 0.0]);
        assert_eq!(chosen, [1, 3]);
        assert!(weights.iter().all(|weight| weight.is_nan()));
    }

    #[test]
    fn scores_of_zero_weigh_nothing() {
        let spec = experts(3, 2, RoutingScores::Sigmoid, true);
        let (_, weights) = choose(plain(&spec), &[-1000.0; 3]);
        assert_eq!(weights, [0.0, 0.0]);
    }
}
