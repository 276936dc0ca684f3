"""What design agents take from each other's detectors: findings of some rules, computed once for all."""

from agents.detectors.design.accessibility import ACCESSIBILITY
from agents.detectors.design.scale import SCALE
from agents.detectors.design.usability import USABILITY
from agents.detectors.detector import Detector, selected
from agents.detectors.security.browser import BROWSER

SELECTIONS: tuple[Detector, ...] = (
    selected(
        "hindrances",
        "Finds controls without a name, a label or a keyboard, which nobody can use.",
        ["link-name", "button-name", "input-label", "click-without-key"],
        ACCESSIBILITY,
    ),
    selected(
        "secrets_in_addresses",
        "Finds forms that put secrets into the address.",
        ["sensitive-get", "plain-form"],
        BROWSER,
    ),
    selected("readability", "Finds text too small to read.", ["tiny-text"], SCALE),
    selected("dead_links", "Finds links that lead nowhere.", ["dead-link"], USABILITY),
)
