"""What is in the kitchen, by name, in grams or pieces."""


class Pantry:
    def __init__(self, amounts: dict[str, float] | None = None) -> None:
        self.amounts = dict(amounts or {})

    def has(self, name: str, amount: float) -> bool:
        return self.amounts.get(name, 0) >= amount

    def missing(self, needs: dict[str, float]) -> dict[str, float]:
        """What has to be bought."""
        lacking = {}
        for name, amount in needs.items():
            have = self.amounts.get(name, 0)
            if have < amount:
                lacking[name] = amount - have
        return lacking

    def use(self, needs: dict[str, float]) -> None:
        if self.missing(needs):
            raise LookupError("something is missing")
        for name, amount in needs.items():
            self.amounts[name] -= amount
