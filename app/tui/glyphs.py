"""The characters that the screen draws, in a Unicode and an ASCII table.

`PRAVAHA_CHARSET=auto|unicode|ascii` selects one; `auto` takes ASCII if the locale is not UTF-8 or the
terminal is the Linux console, whose font lacks block elements.
"""

import locale
from collections.abc import Mapping
from dataclasses import dataclass

from app.tui.numbers import clamp


@dataclass(frozen=True, slots=True)
class Glyphs:
    """All characters that the screen draws beside text; each is one cell wide.

    Attributes:
        spark: ramp from empty to full for sparklines.
        bar_full, bar_empty: filled and unfilled part of a gauge.
        kv: glyph form of the KV map, by cell code (`app.tui.view.kv_cells.Cell`).
        phases: bars of the timeline: queued, prefill, decode, preempted.
        half_blocks: whether `▀` and `▄` may be used.
        on_path: mark of the nodes of the open path in the branch tree.
        resident, partly_resident, cold: how much of a branch's KV is in the pool.
        fork, last_fork, beside: connectors of the branch tree.
        earlier, later: arrows around the number of a sibling.
        crumb: between the parts of the breadcrumb.
        newline, tab, space, answer_end: marks in the text of tokens.
    """

    name: str
    user: str
    assistant: str
    system: str
    bar: str
    bar_selected: str
    dot: str
    ring: str
    busy: str
    failed: str
    passed: str
    stopped: str
    queued: str
    more_up: str
    more_down: str
    separator: str
    spark: str
    bar_full: str
    bar_empty: str
    kv: str
    half_blocks: bool
    ellipsis: str
    current: str
    on_path: str
    bookmark: str
    resident: str
    partly_resident: str
    cold: str
    fork: str
    last_fork: str
    beside: str
    earlier: str
    later: str
    crumb: str
    phases: str
    newline: str
    tab: str
    space: str
    answer_end: str
    mark: str


UNICODE = Glyphs(
    name="unicode",
    user="❯",
    assistant="≋",
    system="§",
    bar="▏",
    bar_selected="▌",
    dot="●",
    ring="○",
    busy="≋",
    failed="✗",
    passed="✓",
    stopped="■",
    queued="⋯",
    more_up="▲",
    more_down="▼",
    separator="·",
    spark=" ▁▂▃▄▅▆▇█",
    bar_full="━",
    bar_empty="─",
    kv="·▒■▓█◉▣◆",
    half_blocks=True,
    ellipsis="…",
    current="▸",
    on_path="•",
    bookmark="★",
    resident="●",
    partly_resident="◐",
    cold="○",
    fork="├",
    last_fork="└",
    beside="│",
    earlier="◀",
    later="▶",
    crumb="›",
    phases="·▒█╳",
    newline="⏎",
    tab="⇥",
    space="·",
    answer_end="∎",
    mark="◆",
)

ASCII = Glyphs(
    name="ascii",
    user=">",
    assistant="=",
    system="$",
    bar="|",
    bar_selected="#",
    dot="*",
    ring="o",
    busy="~",
    failed="x",
    passed="v",
    stopped="#",
    queued="+",
    more_up="^",
    more_down="v",
    separator="-",
    spark=" .:-=+*#@",
    bar_full="#",
    bar_empty="-",
    kv=".-oO#+%@",
    half_blocks=False,
    ellipsis="...",
    current=">",
    on_path=".",
    bookmark="!",
    resident="*",
    partly_resident="+",
    cold="-",
    fork="+",
    last_fork="`",
    beside="|",
    earlier="<",
    later=">",
    crumb=">",
    phases=".=#x",
    newline="$",
    tab=">",
    space="_",
    answer_end="#",
    mark="@",
)


class CharsetError(ValueError):
    """`PRAVAHA_CHARSET` is not auto, unicode or ascii."""


def choose_glyphs(environ: Mapping[str, str], output_encoding: str | None = None) -> Glyphs:
    """The table for this terminal.

    Args:
        environ: the environment.
        output_encoding: the encoding of standard output, if known.

    Raises:
        CharsetError: the variable has another value.
    """
    wanted = environ.get("PRAVAHA_CHARSET", "auto").strip().lower() or "auto"
    match wanted:
        case "unicode":
            return UNICODE
        case "ascii":
            return ASCII
        case "auto":
            encodings = {locale.getpreferredencoding(False), output_encoding or "utf-8"}
            plain = environ.get("TERM") == "linux" or any(
                each.lower().replace("-", "") not in {"utf8", "cp65001"} for each in encodings
            )
            return ASCII if plain else UNICODE
    raise CharsetError(f"PRAVAHA_CHARSET is {wanted!r}; use auto, unicode or ascii.")


def gauge(glyphs: Glyphs, share: float, width: int) -> tuple[str, str]:
    """The full and the empty part of a gauge `width` cells wide; a share above 0 fills at least one."""
    share = clamp(share, 0.0, 1.0)
    full = round(share * width)
    if share > 0 and full == 0:
        full = 1
    return glyphs.bar_full * full, glyphs.bar_empty * (width - full)
