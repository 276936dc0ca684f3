"""Rows about tokens: the header of an answer, the row of the token cursor, the alternatives."""

import math
from collections.abc import Sequence

from app.tui.glyphs import Glyphs, gauge
from app.tui.numbers import duration
from app.tui.view.heat import AnswerFigures
from app.tui.view.spans import Line, Span, cut, fit, width
from app.tui.view.tints import SOURCE_WORDS, Tint, source_role
from app.tui.view.token_answer import Alternative, TokenAnswer
from engine.api.fork_price import ForkPrice
from engine.conversations.token_sources import TokenSource

_BAR = 12
"""Width of a bar of the alternatives in cells."""
_HINTS_BEFORE_SOURCE = 2
"""Number of hints for which the row of the cursor leaves out a token's source."""


def share_text(logprob: float) -> str:
    """A probability in per cent, or `?`."""
    if math.isnan(logprob):
        return "?"
    percent = 100 * math.exp(min(logprob, 0.0))
    if percent >= 0.1:
        return f"{percent:.1f} %"
    return "< 0.1 %"


def build_token_header(answer: TokenAnswer, tint: Tint | None, glyphs: Glyphs, cells: int) -> Line:
    """`perplexity 1.84 · entropy 0.90 bits · least likely "·Paris" 3.1 % at 17`, and the prompt's tokens.

    With the sources tinted `accepted draft 12 · computed 40` instead, each name on its colour: the style
    of such a span is `on` and the theme role. What is unknown, or does not fit in `cells`, is left out.
    """
    parts = _source_legend(answer) if tint is Tint.SOURCE else _figures(answer, glyphs)
    if answer.prompt_tokens is not None and answer.cached_tokens is not None:
        computed = answer.prompt_tokens - answer.cached_tokens
        parts.append(
            (Span(f"prompt {answer.cached_tokens:,} cached + {computed:,} computed", "$muted"),)
        )
    dot = Span(f" {glyphs.separator} ", "$muted")
    while True:
        line = [span for part in parts for span in (dot, *part)][1:]
        if len(parts) == 1 or width(line) <= cells:
            return cut(line, cells)
        parts.pop()


def _source_legend(answer: TokenAnswer) -> list[Line]:
    """The sources with their colours and number of tokens; cached tokens only if there are any."""
    counts = answer.source_counts
    if not counts:
        return [(Span("the sources of these tokens are not stored", "$muted"),)]
    return [
        (
            Span(f" {word} ", f"on ${source_role(source)}"),
            Span(f" {counts.get(source, 0):,}", "$muted"),
        )
        for source, word in SOURCE_WORDS.items()
        if source in counts or source is not TokenSource.CACHED
    ]


def _figures(answer: TokenAnswer, glyphs: Glyphs) -> list[Line]:
    if answer.figures is None:
        return [(Span("no probabilities are stored with this answer", "$muted"),)]
    return [(Span(text, "$muted"),) for text in _figure_texts(answer, answer.figures, glyphs)]


def _figure_texts(answer: TokenAnswer, figures: AnswerFigures, glyphs: Glyphs) -> list[str]:
    parts = [f"perplexity {figures.perplexity:.2f}"]
    if figures.entropy is not None:
        parts.append(f"entropy {figures.entropy:.2f} bits")
    text = quoted(answer.units[answer.unit_of(figures.lowest)].text, glyphs)
    share = share_text(math.log(figures.lowest_share)) if figures.lowest_share else "< 0.1 %"
    return [*parts, f"least likely {text} {share} at {figures.lowest + 1}"]


def quoted(text: str, glyphs: Glyphs, cells: int = 24) -> str:
    """A token's visible text in quotation marks, with marks for the spaces at its ends."""
    marked = glyphs.space * (len(text) - len(text.lstrip(" "))) + text.strip(" ")
    marked += glyphs.space * (len(text.lstrip(" ")) - len(text.strip(" ")))
    return f'"{fit(marked, cells, glyphs.ellipsis)}"'


def build_price(price: ForkPrice | None) -> str:
    """`0 tok + 1 blk`, or `prefill 1,812 tok ≈ 0.4 s` when more than the last token must be computed."""
    if price is None:
        return ""
    blocks = price.copied_blocks + price.swapped_blocks
    if price.prefill_tokens <= 1:  # the last token always runs again, for its logits
        return f"0 tok + {blocks} blk"
    seconds = "" if price.seconds is None else f" ≈ {duration(price.seconds)}"
    return f"prefill {price.prefill_tokens:,} tok{seconds}"


def build_token_bar(
    answer: TokenAnswer,
    unit: int,
    price: ForkPrice | None,
    hints: Sequence[tuple[str, str, str]],
    glyphs: Glyphs,
    cells: int,
) -> Line:
    """The token under the cursor, its source, what a fork there costs, and the keys of the token cursor.

    Args:
        answer: the answer.
        unit: the unit under the cursor.
        price: of a fork there; None if it is unknown.
        hints: (key, label, action); the first is the fork.
        glyphs: the marks.
        cells: width.
    """
    first = answer.units[unit].start + 1
    last = answer.units[unit].end
    number = f"{first}" if last == first else f"{first}-{last}"
    spans = [
        Span(f" token {number}/{answer.tokens} ", "bold $accent"),
        Span(f" {quoted(answer.units[unit].text, glyphs)}  ", "bold"),
        Span(f"{share_text(answer.logprobs[unit])}  "),
    ]
    if not math.isnan(answer.bits[unit]):
        spans.append(Span(f"{answer.bits[unit]:.2f} bits  ", "$muted"))
    cost = build_price(price)
    pairs = []
    for at, (key, word, action) in enumerate(hints):
        note = f" {word} {cost}" if at == 0 and cost else f" {word}"
        pairs.append((Span(key, "$accent", action), Span(f"{note}  ", "$muted", action)))
    source = answer.sources[unit]
    if source is not None:
        name = Span(f"{SOURCE_WORDS[source]}  ", "$muted")
        if width((*spans, name)) + sum(map(width, pairs[:_HINTS_BEFORE_SOURCE])) <= cells:
            spans.append(name)
    for pair in pairs:
        if width(spans) + width(pair) > cells:
            break
        spans += pair
    return cut(spans, cells)


def build_alternative_lines(
    rows: Sequence[Alternative], cursor: int, glyphs: Glyphs, cells: int
) -> list[Line]:
    """A row for each alternative: bar, probability and text; the answer's own is marked."""
    return [
        _alternative(row, at == cursor, glyphs, max(4, cells - _BAR - 13))
        for at, row in enumerate(rows)
    ]


def _alternative(row: Alternative, under_cursor: bool, glyphs: Glyphs, cells: int) -> Line:
    share = 0.0 if math.isnan(row.logprob) else math.exp(min(row.logprob, 0.0))
    full, empty = gauge(glyphs, round(share, 3), _BAR)
    mark = glyphs.current if under_cursor else " "
    style = "bold reverse" if under_cursor else "bold" if row.chosen else ""
    own = f" {glyphs.dot}" if row.chosen else ""
    return (
        Span(f"{mark} ", "$accent"),
        Span(full, "$primary"),
        Span(empty, "$panel"),
        Span(f" {share_text(row.logprob):>7} ", "$muted"),
        Span(quoted(row.text, glyphs, cells - 4), style),
        Span(own, "$accent"),
    )
