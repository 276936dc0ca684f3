"""Where the tokens of an answer came from: the prefix cache, a computation, an accepted draft."""

from enum import StrEnum

from engine.conversations.tree import Node


class TokenSource(StrEnum):
    """Where a token came from.

    Attributes:
        CACHED: a token of the prompt whose KV was found in the prefix cache.
        COMPUTED: a token of the prompt that was computed, or one that was sampled after a known token.
        DRAFT: an accepted draft token: verified together with the tokens before it, in the same step.
    """

    CACHED = "cached"
    COMPUTED = "computed"
    DRAFT = "draft"


def token_sources(node: Node) -> tuple[TokenSource | None, ...]:
    """The source of each of an answer's tokens; None where it is unknown.

    An answer that was forked at a token, or continued, begins with tokens that were the end of its prompt.
    """
    count = len(node.token_ids or ())
    begun = count - node.n_gen if node.n_gen is not None and node.n_gen <= count else 0
    return (*_begun_sources(node, begun), *_generated_sources(node, begun, count))


def _begun_sources(node: Node, begun: int) -> tuple[TokenSource | None, ...]:
    """The sources of the first `begun` tokens, the last ones of the prompt."""
    if node.n_prompt is None or node.n_cached is None:
        return (None,) * begun
    cached = min(max(node.n_cached - (node.n_prompt - begun), 0), begun)
    return (TokenSource.CACHED,) * cached + (TokenSource.COMPUTED,) * (begun - cached)


def _generated_sources(node: Node, begun: int, count: int) -> tuple[TokenSource | None, ...]:
    """The sources of the tokens [begun, count)."""
    if not node.drafted:
        return (None,) * (count - begun)
    return tuple(
        TokenSource.DRAFT if drafted else TokenSource.COMPUTED for drafted in node.drafted[begun:]
    )
