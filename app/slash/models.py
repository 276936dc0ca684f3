"""`/model`: its argument, and the sentence for a name that no model has."""

import difflib
from collections.abc import Sequence

from app.text.safe_text import safe_line
from engine.api.available_model import AvailableModel
from engine.runtime.model_change import CHANGE_DRAIN_S

NOW = " now"
"""The end of an argument that stops running answers instead of waiting for them."""


def read_model(argument: str) -> tuple[str, float]:
    """The name of a model, and the seconds that running answers get before it is loaded."""
    now = argument.endswith(NOW)
    return argument.removesuffix(NOW).strip(), 0.0 if now else CHANGE_DRAIN_S


def build_near(name: str, models: Sequence[AvailableModel]) -> str:
    """The sentence for a name that no installed model has, with the names nearest to it."""
    names = {one.name.lower(): one.name for one in models}
    near = [names[one] for one in difflib.get_close_matches(name.lower(), names, n=3, cutoff=0.4)]
    near += [one for low, one in names.items() if name.lower() in low and one not in near]
    hint = (
        f" Did you mean {' or '.join(near[:3])}?" if near else " /model lists the installed ones."
    )
    return safe_line(f"No model called {name} is installed.{hint}")
