"""Whole screens as SVG: what a change of layout or colour shows in review.

`pytest tests/tui/test_snapshots.py --snapshot-update` renews them; look at every one that changed.
"""

import itertools
import json
from pathlib import Path
from types import SimpleNamespace

import pytest
from textual.widgets import Input

from app.runtime.source_views import CollectionView, DocumentView, IndexJob
from app.runtime.stored_passages import StoredCitation, dump_citations
from app.settings.listing import list_settings
from app.settings.settings import Settings
from app.tui.themes import BUILT_IN, load_themes
from engine.api.generation_defaults import SamplingChoice
from engine.api.request import FinishReason, SamplingParams
from engine.api.snapshot import EngineState
from engine.api.tools import CallState
from engine.conversations.passage_source import CheckedAnswer
from engine.conversations.tree import Verdict
from tests.fakes.fake_chat_tools import FakeChatTools
from tests.fakes.fake_client import FakeClient
from tests.fakes.fake_sources import FakeSources, passage
from tests.fakes.installed_models import HUGE, LOADED, OTHER
from tests.retrieval.parsing.samples import docx, paragraph, pdf
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
        session.conversations.open_new()
        converse(session, client, (question, answer))
    session.conversations.open_new()
    session.system_prompt = "You are a helpful assistant."
    converse(session, client, ("How does a river flow?", ANSWER))


def nothing(session, client):
    pass


@pytest.fixture(autouse=True)
def numbered_requests(monkeypatch):
    """Request ids, which the KV pane shows, are the same in every run."""
    numbers = itertools.count(1)
    made = SimpleNamespace(uuid4=lambda: SimpleNamespace(hex=f"{next(numbers):032x}"[::-1]))
    monkeypatch.setattr("engine.api.request.uuid", made)


@pytest.fixture
def compare(tmp_path, snap_compare):
    """Open a screen, do things on it, and compare it with the stored image."""
    opened = []

    def compare_one(do=None, *, size=MEDIUM, prepare=chats, client=None, **options):
        client = client or FakeClient(blocks=2048)
        clock = Clock()
        session, store = make_session(
            client,
            tmp_path,
            clock,
            passages=options.get("sources"),
            tools=options.get("chat_tools"),
        )
        opened.extend((session, store))
        prepare(session, client)
        app = make_app(client, session, clock, **options)

        async def before(pilot):
            ui = Harness(app, pilot, client, session, clock)
            await ui.until(lambda: app.frame_clock.ticks > 0, "the first tick")
            ui.clock.now += 1
            if do:
                await do(ui)
            await ui.until(lambda: not app.actions.listing.busy, "the list of conversations")
            for field in app.screen.query(Input):
                field.cursor_blink = False
            before_tick = None
            while before_tick != (drawn := ui.text):
                before_tick = drawn
                for _ in range(2):
                    app.draw_all()
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


async def cards(ui):
    ui.client.answers.extend(
        [ANSWER, "Downhill, **always**.", "流れる水は腐らず。" * 9, ANSWER[:90]]
    )
    await ui.press("shift+tab", "x", "4")
    ui.client.step(12)
    await ui.until(lambda: "4 answers" in ui.text, "the cards")
    await ui.press("l", "s")
    ui.client.step(12)
    ui.clock.now += 1
    await ui.shown("prefilled")


@pytest.mark.parametrize(
    "size", [(60, 24), SMALL, (100, 30), WIDE], ids=lambda size: f"{size[0]}x{size[1]}"
)
def test_answers_side_by_side(compare, size):
    assert compare(cards, size=size)


async def compared(ui):
    other = ANSWER.replace("feed", "swell").replace("grow", "become wide").replace("Tapi", "Kaveri")
    ui.client.answers.append(other)
    await ui.press("shift+tab", "r")
    await ui.answered()
    if ui.app.size.width < WIDE[0]:
        ui.app.clear_notifications()  # it covers the head
    await ui.press("c", "n")
    await ui.shown("difference 2 of")


@pytest.mark.parametrize("size", [SMALL, WIDE], ids=lambda size: f"{size[0]}x{size[1]}")
def test_comparison(compare, size):
    assert compare(compared, size=size)


