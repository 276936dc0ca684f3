"""Detectors over prose, tables and tasks, used by the execution agents."""

from agents.detectors.detector import Detector
from agents.detectors.text.arithmetic import ARITHMETIC_IN_STEPS
from agents.detectors.text.checklist import CHECKLIST_COVERAGE
from agents.detectors.text.citations import ANSWER_AGAINST_SOURCES
from agents.detectors.text.draft import DRAFT_QUALITY
from agents.detectors.text.extraction import VALUES_AGAINST_SOURCE
from agents.detectors.text.facts import FACTS_USED
from agents.detectors.text.faithfulness import TEXT_AGAINST_SOURCE
from agents.detectors.text.plans import PLAN_STRUCTURE
from agents.detectors.text.records import RECORDS_AGAINST_SCHEMA
from agents.detectors.text.translation import TRANSLATION_AGAINST_SOURCE

DETECTORS: tuple[Detector, ...] = (
    ANSWER_AGAINST_SOURCES,
    ARITHMETIC_IN_STEPS,
    CHECKLIST_COVERAGE,
    DRAFT_QUALITY,
    FACTS_USED,
    PLAN_STRUCTURE,
    RECORDS_AGAINST_SCHEMA,
    TEXT_AGAINST_SOURCE,
    TRANSLATION_AGAINST_SOURCE,
    VALUES_AGAINST_SOURCE,
)
