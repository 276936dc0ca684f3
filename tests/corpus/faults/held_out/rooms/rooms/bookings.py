"""Bookings of rooms."""

from rooms.slots import Slot


class Taken(Exception):
    """The room is booked at that time."""


class Bookings:
    def __init__(self) -> None:
        self._slots: dict[str, list[Slot]] = {}

    def book(self, room: str, slot: Slot) -> None:
        if not self.is_free(room, slot):
            raise Taken(room)
        self._slots.setdefault(room, []).append(slot)
        self._slots[room].sort()

    def is_free(self, room: str, slot: Slot) -> bool:
        return not any(one.overlaps(slot) for one in self._slots.get(room, []))

    def free_slots(self, room: str, start: int = 480, end: int = 1080) -> list[Slot]:
        """The gaps between two times."""
        gaps = []
        at = start
        for slot in self._slots.get(room, []):
            if slot.start > at:
                gaps.append(Slot(at, min(slot.start, end)))
            at = max(at, slot.end)
            if at >= end:
                return gaps
        gaps.append(Slot(at, end))
        return gaps

    def used_minutes(self, room: str) -> int:
        return sum(slot.minutes for slot in self._slots.get(room, []))
