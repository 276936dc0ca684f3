"""Compare parsers of Word documents and slides on the files of `office_cases.py`.

Prints a table of cases × parsers, and the time that each takes for a long document of its format. Parsers
that are not installed are left out:

    pip install mammoth python-docx docx2python docx2txt python-pptx odfpy odfdo 'markitdown[docx,pptx]'
"""

import argparse
import re
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from html.parser import HTMLParser
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from benchmarks.office_cases import (
    Case,
    docx,
    failures,
    odf,
    odf_table,
    open_document_cases,
    par,
    pptx,
    row,
    shape,
    slide,
    slide_cases,
    slide_table,
    table,
    word_cases,
)
from engine.retrieval.parsing.archive import extract_archive

Parser = Callable[[Path], str]
OURS = "Pravāha"
_MOST = 32 << 20


def ours(path: Path) -> str:
    """This project's readers."""
    return extract_archive(path.read_bytes(), _MOST).text


class _HtmlText(HTMLParser):
    """The text of mammoth's HTML: a line for each paragraph and row, cells with bars."""

    def __init__(self) -> None:
        super().__init__()
        self.parts: list[str] = []
        self._cells = 0
        self._first = True

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "tr" and not self._cells:
            self._first = True
        elif tag in ("td", "th"):
            if not self._cells and not self._first:
                self.parts.append(" | ")
            self._cells += 1
            self._first = False
        elif tag == "img":
            self.parts.append(dict(attrs).get("alt") or "")

    def handle_endtag(self, tag: str) -> None:
        if tag in ("td", "th"):
            self._cells -= 1
        elif tag in ("p", "li", "tr", "h1", "h2", "br"):
            self.parts.append(" " if self._cells else "\n")

    def handle_data(self, data: str) -> None:
        self.parts.append(data)


def mammoth_text(path: Path) -> str:
    """Mammoth's HTML as text."""
    import mammoth

    with path.open("rb") as file:
        reader = _HtmlText()
        reader.feed(mammoth.convert_to_html(file).value)
    return "".join(reader.parts)


def python_docx_text(path: Path) -> str:
    """Paragraphs and tables in order, as python-docx's manual reads them."""
    import docx as library

    lines = []
    for block in library.Document(str(path)).iter_inner_content():
        if hasattr(block, "rows"):
            lines += [
                " | ".join(one.text.replace("\n", " ") for one in line.cells) for line in block.rows
            ]
        else:
            lines.append(block.text)
    return "\n".join(lines)


def docx2python_text(path: Path) -> str:
    """What docx2python calls the text."""
    from docx2python import docx2python

    with docx2python(path) as document:
        return str(document.text)


def docx2txt_text(path: Path) -> str:
    """What docx2txt returns."""
    import docx2txt

    return str(docx2txt.process(str(path)))


def markitdown_text(path: Path) -> str:
    """Markdown without its marks of headings and lists."""
    from markitdown import MarkItDown

    text = MarkItDown().convert(str(path)).text_content
    return re.sub(r"(?m)^(#+|\*) ", "", text)


def python_pptx_text(path: Path) -> str:
    """Shapes, groups, tables and notes, as python-pptx's manual reads them."""
    from pptx import Presentation

    def texts(shapes: Sequence[object]) -> Iterator[str]:
        for one in shapes:
            if hasattr(one, "shapes"):
                yield from texts(one.shapes)
            elif getattr(one, "has_table", False):
                for line in one.table.rows:  # type: ignore[attr-defined]
                    yield " | ".join(cell.text.replace("\n", " ") for cell in line.cells)
            elif getattr(one, "has_text_frame", False):
                yield one.text_frame.text  # type: ignore[attr-defined]

    lines: list[str] = []
    for one in Presentation(str(path)).slides:
        lines += texts(one.shapes)
        if one.has_notes_slide and one.notes_slide.notes_text_frame:
            lines.append(one.notes_slide.notes_text_frame.text)
    return "\n".join(lines)


