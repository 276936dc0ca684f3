"""Writes docs/keys.md, the key map, from the table of keys.

python docs/make_keys.py
"""

from pathlib import Path

from app.tui.keys import ALL_KEYS, Group, shown

PAGE = Path(__file__).with_name("keys.md")
_HEAD = """\
# Keys

Written by `python docs/make_keys.py` from `app/tui/keys.py`. Every key can be changed in
`pravaha.toml`, by the name in the last column: see [the screen](tui.md#keys).
"""


def build_page() -> str:
    """The page's text."""
    parts = [_HEAD]
    for group in Group:
        keys = [key for key in ALL_KEYS if key.group is group]
        if not keys:
            continue
        rows = [
            f"| {_code(shown(key))} | {key.help.replace('|', chr(92) + '|')} | `{key.id}` |"
            for key in keys
        ]
        parts += [f"## {group.value}\n", "| key | does | name |", "|---|---|---|", *rows, ""]
    return "\n".join(parts)


def _code(keys: str) -> str:
    return " ".join("`` ` ``" if key == "`" else f"`{key}`" for key in keys.split())


if __name__ == "__main__":
    PAGE.write_text(build_page(), encoding="utf-8")
