"""Prices of a parcel service by zone and weight."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Step:
    up_to: float
    cents: int


class Tariff:
    """Steps by zone. Prices are looked up often and changed seldom, so they are kept."""

    def __init__(self) -> None:
        self._steps: dict[str, list[Step]] = {}
        self._prices: dict[tuple[str, float], int] = {}

    def set_steps(self, zone: str, steps: list[Step]) -> None:
        if not steps:
            raise ValueError("a zone has one step at least")
        self._steps[zone] = sorted(steps, key=lambda step: step.up_to)
        self._prices.clear()

    def zones(self) -> list[str]:
        return sorted(self._steps)

    def price(self, zone: str, kilograms: float) -> int:
        key = (zone, kilograms)
        if key not in self._prices:
            self._prices[key] = self._find(zone, kilograms)
        return self._prices[key]

    def _find(self, zone: str, kilograms: float) -> int:
        for step in self._steps[zone]:
            if kilograms <= step.up_to:
                return step.cents
        raise ValueError(f"{kilograms} kg is too heavy for {zone}")
