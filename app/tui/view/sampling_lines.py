"""Texts of the sampling editor: what a branch has set, and what applies otherwise. Pure functions."""

from engine.api.generation_defaults import GenerationDefaults, SamplingChoice
from engine.conversations.branch_sampling import PARAMETERS

_UNSET = {"seed": "a new one for each answer", "max_tokens": "as long as the context allows"}


def value_of(choice: SamplingChoice, name: str) -> str:
    """The value that the branch has set; empty if it has set none."""
    return _number(getattr(choice.params, name)) if name in choice.own else ""


def applies_otherwise(
    default: SamplingChoice, model: GenerationDefaults, name: str, *, max_tokens: int | None = None
) -> tuple[str, str]:
    """The value of a parameter that the branch does not set, and where it comes from.

    Args:
        default: the parameters of a branch that has set none.
        model: the loaded model's own.
        name: the parameter.
        max_tokens: the length limit of answers that have none.
    """
    value = getattr(default.for_model(model), name)
    if name in default.chosen:
        return _number(value), "your settings"
    if getattr(model, name, None) is not None:
        return _number(value), "the model's own"
    if name == "max_tokens" and value is None and max_tokens is not None:
        return _number(max_tokens), "default for a small model"
    return (_UNSET[name] if value is None else _number(value)), "default"


def build_summary(choice: SamplingChoice) -> str:
    """What the branch has set, in one sentence."""
    pairs = [f"{name}={value_of(choice, name)}" for name in PARAMETERS if name in choice.own]
    if not pairs:
        return "This conversation sets no sampling parameters."
    return f"Sampling of this conversation: {' '.join(pairs)}."


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:g}" if isinstance(value, float) else str(value)
