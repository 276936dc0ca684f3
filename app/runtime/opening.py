"""Opens model, engine, client, store and session from settings.

The context managers close what they opened in reverse order, also after an exception.
"""

import os
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, cast

from app.runtime.machine_limits import check_machine
from app.settings.options import DEMO_MODEL
from app.settings.settings import Settings
from engine.api.errors import EngineUnavailable, ModelError, ModelNotFound, PravahaError
from engine.api.snapshot import EngineSnapshot, EngineState
from engine.models.progress import ProgressCallback, ignore_progress

if TYPE_CHECKING:
    from app.runtime.source_library import SourceLibrary
    from engine.api.config import EmbeddingPrecision, EngineConfig
    from engine.clients.engine_client import EngineClient
    from engine.clients.model_set import ModelSet
    from engine.clients.several_models_client import SeveralModelsClient
    from engine.conversations.answering import Answered
    from engine.conversations.chat_tools import ToolSource
    from engine.conversations.passage_source import PassageSource
    from engine.conversations.session import TreeSession
    from engine.embedding.embedder import Embedder
    from engine.models.record import InstalledModel
    from engine.runtime.engine import AsyncPravahaEngine
    from engine.runtime.served_models import ServedModels

_POLL_S = 0.05
_PROBE_S = 2.0
"""How long a server may take to name its models before the screen opens as if it had one."""


def find_model(
    settings: Settings, progress: ProgressCallback = ignore_progress
) -> "InstalledModel":
    """The model to load; the demo model is fetched if it is selected and not installed.

    Raises:
        ModelError: it is not installed, or could not be fetched.
    """
    return _find(settings, settings.model, progress)


def find_draft_model(
    settings: Settings, progress: ProgressCallback = ignore_progress
) -> Path | None:
    """The file of the draft model, fetched like that of `find_model`; None if the settings name none.

    Raises:
        ModelError: it is not installed, or could not be fetched.
    """
    if settings.draft_model is None:
        return None
    return _find(settings, settings.draft_model, progress).path


def _find(settings: Settings, name: str, progress: ProgressCallback) -> "InstalledModel":
    from engine.models.store import ModelStore

    store = ModelStore(settings.models)
    try:
        return store.get(name)
    except ModelNotFound:
        if name != DEMO_MODEL:
            raise
        return store.add(DEMO_MODEL, progress=progress)


def engine_config(
    settings: Settings, progress: ProgressCallback = ignore_progress, *, niceness: int = 0
) -> "EngineConfig":
    """The engine's configuration.

    Args:
        settings: the settings.
        progress: called while a model is fetched.
        niceness: as `EngineConfig.niceness`.

    Raises:
        ModelError: the model is not installed, or could not be fetched.
    """
    check_machine(settings)
    model = find_model(settings, progress)
    draft = find_draft_model(settings, progress)
    return _config_of(settings, model.path, model.name, draft, niceness)


def _config_of(
    settings: Settings, path: Path, name: str, draft: Path | None, niceness: int
) -> "EngineConfig":
    # In the kernels this variable takes precedence over the configured level. The settings have
    # already read it, with a lower precedence than flags.
    os.environ.pop("PRAVAHA_DISPATCH", None)
    return replace(settings.engine_config(path, name, draft), niceness=niceness)


def embedder(settings: Settings, *, precision: "EmbeddingPrecision" = "f32") -> "Embedder":
    """The embedding model of the user's store, which is opened on first use.

    Args:
        settings: the settings.
        precision: as in `Embedder`; int8 for indexing documents.
    """
    from engine.embedding.embedder import Embedder, installed_encoder

    return Embedder(
        lambda: installed_encoder(settings.models),
        precision=precision,
        threads=settings.threads,
        dispatch=settings.dispatch,
    )


