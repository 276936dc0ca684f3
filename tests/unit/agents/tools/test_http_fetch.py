"""`http_fetch` against a real server that only an injected rule lets through."""

import asyncio

import pytest

from agents.api.agent_spec import AgentSpec
from agents.api.budget import Budget, BudgetMeter
from agents.api.errors import InvalidTask
from agents.runs.approvals import Approvals
from agents.runs.event_log import EventLog
from agents.runs.tool_executor import ToolExecutor
from agents.tools.http_fetch import OFF, http_fetch_tool
from agents.tools.tool import MAX_OUTPUT_CHARS, Effect, Taint, ToolContext
from agents.tools.web_client import fetch_page
from tests.fakes.web_server import answer, redirect, web_server

PAGE = "<html><head><title>T</title></head><body><h1>Hello</h1><p>a <b>b</b> <script>evil()</script>c</p></body></html>"


async def fetch(server, path="/", host="docs.example", **options):
    domains = (f"docs.example:{server.port}", f"other.example:{server.port}")
    return await fetch_page(f"http://{host}:{server.port}{path}", domains, server.guard, **options)


def executor(tool, root, *, mode="auto", approvals=None):
    spec = AgentSpec("t", "audit", "", "", (tool.name,), (), "Answer", permission_mode="auto")
    return ToolExecutor(
        spec=spec,
        tools={tool.name: tool},
        context=ToolContext(root=root),
        log=EventLog("run"),
        meter=BudgetMeter(Budget(tools=5), started=0.0),
        approvals=approvals or Approvals(has_approver=False),
        mode=mode,
    )


async def test_a_page_becomes_text_that_is_untrusted(tmp_path):
    async with web_server({"/": answer(PAGE, "text/html; charset=utf-8")}) as server:
        tool = http_fetch_tool([f"docs.example:{server.port}"], guard=server.guard)
        run = executor(tool, tmp_path)
        output = await run.call("http_fetch", {"url": f"http://docs.example:{server.port}/"})
    assert output.text == f"200 http://docs.example:{server.port}/\nT\n\n# Hello\n\na b c"
    assert Taint.UNTRUSTED in output.taint
    assert Taint.UNTRUSTED in run.taint
    assert not output.failed
    assert tool.effects == {Effect.EGRESS}
    head = server.requests[0].lower()
    assert f"host: docs.example:{server.port}" in head
    assert "accept-encoding: identity" in head
    assert "authorization" not in head
    assert "cookie" not in head


async def test_it_is_off_without_domains(tmp_path):
    tool = http_fetch_tool()
    run = executor(tool, tmp_path)
    assert run.permitted() == []
    output = await run.call("http_fetch", {"url": "https://docs.python.org/"})
    assert output.failed
    assert output.text == OFF
    assert run.meter.tools_left == 5


async def test_a_call_asks_and_shows_the_url_that_is_sent(tmp_path):
    approvals = Approvals()
    async with web_server({"/a?b": answer("x")}) as server:
        tool = http_fetch_tool([f"docs.example:{server.port}"], guard=server.guard)
        run = executor(tool, tmp_path, mode="ask", approvals=approvals)
        url = f"http://DOCS.example:{server.port}/a?b#c"
        calling = asyncio.ensure_future(run.call("http_fetch", {"url": url}))
        while not approvals.pending:
            await asyncio.sleep(0)
        assert not server.requests
        assert approvals.pending[0].target == f"http://docs.example:{server.port}/a?b"
        approvals.decide(approvals.pending[0].id, "once")
        assert "x" in (await calling).text


async def test_what_is_refused_anyway_is_not_asked(tmp_path):
    tool = http_fetch_tool(["docs.example"])
    run = executor(tool, tmp_path, mode="ask", approvals=Approvals())
    output = await run.call("http_fetch", {"url": "http://169.254.169.254/latest/meta-data"})
    assert output.failed
    assert "not one of the domains" in output.text


@pytest.mark.parametrize(
    "private", ["127.0.0.2", "169.254.169.254", "::ffff:127.0.0.1", "10.0.0.5"]
)
async def test_a_name_with_a_private_address_is_not_connected_to(private):
    async with web_server({"/": answer("secret")}) as server:
        server.hosts["docs.example"] = [private]
        with pytest.raises(InvalidTask, match="public internet"):
            await fetch(server)
        assert not server.requests


async def test_a_second_answer_of_the_name_server_is_never_used():
    """Rebinding: the first answer passes the check, each further one would be private."""
    answers = [["127.0.0.1"]]
    async with web_server({"/": answer("x"), "/again": redirect("/")}) as server:

        async def resolve(host, port):
            server.resolved.append(host)
            return answers.pop(0) if answers else ["10.0.0.1"]

        server.resolve = resolve
        assert (await fetch(server)).text == "x"
        assert server.resolved == ["docs.example"]
        # A redirect makes a new connection, whose name is resolved and checked anew.
        answers.append(["127.0.0.1"])
        with pytest.raises(InvalidTask, match=r"10\.0\.0\.1"):
            await fetch(server, "/again")
        assert len(server.requests) == 2


async def test_another_address_of_the_name_is_tried():
    async with web_server({"/": answer("x")}) as server:
        server.hosts["docs.example"] = ["127.0.0.1", "127.0.0.1"]
        assert (await fetch(server)).text == "x"


