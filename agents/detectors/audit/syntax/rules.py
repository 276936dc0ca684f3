"""The rules of the detector `syntax`."""

from agents.api.finding import Severity
from agents.detectors.detector import Rule

SYNTAX_ERROR = Rule("syntax-error", Severity.HIGH, "file that does not parse")
MERGE_CONFLICT = Rule("merge-conflict", Severity.HIGH, "unresolved merge conflict")
INVALID_UTF8 = Rule("invalid-utf8", Severity.HIGH, "bytes that are not UTF-8")
MIXED_TABS = Rule("mixed-tabs", Severity.MEDIUM, "indentation by tabs and spaces")
DUPLICATE_KEY = Rule("duplicate-key", Severity.MEDIUM, "key given twice; the last one wins")
INVALID_NOTEBOOK = Rule("invalid-notebook", Severity.HIGH, "notebook without its required members")

RULES = (SYNTAX_ERROR, MERGE_CONFLICT, INVALID_UTF8, MIXED_TABS, DUPLICATE_KEY, INVALID_NOTEBOOK)
