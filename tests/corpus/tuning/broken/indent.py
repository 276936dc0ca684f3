"""Opening hours."""


def hours(day: int) -> str:
    if day < 5:
        return "9 to 18"
      return "closed"