def test_stats(compare):
    assert compare(press("f5"), size=WIDE)


def test_kv_map_maximised(compare):
    assert compare(kv_maximised, size=WIDE)


def surprised(session, client):
    """An answer whose letters have the surprisals of all six steps."""
    bits = (0.1, 0.7, 1.5, 3.0, 6.0, 9.0)
    letters = dict(zip("aeioun", bits, strict=True))
    client.logprobs = {client.tokenize(one)[0]: -0.693147 * bit for one, bit in letters.items()}
    session.sampling.default = SamplingChoice(SamplingParams(logprobs=5))
    converse(
        session,
        client,
        ("How does a river flow?", "Rain, snow:\n\tit **runs** downhill. प्रवाह 日本"),
    )


@pytest.mark.parametrize("theme", ["ganga", "dawn", "ansi"])
def test_heat_map(compare, theme):
    assert compare(press("shift+tab", "t", "L", "L", "L"), prepare=surprised, theme=theme)


def test_heat_map_without_colour(compare, monkeypatch):
    monkeypatch.setenv("NO_COLOR", "1")
    assert compare(press("shift+tab", "t"), prepare=surprised)


def with_sources(session, client):
    """An answer that begins with cached tokens and has accepted drafts."""
    converse(session, client, ("How does a river flow?", "Rain and snow feed it."))
    session.branches.fork_at_token(session.head, 14)
    cached = len(client.requests[-1].prompt_ids) - 1
    text = "feeds streams, streams become rivers."
    client.write(text, drafted=range(16, 30), cached=cached, finish=FinishReason.STOP)
    session.pump()


@pytest.mark.parametrize("theme", ["ganga", "dawn"])
def test_sources(compare, theme):
    assert compare(press("shift+tab", "t", "t"), prepare=with_sources, theme=theme)


def test_sources_without_colour(compare, monkeypatch):
    monkeypatch.setenv("NO_COLOR", "1")
    assert compare(press("shift+tab", "t", "t"), prepare=with_sources)


def collections():
    sources = FakeSources(
        CollectionView("engine-docs", 34, 5_120, 1), CollectionView("notes", 2, 9, 0)
    )
    sources.listed["engine-docs"] = (
        DocumentView("/docs/scan.pdf", 0, "The file is encrypted."),
        DocumentView("/docs/guide.md", 21),
    )
    sources.found.append(
        [
            passage(1, "Each bolt takes 12 newton metres. Use the short key.", score=0.0328),
            passage(
                2, "Nuts are made of brass, washers of steel.", file="/docs/nuts.md", score=0.0161
            ),
            passage(
                3, "The handbook has 214 pages.", file="/docs/about.md", headings=(), score=0.0159
            ),
        ]
    )
    cited = [StoredCitation(1, True, 100, 133), StoredCitation(3, False, 0, 0)]
    text = "Each bolt takes **12 newton metres** [1]. It is painted red [unsupported]."
    sources.checks.append(CheckedAnswer(text, dump_citations(cited)))
    return sources


async def ask_collections(ui):
    ui.client.answers.append("Each bolt takes **12 newton metres** [1]. It is painted red [3].")
    await ui.ask("@engine-docs How tight is a bolt?")
    await ui.until(lambda: ui.client.requests, "the request")
    await ui.answered()


@pytest.mark.parametrize("size", [SMALL, MEDIUM], ids=lambda size: f"{size[0]}x{size[1]}")
def test_answer_with_citations(compare, size):
    assert compare(ask_collections, size=size, prepare=nothing, sources=collections())


async def sources_pane(ui):
    await ask_collections(ui)
    ui.client.resident = 150
    await ui.press("f6", "enter")
    await ui.shown("The file is encrypted.")
    ui.app.actions.sources._library.job = IndexJob("notes", "adding", 12, 40, 340, 1, 82.4, 9.6)
    ui.app.draw_all()
    await ui.shown("adding to notes")


