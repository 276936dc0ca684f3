//! Prompt lookup: guessing what comes next from what came after the same words before (Saxena 2023).
//!
//! Keeps no state: a sequence is searched backwards for the last place where its final tokens stand.
//! One pass compares each token with the last one, eight or more at a time, and only where they agree
//! looks further: a microsecond for a thousand tokens. An index would have to be built for every row that
//! begins, copied for every fork and cut for every token that is taken back.

use crate::TokenId;

/// Tokens compared at once while looking for the last one.
const CHUNK: usize = 16;

/// Where a sequence's final tokens stand once more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Match {
    /// The first token after that place.
    pub next: usize,
    /// How many final tokens agree, at most as many as were asked to.
    pub length: usize,
}

/// The earlier place that agrees with the most final tokens, at least `least` and at most `most` of them;
/// the last one of several.
pub fn find(tokens: &[TokenId], least: usize, most: usize) -> Option<Match> {
    let (&last, before) = tokens.split_last()?;
    let mut best: Option<Match> = None;
    let mut end = before.len();
    while end > 0 {
        let start = end.saturating_sub(CHUNK);
        let chunk = &before[start..end];
        // Without a branch in the loop, so that it becomes vector instructions.
        if chunk
            .iter()
            .fold(false, |found, &token| found | (token == last))
        {
            for at in (start..end).rev().filter(|&at| before[at] == last) {
                let length = common_tail(&tokens[..=at], tokens, most);
                if length >= least && best.is_none_or(|best| length > best.length) {
                    best = Some(Match {
                        next: at + 1,
                        length,
                    });
                    if length == most {
                        return best;
                    }
                }
            }
        }
        end = start;
    }
    best
}

/// How many tokens at the ends of both agree, `most` at most.
fn common_tail(one: &[TokenId], other: &[TokenId], most: usize) -> usize {
    let pairs = one.iter().rev().zip(other.iter().rev());
    pairs.take(most).take_while(|(a, b)| a == b).count()
}

/// Guess the next tokens: those after the match, up to the first that is in `stops`. Where the match runs
/// into the sequence's end it goes on with the guess itself, as in a text that repeats.
///
/// Returns how many entries of `draft` were filled.
pub fn continue_from(
    tokens: &[TokenId],
    found: Match,
    stops: &[TokenId],
    draft: &mut [TokenId],
) -> usize {
    for filled in 0..draft.len() {
        let at = found.next + filled;
        let token = match at.checked_sub(tokens.len()) {
            None => tokens[at],
            Some(guessed) => draft[guessed],
        };
        if stops.contains(&token) {
            return filled;
        }
        draft[filled] = token;
    }
    draft.len()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The definition, place by place.
    fn naive(tokens: &[TokenId], least: usize, most: usize) -> Option<Match> {
        let count = tokens.len();
        let mut best: Option<Match> = None;
        for next in 1..count {
            let length = (1..=most.min(next))
                .take_while(|&back| tokens[next - back] == tokens[count - back])
                .count();
            if length >= least && best.is_none_or(|best| length >= best.length) {
                best = Some(Match { next, length });
            }
        }
        best
    }

    proptest! {
        #[test]
        fn finds_what_the_definition_says(
            tokens in prop::collection::vec(0i32..4, 0..120),
            least in 1usize..5,
            more in 0usize..6,
        ) {
            prop_assert_eq!(find(&tokens, least, least + more), naive(&tokens, least, least + more));
        }

        #[test]
        fn a_guess_is_what_came_next(
            tokens in prop::collection::vec(0i32..6, 2..80),
            room in 0usize..20,
            stop in 0i32..8,
        ) {
            if let Some(found) = find(&tokens, 1, 4) {
                let mut draft = vec![-1; room];
                let filled = continue_from(&tokens, found, &[stop], &mut draft);
                let mut known = tokens.clone();
                for &token in &draft[..filled] {
                    prop_assert_eq!(token, known[found.next + known.len() - tokens.len()]);
                    prop_assert_ne!(token, stop);
                    known.push(token);
                }
                let next = known[found.next + filled];
                prop_assert!(filled == room || next == stop);
                prop_assert!(draft[filled..].iter().all(|&token| token == -1));
            }
        }
    }

    #[test]
    fn the_longest_match_wins_and_then_the_last() {
        let tokens = [7, 1, 2, 3, 50, 9, 2, 3, 60, 8, 2, 3, 70, 1, 2, 3];
        assert_eq!(find(&tokens, 2, 4), Some(Match { next: 4, length: 3 }));
        assert_eq!(
            find(&tokens, 2, 2),
            Some(Match {
                next: 12,
                length: 2
            })
        );
        assert_eq!(find(&tokens, 4, 4), None);
    }

    #[test]
    fn nothing_is_found_in_next_to_nothing() {
        assert_eq!(find(&[], 1, 4), None);
        assert_eq!(find(&[5], 1, 4), None);
        assert_eq!(find(&[5, 5], 1, 4), Some(Match { next: 1, length: 1 }));
    }
}
