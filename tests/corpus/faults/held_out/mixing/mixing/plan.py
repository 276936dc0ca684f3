"""Which amounts of two solutions give a wanted one (alligation)."""

from mixing.solutions import Solution, mixed


def parts(strong: float, weak: float, wanted: float) -> tuple[float, float]:
    """The shares of the strong and the weak solution, together 1."""
    if not weak <= wanted <= strong:
        raise ValueError("the wanted percentage lies between both")
    if strong == weak:
        return 1.0, 0.0
    share = (wanted - weak) / (strong - weak)
    return share, 1 - share


def plan(strong: float, weak: float, wanted: float, millilitres: float) -> tuple[Solution, Solution]:
    first, second = parts(strong, weak, wanted)
    return Solution(first * millilitres, strong), Solution(second * millilitres, weak)


def check(strong: float, weak: float, wanted: float, millilitres: float) -> bool:
    """Whether a plan gives what is wanted."""
    result = mixed(*plan(strong, weak, wanted, millilitres))
    return abs(result.percent - wanted) < 1e-6 and abs(result.millilitres - millilitres) < 1e-6