def odfpy_text(path: Path) -> str:
    """The text of the body's paragraphs, headings and rows, by odfpy's `teletype`."""
    from odf import teletype
    from odf.opendocument import load

    lines: list[str] = []

    def walk(node: object) -> None:
        name = getattr(node, "qname", ("", ""))[1]
        if name in ("p", "h"):
            lines.append(teletype.extractText(node))
        elif name == "table-row":
            cells = [one for one in node.childNodes if "table-cell" in one.qname[1]]  # type: ignore[attr-defined]
            lines.append(" | ".join(teletype.extractText(one) for one in cells))
        else:
            for child in getattr(node, "childNodes", ()):
                walk(child)

    walk(load(str(path)).body)
    return "\n".join(lines)


def odfdo_text(path: Path) -> str:
    """What odfdo calls the formatted text."""
    from odfdo import Document

    return str(Document(str(path)).get_formatted_text())


PARSERS: dict[str, dict[str, Parser]] = {
    "docx": {
        OURS: ours,
        "mammoth": mammoth_text,
        "python-docx": python_docx_text,
        "docx2python": docx2python_text,
        "docx2txt": docx2txt_text,
        "markitdown": markitdown_text,
    },
    "pptx": {OURS: ours, "python-pptx": python_pptx_text, "markitdown": markitdown_text},
    "odt": {OURS: ours, "odfpy": odfpy_text, "odfdo": odfdo_text},
}


def long_document(kind: str) -> bytes:
    """A document of 2,000 paragraphs and 1,000 rows; slides hold them forty at a time."""
    sentence = "The ferry from Oban leaves at nine, and dogs travel free on weekdays."
    rows = [(str(number), "Oban", "12.50") for number in range(1000)]
    if kind == "docx":
        return docx(par(sentence) * 2000 + table(*(row(*one) for one in rows)))
    if kind == "odt":
        return odf(f"<text:p>{sentence}</text:p>" * 2000 + odf_table(*rows))
    return pptx(
        *(
            slide(shape(*[sentence] * 80), slide_table(*rows[at : at + 40]))
            for at in range(0, 1000, 40)
        )
    )


def tried(parse: Parser, case: Case, folder: Path) -> list[str]:
    """What is wrong with a parser's text of a file."""
    path = folder / f"case.{case.kind}"
    path.write_bytes(case.data)
    try:
        return failures(case, parse(path))
    except Exception as error:
        return [f"{type(error).__name__}: {error}"]


def seconds(parse: Parser, path: Path, repeats: int) -> float:
    """The shortest of some times; the first call, which imports a parser, does not count."""
    parse(path)
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        parse(path)
        times.append(time.perf_counter() - start)
    return min(times)


def main() -> None:
    """Print the tables."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--why", action="store_true", help="say what is wrong with each text")
    options.add_argument("--repeats", type=int, default=3, help="of each measurement of time")
    arguments = options.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for kind, cases in (
            ("docx", word_cases()),
            ("pptx", slide_cases()),
            ("odt", open_document_cases()),
        ):
            _print_table(kind, cases, folder, why=arguments.why, repeats=arguments.repeats)


def _print_table(
    kind: str, cases: Sequence[Case], folder: Path, *, why: bool, repeats: int
) -> None:
    parsers = {name: parse for name, parse in PARSERS[kind].items() if _is_installed(name)}
    print(f"| {kind.upper()}, {len(cases)} files | {' | '.join(map(_titled, parsers))} |")
    print(f"|---|{'---|' * len(parsers)}")
    right = dict.fromkeys(parsers, 0)
    for case in cases:
        wrong = {name: tried(parse, case, folder) for name, parse in parsers.items()}
        marks = ["–" if wrong[name] else "yes" for name in parsers]
        print(f"| {case.name} | {' | '.join(marks)} |")
        for name, found in wrong.items():
            right[name] += not found
            if why and found:
                print(f"    {name}: {'; '.join(found)}")
    print(f"| **right** | {' | '.join(str(right[name]) for name in parsers)} |")
    path = folder / f"long.{kind}"
    path.write_bytes(long_document(kind))
    times = [f"{1000 * seconds(parse, path, repeats):.0f} ms" for parse in parsers.values()]
    print(f"| a long document | {' | '.join(times)} |\n")


def _is_installed(name: str) -> bool:
    try:
        return name == OURS or bool(version(name))
    except PackageNotFoundError:
        return False


def _titled(name: str) -> str:
    return name if name == OURS else f"{name} {version(name)}"


if __name__ == "__main__":
    main()
