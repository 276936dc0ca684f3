"""Colours of style sheets: parsing, contrast and difference.

Contrast is WCAG 2.2's relative-luminance ratio; difference is CIE76 in CIELAB (D65), where about 2.3 is just
noticeable.
"""

import colorsys
import re
from typing import NamedTuple

_HEX = re.compile(r"#([0-9a-fA-F]{3,4}|[0-9a-fA-F]{6}|[0-9a-fA-F]{8})\Z")
_FUNCTION = re.compile(r"(rgba?|hsla?)\(([^()]*)\)\Z", re.IGNORECASE)
_NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)%?")


class Color(NamedTuple):
    """sRGB in 0–255 and opacity in [0, 1]."""

    red: int
    green: int
    blue: int
    alpha: float = 1.0

    @property
    def hex(self) -> str:
        """`#rrggbb`, without the opacity."""
        return f"#{self.red:02x}{self.green:02x}{self.blue:02x}"


_NAMED = {
    "black": 0x000000, "white": 0xFFFFFF, "red": 0xFF0000, "green": 0x008000, "blue": 0x0000FF,
    "gray": 0x808080, "grey": 0x808080, "silver": 0xC0C0C0, "lightgray": 0xD3D3D3,
    "lightgrey": 0xD3D3D3, "darkgray": 0xA9A9A9, "darkgrey": 0xA9A9A9, "dimgray": 0x696969,
    "yellow": 0xFFFF00, "orange": 0xFFA500, "purple": 0x800080, "navy": 0x000080, "teal": 0x008080,
    "maroon": 0x800000, "olive": 0x808000, "lime": 0x00FF00, "aqua": 0x00FFFF, "cyan": 0x00FFFF,
    "magenta": 0xFF00FF, "fuchsia": 0xFF00FF, "pink": 0xFFC0CB, "gold": 0xFFD700,
    "tomato": 0xFF6347, "crimson": 0xDC143C, "coral": 0xFF7F50, "salmon": 0xFA8072,
    "khaki": 0xF0E68C, "indigo": 0x4B0082, "violet": 0xEE82EE, "beige": 0xF5F5DC,
    "ivory": 0xFFFFF0, "lavender": 0xE6E6FA, "whitesmoke": 0xF5F5F5, "gainsboro": 0xDCDCDC,
    "lightblue": 0xADD8E6, "skyblue": 0x87CEEB, "steelblue": 0x4682B4, "royalblue": 0x4169E1,
    "dodgerblue": 0x1E90FF, "slategray": 0x708090, "slategrey": 0x708090,
    "darkblue": 0x00008B, "darkred": 0x8B0000, "darkgreen": 0x006400, "lightgreen": 0x90EE90,
    "forestgreen": 0x228B22, "seagreen": 0x2E8B57, "chocolate": 0xD2691E, "brown": 0xA52A2A,
    "rebeccapurple": 0x663399,
}  # fmt: skip


def parse_color(text: str) -> Color | None:
    """The colour of a CSS value, or None if it is none that can be told without a browser."""
    text = text.strip().lower()
    if text == "transparent":
        return Color(0, 0, 0, 0.0)
    if text in _NAMED:
        value = _NAMED[text]
        return Color(value >> 16, value >> 8 & 255, value & 255)
    if match := _HEX.match(text):
        return _from_hex(match[1])
    if match := _FUNCTION.match(text):
        return _from_function(match[1], _NUMBER.findall(match[2]))
    return None


def _from_hex(digits: str) -> Color:
    if len(digits) <= 4:
        digits = "".join(digit * 2 for digit in digits)
    parts = [int(digits[at : at + 2], 16) for at in range(0, len(digits), 2)]
    red, green, blue = parts[:3]
    return Color(red, green, blue, parts[3] / 255 if len(parts) == 4 else 1.0)


def _from_function(name: str, parts: list[str]) -> Color | None:
    if len(parts) not in (3, 4):
        return None
    alpha = _fraction(parts[3], 1.0) if len(parts) == 4 else 1.0
    if name.startswith("rgb"):
        channels = [round(_fraction(part, 255.0) * 255) for part in parts[:3]]
    else:
        hue = float(parts[0].rstrip("%")) % 360 / 360
        saturation, lightness = (_fraction(part, 100.0) for part in parts[1:3])
        rgb = colorsys.hls_to_rgb(hue, min(lightness, 1.0), min(saturation, 1.0))
        channels = [round(part * 255) for part in rgb]
    red, green, blue = (min(max(channel, 0), 255) for channel in channels)
    return Color(red, green, blue, min(max(alpha, 0.0), 1.0))


def _fraction(text: str, whole: float) -> float:
    """A number or percentage as a fraction of `whole`."""
    return float(text[:-1]) / 100 if text.endswith("%") else float(text) / whole


def over(front: Color, back: Color) -> Color:
    """`front` painted on an opaque `back`."""
    share = front.alpha
    mixed = (round(f * share + b * (1 - share)) for f, b in zip(front[:3], back[:3], strict=True))
    return Color(*mixed)


def luminance(color: Color) -> float:
    """Relative luminance in [0, 1] (WCAG 2.2)."""
    linear = [
        channel / 12.92 if channel <= 0.04045 else ((channel + 0.055) / 1.055) ** 2.4
        for channel in (part / 255 for part in color[:3])
    ]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: Color, other: Color) -> float:
    """Contrast ratio of two opaque colours, in [1, 21]."""
    light, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def difference(one: Color, other: Color) -> float:
    """CIE76 difference of two opaque colours."""
    pairs = zip(_lab(one), _lab(other), strict=True)
    return float(sum((a - b) ** 2 for a, b in pairs) ** 0.5)


def _lab(color: Color) -> tuple[float, float, float]:
    red, green, blue = (
        channel / 12.92 if channel <= 0.04045 else ((channel + 0.055) / 1.055) ** 2.4
        for channel in (part / 255 for part in color[:3])
    )
    x = (0.4124 * red + 0.3576 * green + 0.1805 * blue) / 0.95047
    y = 0.2126 * red + 0.7152 * green + 0.0722 * blue
    z = (0.0193 * red + 0.1192 * green + 0.9505 * blue) / 1.08883
    fx, fy, fz = (
        part ** (1 / 3) if part > 0.008856 else 7.787 * part + 16 / 116 for part in (x, y, z)
    )
    return 116 * fy - 16, 500 * (fx - fy), 200 * (fy - fz)


def readable(front: Color, back: Color, ratio: float) -> Color:
    """The nearest shade of `front`, darker or lighter, with at least this contrast on `back`."""
    best = front
    for step in range(101):
        share = step / 100
        for end in (0, 255):
            shade = Color(*(round(part + (end - part) * share) for part in front[:3]))
            if contrast(shade, back) >= ratio:
                return shade
            if contrast(shade, back) > contrast(best, back):
                best = shade
    return best
