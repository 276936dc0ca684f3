from engine.retrieval.answering.fitting import LABEL_TOKENS, fit_sources, in_cached_order
from engine.retrieval.api.passage import Passage
from tests.retrieval.answering.passages import passage

DOCUMENT = "Intro words here.\n" + "Body of it. " * 5 + "\nEnd of section."


def words(text: str) -> int:
    return len(text.split())


def part(chunk_id: int, text: str, *, document: str = DOCUMENT) -> Passage:
    start = len(document[: document.index(text)].encode())
    return passage(
        text,
        start=start,
        chunk_id=chunk_id,
        section_start=0,
        section_end=len(document.encode()),
        line=1,
    )


def section(one: Passage) -> str:
    return DOCUMENT.encode()[one.section_start : one.section_end].decode()


def test_takes_the_best_that_fit_and_numbers_them():
    found = [
        passage("a " * 10, chunk_id=1),
        passage("b " * 500, chunk_id=2),
        passage("c " * 10, chunk_id=3),
    ]
    sources = fit_sources(found, words, budget=2 * (10 + LABEL_TOKENS))
    assert [(one.n, one.passage.chunk_id) for one in sources] == [(1, 1), (2, 3)]


def test_nothing_fits():
    assert fit_sources([passage("a " * 100)], words, budget=50) == []


def test_a_passage_grows_to_its_section_where_there_is_room():
    (source,) = fit_sources([part(1, "End of section.")], words, budget=1000, section=section)
    assert source.text == DOCUMENT
    assert (source.start, source.end) == (0, len(DOCUMENT.encode()))
    assert source.passage.chunk_id == 1
    assert source.is_section


def test_passages_of_one_section_are_read_once():
    found = [
        part(1, "End of section."),
        passage("Other.", chunk_id=2, document_id=9),
        part(3, "Intro words"),
    ]
    sources = fit_sources(found, words, budget=1000, section=section)
    assert [one.passage.chunk_id for one in sources] == [1, 2]
    assert [one.n for one in sources] == [1, 2]


def test_a_section_without_room_is_not_read():
    budget = LABEL_TOKENS + 5
    (source,) = fit_sources([part(1, "End of section.")], words, budget=budget, section=section)
    assert source.text == "End of section."


def test_a_section_that_is_too_long_is_not_read():
    one = fit_sources(
        [part(1, "End of section.")],
        words,
        budget=1000,
        section=section,
        section_tokens=LABEL_TOKENS + 3,
    )
    assert not one[0].is_section


def test_the_line_of_a_quote_in_a_section_is_that_of_the_file():
    one = passage(
        "End of section.",
        start=len(DOCUMENT) - 15,
        section_start=0,
        section_end=len(DOCUMENT),
        line=7,
    )
    (source,) = fit_sources([one], words, budget=1000, section=section)
    assert source.line_at(0) == 5
    assert source.line_at(DOCUMENT.index("End")) == 7


def test_passages_of_the_last_prompt_keep_their_places():
    found = [passage("x", chunk_id=n) for n in (4, 2, 1, 3)]
    assert [one.chunk_id for one in in_cached_order(found, [1, 2, 9, 3])] == [1, 2, 4, 3]
    assert [one.chunk_id for one in in_cached_order(found, [])] == [4, 2, 1, 3]
    assert [one.chunk_id for one in in_cached_order(found, [9, 1])] == [4, 2, 1, 3]


def test_passages_that_overlap_or_touch_are_one_source():
    whole = "Zwölf Boote liegen hier. Sie sind alt. Niemand fährt damit. Der Hafen ist zu."
    pieces = ("Sie sind alt. Niemand", "Niemand fährt damit.", "Zwölf Boote liegen hier. ")
    found = [part(n, text, document=whole) for n, text in enumerate(pieces, start=1)]
    (source,) = fit_sources(found, words, budget=1000)
    assert source.text == "Zwölf Boote liegen hier. Sie sind alt. Niemand fährt damit."
    assert whole.encode()[source.start : source.end].decode() == source.text
    assert (source.n, source.passage.chunk_id) == (1, 1)


def test_a_passage_within_another_is_read_once():
    found = [part(1, "Body of it."), part(2, "Intro words here.\n" + "Body of it. " * 5)]
    (source,) = fit_sources(found, words, budget=1000)
    assert (source.text, source.passage.chunk_id) == (found[1].text, 1)


def test_passages_apart_and_of_other_documents_stay_apart():
    found = [
        part(1, "Intro words"),
        part(2, "End of section."),
        passage("Intro words", chunk_id=3, document_id=2),
        passage(
            "Intro", start=3, end=30, chunk_id=4
        ),  # not UTF-8: its bytes are not those of the text
    ]
    assert [one.passage.chunk_id for one in fit_sources(found, words, budget=1000)] == [1, 2, 3, 4]


def test_joined_rows_stand_below_the_header_of_the_first():
    first = passage("Apple,2\n", chunk_id=1, heading_path=("Fruit,Price",), in_table=True)
    second = passage(
        "Room,Floor\nR1,2",
        chunk_id=2,
        start=first.end,
        heading_path=("Fruit,Price",),
        in_table=True,
    )
    third = passage(
        "\nR2,3", chunk_id=3, start=second.end, heading_path=("Room,Floor",), in_table=True
    )
    (joined,) = fit_sources([third, second, first], len, budget=1000)
    assert joined.text == "Apple,2\nRoom,Floor\nR1,2\nR2,3"
    assert joined.header == "Fruit,Price"


def test_a_section_that_has_the_header_row_has_it_once():
    whole = "Fruit,Price\nFig,1\nApple,2"
    one = passage(
        "Apple,2",
        start=18,
        heading_path=("Fruit,Price",),
        in_table=True,
        section_start=0,
        section_end=25,
    )
    (source,) = fit_sources([one], len, budget=1000, section=lambda _: whole)
    assert (source.text, source.header) == (whole, "")
