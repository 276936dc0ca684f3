"""Whole screens as SVG: what a change of layout or colour shows in review.

`pytest tests/tui/test_snapshots.py --snapshot-update` renews them; look at every one that changed.
"""

import pytest

from app.tui.themes import BUILT_IN, load_themes
from engine.api.snapshot import EngineState
from tests.fakes.fake_client import FakeClient
from tests.tui.harness import Clock, Harness, converse, make_app, make_session

SMALL, MEDIUM, WIDE = (80, 24), (120, 36), (160, 48)

ANSWER = """Rivers **carry** water downhill:

1. Rain and snow feed them.
2. They join, and *grow*.

```python
def flow(rain: float, slope: float) -> float:
    \"\"\"Cubic metres a second.\"\"\"
    return rain * slope
```

> Tapi, Narmada, Godavari.

| river | km |
|-------|-----|
| Ganga | 2525 |

See [the atlas](https://example.org/atlas)."""


def chats(session, client):
    for question, answer in (
        ("What is the capital of France?", "The capital of France is Paris."),
        ("नमस्ते, प्रवाह!", "नमस्ते! 日本語も。"),
    ):
        session.new_tree()
        converse(session, client, (question, answer))
    session.new_tree()
    session.system_prompt = "You are a helpful assistant."
    converse(session, client, ("How does a river flow?", ANSWER))


def nothing(session, client):
    pass


@pytest.fixture
def compare(tmp_path, snap_compare):
    """Open a screen, do things on it, and compare it with the stored picture."""
    opened = []

    def compare_one(do=None, *, size=MEDIUM, prepare=chats, client=None, **options):
        client = client or FakeClient(blocks=2048)
        clock = Clock()
        session, store = make_session(client, tmp_path, clock)
        opened.extend((session, store))
        prepare(session, client)
        app = make_app(client, session, clock, **options)

        async def before(pilot):
            ui = Harness(app, pilot, client, session, clock)
            await ui.until(lambda: app.frame_clock.ticks > 0, "the first tick")
            ui.clock.now += 1
            if do:
                await do(ui)
            await app.frame_clock.tick_once()
            await pilot.pause()
            await app.frame_clock.tick_once()
            await pilot.pause()

        return snap_compare(app, terminal_size=size, run_before=before)

    yield compare_one
    for one in opened:
        one.close()


def press(*keys):
    async def do(ui):
        await ui.press(*keys)

    return do


async def stream(ui):
    ui.client.answers.append(ANSWER)
    await ui.ask("Once more, please")
    ui.client.step(20)
    ui.clock.now += 1
    await ui.shown("slope")


async def stream_and_queue(ui):
    await stream(ui)
    await ui.ask("and then the sea")
    await ui.shown("esc takes the last one back")


async def stop(ui):
    await stream(ui)
    await ui.press("ctrl+c")
    ui.client.step()
    await ui.shown("stopped")


async def kv_maximised(ui):
    await stream(ui)
    await ui.press("f3", "f3")
    await ui.shown("block 0")


@pytest.mark.parametrize("size", [SMALL, MEDIUM, WIDE], ids=lambda size: f"{size[0]}x{size[1]}")
def test_chat(compare, size):
    assert compare(size=size)


@pytest.mark.parametrize("size", [SMALL, MEDIUM], ids=lambda size: f"{size[0]}x{size[1]}")
def test_welcome(compare, size):
    assert compare(size=size, prepare=nothing)


def test_loading(compare):
    client = FakeClient(state=EngineState.LOADING)
    client.progress = 0.4
    assert compare(prepare=nothing, client=client)


def test_failed(compare):
    client = FakeClient(state=EngineState.FAILED)
    client.error = "The model file is damaged: tensor 3 ends after the file's end."
    assert compare(prepare=nothing, client=client)


def test_streaming_with_a_queued_message(compare):
    assert compare(stream_and_queue, size=WIDE)


def test_stopped(compare):
    assert compare(stop)


def test_stats(compare):
    assert compare(press("f5"), size=WIDE)


def test_kv_map_maximised(compare):
    assert compare(kv_maximised, size=WIDE)


def test_help(compare):
    assert compare(press("f1"))


def test_conversations_over_a_narrow_screen(compare):
    assert compare(press("ctrl+t"), size=SMALL)


def test_theme_picker(compare):
    assert compare(press("f9"))


def test_confirm(compare):
    assert compare(press("ctrl+t", "delete"))


def test_ascii(compare, monkeypatch):
    monkeypatch.setenv("PRAVAHA_CHARSET", "ascii")
    assert compare(stream_and_queue, size=WIDE)


@pytest.mark.parametrize("theme", sorted(load_themes([BUILT_IN])))
def test_theme(compare, theme):
    assert compare(stream, size=WIDE, theme=theme)
