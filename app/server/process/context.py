"""State that all routes share: the engine, the settings, the drain and the server's counters."""

import asyncio
import time
from dataclasses import dataclass, field
from weakref import WeakKeyDictionary

from starlette.requests import Request

from agents.guardrails.guardrails import Guardrails
from agents.service.run_service import RunService
from app.server.process.answered_turns import AnsweredTurns
from app.server.process.block_history import BlockHistory
from app.server.process.config import ServerConfig
from app.server.process.counters import ServerCounters
from app.server.process.drain import Drain
from app.server.process.kept_streams import KeptStreams
from app.server.process.running_responses import RunningResponses
from app.server.process.running_turns import RunningTurn
from app.server.process.sessions import Sessions
from app.server.responses.store import ResponseStore
from app.server.retrieval.service import RetrievalService
from engine.api.tools import OpenTools
from engine.retrieval.parsing.document_reader import DocumentReader
from engine.retrieval.parsing.image_reader import ImageReader
from engine.runtime.engine import AsyncPravahaEngine
from engine.runtime.served_models import ServedModels

MAX_UPLOADS = 16
"""Uploads at a time; each holds a file open and up to a mebibyte of memory."""

MAX_DECODING = 2
"""Requests whose images are decoded at a time; an image takes up to 120 MB meanwhile."""


@dataclass(frozen=True, slots=True)
class ServerContext:
    """One per application, at `app.state.server`.

    Attributes:
        models: the models by their names; `engine` is that of the primary one.
        agents: runs agents; None where no agents are served.
        guardrails: check messages and answers; None checks nothing.
        moderation: answers `/v1/moderations`.
        running_turns: the chat answers that are being written, by the id of the completion.
        open_tools: the tools of clients that generate the answers themselves, by their id.
        answered_turns: token ids of the conversations that were answered.
        sessions: what the prompts of conversations have cost.
        retrieval: keeps files and vector stores; None where none are served.
        documents: reads the text of files in requests.
        image_reader: reads the text of images; None reads none.
        holding: tasks that use a model for longer than a request, such as those of agents' runs.
        responses: keeps responses and conversations.
        running_responses: those in the background.
        uploads: taken by each upload of a file.
        decoding: taken while the images of a request are decoded.
    """

    models: ServedModels
    config: ServerConfig
    drain: Drain = field(default_factory=Drain)
    counters: ServerCounters = field(default_factory=ServerCounters)
    kept_streams: KeptStreams = field(init=False)
    running_turns: dict[str, RunningTurn] = field(default_factory=dict)
    open_tools: dict[str, OpenTools] = field(default_factory=dict)
    answered_turns: AnsweredTurns = field(default_factory=AnsweredTurns)
    sessions: Sessions = field(default_factory=Sessions)
    block_histories: "WeakKeyDictionary[AsyncPravahaEngine, BlockHistory]" = field(
        default_factory=WeakKeyDictionary
    )
    running_responses: RunningResponses = field(init=False)
    agents: RunService | None = None
    guardrails: Guardrails | None = None
    moderation: Guardrails = field(default_factory=Guardrails)
    retrieval: RetrievalService | None = None
    documents: DocumentReader = field(default_factory=DocumentReader)
    image_reader: ImageReader | None = None
    holding: set[asyncio.Task[None]] = field(default_factory=set)
    responses: ResponseStore = field(default_factory=ResponseStore)
    uploads: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(MAX_UPLOADS))
    decoding: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(MAX_DECODING))
    created: int = field(default_factory=lambda: int(time.time()))

    def __post_init__(self) -> None:
        kept = KeptStreams(self.drain, resume_s=self.config.resume_s)
        object.__setattr__(self, "kept_streams", kept)
        object.__setattr__(self, "running_responses", RunningResponses(self.drain))

    @property
    def engine(self) -> AsyncPravahaEngine:
        """The engine of the primary model, for what concerns no particular one."""
        return self.models.primary.engine


def server_context(request: Request) -> ServerContext:
    """The context of the application that serves this request."""
    context: ServerContext = request.app.state.server
    return context
