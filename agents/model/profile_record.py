"""`ProfileRecord`: the results of a model's measurement, kept in the cache directory or packaged.

`pravaha agents profile` writes complete ones. The test of a model's first run is shorter: it measures no
questions and no outputs. Records are found by the model's identity, a hash of its contents. A complete record
of the user's goes before the packaged one (`profiles.json`), that before a short one.
"""

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import orjson

from agents.api.agent_spec import Capability
from agents.model.profile import CapabilityProfile
from engine.files.cache_dir import cache_dir

_LOG = logging.getLogger(__name__)
VERSION = 2
"""Raised when what is measured changes, so that older results are not used."""
SUITES: Mapping[str, Capability] = {
    "labels": Capability.LABELS,
    "answers": Capability.TEXT,
    "loops": Capability.REACT,
    "functions": Capability.WRITE,
}
"""Suites of items that decide a capability."""
OUTPUTS = "outputs"
"""The suite whose items are named after outputs: `Plan/two files`."""


@dataclass(frozen=True, slots=True)
class ProfileRecord:
    """What was measured of one model.

    Attributes:
        name: the model's, for people.
        items: by suite, whether each item was right.
        questions: by name of the question, as `agents.steps.measures.question_measure`.
        is_complete: whether all suites were measured.
        seconds: how long it took.
    """

    name: str
    items: Mapping[str, Mapping[str, bool]] = field(default_factory=dict)
    questions: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    is_complete: bool = False
    seconds: float = 0.0

    def scores(self) -> dict[Capability, float]:
        """The share of right items by capability."""
        return {
            SUITES[suite]: share(items.values())
            for suite, items in self.items.items()
            if suite in SUITES
        }

    def outputs(self) -> dict[str, float]:
        """The share of right items by name of the output."""
        kinds: dict[str, list[bool]] = {}
        for name, right in self.items.get(OUTPUTS, {}).items():
            kinds.setdefault(name.partition("/")[0], []).append(right)
        return {kind: share(rights) for kind, rights in kinds.items()}

    def profile(self, identity: str) -> CapabilityProfile:
        """The profile that follows from it."""
        helpful = frozenset(name for name, result in self.questions.items() if result["helps"])
        return CapabilityProfile(identity, self.scores(), helpful, self.outputs())

    def fields(self) -> dict[str, Any]:
        """The record as JSON members."""
        return {
            "version": VERSION,
            "model": self.name,
            "complete": self.is_complete,
            "seconds": round(self.seconds, 1),
            "items": {suite: dict(items) for suite, items in self.items.items()},
            "questions": {name: dict(result) for name, result in self.questions.items()},
        }


def share(rights: Any) -> float:
    """The share of true values; 0 of none."""
    values = [bool(one) for one in rights]
    return sum(values) / len(values) if values else 0.0


def record_from_fields(data: Any) -> ProfileRecord | None:
    """The record of JSON members; None if it is one of another version.

    Raises:
        ValueError: it is no record.
    """
    try:
        if data["version"] != VERSION:
            return None
        items = {
            str(suite): {str(name): _flag(right) for name, right in given.items()}
            for suite, given in data["items"].items()
        }
        questions = {
            str(name): {**result, "helps": _flag(result["helps"])}
            for name, result in data["questions"].items()
        }
        return ProfileRecord(
            str(data["model"]),
            items,
            questions,
            is_complete=_flag(data["complete"]),
            seconds=float(data["seconds"]),
        )
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise ValueError(f"it is no profile ({error!r:.100})") from error


def _flag(value: Any) -> bool:
    if not isinstance(value, bool):
        raise TypeError("a result must be true or false")
    return value


def packaged_file() -> Path:
    """The file of the records that come with the program."""
    return Path(__file__).with_name("profiles.json")


@cache
def packaged_records() -> Mapping[str, ProfileRecord]:
    """The records that come with the program, by identity."""
    data = orjson.loads(packaged_file().read_bytes())
    records = {identity: record_from_fields(fields) for identity, fields in data.items()}
    return {identity: one for identity, one in records.items() if one is not None}


def load_record(identity: str, folder: Path | None = None) -> ProfileRecord | None:
    """What is known of a model; None if nothing is, or what is kept is damaged."""
    kept = _kept(_path(identity, folder))
    if kept is not None and kept.is_complete:
        return kept
    return packaged_records().get(identity, kept)


def known_profile(identity: str, folder: Path | None = None) -> CapabilityProfile | None:
    """The profile of a model that was measured before, here or by the packagers; None of any other."""
    record = load_record(identity, folder)
    return None if record is None else record.profile(identity)


def _kept(path: Path) -> ProfileRecord | None:
    try:
        return record_from_fields(orjson.loads(path.read_bytes()))
    except FileNotFoundError:
        return None
    except (OSError, ValueError):
        _LOG.warning("the capability profile %s cannot be read", path, exc_info=True)
        return None


def save_record(identity: str, record: ProfileRecord, folder: Path | None = None) -> Path:
    """Keep a record for later processes, whole or not at all.

    Raises:
        OSError: the disk is full or read-only.
    """
    path = _path(identity, folder)
    part = path.with_suffix(".part")
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        part.write_bytes(orjson.dumps(record.fields(), option=orjson.OPT_INDENT_2))
        part.replace(path)
    except OSError:
        part.unlink(missing_ok=True)
        raise
    return path


def _path(identity: str, folder: Path | None) -> Path:
    return (cache_dir() / "profiles" if folder is None else folder) / f"{identity}.json"