@pytest.mark.parametrize("size", [SMALL, WIDE], ids=lambda size: f"{size[0]}x{size[1]}")
def test_sources_pane(compare, size):
    assert compare(sources_pane, size=size, prepare=nothing, sources=collections())


async def cited_passage(ui):
    await ask_collections(ui)
    await ui.press("shift+tab", "C")
    await ui.shown("Before it.")


def test_cited_passage(compare):
    assert compare(cited_passage, prepare=nothing, sources=collections())


def test_alternatives(compare):
    assert compare(press("shift+tab", "L", "L", "L", "full_stop"), prepare=surprised)


def test_help(compare):
    assert compare(press("f1"))


def test_conversations_over_a_narrow_screen(compare):
    assert compare(press("ctrl+t"), size=SMALL)


def branches(session, client):
    chats(session, client)
    session.branches.fork(session.path()[2].id)
    converse(session, client, ("And where does it end?", "In a sea, a lake or a desert."))
    client.answers.append("Most end in a sea.")
    session.branches.regenerate()
    client.finish()
    session.pump()
    session.branches.rate(session.path()[-1].id, 1)
    session.branches.label(session.path()[-2].id, "ends")


@pytest.mark.parametrize("size", [SMALL, MEDIUM, WIDE], ids=["80x24", "120x36", "160x48"])
def test_branch_tree(compare, size):
    assert compare(press("ctrl+t", "k"), size=size, prepare=branches)


def test_editing_a_message(compare):
    assert compare(press("shift+tab", "k", "k", "e"), prepare=branches)


def test_bookmarks(compare):
    assert compare(press("shift+tab", "B"), prepare=branches)


def test_theme_picker(compare):
    assert compare(press("f9"))


def test_confirm(compare):
    assert compare(press("ctrl+t", "delete"))


async def pick_model(ui):
    await ui.ask("/model")
    await ui.shown("qwen3-0.6b")


async def edit_sampling(ui):
    ui.session.sampling.change({"temperature": 0.7})
    await ui.ask("/sampling")
    await ui.type("x")
    await ui.press("enter")
    await ui.shown("must be a number")


@pytest.mark.parametrize("size", [SMALL, MEDIUM], ids=lambda size: f"{size[0]}x{size[1]}")
def test_model_picker(compare, size):
    client = FakeClient(blocks=2048)
    client.installed = [LOADED, HUGE, OTHER]
    assert compare(pick_model, size=size, client=client)


def test_changing_the_model(compare):
    client = FakeClient(state=EngineState.LOADING)
    client.next_model, client.progress = "qwen3-0.6b", 0.4
    assert compare(prepare=nothing, client=client)


@pytest.mark.parametrize("size", [SMALL, MEDIUM], ids=lambda size: f"{size[0]}x{size[1]}")
def test_sampling_editor(compare, size):
    assert compare(edit_sampling, size=size)


def with_files(session, client):
    """A question about a document."""
    lease = "lease.pdf (12 pages):\n```\nThe rent is 400 euros a month.\n```"
    question = (
        f'What is the rent? @lease.pdf @"my notes.md"\n\n{lease}\n\nmy notes.md:\n```\nPaid.\n```'
    )
    converse(session, client, (question, "It is 400 euros a month."))


async def attach_more(ui):
    await ui.shown("lease.pdf · 12 pages · ", "my notes.md · ")
    await ui.type("And the deposit? @lease.pdf @plan.docx")
    await ui.shown("2 pages", "plan.docx · ", " left")


@pytest.mark.parametrize("size", [SMALL, MEDIUM], ids=lambda size: f"{size[0]}x{size[1]}")
def test_attached_files(compare, size, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "lease.pdf").write_bytes(pdf(["The rent is 400 euros a month.", "Signed."]))
    (tmp_path / "plan.docx").write_bytes(docx(paragraph("The ferry leaves at 07:45.")))
    assert compare(attach_more, size=size, prepare=with_files)


def call(name, **arguments):
    return f"<tool_call>{json.dumps({'name': name, 'arguments': arguments})}</tool_call>"


CALLED = [
    [
        (CallState.OK, "The rent is 400 euros.\nThe deposit is 800 euros."),
        (CallState.FAILED, "Gone."),
    ],
    [(CallState.OK, "2 files")],
]


