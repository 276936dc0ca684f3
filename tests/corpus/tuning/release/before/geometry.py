"""Rectangles."""


def area(width: float, height: float) -> float:
    """Return the area; negative sides raise ValueError."""
    if width < 0 or height < 0:
        raise ValueError("a side is negative")
    return width * height


def perimeter(width: float, height: float, *, closed: bool = True) -> float:
    """Return the length of the sides."""
    return 2 * (width + height) if closed else 2 * width + height


def scale(width: float, height: float, factor: float = 1.0) -> tuple[float, float]:
    """Return both sides, scaled."""
    return width * factor, height * factor


def is_square(width: float, height: float) -> bool:
    """Whether the sides are equal."""
    return abs(width - height) < 1e-9


def _round(value: float) -> float:
    return round(value, 6)
