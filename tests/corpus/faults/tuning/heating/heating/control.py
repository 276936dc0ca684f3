"""Control of a radiator valve."""

from dataclasses import dataclass


@dataclass
class Settings:
    target: float = 20.0
    gain: float = 25.0
    band: float = 0.5
    night_drop: float = 4.0


def clamp(value: float, low: float, high: float) -> float:
    return max(low, min(high, value))


def target_at(settings: Settings, hour: int) -> float:
    """The wanted temperature: lower between 22 and 6 o'clock."""
    if hour >= 22 or hour < 6:
        return settings.target - settings.night_drop
    return settings.target


def valve(settings: Settings, measured: float, hour: int = 12) -> float:
    """How far the valve opens, in percent: the colder the room, the further."""
    error = target_at(settings, hour) - measured
    if abs(error) <= settings.band:
        return 10.0
    return clamp(error * settings.gain, 0.0, 100.0)
