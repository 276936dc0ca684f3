"""`pravaha --serve`: the headless HTTP server. Never imports textual (enforced by a test)."""

import gc
import sys
import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING

from app.server.process.config import (
    DRAIN_S,
    MAX_BODY_BYTES,
    MAX_UPLOAD_BYTES,
    ServerConfig,
)
from engine.api.config import EngineConfig
from engine.api.tools import CallFormName, ToolDecision

if TYPE_CHECKING:
    from agents.guardrails.guardrails import Guardrails
    from agents.service.run_service import RunService
    from app.server.process.server import DrainingServer
    from app.server.responses.store import ResponseStore
    from app.server.retrieval.service import RetrievalService
    from app.settings.settings import Settings
    from engine.retrieval.parsing.image_reader import ImageReader
    from engine.runtime.engine import AsyncPravahaEngine
    from engine.runtime.served_models import ServedModels

MIB = 1024**2


def run_server(
    models: "EngineConfig | ServedModels",
    *,
    host: str = "127.0.0.1",
    port: int = 8000,
    api_key: str | None = None,
    allowed_hosts: Sequence[str] = (),
    cors_origins: Sequence[str] = (),
    strict_fields: bool = False,
    tool_call_form: CallFormName = "auto",
    tool_decision: ToolDecision = "auto",
    max_body_bytes: int = MAX_BODY_BYTES,
    max_upload_bytes: int = MAX_UPLOAD_BYTES,
    drain_seconds: float = DRAIN_S,
    settings: "Settings | None" = None,
) -> int:
    """Serve models until SIGTERM or Ctrl+C; the exit status.

    The socket listens before a model is loaded: `/health` answers at once, and `/ready` answers 503
    until one is loaded.

    Args:
        models: the models, which were not started, or the only one and how to run it.
        host: address to bind; any address but loopback needs `api_key`.
        port: TCP port; 0 takes a free one and prints it.
        api_key: the key clients must send, or None for none.
        allowed_hosts: further `Host` names to answer to on loopback, for a local proxy.
        cors_origins: origins of the web pages that may read answers; `*` is any page and needs `api_key`.
        strict_fields: refuse unknown request fields.
        tool_call_form, tool_decision: as in `ServerConfig`.
        max_body_bytes: largest request body, but for uploads.
        max_upload_bytes: largest body of an upload.
        drain_seconds: time that running requests get after the first signal.
        settings: those that agents are opened with; None serves no agents and no files, and
            reads no images.

    Raises:
        PravahaError: a public address without a key, a port in use, a model that cannot be opened, or no
            sandbox for agents that may read files.
    """
    # Imported here to keep `--help` fast.
    from app.commands.log_stderr import log_to_stderr
    from engine.runtime.engine import AsyncPravahaEngine
    from engine.runtime.served_models import ServedModels

    log_to_stderr()
    root = None if settings is None else settings.agents_root
    config = ServerConfig(
        host=host,
        port=port,
        api_key=api_key or None,
        allowed_hosts=tuple(allowed_hosts),
        cors_origins=tuple(cors_origins),
        strict_fields=strict_fields,
        tool_call_form=tool_call_form,
        tool_decision=tool_decision,
        max_body_bytes=max_body_bytes,
        max_upload_bytes=max_upload_bytes,
        drain_s=drain_seconds,
        sandbox_layers=None if settings is None or root is None else sandbox_layers(settings),
    )
    if isinstance(models, EngineConfig):
        models = ServedModels.single(AsyncPravahaEngine(models))
    if settings is None:
        return serve_engine(models, config)
    from app.runtime.agents import open_run_service
    from app.runtime.guardrails import open_guardrails, open_judge, open_moderation
    from app.server.responses.store import ResponseStore
    from app.server.retrieval.service import RetrievalService
    from engine.clients.in_process import InProcessClient
    from engine.retrieval.parsing.image_reader import ImageReader

    engine = models.primary.engine
    judge = open_judge(settings, InProcessClient(engine))
    service = open_run_service(
        settings, engine, roots=() if root is None else [root], remembers=False
    )
    retrieval = RetrievalService(settings.vector_stores, engine.embedder)
    image_reader = ImageReader()
    responses = ResponseStore(settings.responses)
    try:
        retrieval.start()
        return serve_engine(
            models,
            config,
            run_service=service,
            retrieval=retrieval,
            image_reader=image_reader,
            responses=responses,
            guardrails=open_guardrails(settings),
            moderation=open_moderation(settings, engine.embedder, judge),
        )
    finally:
        image_reader.close()
        responses.close()
        retrieval.close()
        service.close()


