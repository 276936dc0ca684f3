"""While an answer streams only what changed is drawn, and what is drawn is what is there."""

import random
from contextlib import contextmanager
from itertools import pairwise

import pyte
import pytest
from hypothesis import given
from hypothesis import strategies as st
from textual import constants
from textual.app import App
from textual.geometry import Region
from textual.screen import Screen
from textual.widgets import Markdown
from textual.widgets.markdown import MarkdownBlock

from app.tui.map_governor import MAX_BYTES, RATES_HZ
from app.tui.markdown_blocks.code import CodeRows
from app.tui.markdown_blocks.table import TableRows
from app.tui.presenter import CROWD, CROWDED_FIGURES_S, FIGURES_S
from app.tui.textual_workarounds.answer_markdown import AnswerMarkdown, GrowingParagraph
from app.tui.textual_workarounds.partial_compositor import PartialCompositor, bands_of
from app.tui.view.mood import DWELL_S, ONE_SHOT_S, Mood
from app.tui.widgets.kv_map import KvMap
from app.tui.widgets.kv_pane import KvPane
from app.tui.widgets.message import CROWDED_RESERVE
from app.tui.widgets.transcript import Transcript
from engine.api.request import Request, SamplingParams
from tests.fakes.fake_client import BLOCK_SIZE

REGIONS = st.lists(
    st.builds(
        Region,
        st.integers(0, 30),
        st.integers(0, 20),
        st.integers(1, 10),
        st.integers(1, 6),
    ),
    max_size=12,
)


@given(REGIONS)
def test_bands_cover_the_regions_and_share_no_row(regions):
    bands = bands_of(regions)
    assert all(any(band.contains_region(region) for band in bands) for region in regions)
    assert all(above.bottom <= below.y for above, below in pairwise(bands))
    rows = {row for region in regions for row in region.line_range}
    assert {row for band in bands for row in band.line_range} == rows


@pytest.fixture
def terminal(monkeypatch):
    """What a terminal would show of everything that the app displays."""
    emulated = pyte.Screen(160, 45)
    stream = pyte.Stream(emulated)
    display = App._display

    def displayed(self, screen, renderable):
        if renderable is not None and not self._batch_count:
            stream.feed(renderable.render_segments(self.console))
        display(self, screen, renderable)

    monkeypatch.setattr(App, "_display", displayed)
    return emulated


TEXT = (
    "# Rivers\n\nThe **Ganga** rises in the mountains, turns, turns again and reaches a delta wider "
    "than some countries; `code`, [a link](https://example.org) and *more* follow it all the way. "
    "\n\n1. one\n2. two **three**\n\n```python\nprint('flow')\n```\n\n> quoted\n\nThe end of it all, "
    "with enough words to wrap around the end of a row of this transcript once more, and the last."
)


async def test_a_terminal_shows_what_a_full_drawing_would(screen, terminal):
    async with screen(list(TEXT), ["word "] * 400, size=(160, 45)) as ui:
        for number, keys in enumerate((["f3"], ["f9"], ["escape"], ["f3", "f3"], ["f2"], [])):
            ui.client.step(60)
            ui.clock.now += FIGURES_S
            await ui.press(*keys)
            if number == 0:
                await ui.ask("How?")
            await ui.pilot.pause(0.1)
        await ui.answered()
        await ui.ask("More")
        for _ in range(20):
            ui.client.step(10)
            ui.clock.now += FIGURES_S
            await ui.pilot.pause(0.02)
        await ui.answered()
        shown = "\n".join(row.rstrip() for row in terminal.display)
        assert shown == ui.text


async def test_words_that_fit_the_row_lay_nothing_out_and_draw_one_row(screen, monkeypatch):
    async with screen(["several words "] * 9 + ["and ", "so ", "on"]) as ui:
        await ui.ask("question")
        ui.client.step(9)
        await ui.shown("several words")
        await ui.pilot.pause(0.2)
        layouts, drawn = [], []
        refresh = Screen._refresh_layout
        monkeypatch.setattr(
            Screen, "_refresh_layout", lambda *a, **k: layouts.append(a) or refresh(*a, **k)
        )
        rows = PartialCompositor.render_partial_update

        def partial(self):
            drawn.extend(self._dirty_regions)
            return rows(self)

        monkeypatch.setattr(PartialCompositor, "render_partial_update", partial)
        ui.client.step(2)
        await ui.shown("and so")
        paragraph = ui.last.query(GrowingParagraph).last()
        assert not layouts
        within = [region for region in drawn if paragraph.region.contains_region(region)]
        assert within
        assert {region.height for region in within} == {1}
        assert {region.y for region in within} == {paragraph.region.bottom - 1}


