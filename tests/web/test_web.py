"""`pravaha web` as a process: the page, and the screen over its WebSocket."""

import asyncio
import json
import os
import re
import signal
import subprocess
import sys
from contextlib import asynccontextmanager

import pytest

from app.web.page import page_html
from tests.server.byte_engine import byte_engine
from tests.server.live import live
from tests.server.process import ROOT

pytest.importorskip("textual_serve")
aiohttp = pytest.importorskip("aiohttp")
pyte = pytest.importorskip("pyte")

PATIENCE_S = 60
PROGRAM = [sys.executable, "-c", "from app.cli import main; main()"]


@pytest.fixture(scope="module")
def engine_url():
    with byte_engine() as engine, live(engine) as server:
        yield server.url


@pytest.fixture
def open_page(tmp_path, monkeypatch):
    """Start `pravaha web` with options; its URL."""
    for name in ("DATA_DIR", "CACHE_DIR", "CONFIG_DIR"):
        monkeypatch.setenv(f"PRAVAHA_{name}", str(tmp_path / name.lower()))
    monkeypatch.setenv("PYTHONPATH", ":".join(one for one in sys.path if one))
    processes = []

    def start(*options):
        process = subprocess.Popen(
            [*PROGRAM, "web", "--port", "0", *options],
            stdout=subprocess.PIPE,
            text=True,
            cwd=ROOT,
        )
        processes.append(process)
        line = process.stdout.readline()
        return re.search(r"http://[^/ ]+", line)[0]

    yield start
    for process in processes:
        process.terminate()
        process.communicate(timeout=PATIENCE_S)
        assert process.returncode == 0


class Tab:
    """A browser tab: the terminal that the page shows."""

    def __init__(self, socket):
        self._socket = socket
        self._screen = pyte.Screen(120, 36)
        self._stream = pyte.ByteStream(self._screen)

    async def shown(self, *words):
        async with asyncio.timeout(PATIENCE_S):
            while not all(word in "\n".join(self._screen.display) for word in words):
                message = await self._socket.receive()
                assert message.type is aiohttp.WSMsgType.BINARY, message
                self._stream.feed(message.data)

    async def type(self, text):
        await self._socket.send_json(["stdin", text])


@asynccontextmanager
async def open_tab(url):
    async with (
        aiohttp.ClientSession() as http,
        http.ws_connect(f"{url}/ws?width=120&height=36", origin=url) as socket,
    ):
        yield Tab(socket)


async def test_tabs_show_the_screen_and_share_the_engine(open_page, engine_url):
    url = open_page("--attach", engine_url, "--theme", "dawn")
    async with aiohttp.ClientSession() as http, http.get(url) as response:
        page = await response.text()
        assert response.status == 200
        assert "default-src 'self'" in response.headers["content-security-policy"]
    address = url.removeprefix("http://")
    assert f"ws://{address}/ws" in page
    async with open_tab(url) as first, open_tab(url) as second:
        for tab in (first, second):
            await tab.shown("Pravāha", engine_url, "toy", "ready")
        await first.type("hello\r")
        await first.shown("hello", "first token")
        await second.type("there\r")
        await second.shown("there", "first token")


async def test_the_page_loads_nothing_from_other_hosts(open_page, engine_url):
    url = open_page("--attach", engine_url)
    async with aiohttp.ClientSession() as http:
        async with http.get(url) as response:
            page = await response.text()
        loaded = re.findall(r"""(?:src|href)="([^"]*)"|url\("?([^")]*)"?\)""", page)
        paths = [one or other for one, other in loaded if not (one or other).startswith("data:")]
        assert len(paths) == 4
        for path in paths:
            assert re.fullmatch(r"static/[\w/.-]+", path)
            async with http.get(f"{url}/{path}") as response:
                assert response.status == 200
                if path.endswith(".css"):
                    assert "url(" not in await response.text()
                    assert "@import" not in await response.text()
    assert re.findall(r"\w*://[^\s\"/]*", page) == [f"ws://{url.removeprefix('http://')}"]


def test_a_host_name_cannot_write_into_the_page():
    page = page_html(title="<b>", socket='ws://"><script>', font_size=16)
    assert "<b>" not in page
    assert '"><script>' not in page


async def test_a_request_from_another_page_is_refused(open_page, engine_url):
    url = open_page("--attach", engine_url)
    async with aiohttp.ClientSession() as http:
        with pytest.raises(aiohttp.WSServerHandshakeError, match="403"):
            await http.ws_connect(f"{url}/ws", origin="http://evil.example")
        async with http.get(url, headers={"host": "evil.example"}) as response:
            assert response.status == 403


async def test_a_token_is_needed_where_one_is_set(open_page, engine_url):
    url = open_page("--attach", engine_url, "--token", "s3cret")
    async with aiohttp.ClientSession(cookie_jar=aiohttp.CookieJar(unsafe=True)) as http:
        for path in ("/", "/ws", "/static/js/textual.js", "/?token=wrong"):
            async with http.get(f"{url}{path}") as response:
                assert response.status == 403
        async with http.get(f"{url}/?token=s3cret") as response:
            assert response.status == 200
            assert "token" not in str(response.url)
        async with http.get(f"{url}/static/js/textual.js") as response:
            assert response.status == 200


def test_a_public_address_without_a_token_is_refused(engine_url):
    result = subprocess.run(
        [*PROGRAM, "web", "--host", "0.0.0.0", "--attach", engine_url],
        capture_output=True, text=True, cwd=ROOT, timeout=PATIENCE_S,
    )  # fmt: skip
    assert result.returncode == 1
    assert "without a token" in result.stderr


@pytest.mark.parametrize("gone", ["stdin", "stdout"])
def test_a_tab_ends_when_the_server_of_the_page_is_gone(engine_url, tmp_path, gone):
    environment = {
        **os.environ,
        "PRAVAHA_DATA_DIR": str(tmp_path),
        "PYTHONPATH": ":".join(one for one in sys.path if one),
        "TEXTUAL_DRIVER": "textual.drivers.web_driver:WebDriver",
    }
    process = subprocess.Popen(
        [*PROGRAM, "--attach", engine_url],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=ROOT, env=environment,
    )  # fmt: skip
    try:
        assert process.stdout.readline() == b"__GANGLION__\n"
        process.stdout.read(1000)
        getattr(process, gone).close()
        if gone == "stdout":
            size = json.dumps({"type": "resize", "width": 100, "height": 30}).encode()
            process.stdin.write(b"M%s%s" % (len(size).to_bytes(4, "big"), size))
            process.stdin.flush()
            status = process.wait(PATIENCE_S)
        else:
            process.stdout.read()
            status = process.wait(PATIENCE_S)
        assert status == 128 + signal.SIGHUP
    finally:
        process.kill()
        process.wait()