@pytest.mark.parametrize(
    ("target", "message"),
    [
        ("http://127.0.0.1/", "not one of the domains"),
        ("http://169.254.169.254/latest/meta-data/", "not one of the domains"),
        ("//evil.example/", "not one of the domains"),
        ("http://2130706433/", "neither a host name"),
        ("http://user@docs.example/", "user name or password"),
        ("file:///etc/passwd", "Only http and https"),
        ("http://[::1", "redirects to no URL"),
        ("/loop", "redirects more than 5 times"),
    ],
)
async def test_a_redirect_is_checked_like_a_url(target, message):
    async with web_server({"/": redirect(target), "/loop": redirect("/loop")}) as server:
        with pytest.raises(InvalidTask, match=message):
            await fetch(server)


async def test_a_redirect_to_another_listed_host_is_followed_and_its_address_checked():
    async with web_server({"/new": answer("moved")}) as server:
        server.pages["/"] = redirect(f"http://other.example:{server.port}/new", 307)
        page = await fetch(server)
        assert (page.text, page.url) == ("moved", f"http://other.example:{server.port}/new")
        server.hosts["other.example"] = ["192.168.0.1"]
        with pytest.raises(InvalidTask, match="public internet"):
            await fetch(server)


def _endless(head: str) -> bytes:
    return b"HTTP/1.1 200 X\r\ncontent-type: text/plain\r\n\r\n" + b"x" * 200_000


@pytest.mark.parametrize(
    ("page", "message"),
    [
        (answer("x" * 200_000), "larger than 100 kB"),
        (_endless, "larger than 100 kB"),
        (answer("x", "image/png"), "only text is fetched"),
        (answer("x", "application/octet-stream"), "only text is fetched"),
        (answer("x", "text/event-stream"), "only text is fetched"),
        (answer("x", headers={"content-encoding": "gzip"}), "compressed"),
        (b"nonsense\r\n\r\n", "cannot be reached"),
        (b"", "cannot be reached"),
        (b"HTTP/1.1 200 X\r\ncontent-length: 10\r\n\r\nabc", "cannot be reached"),
    ],
)
async def test_an_answer_is_bounded_and_text(page, message):
    async with web_server({"/": page}) as server:
        with pytest.raises(InvalidTask, match=message):
            await fetch(server, max_bytes=100_000)


async def test_a_server_that_never_answers_is_left():
    async def silent(reader, writer):
        await reader.read()
        writer.close()

    async with web_server({}) as server:
        server.serve = silent
        listening = await asyncio.start_server(silent, "127.0.0.1", 0)
        server.port = listening.sockets[0].getsockname()[1]
        with pytest.raises(InvalidTask, match=r"took more than 0\.05 s"):
            await fetch(server, seconds=0.05)
        listening.close()


async def test_a_cancelled_fetch_closes_its_connection():
    arrived, closed = asyncio.Event(), asyncio.Event()

    async def silent(reader, writer):
        await reader.readuntil(b"\r\n\r\n")
        arrived.set()
        assert await reader.read() == b""
        closed.set()
        writer.close()

    async with web_server({}) as server:
        listening = await asyncio.start_server(silent, "127.0.0.1", 0)
        server.port = listening.sockets[0].getsockname()[1]
        fetching = asyncio.ensure_future(fetch(server))
        await arrived.wait()
        fetching.cancel()
        with pytest.raises(asyncio.CancelledError):
            await fetching
        await closed.wait()
        listening.close()


async def test_proxies_of_the_environment_are_not_used(monkeypatch):
    for name in (
        "http_proxy",
        "https_proxy",
        "all_proxy",
        "HTTP_PROXY",
        "HTTPS_PROXY",
        "ALL_PROXY",
    ):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    async with web_server({"/": answer("x")}) as server:
        assert (await fetch(server)).text == "x"


async def test_an_error_page_is_a_failed_output(tmp_path):
    async with web_server({}) as server:
        tool = http_fetch_tool([f"docs.example:{server.port}"], guard=server.guard)
        output = await executor(tool, tmp_path).call(
            "http_fetch", {"url": f"http://docs.example:{server.port}/x"}
        )
    assert output.failed
    assert output.text.startswith("404 ")


async def test_a_long_text_is_read_in_parts(tmp_path):
    text = "".join(f"{number:07d}\n" for number in range(5_000))
    async with web_server({"/": answer(text)}) as server:
        tool = http_fetch_tool([f"docs.example:{server.port}"], guard=server.guard)
        run = executor(tool, tmp_path)
        url = f"http://docs.example:{server.port}/"
        first = await run.call("http_fetch", {"url": url})
        start = int(first.text.rpartition("start=")[2].rstrip("]"))
        second = await run.call("http_fetch", {"url": url, "start": start})
    assert len(first.text) <= MAX_OUTPUT_CHARS
    assert first.text.partition("\n\n")[2].partition("\n[")[0] == text[:start]
    assert second.text.partition("\n\n")[2].startswith(text[start:].strip()[:100])


async def test_a_credential_in_a_page_is_private_too(tmp_path):
    async with web_server({"/": answer("token ghp_" + "a1" * 20)}) as server:
        tool = http_fetch_tool([f"docs.example:{server.port}"], guard=server.guard)
        run = executor(tool, tmp_path)
        await run.call("http_fetch", {"url": f"http://docs.example:{server.port}/"})
    assert {Taint.UNTRUSTED, Taint.PRIVATE} <= run.taint
