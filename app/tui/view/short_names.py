"""`short_names`: names of models without what they have in common, to tell them apart in a few cells."""

import re
from collections.abc import Collection, Mapping
from os.path import commonprefix

_PARTS = re.compile(r"[^-_/: ]+|[-_/: ]+")


def short_names(names: Collection[str]) -> Mapping[str, str]:
    """Each name without the words that all of them begin or end with; whole if nothing would be left of one.

    `qwen2.5-coder-0.5b-q4` and `qwen2.5-coder-1.5b-q4` are `0.5b` and `1.5b`.
    """
    if len(names) < 2:
        return {name: name for name in names}
    parts = {name: _PARTS.findall(name) for name in names}
    first = len(commonprefix(list(parts.values())))  # noqa: RUF071 - no paths
    last = len(commonprefix([words[::-1] for words in parts.values()]))  # noqa: RUF071
    short = {
        name: "".join(words[first : len(words) - last]).strip("-_/: ")
        for name, words in parts.items()
    }
    if all(short.values()) and len(set(short.values())) == len(short):
        return short
    return {name: name for name in names}
