"""Shipments of several parcels."""

from dataclasses import dataclass, field

from tariffs import Tariff


@dataclass
class Shipment:
    zone: str
    weights: list[float] = field(default_factory=list)
    insured: bool = False

    def add(self, kilograms: float) -> None:
        if kilograms <= 0:
            raise ValueError("a parcel weighs something")
        self.weights.append(kilograms)


INSURANCE = 250


def cost(shipment: Shipment, tariff: Tariff) -> int:
    """In cents."""
    parcels = sum(tariff.price(shipment.zone, weight) for weight in shipment.weights)
    return parcels + (INSURANCE if shipment.insured and shipment.weights else 0)


def cheapest_zone(weights: list[float], tariff: Tariff) -> str:
    return min(tariff.zones(), key=lambda zone: cost(Shipment(zone, weights), tariff))
