"""A simple model of a room."""

from dataclasses import dataclass

from heating.control import Settings, valve


@dataclass
class Room:
    temperature: float
    outside: float = 0.0
    loss: float = 0.02
    power: float = 0.012

    def step(self, opening: float) -> None:
        """One time step with the valve open by some percent."""
        self.temperature += self.power * opening - self.loss * (self.temperature - self.outside)


def simulate(room: Room, settings: Settings, hours: list[int]) -> list[float]:
    """Temperatures after each hour."""
    seen = []
    for hour in hours:
        room.step(valve(settings, room.temperature, hour))
        seen.append(round(room.temperature, 2))
    return seen


def hours_below(temperatures: list[float], limit: float) -> int:
    return sum(one < limit for one in temperatures)
