"""Formatting of other libraries' exceptions for our error messages."""


def first_line(error: BaseException) -> str:
    """The first line of an error's text, at most 200 characters, without its full stop; the type if empty."""
    lines = str(error).strip().splitlines()
    return lines[0][:200].rstrip(". ") if lines else type(error).__name__


def as_sentence(error: BaseException) -> str:
    """The whole text of an error, with a full stop; the type if empty."""
    text = str(error).strip() or type(error).__name__
    return text if text.endswith(".") else f"{text}."
