"""`/sampling`: what a branch has set, what applies otherwise, and the arguments that change it."""

from engine.api.generation_defaults import GenerationDefaults, SamplingChoice
from engine.api.snapshot import ModelInfo
from engine.conversations.branch_sampling import PARAMETERS, own_value, read_changes
from engine.conversations.session import TreeSession
from engine.conversations.submission import default_max_tokens

RESET = "reset"
"""The argument that leaves every parameter to the settings and the model again."""
_UNSET = {"seed": "a new one for each answer", "max_tokens": "as long as the context allows"}


def change_sampling(session: TreeSession, argument: str) -> None:
    """Set the parameters of the open branch that `NAME=VALUE …` names; `reset` leaves all to the model.

    Raises:
        InvalidRequest: the argument is not in this form, or a value is out of range; nothing was changed.
    """
    reset = argument.lower() == RESET
    session.sampling.change(dict.fromkeys(PARAMETERS) if reset else read_changes(argument))


def value_of(choice: SamplingChoice, name: str) -> str:
    """The value that the branch has set; empty if it has set none."""
    return "" if name not in choice.own else _number(own_value(choice, name))


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
        return _number(value) or _UNSET[name], "your settings"
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


def build_parameters(
    choice: SamplingChoice, default: SamplingChoice, model: ModelInfo | None
) -> list[str]:
    """`temperature: 0.2 (the model's own)`, one line for each parameter."""
    lines = []
    for name in PARAMETERS:
        value, source = value_of(choice, name), "set for this conversation"
        if not value:
            value, source = applies_otherwise(
                default,
                GenerationDefaults() if model is None else model.generation_defaults,
                name,
                max_tokens=None if model is None else default_max_tokens(model),
            )
        lines.append(f"{name}: {value} ({source})")
    return lines


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:g}" if isinstance(value, float) else str(value)
