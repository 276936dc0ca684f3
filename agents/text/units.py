"""Units of measure: SI with prefixes, common others, and currencies, each as a factor and a dimension.

A dimension is a tuple of (base unit, exponent), sorted, zero exponents left out. Currencies are dimensions of
their own: there are no exchange rates. Temperatures other than kelvin are not multiplied, only converted.
Factors: BIPM, The International System of Units (9th edition); NIST SP 811, appendix B.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

Dimension = tuple[tuple[str, int], ...]
NO_DIMENSION: Dimension = ()


@dataclass(frozen=True, slots=True)
class Unit:
    """A unit: `value * factor + offset` gives base units.

    Attributes:
        symbol: how results are written.
        factor: in base units.
        dimension: of the base units.
        offset: of temperatures, in kelvin.
    """

    symbol: str
    factor: Fraction
    dimension: Dimension
    offset: Fraction = Fraction(0)


def combine(one: Dimension, other: Dimension, sign: int = 1) -> Dimension:
    """The dimension of a product, or of a quotient for `sign` -1."""
    exponents = dict(one)
    for base, exponent in other:
        exponents[base] = exponents.get(base, 0) + sign * exponent
    return tuple(sorted((base, exponent) for base, exponent in exponents.items() if exponent))


def power(dimension: Dimension, exponent: int) -> Dimension:
    """The dimension of a power."""
    return tuple((base, one * exponent) for base, one in dimension if exponent)


def unit_named(name: str) -> Unit | None:
    """The unit of a symbol or English name, singular or plural, or None.

    Symbols are case-sensitive (`mW` and `MW` differ); names are not.
    """
    return _SYMBOLS.get(name) or _NAMES.get(name.lower())


def _base(**exponents: int) -> Dimension:
    return tuple(sorted(exponents.items()))


_PREFIXES: Mapping[str, tuple[str, Fraction]] = {
    "n": ("nano", Fraction(1, 10**9)), "µ": ("micro", Fraction(1, 10**6)),
    "m": ("milli", Fraction(1, 1000)), "c": ("centi", Fraction(1, 100)),
    "d": ("deci", Fraction(1, 10)), "h": ("hecto", Fraction(100)), "k": ("kilo", Fraction(1000)),
    "M": ("mega", Fraction(10**6)), "G": ("giga", Fraction(10**9)), "T": ("tera", Fraction(10**12)),
}  # fmt: skip
_N = _base(kg=1, m=1, s=-2)
_J = _base(kg=1, m=2, s=-2)
_W = _base(kg=1, m=2, s=-3)
# Symbol, names, factor, dimension, prefixes that are in use.
_PREFIXED: tuple[tuple[str, str, Fraction, Dimension, str], ...] = (
    ("m", "metre meter", Fraction(1), _base(m=1), "nµmcdk"),
    ("g", "gram gramme", Fraction(1, 1000), _base(kg=1), "µmk"),
    ("s", "second sec", Fraction(1), _base(s=1), "nµm"),
    ("A", "ampere amp", Fraction(1), _base(A=1), "µmk"),
    ("l", "litre liter", Fraction(1, 1000), _base(m=3), "µmcdh"),
    ("L", "", Fraction(1, 1000), _base(m=3), "µmcd"),
    ("N", "newton", Fraction(1), _N, "mkM"),
    ("J", "joule", Fraction(1), _J, "mkMG"),
    ("W", "watt", Fraction(1), _W, "µmkMGT"),
    ("Wh", "watt-hour", Fraction(3600), _J, "mkMGT"),
    ("Pa", "pascal", Fraction(1), _base(kg=1, m=-1, s=-2), "hkM"),
    ("bar", "", Fraction(10**5), _base(kg=1, m=-1, s=-2), "m"),
    ("Hz", "hertz", Fraction(1), _base(s=-1), "kMGT"),
    ("V", "volt", Fraction(1), _base(A=-1, kg=1, m=2, s=-3), "µmkM"),
    ("Ω", "ohm", Fraction(1), _base(A=-2, kg=1, m=2, s=-3), "mkM"),
    ("t", "tonne", Fraction(1000), _base(kg=1), "kM"),
    ("B", "byte", Fraction(8), _base(bit=1), "kMGT"),
    ("bit", "bit", Fraction(1), _base(bit=1), "kMGT"),
)
_PLAIN: tuple[tuple[str, str, Fraction, Dimension], ...] = (
    ("min", "minute", Fraction(60), _base(s=1)),
    ("h", "hour hr", Fraction(3600), _base(s=1)),
    ("d", "day", Fraction(86_400), _base(s=1)),
    ("week", "week", Fraction(604_800), _base(s=1)),
    ("year", "year", Fraction(31_557_600), _base(s=1)),
    ("ha", "hectare", Fraction(10**4), _base(m=2)),
    ("in", "inch", Fraction(254, 10**4), _base(m=1)),
    ("ft", "foot", Fraction(3048, 10**4), _base(m=1)),
    ("yd", "yard", Fraction(9144, 10**4), _base(m=1)),
    ("mi", "mile", Fraction(1_609_344, 1000), _base(m=1)),
    ("nmi", "", Fraction(1852), _base(m=1)),
    ("acre", "acre", Fraction(40_468_564_224, 10**7), _base(m=2)),
    ("oz", "ounce", Fraction(28_349_523_125, 10**12), _base(kg=1)),
    ("lb", "pound", Fraction(45_359_237, 10**8), _base(kg=1)),
    ("gal", "gallon", Fraction(3_785_411_784, 10**12), _base(m=3)),
    ("kn", "knot", Fraction(1852, 3600), _base(m=1, s=-1)),
    ("mph", "", Fraction(1_609_344, 3_600_000), _base(m=1, s=-1)),
    ("kph", "", Fraction(1000, 3600), _base(m=1, s=-1)),
    ("cal", "calorie", Fraction(4184, 1000), _J),
    ("kcal", "kilocalorie", Fraction(4184), _J),
    ("K", "kelvin", Fraction(1), _base(K=1)),
    ("KiB", "kibibyte", Fraction(8 * 2**10), _base(bit=1)),
    ("MiB", "mebibyte", Fraction(8 * 2**20), _base(bit=1)),
    ("GiB", "gibibyte", Fraction(8 * 2**30), _base(bit=1)),
    ("EUR", "euro", Fraction(1), _base(EUR=1)),
    ("USD", "dollar", Fraction(1), _base(USD=1)),
    ("INR", "rupee", Fraction(1), _base(INR=1)),
    ("JPY", "yen", Fraction(1), _base(JPY=1)),
    ("GBP", "", Fraction(1), _base(GBP=1)),
    ("CHF", "", Fraction(1), _base(CHF=1)),
)
_ALIASES = {
    "€": "EUR", "$": "USD", "£": "GBP", "₹": "INR", "¥": "JPY", "us": "µs", "um": "µm", "ug": "µg",
    "m²": "m2", "m³": "m3", "hrs": "h", "mins": "min", "secs": "s", "lbs": "lb", "KB": "kB", "kmh": "kph",
}  # fmt: skip
_PLURALS = {"foot": "feet", "inch": "inches", "hertz": "hertz", "yen": "yen"}


def _symbols() -> dict[str, Unit]:
    units: dict[str, Unit] = {}
    for symbol, _, factor, dimension, prefixes in _PREFIXED:
        units[symbol] = Unit(symbol, factor, dimension)
        for prefix in prefixes:
            name = prefix + symbol
            units[name] = Unit(name, _PREFIXES[prefix][1] * factor, dimension)
    for symbol, _, factor, dimension in _PLAIN:
        units[symbol] = Unit(symbol, factor, dimension)
    for symbol in ("mm", "cm", "dm", "m", "km", "ft", "in", "yd", "mi"):
        for exponent, mark in ((2, "²"), (3, "³")):
            unit = units[symbol]
            written = Unit(symbol + mark, unit.factor**exponent, power(unit.dimension, exponent))
            units[symbol + mark] = units[f"{symbol}{exponent}"] = written
    kelvin = _base(K=1)
    units["°C"] = Unit("°C", Fraction(1), kelvin, Fraction(27_315, 100))
    units["°F"] = Unit("°F", Fraction(5, 9), kelvin, Fraction(45_967, 180))
    return units | {alias: units[symbol] for alias, symbol in _ALIASES.items()}


def _names(units: Mapping[str, Unit]) -> dict[str, Unit]:
    named: dict[str, Unit] = {}
    for symbol, names, *_, prefixes in _PREFIXED:
        for name in names.split():
            named[name] = units[symbol]
            for prefix in prefixes:
                named[_PREFIXES[prefix][0] + name] = units[prefix + symbol]
    for symbol, names, *_ in _PLAIN:
        named |= dict.fromkeys(names.split(), units[symbol])
    named |= {_PLURALS.get(name, f"{name}s"): unit for name, unit in list(named.items())}
    for shape, exponent in (("square", "²"), ("cubic", "³")):
        for symbol, word in (
            ("m", "metre"),
            ("m", "meter"),
            ("km", "kilometre"),
            ("cm", "centimetre"),
        ):
            for plural in ("", "s"):
                named[f"{shape} {word}{plural}"] = units[symbol + exponent]
    for letter, word in (("C", "celsius"), ("F", "fahrenheit")):
        named |= dict.fromkeys([word, f"degrees {word}", f"°{letter}".lower()], units[f"°{letter}"])
    return named


_SYMBOLS = _symbols()
_NAMES = _names(_SYMBOLS)
