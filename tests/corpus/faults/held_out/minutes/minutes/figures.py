"""Figures about a meeting."""

from minutes.transcript import Remark


def words_by_speaker(remarks: list[Remark]) -> dict[str, int]:
    counts: dict[str, int] = {}
    for remark in remarks:
        counts[remark.speaker] = counts.get(remark.speaker, 0) + remark.words
    return counts


def longest_turn(remarks: list[Remark]) -> tuple[str, int]:
    """Who spoke the most words without a break by another, and how many."""
    best = ("", 0)
    speaker = ""
    words = 0
    for remark in remarks:
        if remark.speaker != speaker:
            speaker = remark.speaker
            words = 0
        words += remark.words
        if words > best[1]:
            best = (speaker, words)
    return best


def shares(remarks: list[Remark]) -> dict[str, int]:
    """Percent of all words by speaker, rounded."""
    counts = words_by_speaker(remarks)
    total = sum(counts.values())
    return {name: round(100 * count / total) for name, count in counts.items()} if total else {}


def questions(remarks: list[Remark]) -> list[str]:
    return [remark.text for remark in remarks if remark.text.endswith("?")]
