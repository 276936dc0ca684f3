"""`BackgroundServer`: the HTTP API over a screen's engines and agents, switched on and off while it runs."""

import threading
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from engine.api.errors import InvalidRequest
from engine.api.tools import CallFormName, ToolDecision

if TYPE_CHECKING:
    from agents.guardrails.guardrails import Guardrails
    from agents.service.run_service import RunService
    from app.server.process.server import DrainingServer
    from app.server.process.sessions import Session
    from app.server.responses.store import ResponseStore
    from app.server.retrieval.service import RetrievalService
    from engine.retrieval.parsing.image_reader import ImageReader
    from engine.runtime.engine import AsyncPravahaEngine
    from engine.runtime.served_models import ServedModels


class _Running(NamedTuple):
    server: "DrainingServer"
    thread: threading.Thread
    url: str
    retrieval: "RetrievalService | None"
    image_reader: "ImageReader"
    responses: "ResponseStore"
    sessions: "Callable[[], list[Session]]"


class BackgroundServer:
    """Serves one engine on 127.0.0.1, on a thread with its own event loop.

    The caller owns the engine and the service of agents; a client sees and approves the screen's own runs.

    All methods may be called from any thread. The modules of the server are imported at each `start`,
    because that takes a third of a second.
    """

    def __init__(
        self,
        engine: "AsyncPravahaEngine | ServedModels",
        *,
        port: int,
        api_key: str | None,
        cors_origins: tuple[str, ...] = (),
        tool_call_form: CallFormName = "auto",
        tool_decision: ToolDecision = "auto",
        guardrails: "Callable[[], Guardrails] | None" = None,
        run_service: "RunService | None" = None,
        retrieval_folder: Path | None = None,
        responses_file: Path | None = None,
    ) -> None:
        """Nothing is opened before `start`.

        Args:
            engine: the engine, or several models.
            port: TCP port for a `start` without one.
            api_key: the key that clients must send; None for none.
            cors_origins: as in `ServerConfig`.
            tool_call_form, tool_decision: as in `ServerConfig`.
            guardrails: opens those of messages and answers, at each `start`; None checks nothing.
            run_service: the agents that are served; None for none.
            retrieval_folder: where clients' files and vector stores are kept; None serves none.
            responses_file: where clients' responses and conversations are kept; None keeps them in memory.
        """
        self._open_guardrails = guardrails
        self._served = engine
        self._port = port
        self._api_key = api_key
        self._cors_origins = cors_origins
        self._tool_call_form = tool_call_form
        self._tool_decision = tool_decision
        self._run_service = run_service
        self._retrieval_folder = retrieval_folder
        self._responses_file = responses_file
        self._lock = threading.Lock()  # held by `start` and `stop`
        self._running: _Running | None = None

    @property
    def url(self) -> str | None:
        """The address while the engine is served, else None. Never waits."""
        running = self._running
        return running.url if running is not None and running.thread.is_alive() else None

    def sessions(self) -> "list[Session]":
        """The sessions of its clients, the last used one first; none while nothing is served. Never waits."""
        running = self._running
        return [] if running is None or self.url is None else running.sessions()

    def start(self, port: int | None = None) -> str:
        """Serve the engine and return the address. Takes up to a second the first time.

        Args:
            port: TCP port; 0 takes a free one, None that of the settings.

        Raises:
            InvalidRequest: it is served already.
            PravahaError: the port cannot be bound, or any web page may ask and there is no key.
        """
        from app.server.app import create_app
        from app.server.process.config import ServerConfig
        from app.server.process.server import DrainingServer, base_url, listen
        from app.server.responses.store import ResponseStore
        from engine.retrieval.parsing.image_reader import ImageReader
        from engine.runtime.served_models import ServedModels

        with self._lock:
            if self.url is not None:
                raise InvalidRequest(f"The engine is served at {self.url} already.")
            config = ServerConfig(
                port=self._port if port is None else port,
                api_key=self._api_key,
                cors_origins=self._cors_origins,
                tool_call_form=self._tool_call_form,
                tool_decision=self._tool_decision,
                drain_s=0.0,  # who ends it, or quits, does not wait for the answers of others
            )
            guardrails = None if self._open_guardrails is None else self._open_guardrails()
            listener = listen(config)
            retrieval = self._start_retrieval()
            image_reader = ImageReader()
            responses = ResponseStore(self._responses_file)
            served = self._served
            app = create_app(
                # A client must not unload what the person at the screen works with.
                served
                if isinstance(served, ServedModels)
                else ServedModels.single(served, may_unload=False),
                config,
                run_service=self._run_service,
                guardrails=guardrails,
                retrieval=retrieval,
                image_reader=image_reader,
                responses=responses,
            )
            server = DrainingServer(app)
            url = base_url(listener)
            thread = threading.Thread(
                target=server.run,
                kwargs={"sockets": [listener]},
                name="pravaha-http",
                daemon=True,
            )
            thread.start()
            self._running = _Running(
                server, thread, url, retrieval, image_reader, responses,
                app.state.server.sessions.recent,
            )  # fmt: skip
            return url

    def stop(self) -> None:
        """End running answers with an error, close all connections and the port.

        Idempotent. Takes a tenth of a second, or up to six seconds if clients do not read.
        """
        with self._lock:
            running, self._running = self._running, None
            if running is not None and running.thread.is_alive():
                running.server.request_exit()
                running.thread.join()
            if running is not None:
                running.image_reader.close()
                running.responses.close()
            if running is not None and running.retrieval is not None:
                running.retrieval.close()

    def _start_retrieval(self) -> "RetrievalService | None":
        from app.server.retrieval.service import RetrievalService

        if self._retrieval_folder is None:
            return None
        retrieval = RetrievalService(self._retrieval_folder, self._served.embedder)
        retrieval.start()
        return retrieval
