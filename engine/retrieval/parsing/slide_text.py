"""`write_slide`: the text of one slide of a presentation, whichever program wrote it."""

from collections.abc import Iterable, Sequence

from engine.retrieval.parsing.block_writer import BlockWriter
from engine.retrieval.parsing.text_builder import TextBuilder
from engine.retrieval.parsing.text_flow import Block, joined


def write_slide(
    builder: TextBuilder,
    number: int,
    title: Sequence[Block],
    rest: Iterable[Block],
    notes: Sequence[Block] = (),
) -> None:
    """Append a slide as a page and a section.

    Args:
        builder: takes it.
        number: of the slide, from 1; names a slide without a title.
        title: its title, which comes first, wherever it stands.
        rest: everything else on it, and comments.
        notes: what its speaker sees.
    """
    begin_slide(builder)
    start = len(builder)
    builder.heading(1, joined(title) or f"Slide {number}")
    writer = BlockWriter(builder)
    writer.write(title)
    writer.write(rest)
    if notes:
        writer.write([notes[0]._replace(text=f"Notes: {notes[0].text}", tight=False)])
        writer.write(notes[1:])
    writer.finish()
    if len(builder) == start:
        skip_slide(builder)


def begin_slide(builder: TextBuilder) -> None:
    """Begin a page."""
    builder.paragraph()
    builder.mark_page()


def skip_slide(builder: TextBuilder) -> None:
    """Leave a page without text: two pages at one place would be one, and later ones have wrong numbers."""
    builder.add("\n")
