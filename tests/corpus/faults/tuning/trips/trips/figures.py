"""Figures about trips."""

from trips.track import Track


def kilometres(track: Track) -> float:
    return track.metres / 1000


def speed_kmh(track: Track) -> float:
    """Average speed in kilometres per hour."""
    if not track.seconds:
        return 0.0
    return kilometres(track) / (track.seconds / 3600)


def pace(track: Track) -> str:
    """Minutes and seconds for a kilometre, such as `5:30`."""
    if not track.metres:
        return "-"
    seconds = round(track.seconds / kilometres(track))
    return f"{seconds // 60}:{seconds % 60:02}"


def fastest(tracks: list[Track]) -> Track | None:
    return max(tracks, key=speed_kmh, default=None)


def summary(track: Track) -> str:
    return f"{track.name}: {kilometres(track):.1f} km, {speed_kmh(track):.1f} km/h"
