"""Surprisal, its steps, the tints, and the rows about tokens."""

import math

import pytest

from app.tui.glyphs import UNICODE
from app.tui.view.heat import build_figures, heat_step, surprisal, surprising
from app.tui.view.spans import plain, width
from app.tui.view.tints import PLAIN_ROLES, Tint, next_tint, tint_role
from app.tui.view.token_answer import build_alternatives, build_token_answer
from app.tui.view.token_bars import (
    build_alternative_lines,
    build_token_bar,
    build_token_header,
    quoted,
    share_text,
)
from engine.api.fork_price import ForkPrice
from engine.api.request import TopLogprob
from engine.conversations.token_sources import TokenSource
from engine.conversations.tokens import AnswerTokens

NAN = math.nan
CACHED, COMPUTED, DRAFT = TokenSource


def ln(share):
    return math.log(share)


def answer(texts, shares, topk=None, sources=None, **counts):
    logprobs = tuple(ln(share) if share else NAN for share in shares)
    ids = tuple(range(len(texts)))
    unknown = (None,) * len(texts)
    tokens = AnswerTokens(
        "node", ids, tuple(texts), logprobs, topk or ((),) * len(texts), sources or unknown
    )
    return build_token_answer(tokens, UNICODE, **counts)


@pytest.mark.parametrize(
    ("share", "bits", "step"),
    [
        (1.0, 0, 0), (0.5, 1, 2), (0.25, 2, 3), (1 / 16, 4, 4), (1 / 256, 8, 5), (2**-20, 20, 5),
        (2**-0.5, 0.5, 1),
    ],
)  # fmt: skip
def test_steps_of_the_heat_map(share, bits, step):
    assert surprisal(ln(share)) == pytest.approx(bits)
    assert heat_step(bits) == step


def test_an_unknown_probability_has_no_step():
    assert heat_step(surprisal(NAN)) is None
    assert surprisal(1e-9) == 0  # float16 may round a logarithm above zero


def test_perplexity_is_over_the_tokens_whose_probability_is_known():
    figures = build_figures((ln(0.5), NAN, ln(0.125)), ((), (), ()))
    assert figures.perplexity == pytest.approx(4)
    assert (figures.lowest, figures.lowest_share) == (2, pytest.approx(0.125))
    assert figures.entropy is None
    assert build_figures((NAN,), ((),)) is None


def test_entropy_counts_what_is_not_stored_as_one_alternative():
    top = (TopLogprob(1, ln(0.5)), TopLogprob(2, ln(0.25)))
    assert build_figures((ln(0.5), ln(1)), (top, ())).entropy == pytest.approx(1.5)


def test_surprising_tokens_are_local_maxima():
    assert surprising((3, 2.5, 0, 5, 6, 6, 1, NAN, 2.0)) == (0, 4, 8)
    assert surprising(()) == ()
    assert surprising((1.9, 1.0)) == ()


def test_the_header():
    top = (TopLogprob(1, ln(0.5)), TopLogprob(2, ln(0.5)))
    shown = answer(
        ["A", " b"], [0.5, 0.125], (top, ()), prompt_tokens=852, cached_tokens=812
    )  # fmt: skip
    figures = 'perplexity 4.00 · entropy 1.00 bits · least likely "·b" 12.5 % at 2'
    full = f"{figures} · prompt 812 cached + 40 computed"
    assert plain([build_token_header(shown, None, UNICODE, 110)]) == full
    assert plain([build_token_header(shown, None, UNICODE, len(full) - 1)]) == figures
    assert plain([build_token_header(shown, None, UNICODE, 9)]) == "perplexi…"
    unknown = build_token_header(answer(["A"], [None]), Tint.SURPRISAL, UNICODE, 110)
    assert plain([unknown]) == "no probabilities are stored with this answer"


def test_the_header_of_the_sources_is_their_legend():
    shown = answer(
        ["A", " b", "c", "d"], [0.5] * 4, sources=(CACHED, COMPUTED, DRAFT, DRAFT),
        prompt_tokens=853, cached_tokens=812,
    )  # fmt: skip
    line = build_token_header(shown, Tint.SOURCE, UNICODE, 110)
    legend = " accepted draft  2 ·  computed  1 ·  cached  1"
    assert plain([line]) == f"{legend} · prompt 812 cached + 41 computed"
    colored = {span.text.strip(): span.style for span in line if span.style.startswith("on ")}
    assert colored == {
        "accepted draft": "on $source-draft",
        "computed": "on $source-computed",
        "cached": "on $source-cached",
    }
    assert plain([build_token_header(shown, Tint.SOURCE, UNICODE, len(legend) + 3)]) == legend
    for cells in range(60):
        assert width(build_token_header(shown, Tint.SOURCE, UNICODE, cells)) <= cells


