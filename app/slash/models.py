"""`/model`: its argument, and the model that it means."""

from collections.abc import Sequence

from app.slash.names import beginning_with, either, near_names
from app.text.safe_text import safe_line
from engine.api.available_model import AvailableModel
from engine.api.errors import ModelNotFound
from engine.runtime.model_change import CHANGE_DRAIN_S

NOW = " now"
"""The end of an argument that stops running answers instead of waiting for them."""


def read_model(argument: str) -> tuple[str, float]:
    """The name of a model, and the seconds that running answers get before it is loaded."""
    now = argument.endswith(NOW)
    return argument.removesuffix(NOW).strip(), 0.0 if now else CHANGE_DRAIN_S


def meant_model(name: str, models: Sequence[AvailableModel]) -> str:
    """The installed model of this name, or the only one whose name begins so.

    Raises:
        ModelNotFound: there is none, or several begin so; the sentence names those that are near.
    """
    names = [one.name for one in models]
    found = beginning_with(name, names) if name else []
    if len(found) == 1:
        return found[0]
    if found:
        raise ModelNotFound(safe_line(f"{name} begins several names: {either(found)}."))
    raise ModelNotFound(build_near(name, models))


def build_near(name: str, models: Sequence[AvailableModel]) -> str:
    """The sentence for a name that no installed model has, with the names nearest to it."""
    near = near_names(name, [one.name for one in models], near=0.4)
    hint = f" Did you mean {either(near)}?" if near else " /model lists the installed ones."
    return safe_line(f"No model called {name} is installed.{hint}")
