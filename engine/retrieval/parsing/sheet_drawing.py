"""`read_text_boxes`: the texts of shapes that lie over the cells of an Office Open XML sheet."""

from engine.retrieval.parsing.office_package import OfficePackage
from engine.retrieval.parsing.safe_xml import Attributes, read_xml


def read_text_boxes(package: OfficePackage, sheet: str) -> list[str]:
    """One line for each paragraph, in the order of the file.

    Args:
        package: the file.
        sheet: the sheet's part.
    """
    lines: list[str] = []
    for part in package.all_related(sheet, "drawing"):
        lines += _paragraphs(package.read(part))
    return lines


def _paragraphs(data: bytes) -> list[str]:
    lines: list[str] = []
    parts: list[str] = []
    in_text = False
    fallbacks = 0  # a fallback repeats, for older programs, what stands beside it

    def start(name: str, attributes: Attributes) -> None:
        nonlocal parts, in_text, fallbacks
        match name:
            case "Fallback":
                fallbacks += 1
            case "p":
                parts = []
            case "br":
                parts.append(" ")
            case "t":
                in_text = not fallbacks

    def end(name: str) -> None:
        nonlocal in_text, fallbacks
        match name:
            case "Fallback":
                fallbacks -= 1
            case "t":
                in_text = False
            case "p":
                line = " ".join("".join(parts).split())
                if line:
                    lines.append(line)
                parts.clear()

    def text(text: str) -> None:
        if in_text:
            parts.append(text)

    read_xml(data, start=start, end=end, text=text)
    return lines
