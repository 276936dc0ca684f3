"""The Markdown parser of answers: GitHub's dialect, with raw HTML as text, link targets and line breaks.

Textual omits HTML blocks, so that `<think>…` would disappear from an answer. It also shows a link's
text without its target, which a malicious answer could exploit. A single line break, which is a blank in
Markdown, stays one: models do not wrap their text, but end the lines of a poem with it.
"""

from markdown_it import MarkdownIt
from markdown_it.rules_core import StateCore
from markdown_it.token import Token


def make_parser() -> MarkdownIt:
    """A parser for untrusted text (`Markdown(parser_factory=…)`)."""
    parser = MarkdownIt("gfm-like", {"html": False})
    parser.validateLink = _allowed  # type: ignore[method-assign]  # markdown-it's documented hook
    parser.core.ruler.push("link_targets", _show_targets)
    parser.core.ruler.push("line_breaks", _keep_line_breaks)
    return parser


def _allowed(url: str) -> bool:
    return url.strip().lower().startswith(("http://", "https://"))


def _show_targets(state: StateCore) -> None:
    for token in state.tokens:
        if token.type == "inline" and token.children:
            token.children = _with_targets(token.children)


def _keep_line_breaks(state: StateCore) -> None:
    for token in state.tokens:
        for child in token.children or ():
            if child.type == "softbreak":
                child.type = "hardbreak"


def _with_targets(children: list[Token]) -> list[Token]:
    shown: list[Token] = []
    target, words = "", ""
    for child in children:
        if child.type == "link_open":
            target, words = str(child.attrs.get("href", "")), ""
        elif child.type == "link_close" and words.strip().rstrip("/") != target.rstrip("/"):
            note = Token("text", "", 0, content=f" ({target})")
            shown += [child, note]
            target = ""
            continue
        else:
            words += child.content
        shown.append(child)
    return shown
