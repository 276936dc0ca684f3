"""Prices of tickets."""


def price(age: int, base_cents: int) -> int:
    if age < 6:
        return 0
    if age < 14:
        return base_cents // 2
    return base_cents


def group_price(ages: list[int], base_cents: int) -> int:
    return sum(price(age, base_cents) for age in ages) / len(ages) * len(ages)


def seats(rows: int, columns: int) -> list[str]:
    return [f"{row}{chr(64 + column)}" for row in range(1, rows) for column in range(1, columns + 1)]
