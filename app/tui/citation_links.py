"""`CitationLinks`: citations `[n]` in the Markdown of an answer become links to their passages.

Only numbers of passages that exist are links. Text in code is left as it is.
"""

from collections.abc import Iterator

from markdown_it import MarkdownIt
from markdown_it.rules_core import StateCore
from markdown_it.token import Token

from app.tui.view.citations import CITATION, HREF


class CitationLinks:
    """What the citations of one answer refer to.

    Attributes:
        count: number of passages that the answer was given; 0 makes no links.
    """

    def __init__(self) -> None:
        self.count = 0

    def install(self, parser: MarkdownIt) -> None:
        """Add the rule to a parser, behind the one that shows link targets."""
        parser.core.ruler.push("citations", self._link)

    def _link(self, state: StateCore) -> None:
        if not self.count:
            return
        for token in state.tokens:
            if token.type == "inline" and token.children:
                token.children = [new for child in token.children for new in self._split(child)]

    def _split(self, child: Token) -> Iterator[Token]:
        """The tokens of a text with its citations as links."""
        if child.type != "text":
            yield child
            return
        at = 0
        for found in CITATION.finditer(child.content):
            number = int(found[1])
            if number > self.count:
                continue
            yield _text(child.content[at : found.start()])
            yield Token("link_open", "a", 1, attrs={"href": f"{HREF}{number}"})
            yield _text(found[0])
            yield Token("link_close", "a", -1)
            at = found.end()
        yield _text(child.content[at:])


def _text(content: str) -> Token:
    return Token("text", "", 0, content=content)
