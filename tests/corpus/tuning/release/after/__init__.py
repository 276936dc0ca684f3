"""Version 2: the public names."""

from .geometry import area, diagonal, perimeter, scale

__all__ = ["area", "diagonal", "perimeter", "scale"]
