"""Themes: one YAML file each, from `themes/*.yaml` and the user's folder, which takes precedence.

    dark: true
    ansi: false                 # true: the terminal's own sixteen colours (ansi_… names only)
    title: River at night
    base: {primary: "#4fc1c0", background: "#0b1418", foreground: "#d6e4e5"}
    kv:   {own: "$accent"}
    heat: ["#16303a", …]        # six steps
    ansi256: {background: 233, primary: 80, kv-own: 215}

A theme is named after its file. Only `base.primary`, `base.background` and `base.foreground` are
required; the defaults of all other roles derive from them. A value is a colour or a reference, `$role`
or `$group-role`. A file with errors is listed as disabled, with all of its errors, and does not prevent
the start. No colour is defined anywhere else.

`ansi256` holds hand-picked palette numbers of flattened roles, for terminals without 24-bit colours, as tmux
and Terminal.app by default. Roles that it leaves out take the nearest colour of the palette.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from rich.color import Color as RichColor
from textual.color import Color, ColorParseError
from textual.theme import Theme

from app.text.safe_text import safe_line

_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
"""libyaml's, thirty times as fast, where PyYAML was built with it."""
BUILT_IN = Path(__file__).resolve().parents[2] / "themes"
"""The themes of the project: beside `app/` in a checkout and in a wheel."""

DEFAULT = "ganga"
DEFAULT_LIGHT = "dawn"

BASE_ROLES = (
    "primary", "secondary", "accent", "background", "surface", "panel", "foreground", "muted",
    "faint", "success", "warning", "error",
)  # fmt: skip
_REQUIRED = ("primary", "background", "foreground")
_BASE_DEFAULTS = {
    "secondary": "$primary",
    "accent": "$primary",
    "surface": "$background",
    "panel": "$surface",
    "muted": "$foreground",
    "faint": "$muted",
    "success": "$primary",
    "warning": "$accent",
    "error": "$accent",
}

GROUP_DEFAULTS: Mapping[str, Mapping[str, str]] = {
    "kv": {
        "free": "$panel",
        "cached": "$faint",
        "active": "$primary",
        "shared": "$warning",
        "pinned": "$success",
        "own": "$accent",
        "checkpoint": "$secondary",
        "lit": "$foreground",
        "cursor": "$error",
        "swapped": "$error",
        "hue-0": "$primary",
        "hue-1": "$accent",
        "hue-2": "$success",
        "hue-3": "$warning",
        "hue-4": "$secondary",
        "hue-5": "$error",
        "hue-6": "$foreground",
        "hue-7": "$muted",
        "step-0": "$faint",
        "step-1": "$muted",
        "step-2": "$kv-cached",
        "step-3": "$kv-active",
        "step-4": "$kv-lit",
    },
    "heat": {
        "0": "$panel",
        "1": "$faint",
        "2": "$muted",
        "3": "$secondary",
        "4": "$accent",
        "5": "$foreground",
    },
    "source": {"computed": "$panel", "cached": "$kv-cached", "draft": "$accent"},
    "spark": {"decode": "$primary", "prefill": "$secondary", "kv": "$accent"},
    "status": {
        "ready": "$success",
        "busy": "$primary",
        "loading": "$warning",
        "failed": "$error",
        "mode": "$background",
    },
    "role": {"user": "$accent", "assistant": "$primary", "system": "$muted"},
    "avatar": {
        "outline": "$primary",
        "body": "$primary",
        "shade": "$secondary",
        "light": "$foreground",
        "eye": "$background",
        "white": "$foreground",
        "cheek": "$accent",
        "mouth": "$background",
        "spark": "$accent",
        "alarm": "$error",
        "hollow": "$panel",
    },
}
"""Group → role → default. The flattened name of a role is `group-role`."""


@dataclass(frozen=True, slots=True)
class ThemeFile:
    """One theme as found on disk.

    Attributes:
        title: a few words for the list.
        theme: ready to register, or None if `problems` is not empty.
        theme_256: the same for terminals without 24-bit colours.
        problems: all errors of the file, one sentence each.
    """

    name: str
    path: Path
    title: str = ""
    theme: Theme | None = None
    theme_256: Theme | None = None
    problems: tuple[str, ...] = ()