async def test_a_new_row_is_laid_out_once(screen, monkeypatch):
    async with screen(["word "] * 400) as ui:
        await ui.ask("question")
        ui.client.step(300)  # the transcript scrolls
        await ui.pilot.pause(0.3)
        reflows = []
        reflow = PartialCompositor.reflow
        monkeypatch.setattr(PartialCompositor, "reflow", lambda *a: reflows.append(a) or reflow(*a))
        height = ui.last.query_one(Markdown).size.height
        ui.client.step(20)
        await ui.until(lambda: ui.last.query_one(Markdown).size.height > height, "another row")
        await ui.pilot.pause(0.2)
        assert len(reflows) == ui.last.query_one(Markdown).size.height - height


async def test_with_many_requests_an_answer_scrolls_by_several_rows(screen, monkeypatch):
    async with screen(["word "] * 900) as ui:
        await ui.ask("question")
        for _ in range(CROWD):
            ui.client.submit(Request((1, 2, 3), SamplingParams()))
        ui.client.step(550)  # more than the screen holds
        await ui.shown("word word")
        await ui.pilot.pause(0.3)
        reflows = []
        reflow = PartialCompositor.reflow
        monkeypatch.setattr(PartialCompositor, "reflow", lambda *a: reflows.append(a) or reflow(*a))
        paragraph = ui.last.query_one(GrowingParagraph)

        def rows():
            return len(paragraph.content.wrap(paragraph.size.width))

        before = rows()
        while rows() < before + 2 * (CROWDED_RESERVE + 1):
            assert ui.session.answers.generating  # or it would wait for rows that never come
            ui.client.step(6)
            await ui.app.frame_clock.tick_once()
            await ui.pilot.pause()
        assert len(reflows) == 2
        ui.client.finish()
        await ui.until(lambda: not ui.session.answers.generating, "the end of the answer")
        await ui.until(lambda: paragraph.size.height == rows(), "the reserve given back")


@pytest.mark.parametrize(("others", "pause"), [(0, FIGURES_S), (CROWD, CROWDED_FIGURES_S)])
async def test_figures_wait_for_their_turn_while_text_does_not(screen, monkeypatch, others, pause):
    async with screen(["word "] * 400, size=(160, 45)) as ui:
        await ui.ask("question")
        for _ in range(others):
            ui.client.submit(Request((1, 2, 3), SamplingParams()))
        ui.client.step()
        await ui.shown("word")
        shown = []
        show = KvPane.show
        monkeypatch.setattr(KvPane, "show", lambda *a, **b: shown.append(a) or show(*a, **b))
        ui.client.step(3)
        ui.clock.now += 0.9 * pause
        await ui.shown("word word word word")
        assert not shown
        ui.clock.now += 0.2 * pause
        await ui.until(lambda: shown, "the figures")


async def test_changing_blocks_are_drawn_at_the_rate_of_their_governor(screen, monkeypatch):
    monkeypatch.setattr("app.tui.presenter.thread_time", lambda: 0.0)
    async with screen(["word "] * 4000, size=(160, 45)) as ui:
        await ui.ask("question")
        ui.client.step()
        await ui.shown("word")
        governor = ui.app.drawing.presenter.map_governor
        written = 0
        drawn = set()
        redraw = KvMap._redraw

        def redrawn(self):
            changed = redraw(self)
            if changed:
                drawn.add(ui.clock.now)
                ui.app.pace.queued(written)
                ui.app.pace.wrote(written)
            return changed

        monkeypatch.setattr(KvMap, "_redraw", redrawn)

        async def frames(count):
            drawn.clear()
            for _ in range(count):
                ui.client.step(BLOCK_SIZE)  # a block more
                ui.clock.now += 0.1
                await ui.app.frame_clock.tick_once()
            return len(drawn)

        assert await frames(20) >= 19
        written = 2 * MAX_BYTES
        await frames(30)
        assert governor.hz == RATES_HZ[-1]
        assert await frames(20) == pytest.approx(2 * RATES_HZ[-1], abs=1)
        written = 0
        await frames(80)
        assert governor.hz == RATES_HZ[0]


