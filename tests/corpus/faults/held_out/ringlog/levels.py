"""Levels of lines such as `WARN disk is full`."""

from collections import Counter

from ring import RingLog

LEVELS = ("DEBUG", "INFO", "WARN", "ERROR")


def level_of(line: str) -> str:
    word = line.split(" ", 1)[0]
    return word if word in LEVELS else "INFO"


def at_least(log: RingLog, level: str) -> list[str]:
    lowest = LEVELS.index(level)
    return [line for line in log if LEVELS.index(level_of(line)) >= lowest]


def counts(log: RingLog) -> Counter[str]:
    return Counter(level_of(line) for line in log)


def status(log: RingLog) -> str:
    found = counts(log)
    worst = next((level for level in reversed(LEVELS) if found[level]), "none")
    more = f", {log.num_dropped} older lines dropped" if log.num_dropped else ""
    return f"{len(log)} lines, worst {worst}{more}"
