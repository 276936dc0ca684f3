import pytest

from app.tui.actions.serving import read_port
from engine.api.errors import InvalidRequest, PravahaError
from tests.tui.harness import open_screen


class FakeServer:
    """Serves nothing; port 1 is taken."""

    url = None

    def start(self, port=None):
        if self.url is not None:
            raise InvalidRequest(f"The engine is served at {self.url} already.")
        if port == 1:
            raise PravahaError("Cannot listen on 127.0.0.1:1: Permission denied.")
        self.url = f"http://127.0.0.1:{port or 8000}"
        return self.url

    def stop(self):
        self.url = None


def test_ports_are_numbers_up_to_65535():
    assert read_port("") is None
    assert read_port("0") == 0
    assert read_port("65535") == 65535
    for wrong in ("65536", "-1", "on", "8000 x", "²", "9" * 5000):
        with pytest.raises(InvalidRequest, match="/serve takes a port"):
            read_port(wrong)


async def test_the_engine_is_served_until_serve_off(tmp_path):
    server = FakeServer()
    async with open_screen(tmp_path, engine_server=server) as ui:

        async def command(text, answer):
            await ui.ask(text)
            await ui.until(lambda: answer in " ".join(ui.toasts), answer)

        await command("/serve off", "The engine is not served; /serve starts it.")
        await command("/serve 1", "Permission denied. /serve PORT takes another port.")
        await command("/serve", "pravaha --attach http://127.0.0.1:8000")
        await ui.shown("serving http://127.0.0.1:8000")
        await command("/serve 9000", "8000 already. /serve off ends it.")
        await command("/serve off", "The engine is no longer served.")
        await ui.gone("serving http://127.0.0.1:8000")


async def test_without_an_engine_of_its_own_the_screen_refuses(tmp_path):
    async with open_screen(tmp_path) as ui:
        await ui.ask("/serve")
        assert ui.toasts[-1] == "A replay has no engine to serve."
    async with open_screen(tmp_path, server="http://there:8000") as ui:
        await ui.ask("/serve")
        assert ui.toasts[-1] == "The engine is on http://there:8000, which serves it already."