@contextmanager
def open_sources(
    settings: Settings, engine: "AsyncPravahaEngine | None"
) -> "Iterator[SourceLibrary]":
    """The user's collections of documents; closed at the end.

    Args:
        settings: the settings.
        engine: its embedding model embeds questions; None, as for a server's engine, opens one here.
    """
    from app.runtime.source_library import SourceLibrary
    from engine.models.demo import MINILM
    from engine.models.store import ModelStore

    def install(report: Callable[[int, int], None]) -> None:
        ModelStore(settings.models).add(
            MINILM.name, progress=lambda now: report(now.done, now.total)
        )

    with ExitStack() as stack:
        indexer = stack.enter_context(closing(embedder(settings, precision="int8")))
        encoder = (
            stack.enter_context(closing(embedder(settings))) if engine is None else engine.embedder
        )
        library = SourceLibrary(
            settings.retrieval,
            encoder,
            indexer,
            install=install,
            min_evidence=settings.min_evidence,
        )
        stack.callback(library.close)
        yield library


@dataclass(frozen=True, slots=True)
class OpenClient:
    """A client and the functions that depend on its transport.

    Attributes:
        client: in-process or over HTTP.
        bos: returns the id that plain completions begin with, or None.
        start: starts loading the model, before which the engine takes no requests. Idempotent.
        engine: the engine in this process, that of the first one of several models; None over HTTP.
        models: several models, between which branches may choose; None if there is one engine.
        served: those of them that run in this process.
    """

    client: "EngineClient"
    bos: Callable[[], int | None]
    start: Callable[[], None]
    engine: "AsyncPravahaEngine | None" = None
    models: "ModelSet | None" = None
    served: "ServedModels | None" = None


@contextmanager
def open_screen_client(
    settings: Settings, progress: ProgressCallback = ignore_progress, *, niceness: int = 0
) -> Iterator[OpenClient]:
    """As `open_client` for a front end that can use several models side by side, if there are several.

    Those are what `--model` names when it is given more than once, or with `--max-models` every installed
    one; with `--attach` those of the server, if it answers and has more than one.

    Raises:
        ConfigurationError, ModelError: one of several models cannot be used; see `open_served_models`.
    """
    with ExitStack() as stack:
        several = stack.enter_context(_open_several(settings, progress, niceness))
        if several is not None:
            yield several
        else:
            yield stack.enter_context(
                open_client(settings, progress, niceness=niceness, model_required=False)
            )


@contextmanager
def _open_several(
    settings: Settings, progress: ProgressCallback, niceness: int
) -> "Iterator[OpenClient | None]":
    from engine.clients.several_models_client import SeveralModelsClient, as_client

    models: ModelSet
    if settings.attach is not None:
        from engine.clients.remote_model_set import RemoteModelSet

        key = settings.plain_api_key
        names = _served_names(settings.attach, key)
        if len(names) < 2:
            yield None
            return
        models, served = RemoteModelSet(settings.attach, api_key=key, names=names), None
    elif settings.further_models or settings.max_models is not None:
        from app.runtime.served import open_served_models
        from engine.clients.served_model_set import ServedModelSet

        served = open_served_models(settings, progress, niceness=niceness, any_installed=True)
        models = ServedModelSet(served)
    else:
        yield None
        return
    client = SeveralModelsClient(models)
    started = False

    def start() -> None:
        nonlocal started
        if served is not None and not started:
            started = True
            served.start()

    engine = None if served is None else served.primary.engine
    try:
        yield OpenClient(
            as_client(client), client.bos_id, start, engine=engine, models=models, served=served
        )
    finally:
        client.close()


def _served_names(url: str, key: str | None) -> list[str]:
    """The models of a server; none if it does not answer now."""
    from engine.clients.http_client import HttpClient

    client = HttpClient(url, api_key=key)
    try:
        return client.served_models(wait_s=_PROBE_S)
    except PravahaError:
        return []
    finally:
        client.close()


