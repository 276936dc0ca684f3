"""Giving change with few coins."""

COINS = (200, 100, 50, 20, 10, 5, 2, 1)


def change(amount: int) -> dict[int, int]:
    """Counts of coins by value, the greatest first."""
    if amount < 0:
        raise ValueError("too little was paid")
    counts: dict[int, int] = {}
    for coin in COINS:
        count, amount = divmod(amount, coin)
        if count:
            counts[coin] = count
    return counts


def num_coins(amount: int) -> int:
    return sum(change(amount).values())
