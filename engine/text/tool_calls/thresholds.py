"""`CallThresholds`: from which probabilities on a model's answer is a call, as measured for that model.

The table `thresholds.json` is written by `benchmarks/tool_thresholds.py`. A model that is not in it
decides itself whether it calls a tool.
"""

import hashlib
import math
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

import orjson

from engine.api.snapshot import ModelInfo
from engine.text.tokenizer import Tokenizer


@dataclass(frozen=True, slots=True)
class Threshold:
    """A least score, which changes with the logarithm of the number of tools.

    Attributes:
        one: with one tool.
        slope: what the logarithm of their number adds, times this.
    """

    one: float
    slope: float = 0.0

    def of(self, tools: int) -> float:
        """The least score with a number of tools."""
        return self.one + self.slope * math.log(max(1, tools))


@dataclass(frozen=True, slots=True)
class CallThresholds:
    """Least scores of a model (`CallDecider` defines them).

    Attributes:
        fits: a tool is called.
        several: more than one call is made.
        again: after a tool's result, the model may call again.
    """

    fits: Threshold
    several: Threshold
    again: Threshold


def call_thresholds(info: ModelInfo, tokenizer: Tokenizer) -> CallThresholds | None:
    """The thresholds of a model; None if it was not measured."""
    found = _table().get(thresholds_key(info, tokenizer))
    if found is None:
        return None
    names = ("fits", "several", "again")
    return CallThresholds(*(Threshold(*found["thresholds"][name]) for name in names))


def thresholds_key(info: ModelInfo, tokenizer: Tokenizer) -> str:
    """Identifies a model in the table whatever its name and the format of its weights."""
    parts = (info.architecture, info.parameters, info.vocab_size, tokenizer.tool_template)
    return hashlib.blake2b(repr(parts).encode(), digest_size=12).hexdigest()


@cache
def _table() -> dict[str, dict[str, Any]]:
    text = resources.files("engine.text.tool_calls").joinpath("thresholds.json").read_bytes()
    table: dict[str, dict[str, Any]] = orjson.loads(text)
    return table
