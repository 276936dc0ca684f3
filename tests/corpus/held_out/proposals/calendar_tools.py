"""Weeks and shifts."""


def week_of(day: int) -> int:
    return (day - 1) // 7 + 1


def shift(hour: int) -> str:
    if 6 <= hour < 14:
        return "early"
    if 14 <= hour <= 22:
        return "late"
    return "night"


def per_week(total: int, weeks: list[int]) -> int:
    return total // len(weeks)


def free_days(taken: set[int], days: int) -> list[int]:
    return [day for day in range(1, days) if day not in taken]
