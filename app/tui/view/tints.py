"""What the tint of an answer's tokens shows, and the theme role of each token.

On terminals without colour a role is a text attribute.
"""

from enum import StrEnum

from app.tui.view.heat import PLAIN_STYLES, heat_step
from app.tui.view.token_answer import TokenAnswer
from engine.conversations.token_sources import TokenSource


class Tint(StrEnum):
    """What is tinted: how unlikely tokens were, or where they came from."""

    SURPRISAL = "surprisal"
    SOURCE = "source"


SOURCE_WORDS = {
    TokenSource.DRAFT: "accepted draft",
    TokenSource.COMPUTED: "computed",
    TokenSource.CACHED: "cached",
}
"""The sources in the order of the legend."""


def source_role(source: TokenSource) -> str:
    """The theme role of a source."""
    return f"source-{source.value}"


PLAIN_ROLES = {f"heat-{step}": style for step, style in enumerate(PLAIN_STYLES)} | {
    source_role(source): style
    for source, style in (
        (TokenSource.DRAFT, "underline"),
        (TokenSource.COMPUTED, ""),
        (TokenSource.CACHED, "dim"),
    )
}
"""Role → attributes on terminals without colour."""


def next_tint(tint: Tint | None) -> Tint | None:
    """Surprisal, source, none, and again."""
    order: tuple[Tint | None, ...] = (None, *Tint)
    return order[(order.index(tint) + 1) % len(order)]


def tint_role(answer: TokenAnswer, unit: int, tint: Tint | None) -> str | None:
    """The theme role of a unit's ground; None if it is not tinted, or what is shown is unknown."""
    if tint is Tint.SURPRISAL:
        step = heat_step(answer.bits[unit])
        return None if step is None else f"heat-{step}"
    if tint is Tint.SOURCE:
        source = answer.sources[unit]
        return None if source is None else source_role(source)
    return None
