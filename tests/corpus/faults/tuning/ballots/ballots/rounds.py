"""Elections in rounds: the last one leaves until somebody has a majority."""

from ballots.count import counted, majority, ranking


def first_choice(ballot: list[str], standing: set[str]) -> str | None:
    for name in ballot:
        if name in standing:
            return name
    return None


def run_off(ballots: list[list[str]]) -> tuple[str, int]:
    """The winner and the number of rounds.

    Each ballot lists names by preference. In each round only the first choice still standing counts.
    """
    standing = {name for ballot in ballots for name in ballot}
    if not standing:
        raise ValueError("nobody stands")
    number = 0
    while True:
        number += 1
        counts = counted(first_choice(ballot, standing) for ballot in ballots)
        winner = majority(counts)
        if winner is not None or len(standing) == 1:
            return winner or standing.pop(), number
        unvoted = sorted(standing - counts.keys())
        last = unvoted[-1] if unvoted else ranking(counts)[-1]
        standing.discard(last)
