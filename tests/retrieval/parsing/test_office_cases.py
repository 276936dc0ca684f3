"""What a person sees in documents and slides is what is read: each thing once, in order, in its column."""

from collections.abc import Callable

import pytest

from benchmarks.office_cases import (
    Case,
    failures,
    open_document_cases,
    slide_cases,
    word_cases,
)
from engine.retrieval.api.parsed_document import ParsedDocument

_CASES = [*word_cases(), *slide_cases(), *open_document_cases()]


@pytest.mark.parametrize("case", _CASES, ids=lambda case: f"{case.kind}: {case.name}")
def test_a_person_sees_what_is_read(
    parse: Callable[[str, bytes], ParsedDocument], case: Case
) -> None:
    assert failures(case, parse(f"a.{case.kind}", case.data).text) == []
