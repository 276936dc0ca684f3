"""An editor: the client of the `acp` package over real pipes, with the server over a scripted engine."""

import asyncio
import itertools
import json
import os
from concurrent.futures import Future
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from acp import connect_to_agent, text_block
from acp.exceptions import RequestError
from acp.schema import (
    AllowedOutcome,
    ClientCapabilities,
    DeniedOutcome,
    FileSystemCapabilities,
    ReadTextFileResponse,
    RequestPermissionResponse,
    WriteTextFileResponse,
)

from agents import Cluster
from agents.mcp.servers import McpServers
from agents.plugins.registry import load_registry
from agents.runs.approvals import Approvals
from agents.service.local_service import LocalRunService
from app.acp.host import DEFAULT_TOOLS, Host
from app.acp.server import AcpServer
from app.acp.transport import LineTransport
from engine.clients.several_models_client import SeveralModelsClient, as_client
from engine.conversations.session import TreeSession
from engine.conversations.storage.store import Store
from engine.conversations.ulid import new_ulid
from tests.fakes.fake_client import FakeClient

PATIENCE_S = 60


def call(name, **arguments):
    """The text with which the model calls a tool."""
    return f"<tool_call>{json.dumps({'name': name, 'arguments': arguments})}</tool_call>"


class EditorClient:
    """What an editor does.

    Attributes:
        updates: the updates by session, in their order.
        asked: what was asked about.
        answers: the options to answer with, one a question; "cancelled" and errors too. `once` after them.
        buffers: unsaved texts by path.
        written: what was written through it, by path.
        holding: while set, a question waits.
    """

    def __init__(self):
        self.updates = {}
        self.asked = []
        self.answers = []
        self.buffers = {}
        self.written = {}
        self.holding = asyncio.Event()
        self.holding.set()
        self.changed = asyncio.Event()

    async def session_update(self, session_id, update, **kwargs):
        self.updates.setdefault(session_id, []).append(update)
        self.changed.set()

    async def request_permission(self, session_id, tool_call, options, **kwargs):
        self.asked.append((session_id, tool_call, options))
        self.changed.set()
        await self.holding.wait()
        answer = self.answers.pop(0) if self.answers else "once"
        if isinstance(answer, Exception):
            raise answer
        if answer == "cancelled":
            return RequestPermissionResponse(outcome=DeniedOutcome(outcome="cancelled"))
        return RequestPermissionResponse(
            outcome=AllowedOutcome(outcome="selected", option_id=answer)
        )

    async def read_text_file(self, session_id, path, line=None, limit=None, **kwargs):
        if path not in self.buffers:
            raise RequestError.resource_not_found(path)
        return ReadTextFileResponse(content=self.buffers[path])

    async def write_text_file(self, session_id, path, content, **kwargs):
        self.written[path] = content
        await asyncio.to_thread(Path(path).write_text, content)
        return WriteTextFileResponse()

    def on_connect(self, conn):
        pass

    # For tests.

    def of(self, session, kind):
        return [one for one in self.updates.get(session, ()) if one.session_update == kind]

    def text(self, session, kind="agent_message_chunk"):
        return "".join(one.content.text for one in self.of(session, kind))

    def states(self, session):
        """The last status and the last content of each call, by its first title."""
        found = {}
        for one in self.updates.get(session, ()):
            if one.session_update == "tool_call":
                found[one.tool_call_id] = [one.title, one.status, one.content]
            elif one.session_update == "tool_call_update":
                known = found[one.tool_call_id]
                known[1] = one.status or known[1]
                known[2] = one.content or known[2]
        return {title: (status, content) for title, status, content in found.values()}

    async def until(self, condition, what="the condition"):
        async with asyncio.timeout(PATIENCE_S):
            while not condition():
                self.changed.clear()
                if condition():
                    return
                waiting = asyncio.create_task(self.changed.wait())
                await asyncio.wait({waiting}, timeout=0.05)
                waiting.cancel()


class FakeOpening:
    """An `OpeningHost` whose host is given by the test."""

    def __init__(self, host=None):
        self.opened = Future()
        self.status = "Fetching the model 10 %"
        if host is not None:
            self.opened.set_result(host)


