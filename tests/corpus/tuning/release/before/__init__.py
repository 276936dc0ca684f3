"""Version 1: the public names."""

from .geometry import area, is_square, perimeter, scale

__all__ = ["area", "is_square", "perimeter", "scale"]
