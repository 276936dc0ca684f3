"""`divided_before`: divides a text that arrives in pieces before what may become a marker."""


def divided_before(text: str, marker: str) -> tuple[str, str]:
    """The text before what may be the beginning of the marker at its end, and that with the space before it.

    Args:
        text: what has arrived; it does not end with the whole marker.
        marker: at least one character.
    """
    longest = min(len(text), len(marker) - 1)
    partial = next((n for n in range(longest, 0, -1) if text.endswith(marker[:n])), 0)
    certain = text[: len(text) - partial].rstrip()
    return certain, text[len(certain) :]
