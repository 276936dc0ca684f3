"""The suite `outputs`: small tasks of the agents whose outputs a program can judge, some for each output.

They are done as in a run, with the agents' own cards and grammars. A check asks for what a person would
notice first: names and numbers that must be there, none that were made up, the right line.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from agents.model.profile import CapabilityProfile
from agents.outputs.answer import Answer
from agents.outputs.base import Output
from agents.outputs.critique import Critique
from agents.outputs.design import Artifact, Layout, UISpec
from agents.outputs.diagnosis import Diagnosis
from agents.outputs.findings import Findings
from agents.outputs.plan import Plan
from agents.outputs.sections import Section, Sections
from agents.outputs.steps import Steps
from agents.outputs.summary import Summary
from agents.outputs.text import Text
from agents.procedures.procedure import AgentTask
from agents.specs.packaged import packaged_agents
from agents.steps.measures.bench import Bench, Suite, each
from agents.steps.measures.measured_run import MeasuredRun
from agents.steps.model_phase import StepsPhase
from agents.text.numbers import numbers
from agents.workspace.workspace import Workspace

_NONE = "Not yet written."


@dataclass(frozen=True, slots=True)
class OutputItem:
    """A task of an agent.

    Attributes:
        name: of the item, after its output's name.
        agent: its key.
        task: what the agent gets.
        before: what its procedure delivers.
        is_right: judges the model's output.
    """

    name: str
    agent: str
    task: AgentTask
    before: Output
    is_right: Callable[[Any], bool]

    @property
    def key(self) -> str:
        """The item in a profile: `Plan/crash`."""
        return f"{type(self.before).__name__}/{self.name}"


def _says(text: str, *words: str) -> bool:
    """Whether a text has all words; `a|b` stands for either."""
    low = text.lower()
    return all(any(one in low for one in word.split("|")) for word in words)


def _no_new_numbers(text: str, source: str) -> bool:
    known = {one.text for one in numbers(source)}
    return all(one.text in known for one in numbers(text))


def _is_whole(text: str, least_words: int) -> bool:
    return len(text.split()) >= least_words and text.rstrip()[-1:] in ".!?”\"'):"


# Plans.


def _plans(plan: Plan, *groups: str, least: int) -> bool:
    """Whether a plan has an agent of each group (`a|b`) and an input for every step."""
    agents = [step.agent for step in plan.steps]
    wanted = all(any(one in agents for one in group.split("|")) for group in groups)
    return wanted and len(agents) >= least and all(step.input.strip() for step in plan.steps)


_PLANS = (
    (
        "crash",
        "Find out why parser.py crashes on empty input, fix it, and write a test that shows it.",
        ("debugger|edge_case_hunter|logic_flaw", "coder|patch_applier|debugger", "test_generator"),
    ),
    ("translation", "Translate README.md into German and check the translation.", ("translator",)),
    (
        "summary",
        "Summarize notes.md and then criticise the summary.",
        ("summarizer", "critic|judge"),
    ),
)

# Texts.

_REPORT = """\
The harbour of Lindau was closed for 12 days in March after the storm of 4 March. Repairs of the eastern pier
cost 340,000 euros, of which the city paid 90,000. Engineer Petra Holm, who led the work, said that the pier
had been inspected in 2019 and found safe. Three boats sank and nobody was hurt. The harbour office will
inspect all piers every two years from now on, and Holm's team will publish its report in June. The ferries to
Romanshorn were rerouted through Bregenz and took 40 minutes longer.
"""
_RELEASE = """\
Version 3.2 of the backup tool Korvo changes how files are compared. Until now it compared their sizes and
times, which missed 1 of 900 changes in a test by the company. It now compares checksums, which takes 15 per
cent longer on a cold disk. The old way is still there as the option --fast. Users of version 3.1 need not
change their settings; those of version 2 must first run korvo migrate, because the format of the index is
another one. The next version is planned for autumn.
"""
_FACTS = (
    "Facts: The mill in Aarau was built in 1784. It burned down in 1911. Rosa Keller rebuilt it."
)
_MANUAL = """\
The pump starts when the tank falls below 20 litres and stops at 85 litres. If the filter is blocked, the red
lamp blinks twice a second and the pump does not start; clean the filter and press the green button for five
seconds. The battery lasts about 14 months. Below minus 10 degrees the pump must be emptied.
"""

# Code.

_TRACE_FILE = """\
SETTINGS = {"host": "localhost"}


def address():
    host = SETTINGS["host"]
    return host + ":" + str(SETTINGS["port"])
"""
_SUM_FILE = """\
def average(values):
    total = 0
    for value in values:
        total += value
    return total / len(values)
"""
_LOGIN = """\
import hashlib

PASSWORDS = {}


def store(name, password):
    PASSWORDS[name] = hashlib.sha256(password.encode()).hexdigest()


def login(name, password):
    if name in PASSWORDS:
        return True
    return False
"""
_DISCOUNT = """\
def discount(price, percent):
    # A price less so many per cent.
    return price - price * percent


