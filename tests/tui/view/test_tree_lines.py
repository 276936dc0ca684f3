"""Rows of the branch tree, the breadcrumb, prices and hints, without a screen."""

import os
from dataclasses import replace

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from rich.cells import cell_len

from app.text.safe_text import safe_line
from app.tui.glyphs import ASCII, UNICODE
from app.tui.hints import build_hints_of
from app.tui.view.crumbs import build_crumbs
from app.tui.view.messages import SiblingPlace, build_head
from app.tui.view.price import build_paid, build_price
from app.tui.view.spans import plain, width
from app.tui.view.tree_lines import (
    Residency,
    TreeMarks,
    TreeRow,
    build_tree_line,
    build_tree_rows,
    differences,
    names_by_node,
    residency_of,
)
from engine.api.fork_price import ForkPrice
from engine.conversations.branch_tree import BranchTree
from engine.conversations.tree import NodeKind, NodeStatus, NodeView


def view(node_id, parent, text=None, kind=None, **changes):
    kind = kind or (NodeKind.USER if len(node_id) % 2 else NodeKind.ASSISTANT)
    return NodeView(
        node_id, kind, text or f"text {node_id}", changes.pop("status", NodeStatus.DONE), "stop",
        None, 0.0, None, None, None, None, None, parent_id=parent, **changes,
    )  # fmt: skip


def tree_of(*parents, head, **options):
    """A tree from `child<parent` pairs; a root stands alone."""
    pairs = [one.partition("<")[::2] for one in parents]
    return BranchTree(
        [view(child, parent or None) for child, parent in pairs], {}, {"main": head, "HEAD": head}, **options
    )  # fmt: skip


def drawn(tree, glyphs=UNICODE, cells=30, **options):
    marks = TreeMarks(
        head=tree.head,
        path=tree.path(tree.head),
        names=names_by_node(tree.branches()),
    )
    rows = build_tree_rows(tree, glyphs, **options)
    return [
        plain([build_tree_line(row, tree[row.node_id], marks, glyphs, cells)]).rstrip()
        for row in rows
    ]


FORKED = ("a", "bb<a", "c<bb", "dd<c", "e<bb", "ff<e", "gg<e")


def test_a_chain_stays_flat():
    assert drawn(tree_of("a", "bb<a", "c<bb", head="c")) == [
        "• ❯ text a",
        "• ≋ text bb",
        "▸ ❯ text c                main",
    ]


def test_the_open_branch_comes_first_and_forks_indent():
    assert drawn(tree_of(*FORKED, head="ff")) == [
        "• ❯ text a",
        "• ≋ text bb",
        "• ├ ❯ text e",
        "▸ │ ├ ≋ text ff           main",
        "  │ └ ≋ text gg",
        "  └ ❯ text c",
        "    ≋ text dd",
    ]


def test_folded_and_hoisted_subtrees():
    tree = tree_of(*FORKED, head="ff")
    assert drawn(tree, folded={"e"})[2:] == [
        "• ├ ❯ text e               +2",
        "  └ ❯ text c",
        "    ≋ text dd",
    ]
    assert drawn(tree, hoisted="c") == ["  ❯ text c", "  ≋ text dd"]


def test_ascii_rows_are_ascii():
    assert all(line.isascii() for line in drawn(tree_of(*FORKED, head="ff"), ASCII))


@pytest.mark.parametrize("cells", [8, 13, 20, 28, 60])
@pytest.mark.parametrize(
    "text", ["नमस्ते प्रवाह " * 9, "日本語" * 40, "👨‍👩‍👧 family " * 20, "\x1b[2Jx\x9b1m" * 50, ""]
)
def test_every_row_fits_and_is_clean(cells, text):
    node = view("a", None, text, label=text or None, rating=1)
    marks = TreeMarks(
        head="a", path={"a"}, names={"a": (text or "main", "x")}, residency={"a": Residency.PARTLY}
    )
    for indent in ("", "├ ", "│ " * 40):
        line = build_tree_line(TreeRow("a", indent, True, 7), node, marks, UNICODE, cells)
        assert width(line) <= cells
        assert "\x1b" not in plain([line])
        assert "\x9b" not in plain([line])