@dataclass
class Running:
    """A server that runs, and the editor at its other end."""

    folder: object
    engine: FakeClient
    client: EditorClient
    agent: object
    host: Host
    opening: FakeOpening
    server: AcpServer
    serving: asyncio.Task
    raw: tuple = field(repr=False, default=())

    async def new(self, cwd=None):
        made = await self.agent.new_session(cwd=str(cwd or self.folder), mcp_servers=[])
        return made.session_id

    async def prompt(self, session, text):
        blocks = text if isinstance(text, list) else [text_block(text)]
        async with asyncio.timeout(PATIENCE_S):
            return await self.agent.prompt(session_id=session, prompt=blocks)

    def prompt_text(self, at=-1):
        """What the model was given."""
        return self.engine.detokenize(self.engine.requests[at].prompt_ids)


@contextmanager
def scripted_host(data, engine, *, registry=None, tools=DEFAULT_TOOLS, mode="auto", models=None):
    """A host over a fake engine and a real store, with the real tools unless others are given."""
    data.mkdir(exist_ok=True)

    def cluster():
        return Cluster(
            registry=load_registry() if registry is None else registry,
            approvals=Approvals(),
            mode=mode,
        )

    @contextmanager
    def conversations(chat_tools, first):
        store = Store.open(data / "conversations.db")
        ids = itertools.chain([first], (new_ulid() for _ in itertools.repeat(None)))
        session = TreeSession(
            store,
            engine,
            new_id=ids.__next__,
            resume=False,
            stop_repetition=False,
            tools=chat_tools,
            models=models,
        )
        try:
            yield session
        finally:
            session.close()
            store.close()

    service = LocalRunService(cluster)
    try:
        yield Host(
            engine,
            service,
            conversations,
            data / "acp-sessions.json",
            tools,
            models,
            mcp_with=lambda further: McpServers(further, data / "mcp-approved.json"),
        )
    finally:
        service.close()


async def _step(engines):
    """The engines, which work a step each millisecond."""
    while True:
        await asyncio.sleep(0.001)
        for engine in engines:
            engine.step()


@asynccontextmanager
async def pipes():
    """A pipe to the server and one from it: the server's two ends, and the client's streams."""
    loop = asyncio.get_running_loop()
    to_server, to_client = os.pipe(), os.pipe()
    reader = asyncio.StreamReader(limit=2**26)
    await loop.connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(to_client[0], "rb", 0)
    )
    transport, protocol = await loop.connect_write_pipe(
        asyncio.streams.FlowControlMixin, os.fdopen(to_server[1], "wb", 0)
    )
    writer = asyncio.StreamWriter(transport, protocol, reader, loop)
    try:
        yield to_server[0], to_client[1], reader, writer
    finally:
        writer.close()
        for one in (to_server[0], to_client[1]):
            os.close(one)


@asynccontextmanager
async def open_editor(
    tmp_path,
    *answers,
    engine=None,
    opened=True,
    initialized=True,
    reads=False,
    writes=False,
    **options,
):
    """An editor, with a server whose model gives these answers."""
    folder = tmp_path / "project"
    folder.mkdir(exist_ok=True)
    models = options.get("models")
    if models is not None:
        engine = as_client(SeveralModelsClient(models))
    engine = FakeClient(*answers) if engine is None else engine
    with scripted_host(tmp_path / "data", engine, **options) as host:
        async with pipes() as (source, sink, reader, writer):
            opening = FakeOpening(host if opened else None)
            server = AcpServer(opening)
            serving = asyncio.create_task(server.serve(LineTransport(source, sink)))
            stepping = asyncio.create_task(
                _step([engine] if models is None else models.clients.values())
            )
            client = EditorClient()
            agent = connect_to_agent(client, writer, reader, use_unstable_protocol=True)
            running = Running(folder, engine, client, agent, host, opening, server, serving)
            try:
                if initialized:
                    files = FileSystemCapabilities(read_text_file=reads, write_text_file=writes)
                    await agent.initialize(
                        protocol_version=1, client_capabilities=ClientCapabilities(fs=files)
                    )
                yield running
            finally:
                client.holding.set()
                writer.close()
                async with asyncio.timeout(PATIENCE_S):
                    await serving
                stepping.cancel()
                with suppress(ConnectionError):
                    await agent.close()
