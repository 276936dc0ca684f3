//! Prompt lookup decoding (Saxena 2023): draft tokens copied from after an earlier occurrence of the last n-gram.
//!
//! Stateless: a sequence is searched backwards for the latest earlier occurrence of its final tokens. One pass compares
//! each token with the last one, eight or more at a time, and compares further tokens only where they match: a
//! microsecond for a thousand tokens. An index would have to be built for every new row, copied for every fork and
//! truncated for every token that is removed.

use crate::TokenId;

/// Tokens compared at once while searching for the last one.
const CHUNK: usize = 16;

/// An earlier occurrence of a sequence's final tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Match {
    /// Index of the token after it.
    pub next: usize,
    /// Number of matching tokens.
    pub length: usize,
}

/// The longest earlier occurrence of the final tokens, `min_match` to `max_match` of them; the latest of
/// several.
pub fn find(tokens: &[TokenId], min_match: usize, max_match: usize) -> Option<Match> {
    let (&last, before) = tokens.split_last()?;
    let mut best: Option<Match> = None;
    let mut end = before.len();
    while end > 0 {
        let start = end.saturating_sub(CHUNK);
        let chunk = &before[start..end];
        // Branch-free, so that the compiler vectorizes it.
        if chunk
            .iter()
            .fold(false, |found, &token| found | (token == last))
        {
            for at in (start..end).rev().filter(|&at| before[at] == last) {
                let length = common_suffix(&tokens[..=at], tokens, max_match);
                if length >= min_match && best.is_none_or(|best| length > best.length) {
                    best = Some(Match {
                        next: at + 1,
                        length,
                    });
                    if length == max_match {
                        return best;
                    }
                }
            }
        }
        end = start;
    }
    best
}

/// Length of the longest common suffix, at most `max_match`.
fn common_suffix(one: &[TokenId], other: &[TokenId], max_match: usize) -> usize {
    let pairs = one.iter().rev().zip(other.iter().rev());
    pairs.take(max_match).take_while(|(a, b)| a == b).count()
}

/// Draft the tokens after the match, up to the first that is in `stops`. If the match reaches the sequence's end, the
/// draft continues with itself, as in a repeating text.
///
/// Returns the number of entries of `draft` that were filled.
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
            Some(drafted) => draft[drafted],
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

    /// The definition, position by position.
    fn naive(tokens: &[TokenId], min_match: usize, max_match: usize) -> Option<Match> {
        let count = tokens.len();
        let mut best: Option<Match> = None;
        for next in 1..count {
            let length = (1..=max_match.min(next))
                .take_while(|&back| tokens[next - back] == tokens[count - back])
                .count();
            if length >= min_match && best.is_none_or(|best| length >= best.length) {
                best = Some(Match { next, length });
            }
        }
        best
    }

    proptest! {
        #[test]
        fn finds_what_the_definition_says(
            tokens in prop::collection::vec(0i32..4, 0..120),
            min_match in 1usize..5,
            more in 0usize..6,
        ) {
            prop_assert_eq!(find(&tokens, min_match, min_match + more), naive(&tokens, min_match, min_match + more));
        }

        #[test]
        fn a_draft_is_what_came_next(
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
    fn very_short_sequences_have_no_match() {
        assert_eq!(find(&[], 1, 4), None);
        assert_eq!(find(&[5], 1, 4), None);
        assert_eq!(find(&[5, 5], 1, 4), Some(Match { next: 1, length: 1 }));
    }
}
