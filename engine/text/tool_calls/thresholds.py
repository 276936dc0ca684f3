"""`CallThresholds`: from which probabilities on a model's answer is a call, as measured for that model.

Of two tables, which `benchmarks/tool_thresholds.py` writes, the user's own (`own_table`) goes before
`thresholds.json` beside this file. A model that is in neither decides itself whether it calls a tool.
"""

import hashlib
import logging
import math
from dataclasses import dataclass
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

import orjson

from engine.api.snapshot import ModelInfo
from engine.files.cache_dir import cache_dir
from engine.text.chat_tokenizer import ChatTokenizer

logger = logging.getLogger(__name__)

_SCORES = ("fits", "several", "again")


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


def call_thresholds(info: ModelInfo, tokenizer: ChatTokenizer) -> CallThresholds | None:
    """The thresholds of a model; None if it was not measured."""
    return thresholds_of(key_of(info, tokenizer))


def thresholds_of(key: str) -> CallThresholds | None:
    """The thresholds of the model with a key in the tables; None if it was not measured."""
    return _thresholds().get(key)


def key_of(info: ModelInfo, tokenizer: ChatTokenizer) -> str:
    """The key of a model in the tables."""
    return thresholds_key(
        info.architecture, info.parameters, info.vocab_size, tokenizer.tool_template
    )


def thresholds_key(architecture: str, parameters: int, vocab_size: int, template: str) -> str:
    """Identifies a model in the tables whatever its name and the format of its weights."""
    parts = (architecture, parameters, vocab_size, template)
    return hashlib.blake2b(repr(parts).encode(), digest_size=12).hexdigest()


def own_table() -> Path:
    """The table of the models that the user has measured."""
    return cache_dir() / "tool_thresholds.json"


def read_thresholds(text: bytes) -> dict[str, CallThresholds]:
    """The thresholds in a table, by the key of their model.

    Raises:
        ValueError: it is no table; the message says what is wrong.
    """
    table: Any = orjson.loads(text)
    try:
        return {
            key: CallThresholds(*(_threshold(entry["thresholds"][name]) for name in _SCORES))
            for key, entry in table.items()
        }
    except (TypeError, KeyError, AttributeError) as error:
        raise ValueError("an entry has not the thresholds fits, several and again") from error


def _threshold(values: Any) -> Threshold:
    one, slope = values
    return Threshold(float(one), float(slope))


@cache
def _thresholds() -> dict[str, CallThresholds]:
    """All thresholds, read once in a process."""
    found = read_thresholds(
        resources.files("engine.text.tool_calls").joinpath("thresholds.json").read_bytes()
    )
    own = own_table()
    try:
        found |= read_thresholds(own.read_bytes())
    except FileNotFoundError:
        pass
    except (OSError, ValueError) as error:
        logger.warning("The thresholds in %s are not used: %s.", own, error)
    return found
