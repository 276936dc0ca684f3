"""`Recording`: a run of one agent in a folder, with all that a replay of it needs.

    request.json       the request, the model's identity and what it was measured to do
    trajectory.jsonl   the run's events, one a line
    model.jsonl        what the model answered, one answer a line
    result.json        the result

A recording quotes the files that the agent read.
"""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from agents.api.agent_spec import Capability, PermissionMode
from agents.api.budget import Budget
from agents.api.errors import InvalidTask
from agents.api.events import RunEvent, event_fields, event_from_fields
from agents.model.profile import CapabilityProfile

VERSION = 1
MAX_FILE_BYTES = 200_000_000


@dataclass(frozen=True, slots=True)
class Recording:
    """A recorded run.

    Attributes:
        key: the agent.
        budget: the run's bounds.
        paths: absolute paths that were given.
        task: the task.
        document: the text that was given.
        base: absolute path of the state before the change, or empty.
        project: absolute path of the project whose agents were loaded.
        mode: permission mode.
        has_approver: whether somebody could be asked.
        model: identity of the model, empty without one.
        profile: what the model was measured to do, None without one.
        events: the run's events.
        answers: as `RecordedSession.answers`.
        result: the result's JSON members.
    """

    key: str
    budget: Budget
    paths: tuple[str, ...] = ()
    task: str = ""
    document: str = ""
    base: str = ""
    project: str = ""
    mode: PermissionMode = "ask"
    has_approver: bool = False
    model: str = ""
    profile: CapabilityProfile | None = None
    events: Sequence[RunEvent] = ()
    answers: Sequence[dict[str, Any]] = ()
    result: dict[str, Any] = field(default_factory=dict)


_REQUEST = (
    "key", "paths", "task", "document", "base", "project", "mode", "has_approver", "model",
)  # fmt: skip


def write_recording(folder: Path, recording: Recording) -> None:
    """Write the files; those of an earlier recording are replaced.

    Raises:
        OSError: the folder cannot be written.
    """
    folder.mkdir(parents=True, exist_ok=True)
    request = {name: getattr(recording, name) for name in _REQUEST}
    request |= {"version": VERSION, "budget": asdict(recording.budget), "profile": None}
    if recording.profile is not None:
        request["profile"] = {
            "scores": {name.value: score for name, score in recording.profile.scores.items()},
            "questions": sorted(recording.profile.questions),
            "outputs": dict(recording.profile.outputs),
            "allowed": recording.profile.is_allowed,
        }
    _write(folder / "request.json", json.dumps(request, ensure_ascii=False, indent=2))
    _write(folder / "trajectory.jsonl", _lines(event_fields(one) for one in recording.events))
    _write(folder / "model.jsonl", _lines(recording.answers))
    _write(folder / "result.json", json.dumps(recording.result, ensure_ascii=False, indent=2))


def read_recording(folder: Path) -> Recording:
    """Read the files.

    Raises:
        InvalidTask: a file is missing or damaged, or was written by another version.
    """
    try:
        request = json.loads(_read(folder / "request.json"))
        if request.pop("version") != VERSION:
            raise InvalidTask(f"{folder} was recorded by another version of Pravāha.")
        profile = request.pop("profile")
        return Recording(
            **{**request, "paths": tuple(request["paths"]), "budget": Budget(**request["budget"])},
            profile=None if profile is None else _profile(request["model"], profile),
            events=[event_from_fields(one) for one in _objects(folder / "trajectory.jsonl")],
            answers=_objects(folder / "model.jsonl"),
            result=json.loads(_read(folder / "result.json")),
        )
    except OSError as error:
        raise InvalidTask(
            f"{folder} is no recording of a run: {error.filename} cannot be read ({error.strerror})."
        ) from error
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise InvalidTask(f"The recording in {folder} is damaged ({error!s:.200}).") from error


def _profile(identity: str, fields: dict[str, Any]) -> CapabilityProfile:
    scores = {Capability(name): float(score) for name, score in fields["scores"].items()}
    return CapabilityProfile(
        identity,
        scores,
        frozenset(fields["questions"]),
        {name: float(share) for name, share in fields.get("outputs", {}).items()},
        is_allowed=fields.get("allowed") is True,  # recordings of earlier versions have neither
    )


def _lines(objects: Any) -> str:
    return "\n".join(json.dumps(one, ensure_ascii=False) for one in objects)


def _write(path: Path, text: str) -> None:
    path.write_text(text + "\n", encoding="utf-8")


def _read(path: Path) -> str:
    if path.stat().st_size > MAX_FILE_BYTES:
        raise InvalidTask(f"{path} is larger than {MAX_FILE_BYTES // 10**6} MB.")
    return path.read_text(encoding="utf-8")


def _objects(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in _read(path).splitlines() if line]
