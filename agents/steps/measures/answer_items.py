"""The suite `answers`: short answers from a sentence."""

from functools import partial

from agents.model.ask_all import ask_all
from agents.steps.measures.bench import Bench, Suite, each

_ITEMS = (
    ("Maria is 34 years old and lives in Lisbon.", "What is the person's name?", "Maria"),
    ("The oldest player is Kofi, who is 41.", "Who is the oldest player?", "Kofi"),
    ("Our neighbour Ingrid turned 67 last week.", "What is the neighbour's name?", "Ingrid"),
    ("Tom, aged 12, won the race.", "Who won the race?", "Tom"),
    ("The server runs on port 8443 behind a proxy.", "On which port does it run?", "8443"),
    ("The meeting moved from Monday to Thursday.", "On which day is it now?", "Thursday"),
    ("The library is licensed under Apache-2.0.", "Which licence is it?", "Apache"),
    ("Parsing fails with KeyError in load().", "Which error is raised?", "KeyError"),
)
_ANSWER_TOKENS = 24


async def _measure(bench: Bench) -> dict[str, bool]:
    tests = [partial(_is_right, bench, *item) for item in _ITEMS]
    return await each(bench, [question for _, question, _ in _ITEMS], tests, at_once=8)


async def _is_right(bench: Bench, sentence: str, question: str, value: str) -> bool:
    replies = await ask_all(
        bench.session, bench.layout, bench.decider, sentence, [question], max_tokens=_ANSWER_TOKENS
    )
    return value in replies.replies[0].text


ANSWERS = Suite("answers", "short answers", len(_ITEMS), _measure)
