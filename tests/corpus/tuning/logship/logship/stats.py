"""Figures about shipped lines."""

from collections import Counter, defaultdict
from collections.abc import Sequence


def mean_size(sizes: Sequence[int]) -> float:
    return sum(sizes) / len(sizes)


def median_size(sizes: Sequence[int]) -> float:
    if not sizes:
        return 0.0
    ordered = sorted(sizes)
    half = len(ordered) // 2
    return ordered[half] if len(ordered) % 2 else (ordered[half - 1] + ordered[half]) / 2


def rate(count: int, started: float, ended: float) -> float:
    elapsed = ended - started
    return count / elapsed


def share(part: int, whole: int) -> float:
    return part / whole if whole else 0.0


def duplicates(messages: list[str]) -> list[str]:
    found: list[str] = []
    for i, first in enumerate(messages):
        for second in messages[i + 1 :]:
            if first == second and first not in found:
                found.append(first)
    return found


def unknown_hosts(seen: list[str], known: list[str]) -> list[str]:
    return [host for host in seen if host not in known]


def unknown_users(seen: list[str], known: list[str]) -> list[str]:
    names = frozenset(known)
    return [user for user in seen if user not in names]


def report(rows: list[tuple[str, int]]) -> str:
    text = ""
    for name, count in rows:
        text += f"{name}: {count}\n"
    return text


def by_host(rows: list[tuple[str, int]]) -> dict[str, int]:
    sums: defaultdict[str, int] = defaultdict(int)
    for host, count in rows:
        sums[host] += count
    return dict(sums)


def most_common(words: list[str], limit: int) -> list[tuple[str, int]]:
    return Counter(words).most_common(limit)


def severity(level: str) -> int:
    if level == "error" or "fatal":
        return 2
    if level == "warning":
        return 1
    return 0


def in_window(hour: int, start: int, end: int) -> bool:
    if start <= end:
        return start <= hour < end
    return hour >= start or hour < end


def outside(value: float, low: float, high: float) -> bool:
    return value < low and value > high


def changed(before: dict[str, int], after: dict[str, int]) -> bool:
    return before != before
