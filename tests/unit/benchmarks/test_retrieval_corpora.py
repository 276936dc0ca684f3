"""`benchmarks/retrieval_corpora.py`: which files are chosen, and the text of a page."""

import pytest

from benchmarks.retrieval_corpora import (
    LEAST_BYTES,
    PYTHON,
    RUST,
    MissingCorpus,
    page_files,
    page_text,
    selection,
    web_pages,
)


@pytest.fixture
def packages(tmp_path):
    """Ten pages of Python's documentation and two of Rust's."""
    library = tmp_path / PYTHON / "library"
    library.mkdir(parents=True)
    for at in range(10):
        library.joinpath(f"m{at}.rst.txt").write_text("x" * LEAST_BYTES)
    library.joinpath("list.rst.txt").write_text("too small")
    for part in ("book", "std", "core", "alloc", "reference"):
        tmp_path.joinpath(RUST, part).mkdir(parents=True)
        tmp_path.joinpath(RUST, part, "a.html").write_text(f"<p>the {part} page</p>")
    return tmp_path


def test_a_selection_is_the_same_each_time_and_a_larger_one_includes_it(packages):
    few = selection(packages, "python", 3 * LEAST_BYTES)
    assert len(few) == 3
    assert few == selection(packages, "python", 3 * LEAST_BYTES)
    assert set(few) < set(selection(packages, "python", 7 * LEAST_BYTES))


def test_a_missing_package_is_named(packages):
    with pytest.raises(MissingCorpus, match=r"linux-doc-6.1 is not in .*corpora_setup.sh"):
        selection(packages, "linux", 1000)


def test_pages_fill_what_the_sources_leave(packages, tmp_path):
    sources = selection(packages, "python", 10**6)
    assert len(page_files(packages, sources, 3 * LEAST_BYTES, tmp_path / "few")) == 3
    files = page_files(packages, sources, 10**6, tmp_path / "all")
    assert set(sources) < set(files)
    assert files[-1].read_text().split("\n\n")[:3] == [
        "the std page",
        "the core page",
        "the alloc page",
    ]


def test_web_pages_are_limited_by_bytes(packages):
    assert len(web_pages(packages, 10**6)) == 2
    assert web_pages(packages, 1) == []


def test_a_page_is_its_visible_text():
    html = "<html><style>p {}</style><body><h1>A  b</h1><script>x()</script><p>c &amp; d</p></body>"
    assert page_text(html) == "A b\nc & d"
