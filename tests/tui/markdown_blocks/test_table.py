"""Tables in answers."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from textual.content import Content

from app.tui.markdown_blocks.table import Table, build_table

WORDS = st.text(st.sampled_from("ab -./日\n"), max_size=30)


def drawn(head, *rows, aligns=None, width=60):
    table = Table(
        [Content(cell) for cell in head],
        [[Content(cell) for cell in row] for row in rows],
        aligns or ["left"] * len(head),
    )
    return [line.rstrip() for line in build_table(table, width).plain.split("\n")]


def test_columns_are_aligned():
    assert drawn(
        ["name", "price", "x"], ["tea", "3.20", "y"], ["coffee", "12.00", "yes"],
        aligns=["left", "right", "center"],
    ) == [
        "name   │ price │  x",
        "───────┼───────┼────",
        "tea    │  3.20 │  y",
        "coffee │ 12.00 │ yes",
    ]  # fmt: skip


def test_a_long_address_does_not_crush_its_neighbour():
    address = "https://example.com/" + "a" * 200
    rows = drawn(["Service", "Where"], ["Timetable of ferries", address], width=60)
    assert rows[0].startswith("Service              │")
    assert rows[2].startswith("Timetable of ferries │ https://")
    assert "".join(row.split(" │ ")[-1] for row in rows[2:]) == address
    assert all(len(row) <= 60 for row in rows)


def test_a_line_break_in_a_cell_makes_two_lines():
    assert drawn(["a", "b"], ["one\ntwo", "x"], ["three", "y"]) == [
        "a     │ b", "──────┼──", "one   │ x", "two   │", "──────┼──", "three │ y",
    ]  # fmt: skip


def test_empty_cells_keep_their_columns():
    assert drawn(["a", "", "c"], ["", "", "3"]) == ["a │  │ c", "──┼──┼──", "  │  │ 3"]


def test_wide_characters_count_two_cells():
    rows = drawn(["名前", "b"], ["日本語", "x"], ["a", "y"])
    assert rows[0] == "名前   │ b"
    assert rows[2:] == ["日本語 │ x", "a      │ y"]


def test_many_columns_become_records():
    head = [f"column {number}" for number in range(9)]
    rows = drawn(head, [f"value-{number}" for number in range(9)], ["x"] * 8 + [""], width=36)
    assert rows[:2] == ["column 0: value-0", "column 1: value-1"]
    assert rows[9] == "─" * 36
    assert rows[10] == "column 0: x"
    assert rows[-1] == "column 8:"


@given(
    st.integers(1, 6).flatmap(
        lambda count: st.lists(
            st.lists(WORDS, min_size=count, max_size=count), min_size=1, max_size=4
        )
    ),
    st.integers(12, 90),
)
def test_no_letter_is_lost_and_no_line_is_too_long(rows, width):
    lines = drawn(*rows, width=width)
    text = "".join(lines)
    for row in rows:
        for letter in set("".join(row)) - set(" \n"):
            assert text.count(letter) >= sum(cell.count(letter) for cell in row)
    assert all(Content(line).cell_length <= width for line in lines)


@pytest.mark.parametrize("size", [(80, 30), (40, 30)])
async def test_a_table_of_an_answer_is_drawn(screen, size):
    answer = [
        "| Drink | Price | Note |\n|:---|---:|:-:|\n",
        "| tea | 3.20 | <br>**hot**<br>or `cold`<br> |\n| a \\| b |  | ",
        "[x](https://example.com) |\n",
    ]
    async with screen(answer, size=size) as ui:
        await ui.ask("prices")
        ui.client.step(2)
        await ui.shown("tea")
        await ui.answered()
        await ui.shown("│  3.20 │", "hot", "or cold", "a | b")
        assert "<br>" not in ui.text
        assert "**" not in ui.text


async def test_a_table_of_the_list_and_the_quote_is_drawn(screen):
    table = "| a | b |\n|---|--:|\n| 1 | 22 |"
    quoted = "\n".join(f"> {line}" for line in table.split("\n"))
    listed = "- item\n\n" + "\n".join(f"  {line}" for line in table.split("\n"))
    async with screen(f"{quoted}\n\n{listed}\n", size=(60, 30)) as ui:
        await ui.ask("tables")
        await ui.answered()
        await ui.until(lambda: ui.text.count("1 │ 22") == 2, "both tables")
