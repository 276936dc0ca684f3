"""`CapabilityProfile`: what the loaded model was measured to do, by a short self-test.

    labels: one-token decisions on simple questions, calibrated and in both orders
    text:   a short answer from a sentence
    react:  a question whose answer only a tool can give, in two steps
    write:  the corrected line of a wrong function

Features switch by these results, never by the model's name. The result is kept in the cache directory by the
model's identity, so that the test runs once.
"""

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import orjson

from agents.api.agent_spec import Capability
from engine.files.cache_dir import cache_dir

_LOG = logging.getLogger(__name__)
VERSION = 1
"""Raised when the self-test changes, so that older results are not used."""
PASS: Mapping[Capability, float] = {
    Capability.LABELS: 0.7,
    Capability.TEXT: 0.7,
    Capability.REACT: 0.7,
    Capability.WRITE: 0.7,
}
"""The share of items that a model must get right for a capability."""


@dataclass(frozen=True, slots=True)
class CapabilityProfile:
    """Results of the self-test.

    Attributes:
        model: identity of the model (`ModelSession.identity`).
        scores: share of right items by capability, 0–1.
        questions: names of the one-token decisions that were measured to help with this model.
    """

    model: str
    scores: Mapping[Capability, float] = field(default_factory=dict)
    questions: frozenset[str] = frozenset()

    @property
    def capability(self) -> Capability:
        """The highest capability that was reached; `react` and `write` need the ones below them.

        `text` does not need `labels`: small models answer a short question long before they choose a letter.
        """
        reached = Capability.LABELS if self._passed(Capability.LABELS) else Capability.NONE
        for capability in (Capability.TEXT, Capability.REACT, Capability.WRITE):
            if not self._passed(capability):
                break
            reached = capability
        return reached

    def _passed(self, capability: Capability) -> bool:
        return self.scores.get(capability, 0.0) >= PASS[capability]

    def has(self, capability: Capability) -> bool:
        """Whether the model reached a capability."""
        return self.capability.rank >= capability.rank


def load_scores(identity: str, folder: Path | None = None) -> dict[Capability, float] | None:
    """Kept results of the self-test; None if there are none or they are damaged."""
    path = _path(identity, folder)
    try:
        data = orjson.loads(path.read_bytes())
        if data["version"] != VERSION:
            return None
        return {Capability(name): float(score) for name, score in data["scores"].items()}
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        _LOG.warning("the capability profile %s cannot be read", path, exc_info=True)
        return None


def save_scores(
    identity: str, scores: Mapping[Capability, float], folder: Path | None = None
) -> None:
    """Keep results for later processes; a full or read-only disk costs only the test's repetition."""
    path = _path(identity, folder)
    data = {"version": VERSION, "scores": {name.value: score for name, score in scores.items()}}
    part = path.with_suffix(".part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        part.write_bytes(orjson.dumps(data))
        part.replace(path)
    except OSError:
        _LOG.warning("the capability profile %s cannot be written", path, exc_info=True)


def _path(identity: str, folder: Path | None) -> Path:
    return (cache_dir() / "profiles" if folder is None else folder) / f"{identity}.json"
