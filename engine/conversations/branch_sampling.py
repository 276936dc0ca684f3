"""Sampling parameters of one branch of a conversation: read, change, store and restore them.

A branch keeps only what was set for it; everything else is left to the settings and the model, so that a
new flag or another model still has its effect. The names set for a branch are stored with each answer,
beside the parameters that were used.
"""

import difflib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

from engine.api.errors import InvalidRequest
from engine.api.generation_defaults import SamplingChoice
from engine.api.request import (
    MIN_SEED,
    NO_LIMIT,
    RANDOM_SEED,
    SamplingParams,
    limit_from,
    seed_from,
)
from engine.batch.sampling_validator import SamplingValidator
from engine.conversations.tree import Node, NodeKind

PARAMETERS: dict[str, type[int] | type[float]] = {
    "temperature": float,
    "top_p": float,
    "top_k": int,
    "min_p": float,
    "repetition_penalty": float,
    "frequency_penalty": float,
    "presence_penalty": float,
    "dry_multiplier": float,
    "dry_base": float,
    "dry_allowed_length": int,
    "dry_penalty_last_n": int,
    "seed": int,
    "max_tokens": int,
}
"""The parameters that a branch may set, and the type of each."""

Changes = Mapping[str, int | float | None]
"""New values by name; None leaves the parameter to the settings and the model again."""

_OWN = "set_for_branch"
_NONE = frozenset({"", "default"})
_MEANING_NONE = {"seed": RANDOM_SEED, "max_tokens": NO_LIMIT}
"""The numbers by which parameters that have no value are set."""


def read_changes(text: str) -> Changes:
    """Parse `temperature=0.7 top_p=0.9`; `NAME=default` resets one. The beginning of only one NAME suffices.

    Raises:
        InvalidRequest: not in this form, an unknown name, or not a number.
    """
    changes: dict[str, int | float | None] = {}
    for part in text.replace(",", " ").split():
        name, equals, value = part.partition("=")
        if not equals:
            raise InvalidRequest(f"{part!r:.60} is not of the form NAME=VALUE.")
        beginning = [one for one in PARAMETERS if one.startswith(name.lower())] if name else []
        if name not in PARAMETERS and len(beginning) == 1:
            name = beginning[0]
        changes[name] = read_value(name, value)
    return changes


def read_value(name: str, text: str) -> int | float | None:
    """The value of a parameter; None for an empty text or `default`.

    Raises:
        InvalidRequest: an unknown name, or not a number of the parameter's type.
    """
    kind = PARAMETERS.get(name)
    if kind is None:
        near = difflib.get_close_matches(name, PARAMETERS, n=2, cutoff=0.4)
        hint = f" Did you mean {' or '.join(near)}?" if near else ""
        raise InvalidRequest(f"There is no sampling parameter {name!r:.40}.{hint}", param=name)
    text = text.strip()
    if text.lower() in _NONE:
        return None
    try:
        return kind(text)
    except ValueError:
        what = "an integer" if kind is int else "a number"
        raise InvalidRequest(f"{name} must be {what}, not {text!r:.40}.", param=name) from None


def change(choice: SamplingChoice, default: SamplingChoice, changes: Changes) -> SamplingChoice:
    """The branch's parameters after `changes`.

    Args:
        choice: the present ones.
        default: those of a branch that has set none.
        changes: new values by name.

    Raises:
        InvalidRequest: a value is out of range; the sentence is the engine's own.
    """
    own = set(choice.own)
    values: dict[str, object] = {}
    for name, value in changes.items():
        if value is None:
            own.discard(name)
            values[name] = getattr(default.params, name)
        else:
            own.add(name)
            values[name] = _as_used(name, value)
    params = replace(choice.params, **values)  # type: ignore[arg-type]
    # The vocabulary matters only for token ids, which a branch cannot set.
    SamplingValidator(vocab_size=2**31).validate(params)
    return SamplingChoice(params, default.chosen | own, frozenset(own))


def set_again(default: SamplingChoice, choice: SamplingChoice) -> SamplingChoice:
    """The default with what `choice` sets for its branch; an answer may have further limits of its own."""
    return change(default, default, {name: own_value(choice, name) for name in choice.own})


def own_value(choice: SamplingChoice, name: str) -> Any:
    """The number by which the branch has set a parameter."""
    return _as_set(name, getattr(choice.params, name))


def _as_set(name: str, value: Any) -> Any:
    """The number that sets a parameter to a value, which may be no seed or no limit."""
    return _MEANING_NONE.get(name) if value is None else value


def _as_used(name: str, number: float) -> object:
    """The value of a parameter that a number sets; one out of range stays, and is refused by its own name."""
    if name == "seed" and MIN_SEED <= number < 0:
        return seed_from(int(number))
    return limit_from(int(number)) if name == "max_tokens" else number


def stored(params: SamplingParams, own: frozenset[str]) -> str:
    """The JSON to store with an answer: the parameters used, and which were set for the branch."""
    values = asdict(params) | ({_OWN: sorted(own)} if own else {})
    return json.dumps(values, separators=(",", ":"))


def restored(default: SamplingChoice, path: Sequence[Node]) -> SamplingChoice:
    """The parameters of a branch whose path was loaded: as its last answer was asked for."""
    answers = [node for node in path if node.kind is NodeKind.ASSISTANT and node.sampling]
    if not answers:
        return default
    try:
        values = json.loads(answers[-1].sampling or "{}")
        names = [name for name in values.get(_OWN, ()) if name in PARAMETERS]
        own = {name: _as_set(name, values[name]) for name in names}
        return change(default, default, own)
    except (ValueError, KeyError, TypeError, AttributeError, InvalidRequest):
        return default  # written by another version
