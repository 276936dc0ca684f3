"""Other libraries' errors, in our sentences."""


def first_line(error: BaseException) -> str:
    """The first line of an error's text, without its full stop; its type if it has no text."""
    lines = str(error).strip().splitlines()
    return lines[0][:200].rstrip(". ") if lines else type(error).__name__


def as_sentence(error: BaseException) -> str:
    """The whole text of an error, with a full stop; its type if it has no text."""
    text = str(error).strip() or type(error).__name__
    return text if text.endswith(".") else f"{text}."
