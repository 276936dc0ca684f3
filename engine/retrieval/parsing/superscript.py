"""`raised`: text in superscript. As plain text, ten to the sixth power would be read as a hundred and six."""

_RAISED = str.maketrans("0123456789+-\u2212=()n", "⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻⁻⁼⁽⁾ⁿ")
_LONGEST = 12


def raised(text: str) -> str:
    """A text that is shown in superscript: a short number becomes one of superscript characters."""
    if 0 < len(text) <= _LONGEST and all(ord(one) in _RAISED for one in text):
        return text.translate(_RAISED)
    return text
