"""The passages within the text that a model reads before a message (`FoundPassages.context`).

Each begins with a line `[n] file > headings`; every line of its text begins with `> `. A passage that an
earlier message of a prompt has is referred to by its first words in place of its text, so that its tokens are
in the prompt once.
"""

from collections.abc import Sequence
from typing import NamedTuple

from app.runtime.stored_passages import StoredPassage, load_passages
from engine.conversations.passage_source import FoundPassages

REFERRED_CHARACTERS = 200
"""The shortest passage that is referred to: of a shorter one the reference would save nothing."""
_FIRST_WORDS = 60


class Block(NamedTuple):
    """A passage in a context.

    Attributes:
        start: offset of its first character.
        end: offset behind it.
        head: its first line.
        body: its text, quoted.
    """

    start: int
    end: int
    head: str
    body: str


def passage_blocks(
    context: str, passages: Sequence[StoredPassage]
) -> list[tuple[StoredPassage, Block]]:
    """The passages that are where they are said to be; imported ones may not be."""
    found: list[tuple[StoredPassage, Block]] = []
    at = 0
    for one in passages:
        end = one.prompt_end
        start = (f"\n{context}").rfind(f"\n[{one.n}] ", at, end + 1)
        if start < 0 or end > len(context):
            continue
        head, _, body = context[start:end].partition("\n")
        found.append((one, Block(start, end, head, body)))
        at = end
    return found


def shared_contexts(given: Sequence[FoundPassages]) -> list[str]:
    """The contexts of the messages of one prompt, each passage once; see `PassageSource.contexts`."""
    seen: set[tuple[str, str]] = set()
    contexts: list[str] = []
    for found in given:
        context, pieces, at = found.context, [], 0
        blocks = passage_blocks(context, load_passages(found.passages))
        for passage, block in blocks:
            if (passage.file, block.body) in seen and len(block.body) >= REFERRED_CHARACTERS:
                pieces += [context[at : block.start], _reference(block)]
                at = block.end
        seen |= {(passage.file, block.body) for passage, block in blocks}
        contexts.append("".join([*pieces, context[at:]]))
    return contexts


def _reference(block: Block) -> str:
    first_line = block.body.split("\n", 1)[0]
    words = first_line[:_FIRST_WORDS].rsplit(" ", 1)[0]
    return f"{block.head}, quoted above:\n{words} …"
