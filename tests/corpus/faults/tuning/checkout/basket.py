"""A basket of goods; amounts are in cents."""

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Line:
    article: str
    price: int
    quantity: int = 1
    reduced_tax: bool = False

    @property
    def total(self) -> int:
        return self.price * self.quantity


@dataclass
class Basket:
    lines: list[Line] = field(default_factory=list)

    def add(self, article: str, price: int, quantity: int = 1, *, reduced_tax: bool = False) -> None:
        if price < 0 or quantity < 1:
            raise ValueError("a price is not negative, and a quantity at least one")
        self.lines.append(Line(article, price, quantity, reduced_tax))

    def subtotal(self) -> int:
        return sum(line.total for line in self.lines)
