"""Header, status bar, stats and message rows: their words, and that they fit."""

import os
import time
from dataclasses import replace

import pytest

from app.tui.glyphs import ASCII, UNICODE
from app.tui.view.bars import (
    StatusFacts,
    build_context,
    build_header,
    build_load_line,
    build_reason,
    build_status,
    build_timing,
    build_too_small,
)
from app.tui.view.conversations import build_row
from app.tui.view.key_hints import KeyHint, build_hints
from app.tui.view.messages import build_head, build_mark, build_waiting
from app.tui.view.spans import plain, width
from app.tui.view.stats import History, build_stats, build_vitals
from app.tui.widgets.loading import build_welcome
from app.tui.widgets.queued import build_queued
from engine.api.snapshot import EngineSnapshot, EngineState, SessionCounts, Totals
from engine.conversations.tree import NodeKind, NodeStatus, NodeView, TreeSummary
from tests.fakes.fake_client import MODEL, RATES, FakeClient

READY = replace(FakeClient().snapshot(), rates=RATES, running=1)
LOADING = EngineSnapshot(step=0, time=0.0, state=EngineState.LOADING, loading_progress=0.25)
FAILED = replace(LOADING, state=EngineState.FAILED, last_error="No \x1b[2J such file.")
FACTS = StatusFacts(
    "PROMPT", 812, True, (KeyHint("ctrl+c", "stop", "app.stop"), KeyHint("f1", "keys"))
)
WIDTHS = (40, 80, 100, 160, 200)

ANSWER = NodeView(
    id="1",
    kind=NodeKind.ASSISTANT,
    text="hello",
    status=NodeStatus.DONE,
    finish="stop",
    error=None,
    created_at=0.0,
    n_prompt=12,
    n_gen=64,
    ttft_us=120_000,
    decode_us=1_500_000,
    model="fake \x1b[31m",
)


@pytest.mark.parametrize("cells", WIDTHS)
@pytest.mark.parametrize("snapshot", [READY, LOADING, FAILED])
def test_bars_are_never_wider_than_the_screen(snapshot, cells):
    for glyphs in (UNICODE, ASCII):
        assert width(build_header(snapshot, "a title " * 20, glyphs, cells)) <= cells
        assert width(build_status(snapshot, FACTS, glyphs, cells)) <= cells


@pytest.mark.parametrize("cells", WIDTHS)
def test_the_address_of_the_served_engine_is_shown_whole_where_it_fits(cells):
    serving = "http://127.0.0.1:65535"
    line = build_header(READY, "a title", UNICODE, cells, serving=serving)
    assert width(line) <= cells
    assert cells < 44 or f"serving {serving}" in plain([line])
    assert serving not in plain([build_header(READY, "a title", UNICODE, cells)])


def test_the_header_counts_cached_and_drafted_tokens_where_there_is_room():
    totals = Totals(
        prefix_cache_queries=100, prefix_cache_hits=87, draft_tokens=50, accepted_draft_tokens=31
    )
    busy = replace(READY, totals=totals)
    shown = plain([build_header(busy, "a title", UNICODE, 160)])
    assert shown.endswith("KV 0% · hit 87% · draft 62% ")
    assert "hit" not in plain([build_header(busy, "a title", UNICODE, 80)])
    assert "hit" not in plain([build_header(READY, "a title", UNICODE, 160)])


