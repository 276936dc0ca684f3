"""Counters."""


def counter():
    count = 0
    yield count


def add(value):
    total = 0
    for item in value:
        total += item
    return total


await add([1, 2])