def load_themes(folders: Iterable[Path]) -> dict[str, ThemeFile]:
    """Every theme of the folders by name; a later folder overrides an earlier one.

    A folder that does not exist holds no themes.
    """
    found: dict[str, ThemeFile] = {}
    for folder in folders:
        for path in sorted(folder.glob("*.yaml")):
            found[path.stem] = load_theme(path)
    return dict(sorted(found.items()))


def load_theme(path: Path) -> ThemeFile:
    """Read one file; problems are returned, never raised."""
    try:
        data = yaml.load(path.read_text(encoding="utf-8"), _LOADER)  # noqa: S506 - both are safe
    except (OSError, UnicodeDecodeError) as error:
        return ThemeFile(path.stem, path, problems=(f"it cannot be read: {safe_line(str(error))}",))
    except yaml.YAMLError as error:
        return ThemeFile(path.stem, path, problems=(f"it is not YAML: {safe_line(str(error))}",))
    if not isinstance(data, dict):
        return ThemeFile(path.stem, path, problems=("it must be a mapping with a `base` group",))
    return _build(path, data)


def _build(path: Path, data: dict[Any, Any]) -> ThemeFile:
    problems: list[str] = []
    known = {"dark", "ansi", "title", "base", "ansi256", *GROUP_DEFAULTS}
    if isinstance(data.get("heat"), list):
        data = data | {"heat": {str(step): value for step, value in enumerate(data["heat"])}}
    problems.extend(
        f"`{safe_line(str(key))}` is not a group or setting" for key in data if key not in known
    )
    dark, ansi = (_flag(data, key, default, problems) for key, default in _FLAGS)
    title = data.get("title", "")
    if not isinstance(title, str):
        problems.append("`title` must be text")
        title = ""
    raw = _roles(data, "base", BASE_ROLES, _BASE_DEFAULTS, problems)
    problems.extend(f"`base.{role}` is missing" for role in _REQUIRED if role not in raw)
    for group, defaults in GROUP_DEFAULTS.items():
        roles = _roles(data, group, tuple(defaults), defaults, problems)
        raw |= {f"{group}-{role}": value for role, value in roles.items()}
    # A missing required role was already reported; do not report the roles that refer to it.
    if any(role not in raw for role in _REQUIRED):
        return ThemeFile(path.stem, path, safe_line(title), problems=tuple(problems))
    picked = _palette_colors(data.get("ansi256", {}), raw, problems)
    colors = {name: _resolve(name, raw, problems, ansi) for name in raw}
    if problems:
        return ThemeFile(path.stem, path, safe_line(title), problems=tuple(problems))
    palette = raw | picked
    colors_256 = {name: _resolve(name, palette, problems, ansi) for name in palette}
    return ThemeFile(
        path.stem,
        path,
        safe_line(title),
        _theme(path.stem, dark, ansi, colors),
        _theme(path.stem, dark, ansi, colors_256),
    )


def _palette_colors(given: object, known: Mapping[str, str], problems: list[str]) -> dict[str, str]:
    """The colours of `ansi256` by flattened role."""
    if not isinstance(given, dict):
        problems.append("`ansi256` must be a mapping of roles to palette numbers")
        return {}
    colors = {}
    for role, number in given.items():
        if role not in known:
            problems.append(f"`ansi256.{safe_line(str(role))}` is not a role")
        elif not isinstance(number, int) or not 16 <= number <= 255:
            problems.append(f"`ansi256.{role}` must be a palette number from 16 to 255")
        else:
            colors[str(role)] = RichColor.from_ansi(number).get_truecolor().hex
    return colors


def has_true_colors(environ: Mapping[str, str]) -> bool:
    """Whether the terminal says that it shows 24-bit colours, by Rich's rule."""
    return environ.get("COLORTERM", "").strip().lower() in ("truecolor", "24bit")


