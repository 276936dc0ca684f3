"""What a customer pays."""

from basket import Basket

SHIPPING = 490
FREE_SHIPPING_FROM = 5000
TAX_PERCENT = 20
REDUCED_TAX_PERCENT = 5


def percent(amount: int, rate: int) -> int:
    """A share of an amount, rounded half up."""
    return (amount * rate + 50) // 100


def shipping(goods: int) -> int:
    return 0 if goods >= FREE_SHIPPING_FROM else SHIPPING


def tax(basket: Basket, discount: int = 0) -> int:
    """The tax on the goods after a discount in percent."""
    owed = 0
    for line in basket.lines:
        rate = REDUCED_TAX_PERCENT if line.reduced_tax else TAX_PERCENT
        owed += percent(line.total - percent(line.total, discount), rate)
    return owed


def total(basket: Basket, discount: int = 0) -> int:
    """Goods less the discount, their tax, and shipping, which is free by the price after the discount."""
    goods = basket.subtotal() - percent(basket.subtotal(), discount)
    return goods + tax(basket, discount) + shipping(goods)


def receipt(basket: Basket, discount: int = 0) -> list[str]:
    rows = [f"{line.quantity} x {line.article}: {line.total / 100:.2f}" for line in basket.lines]
    if discount:
        rows.append(f"discount {discount} %: -{percent(basket.subtotal(), discount) / 100:.2f}")
    rows.append(f"total: {total(basket, discount) / 100:.2f}")
    return rows
