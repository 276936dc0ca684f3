"""Small statistics."""


def mean(values):
    return sum(values) / len(values)


def share(part, whole):
    return part / whole


def per_day(total: int, days: int) -> int:
    return total // days


def highest(values):
    return max(values)


def newest(entries):
    return entries[-1]


def first_even(values):
    return next(one for one in values if one % 2 == 0)


def pairs(values):
    found = []
    for at in range(len(values) + 1):
        found.append((at, values[at]))
    return found


def collect(value, into=[]):
    into.append(value)
    return into


def is_weekday(day: str) -> bool:
    if day == "monday" or "tuesday":
        return True
    return False


def has_code(code) -> bool:
    return code is "ok"


def missing(value) -> bool:
    return value == None


def seats(rows: int, columns: int) -> list[str]:
    return [f"{row}{chr(64 + column)}" for row in range(1, rows) for column in range(1, columns + 1)]


def sign(number: float) -> str:
    if number > 0:
        return "plus"
    if number < 0:
        return "minus"
