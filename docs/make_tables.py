"""Writes the tables of commands (in docs/tui.md) and of settings (docs/settings.md) from those of the code.

python docs/make_tables.py
"""

import re
from pathlib import Path

from app.settings.options import GROUPS
from app.settings.row import Row, rows_of, size
from app.settings.settings import ENV_PREFIX, ROWS, Settings
from app.settings.sources import TABLES, flag_of
from app.slash.commands import COMMANDS
from app.text.byte_size import format_size

COMMANDS_PAGE = Path(__file__).with_name("tui.md")
SETTINGS_PAGE = Path(__file__).with_name("settings.md")

_MARKED = re.compile(
    r"(?<=<!-- commands: app/slash/commands.py -->\n).*(?=<!-- end of commands -->)", re.DOTALL
)
_HEAD = """\
# Settings

Written by `python docs/make_tables.py` from `app/settings/options.py` and `app/settings/settings.py`.

A flag takes precedence over the environment, that over `pravaha.toml` in the current folder, that over
`pravaha.toml` in your configuration folder (`pravaha doctor` names it), and that over the default. The
name in `pravaha.toml` is the flag's with `_`; the variable is the name in capitals behind `PRAVAHA_`.
Settings with a star cannot be set by the `pravaha.toml` of the current folder.
"""


def commands_page() -> str:
    """The text of docs/tui.md with the present commands."""
    rows = []
    for one in COMMANDS:
        where = "line mode" if one.not_on_screen else "screen" if one.not_plain else ""
        rows.append(f"| {_code(f'/{one.name} {one.argument}')} | {one.help} | {where} |\n")
    table = "".join(["| command | does | where |\n", "|---|---|---|\n", *rows])
    return _MARKED.sub(lambda _: table, COMMANDS_PAGE.read_text(encoding="utf-8"))


def settings_page() -> str:
    """The text of docs/settings.md."""
    parts = [_HEAD]
    for heading in dict.fromkeys(heading for heading, _ in GROUPS.values()):
        classes = [one for title, one in GROUPS.values() if title == heading]
        rows = {name: row for one in classes for name, row in rows_of(one).items()}
        parts.append(_section(heading, {_code(flag_of(name)): name for name in rows}))
    with_flag = {name for _, one in GROUPS.values() for name in rows_of(one)}
    others = {_written(name): name for name in ROWS if name not in with_flag}
    parts.append(_section("Without a flag", others))
    return "\n".join(parts)


def _section(heading: str, settings: dict[str, str]) -> str:
    lines = [f"## {heading}\n", "| setting | is | default |", "|---|---|---|"]
    for shown, name in settings.items():
        row = ROWS[name]
        star = " \\*" if row.user_only else ""
        lines.append(f"| {shown}{star} | {row.help} | {_default(name, row)} |")
    return "\n".join([*lines, ""])


def _written(name: str) -> str:
    """The name in `pravaha.toml`, or the variable of the one that is not in it."""
    if name == "config_dir":
        return _code(ENV_PREFIX + name.upper())
    table, _, member = name.partition("_")
    return _code(f"[{table}] {member}" if table in TABLES else name)


def _default(name: str, row: Row) -> str:
    field = Settings.model_fields[name]
    if field.default_factory is not None or field.default in (None, "", ()):
        return ""
    default = field.default
    if isinstance(default, bool):
        return "on" if default else "off"
    if row.read is size:
        return _code(format_size(default))
    return _code(" ".join(default) if isinstance(default, tuple) else str(default))


def _code(text: str) -> str:
    return f"`{text.strip()}`".replace("|", "\\|")


if __name__ == "__main__":
    COMMANDS_PAGE.write_text(commands_page(), encoding="utf-8")
    SETTINGS_PAGE.write_text(settings_page(), encoding="utf-8")
