"""The texts of `benchmarks/retrieval.py`: reStructuredText of Debian's documentation packages.

`benchmarks/corpora_setup.sh DIR` downloads and extracts the packages. A selection is the files whose names
have the smallest SHA-256, up to a number of bytes: the same on every machine, and spread over all topics.
"""

import hashlib
from collections.abc import Iterator, Sequence
from html.parser import HTMLParser
from itertools import islice
from pathlib import Path

PYTHON = "python3.11-doc/usr/share/doc/python3.11/html/_sources"
LINUX = "linux-doc-6.1/usr/share/doc/linux-doc-6.1/html/_sources"
RUST = "rust-doc/usr/share/doc/rust-doc/html"
TOPICS = {
    "python": (PYTHON, ("library", "tutorial", "howto", "reference", "faq")),
    "linux": (
        LINUX,
        ("admin-guide", "core-api", "filesystems", "mm", "networking", "process", "security"),
    ),
}
"""Corpus → its directory below the packages and the folders whose files it has."""
LEAST_BYTES = 2_000
"""Smaller files are lists of links."""
PAGES_PER_FILE = 20
"""Pages of the Rust library, as texts, in one file."""


class MissingCorpus(Exception):
    """A documentation package is not there; the message says how to get it."""


def selection(directory: Path, corpus: str, most_bytes: int) -> list[Path]:
    """Files of a corpus, in the order of their paths.

    Args:
        directory: where `corpora_setup.sh` extracted the packages.
        corpus: a key of `TOPICS`.
        most_bytes: files are taken until the next one would exceed it.

    Raises:
        MissingCorpus: the package is not there.
    """
    below, folders = TOPICS[corpus]
    root = present(directory, below)
    files = [file for folder in folders for file in root.joinpath(folder).rglob("*.rst.txt")]
    chosen, total = [], 0
    for file in sorted(files, key=lambda file: _order(file.relative_to(root))):
        size = file.stat().st_size
        if size < LEAST_BYTES:
            continue
        if total + size > most_bytes:
            break
        chosen.append(file)
        total += size
    return sorted(chosen)


def all_sources(directory: Path) -> list[Path]:
    """Every reStructuredText file of both packages, without translations."""
    roots = [present(directory, below) for below in (PYTHON, LINUX)]
    return sorted(
        file
        for root in roots
        for file in root.rglob("*.rst.txt")
        if "translations" not in file.parts and file.stat().st_size
    )


def web_pages(directory: Path, most_bytes: int) -> list[Path]:
    """HTML pages of the Rust book and reference, in the order of their paths."""
    root = present(directory, RUST)
    files = [file for part in ("book", "reference") for file in sorted(root.glob(f"{part}/*.html"))]
    chosen, total = [], 0
    for file in sorted(files, key=lambda file: _order(file.relative_to(root))):
        total += file.stat().st_size
        if total > most_bytes:
            break
        chosen.append(file)
    return sorted(chosen)


def page_files(
    directory: Path, sources: Sequence[Path], most_bytes: int, folder: Path
) -> list[Path]:
    """Files of about `most_bytes` in all: some of `sources`, or all and the text of Rust's library pages.

    Args:
        sources: come first.
        folder: where the texts of pages are written, `PAGES_PER_FILE` pages a file.
    """
    chosen, total = [], 0
    for file in sorted(sources, key=lambda file: _order(Path(file.name))):
        if total < most_bytes:
            chosen.append(file)
            total += file.stat().st_size
    folder.mkdir(exist_ok=True)
    texts = _page_texts(directory)
    while total < most_bytes and (text := "".join(islice(texts, PAGES_PER_FILE))):
        target = folder / f"{len(chosen):06}.txt"
        target.write_text(text)
        chosen.append(target)
        total += len(text.encode())
    return chosen


def _page_texts(directory: Path) -> Iterator[str]:
    root = present(directory, RUST)
    for part in ("std", "core", "alloc"):
        for file in sorted(root.joinpath(part).rglob("*.html")):
            if text := page_text(file.read_text("utf-8", "replace")):
                yield text + "\n\n"


def page_text(html: str) -> str:
    """The visible text of a page, a line for each piece."""
    reader = _VisibleText()
    reader.feed(html)
    reader.close()
    return "\n".join(reader.pieces)


def present(directory: Path, below: str) -> Path:
    """A directory of an extracted package.

    Raises:
        MissingCorpus: it is not there.
    """
    root = directory / below
    if not root.is_dir():
        package = below.partition("/")[0]
        raise MissingCorpus(
            f"{package} is not in {directory.name}: run benchmarks/corpora_setup.sh with that directory."
        )
    return root


def _order(name: Path) -> bytes:
    return hashlib.sha256(name.as_posix().encode()).digest()


class _VisibleText(HTMLParser):
    """Collects text outside scripts and styles."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.pieces: list[str] = []
        self._hidden = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._hidden += tag in ("script", "style")

    def handle_endtag(self, tag: str) -> None:
        self._hidden -= tag in ("script", "style") and self._hidden > 0

    def handle_data(self, data: str) -> None:
        if not self._hidden and (text := " ".join(data.split())):
            self.pieces.append(text)