def default_theme(environ: Mapping[str, str]) -> str:
    """The theme of a user who chose none: a light one if the terminal names a light background."""
    background = environ.get("COLORFGBG", "").rpartition(";")[2]
    return DEFAULT_LIGHT if background in ("7", "15") else DEFAULT


_FLAGS = (("dark", True), ("ansi", False))


def _flag(data: dict[Any, Any], key: str, default: bool, problems: list[str]) -> bool:
    value = data.get(key, default)
    if not isinstance(value, bool):
        problems.append(f"`{key}` must be true or false")
        return default
    return value


def _roles(
    data: dict[Any, Any],
    group: str,
    known: tuple[str, ...],
    defaults: Mapping[str, str],
    problems: list[str],
) -> dict[str, str]:
    given = data.get(group, {})
    if not isinstance(given, dict):
        problems.append(f"`{group}` must be a mapping of roles to colours")
        return dict(defaults)
    roles = dict(defaults)
    for role, value in given.items():
        if role not in known:
            problems.append(
                f"`{group}.{safe_line(str(role))}` is not a role; known: {', '.join(known)}"
            )
        elif not isinstance(value, str):
            problems.append(f"`{group}.{role}` must be a quoted colour")
        else:
            roles[role] = value
    return roles


def _resolve(name: str, raw: Mapping[str, str], problems: list[str], ansi: bool) -> str:
    """Follow `$role` references to a colour; on an error, add a problem and return a placeholder."""
    value, seen = raw[name], {name}
    while value.startswith("$"):
        target = value[1:]
        if target not in raw:
            problems.append(f"`{name}` refers to `${target}`, which does not exist")
            return "black"
        if target in seen:
            problems.append(f"`{name}` refers to itself through `${target}`")
            return "black"
        seen.add(target)
        value = raw[target]
    try:
        Color.parse(value)
    except ColorParseError:
        problems.append(f"`{name}` is {safe_line(value)!r}, which is not a colour")
        return "black"
    if ansi and not value.startswith("ansi_"):
        problems.append(f"`{name}` is {value!r}; an ansi theme uses ansi_… names only")
    return value


def _theme(name: str, dark: bool, ansi: bool, colors: dict[str, str]) -> Theme:
    base = {role: colors[role] for role in BASE_ROLES}
    variables = {role: value for role, value in colors.items() if role not in _TEXTUAL_ROLES}
    # Textual derives these from `primary`; these give focus, cursor and scroll bars less contrast.
    variables |= {
        "border": base["faint"],
        "border-blurred": base["panel"],
        "block-cursor-foreground": base["background"],
        "block-cursor-background": base["primary"],
        "block-cursor-text-style": "none",
        "block-cursor-blurred-foreground": base["foreground"],
        "block-cursor-blurred-background": base["panel"],
        "block-cursor-blurred-text-style": "none",
        "input-cursor-background": base["primary"],
        "input-cursor-foreground": base["background"],
        "input-selection-background": base["panel"],
        "screen-selection-background": base["panel"],
        "scrollbar": base["panel"],
        "scrollbar-hover": base["faint"],
        "scrollbar-active": base["primary"],
        "scrollbar-background": base["background"],
        "scrollbar-background-hover": base["background"],
        "scrollbar-background-active": base["background"],
        "scrollbar-corner-color": base["background"],
        "footer-background": base["background"],
        "link-color": base["secondary"],
        "markdown-h1-color": base["primary"],
        "markdown-h2-color": base["primary"],
        "markdown-h3-color": base["accent"],
    }
    if ansi:
        variables |= {"ansi-background": "ansi_black", "ansi-foreground": "ansi_white"}
    return Theme(
        name=name,
        dark=dark,
        ansi=ansi,
        variables=variables,
        primary=base["primary"],
        secondary=base["secondary"],
        accent=base["accent"],
        background=base["background"],
        surface=base["surface"],
        panel=base["panel"],
        foreground=base["foreground"],
        success=base["success"],
        warning=base["warning"],
        error=base["error"],
    )


_TEXTUAL_ROLES = tuple(role for role in BASE_ROLES if role not in {"muted", "faint"})
