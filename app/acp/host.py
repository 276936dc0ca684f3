"""`Host`: what all sessions share: the engine's client, the agents, and where conversations are kept."""

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from itertools import chain, repeat
from pathlib import Path
from typing import TYPE_CHECKING

from engine.api.errors import PravahaError

if TYPE_CHECKING:
    from agents.mcp.server import McpServer
    from agents.mcp.servers import McpServers
    from agents.service.run_service import RunService
    from app.runtime.chat_tools import ChatTools
    from app.settings.settings import Settings
    from engine.clients.engine_client import EngineClient
    from engine.clients.model_set import ModelSet
    from engine.conversations.session import TreeSession
    from engine.models.progress import FetchProgress
    from engine.retrieval.parsing.image_reader import ImageReader

DEFAULT_TOOLS = ("read", "grep", "glob", "edit", "write", "shell")
"""What the model may call, where the settings choose nothing else."""


@dataclass(frozen=True, slots=True)
class Host:
    """Engine, agents and conversations.

    Attributes:
        client: the engine.
        service: the agents.
        open_conversations: opens the user's conversations for one session, with its tools; the context ends
            it. The argument `first` is the id of the empty conversation that it begins with.
        folders: the file that remembers the folders of sessions.
        tools: names of the tools that the model may call.
        models: several models to choose from; None if there is one.
        image_reader: reads the text of images; None reads none.
        attached: whether the engine is that of a server.
        mcp_with: the MCP servers of the settings together with further ones; None where none can be added.
    """

    client: "EngineClient"
    service: "RunService"
    open_conversations: "Callable[[ChatTools | None, str], AbstractContextManager[TreeSession]]"
    folders: Path
    tools: tuple[str, ...] = DEFAULT_TOOLS
    models: "ModelSet | None" = None
    image_reader: "ImageReader | None" = None
    attached: bool = False
    mcp_with: "Callable[[tuple[McpServer, ...]], McpServers] | None" = None


class OpeningHost:
    """A host that is opened by a thread, so that the client is answered meanwhile.

    Attributes:
        opened: the host, or why there is none.
    """

    def __init__(self, settings: "Settings") -> None:
        """Nothing is opened before `start`."""
        self.opened: Future[Host] = Future()
        self._settings = settings
        self._status = "Pravāha starts"
        self._resources = ExitStack()
        self._lock = threading.Lock()
        self._closing = False

    @property
    def status(self) -> str:
        """What it waits for, in a few words."""
        return self._status

    def start(self) -> None:
        """Begin to open it."""
        # A daemon, because a download cannot be interrupted.
        threading.Thread(target=self._open, name="pravaha-open", daemon=True).start()

    def close(self) -> None:
        """End the agents' processes and the engine. Idempotent."""
        with self._lock:
            self._closing = True
            self._resources.close()

    def _open(self) -> None:
        try:
            host = self._host()
        except Exception as error:
            self.opened.set_exception(error)
        else:
            self.opened.set_result(host)

    def _fetched(self, now: "FetchProgress") -> None:
        share = f" {100 * now.done // now.total} %" if now.total else ""
        self._status = f"Fetching the model{share}"

    def _host(self) -> Host:
        from app.runtime.agents import open_run_service
        from app.runtime.opening import open_screen_client, open_session
        from engine.conversations.thinking import read_thinking
        from engine.conversations.ulid import new_ulid
        from engine.retrieval.parsing.image_reader import ImageReader

        settings = self._settings
        thinking = read_thinking(settings.thinking or "")
        with ExitStack() as stack:
            opened = stack.enter_context(open_screen_client(settings, self._fetched))
            service = open_run_service(settings, opened.engine)
            stack.callback(service.close)
            image_reader = ImageReader()
            stack.callback(image_reader.close)
            opened.start()
            with self._lock:
                if self._closing:
                    raise PravahaError("The client has left.")
                self._resources.push(stack.pop_all())

        @contextmanager
        def conversations(tools: "ChatTools | None", first: str) -> "Iterator[TreeSession]":
            ids = chain([first], (new_ulid() for _ in repeat(None)))
            with open_session(
                settings,
                opened.client,
                resume=False,
                new_id=ids.__next__,
                background=settings.attach is not None,
                tools=tools,
                models=opened.models,
            ) as session:
                session.answers.thinking = thinking
                yield session

        def mcp_with(further: "tuple[McpServer, ...]") -> "McpServers":
            from agents.mcp.servers import McpServers

            return McpServers((*settings.mcp.configured(), *further), settings.mcp_approved)

        return Host(
            opened.client,
            service,
            conversations,
            settings.data_dir / "acp-sessions.json",
            settings.chat_tools or DEFAULT_TOOLS,
            opened.models,
            image_reader,
            settings.attach is not None,
            None if settings.attach is not None else mcp_with,
        )