def test_marks_of_nodes():
    def line(node, **marks):
        return plain([build_tree_line(TreeRow("a"), node, TreeMarks(**marks), UNICODE, 40)])

    assert "★ [idea] text a" in line(view("a", None, label="idea", rating=1))
    assert "⋯ text a" in line(view("a", None), running={"a"})
    assert "✗ text a" in line(view("a", None, status=NodeStatus.ERROR))
    assert line(view("a", None), head="a").rstrip().endswith("HEAD")
    assert line(view("a", None), names={"a": ("fork", "old-main")}).rstrip().endswith("old-main +1")
    for residency, glyph in zip(Residency, "●◐○", strict=True):
        assert line(view("a", None), residency={"a": residency}).endswith(f" {glyph}")


def test_a_deep_and_wide_tree_is_ordered_without_recursion():
    nodes, heads = [view("0", None)], []
    for branch in range(500):
        parent = "0"
        for depth in range(20):
            name = f"{branch}-{depth}"
            nodes.append(view(name, parent))
            parent = name
        heads.append(parent)
    tree = BranchTree(nodes, {}, {"main": heads[250], "HEAD": heads[250]})
    rows = build_tree_rows(tree, UNICODE)
    assert len(rows) == 10_001
    assert rows[1].node_id == "250-0"
    assert max(cell_len(row.indent) for row in rows) == 2
    chain = BranchTree(
        [view(str(i), str(i - 1) if i else None) for i in range(10_000)], {}, {"HEAD": "9999"}
    )
    assert len(build_tree_rows(chain, UNICODE)) == 10_000


def test_residency_follows_from_the_price():
    assert residency_of(400, 1, 16) is Residency.RESIDENT
    assert residency_of(400, 16, 16) is Residency.RESIDENT
    assert residency_of(400, 17, 16) is Residency.PARTLY
    assert residency_of(400, 400, 16) is Residency.COLD


def test_the_breadcrumb_names_branch_and_siblings():
    tree = tree_of(*FORKED, head="ff")
    assert plain([build_crumbs(tree, UNICODE, 80)]) == "main › 2/2 › 1/2"
    assert plain([build_crumbs(tree, UNICODE, 18)]) == "main › … › 1/2"
    assert build_crumbs(tree_of("a", "bb<a", head="bb"), UNICODE, 80) == ()


def test_the_head_of_a_message_shows_its_place():
    node = view("a", None, label="idea", rating=1)
    head = plain([build_head(node, UNICODE, SiblingPlace(2, 3))])
    assert head.startswith("❯ you")
    assert head.endswith("  ◀ 2/3 ▶  ★  [idea]")
    actions = [span.action for span in build_head(node, UNICODE, SiblingPlace(1, 2)) if span.action]
    assert actions == ["app.perform_later('go','sibling',1,'a')"]
    assert "1/1" not in plain([build_head(node, UNICODE)])


@pytest.mark.parametrize(
    ("price", "text"),
    [
        (ForkPrice(1, 1, 0.001), "1 tok+1 blk"),
        (ForkPrice(1812, 0, 0.412), "1 812 tok ≈ 412 ms"),
        (ForkPrice(30, 0, None), "30 tok"),
        (ForkPrice(1, 0, 0.2, 9), "1 tok+9 blk swapped in ≈ 200 ms"),
        (ForkPrice(412, 0, 0.6, 0, 19 << 20), "412 tok+19 MiB state ≈ 600 ms"),
    ],
)
def test_prices(price, text):
    assert build_price(price) == text


def test_what_was_paid():
    paid = build_paid("Fork", 1812, 1800)
    assert paid == "Fork: 12 of 1 812 prompt tokens computed, 1 800 from the cache."


