"""Merge rules of a SentencePiece BPE vocabulary, derived from its scores."""

from collections.abc import Mapping, Sequence


def merges_from_scores(
    vocabulary: Mapping[str, int], scores: Sequence[float], mergeable: Sequence[str]
) -> list[tuple[str, str]]:
    """The merges, in order of application.

    SentencePiece merges the adjacent pieces whose union has the highest score, so every split of a
    piece into two known pieces is a merge, ranked by the score of the piece. Costs O(total length of
    the pieces).

    Args:
        vocabulary: piece to id.
        scores: by id.
        mergeable: the pieces that merges may produce (normal ones, not control or byte tokens).
    """
    allowed = set(mergeable)
    ranked: list[tuple[float, int, int, str, str]] = []
    for piece in mergeable:
        for cut in range(1, len(piece)):
            left, right = piece[:cut], piece[cut:]
            if left in allowed and right in allowed:
                ranked.append(
                    (
                        -scores[vocabulary[piece]],
                        vocabulary[left],
                        vocabulary[right],
                        left,
                        right,
                    )
                )
    ranked.sort()
    return [(left, right) for *_, left, right in ranked]
