"""Models searched on a hub and downloaded from the screen; a loopback hub stands in for it."""

import pytest
from textual.widgets import Input

from app.runtime.model_hub import Download, ModelHub, open_hub
from app.tui.glyphs import UNICODE
from app.tui.view.hub_lines import build_download, fits
from app.tui.view.spans import plain
from app.tui.widgets.hub_screen import HubScreen
from engine.models.store import ModelStore
from engine.runtime.model_change import CHANGE_DRAIN_S
from tests.fakes.fake_client import FakeClient
from tests.fakes.hub_server import serve_hub
from tests.fakes.installed_models import LOADED, OTHER
from tests.fakes.tiny_gguf import write_tiny_gguf

REPOSITORY = "org/tiny-llama"
NAME = "tiny-llama-tiny-Q8_0"


@pytest.fixture
def hub_server(monkeypatch, tmp_path):
    write_tiny_gguf(tmp_path / "tiny-Q8_0.gguf")
    data = (tmp_path / "tiny-Q8_0.gguf").read_bytes()
    monkeypatch.setattr("huggingface_hub.constants.DOWNLOAD_CHUNK_SIZE", 1024)
    with serve_hub(REPOSITORY, {"tiny-Q8_0.gguf": data, "tiny-Q4_0.gguf": data[:-1]}) as running:
        running.found = [
            {"id": REPOSITORY, "downloads": 1200},
            {"id": "org/closed", "gated": "auto"},
        ]
        monkeypatch.setenv("HF_ENDPOINT", running.url)
        yield running


@pytest.fixture
def models(tmp_path):
    return tmp_path / "models"


@pytest.fixture
def client():
    client = FakeClient()
    client.installed = [LOADED, OTHER]
    return client


async def find_files(ui):
    await ui.ask("/download tiny llama")
    await ui.shown("org/tiny-llama", "1.2k downloads", "org/closed", "gated")
    await ui.press("enter")
    await ui.shown("tiny-Q8_0", "fits in memory", "enter downloads and loads it")


async def test_a_model_is_found_downloaded_and_loaded(screen, hub_server, models, client):
    async with screen(client=client, model_hub=open_hub(models)) as ui:
        await find_files(ui)
        await ui.press("down")
        client.installed.append(OTHER.__class__(NAME, 100, "llama", 1, "Q8_0", 64))
        await ui.press("enter")
        await ui.until(lambda: client.loads == [(NAME, CHANGE_DRAIN_S)], "the load")
        assert not isinstance(ui.app.screen, HubScreen)
        assert [one.name for one in ModelStore(models).list()] == [NAME]


async def test_a_download_is_stopped_and_goes_on_where_it_ended(screen, hub_server, models, client):
    size = len(hub_server.files["tiny-Q8_0.gguf"])
    hub_server.held_at = size // 2 // 1024 * 1024
    hub_server.held.clear()
    async with screen(client=client, model_hub=open_hub(models)) as ui:
        await find_files(ui)
        await ui.press("down", "enter")
        await ui.shown("downloading org/tiny-llama:tiny-Q8_0.gguf", "ctrl+x stops it")
        await ui.until(
            lambda: ui.app.actions.hub._hub.download.done >= hub_server.held_at - 1024, "the half"
        )
        await ui.press("ctrl+x")
        await ui.shown("stopping org/tiny-llama")
        hub_server.held.set()
        await ui.shown("was stopped; started again, it goes on")
        assert client.loads == []
        hub_server.ranges.clear()
        await ui.press("enter")
        await ui.until(lambda: ModelStore(models).list(), "the model")
        (begin,) = hub_server.ranges
        assert int(begin.removeprefix("bytes=").removesuffix("-")) > 0


async def test_a_closed_search_leaves_the_download_running(screen, hub_server, models, client):
    hub_server.held.clear()
    async with screen(client=client, model_hub=open_hub(models)) as ui:
        await find_files(ui)
        await ui.press("down", "enter")
        await ui.shown("downloading")
        await ui.press("escape", "escape")
        assert not isinstance(ui.app.screen, HubScreen)
        hub_server.held.set()
        await ui.until(lambda: any("is installed; /model" in one for one in ui.toasts), "the word")
        assert client.loads == []


async def test_an_unusable_file_and_a_hub_that_is_gone_are_said(
    screen, hub_server, models, client, monkeypatch
):
    async with screen(client=client, model_hub=open_hub(models)) as ui:
        await find_files(ui)
        await ui.press("enter")  # the truncated one
        await ui.until(lambda: ui.app.actions.hub._hub.download.error, "the reason")
        await ui.gone("ctrl+x stops it")
        monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
        ui.app.screen.query_one(Input).value = "another"
        await ui.press("enter")
        await ui.shown("The hub cannot be searched")


@pytest.mark.parametrize(
    "words",
    [
        "org/tiny-llama",
        "org/tiny-llama:Q8_0",
        "https://hub.example/org/tiny-llama/blob/main/tiny-Q8_0.gguf",
    ],
)
async def test_a_repository_or_its_address_lists_its_files_at_once(
    screen, hub_server, models, client, words
):
    async with screen(client=client, model_hub=open_hub(models)) as ui:
        await ui.ask(f"/download {words}")
        await ui.shown("tiny-Q4_0", "tiny-Q8_0", "org/tiny-llama: enter downloads")
        assert hub_server.searched == []


async def test_the_list_of_models_leads_to_the_search(screen, models, client):
    async with screen(client=client, model_hub=open_hub(models)) as ui:
        await ui.ask("/model")
        await ui.shown("d downloads more")
        await ui.press("d")
        await ui.until(lambda: isinstance(ui.app.screen, HubScreen), "the search")
        await ui.shown("Download a model", "org/name lists the files of one")


async def test_models_are_downloaded_where_the_engine_runs(screen, client):
    async with screen(client=client) as ui:
        await ui.ask("/download x")
        assert "where the engine runs" in ui.toasts[-1]


def test_two_downloads_do_not_run_at_once(models):
    hub = ModelHub(ModelStore(models))
    hub._download = Download("org/one")
    with pytest.raises(Exception, match="org/one is being downloaded"):
        hub.start("org/two")


def test_what_does_not_fit_is_said():
    assert fits(100, None) is None
    assert fits(10**9, 10**9) is False
    assert fits(10**9, 2 * 10**9) is True


def test_a_hostile_name_cannot_move_the_cursor():
    shown = plain(build_download(Download("a/b\x1b[2J"), UNICODE, 80))
    assert "\x1b" not in shown