def total(prices):
    result = 0
    for price in prices:
        result += price
    return result
"""
_CLEAN = """\
def clamp(value, low, high):
    return max(low, min(high, value))


def area(width, height):
    return width * height
"""
_DRAFT = """\
Our product is used by 500 customers. It is fast.
TODO: describe the installation here.
Support answers within one day. More than 800 customers trust us.
"""

_PRAISE = "The tool sorts files.\nIt is simply the best tool ever made.\n"


def _reports(output: Findings | Critique, *lines: int, most: int) -> bool:
    """Whether one of the lines is reported, and few others; without lines, whether nothing is."""
    found = [one.line for one in output.findings]
    if not lines:
        return not found
    return any(line in found for line in lines) and len(set(found) - set(lines)) <= most


def _overlap_free(layout: Layout) -> bool:
    for screen in layout.layouts:
        cells: set[tuple[int, int]] = set()
        for one in screen.regions:
            own = {
                (x, y)
                for x in range(one.x, one.x + one.width)
                for y in range(one.y, one.y + one.height)
            }
            if (
                own & cells
                or one.x + one.width > screen.columns
                or one.y + one.height > screen.rows
            ):
                return False
            cells |= own
    return any(screen.regions for screen in layout.layouts)


def _components(spec: UISpec, *words: str) -> bool:
    shown = [f"{one.name} {one.kind} {one.text} {one.action}".lower() for one in spec.components]
    return all(any(_says(text, word) for text in shown) for word in words)


def _page(artifact: Artifact, *patterns: str) -> bool:
    page = artifact.content.lower()
    asks = re.search(r"(?:src|href)\s*=\s*[\"']https?:", page)
    return "</html>" in page and not asks and all(re.search(one, page) for one in patterns)


def _item(
    name: str, agent: str, task: AgentTask, before: Output, is_right: Callable[[Any], bool]
) -> OutputItem:
    return OutputItem(name, agent, task, before, is_right)


def _plan(name: str, text: str, *groups: str) -> OutputItem:
    def is_right(plan: Plan) -> bool:
        return _plans(plan, *groups, least=2)

    return _item(name, "planner", AgentTask(text), Plan(cannot_do=_NONE), is_right)


def _summary(name: str, source: str, *words: str) -> OutputItem:
    def is_right(summary: Summary) -> bool:
        text = summary.text
        short = len(text) < 0.75 * len(source)
        return (
            short and _is_whole(text, 12) and _says(text, *words) and _no_new_numbers(text, source)
        )

    task = AgentTask("Summarize the text in three sentences.", document=source)
    return _item(name, "summarizer", task, Summary(text=source[:80]), is_right)


def _narrated(name: str, facts: str, *words: str) -> OutputItem:
    def is_right(text: Text) -> bool:
        return (
            _is_whole(text.text, 10)
            and _says(text.text, *words)
            and _no_new_numbers(text.text, facts)
        )

    task = AgentTask("Write a short paragraph from these facts.", document=facts)
    return _item(name, "narrator", task, Text(cannot_do=_NONE), is_right)


def _translated(name: str, language: str, text: str, *words: str) -> OutputItem:
    def is_right(output: Text) -> bool:
        return _says(output.text, *words) and _no_new_numbers(output.text, text)

    task = AgentTask(f"Translate the text into {language}.", document=text)
    return _item(name, "translator", task, Text(cannot_do=_NONE), is_right)


def _answered(name: str, question: str, *words: str) -> OutputItem:
    def is_right(answer: Answer) -> bool:
        return _says(answer.text, *words) and _no_new_numbers(answer.text, _MANUAL)

    return _item(
        name, "researcher", AgentTask(question, document=_MANUAL), Answer(text=_NONE), is_right
    )


def _diagnosed(name: str, file: str, text: str, error: str, line: int, *words: str) -> OutputItem:
    def is_right(diagnosis: Diagnosis) -> bool:
        said = f"{diagnosis.cause} {' '.join(diagnosis.next_steps)}"
        return (diagnosis.file, diagnosis.line) == (file, line) and _says(said, *words)

    kind, _, message = error.partition(": ")
    before = Diagnosis(language="python", error=kind, message=message, cannot_do=_NONE)
    task = AgentTask(
        f"The program fails with {error}. Why?", workspace=Workspace.of_texts({file: text})
    )
    return _item(name, "debugger", task, before, is_right)


def _solved(name: str, problem: str, answer: str) -> OutputItem:
    def is_right(steps: Steps) -> bool:
        return bool(re.search(rf"\b{answer}\b", steps.answer)) and bool(steps.steps)

    return _item(name, "reasoning", AgentTask(problem), Steps(cannot_do=_NONE), is_right)


def _reviewed(name: str, agent: str, text: str, before: Output, *lines: int) -> OutputItem:
    task = AgentTask("Review the file.", workspace=Workspace.of_texts({"file.py": text}))
    return _item(name, agent, task, before, lambda output: _reports(output, *lines, most=1))


def _sections(name: str, *parts: tuple[str, tuple[str, ...]]) -> OutputItem:
    outline = "\n".join(
        f"# {title}\n" + "\n".join(f"- {one}" for one in points) for title, points in parts
    )

    def is_right(output: Sections) -> bool:
        texts = [one.text for one in output.sections]
        return all(_is_whole(text, 12) for text in texts) and len(set(texts)) == len(texts)

    sections = [
        Section(title=title, level=1, points=list(points), words=60) for title, points in parts
    ]
    return _item(
        name, "expander", AgentTask("", document=outline), Sections(sections=sections), is_right
    )


def _designed(name: str, text: str, *words: str) -> OutputItem:
    task = AgentTask(text)
    return _item(
        name, "ui_designer", task, UISpec(cannot_do=_NONE), lambda one: _components(one, *words)
    )


def _laid_out(name: str, text: str) -> OutputItem:
    return _item(name, "layout_designer", AgentTask(text), Layout(cannot_do=_NONE), _overlap_free)


def _prototyped(name: str, text: str, *patterns: str) -> OutputItem:
    before = Artifact(cannot_do=_NONE)
    return _item(
        name, "prototype_builder", AgentTask(text), before, lambda one: _page(one, *patterns)
    )


ITEMS = (
    *(_plan(name, text, *groups) for name, text, groups in _PLANS),
    _summary("harbour", _REPORT, "lindau", "holm|pier", "storm|closed"),
    _summary("release", _RELEASE, "korvo", "checksum"),
    _summary("manual", _MANUAL, "pump", "filter|battery|tank"),
    _narrated("mill", _FACTS, "aarau", "1784", "1911", "keller"),
    _narrated(
        "order",
        "Facts: Order 4471 was placed on Monday. It has 3 lamps. The courier is Swift. It arrives on Friday.",
        "4471", "3|three", "swift", "friday",
    ),
    _translated("german", "German", "Dear {name}, your order 4471 has been sent today.", "{name}", "4471",
                "bestellung", "heute"),
    _translated("french", "French", "Press the green button for 5 seconds.", "vert", "5", "secondes|seconde"),
    _answered("lamp", "What does a red lamp that blinks mean?", "filter"),
    _answered("start", "At what level does the pump stop?", "85"),
    _answered("winter", "What must be done in hard frost?", "empt|drain"),
    _diagnosed("key", "settings.py", _TRACE_FILE, "KeyError: 'port'", 6, "port"),
    _diagnosed("division", "stats.py", _SUM_FILE, "ZeroDivisionError: division by zero", 5, "empty|zero|no "),
    _solved("apples", "Tom has 3 boxes of 12 apples each and eats 5 apples. How many are left?", "31"),
    _solved("tickets", "A ticket costs 14 euros. A group of 6 pays 10 euros less. What does it pay?", "74"),
    _solved("speed", "A train goes 240 km in 3 hours. How far does it go in 5 hours?", "400"),
    _reviewed("login", "security_audit", _LOGIN, Findings(), 11, 12, 10),
    _reviewed("discount", "logic_flaw", _DISCOUNT, Findings(), 3),
    _reviewed("clean", "logic_flaw", _CLEAN, Findings()),
    _reviewed("draft", "critic", _DRAFT, Critique(), 2, 3, 1),
    _reviewed("todo", "critic", _PRAISE, Critique(), 2),
    _sections("guide", ("Why backups matter", ("disks fail", "mistakes happen")), ("How to make one",
              ("choose a disk", "copy the files", "test the copy"))),
    _sections("city", ("The old town", ("the walls", "the market")), ("The river", ("the bridges",))),
    _designed("sign-in", "A sign-in screen with e-mail, password and button.", "mail", "password", "button"),
    _designed("search", "A search page: field, button, list of results.", "search", "button", "result|list"),
    _laid_out("three", "Lay out a header, a side bar and a main area on a grid of 12 columns and 8 rows."),
    _laid_out("two", "Two panes side by side, 12 columns and 6 rows."),
    _prototyped("sign-in", "A sign-in page with mail and password.", "<input", "password", "<button|submit"),
    _prototyped("list", "A page with a heading and a list of three books.", "<h1", "<li"),
)  # fmt: skip


async def _measure(bench: Bench) -> dict[str, bool]:
    allowed = CapabilityProfile("measured", is_allowed=True)
    phase = StepsPhase(bench.session, profile=allowed)
    tests = [partial(_passes, phase, item) for item in ITEMS]
    return await each(bench, [item.key for item in ITEMS], tests, at_once=4)


async def _passes(phase: StepsPhase, item: OutputItem) -> bool:
    run = MeasuredRun(packaged_agents()[item.agent])
    output = await phase.written(item.task, item.before, run)
    return not output.cannot_do and item.is_right(output)


OUTPUTS_SUITE = Suite("outputs", "outputs of the agents", len(ITEMS), _measure)
