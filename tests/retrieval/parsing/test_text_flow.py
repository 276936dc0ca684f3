import pytest

from engine.retrieval.parsing.text_flow import Block, TextFlow, joined, picture_text


@pytest.fixture
def blocks() -> list[Block]:
    return []


@pytest.fixture
def flow(blocks: list[Block]) -> TextFlow:
    return TextFlow(blocks.append)


def _cell(flow: TextFlow, *texts: str) -> None:
    flow.begin_cell()
    for text in texts:
        flow.put(text)
        flow.end_paragraph()
    flow.end_cell()


def test_a_heading_has_its_number_and_no_mark_of_a_note(
    flow: TextFlow, blocks: list[Block]
) -> None:
    flow.put("Dogs[^1] ")
    flow.end_paragraph(2, "3.1")
    assert blocks == [Block("3.1 Dogs[^1]", 2, "3.1 Dogs")]


def test_an_aside_follows_the_outermost_table(flow: TextFlow, blocks: list[Block]) -> None:
    flow.begin_table()
    flow.begin_row()
    flow.begin_cell()
    flow.put("a")
    flow.begin_aside()
    flow.put("box")
    flow.end_aside()
    flow.end_cell()
    _cell(flow, "b")
    flow.end_row()
    flow.end_table()
    assert [one.text for one in blocks] == ["a | b", "box"]


def test_a_row_with_nothing_but_a_table_frames_it(flow: TextFlow, blocks: list[Block]) -> None:
    flow.begin_table()
    flow.begin_row()
    _cell(flow)
    flow.begin_cell()
    flow.begin_table()
    for number in "12":
        flow.begin_row()
        _cell(flow, "a" + number)
        _cell(flow, "b" + number)
        flow.end_row()
    flow.end_table()
    flow.end_cell()
    flow.end_row()
    flow.end_table()
    assert [one.text for one in blocks] == ["a1 | b1", "a2 | b2"]


def test_a_line_that_has_not_ended_ends_with_its_part(flow: TextFlow, blocks: list[Block]) -> None:
    flow.put("x")
    flow.begin_table()
    flow.put("y")
    flow.finish()
    assert [one.text for one in blocks] == ["x", "y"]


def test_rows_within_a_line() -> None:
    rows = [Block("", cells=("a", "", "b")), Block("", cells=("c",))]
    assert joined([Block("x\ny"), *rows, Block("z")]) == "x y a, b; c z"


def test_the_name_of_a_picture_file_is_no_description() -> None:
    assert picture_text("python icon.JPEG") == ""
    assert picture_text(" the\nislands ") == "[Picture: the islands] "
