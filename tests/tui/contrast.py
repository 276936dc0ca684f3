"""Contrast between two colours, as WCAG 2.2 defines it (success criteria 1.4.3 and 1.4.11)."""

from textual.color import Color


def _linear(channel: int) -> float:
    value = channel / 255
    return value / 12.92 if value <= 0.04045 else float(((value + 0.055) / 1.055) ** 2.4)


def luminance(color: Color) -> float:
    """Relative luminance, 0 (black) to 1 (white)."""
    return 0.2126 * _linear(color.r) + 0.7152 * _linear(color.g) + 0.0722 * _linear(color.b)


def contrast(first: str, second: str) -> float:
    """Contrast ratio of two colours, 1 to 21; the order does not matter."""
    low, high = sorted((luminance(Color.parse(first)), luminance(Color.parse(second))))
    return (high + 0.05) / (low + 0.05)
