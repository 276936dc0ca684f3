"""An answer as units of tokens with their figures: what the token cursor and the tints show."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from app.tui.glyphs import Glyphs
from app.tui.view.heat import AnswerFigures, build_figures, surprisal
from app.tui.view.token_lines import TokenUnit, build_units
from engine.api.request import TopLogprob
from engine.conversations.token_sources import TokenSource
from engine.conversations.tokens import AnswerTokens


@dataclass(frozen=True, slots=True)
class TokenAnswer:
    """The tokens of one answer.

    Attributes:
        tokens: number of tokens.
        units: what the cursor steps over.
        logprobs: of each unit, the sum of its tokens' logarithms, NaN where unknown, [units].
        bits: of each unit, its surprisal, [units].
        topk: of each unit, the alternatives of its first token; empty where unknown, [units].
        first_ids: of each unit, its first token, [units].
        sources: of each unit, where its first token came from; None where unknown, [units].
        source_counts: number of tokens from each source that is known.
        figures: for the header; None if no probabilities are stored. Its index is one of a token.
        prompt_tokens, cached_tokens: tokens of the prompt, and those found in the prefix cache; None if
            unknown.
    """

    node_id: str
    tokens: int
    units: tuple[TokenUnit, ...]
    logprobs: tuple[float, ...]
    bits: tuple[float, ...]
    topk: tuple[tuple[TopLogprob, ...], ...]
    first_ids: tuple[int, ...]
    sources: tuple[TokenSource | None, ...]
    source_counts: Mapping[TokenSource, int]
    figures: AnswerFigures | None
    prompt_tokens: int | None = None
    cached_tokens: int | None = None

    def unit_of(self, token: int) -> int:
        """The unit that contains a token."""
        return next(at for at, unit in enumerate(self.units) if token < unit.end)


def build_token_answer(
    answer: AnswerTokens,
    glyphs: Glyphs,
    *,
    prompt_tokens: int | None = None,
    cached_tokens: int | None = None,
) -> TokenAnswer:
    """The units of an answer and their figures; the counts are those of its node."""
    units = build_units(answer.texts, glyphs)
    logprobs = tuple(sum(answer.logprobs[unit.start : unit.end]) for unit in units)
    return TokenAnswer(
        node_id=answer.node_id,
        tokens=len(answer.token_ids),
        units=units,
        logprobs=logprobs,
        bits=tuple(map(surprisal, logprobs)),
        topk=tuple(answer.topk[unit.start] for unit in units),
        first_ids=tuple(answer.token_ids[unit.start] for unit in units),
        sources=tuple(answer.sources[unit.start] for unit in units),
        source_counts=Counter(source for source in answer.sources if source is not None),
        figures=build_figures(answer.logprobs, answer.topk),
        prompt_tokens=prompt_tokens,
        cached_tokens=cached_tokens,
    )


@dataclass(frozen=True, slots=True)
class Alternative:
    """A row of the alternatives of a token.

    Attributes:
        text: the visible text.
        chosen: whether it is the answer's own token.
    """

    token_id: int
    text: str
    logprob: float
    chosen: bool


def build_alternatives(
    answer: TokenAnswer,
    unit: int,
    topk: Sequence[TopLogprob],
    texts: Sequence[str],
    glyphs: Glyphs,
) -> tuple[Alternative, ...]:
    """The alternatives of a unit's first token, most likely first, and the answer's own token.

    Args:
        topk: the alternatives.
        texts: their texts.
        glyphs: the marks.
    """
    own = answer.first_ids[unit]
    rows = [
        Alternative(one.token_id, visible_token(text, glyphs), one.logprob, one.token_id == own)
        for one, text in zip(topk, texts, strict=True)
    ]
    if not any(one.chosen for one in rows):
        # The probability of a unit of several tokens is not that of its first one.
        of_one = answer.units[unit].end - answer.units[unit].start == 1
        logprob = answer.logprobs[unit] if of_one else math.nan
        rows.append(Alternative(own, answer.units[unit].text, logprob, True))
    return tuple(rows)


def visible_token(text: str, glyphs: Glyphs) -> str:
    """A token's text on one line, with marks for what cannot be seen."""
    return "".join(unit.text for unit in build_units([text], glyphs))
