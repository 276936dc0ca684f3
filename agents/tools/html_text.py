"""`html_text`: the readable text of an HTML page, for a model.

Kept are text, headings, list items, table rows and the targets of links, as `extract_html` reads pages. What
a reader of the page would not see has no business in a prompt. The page is parsed in a process of its own
that may do nothing else, within bounds of time and memory, which a page can be made to exceed.
"""

from dataclasses import dataclass

from agents.text.plain import plain
from engine.retrieval.api.errors import Unreadable
from engine.retrieval.parsing.parser_limits import MIB, ParserLimits

_LIMITS = ParserLimits(text_bytes=8 * MIB, memory_bytes=1024 * MIB, cpu_s=8, wall_s=15.0)


@dataclass(frozen=True, slots=True)
class HtmlText:
    """The text of a page.

    Attributes:
        title: content of its title element, on one line.
        text: its text.
    """

    title: str
    text: str


def html_text(source: str, base: str = "") -> HtmlText:
    """Reduce a page to its text; `base` is its URL, for relative links. It blocks for 0.3 s and more.

    Raises:
        Unreadable: it was made to be too much for a parser, or has too much text.
    """
    from engine.retrieval.parsing.parser_worker import ParserWorker, WorkerDied

    address = "".join(base.split())
    worker = ParserWorker(_LIMITS)
    try:
        found = worker.extract("page", f"{address}\n{source}".encode("utf-8", "replace"))
    except WorkerDied as error:
        raise Unreadable("Its parser did not survive it.") from error
    finally:
        worker.stop()
    return HtmlText(" ".join(plain(found.title or "").split()), plain(found.text).strip("\n"))
