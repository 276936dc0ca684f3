"""Cards of answers side by side: columns, text, figures, states and the saved prefill."""

import pytest
from rich.cells import cell_len

from app.tui.glyphs import ASCII, UNICODE
from app.tui.view.cards import (
    CardFacts,
    build_card,
    build_cards_head,
    build_saving,
    card_page,
)
from app.tui.view.spans import plain, width
from engine.conversations.tree import NodeKind, NodeStatus, NodeView


def answer(text="", status=NodeStatus.STREAMING, **fields):
    given = {
        "id": "a", "kind": NodeKind.ASSISTANT, "text": text, "status": status, "finish": None,
        "error": None, "created_at": 0.0, "n_prompt": 1812, "n_gen": 0, "ttft_us": None,
        "decode_us": None, "model": "m",
    }  # fmt: skip
    return NodeView(**given | fields)


def card(node, perplexity=None, *, open=False):  # noqa: A002
    return CardFacts(3, node, open, perplexity)


@pytest.mark.parametrize(
    ("cells", "count", "selected", "shown"),
    [
        (116, 4, 0, (0, 4, 1)),
        (116, 9, 3, (0, 4, 3)),
        (116, 9, 8, (8, 9, 3)),
        (70, 4, 2, (2, 4, 2)),
        (96, 4, 0, (0, 4, 1)),
        (40, 4, 2, (2, 3, 4)),
        (20, 1, 0, (0, 1, 1)),
    ],
)
def test_the_page_holds_the_selected_card_and_as_many_as_fit(cells, count, selected, shown):
    page = card_page(count, selected, cells)
    assert (page.start, page.end, page.pages) == shown
    assert page.start <= selected < page.end


def test_a_running_card_shows_state_speed_text_and_figures():
    node = answer("the river flows\nto the sea", n_gen=41, decode_us=1_000_000)
    rows = plain(build_card(card(node, 3.2, open=True), 26, 5, UNICODE)).split("\n")
    assert rows == [
        "3 ▸ ≋ running   40.0 tok/s",
        "the river flows",
        "to the sea",
        "",
        "41 tokens · ppl 3.20",
    ]


@pytest.mark.parametrize(
    ("node", "words"),
    [
        (answer(), "⋯ reading"),
        (answer("x"), "≋ running"),
        (answer("x", NodeStatus.DONE, finish="stop"), "● done"),
        (answer("x", NodeStatus.DONE, finish="length"), "■ max tokens"),
        (answer("x", NodeStatus.STOPPED, finish="abort"), "■ stopped"),
        (answer("x", NodeStatus.STOPPED, finish="repetition"), "■ repetition"),
        (answer("x", NodeStatus.ERROR, error="bad"), "✗ failed"),
    ],
)
def test_each_state_has_a_glyph_and_a_word(node, words):
    assert words in plain(build_card(card(node), 30, 4, UNICODE))


def test_the_speed_is_shown_where_it_does_not_shorten_the_state():
    node = answer("x", NodeStatus.DONE, finish="stop", n_gen=101, decode_us=1_000_000)
    assert "● done    100 tok/s" in plain(build_card(card(node), 21, 4, UNICODE))
    assert plain(build_card(card(node), 17, 4, UNICODE)[:1]).strip() == "3 ● done"


@pytest.mark.parametrize("glyphs", [UNICODE, ASCII])
@pytest.mark.parametrize(
    "text",
    [
        "日本語" * 200,
        "x" * 3000,
        "\x1b]52;c;aGk=\x07safe \x1b[2J\x9b31mtext\r\u202e",
        "नमस्ते प्रवाह " * 50,
    ],
)
@pytest.mark.parametrize(("cells", "rows"), [(26, 8), (10, 3), (1, 2)])
def test_hostile_and_wide_text_stays_within_the_card(text, cells, rows, glyphs):
    lines = build_card(card(answer(text, n_gen=9), 1.0), cells, rows, glyphs)
    assert len(lines) == rows
    assert all(width(line) <= max(cells, 2) for line in lines)
    assert not any(
        ord(letter) < 32 or letter in "\x9b\u202e" for letter in plain(lines) if letter != "\n"
    )


def test_the_saving_is_what_the_engine_reports():
    nodes = [answer(n_cached=0), *[answer(n_cached=1811)] * 3]
    assert build_saving(nodes) == "4 × 1 812 → 1 815 prefilled"
    assert build_saving([*nodes, answer()]) == ""
    assert build_saving(nodes[:1]) == ""


def test_the_head_counts_answers_and_names_the_page():
    nodes = [answer(n_cached=0), *[answer("x", NodeStatus.DONE, n_cached=1811)] * 3]
    head = build_cards_head(nodes, card_page(4, 2, 70), UNICODE, 80, ())
    assert plain([head]).rstrip() == "4 answers, 1 running  3–4 of 4  4 × 1 812 → 1 815 prefilled"
    assert cell_len(plain([head])) == 80
    alone = build_cards_head(nodes, card_page(4, 3, 75), UNICODE, 80, ())
    assert "running  4 of 4  " in plain([alone])