@pytest.mark.parametrize(
    "pane",
    [
        "prompt",
        "empty",
        "messages",
        "selected",
        "branches",
        "cards",
        "compare",
        "list",
        "kv",
        "stats",
    ],
)
def test_the_key_of_the_help_is_the_second_hint_of_every_pane(pane):
    for generating in (False, True):
        assert build_hints_of(pane, {}, generating=generating)[1].label == "keys"


@pytest.mark.parametrize("pane", ["messages", "selected", "branches", "cards"])
def test_after_a_mark_the_hints_say_how_to_go_on(pane):
    def first_two(marked):
        hints = build_hints_of(pane, {}, marked=marked)
        return [hint.label for hint in hints if hint.label != "keys"][:2]

    assert first_two(1)[0] == "mark another"
    assert [hint.label for hint in build_hints_of(pane, {}, marked=1)].count("mark") == 0
    assert first_two(2) == ["compare", "shared KV"]


def test_hints_carry_the_price_and_stop_comes_first():
    hints = build_hints_of("selected", {}, generating=True, prices={"fork": "1 tok"})
    assert [(one.key, one.label, one.price) for one in hints[:3]] == [
        ("ctrl+c", "stop", ""), ("f1", "keys", ""), ("f", "fork", "1 tok"),
    ]  # fmt: skip
    assert hints[2].action == "app.perform('tree','fork')"
    assert len({one.key for one in hints}) == len(hints)


def told_apart(*texts, cells=30):
    """The rows of siblings with these texts."""
    row = TreeRow("n", begins_branch=True)
    return [
        plain(
            [build_tree_line(row, view("nn", "a", text), TreeMarks(), UNICODE, cells, start=start)]
        )
        for text, start in zip(texts, differences(texts), strict=True)
    ]


def test_siblings_that_begin_alike_are_told_apart_by_where_they_differ():
    code = "```python\nimport re\n\ndef slug(text):\n    return "
    rows = told_apart(f"{code}re.sub('x', text)", f"{code}text.lower()", f"{code}text.strip()")
    assert [row[4:] for row in rows] == ["…re.sub('x', text)", "…text.lower()", "…text.strip()"]


def test_siblings_that_begin_differently_are_shown_from_their_beginning():
    rows = told_apart("the river flows down", "a river flows down")
    assert [row[4:] for row in rows] == ["the river flows down", "a river flows down"]


def test_a_sibling_that_only_ends_earlier_shows_its_end():
    rows = told_apart("one two three four five six", "one two three four five six seven")
    assert [row[4:] for row in rows] == ["…six", "…seven"]


def test_siblings_that_fit_are_shown_whole():
    rows = told_apart("version one of it", "version two of it")
    assert [row[4:] for row in rows] == ["version one of it", "version two of it"]


@given(st.lists(st.text(st.sampled_from("ab c"), max_size=40), min_size=2, max_size=8))
def test_what_differs_is_near_the_beginning_of_what_is_shown(texts):
    lines = [safe_line(text) for text in texts]
    assume(len(set(lines)) == len(lines))
    for line, start in zip(lines, differences(texts), strict=True):
        same = max(len(os.path.commonprefix([line, one])) for one in lines if one != line)  # noqa: RUF071
        assert start <= same + 1  # after a blank
        assert same - start <= 16 or not line[same:]


def test_equal_siblings_show_their_beginning():
    assert set(told_apart("the same words of an answer", "the same words of an answer")) == {
        "  ≋ the same words of an ans…"
    }


def test_a_long_word_is_shown_from_near_where_it_differs():
    one, other = told_apart("x" * 60 + "one", "x" * 60 + "other")
    assert one.endswith("one")
    assert other.endswith("other")


def test_the_place_of_an_agents_answer_says_that_it_runs():
    node = view("nn", "a", " ", NodeKind.ASSISTANT, status=NodeStatus.STREAMING)
    node = replace(node, text="", model="security_audit")
    line = build_tree_line(TreeRow("nn"), node, TreeMarks(), UNICODE, 40)
    assert plain([line]) == "  ⋯ security_audit is running"
