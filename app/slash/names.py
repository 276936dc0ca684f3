"""Names that a person types: a whole name, the beginning of only one, or a mistake with those that are near.

Case is ignored. Both front ends read the names of models, collections, agents, themes and branches here.
"""

import difflib
from collections.abc import Iterable, Sequence

from app.text.safe_text import safe_line
from engine.api.errors import InvalidRequest

NEAR = 0.6
"""How similar a name must be to be offered, from 0 to 1."""
_CLEARLY = 0.12
_MIN_BEGINNING, _NEAR_BEGINNING = 4, 0.75
_OFFERED = 3
_LISTED = 5


def beginning_with(typed: str, names: Iterable[str]) -> list[str]:
    """The names that begin with what is typed, in their order; the same name alone if there is one."""
    wanted = typed.casefold()
    found = [name for name in names if name.casefold().startswith(wanted)]
    if typed in found:
        return [typed]
    same = [name for name in found if name.casefold() == wanted]
    return same[:1] or found


def near_names(
    typed: str,
    names: Iterable[str],
    count: int = _OFFERED,
    *,
    near: float = NEAR,
    parts: bool = True,
) -> list[str]:
    """The names that are most like what is typed, the nearest first, then those that have it as a part.

    Args:
        typed: what stands for a name.
        names: the known ones.
        count: the most that are returned.
        near: how similar they are at least, from 0 to 1.
        parts: whether to return those that contain it, or begin with something like it.
    """
    by_folded = {name.casefold(): name for name in names}
    wanted = typed.casefold()
    found = difflib.get_close_matches(wanted, by_folded, n=count, cutoff=near)
    # One that is clearly nearer than the others stands for them.
    likeness = [difflib.SequenceMatcher(None, one, wanted).ratio() for one in found]
    found = [
        one for one, share in zip(found, likeness, strict=True) if share >= likeness[0] - _CLEARLY
    ]
    if parts and len(wanted) > 1:
        found += [one for one in by_folded if wanted in one and one not in found]
    if parts and len(wanted) >= _MIN_BEGINNING:
        found += [one for one in by_folded if one not in found and _begins_like(wanted, one)]
    return [by_folded[one] for one in found[:count]]


def _begins_like(typed: str, name: str) -> bool:
    """Whether what is typed is a misspelled beginning of a name."""
    beginning = name[: len(typed)]
    return difflib.SequenceMatcher(None, typed, beginning).ratio() >= _NEAR_BEGINNING


def meant(typed: str, names: Iterable[str], what: str, advice: str = "") -> str:
    """The name that is typed, or the only one that begins so.

    Args:
        typed: what stands for the name.
        names: the known ones.
        what: they are names of, such as `theme`.
        advice: a sentence for a name to which none is near.

    Raises:
        InvalidRequest: there is none, or several begin so; the sentence names them or those that are near.
    """
    known = list(names)
    found = beginning_with(typed, known) if typed else []
    if len(found) == 1:
        return found[0]
    if found:
        raise InvalidRequest(f"{safe_line(typed)} begins several names: {either(found)}.")
    hint = did_you_mean(near_names(typed, known)) or advice
    raise InvalidRequest(f"There is no {what} {safe_line(typed)}.{f' {hint}' if hint else ''}")


def did_you_mean(names: Sequence[str]) -> str:
    """A question that offers these names; empty if there are none."""
    return f"Did you mean {either(names)}?" if names else ""


def either(names: Sequence[str]) -> str:
    """`a`, `a or b`, `a, b or c`; of many the first and their number."""
    shown = [safe_line(name) for name in names[:_LISTED]]
    if len(names) > _LISTED:
        shown.append(f"one of {len(names) - _LISTED} more")
    *others, last = shown
    return f"{', '.join(others)} or {last}" if others else last
