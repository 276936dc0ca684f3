"""`unseen_blocks`: page headers and footers, which stand on many pages, once each."""

import re
from collections.abc import Iterable

from engine.retrieval.parsing.text_flow import Block

_PAGE_NUMBER = re.compile(r"\W*\d{1,4}\W*(?:\d{1,4}\W*)?")


def unseen_blocks(texts: Iterable[Iterable[Block]], seen: set[str]) -> list[Block]:
    """The blocks that are new, without mere page numbers and as no headings.

    Args:
        texts: headers and footers, each as its blocks.
        seen: what was read before; what is new is added.
    """
    found: list[Block] = []
    for text in texts:
        for block in text:
            if block.text not in seen and not _PAGE_NUMBER.fullmatch(block.text):
                seen.add(block.text)
                found.append(block._replace(level=0))
    return found