async def ask_for_calls(ui):
    """Ask with tools until the third answer waits for the approval of its call."""
    ui.client.answers += [
        "I look." + call("read", path="lease.txt") + call("read", path="an annex.txt", end=None),
        call("glob", pattern="*.txt"),
        call("write", path="sum.txt", content="The deposit is 800 euros, as agreed."),
    ]
    await ui.ask("How much is the deposit? Write it into a file.")

    def asked():
        ui.client.finish()
        return not ui.client.answers and len(ui.session.path()) == 7

    await ui.until(asked, "the third call")
    await ui.shown("waits for your approval")


@pytest.mark.parametrize("size", [SMALL, MEDIUM], ids=lambda size: f"{size[0]}x{size[1]}")
def test_calls_of_tools(compare, size):
    tools = FakeChatTools(("read", "glob", "write"), *CALLED)
    tools.waiting = frozenset({"write"})
    assert compare(ask_for_calls, size=size, prepare=nothing, chat_tools=tools)


HOLDS = """class Queue:
    \"\"\"The holds of one book.\"\"\"

    def position(self, member):
        for index, hold in enumerate(self.holds):
            if hold.member == member:
                return index
        return None
"""
CORRECTED = (
    "It counts from 0.\n\n```python\ndef position(self, member):\n"
    "    for index, hold in enumerate(self.holds, start=1):\n        if hold.member == member:\n"
    "            return index\n    return None\n```\n"
)


async def open_edit(ui):
    """Have a function corrected, and open the diff."""
    ui.client.answers.append(CORRECTED)
    await ui.ask("Position must count from 1 in @library/holds.py")
    await ui.until(lambda: ui.session.path(), "the message")
    await ui.answered()
    await ui.shown("changes holds.py +1 -1 Queue.position")
    await ui.press("shift+tab", "d")
    await ui.shown("@@", "y  apply")


@pytest.mark.parametrize("size", [SMALL, MEDIUM], ids=lambda size: f"{size[0]}x{size[1]}")
def test_the_diff_of_an_answer(compare, size, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "library").mkdir()
    (tmp_path / "library" / "holds.py").write_text(HOLDS)
    assert compare(open_edit, size=size, prepare=nothing, edit_root=Path("library"))


def judged(session, client):
    """An agent's answer with two candidates beside it."""
    place = session.messages.begin_exchange("@coder : write double", by="coder")
    session.messages.finish_exchange(
        place,
        "coder: no findings (ok)\n\n- Candidate 3 of 3 was chosen: It passes 3 of 3 examples.\n"
        "- Candidate 1 fails examples: `>>> double(2)`: got 2, wanted 4",
        verdict=Verdict.PASSED,
        others=[
            ("Candidate 1 of 3 (greedy) fails examples.", Verdict.FAILED),
            ("Candidate 2 of 3 (temperature 0.4) fails parses.", Verdict.FAILED),
        ],
    )


@pytest.mark.parametrize("size", [MEDIUM, WIDE], ids=lambda size: f"{size[0]}x{size[1]}")
def test_candidates_are_branches(compare, size):
    assert compare(size=size, prepare=judged)


async def complete_model(ui):
    await ui.type("/model ")
    await ui.shown("qwen3-0.6b", "loaded")


def test_completion_of_an_argument(compare):
    client = FakeClient(blocks=2048)
    client.installed = [LOADED, HUGE, OTHER]
    assert compare(complete_model, client=client, prepare=with_files)


async def open_setting(ui):
    await ui.ask("/settings swap_bytes")
    await ui.shown("--swap-bytes VALUE")


def test_settings(compare):
    assert compare(open_setting, settings=list_settings(Settings()))


def test_ascii(compare, monkeypatch):
    monkeypatch.setenv("PRAVAHA_CHARSET", "ascii")
    assert compare(stream_and_queue, size=WIDE)


@pytest.mark.parametrize("theme", sorted(load_themes([BUILT_IN])))
def test_theme(compare, theme):
    assert compare(stream, size=WIDE, theme=theme)
