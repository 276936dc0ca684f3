"""`RunRequest`: what a front end asks the service to run."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal, cast, get_args

from agents.api.agent_spec import PermissionMode
from agents.api.errors import InvalidTask

RunKind = Literal["agent", "pipeline", "repair"]
REPAIR = "repair"
"""The only name of a run of the kind `repair`."""
MAX_TEXT = 1_000_000
MAX_PATHS = 1_000


@dataclass(frozen=True, slots=True)
class RunRequest:
    """A run to start.

    Attributes:
        kind: whether `name` is an agent, a pipeline or the self-healing audit.
        name: key of the agent, name of the pipeline, or `repair`.
        paths: files and folders to work on; a repair takes one.
        task: what to do.
        document: a text to work on.
        use_model: whether the model takes part.
        mode: permission mode; may only tighten the service's.
        tokens: bound of computed tokens, or None for the agent's.
        seconds: bound of wall time, or None for the agent's.
        conversation: id of the conversation that asks; an approval given "always" holds within it.
    """

    kind: RunKind
    name: str
    paths: tuple[str, ...] = ()
    task: str = ""
    document: str = ""
    use_model: bool = True
    mode: PermissionMode = "ask"
    tokens: int | None = None
    seconds: float | None = None
    conversation: str = ""

    def fields(self) -> dict[str, Any]:
        """The request as JSON members."""
        return asdict(self)


def request_from_fields(data: Mapping[str, Any]) -> RunRequest:
    """The request of JSON members.

    Raises:
        InvalidTask: a member is missing, unknown, of another type or out of range.
    """
    known = set(RunRequest.__dataclass_fields__)
    for name in data:
        if name not in known:
            raise InvalidTask(f"There is no field {name!r:.40} in a run request.")
    if data.get("kind") not in get_args(RunKind):
        raise InvalidTask("kind must be agent, pipeline or repair.")
    if data.get("mode", "ask") not in get_args(PermissionMode):
        raise InvalidTask("mode must be auto, ask or deny.")
    for name in ("name", "task", "document", "conversation"):
        if not isinstance(data.get(name, ""), str) or len(data.get(name, "")) > MAX_TEXT:
            raise InvalidTask(f"{name} must be a text of at most {MAX_TEXT:,} characters.")
    if not data.get("name"):
        raise InvalidTask(
            "name is missing: the key of an agent, the name of a pipeline, or repair."
        )
    paths = data.get("paths", ())
    if not isinstance(paths, list | tuple) or len(paths) > MAX_PATHS:
        raise InvalidTask(f"paths must be a list of at most {MAX_PATHS:,} paths.")
    if not all(isinstance(path, str) and path and "\0" not in path for path in paths):
        raise InvalidTask("Every path must be a non-empty text.")
    if data["kind"] == "repair" and (data["name"] != REPAIR or len(paths) != 1):
        raise InvalidTask("A repair has the name repair and one path.")
    if not isinstance(data.get("use_model", True), bool):
        raise InvalidTask("use_model must be true or false.")
    return RunRequest(
        kind=cast(RunKind, data["kind"]),
        name=data["name"],
        paths=tuple(paths),
        task=data.get("task", ""),
        document=data.get("document", ""),
        use_model=data.get("use_model", True),
        mode=cast(PermissionMode, data.get("mode", "ask")),
        tokens=_bound(data.get("tokens"), "tokens", int),
        seconds=_bound(data.get("seconds"), "seconds", float),
        conversation=data.get("conversation", ""),
    )


def _bound(value: Any, name: str, kind: type) -> Any:
    if value is None:
        return None
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if not number or not 0 <= value <= 10**9 or (kind is int and not isinstance(value, int)):
        raise InvalidTask(f"{name} must be a number of at least 0.")
    return value