@pytest.mark.parametrize("others", [0, CROWD])
async def test_under_load_the_engine_yields_a_core_while_the_screen_draws(
    screen, monkeypatch, others
):
    async with screen(["word "] * 400) as ui:
        await ui.ask("question")
        for _ in range(others):
            ui.client.submit(Request((1, 2, 3), SamplingParams()))
        ui.client.step(300)
        await ui.shown("word word")
        await ui.pilot.pause(0.2)
        yielded, drawn = [], []  # cores yielded while the transcript and the screen were drawn

        @contextmanager
        def yield_core():
            yielded.append(True)
            try:
                yield
            finally:
                yielded.pop()

        monkeypatch.setattr(ui.client, "yield_core", yield_core)
        for owner, name in ((Transcript, "apply"), (PartialCompositor, "render_partial_update")):
            method = getattr(owner, name)

            def observed(*args, method=method, name=name, **options):
                drawn.append((name, len(yielded)))
                return method(*args, **options)

            monkeypatch.setattr(owner, name, observed)
        words = ui.text.count("word")
        ui.client.step(3)
        await ui.until(lambda: ui.text.count("word") > words, "more words")
        cores = int(bool(others))
        assert {("apply", cores), ("render_partial_update", cores)} == set(drawn)
        assert not yielded


async def test_after_an_answer_the_figure_rests_by_itself_and_figures_wait(screen, monkeypatch):
    monkeypatch.setattr(constants, "TEXTUAL_ANIMATIONS", "full")
    async with screen("Done.", size=(160, 45)) as ui:
        ui.clock.now += DWELL_S
        await ui.ask("question")
        ui.client.finish()
        ui.clock.now += DWELL_S
        figure = ui.app.view.avatars[1]
        await ui.until(lambda: figure.shown[0] is Mood.DONE, "the end of the answer")
        idle = ui.client.snapshot()
        monkeypatch.setattr(ui.client, "snapshot", lambda: idle)
        ui.clock.now += ONE_SHOT_S + DWELL_S
        await ui.until(lambda: figure.shown[0] is Mood.IDLE, "the end of the mood")
        drawings = []
        show = KvPane.show
        monkeypatch.setattr(KvPane, "show", lambda *a: drawings.append(a) or show(*a))
        ticks = ui.app.frame_clock.ticks
        await ui.until(lambda: ui.app.frame_clock.ticks > ticks + 2, "ticks of the animation")
        assert not drawings  # the clock stands still: only the figure could have moved
        ui.clock.now += 60.0
        await ui.settled()
        assert drawings


async def test_an_opened_pane_does_not_wait(screen):
    async with screen(["word "] * 400) as ui:
        await ui.ask("question")
        ui.client.step()
        await ui.shown("word")
        await ui.press("f5")
        await ui.shown("Throughput")


def blocks_of(markdown):
    """Text and, of what is more than text, class of every part, in order."""
    return [
        (type(part) if isinstance(part, MarkdownBlock) else None, content_of(part))
        for part in markdown.query("*")
    ]


def content_of(part):
    shown = getattr(part, "content", None)
    match shown:
        case CodeRows():
            return shown.code
        case TableRows():
            return shown.content
    return shown


@pytest.mark.parametrize("reserve", [0, CROWDED_RESERVE])
@pytest.mark.parametrize("seed", range(3))
async def test_text_in_pieces_becomes_what_it_is_at_once(seed, reserve):
    generator = random.Random(seed)
    text = TEXT + "\n\nSetext\n===\n\na | b\n--|--\n1 | 2\n\nlast *words\nof* it"
    pieces = []
    while text:
        length = generator.choice((1, 2, 5, 30))
        pieces.append(text[:length])
        text = text[length:]
    async with App().run_test(size=(60, 80)) as pilot:
        grown, at_once = AnswerMarkdown(), AnswerMarkdown()
        await pilot.app.mount(grown, at_once)
        grown.reserve = reserve
        for piece in pieces:
            await grown.grow(piece)
            if generator.random() < 0.1:
                await pilot.pause()
        grown.release()
        await at_once.update("".join(pieces))
        await pilot.pause()
        assert grown.source == at_once.source
        assert blocks_of(grown) == blocks_of(at_once)
        assert grown.size == at_once.size
        rows = [
            strip.text
            for part in (grown, at_once)
            for block in part.query(GrowingParagraph)
            for strip in block.render_lines(Region(0, 0, *block.outer_size))
        ]
        assert rows[: len(rows) // 2] == rows[len(rows) // 2 :]
