"""Sets of keys to choose from: `keymap.preset = "vim"`. Single entries of the key map take precedence."""

import difflib
from collections.abc import Mapping

PRESETS: Mapping[str, Mapping[str, str]] = {
    "standard": {},
    "vim": {
        "prompt": "i,a,o",
        "regen.model": "ctrl+y",
        "approve.next": "exclamation_mark",
        "chat.delete": "d,delete",
        "scroll.up": "pageup,ctrl+u",
        "scroll.down": "pagedown,ctrl+d",
        "history.prev": "up,ctrl+k",
        "clear": "ctrl+x",
    },
}
"""Name → action id → keys, in addition to the standard ones."""


def with_preset(keymap: Mapping[str, str]) -> tuple[dict[str, str], list[str]]:
    """The entries of a key map and of the preset that it names, and one sentence if there is none."""
    own = {name: keys for name, keys in keymap.items() if name != "preset"}
    wanted = keymap.get("preset", "standard")
    if wanted in PRESETS:
        return {**PRESETS[wanted], **own}, []
    near = difflib.get_close_matches(wanted, PRESETS, n=1) or list(PRESETS)
    return own, [f"There is no key preset {wanted!r}: perhaps {' or '.join(near)}."]
