"""The terminal, as the environment describes it; nothing is written to it."""

import locale
import shutil
import sys
from collections.abc import Mapping

from app.doctor.facts import Fact, Section
from app.settings.settings import Settings

_KITTY_KEYBOARD = ("kitty", "ghostty", "wezterm", "foot", "alacritty", "rio", "iterm")
"""Terminals that support the Kitty keyboard protocol (iTerm2 and WezTerm if it is enabled)."""

_MIN_COLUMNS, _MIN_ROWS = 80, 24


def terminal(settings: Settings, environ: Mapping[str, str]) -> Section:
    """Facts about the terminal."""
    size = shutil.get_terminal_size()
    name = " ".join(filter(None, [environ.get("TERM_PROGRAM"), environ.get("TERM")]))
    attached = sys.stdin.isatty() and sys.stdout.isatty()
    small = attached and (size.columns < _MIN_COLUMNS or size.lines < _MIN_ROWS)
    encoding = locale.getpreferredencoding(False)
    utf8 = encoding.lower().replace("-", "") == "utf8"
    kitty = any(term in name.lower() for term in _KITTY_KEYBOARD)
    multiplexer = next((m for m in ("TMUX", "STY", "ZELLIJ") if m in environ), None)
    return Section(
        "terminal",
        "Terminal",
        (
            Fact("name", "kind", name, name or "unknown"),
            Fact(
                "attached",
                "standard input and output",
                attached,
                "a terminal" if attached else "not a terminal",
                "ok" if attached else "note",
                "" if attached else "the screen needs one; `run` and `--serve` do not.",
            ),
            Fact(
                "size",
                "size",
                [size.columns, size.lines],
                f"{size.columns} × {size.lines}",
                "note" if small else "ok",
                f"{_MIN_COLUMNS} × {_MIN_ROWS} shows everything." if small else "",
            ),
            _colours(environ),
            Fact(
                "charset",
                "characters",
                encoding,
                f"{encoding}, glyphs: {settings.charset}",
                "ok" if utf8 else "note",
                "" if utf8 else "a UTF-8 locale shows block glyphs (LANG=C.UTF-8).",
            ),
            Fact(
                "kitty_keyboard",
                "Kitty keyboard protocol",
                kitty,
                "yes, by its name" if kitty else "not known of this terminal",
                "ok",
                "",
            ),
            Fact("multiplexer", "multiplexer", multiplexer, (multiplexer or "none").lower()),
        ),
    )


def _colours(environ: Mapping[str, str]) -> Fact:
    if environ.get("NO_COLOR"):
        return Fact("colours", "colours", 0, "off, because NO_COLOR is set")
    if environ.get("COLORTERM", "").lower() in ("truecolor", "24bit"):
        return Fact("colours", "colours", 2**24, "16 million")
    term = environ.get("TERM", "")
    if "256color" in term or "kitty" in term:
        return Fact("colours", "colours", 256, "256")
    return Fact(
        "colours",
        "colours",
        16,
        "16, as far as known",
        "note",
        "if the terminal can do more, COLORTERM=truecolor says so.",
    )
