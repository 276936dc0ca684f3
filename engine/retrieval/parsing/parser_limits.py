"""`ParserLimits`: what a parser may use for one file."""

from dataclasses import dataclass

MIB = 1 << 20


@dataclass(frozen=True, slots=True)
class ParserLimits:
    """Bounds of the work on one file. A file beyond one of them is `Unreadable`.

    Attributes:
        file_bytes: the longest file that is read at once; longer texts are read in segments.
        segment_bytes: length of such a segment.
        text_bytes: the longest text that a parser may extract, in UTF-8.
        memory_bytes: address space of a parser process.
        cpu_s: processor time for one file.
        wall_s: time for one file.
        ocr_factor: how many times as long images and PDFs may take where OCR is installed: a scanned page
            takes seconds.
    """

    file_bytes: int = 64 * MIB
    segment_bytes: int = 4 * MIB
    text_bytes: int = 32 * MIB
    memory_bytes: int = 2048 * MIB
    cpu_s: int = 60
    wall_s: float = 120.0
    ocr_factor: int = 10
