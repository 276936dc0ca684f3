"""Word problems of simple forms, solved without a model.

Each form accounts for every number of the problem; one that is left over means that the form does not fit.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass, field

from agents.text.expressions import evaluate
from agents.text.numbers import Number, numbers
from agents.text.quantity import InvalidExpression, Quantity, show_number
from agents.text.sentences import sentences
from agents.text.units import unit_named
from agents.text.words import stem, words

_GAINS = """
buy get find receive add collect gain earn pick win catch bake make more arrive come join gather born plant
"""
_LOSSES = """
give eat lose sell spend use break donate throw drop remove leave die fly go move pay drink take subtract
"""
_GAIN = frozenset(stem(verb) for verb in _GAINS.split())
_LOSS = frozenset(stem(verb) for verb in _LOSSES.split())
_LEFT = re.compile(
    r"\bhow (?:many|much)\b.*\b(?:left|remain\w*|now|still|altogether|in total|in all|have|has)\b",
    re.I,
)
_NUMBER_UNIT = r"(\d+(?:[.,]\d+)*)\s*([A-Za-z/€$£²³°]+)"
_LIST = r"((?:[-−]?\d+(?:\.\d+)?(?:\s*,\s*|\s+and\s+|\s*,\s*and\s+)?)+)"


@dataclass(slots=True)
class Solution:
    """Steps as (expression, result, reason), and the answer."""

    steps: list[tuple[str, str, str]] = field(default_factory=list)
    answer: str = ""

    def step(self, expression: str, reason: str) -> Quantity:
        """Compute an expression and record it.

        Raises:
            InvalidExpression: it cannot be evaluated.
        """
        value = evaluate(expression)
        self.steps.append((expression, value.show(), reason))
        return value


def solve(problem: str) -> Solution | None:
    """The solution of a problem, or None if no form fits."""
    for form in _FORMS:
        try:
            solution = form(problem)
        except InvalidExpression:
            continue
        if solution is not None:
            return solution
    return None


def _percentage(problem: str) -> Solution | None:
    match = re.search(rf"what (?:percent|percentage|%) of {_N} is {_N}", problem, re.I)
    if match:
        return _answer(f"{match[2]} / {match[1]} * 100", "the part over the whole", "%")
    match = re.search(rf"{_N} is what (?:percent|percentage|%) of {_N}", problem, re.I)
    if match:
        return _answer(f"{match[1]} / {match[2]} * 100", "the part over the whole", "%")
    match = re.search(
        rf"\b(?:increase|decrease|change|rise|fall|grow)\w*\b.*?from {_N} to {_N}", problem, re.I
    )
    if match and re.search("percent|%", problem):
        return _answer(
            f"({match[2]} - {match[1]}) / {match[1]} * 100", "change over the start", "%"
        )
    return None


def _discount(problem: str) -> Solution | None:
    percent = re.search(rf"{_N}\s*(?:%|percent)", problem, re.I)
    kind = re.search(
        r"\b(discount|off|reduc\w*|less|cheaper|tip|tax|vat|interest|increas\w*|more|surcharge)\b",
        problem,
        re.I,
    )
    amounts = [n for n in numbers(problem) if percent is None or n.start != percent.start(1)]
    if percent is None or kind is None or len(amounts) != 1 or "?" not in problem:
        return None
    lower = re.match("discount|off|reduc|less|cheaper", kind[1], re.I)
    solution = Solution()
    part = solution.step(f"{percent[1]}% of {amounts[0].text}", "the percentage of the amount")
    if re.search(
        r"how (?:much|big|large) (?:is|was) the (?:discount|tip|tax|vat|interest)", problem, re.I
    ):
        solution.answer = part.show()
        return solution
    sign = "-" if lower else "+"
    total = solution.step(f"{amounts[0].text} {sign} {show_number(part.value)}", "the new amount")
    solution.answer = total.show()
    return solution


def _average(problem: str) -> Solution | None:
    match = re.search(rf"\b(average|mean|sum|total|product) of {_LIST}", problem, re.I)
    if match is None:
        return None
    values = re.findall(r"[-−]?\d+(?:\.\d+)?", match[2])
    if len(values) < 2 or len(values) != len(numbers(problem)):
        return None
    if match[1].lower() == "product":
        return _answer(" * ".join(values), "the product")
    if match[1].lower() in ("sum", "total"):
        return _answer(" + ".join(values), "the sum")
    return _answer(f"({' + '.join(values)}) / {len(values)}", "the sum over the count")


def _motion(problem: str) -> Solution | None:
    """Distance, time or speed from the other two."""
    found = []
    for amount, name in re.findall(_NUMBER_UNIT, problem):
        try:
            found.append((f"{amount} {name}", evaluate(f"{amount} {name}")))
        except InvalidExpression:
            continue
    kinds = {quantity.dimension: text for text, quantity in found if quantity.dimension}
    if len(found) != 2 or len(numbers(problem)) != 2 or len(kinds) != 2:
        return None
    speed = kinds.get((("m", 1), ("s", -1)))
    time, distance = kinds.get((("s", 1),)), kinds.get((("m", 1),))
    if speed and time and re.search(r"how (?:far|many|long)|distance", problem, re.I):
        name = "mi" if "mph" in speed or "mi" in speed else "km"
        return _answer(f"{speed} * {time} in {name}", "distance = speed × time")
    if speed and distance and re.search(r"how (?:long|many)|time", problem, re.I):
        return _answer(f"{distance} / ({speed}) in h", "time = distance / speed")
    if distance and time and re.search(r"how fast|speed", problem, re.I):
        name = "mph" if re.search(r"\bmi(?:les?)?\b", distance) else "km/h"
        return _answer(f"{distance} / ({time}) in {name}", "speed = distance / time")
    return None


def _unit_price(problem: str) -> Solution | None:
    each = re.search(
        r"(?:costs?|weighs?|holds?|contains?|is|are|for|at|has|have|takes?)\s+([€$£]?)(\d+(?:[.,]\d+)*)\s*"
        r"([A-Za-z€£]*)\s*(?:each|apiece|per \w+|a piece)|"
        r"\b(?:one|each|an?|every) \w+(?: \w+)? (?:costs?|weighs?|holds?|contains?|has|takes?) "
        r"([€$£]?)(\d+(?:[.,]\d+)*)\s*([A-Za-z€£]*)",
        problem,
        re.I,
    )
    if each is None or not re.search(r"how (?:much|many)|what (?:is|do|does)", problem, re.I):
        return None
    sign, amount, name = each.group(1, 2, 3) if each[2] else each.group(4, 5, 6)
    start = each.start(2) if each[2] else each.start(5)
    others = [
        n for n in numbers(problem, spelled=True) if n.start != start and n.text.lower() != "one"
    ]
    if len(others) != 1 or others[0].value is None:
        return None
    unit = unit_named(name) if name else unit_named(sign) if sign else None
    written = f"{amount} {unit.symbol}" if unit else amount
    return _answer(f"{show_number(others[0].value)} * {written}", "the number times that of one")


def _sharing(problem: str) -> Solution | None:
    match = re.search(
        rf"{_N}\s+\w+.*?\b(?:shared?|divided?|split|distributed?)\b.*?\b(?:among|between|by|into|with)\s+(\w+)",
        problem,
        re.I,
    )
    found = numbers(problem, spelled=True)
    if match is None or len(found) != 2 or any(n.value is None for n in found):
        return None
    whole, parts = (show_number(n.value) for n in found if n.value is not None)
    return _answer(f"{whole} / {parts}", "the whole over the parts")


def _gains_and_losses(problem: str) -> Solution | None:
    """A count that rises and falls: `Tom has 3 apples. He buys 5 more and eats 2. How many are left?`."""
    parts = sentences(problem)
    question = next((one for one in parts if _LEFT.search(one.text)), None)
    if question is None or numbers(question.text, spelled=True):
        return None
    solution = Solution()
    total: str | None = None
    for clause in re.split(r"[.,;]\s+|\band\b|\bthen\b|\bbut\b", problem[: question.start]):
        amounts = numbers(clause, spelled=True)
        if not amounts:
            continue
        if len(amounts) > 1 or amounts[0].value is None:
            return None
        amount = show_number(amounts[0].value)
        sign = _direction(clause, amounts[0])
        if total is None:
            total = amount if sign != "-" else None
            if total is None:
                return None
            continue
        if not sign:
            return None
        reason = " ".join(clause.split())
        total = show_number(solution.step(f"{total} {sign} {amount}", reason).value)
    if total is None or not solution.steps:
        return None
    solution.answer = total
    return solution


def _direction(clause: str, amount: Number) -> str:
    """`+` or `-` by the verb nearest to the number, before it first; empty if there is none."""
    before = [stem(word.text.lower()) for word in words(clause[: amount.start])]
    after = [stem(word.text.lower()) for word in words(clause[amount.end :])]
    for base in [*reversed(before), *after]:
        if base in _LOSS:
            return "-"
        if base in _GAIN:
            return "+"
    return ""


def _answer(expression: str, reason: str, suffix: str = "") -> Solution:
    solution = Solution()
    value = solution.step(expression, reason)
    solution.answer = f"{value.show()} {suffix}".strip()
    return solution


_N = r"[€$£]?(\d+(?:[.,]\d+)*)"
_FORMS: tuple[Callable[[str], Solution | None], ...] = (
    _percentage,
    _discount,
    _average,
    _motion,
    _unit_price,
    _sharing,
    _gains_and_losses,
)
