"""Merge rules of a SentencePiece BPE vocabulary, which stores scores instead of them."""

from collections.abc import Mapping, Sequence


def merges_from_scores(
    vocabulary: Mapping[str, int], scores: Sequence[float], mergeable: Sequence[str]
) -> list[tuple[str, str]]:
    """The merges, first to apply first.

    SentencePiece joins the neighbours whose union scores highest, so every way of cutting a piece
    in two known pieces is a merge, ranked by the piece's score. Costs O(sum of piece lengths).

    Args:
        vocabulary: piece to id.
        scores: by id.
        mergeable: the pieces that merging may make (ordinary ones, not control or byte tokens).
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
