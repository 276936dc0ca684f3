"""The detector `bypasses`: ways around a check of who may do something, in Python.

What is reported lets a caller through whom the check was written to stop: the check itself is open
(`open_checks`), or nothing depends on it (`void_checks`).
"""

from agents.detectors.audit.per_file import checked_modules
from agents.detectors.detector import Detector, LazyRules
from agents.detectors.security.bypasses import open_checks, void_checks

BYPASSES = Detector(
    "bypasses",
    "Looks for ways around checks: defaults and errors that allow, switches, prefixes of paths, dropped results.",
    checked_modules(open_checks.check_open_checks, void_checks.check_void_checks, tests=False),
    LazyRules(lambda: (*open_checks.RULES, *void_checks.RULES)),
)

__all__ = ["BYPASSES"]
