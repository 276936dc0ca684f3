"""Clients of every streaming face that disconnect at random points, and what a server holds afterwards."""

import asyncio
import gc
import json
import random
import sqlite3
import threading
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from engine.runtime.served_models import ServedModels
from tests.server.byte_engine import wait_until
from tests.server.live import Live
from tests.server.mcp_requests import ACCEPT, LEGACY, OPENING, message, modern

LONGEST_STAY_S = 0.4
POOLS = ("uvloop_", "asyncio_", "AnyIO", "pravaha-grammar")
"""Names of threads of pools, which grow to their maximum, and no further."""
TOKENS = 60
ALLOWED = (b"", b"200", b"202", b"204", b"404")
"""Statuses; 404 is for what has ended before its client asked for it again."""
CALL = {"type": "function", "function": {"name": "look", "parameters": {"type": "object"}}}
CHAT = {"model": "toy", "stream": True, "ignore_eos": True, "max_tokens": TOKENS}
CALLING = {"model": "toy", "stream": True, "max_tokens": 4 * TOKENS}
"""A grammar decides where calls end."""


def user(draw: random.Random) -> list[dict[str, str]]:
    return [{"role": "user", "content": "y" * draw.randint(1, 90)}]


class LeavingClient:
    """One client with random patience.

    Attributes:
        draw: its random generator; all that it does follows from it.
        name: unlike that of any other client.
    """

    def __init__(
        self, server: Live, draw: random.Random, name: str, *, allowed: tuple[bytes, ...] = ALLOWED
    ) -> None:
        self._address = server.address
        self._allowed = allowed
        self.draw = draw
        self.name = name

    async def ask(
        self,
        path: str,
        fields: dict[str, Any] | None = None,
        *,
        method: str = "POST",
        headers: dict[str, str] | None = None,
        stays: bool = False,
    ) -> bytes:
        """What has arrived before the client left; with `stays` the whole answer.

        A leaving client may leave before it has sent the whole request, may not read, and may reset the
        connection instead of closing it.
        """
        draw = self.draw
        data = b"" if fields is None else json.dumps(fields).encode()
        given = {"host": "localhost", "connection": "close", "content-type": "application/json"}
        given |= {"content-length": str(len(data)), **(headers or {})}
        head = f"{method} {path} HTTP/1.1\r\n" + "".join(f"{k}: {v}\r\n" for k, v in given.items())
        request = head.encode() + b"\r\n" + data
        if not stays and draw.random() < 0.05:
            request = request[: draw.randrange(len(request))]
        reader, writer = await asyncio.open_connection(*self._address)
        received = bytearray()
        try:
            writer.write(request)
            if stays:
                return await reader.read(-1)
            patience = draw.random() * LONGEST_STAY_S
            if draw.random() < 0.2:
                await asyncio.sleep(patience)  # reads nothing
            else:
                async with asyncio.timeout(patience):
                    while part := await reader.read(4096):
                        received += part
        except (TimeoutError, ConnectionError):
            pass
        finally:
            if draw.random() < 0.5:
                writer.transport.abort()
            else:
                writer.close()
        status = bytes(received[9:12])
        assert status in self._allowed, received.decode()
        return bytes(received)

    async def json(self, *args: Any, **kwargs: Any) -> Any:
        """The object in a whole answer."""
        answer = await self.ask(*args, stays=True, **kwargs)
        return json.loads(answer.partition(b"\r\n\r\n")[2])


# What clients of each face do. Answers are never read to their end, unless their end comes first.


async def chats(client: LeavingClient) -> None:
    n = client.draw.choice([1, 1, 2])
    await client.ask("/v1/chat/completions", CHAT | {"messages": user(client.draw), "n": n})


async def chats_with_tools(client: LeavingClient) -> None:
    choice = client.draw.choice(["auto", "required", "none"])
    fields = CALLING | {"messages": user(client.draw), "tools": [CALL], "tool_choice": choice}
    await client.ask("/v1/chat/completions", fields)


async def loops(client: LeavingClient) -> None:
    """The tool `nap` takes a while; `press` waits for an approval that nobody gives."""
    name = client.draw.choice(["nap", "press"])
    fields: dict[str, Any] = CALLING | {"messages": user(client.draw)}
    fields["tool_choice"] = {"type": "function", "function": {"name": name}}
    await client.ask(
        "/v1/chat/completions", fields | {"tool_loop": {"tools": [name], "mode": "ask"}}
    )


