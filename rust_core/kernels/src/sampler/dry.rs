//! The DRY penalty ("don't repeat yourself"), with the semantics of llama.cpp.
//!
//! A token that would continue a repetition is penalised. If the last `n` tokens of the row also occurred earlier, and a
//! token followed them there, its logit decreases by `multiplier * base ^ (n - allowed_length)`, for the largest such `n`
//! of at least `allowed_length`. Only the last `penalty_last_n` tokens count, prompt included. A repetition does not
//! extend across a sequence breaker: `n` is at most the number of tokens after the last one. A token that is a breaker by
//! itself is never penalised.
//!
//! Stateless: repetitions are found in the token table by the Z-algorithm, so drafts, forks and preemption need no
//! care. Cost: O(window) for each sample, 1 to 2 ns per token; nothing for a row without the penalty.

/// Most tokens of a [`Breakers`] pattern after its head; `MAX_BREAKER_TAIL` in Python.
pub const MAX_BREAKER_TAIL: usize = 20;

/// Largest penalty, which excludes a token unless all others are excluded too. llama.cpp's limit is the largest float32,
/// which overflows when it is divided by a low temperature.
const MAX_PENALTY: f64 = 1e6;

/// The sequence breakers of a row: patterns of a head, any token of a set, and a tail of given tokens.
///
/// A breaker is a string. Its first pattern has the tokens that contain it and an empty tail; each further pattern has
/// the tokens that end with its first characters, and the tokens of the rest of it as tail.
#[derive(Debug, Clone, Copy, Default)]
pub struct Breakers<'a> {
    /// `[patterns, words]`: bit `id % 32` of word `id / 32` is 1 if token `id` is a head.
    heads: &'a [u32],
    /// `[patterns, MAX_BREAKER_TAIL]`, padded with -1.
    tails: &'a [i32],
    words: usize,
}

impl<'a> Breakers<'a> {
    /// `heads` has `words` words and `tails` [`MAX_BREAKER_TAIL`] tokens for each pattern.
    pub fn new(heads: &'a [u32], tails: &'a [i32], words: usize) -> Self {
        assert_eq!(heads.len() * MAX_BREAKER_TAIL, tails.len() * words);
        Self {
            heads,
            tails,
            words,
        }
    }

    fn patterns(&self) -> impl Iterator<Item = (&'a [u32], &'a [i32])> {
        let tails = self.tails.chunks_exact(MAX_BREAKER_TAIL).map(|tail| {
            let end = tail.iter().position(|&id| id < 0).unwrap_or(tail.len());
            &tail[..end]
        });
        self.heads.chunks_exact(self.words.max(1)).zip(tails)
    }

    /// Whether the token is a breaker by itself.
    fn is_breaker(&self, token: i32) -> bool {
        self.patterns()
            .any(|(heads, tail)| tail.is_empty() && contains(heads, token))
    }

    /// The longest tail of a pattern that matches `tokens` from their first token on; None if no pattern does.
    fn longest_match(&self, tokens: &[i32]) -> Option<usize> {
        self.patterns()
            .filter(|(heads, tail)| contains(heads, tokens[0]) && tokens[1..].starts_with(tail))
            .map(|(_, tail)| tail.len())
            .max()
    }

    /// Number of tokens after the last breaker in `tokens`; all if there is none.
    fn tokens_since(&self, tokens: &[i32]) -> usize {
        if self.heads.is_empty() {
            return tokens.len();
        }
        for start in (0..tokens.len()).rev() {
            if let Some(tail) = self.longest_match(&tokens[start..]) {
                return tokens.len() - start - 1 - tail;
            }
        }
        tokens.len()
    }
}

fn contains(heads: &[u32], token: i32) -> bool {
    heads[token as usize / 32] >> (token % 32) & 1 == 1
}

/// Scratch memory of [`penalties`]. Nothing is allocated after construction.
#[derive(Debug)]
pub struct Scratch {
    /// Repetition of the window's end at each distance, see [`repetitions`].
    lengths: Vec<u32>,
    /// One more than the longest repetition that each token would continue; all zero between rows.
    longest: Vec<u32>,
    /// Tokens whose entry in `longest` is not zero.
    found: Vec<u32>,
}

impl Scratch {
    /// For a vocabulary and rows of at most `max_tokens` tokens.
    pub fn new(vocab: usize, max_tokens: usize) -> Self {
        Self {
            lengths: Vec::with_capacity(max_tokens),
            longest: vec![0; vocab],
            found: Vec::with_capacity(max_tokens),
        }
    }
}

/// Parameters of the penalty.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Params {
    pub multiplier: f32,
    /// At least 1.
    pub base: f32,
    pub allowed_length: usize,
    /// How many last tokens count.
    pub last_n: usize,
}

/// The penalised tokens after `tokens`, all below the vocabulary size, and the penalty of each.
pub fn penalties<'a>(
    tokens: &[i32],
    params: Params,
    breakers: Breakers<'_>,
    scratch: &'a mut Scratch,
) -> impl Iterator<Item = (usize, f32)> + 'a {
    let allowed = params.allowed_length;
    let window = &tokens[tokens.len().saturating_sub(params.last_n)..];
    let limit = breakers.tokens_since(window);
    if window.len() > allowed && limit >= allowed {
        find(window, allowed, limit, breakers, scratch);
    }
    let Scratch { longest, found, .. } = scratch;
    found.drain(..).map(move |token| {
        let repeated = std::mem::take(&mut longest[token as usize]) - 1;
        let exponent = repeated - allowed as u32;
        (
            token as usize,
            penalty(params.multiplier, params.base, exponent),
        )
    })
}

