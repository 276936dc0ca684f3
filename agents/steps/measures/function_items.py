"""The suite `functions`: functions to correct and to write. Right is what passes its checks when it is run.

Each function is asked for as text in a fence, once, at temperature 0. Some checks are examples that the
request shows, others are not shown.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from agents.model.layout import SharedPrompt
from agents.steps.measures.bench import Bench, Suite, each
from agents.steps.measures.code_check import error_of, fenced_code
from engine.api.request import Request, SamplingParams

SYSTEM = "You write Python. Answer with the whole function in one fenced block and nothing else."
_FUNCTION_TOKENS = 320
_CORRECT = "This function is wrong. Write it anew, correct and whole.\n\n{}"
_WRITE = "Write this function.\n\n{}"


@dataclass(frozen=True, slots=True)
class FunctionItem:
    """A function.

    Attributes:
        name: of the item.
        request: what the model is asked.
        checks: expressions that must be true.
    """

    name: str
    request: str
    checks: tuple[str, ...]


def _item(name: str, text: str, *checks: str, wrong: bool = False) -> FunctionItem:
    return FunctionItem(name, (_CORRECT if wrong else _WRITE).format(text), checks)


ITEMS = (
    _item(
        "add", "def add(a, b):\n    return a - b", "add(2, 3) == 5", "add(-1, 1) == 0", wrong=True
    ),
    _item(
        "is_even",
        "def is_even(n):\n    return n % 2 == 1",
        "is_even(4)",
        "not is_even(7)",
        "is_even(0)",
        wrong=True,
    ),
    _item(
        "last",
        'def last(items):\n    """The last item of a list that is not empty."""\n'
        "    return items[len(items)]",
        "last([1, 2, 3]) == 3",
        "last(['x']) == 'x'",
        wrong=True,
    ),
    _item(
        "count_vowels",
        'def count_vowels(text: str) -> int:\n    """How many of the letters a, e, i, o and u a text has, '
        'in either case.\n\n    >>> count_vowels(\'Evening\')\n    3\n    """',
        "count_vowels('Evening') == 3",
        "count_vowels('XYZ') == 0",
        "count_vowels('AEIOUaeiou') == 10",
    ),
    _item(
        "unique",
        'def unique(items: list) -> list:\n    """The items without repetitions, in the order of their first '
        'place.\n\n    >>> unique([3, 1, 3, 2, 1])\n    [3, 1, 2]\n    """',
        "unique([3, 1, 3, 2, 1]) == [3, 1, 2]",
        "unique([]) == []",
        "unique(['b', 'a', 'b']) == ['b', 'a']",
    ),
    _item(
        "average",
        'def average(numbers):\n    """The mean of some numbers; 0 if there are none."""\n'
        "    return sum(numbers) / len(numbers)",
        "average([1, 2, 3]) == 2",
        "average([]) == 0",
        wrong=True,
    ),
    _item(
        "pairs",
        'def pairs(text: str) -> dict[str, int]:\n    """The numbers of a text such as a=1;b=2 by name.\n\n'
        "    >>> pairs('a=1;b=2')\n    {'a': 1, 'b': 2}\n    >>> pairs('')\n    {}\n    \"\"\"",
        "pairs('a=1;b=2') == {'a': 1, 'b': 2}",
        "pairs('') == {}",
        "pairs('x=-7') == {'x': -7}",
    ),
    _item(
        "chunks",
        'def chunks(items: list, size: int) -> list[list]:\n    """The items in lists of a size; the last '
        'one may be shorter.\n\n    >>> chunks([1, 2, 3, 4, 5], 2)\n    [[1, 2], [3, 4], [5]]\n    """',
        "chunks([1, 2, 3, 4, 5], 2) == [[1, 2], [3, 4], [5]]",
        "chunks([], 3) == []",
        "chunks([1, 2], 5) == [[1, 2]]",
    ),
    _item(
        "is_palindrome",
        'def is_palindrome(text: str) -> bool:\n    """Whether the letters of a text read the same '
        "backwards; case, blanks and punctuation do not count.\n\n"
        "    >>> is_palindrome('A man, a plan, a canal: Panama')\n"
        '    True\n    """',
        "is_palindrome('A man, a plan, a canal: Panama')",
        "not is_palindrome('abca')",
        "is_palindrome('')",
    ),
    _item(
        "binary_search",
        "def find(items, wanted):\n    low, high = 0, len(items)\n    while low < high:\n"
        "        middle = (low + high) // 2\n        if items[middle] == wanted:\n            return middle\n"
        "        if items[middle] < wanted:\n            low = middle\n        else:\n"
        "            high = middle\n    return -1",
        "find([1, 3, 5, 7], 5) == 2",
        "find([1, 3, 5, 7], 4) == -1",
        "find([1, 3, 5, 7], 8) == -1",
        "find([], 1) == -1",
        wrong=True,
    ),
    _item(
        "flatten",
        'def flatten(nested: list) -> list:\n    """The items of a list of lists of any depth, in order.\n\n'
        '    >>> flatten([1, [2, [3, 4]], 5])\n    [1, 2, 3, 4, 5]\n    """',
        "flatten([1, [2, [3, 4]], 5]) == [1, 2, 3, 4, 5]",
        "flatten([]) == []",
        "flatten([[[]]]) == []",
    ),
    _item(
        "balanced",
        'def balanced(text: str) -> bool:\n    """Whether the brackets ( ) [ ] { } of a text match.\n\n'
        "    >>> balanced('a(b[c]{d})')\n    True\n    >>> balanced('(]')\n    False\n    \"\"\"",
        "balanced('a(b[c]{d})')",
        "not balanced('(]')",
        "not balanced('((')",
        "balanced('')",
        "not balanced(')(')",
    ),
    _item(
        "merge",
        "def merge(spans: list[tuple[int, int]]) -> list[tuple[int, int]]:\n"
        '    """Overlapping and touching spans joined, sorted.\n\n'
        '    >>> merge([(5, 7), (1, 3), (2, 4)])\n    [(1, 4), (5, 7)]\n    """',
        "[tuple(one) for one in merge([(5, 7), (1, 3), (2, 4)])] == [(1, 4), (5, 7)]",
        "[tuple(one) for one in merge([])] == []",
        "[tuple(one) for one in merge([(1, 9), (2, 3)])] == [(1, 9)]",
    ),
    _item(
        "roman",
        'def roman(number: int) -> str:\n    """A number from 1 to 3999 in Roman numerals.\n\n'
        '    >>> roman(1994)\n    \'MCMXCIV\'\n    """',
        "roman(1994) == 'MCMXCIV'",
        "roman(1) == 'I'",
        "roman(49) == 'XLIX'",
        "roman(3999) == 'MMMCMXCIX'",
    ),
)
_SHORT = 6


async def _measure(items: Sequence[FunctionItem], bench: Bench) -> dict[str, bool]:
    shared = bench.layout.shared(system=SYSTEM, document="Python 3.")
    tests = [partial(_passes, bench, shared, item) for item in items]
    return await each(bench, [item.name for item in items], tests, at_once=8)


async def _passes(bench: Bench, shared: SharedPrompt, item: FunctionItem) -> bool:
    ids = (*shared.token_ids, *bench.layout.tail(shared, item.request))
    sampling = SamplingParams(temperature=0.0, max_tokens=_FUNCTION_TOKENS)
    generation = await bench.session.generate(Request(ids, sampling))
    checks = "\n".join(f"assert {check}" for check in item.checks)
    return not await error_of(f"{fenced_code(generation.text)}\n{checks}\n")


FUNCTIONS = Suite(
    "functions", "functions that pass their examples", len(ITEMS), partial(_measure, ITEMS)
)
SHORT_FUNCTIONS = Suite(
    "functions", "functions that pass their examples", _SHORT, partial(_measure, ITEMS[:_SHORT])
)