async def whole_chats(client: LeavingClient) -> None:
    fields = CHAT | {"messages": user(client.draw), "stream": False}
    await client.ask("/v1/chat/completions", fields)


async def resumed_chats(client: LeavingClient) -> None:
    fields = CHAT | {"messages": user(client.draw), "resumable": True, "request_id": client.name}
    await client.ask("/v1/chat/completions", fields)
    for _ in range(client.draw.randint(0, 2)):
        await client.ask(f"/streams/{client.name}", method="GET")
    if client.draw.random() < 0.3:
        await client.ask(f"/streams/{client.name}", method="DELETE")


async def completions(client: LeavingClient) -> None:
    fields = CHAT | {"prompt": "x" * client.draw.randint(1, 90), "n": client.draw.choice([1, 3])}
    await client.ask("/v1/completions", fields)


async def forks(client: LeavingClient) -> None:
    fields = CHAT | {"prompt": "x" * client.draw.randint(1, 90), "request_id": client.name}
    child = {"parent": client.name, "stream": True, "n": client.draw.choice([1, 2])}
    async with asyncio.TaskGroup() as group:
        group.create_task(client.ask("/v1/completions", fields))
        await asyncio.sleep(client.draw.random() * LONGEST_STAY_S / 2)
        path = client.draw.choice(["/fork", "/v1/branch"])
        group.create_task(client.ask(path, child))


async def responses(client: LeavingClient) -> None:
    fields = {"model": "toy", "input": "z" * client.draw.randint(1, 90), "stream": True}
    await client.ask("/v1/responses", fields | {"max_output_tokens": TOKENS})


async def background_responses(client: LeavingClient) -> None:
    """They go on without their clients, until they end or are cancelled."""
    fields = {"model": "toy", "input": "z", "background": True, "max_output_tokens": TOKENS}
    if client.draw.random() < 0.5:
        await client.ask("/v1/responses", fields | {"stream": True})
        return
    path = f"/v1/responses/{(await client.json('/v1/responses', fields))['id']}"
    for _ in range(client.draw.randint(1, 3)):
        after = client.draw.choice(["", "&starting_after=0"])
        await client.ask(f"{path}?stream=true{after}", method="GET")
    match client.draw.randrange(3):
        case 0:
            await client.ask(f"{path}/cancel", {})
        case 1:
            await client.ask(path, method="DELETE")


async def messages(client: LeavingClient) -> None:
    fields: dict[str, Any] = {"model": "toy", "messages": user(client.draw), "stream": True}
    if client.draw.random() < 0.5:
        fields["tools"] = [{"name": "look", "input_schema": {"type": "object"}}]
    await client.ask("/v1/messages?beta=true", fields | {"max_tokens": TOKENS})


async def ollama_chats(client: LeavingClient) -> None:
    fields: dict[str, Any] = {"model": "toy", "messages": user(client.draw)}
    if client.draw.random() < 0.5:
        fields["tools"] = [CALL]
    await client.ask("/api/chat", fields | {"options": {"num_predict": TOKENS}})


async def ollama_prompts(client: LeavingClient) -> None:
    fields = {"model": "toy", "prompt": "p" * client.draw.randint(1, 90)}
    fields |= {"raw": client.draw.random() < 0.5, "options": {"num_predict": TOKENS}}
    await client.ask("/api/generate", fields)


async def llamacpp_completions(client: LeavingClient) -> None:
    fields = {"prompt": "q" * client.draw.randint(1, 90), "n_predict": TOKENS, "ignore_eos": True}
    await client.ask("/completion", fields | {"stream": True})


async def agents(client: LeavingClient) -> None:
    """A run goes on without those who follow it, until it ends or is cancelled."""
    run = await client.json("/v1/agents/runs", {"kind": "agent", "name": "napper", "task": "t"})
    path = f"/v1/agents/runs/{run['id']}"
    for _ in range(client.draw.randint(1, 2)):
        await client.ask(f"{path}/events?stream=true", method="GET")
    if client.draw.random() < 0.5:
        await client.ask(f"{path}/cancel", {})


