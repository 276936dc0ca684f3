"""Titles of the scheduling policies and batch formers in the user interface."""

from engine.api.scheduling import BatchFormerName, Policy

POLICY_TITLES: dict[Policy, str] = {
    "fcfs": "first come, first served",
    "priority": "lowest priority number first",
    "sjf": "shortest job first",
    "edf": "earliest deadline first",
    "lrs": "least remaining slack first",
}
BATCH_FORMER_TITLES: dict[BatchFormerName, str] = {
    "fixed": "steps of the whole token budget",
    "timed": "steps that aim at a time beside decodes",
}
