"""Changes of settings files as texts: TOML with its comments, and JSON.

What is not ours stays: comments and the order of TOML, and every other member of JSON. JSON with comments
is not rewritten, because they would be lost.
"""

import json
import re
from collections.abc import Callable, MutableMapping
from typing import Any

import tomlkit
from tomlkit.exceptions import TOMLKitError

from app.launch.errors import SettingsError

Document = MutableMapping[str, Any]
Change = Callable[[Document], None]

_COMMENT = re.compile(r'"(?:\\.|[^"\\])*"|//[^\n]*|/\*.*?\*/', re.DOTALL)
_TRAILING_COMMA = re.compile(r'"(?:\\.|[^"\\])*"|,(?=\s*[}\]])')


def changed_toml(text: str, change: Change, name: str) -> str:
    """The text after a change of its document.

    Raises:
        SettingsError: it is no TOML, or has something else where the change belongs.
    """
    try:
        document = tomlkit.parse(text)
    except TOMLKitError as error:
        raise SettingsError(f"{name} is no valid TOML: {error}") from error
    _apply(change, document, name)
    changed = tomlkit.dumps(document)
    try:
        tomlkit.parse(changed)
    except TOMLKitError as error:
        raise SettingsError(f"{name} cannot be changed: {error}") from error
    return changed


def changed_json(text: str, change: Change, name: str) -> str:
    """As `changed_toml`, for JSON; the indentation is kept.

    Raises:
        SettingsError: it is no JSON, has comments, or something else where the change belongs.
    """
    try:
        document = json.loads(text) if text.strip() else {}
    except ValueError as error:
        if _is_json(_without_comments(text)):
            raise SettingsError(
                f"{name} has comments or trailing commas, which would be lost: --print shows what to add "
                "by hand."
            ) from error
        raise SettingsError(f"{name} is no valid JSON: {error}.") from error
    if not isinstance(document, dict):
        raise SettingsError(f"{name} is no JSON object.")
    _apply(change, document, name)
    return json.dumps(document, indent=_indent_of(text), ensure_ascii=False) + "\n"


def table_at(document: Document, *names: str) -> Document:
    """The table at a path, made where there is none.

    Raises:
        TypeError: something else is there.
    """
    current = document
    for name in names:
        if name not in current:
            current[name] = (
                {} if type(document) is dict else tomlkit.table(is_super_table=name != names[-1])
            )
        current = current[name]
        if not isinstance(current, MutableMapping):
            raise TypeError(f"{'.'.join(names)} is no table")
    return current


def put_named(document: Document, name: str, entry: dict[str, Any], *, key: str = "name") -> None:
    """Put an entry into an array of tables, in place of that with the same `key`.

    Raises:
        TypeError: something else is there.
    """
    if name not in document:
        document[name] = tomlkit.aot()
    entries = document[name]
    if not isinstance(entries, list) or not all(isinstance(one, MutableMapping) for one in entries):
        raise TypeError(f"{name} is no list of tables")
    for one in entries:
        if one.get(key) == entry[key]:
            for member, value in entry.items():
                if one.get(member) != value:
                    one[member] = value
            return
    table = tomlkit.table()
    table.update(entry)
    entries.append(table)


def _apply(change: Change, document: Document, name: str) -> None:
    try:
        change(document)
    except (TypeError, TOMLKitError) as error:
        raise SettingsError(f"{name} cannot be changed: {error}.") from error


def _without_comments(text: str) -> str:
    text = _COMMENT.sub(lambda one: one[0] if one[0].startswith('"') else " ", text)
    return _TRAILING_COMMA.sub(lambda one: one[0] if one[0].startswith('"') else "", text)


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except ValueError:
        return False
    return True


def _indent_of(text: str) -> int | str:
    found = re.search(r"\n([ \t]+)\S", text)
    if found is None:
        return 2
    return found[1] if "\t" in found[1] else len(found[1])
