"""What README, CONTRIBUTING and `docs/` refer to is there: files, sections, results of benchmarks."""

import json
import re
import tarfile
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
RESULTS = ROOT / "benchmarks" / "results"
NOTEBOOK = ROOT / "docs" / "notebook"
PAGES = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    RESULTS / "README.md",
    *sorted((ROOT / "docs").rglob("*.md")),
]
"""The changelog is left out: it names what was there at the time."""
CURRENT = [page for page in PAGES if page.parent not in (NOTEBOOK, RESULTS)]
PERFORMANCE = ROOT / "docs" / "performance.md"
PERFORMANCE_LINES = 150
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
FILE = re.compile(
    r"`((?:app|agents|engine|rust_core|tests|benchmarks|docs|examples|scripts|themes)/[\w/.-]*)(?:::\w+)?`"
)
RESULT = re.compile(r"20\d\d-\d\d-\d\d-[\w-]+\.json")


def names(pages):
    return [str(page.relative_to(ROOT)) for page in pages]


@cache
def prose(page):
    """A page without its code blocks."""
    return re.sub(r"(?ms)^```.*?^```$", "", page.read_text(encoding="utf-8"))


@cache
def anchors(page):
    """The anchors of a page's headings, as GitHub makes them of their texts."""
    headings = re.findall(r"(?m)^#+ (.*)$", prose(page))
    return {re.sub(r"[^\w\- ]", "", text.lower()).replace(" ", "-") for text in headings}


@cache
def archived():
    """Name → content of the results in the archive."""
    with tarfile.open(RESULTS / "archive.tar.xz") as archive:
        return {one.name: archive.extractfile(one).read() for one in archive}


def kept():
    return {path.name for path in RESULTS.glob("*.json")}


def broken_links(page):
    for link in LINK.findall(prose(page)):
        path, _, anchor = link.partition("#")
        if re.match(r"\w+:", link):
            continue
        target = (page.parent / path).resolve() if path else page
        if not target.exists() or (anchor and anchor not in anchors(target)):
            yield link


@pytest.mark.parametrize("page", PAGES, ids=names(PAGES))
def test_links_lead_to_files_and_sections(page):
    assert list(broken_links(page)) == []


def exists(path):
    """Whether a file exists; with `CATEGORY` and `KEY` for any names, whether one of that form does."""
    return (
        any(ROOT.glob(re.sub("CATEGORY|KEY", "*", path)))
        if "KEY" in path
        else (ROOT / path).exists()
    )


@pytest.mark.parametrize("page", CURRENT, ids=names(CURRENT))
def test_files_that_a_page_names_exist(page):
    assert [path for path in FILE.findall(prose(page)) if not exists(path)] == []


@pytest.mark.parametrize("page", PAGES, ids=names(PAGES))
def test_results_that_a_page_names_are_files_or_in_the_archive(page):
    assert set(RESULT.findall(prose(page))) <= kept() | archived().keys()


@pytest.mark.parametrize("page", CURRENT, ids=names(CURRENT))
def test_a_page_says_which_results_are_archived(page):
    text = prose(page)
    unsaid = [
        found[0]
        for found in RESULT.finditer(text)
        if found[0] in archived() and not text.startswith("`, archived", found.end())
    ]
    assert unsaid == []


def test_a_result_that_no_current_page_names_is_in_the_archive():
    named = {name for page in CURRENT for name in RESULT.findall(prose(page))}
    assert kept() - named == set()
    assert kept() & archived().keys() == set()


def test_the_archive_holds_results():
    assert archived()
    for name, content in archived().items():
        assert RESULT.fullmatch(name)
        assert isinstance(json.loads(content), dict)


def test_performance_is_one_page_that_opens_with_its_table():
    lines = PERFORMANCE.read_text(encoding="utf-8").splitlines()
    assert len(lines) <= PERFORMANCE_LINES
    assert next(at for at, line in enumerate(lines) if line.startswith("|")) < 10
