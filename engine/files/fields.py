"""`Fields`: typed, validated access to the untrusted key-value data in a model's files.

The errors of getters name the file and the key. Loaders read numbers through them, so that nothing
allocates memory by an unchecked number.
"""

import math
from collections.abc import Mapping

from engine.api.errors import ModelError

MAX_COUNT = 1 << 31
"""Upper bound of dimensions, ids and lengths; those of real models are far smaller."""


class Fields:
    """Read access to a mapping of untrusted values. A null value counts as a missing key.

    The getters raise `ModelError` for a value of the wrong type or range, and for a required key that
    is missing.
    """

    def __init__(self, values: Mapping[str, object], *, source: str) -> None:
        """`source` names the file in messages."""
        self._values = values
        self.source = source

    @classmethod
    def none(cls) -> "Fields":
        """Empty fields, for an optional object that is missing."""
        return cls({}, source="")

    def __contains__(self, key: str) -> bool:
        return self._values.get(key) is not None

    def names(self) -> tuple[str, ...]:
        """The keys that are not missing, in their order."""
        return tuple(key for key in self._values if key in self)

    def is_text(self, key: str) -> bool:
        """Whether the key holds a string."""
        return isinstance(self._values.get(key), str)

    def is_list(self, key: str) -> bool:
        """Whether the key holds a list."""
        return isinstance(self._values.get(key), list)

    def is_true(self, key: str) -> bool:
        """Whether the key holds true."""
        return self._values.get(key) is True

    def is_mapping(self, key: str) -> bool:
        """Whether the key holds an object."""
        return isinstance(self._values.get(key), dict)

    def under(self, prefix: str) -> "Fields":
        """The keys that start with `prefix.`, with that prefix removed."""
        start = prefix + "."
        nested = {
            key.removeprefix(start): value
            for key, value in self._values.items()
            if key.startswith(start)
        }
        return Fields(nested, source=f"{self.source}: {prefix}")

    def filled(self, defaults: Mapping[str, object]) -> "Fields":
        """These fields, and a default for each key of `defaults` that is missing."""
        given = {key: value for key, value in self._values.items() if value is not None}
        return Fields({**defaults, **given}, source=self.source)

    def renamed(self, names: Mapping[str, str]) -> "Fields":
        """These fields, and the values of other keys under further names: new name to key."""
        added = {name: self._values[key] for name, key in names.items() if key in self}
        return Fields({**self._values, **added}, source=self.source)

    def wrong(self, key: str, expected: str) -> ModelError:
        """The error for a key whose value is missing or not as expected."""
        value = self._values.get(key)
        if value is None:
            return ModelError(f"{self.source} has no {key}, which must be {expected}.")
        shown = repr(value) if isinstance(value, str | int | float) else f"a {type(value).__name__}"
        return ModelError(f"{self.source}: {key} must be {expected}, not {shown[:60]}.")

    def integer(
        self, key: str, *, default: int | None = None, low: int = 0, high: int = MAX_COUNT
    ) -> int:
        """An integer in [low, high]; `default` if the key is missing, required without one."""
        value = self._values.get(key)
        if value is None and default is not None:
            return default
        if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= high:
            raise self.wrong(key, f"an integer from {low} to {high}")
        return value

    def optional_integer(self, key: str, *, low: int = 0, high: int = MAX_COUNT) -> int | None:
        """An integer in [low, high], or None if the key is missing."""
        return self.integer(key, low=low, high=high) if key in self else None

    def number(self, key: str, *, default: float | None = None, positive: bool = True) -> float:
        """A finite number; above zero unless `positive` is False."""
        value = self._values.get(key)
        if value is None and default is not None:
            return default
        kind = "a number above zero" if positive else "a number"
        if not isinstance(value, int | float) or isinstance(value, bool):
            raise self.wrong(key, kind)
        try:
            number = float(value)
        except OverflowError as error:
            raise self.wrong(key, kind) from error
        if not math.isfinite(number) or (positive and number <= 0):
            raise self.wrong(key, kind)
        return number

    def nullable_number(self, key: str, *, default: float) -> float | None:
        """A finite number above zero; None for an explicit null, `default` if the key is missing."""
        if key in self._values and self._values[key] is None:
            return None
        return self.number(key, default=default)

    def flag(self, key: str, *, default: bool) -> bool:
        """A boolean."""
        value = self._values.get(key)
        if value is None:
            return default
        if not isinstance(value, bool):
            raise self.wrong(key, "true or false")
        return value

    def text(self, key: str, *, default: str | None = None) -> str:
        """A string; required without a default."""
        value = self._values.get(key)
        if value is None and default is not None:
            return default
        if not isinstance(value, str):
            raise self.wrong(key, "a string")
        return value

    def optional_text(self, key: str) -> str | None:
        """A string, or None if the key is missing."""
        return self.text(key) if key in self else None

    def texts(self, key: str) -> list[str]:
        """A list of strings; required."""
        value = self._values.get(key)
        if not isinstance(value, list) or not all(type(item) is str for item in value):
            raise self.wrong(key, "a list of strings")
        return value

    def integers(self, key: str) -> list[int]:
        """A list of integers; required."""
        value = self._values.get(key)
        if not isinstance(value, list) or not all(type(item) is int for item in value):
            raise self.wrong(key, "a list of integers")
        return value

    def flags(self, key: str) -> list[bool]:
        """A list of booleans; required."""
        value = self._values.get(key)
        if not isinstance(value, list) or not all(type(item) is bool for item in value):
            raise self.wrong(key, "a list of booleans")
        return value

    def numbers(self, key: str, *, finite: bool = True) -> list[float]:
        """A list of numbers, finite ones unless `finite` is False; required."""
        value = self._values.get(key)
        if not isinstance(value, list) or not all(
            type(item) in (int, float) and (math.isfinite(item) or not finite) for item in value
        ):
            raise self.wrong(key, "a list of numbers")
        return value

    def interval(self, key: str, *, default: tuple[float, float]) -> tuple[float, float]:
        """Two numbers, which may be infinite; transformers writes that as `{"__float__": "Infinity"}`."""
        value = self._values.get(key)
        if value is None:
            return default
        match value:
            case [lower, upper]:
                bounds = _bound(lower), _bound(upper)
                if bounds[0] <= bounds[1]:  # not if one is NaN
                    return bounds
        raise self.wrong(key, "a lower and an upper number")

    def mapping(self, key: str) -> "Fields | None":
        """A nested object, or None if the key is missing."""
        value = self._values.get(key)
        if value is None:
            return None
        if not isinstance(value, dict):
            raise self.wrong(key, "an object")
        return Fields(value, source=f"{self.source}: {key}")

    def objects(self, key: str) -> list["Fields"]:
        """A list of objects; required."""
        value = self._values.get(key)
        if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
            raise self.wrong(key, "a list of objects")
        return [Fields(item, source=f"{self.source}: {key}") for item in value]

    def string_values(self) -> set[str]:
        """The distinct values, all of which must be strings."""
        for key, value in self._values.items():
            if not isinstance(value, str):
                raise self.wrong(key, "a string")
        return {value for value in self._values.values() if isinstance(value, str)}


def _bound(value: object) -> float:
    """A number that may be infinite; NaN for anything else."""
    match value:
        case {"__float__": "Infinity"}:
            return math.inf
        case {"__float__": "-Infinity"}:
            return -math.inf
        case float():
            return value
        case int() if not isinstance(value, bool) and abs(value) <= MAX_COUNT:
            return float(value)
    return math.nan
