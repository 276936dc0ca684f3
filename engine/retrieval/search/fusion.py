"""Joins the scores of a search by words and of one by meaning.

Reciprocal rank fusion, the usual way, drops how sure either ranking is: a passage that has every rare word
of the query then loses to one that is mediocre in both lists. docs/retrieval.md has the figures of both.
"""

from collections.abc import Mapping

WORDS_WEIGHT = 0.5
"""Weight of the words against the meaning. Less helps paraphrases, more helps identifiers and exact words."""


def weighted_sum(
    lexical: Mapping[int, float],
    ideal: float,
    cosines: Mapping[int, float],
    *,
    weight: float = WORDS_WEIGHT,
) -> list[tuple[int, float]]:
    """Join two scores of the same chunks into one in [0, 1].

    The words count as the share of the query that was found, so a query whose words are mostly nowhere is
    decided by the meaning.

    Args:
        lexical: BM25 by chunk id; a chunk without words of the query is left out.
        ideal: BM25 of a chunk that has every word of the query ever so often; 0 without words.
        cosines: cosine with the query by chunk id, of every chunk that is ranked.
        weight: in [0, 1], of the words.

    Returns:
        (id, score) pairs, best first; equal scores in the order of `cosines`.
    """
    share = weight / ideal if ideal > 0 else 0.0
    scores = {
        # With several spellings of a word a chunk can have more than every word of the query.
        one: min(weight, share * lexical.get(one, 0.0)) + (1 - weight) * max(0.0, cosine)
        for one, cosine in cosines.items()
    }
    return sorted(scores.items(), key=lambda item: -item[1])