async def mcp_calls(client: LeavingClient) -> None:
    given = {"message": "tell me", "max_tokens": TOKENS}
    params = {"name": "chat", "arguments": given, "_meta": {"progressToken": "p"}}
    body, headers = modern("tools/call", params, progressToken="p")
    await client.ask("/mcp", body, headers=headers)


async def mcp_sessions(client: LeavingClient) -> None:
    """Half of the sessions are ended, the others are left to their time limit."""
    opened = await client.ask(
        "/mcp", message("initialize", OPENING), headers=dict(ACCEPT), stays=True
    )
    head = opened.partition(b"\r\n\r\n")[0].decode().lower()
    (session,) = [
        line.partition(": ")[2] for line in head.splitlines() if line.startswith("mcp-session-id")
    ]
    headers = {**ACCEPT, "mcp-session-id": session, "mcp-protocol-version": LEGACY}
    notice = {"jsonrpc": "2.0", "method": "notifications/initialized"}
    await client.ask("/mcp", notice, headers=headers, stays=True)
    call = {"name": "complete", "arguments": {"prompt": "a", "max_tokens": TOKENS}}
    await client.ask("/mcp", message("tools/call", call), headers=headers)
    if client.draw.random() < 0.5:
        await client.ask("/mcp", method="DELETE", headers=headers, stays=True)


FACES: tuple[Callable[[LeavingClient], Awaitable[None]], ...] = (
    chats,
    chats_with_tools,
    loops,
    whole_chats,
    resumed_chats,
    completions,
    forks,
    responses,
    background_responses,
    messages,
    ollama_chats,
    ollama_prompts,
    llamacpp_completions,
    agents,
    mcp_calls,
    mcp_sessions,
)


async def leave_all(server: Live, count: int, draw: random.Random, *, at_once: int = 24) -> None:
    """Let `count` clients come and leave, those of all faces in turn."""
    gate = asyncio.Semaphore(at_once)
    wave = draw.randrange(1 << 30)

    async def one(number: int, own: random.Random) -> None:
        async with gate:
            client = LeavingClient(server, own, f"client-{wave}-{number}")
            await FACES[number % len(FACES)](client)

    async with asyncio.TaskGroup() as group:
        for number in range(count):
            group.create_task(one(number, random.Random(draw.random())))


def in_use(server: Live) -> dict[str, int]:
    """What requests hold in the server, but for what they do not: that is left out."""
    context = server.context
    found = in_use_by_models(context.models) | {
        "counted by the drain": context.drain.active,
        "running turns": len(context.running_turns),
        "kept streams": len(context.kept_streams._streams),
        "responses in the background": sum(
            not one.ended for one in context.running_responses._responses.values()
        ),
        "runs of agents": len(context.holding),
        "sessions of MCP": mcp_session_count(server),
    }
    if context.agents is not None:
        found["approvals"] = len(context.agents.approvals())
    return {name: count for name, count in found.items() if count}


def in_use_by_models(models: ServedModels) -> dict[str, int]:
    found = dict[str, int]()
    for model in models.all():
        snapshot = model.engine.snapshot()
        found[f"running on {model.name}"] = snapshot.running
        found[f"waiting for {model.name}"] = snapshot.waiting
        found[f"active blocks of {model.name}"] = snapshot.blocks.active
        found[f"leases of {model.name}"] = len(model.leases)
    return found


def mcp_session_count(server: Live) -> int:
    manager = server.server.config.app.state.mcp._manager
    return 0 if manager is None else len(manager._server_instances)


def held(server: Live) -> dict[str, int]:
    """What the process holds: there may be some of each, but not more after more clients."""
    gc.collect()
    found = {
        "threads": sum(not one.name.startswith(POOLS) for one in threading.enumerate()),
        "open files": len(list(Path("/proc/self/fd").iterdir())),
        "connections of SQLite": sum(
            isinstance(one, sqlite3.Connection) for one in gc.get_objects()
        ),
    }
    loop = server.server._loop
    assert loop is not None
    tasks = asyncio.run_coroutine_threadsafe(count_tasks(), loop)
    return found | {"tasks": tasks.result(30)}


async def count_tasks() -> int:
    return len(asyncio.all_tasks())


def wait_for_nothing_in_use(server: Live) -> None:
    try:
        wait_until(lambda: not in_use(server), seconds=60)
    except AssertionError:
        raise AssertionError(f"still in use: {in_use(server)}") from None