@contextmanager
def open_client(
    settings: Settings,
    progress: ProgressCallback = ignore_progress,
    *,
    niceness: int = 0,
    model_required: bool = True,
) -> Iterator[OpenClient]:
    """An engine in this process, or the server that `attach` names; closed at the end.

    Args:
        settings: the settings.
        progress: called while a model is fetched.
        niceness: as `EngineConfig.niceness`, for an engine in this process.
        model_required: whether a model that is not installed is an error; otherwise the engine starts
            without one, and its `last_error` says why.

    Raises:
        ModelError: the model is required, and not installed or could not be fetched.
    """
    if settings.attach is not None:
        from engine.clients.http_client import HttpClient

        remote = HttpClient(settings.attach, api_key=settings.plain_api_key)
        try:
            yield OpenClient(remote, bos=remote.bos_id, start=lambda: None)
        finally:
            remote.close()
        return
    from engine.clients.in_process import InProcessClient
    from engine.models.store import ModelStore
    from engine.runtime.engine import AsyncPravahaEngine

    without_model: str | None = None
    try:
        config = engine_config(settings, progress, niceness=niceness)
    except ModelError as error:
        if model_required:
            raise
        without_model = str(error)
        draft = None if settings.draft_model is None else Path(settings.draft_model)
        with suppress(ModelError):  # not installed: a model that is loaded later is refused with it
            draft = find_draft_model(settings)
        config = _config_of(settings, Path(settings.model), settings.model, draft, niceness)
    engine = AsyncPravahaEngine(
        config, embedder=embedder(settings), models=ModelStore(settings.models)
    )
    client = InProcessClient(engine)

    def start() -> None:
        if not engine.started:
            engine.start(without_model=without_model)

    try:
        yield OpenClient(client, bos=client.bos_id, start=start, engine=engine)
    finally:
        client.close()


@contextmanager
def open_session(
    settings: Settings,
    client: "EngineClient",
    *,
    resume: bool,
    new_id: Callable[[], str] | None = None,
    background: bool = False,
    passages: "PassageSource | None" = None,
    tools: "ToolSource | None" = None,
    models: "ModelSet | None" = None,
    on_answered: "Answered | None" = None,
) -> "Iterator[TreeSession]":
    """The user's conversations with `client` as their engine; saved and closed at the end.

    Args:
        settings: the settings.
        client: the engine.
        resume: open the last conversation instead of an empty one.
        new_id: returns increasing ids; None takes ULIDs.
        background: as `TreeSession`.
        passages: as `TreeSession`.
        tools: as `TreeSession`.
        models: as `TreeSession`; `client` then follows the model of the open branch.
        on_answered: as `TreeSession`.

    Raises:
        StoreError: the conversation database can't be used.
    """
    from app.runtime.guardrails import open_conversation_guard
    from engine.conversations.session import TreeSession
    from engine.conversations.storage.store import Store
    from engine.conversations.ulid import new_ulid

    with ExitStack() as stack:
        store = Store.open(settings.conversations)
        stack.callback(store.close)
        session = TreeSession(
            store,
            client,
            sampling=settings.sampling(),
            system_prompt=settings.system,
            system_required=settings.is_set("system"),
            new_id=new_id or new_ulid,
            resume=resume,
            stop_repetition=settings.stop_repetition,
            background=background,
            guard=open_conversation_guard(settings),
            passages=passages,
            tools=tools,
            models=models,
            on_answered=on_answered,
        )
        if models is not None:
            cast("SeveralModelsClient", client).follow(lambda: session.model.current)
        stack.callback(session.close)
        yield session


def wait_loaded(client: "EngineClient") -> EngineSnapshot:
    """Wait until the engine has loaded its model.

    Raises:
        EngineUnavailable: loading failed, no model is loaded, or the server does not answer.
    """
    while True:
        snapshot = client.snapshot()
        if snapshot.state is EngineState.LOADING or snapshot.changes_model:
            time.sleep(_POLL_S)
            continue
        if snapshot.state is EngineState.UNLOADED:
            raise EngineUnavailable(snapshot.last_error or "No model is loaded.")
        if snapshot.state in (EngineState.FAILED, EngineState.STOPPED):
            raise EngineUnavailable(snapshot.last_error or "The engine has stopped.")
        return snapshot
