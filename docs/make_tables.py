"""Writes the tables of commands, settings, fields of the API and profiles of models into their pages.

Each is made from the table of the code.

python docs/make_tables.py
"""

import json
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from agents.model.profile_record import SUITES, ProfileRecord, packaged_records
from app.server.app import all_routes
from app.server.openapi.document import api_document
from app.server.openapi.operations import Operation, operations
from app.server.openapi.schemas import REF, body_classes
from app.server.openapi.type_text import type_text
from app.server.wire.body import Body, IsOff
from app.settings.options import GROUPS
from app.settings.row import Row, rows_of, size
from app.settings.settings import ENV_PREFIX, ROWS, Settings
from app.settings.sources import TABLES, flag_of
from app.slash.commands import COMMANDS
from app.text.byte_size import format_size

COMMANDS_PAGE = Path(__file__).with_name("tui.md")
SETTINGS_PAGE = Path(__file__).with_name("settings.md")
API_PAGE = Path(__file__).with_name("api.md")
MODEL_PAGE = Path(__file__).with_name("agent-model.md")

_MARKED = re.compile(
    r"(?<=<!-- commands: app/slash/commands.py -->\n).*(?=<!-- end of commands -->)", re.DOTALL
)
_FIELDS = re.compile(
    r"(?<=<!-- fields: app/server/wire/ -->\n).*(?=<!-- end of fields -->)", re.DOTALL
)
_PROFILES = re.compile(
    r"(?<=<!-- profiles: agents/model/profiles.json -->\n).*(?=<!-- end of profiles -->)", re.DOTALL
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


def model_page() -> str:
    """The text of docs/agent-model.md with the packaged profiles."""
    records = sorted(packaged_records().values(), key=lambda one: one.name)
    names = [one.name for one in records]
    rows = [["measured", *names], ["---", *["---"] * len(names)]]
    for suite, capability in SUITES.items():
        rows.append(
            [f"`{capability.value}`", *(_share(one.items.get(suite, {})) for one in records)]
        )
    kinds = sorted({kind for one in records for kind in one.outputs()})
    rows += [[kind, *(_share(_of_kind(one, kind)) for one in records)] for kind in kinds]
    asked = sorted({name for one in records for name in one.questions})
    rows += [
        [f"question `{name}`", *(_help(one.questions.get(name)) for one in records)]
        for name in asked
    ]
    rows.append(["seconds", *(f"{one.seconds:.0f}" if one.seconds else "–" for one in records)])
    table = "".join(f"| {' | '.join(row)} |\n" for row in rows)
    return _PROFILES.sub(lambda _: table, MODEL_PAGE.read_text(encoding="utf-8"))


def _of_kind(record: ProfileRecord, kind: str) -> Mapping[str, bool]:
    outputs = record.items.get("outputs", {})
    return {name: right for name, right in outputs.items() if name.startswith(f"{kind}/")}


def _share(items: Mapping[str, bool]) -> str:
    return f"{sum(items.values())} of {len(items)}" if items else "–"


def _help(result: Mapping[str, Any] | None) -> str:
    """Items right without the model and with it; bold where the question is used."""
    if result is None:
        return "–"
    change = f"{result['baseline']:.2f} → {result['with_model']:.2f}"
    return f"**{change}**" if result["helps"] else change


def api_page() -> str:
    """The text of docs/api.md with the present fields of every body."""
    found = operations(all_routes())
    schemas = api_document(all_routes(), needs_key=False)["components"]["schemas"]
    by_body: dict[type[Body], list[Operation]] = {}
    for one in found:
        if one.body_class is not None:
            by_body.setdefault(one.body_class, []).append(one)
    parts = []
    for kind, users in by_body.items():
        title = ", ".join(_code(f"{one.method} {one.path}") for one in users)
        parts.append(f"### {title}\n\n{_members(kind, schemas)}")
    parts.append("## Every object in a body\n")
    inner = _referred((schemas[kind.__name__] for kind in by_body), schemas)
    for kind in sorted(body_classes(), key=lambda one: one.__name__):
        if kind.__name__ in inner:
            text = (kind.__doc__ or "").partition("\n")[0]
            parts.append(f"### {kind.__name__}\n\n{text}\n\n{_members(kind, schemas)}")
    return _FIELDS.sub(lambda _: "\n".join(parts), API_PAGE.read_text(encoding="utf-8"))


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


def _members(kind: type[Body], schemas: Mapping[str, Any]) -> str:
    """A table of the members that are implemented, and lines of the others."""
    schema = schemas[kind.__name__]
    needed = schema.get("required", ())
    lines = []
    if kind.model_fields:
        lines += ["| field | values | what it does |", "|---|---|---|"]
    for name, field in kind.model_fields.items():
        name = field.alias or name
        member = schema["properties"][name]
        star = " \\*" if name in needed else ""
        values = type_text(member).replace("|", "\\|")
        lines.append(
            f"| {_code(name)}{star} | {_linked(values, schemas)} | {field.description or ''} |"
        )
    others = _without_effect(kind), _refused(kind)
    return "\n".join([*lines, "", *(f"{line}\n" for line in others if line)])


def _without_effect(kind: type[Body]) -> str:
    members = {
        name: reason
        for name, reason in kind.without_effect.items()
        if name not in kind.model_fields
    }
    texts = [f"{_code(name)} ({reason})" for name, reason in members.items()]
    return f"Without effect: {'; '.join(texts)}." if texts else ""


def _refused(kind: type[Body]) -> str:
    members = {
        name: is_off for name, is_off in kind.unsupported.items() if name not in kind.model_fields
    }
    texts = [_code(name) + _off(is_off) for name, is_off in members.items()]
    return f"Refused: {', '.join(texts)}." if texts else ""


def _off(is_off: IsOff) -> str:
    values = [_code(json.dumps(one)) for one in is_off.values]
    return f" (but for {' and '.join(values)})" if values else ""


def _linked(text: str, schemas: Mapping[str, Any]) -> str:
    """The names of objects in a text as links to their tables."""
    kinds = {one.__name__ for one in body_classes()} & schemas.keys()
    return re.sub(
        r"[A-Z]\w+",
        lambda found: f"[{found[0]}](#{found[0].lower()})" if found[0] in kinds else found[0],
        text,
    )


def _referred(roots: Iterable[Any], schemas: Mapping[str, Any]) -> set[str]:
    """The names of the components that schemas refer to, also through others."""
    seen: set[str] = set()
    pending = list(roots)
    while pending:
        one = pending.pop()
        if isinstance(one, Mapping):
            name = str(one.get("$ref", "")).removeprefix(REF)
            if name and name not in seen:
                seen.add(name)
                pending.append(schemas[name])
            pending += one.values()
        elif isinstance(one, list):
            pending += one
    return seen


if __name__ == "__main__":
    API_PAGE.write_text(api_page(), encoding="utf-8")
    MODEL_PAGE.write_text(model_page(), encoding="utf-8")
    COMMANDS_PAGE.write_text(commands_page(), encoding="utf-8")
    SETTINGS_PAGE.write_text(settings_page(), encoding="utf-8")
