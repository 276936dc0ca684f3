"""`pravaha web` in a headless Chromium, where one is installed: the page draws and keys reach the engine."""

import asyncio
import shutil
import subprocess

import pytest

from tests.server.byte_engine import byte_engine
from tests.server.live import live
from tests.web.test_web import PATIENCE_S, open_page  # noqa: F401 - a fixture

aiohttp = pytest.importorskip("aiohttp")
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="needs chromium")

OPTIONS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--remote-debugging-port=0",
    "--window-size=1400,860", "about:blank",
)  # fmt: skip


class Browser:
    """One page of a browser, driven over the DevTools protocol."""

    def __init__(self, socket):
        self._socket = socket
        self._calls = 0

    async def call(self, method, **params):
        self._calls += 1
        await self._socket.send_json({"id": self._calls, "method": method, "params": params})
        async with asyncio.timeout(PATIENCE_S):
            while (reply := await self._socket.receive_json()).get("id") != self._calls:
                pass
        return reply["result"]

    async def until(self, script):
        """Wait until JavaScript yields true; before the page is there, it may fail."""
        async with asyncio.timeout(PATIENCE_S):
            found = None
            while not found:
                reply = await self.call("Runtime.evaluate", expression=script)
                found = reply["result"].get("value")

    async def press(self, key, text):
        await self.call("Input.dispatchKeyEvent", type="keyDown", key=key, text=text)
        await self.call("Input.dispatchKeyEvent", type="keyUp", key=key)

    async def click(self, x, y):
        for kind in ("mousePressed", "mouseReleased"):
            await self.call(
                "Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1
            )


@pytest.fixture
def browser_url(tmp_path):
    """The DevTools address of a browser."""
    process = subprocess.Popen(
        [CHROMIUM, f"--user-data-dir={tmp_path / 'profile'}", *OPTIONS],
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    for line in process.stderr:
        if "DevTools listening on" in line:
            break
    yield "http://" + line.split("ws://")[1].split("/")[0]
    process.terminate()
    process.communicate(timeout=PATIENCE_S)


async def test_a_message_typed_in_a_browser_is_answered(open_page, browser_url):  # noqa: F811
    with byte_engine() as engine, live(engine) as server:
        url = open_page("--attach", server.url)
        async with aiohttp.ClientSession() as http:
            async with http.get(f"{browser_url}/json") as response:
                (page, *_) = await response.json(content_type=None)
            async with http.ws_connect(page["webSocketDebuggerUrl"], max_msg_size=0) as socket:
                browser = Browser(socket)
                await browser.call("Page.navigate", url=url)
                await browser.until("document.body.classList.contains('-first-byte')")
                async with asyncio.timeout(PATIENCE_S):
                    while not sum(engine.snapshot().totals.finished.values()):
                        # Keys before the prompt is on the screen have no effect there.
                        await browser.click(640, 655)
                        for letter in "hello":
                            await browser.press(letter, letter)
                        await browser.press("Enter", "\r")
                        await asyncio.sleep(1)
