"""Other libraries' errors, as the end of one of our sentences."""


def first_line(error: BaseException) -> str:
    """The first line of an error's text, without its full stop; its type if it has no text."""
    lines = str(error).strip().splitlines()
    return lines[0][:200].rstrip(". ") if lines else type(error).__name__