/// Fill `scratch.found` and `scratch.longest` with the repetitions of at least `allowed` tokens, cut to `limit`.
fn find(
    window: &[i32],
    allowed: usize,
    limit: usize,
    breakers: Breakers<'_>,
    scratch: &mut Scratch,
) {
    repetitions(window, &mut scratch.lengths);
    for (distance, &length) in scratch.lengths.iter().enumerate().skip(1) {
        let length = (length as usize).min(limit);
        if length < allowed {
            continue;
        }
        // The window's last `length` tokens also end `distance` tokens before its end, where this one follows.
        let token = window[window.len() - distance];
        let longest = &mut scratch.longest[token as usize];
        if *longest == 0 {
            if breakers.is_breaker(token) {
                continue;
            }
            scratch.found.push(token as u32);
        }
        *longest = (*longest).max(length as u32 + 1);
    }
}

/// `lengths[d]`: the number of last tokens that also end `d` tokens before the end. The Z-algorithm on the reversed
/// tokens; `lengths[0]` is 0.
fn repetitions(tokens: &[i32], lengths: &mut Vec<u32>) {
    let count = tokens.len();
    let from_end = |at: usize| tokens[count - 1 - at];
    lengths.clear();
    lengths.resize(count, 0);
    // Tokens `start..end` from the end equal the last `end - start`; `end` is the largest known.
    let (mut start, mut end) = (0, 0);
    for at in 1..count {
        let mut length = 0;
        if at < end {
            length = (lengths[at - start] as usize).min(end - at);
        }
        if at + length >= end {
            while at + length < count && from_end(length) == from_end(at + length) {
                length += 1;
            }
            (start, end) = (at, at + length);
        }
        lengths[at] = length as u32;
    }
}

/// `multiplier * base ^ exponent`, at most [`MAX_PENALTY`]. By repeated squaring, which numpy repeats bit by bit.
fn penalty(multiplier: f32, base: f32, mut exponent: u32) -> f32 {
    let (mut power, mut square) = (1.0, f64::from(base));
    while exponent > 0 {
        if exponent & 1 == 1 {
            power *= square;
        }
        square *= square;
        exponent >>= 1;
    }
    (f64::from(multiplier) * power).min(MAX_PENALTY) as f32
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pack::tests::Random;

    #[test]
    fn repetition_lengths_equal_the_definition() {
        let mut random = Random(3);
        let mut lengths = Vec::new();
        for case in 0..400 {
            let (count, kinds) = (1 + random.bits() as usize % 60, 1 + case % 4);
            let tokens: Vec<i32> = (0..count)
                .map(|_| (random.bits() as usize % kinds) as i32)
                .collect();
            repetitions(&tokens, &mut lengths);
            for distance in 1..count {
                let expected = (0..count - distance)
                    .take_while(|at| tokens[count - 1 - at] == tokens[count - 1 - at - distance])
                    .count();
                assert_eq!(
                    lengths[distance] as usize, expected,
                    "{tokens:?} {distance}"
                );
            }
        }
    }

    #[test]
    fn the_penalty_grows_by_its_base_and_is_bounded() {
        assert_eq!(penalty(0.8, 1.75, 0), 0.8);
        assert_eq!(penalty(2.0, 1.5, 3), 6.75);
        assert_eq!(penalty(1.0, 2.0, u32::MAX), MAX_PENALTY as f32);
        assert_eq!(penalty(0.5, 1.0, 1000), 0.5);
    }

    /// Heads of single tokens, and the tail of each.
    fn arrays(patterns: &[(i32, &[i32])]) -> (Vec<u32>, Vec<i32>) {
        let (mut heads, mut tails) = (Vec::new(), Vec::new());
        for (head, tail) in patterns {
            heads.push(1 << head);
            tails.extend_from_slice(tail);
            tails.resize(heads.len() * MAX_BREAKER_TAIL, -1);
        }
        (heads, tails)
    }

    #[test]
    fn breakers_limit_a_repetition() {
        let (heads, tails) = arrays(&[(9, &[]), (1, &[2, 3]), (1, &[2])]);
        let breakers = Breakers::new(&heads, &tails, 1);
        assert_eq!(breakers.tokens_since(&[4, 5]), 2);
        assert_eq!(breakers.tokens_since(&[9, 4, 5]), 2);
        assert_eq!(breakers.tokens_since(&[4, 9]), 0);
        // The longest pattern of the last head counts, and an incomplete one does not.
        assert_eq!(breakers.tokens_since(&[1, 2, 3, 4]), 1);
        assert_eq!(breakers.tokens_since(&[1, 2, 4]), 1);
        assert_eq!(breakers.tokens_since(&[4, 4, 1]), 3);
        assert!(breakers.is_breaker(9) && !breakers.is_breaker(1));
        assert_eq!(Breakers::default().tokens_since(&[9, 9]), 2);
    }
}