def test_the_legend_of_an_answer_without_cached_or_known_tokens():
    computed = answer(["A"], [0.5], sources=(COMPUTED,))
    legend = plain([build_token_header(computed, Tint.SOURCE, UNICODE, 110)])
    assert legend == " accepted draft  0 ·  computed  1"
    unknown = build_token_header(answer(["A"], [0.5]), Tint.SOURCE, UNICODE, 110)
    assert plain([unknown]) == "the sources of these tokens are not stored"


def test_each_source_has_a_role_and_an_unknown_one_has_none():
    shown = answer(["a", "b", "c", "d"], [0.5] * 4, sources=(CACHED, COMPUTED, DRAFT, None))
    roles = [tint_role(shown, unit, Tint.SOURCE) for unit in range(4)]
    assert roles == ["source-cached", "source-computed", "source-draft", None]
    assert len({PLAIN_ROLES[role] for role in roles[:3]}) == 3
    assert tint_role(shown, 0, Tint.SURPRISAL) == "heat-2"
    assert tint_role(shown, 0, None) is None


def test_the_tints_follow_each_other():
    assert next_tint(None) is Tint.SURPRISAL
    assert next_tint(Tint.SURPRISAL) is Tint.SOURCE
    assert next_tint(Tint.SOURCE) is None


def test_the_bar_of_the_cursor_names_the_source():
    shown = answer(["A", "b", "c"], [0.5] * 3, sources=(DRAFT, COMPUTED, None))
    lines = [plain([build_token_bar(shown, at, None, (), UNICODE, 100)]) for at in range(3)]
    assert "1.00 bits  accepted draft  " in lines[0]
    assert "1.00 bits  computed  " in lines[1]
    assert lines[2].endswith("1.00 bits  ")
    hints = [("f", "fork", ""), (".", "alternatives", ""), ("t", "tint", "")]
    for cells in range(40, 80):
        line = plain([build_token_bar(shown, 0, None, hints, UNICODE, cells)])
        assert "accepted draft" not in line or "alternatives" in line


def test_the_bar_of_the_cursor_names_the_price_and_fits():
    shown = answer(["A", "क", "\u093f"], [0.5, 0.5, 0.25])
    hints = [("f", "fork", ""), (".", "alternatives", "")]
    line = build_token_bar(shown, 1, ForkPrice(1, 1, None), hints, UNICODE, 100)
    assert plain([line]).split("  ") == [
        ' token 2-3/3  "कि"'.partition("  ")[0], '"कि"', "12.5 %", "3.00 bits",
        "f fork 1 tok+1 blk", ". alternatives", "",
    ]  # fmt: skip
    for cells in range(60):
        narrow = build_token_bar(shown, 1, None, hints, UNICODE, cells)
        assert width(narrow) <= cells


def test_alternatives_contain_the_token_of_the_answer():
    shown = answer(["A", " b"], [0.5, 0.125])
    top = (TopLogprob(7, ln(0.5)), TopLogprob(8, ln(0.25)))
    rows = build_alternatives(shown, 1, top, (" c", "\n"), UNICODE)
    assert [(row.token_id, row.text, row.chosen) for row in rows] == [
        (7, " c", False), (8, "⏎", False), (1, " b", True),
    ]  # fmt: skip
    lines = build_alternative_lines(rows, 0, UNICODE, 46)
    assert plain(lines).split("\n") == [
        '▸ ━━━━━━──────  50.0 % "·c"',
        '  ━━━─────────  25.0 % "⏎"',
        '  ━━──────────  12.5 % "·b" ●',
    ]
    assert all(width(line) <= 46 for line in lines)
    own = (TopLogprob(1, ln(0.125)),)
    assert [row.chosen for row in build_alternatives(shown, 1, own, (" b",), UNICODE)] == [True]


def test_shares_and_quotes():
    assert [share_text(ln(one)) for one in (1, 0.1234, 0.0001)] == ["100.0 %", "12.3 %", "< 0.1 %"]
    assert share_text(NAN) == "?"
    assert quoted("  a b ", UNICODE) == '"··a b·"'
    assert quoted("   ", UNICODE) == '"···"'
    assert quoted("x" * 99, UNICODE, 5) == '"xxxx…"'
