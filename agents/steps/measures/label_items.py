"""The suite `labels`: yes-or-no questions, one token each."""

from agents.model.question import Question
from agents.steps.measures.bench import Bench, Suite

_YES_NO = Question("self_test", "{subject}", ("yes", "no"))
_ITEMS = {
    "Is Paris the capital of France?": "yes",
    "Is Paris the capital of Japan?": "no",
    "Do fish live in water?": "yes",
    "Do stones grow on trees?": "no",
    "Is ice cold?": "yes",
    "Is fire cold?": "no",
    "Is 7 larger than 3?": "yes",
    "Is 2 larger than 9?": "no",
    "Is a dog an animal?": "yes",
    "Is a table an animal?": "no",
    "Does Python have functions?": "yes",
    "Is a password safe when everybody knows it?": "no",
}


async def _measure(bench: Bench) -> dict[str, bool]:
    shared = bench.layout.shared(document="Answer the question.")
    decisions, _ = await bench.decider.decide(shared, [(_YES_NO, text) for text in _ITEMS])
    right = [one.label == label for one, label in zip(decisions, _ITEMS.values(), strict=True)]
    for _ in right:
        bench.tick()
    return dict(zip(_ITEMS, right, strict=True))


LABELS = Suite("labels", "one-token answers", len(_ITEMS), _measure)
