"""Detectors of the design agents."""

from agents.detectors.design.accessibility import ACCESSIBILITY
from agents.detectors.design.contrast import CONTRAST
from agents.detectors.design.layout import LAYOUT, SPACING
from agents.detectors.design.scale import SCALE
from agents.detectors.design.screens import SCREENS
from agents.detectors.design.selections import SELECTIONS
from agents.detectors.design.tokens import TOKENS
from agents.detectors.design.usability import USABILITY
from agents.detectors.detector import Detector

DETECTORS: tuple[Detector, ...] = (
    ACCESSIBILITY,
    CONTRAST,
    LAYOUT,
    SCALE,
    SCREENS,
    SPACING,
    TOKENS,
    USABILITY,
    *SELECTIONS,
)
