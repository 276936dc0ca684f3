from engine.retrieval.parsing.documents import extracted_document
from engine.retrieval.parsing.extracted import Extracted
from engine.retrieval.parsing.file_type import FileType
from engine.retrieval.parsing.outline import TextHeading

from .conftest import check


def test_offsets_that_a_parser_cannot_mean_are_dropped_and_the_rest_put_in_order() -> None:
    extracted = Extracted(
        "aä b",
        headings=(
            *(TextHeading(2, "late", 3), TextHeading(-7, "early", 1)),
            *(TextHeading(1, "outside", 4), TextHeading(1, "before", -1)),
        ),
        breaks=(3, 1, 1, 99, -5),
        pages=(2, 0, 1 << 62),
    )
    document = extracted_document(extracted, FileType("pdf", "application/pdf"))
    check(document, b"")
    assert [(one.level, one.title, one.start) for one in document.headings] == [
        *((1, "early", 1), (2, "late", 4))
    ]
    assert document.breaks == (1, 4)
    assert document.pages == (0, 3)
