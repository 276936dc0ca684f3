"""`pravaha --record FILE` and `pravaha --replay FILE`: what the screen showed, kept and played again.

A recording holds the results of all calls to the engine, the keys and the open conversation, so it plays
without a model. It contains what was said: treat it like the conversation itself.
"""

import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from app.settings.errors import ConfigurationError
from engine.api.errors import InvalidRequest, PravahaError

if TYPE_CHECKING:
    from app.settings.settings import Settings
    from app.tui.input_events import InputReplayer
    from engine.clients.engine_client import EngineClient
    from engine.clients.recording_client import Recording
    from engine.clients.replay_client import RecordedLines
    from engine.conversations.session import TreeSession
    from engine.conversations.thinking import Thinking


def refuse_unrecorded(settings: "Settings", *, several_models: bool) -> None:
    """Refuse to record what a replay could not show.

    Raises:
        ConfigurationError: calls of tools, or several models.
    """
    if several_models:
        raise ConfigurationError("A recording follows one model: give --record a single --model.")
    if settings.chat_tools:
        raise ConfigurationError("A recording has no calls of tools: leave out --chat-tools.")


@contextmanager
def new_recording(path: Path) -> "Iterator[Recording]":
    """A recording, closed at the end.

    Raises:
        InvalidRequest: the file exists or cannot be created.
    """
    from engine.clients.recording_client import Recording

    try:
        recording = Recording(path)
    except OSError as error:
        raise InvalidRequest(f"{path} cannot be recorded to: {error.strerror}.") from error
    try:
        yield recording
    finally:
        recording.close()
    if recording.error is not None:
        raise PravahaError(f"The recording {path} is incomplete: {recording.error}.")


def write_start(
    recording: "Recording", session: "TreeSession", settings: "Settings", *, theme: str | None
) -> None:
    """Write the version, what a session depends on, and the open conversation."""
    from engine.clients.recording_client import VERSION
    from engine.clients.value_codec import encode

    facts = {
        "version": VERSION,
        "time": time.time(),
        "theme": theme,
        "server": settings.attach,
        "system": settings.system,
        "system_required": settings.is_set("system"),
        "stop_repetition": settings.stop_repetition,
        "thinking": encode(session.answers.thinking),
    }
    recording.write("start", facts)
    contents = session.contents()
    if contents is not None:
        recording.write("conversation", encode(contents))


def recorded_client(client: "EngineClient", recording: "Recording") -> "EngineClient":
    """The client, with its results written to the recording."""
    from engine.clients.recording_client import RecordingClient

    return cast("EngineClient", RecordingClient(client, recording))


def recorded_ids(recording: "Recording") -> Callable[[], str]:
    """New ids, which are written to the recording."""
    from engine.conversations.ulid import new_ulid

    def new_id() -> str:
        made = new_ulid()
        recording.write("id", made)
        return made

    return new_id


@dataclass(frozen=True, slots=True)
class Replay:
    """An opened recording, ready for the screen.

    Attributes:
        facts: the recording's facts, such as `theme`.
        wall_clock: seconds since the epoch, as they were.
    """

    client: "EngineClient"
    session: "TreeSession"
    inputs: "InputReplayer"
    facts: dict[str, Any]
    wall_clock: Callable[[], float]


@contextmanager
def open_replay(path: Path, *, speed: float = 1.0, ends: bool = False) -> Iterator[Replay]:
    """Open a recording with a session over a temporary store.

    Raises:
        InvalidRequest: it cannot be read, or is damaged.
    """
    from app.tui.input_events import InputReplayer, ReplayClock, from_json
    from engine.clients.replay_client import RecordedLines, ReplayClient
    from engine.conversations.session import TreeSession
    from engine.conversations.storage.store import Store
    from engine.conversations.ulid import new_ulid

    recorded = RecordedLines.open(path)
    clock = ReplayClock(time.monotonic, speed=speed)
    facts = _facts(recorded)
    began = float(facts.get("time") or 0.0)
    ids = (str(values[0]) for _, _, kind, values in recorded.lines if kind == "id")
    inputs = [
        (at, from_json(values[0])) for _, at, kind, values in recorded.lines if kind == "input"
    ]
    with ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="pravaha-replay-"))
        store = Store.open(Path(folder) / "conversations.db", clock=lambda: began + clock())
        stack.callback(store.close)
        _restore(store, recorded)
        replay_client = ReplayClient(recorded, clock)
        client = cast("EngineClient", replay_client)
        session = TreeSession(
            store,
            client,
            wall=lambda: began + clock(),
            new_id=lambda: next(ids, None) or new_ulid(),
            system_prompt=facts.get("system"),
            system_required=bool(facts.get("system_required")),
            stop_repetition=bool(facts.get("stop_repetition", True)),
            background=facts.get("server") is not None,
        )
        stack.callback(session.close)
        session.answers.thinking = _thinking(facts)
        replayer = InputReplayer(
            inputs,
            clock,
            duration=recorded.duration,
            is_drained=replay_client.is_drained,
            ends=ends,
        )
        yield Replay(client, session, replayer, facts, lambda: began + clock())


def _facts(recorded: "RecordedLines") -> dict[str, Any]:
    found = (values[0] for _, _, kind, values in recorded.lines if kind == "start")
    facts = next(found, None)
    if not isinstance(facts, dict):
        raise InvalidRequest("The recording does not begin with its version.")
    return facts


def _thinking(facts: dict[str, Any]) -> "Thinking":
    """What was asked of models that reason; older recordings do not say it."""
    from engine.clients.value_codec import CodecError, decode
    from engine.conversations.thinking import Thinking

    if "thinking" not in facts:
        return Thinking()
    try:
        thinking: Thinking = decode(facts["thinking"], Thinking, "thinking")
    except CodecError as error:
        raise InvalidRequest(f"The beginning of the recording is damaged: {error}.") from error
    return thinking


def _restore(store: Any, recorded: "RecordedLines") -> None:
    from engine.clients.value_codec import CodecError, decode
    from engine.conversations.tree_contents import TreeContents

    for number, _, kind, values in recorded.lines:
        if kind == "conversation":
            try:
                store.trees.restore(decode(values[0], TreeContents, "conversation"))
            except CodecError as error:
                raise InvalidRequest(
                    f"Line {number} of the recording is damaged: {error}."
                ) from error
            store.writes.flush()
