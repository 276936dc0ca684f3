"""Files that are read in segments are cut as if they were read at once, but for places near the seams."""

import re
from itertools import pairwise

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from engine.retrieval.api.errors import Unreadable
from engine.retrieval.chunking.split import split
from engine.retrieval.chunking.split_large import split_large
from engine.retrieval.chunking.token_counter import TokenCounter
from engine.retrieval.parsing.large_text import open_large_text
from engine.retrieval.parsing.parser_limits import ParserLimits
from engine.retrieval.parsing.parser_pool import ParserPool

_FRAGMENTS = st.sampled_from(
    ("the quick ", "fox. ", "brown\n", "\n\n", "# One\n\n", "## Two\n\n", "---\n", "世界。", "e\u0301",
     "👩\u200d👧 ", "\r\n", " " * 70, "x" * 90, '"a\nb",c\n')
)  # fmt: skip
_LIMITS = ParserLimits(file_bytes=0, segment_bytes=400)


def chunks_of(path, counter, limits=_LIMITS):
    text = open_large_text(path, limits)
    text.content_hash()
    return list(split_large(text, counter, max_tokens=40, overlap_tokens=8))


@pytest.fixture(scope="module")
def counter(bert):
    return TokenCounter(bert)


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    parts=st.lists(_FRAGMENTS, min_size=1, max_size=150),
    name=st.sampled_from(["a.md", "a.txt", "a.csv"]),
    mark=st.booleans(),
)
def test_any_text_is_covered_by_exact_spans(tmp_path, counter, parts, name, mark):
    text = "".join(parts)
    path = tmp_path / name
    data = (b"\xef\xbb\xbf" if mark else b"") + text.encode()
    path.write_bytes(data)
    if not text.strip():
        with pytest.raises(Unreadable, match="It is empty"):
            chunks_of(path, counter)
        return

    chunks = chunks_of(path, counter)

    covered = 3 if mark else 0
    for chunk in chunks:
        assert data[chunk.start : chunk.end].decode() == chunk.text
        assert chunk.section_start <= chunk.start < chunk.end <= chunk.section_end
        before = data[: chunk.start].decode()
        assert chunk.line == len(re.findall(r"\r\n?|\n", before)) + 1
        assert not data[covered : chunk.start].decode().strip()
        covered = chunk.end
    assert not data[covered:].decode().strip()
    for first, second in pairwise(chunks):
        assert first.start < second.start
        assert first.end < second.end


@pytest.mark.parametrize("name", ["a.md", "a.csv", "a.log"])
def test_chunks_and_headings_are_those_of_the_whole_file(tmp_path, counter, name):
    sections = "".join(
        f"# Part {n}\n\n## Chapter {n}\n\n"
        + "".join(f"Sentence {n} {m} is here.\n" for m in range(40))
        for n in range(12)
    )
    path = tmp_path / name
    path.write_text(sections)
    whole = split(ParserPool().parse(path), counter, max_tokens=40, overlap_tokens=8)

    chunks = chunks_of(path, counter, ParserLimits(file_bytes=0, segment_bytes=3000))

    assert [(one.text, one.line, one.heading_path) for one in chunks] == [
        (one.text, one.line, one.heading_path) for one in whole
    ]


def test_a_file_that_changes_while_it_is_read_is_unreadable(tmp_path, counter):
    path = tmp_path / "a.log"
    path.write_text("A line.\n" * 400)
    text = open_large_text(path, _LIMITS)
    text.content_hash()
    chunks = split_large(text, counter, max_tokens=40, overlap_tokens=8)
    next(chunks)
    path.write_text("B line.\n" * 400)
    with pytest.raises(Unreadable, match="has changed while it was read"):
        list(chunks)


def test_a_log_that_grows_while_it_is_read_is_read_as_it_was(tmp_path, counter):
    path = tmp_path / "a.log"
    path.write_text("A line.\n" * 400)
    text = open_large_text(path, _LIMITS)
    text.content_hash()
    with path.open("a") as file:
        file.write("More.\n" * 400)
    assert max(one.end for one in split_large(text, counter)) <= 3200


def test_shrunken_and_undecodable_files_are_unreadable(tmp_path, counter):
    path = tmp_path / "a.log"
    path.write_text("A line.\n" * 400)
    text = open_large_text(path, _LIMITS)
    path.write_text("short")
    with pytest.raises(Unreadable, match="become shorter"):
        text.content_hash()
    path.write_bytes(b"Caf\xe9\n" * 400)
    with pytest.raises(Unreadable, match=r"has 2,000 bytes and is not UTF-8"):
        open_large_text(path, _LIMITS).content_hash()
