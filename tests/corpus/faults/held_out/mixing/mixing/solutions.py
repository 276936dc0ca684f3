"""Solutions of salt in water."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Solution:
    millilitres: float
    percent: float

    @property
    def grams(self) -> float:
        """Salt in it; percent are grams in 100 ml."""
        return self.millilitres * self.percent / 100


def mixed(one: Solution, other: Solution) -> Solution:
    volume = one.millilitres + other.millilitres
    if not volume:
        return Solution(0.0, 0.0)
    return Solution(volume, 100 * (one.grams + other.grams) / volume)


def diluted(solution: Solution, percent: float) -> Solution:
    """With water added until it has another percentage."""
    if not 0 < percent <= solution.percent:
        raise ValueError("water makes a solution weaker")
    return Solution(solution.grams * 100 / percent, percent)
