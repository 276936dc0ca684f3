"""A cash desk. Amounts are kept in cents; texts and numbers of customers are in euros."""

from decimal import Decimal


def cents(amount: str | float) -> int:
    """An amount of euros as cents, such as 1999 for `19.99`."""
    return round(float(amount) * 100)


def euros(amount: int) -> str:
    sign = "-" if amount < 0 else ""
    whole, rest = divmod(abs(amount), 100)
    return f"{sign}{whole}.{rest:02}"


class Till:
    def __init__(self, float_cents: int = 0) -> None:
        self.balance = float_cents
        self.sales: list[int] = []

    def sell(self, *prices: str | float) -> int:
        total = sum(cents(price) for price in prices)
        self.sales.append(total)
        self.balance += total
        return total

    def refund(self, amount: str | float) -> None:
        value = cents(amount)
        if value > self.balance:
            raise ValueError("not enough in the till")
        self.balance -= value
        self.sales.append(-value)

    def day_total(self) -> str:
        return euros(sum(self.sales))


def tax_part(total: int, percent: str) -> int:
    """The tax that a total contains, rounded to cents."""
    rate = Decimal(percent)
    return int((Decimal(total) * rate / (100 + rate)).quantize(Decimal(1)))