def sandbox_layers(settings: "Settings") -> tuple[str, ...] | None:
    """The layers around agents' commands; None if the user switched the sandbox off.

    Raises:
        SandboxUnavailable: a required layer is missing.
    """
    import asyncio

    from agents.sandbox.choice import open_sandbox
    from agents.sandbox.sandbox import SandboxUnavailable

    if settings.sandbox == "off":
        return None
    try:
        sandbox = asyncio.run(open_sandbox(settings.sandbox))
    except SandboxUnavailable as error:
        raise SandboxUnavailable(
            f"{error} Serve without --agents-root, or with --sandbox off, which asks before each command."
        ) from error
    return tuple(layer.value for layer in sandbox.active_layers)


def serve_engine(
    engine: "AsyncPravahaEngine | ServedModels",
    config: ServerConfig,
    *,
    run_service: "RunService | None" = None,
    guardrails: "Guardrails | None" = None,
    moderation: "Guardrails | None" = None,
    retrieval: "RetrievalService | None" = None,
    image_reader: "ImageReader | None" = None,
    responses: "ResponseStore | None" = None,
) -> int:
    """Start an engine or several, serve them, shut them down; the exit status. Arguments as `create_app`.

    Raises:
        PravahaError: the socket cannot be opened.
    """
    from app.server.app import create_app
    from app.server.process.answered_file import answered_file, restore_answered, save_answered
    from app.server.process.server import DrainingServer, base_url, listen
    from engine.runtime.served_models import ServedModels

    models = engine if isinstance(engine, ServedModels) else ServedModels.single(engine)
    listener = listen(config)
    app = create_app(
        models,
        config,
        run_service=run_service,
        guardrails=guardrails,
        moderation=moderation,
        retrieval=retrieval,
        image_reader=image_reader,
        responses=responses,
    )
    server = DrainingServer(app)
    turns, turns_path = app.state.server.answered_turns, answered_file(models.primary.engine.config)
    if turns_path is not None:
        restore_answered(turns, turns_path)
    announcer = _Announcer(models, server)
    with server.capture_signals():  # before loading, so that a signal drains during loading too
        try:
            models.start()
            url = base_url(listener)
            print(f"Pravāha listens on {url}/v1 {_access_note(config)}")
            print(f"Its screen, in any number of terminals: pravaha --attach {url}")
            print(f"Its tools for MCP hosts: {url}/mcp", flush=True)
            announcer.start()
            server.run(sockets=[listener])
        finally:
            listener.close()
            models.close()
            if turns_path is not None:
                save_answered(turns, turns_path)
    return 1 if announcer.failed else 0


class _Announcer(threading.Thread):
    """Prints each model once it is loaded, and settles memory; stops the server if none can be loaded."""

    def __init__(self, models: "ServedModels", server: "DrainingServer") -> None:
        super().__init__(name="pravaha-announce", daemon=True)
        self._models = models
        self._server = server
        self.failed = False

    def run(self) -> None:
        """Wait until the models of the start are loaded or the engines are shut down."""
        errors, started = [], self._models.started()
        for model in started:
            try:
                self._models.wait_started(model)
            except Exception as error:
                errors.append(error)
                if not self._server.should_exit:
                    print(f"pravaha: {error}", file=sys.stderr, flush=True)
                continue
            print(describe_model(model.engine), flush=True)
        if len(errors) == len(started):
            if not self._server.should_exit:
                self.failed = True
                self._server.should_exit = True
            return
        # A full collection of what was allocated so far stops all streams for 10 to 40 ms, and large
        # request bodies trigger them.
        gc.freeze()


def describe_model(engine: "AsyncPravahaEngine") -> str:
    """The loaded model and the size of its KV pool, in one line; below it, notes about its files."""
    snapshot = engine.snapshot()
    info, blocks = snapshot.model, snapshot.blocks
    if info is None:
        return "No model is loaded."
    drafts = "" if info.draft_model is None else f"; drafts by {info.draft_model}"
    kept, states = snapshot.states, ""
    if kept.total:
        states = f", {kept.total} recurrent states of {kept.slot_bytes / MIB:.1f} MiB"
    if (windows := snapshot.windows).total:
        states = f", {windows.total} window blocks of {windows.block_bytes / MIB:.1f} MiB"
    pool = (blocks.total * blocks.block_bytes + windows.total * windows.block_bytes) / MIB
    active = info.active_parameters
    used = "" if active is None else f" of which {active / 1e6:.0f}M are active"
    line = (
        f"Model {info.name} ({info.architecture}, {info.parameters / 1e6:.0f}M{used}, "
        f"{info.weight_format}) on {info.executor}/{info.dispatch}, {info.threads} threads; "
        f"context {info.context_length} tokens; KV pool {pool:.0f} MiB, {blocks.total} blocks of "
        f"{blocks.block_size} tokens, {info.kv_dtype}{states}{drafts}."
    )
    return "\n".join([line, *(f"Note: {note}" for note in engine.tokenizer.notes)])


def _access_note(config: ServerConfig) -> str:
    if config.api_key:
        return "(callers need the API key)"
    return "(loopback only, because there is no API key)"
