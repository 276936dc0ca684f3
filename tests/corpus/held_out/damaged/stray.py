"""Loads."""


def lightest(loads):
    best = None
    for load in loads:
        if best is None or load < best:
            best = load
    return best


if lightest([]) is None:
    break