@pytest.mark.parametrize("cells", [30, *WIDTHS])
def test_figures_are_never_wider_than_their_pane(cells):
    for line in build_stats(READY, History(), UNICODE, cells):
        assert width(line) <= cells
    for line in build_vitals(READY, History(), UNICODE, max(20, cells // 4)):
        assert width(line) <= max(20, cells // 4)


@pytest.mark.parametrize("cells", [30, *WIDTHS])
def test_the_stats_say_what_sessions_wait_for_and_have_lost(cells):
    counts = SessionCounts(expected=7, held_requests=3, lost_away=1, lost_space=20)
    shown = build_stats(replace(READY, sessions=counts), History(), UNICODE, cells)
    assert all(width(line) <= cells for line in shown)
    if cells >= 160:
        words = " ".join(plain(shown).split())
        assert "sessions 7 3 held, expected back" in words
        assert "lost 21 1 away, 20 no space" in words
    assert "held" not in plain(build_stats(READY, History(), UNICODE, cells))


def test_the_header_names_model_and_figures():
    words = plain([build_header(READY, "rivers", UNICODE, 120)])
    for word in (
        "Pravāha",
        MODEL.name,
        MODEL.weight_format,
        "rivers",
        "42.0 tok/s",
        "1 run",
        "KV 0%",
    ):
        assert word in words


def test_the_status_bar_says_mode_state_context_and_speed():
    words = plain([build_status(READY, FACTS, UNICODE, 120)])
    for word in ("PROMPT", "≋ answering", "ctx 812/8.2k", "10%", "42.0 tok/s", "ctrl+c stop"):
        assert word in words


@pytest.mark.parametrize(
    ("snapshot", "words"),
    [
        (LOADING, "○ loading 25%"),
        (FAILED, "✗ failed"),
        (replace(READY, running=0), "● ready"),
        (READY, "≋ working"),
        (replace(READY, state=EngineState.DRAINING), "○ draining"),
    ],
)
def test_every_state_has_a_glyph_and_a_word(snapshot, words):
    facts = replace(FACTS, generating=False)
    assert words in plain([build_status(snapshot, facts, UNICODE, 120)])


@pytest.mark.parametrize(
    ("used", "style"), [(10, "$primary"), (80, "$warning"), (95, "$error"), (120, "$error")]
)
def test_the_context_bar_warns_with_the_number_beside_it(used, style):
    bar = build_context(used, 100, UNICODE)
    assert bar[2].style == style
    assert plain([bar]).endswith(f"{used}%")


def test_why_the_engine_failed_takes_the_place_of_the_hints():
    words = plain([build_status(FAILED, FACTS, UNICODE, 120)])
    assert "No such file." in words
    assert "f1" not in words
    assert "ctx" not in words
    assert build_reason(FAILED, build_status(FAILED, FACTS, UNICODE, 120), UNICODE, 120) == []


@pytest.mark.parametrize("cells", [40, 80, 120])
def test_a_reason_that_does_not_fit_has_rows_of_its_own(cells):
    sentence = (
        "The server at http://10.11.12.13:8000 does not answer (ConnectError), and nothing "
        "came from it. Trying again."
    )
    snapshot = replace(FAILED, last_error=sentence)
    status = build_status(snapshot, FACTS, UNICODE, cells)
    rows = build_reason(snapshot, status, UNICODE, cells)
    assert " ".join(plain([row]).strip(" ✗") for row in rows) == sentence
    assert all(width(row) <= cells for row in [status, *rows])
    assert "failed" in plain([status])
    assert "f1" in plain([status]) or cells == 40


def test_a_reason_of_many_rows_is_shortened_at_its_end():
    snapshot = replace(FAILED, last_error="word " * 200)
    rows = build_reason(snapshot, (), UNICODE, 60)
    assert len(rows) == 4
    assert plain(rows[-1:]).endswith("…")


@pytest.mark.parametrize("cells", [40, 60, 80, 100, 140])
def test_the_header_shows_the_whole_address_of_the_server(cells):
    line = build_header(READY, "rivers", UNICODE, cells, server="http://127.0.0.1:8000")
    assert "http://127.0.0.1:8000" in plain([line])
    assert width(line) <= cells


def test_the_header_names_the_server():
    words = plain([build_header(READY, "rivers", UNICODE, 140, server="http://over.there:8000")])
    assert "http://over.there:8000" in words
    assert "rivers" in words


def test_hints_that_do_not_fit_are_left_out_whole():
    hints = (KeyHint("a", "one"), KeyHint("b", "two"))
    assert plain([build_hints(hints, 8)]) == "a one  "
    assert plain([build_hints(hints, 3)]) == ""


def test_prices_are_left_out_where_they_have_no_room():
    hints = (
        KeyHint("f", "fork", price="1 812 tok"), KeyHint("f1", "keys"),
        KeyHint("r", "again", price="1 tok"),
    )  # fmt: skip
    assert plain([build_hints(hints, 42)]) == "f fork 1 812 tok  f1 keys  r again 1 tok  "
    assert plain([build_hints(hints, 41)]) == "f fork 1 812 tok  f1 keys  r again  "
    assert plain([build_hints(hints, 26)]) == "f fork  f1 keys  r again  "


@pytest.mark.parametrize(
    ("cells", "row"),
    [
        (100, " NAVIGATE   ● ready  ctx 812/8.2k ━───────── 10%  f fork 1 tok+1 blk  f1 keys  r again 9 tok"),
        (80, " NAVIGATE   ● ready  ctx 812/8.2k ━──── 10%  f fork 1 tok+1 blk  f1 keys"),
        (60, " NAVIGATE   ● ready  ctx 10%  f fork 1 tok+1 blk  f1 keys"),
        (50, " NAVIGATE   ● ready  ctx 10%  f fork  f1 keys"),
        (40, " NAVIGATE   ● ready  f fork  f1 keys"),
    ],
)  # fmt: skip
def test_narrow_terminals_have_room_for_two_hints(cells, row):
    hints = (
        KeyHint("f", "fork", price="1 tok+1 blk"), KeyHint("f1", "keys"),
        KeyHint("r", "again", price="9 tok"), KeyHint("ctrl+p", "commands"),
    )  # fmt: skip
    facts = StatusFacts("NAVIGATE", 812, False, hints)
    status = plain([build_status(replace(READY, running=0), facts, UNICODE, cells)])
    assert status.split() == row.split()


def test_too_small_is_one_line_that_fits():
    assert width(build_too_small(12)) <= 12


def test_a_failed_load_tells_its_reason_made_safe():
    assert plain(build_load_line(FAILED, UNICODE, 40)) == "✗ No such file."


@pytest.mark.parametrize(
    ("error", "words"),
    [
        ("x could not be loaded: no memory.", "x could not be loaded: no memory. /model chooses"),
        (None, "No model is loaded: /model chooses one."),
    ],
)
def test_without_a_model_the_screen_says_what_to_do(error, words):
    unloaded = replace(LOADING, state=EngineState.UNLOADED, last_error=error)
    status = build_status(unloaded, FACTS, UNICODE, 40)
    rows = build_reason(unloaded, status, UNICODE, 40)
    assert words in " ".join(plain([row])[3:].strip() for row in rows)
    welcome = build_load_line(unloaded, UNICODE, 40)
    assert words in " ".join(plain([row])[2:].strip() for row in welcome)
    assert all(width(row) <= 40 for row in [*rows, *welcome])


def test_the_welcome_names_model_and_first_keys():
    words = plain(build_welcome(READY, UNICODE, 80))
    assert "135M parameters · 8192 tokens of context" in words
    assert "show every key" in words


@pytest.mark.parametrize(
    ("figures", "text"),
    [
        ((64, 120_000, 1_500_000), "64 tokens · 120 ms to first token · 42.0 tok/s"),
        ((1, 120_000, 0), "1 token · 120 ms to first token"),
        ((0, None, None), ""),
    ],
)
def test_timings(figures, text):
    assert build_timing(*figures) == text


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({}, "64 tokens"),
        ({"status": NodeStatus.STREAMING}, ""),
        ({"status": NodeStatus.STOPPED, "finish": "abort"}, "■ stopped"),
        (
            {"status": NodeStatus.STOPPED, "finish": "repetition"},
            "■ stopped: repetition; r to retry",
        ),
        (
            {"status": NodeStatus.STOPPED, "finish": None},
            "■ interrupted: the text up to there is kept",
        ),
        ({"status": NodeStatus.ERROR, "error": "out \x1b]0;x\x07of blocks"}, "✗ out of blocks"),
        ({"finish": "length"}, "■ max tokens reached"),
        ({"finish": "context_full"}, "■ context full"),
        ({"kind": NodeKind.USER}, ""),
    ],
)
def test_how_an_answer_ended(changes, words):
    assert plain([build_mark(replace(ANSWER, **changes), UNICODE)]).startswith(words)


@pytest.mark.parametrize(
    ("kind", "words"),
    [(NodeKind.ASSISTANT, "≋ fake"), (NodeKind.USER, "❯ you"), (NodeKind.TOOL, "§ tool")],
)
def test_heads_name_the_speaker_and_the_time(kind, words, monkeypatch):
    monkeypatch.setitem(os.environ, "TZ", "UTC")
    time.tzset()
    assert plain([build_head(replace(ANSWER, kind=kind), UNICODE)]) == f"{words}  00:00"


def test_waiting_for_the_first_token():
    waiting = replace(ANSWER, status=NodeStatus.STREAMING, text="", n_prompt=12)
    assert plain([build_waiting(waiting, UNICODE)]) == "⋯ reading 12 tokens"
    sending = replace(waiting, n_prompt=None, model=None)
    assert plain([build_waiting(sending, UNICODE)]) == "⋯ sending"
    agent = replace(sending, model="security_audit")
    assert plain([build_waiting(agent, UNICODE)]) == "⋯ security_audit is running; f4 shows it"


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({}, ""),
        ({"finish": "length"}, "■ cut off: max tokens reached"),
        ({"finish": "context_full"}, "■ cut off: context full"),
        ({"status": NodeStatus.STOPPED, "finish": "abort"}, "■ cut off: stopped"),
        ({"status": NodeStatus.ERROR, "error": "no memory"}, "■ cut off: no memory"),
        ({"text": " "}, "■ nothing was written"),
    ],
)
def test_a_summary_that_is_incomplete_says_so(changes, words):
    summary = replace(ANSWER, kind=NodeKind.SUMMARY, **changes)
    assert plain([build_mark(summary, UNICODE)]).startswith(words)


def test_a_row_of_the_list():
    tree = TreeSummary("1", "日本 " * 20, 1000.0, 1)
    rows = build_row(tree, 1300.0, UNICODE, 24, current=True)
    assert plain(rows).splitlines()[1] == "  5m · 1 message"
    assert all(width(row) <= 24 for row in rows)
    assert plain(rows).startswith("▸ 日本")


def test_queued_messages_show_the_newest_three():
    rows = build_queued(["a", "b", "c", "d\nd"], UNICODE, 40)
    assert plain(rows) == "⋯ b\n⋯ c\n⋯ d d\n  esc takes the last one back"
    assert build_queued([], UNICODE, 40) == []
