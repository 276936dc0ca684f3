"""Splitting a task into steps of known agents, with their dependencies. No model."""

import re
from dataclasses import dataclass, field
from typing import get_args

from agents.api.agent_spec import AgentSpec, Capability, Category
from agents.outputs.findings import Findings
from agents.specs.packaged import packaged_agents
from agents.text.sentences import sentences
from agents.text.words import stem, terms, words

MAX_STEPS = 30
_SPLIT = re.compile(
    r"\s*(?:;|,?\s+(?:and\s+)?then\b|,?\s+after that\b|,?\s+afterwards\b|,?\s+followed by\b|,\s+and\s+|,\s+|"
    r"\s+and\s+(?:also\s+)?)\s*",
    re.IGNORECASE,
)
_LEAD = re.compile(
    r"^(?:(?:please|first|firstly|second|secondly|third|next|then|finally|lastly|also|and|after that|"
    r"i (?:want|need)(?: you)? to|we (?:should|must|need to)|you (?:should|must)|it should|can you|could you|"
    r"\d{1,2}[.)])[\s,:]+)+",
    re.IGNORECASE,
)
_SEQUENCE = re.compile(
    r"^(?:then|next|after|afterwards|finally|lastly|second|third)\b", re.IGNORECASE
)
_LAST = re.compile(
    r"^(?:finally|lastly)\b|\ball (?:results|of (?:it|them)|steps)\b|\beverything\b", re.IGNORECASE
)
_PRONOUN = re.compile(
    r"\b(?:it|its|them|their|this|these|that|those|the results?|both)\b", re.IGNORECASE
)
_FILE = re.compile(r"(?<![\w/])(?:[\w-]+/)*[\w-]+\.[A-Za-z][\w]{0,7}\b")


def _generality(agent: AgentSpec) -> tuple[int, int]:
    """Of agents that fit a step equally the lowest gets it: by category, then who looks for most."""
    finds = agent.output_schema == Findings.__name__
    return get_args(Category).index(agent.category), -len(agent.detectors) if finds else 0


_STEMS = {
    agent.key: (
        frozenset(stem(word) for word in agent.plan.verbs),
        frozenset(stem(word) for word in agent.plan.nouns),
        frozenset(stem(word.text) for word in words(agent.plan.product)),
    )
    for agent in sorted(packaged_agents().values(), key=_generality)
}
_ALL_VERBS = frozenset(verb for verbs, _, _ in _STEMS.values() for verb in verbs)


@dataclass(slots=True)
class DraftStep:
    """A step before it is written as a `PlanStep`. `certain` says that its words name the agent."""

    id: str
    agent: str
    text: str
    needs: list[str] = field(default_factory=list)
    certain: bool = True


def split_task(text: str) -> list[str]:
    """The parts of a task that ask for something; a conjunction splits only before a verb of an agent."""
    parts: list[str] = []
    for sentence in sentences(text):
        if sentence.heading:
            continue
        position = 0
        body = sentence.text
        for match in _SPLIT.finditer(body):
            if _begins_with_verb(body[match.end() :]):
                parts.append(body[position : match.start()])
                # The word `then` or `finally` belongs to the part that it introduces.
                position = match.start()
        parts.append(body[position:])
    cleaned = [part.strip(" ,;.\n") for part in parts]
    return [part for part in cleaned if any(char.isalnum() for char in part)][:MAX_STEPS]


def _begins_with_verb(text: str) -> bool:
    first = re.match(r"[^\W\d_]+", _LEAD.sub("", text.lstrip(" ,;")))
    return first is not None and stem(first.group().lower()) in _ALL_VERBS


def draft_steps(text: str) -> list[DraftStep]:
    """The steps of a task in order, each with its agent and the steps whose results it uses."""
    steps: list[DraftStep] = []
    for part in split_task(text):
        body = re.sub(r"^(?:and|then|,|;)\s+", "", part.strip(), flags=re.IGNORECASE)
        plain = _LEAD.sub("", body)
        agent, score = choose_agent(plain)
        if not agent:
            if steps:  # a condition or remark belongs to the step before it
                steps[-1].text = f"{steps[-1].text}. {body}"
                continue
            agent = "researcher"
        step = DraftStep(f"s{len(steps) + 1}", agent, plain, certain=score >= 2)
        step.needs = _needs(step, part.strip(" ,;"), steps)
        steps.append(step)
    return steps


def choose_agent(text: str) -> tuple[str, float]:
    """The agent whose words a text has most of, and its score; empty if no verb or noun fits.

    The first word counts 2 as a verb, any other verb 0.5, a noun 1; a noun alone suffices only with a verb.
    """
    found = [stem(word.text.lower()) for word in words(text)]
    if not found:
        return "", 0.0
    own = set(found)
    best, best_score = "", 0.0
    for key, (verbs, nouns, _) in _STEMS.items():
        verb = 2.0 if found[0] in verbs else 0.5 if own & verbs else 0.0
        score = verb + len(own & nouns) if verb else 0.0
        if score > best_score:
            best, best_score = key, score
    if best_score < 1:
        return "", 0.0
    return best, best_score


def _needs(step: DraftStep, part: str, earlier: list[DraftStep]) -> list[str]:
    """Earlier steps whose results a step uses: by their product, a file they share, a pronoun, or order."""
    if not earlier:
        return []
    if _LAST.search(part):
        used = {need for one in earlier for need in one.needs}
        return [one.id for one in earlier if one.id not in used]
    own = set(terms(step.text)) - _ALL_VERBS
    files = set(files_of(step.text))
    named = [one.id for one in earlier if own & _results(one) or _shares_file(one, files)]
    if named:
        return named
    previous = earlier[-1]
    consumes = packaged_agents()[step.agent].plan.consumes and not files
    if _PRONOUN.search(step.text) or _SEQUENCE.match(part.lower()) or consumes:
        return [previous.id]
    writers = [one.id for one in earlier if writes(one.agent)]
    if step.agent == "tool" or writes(step.agent):
        return writers[-1:]  # tests run on what was written; two writers may touch the same files
    return []


def _results(step: DraftStep) -> set[str]:
    """Words that name what a step produces: its agent's product, and what the step itself speaks of."""
    return set(_STEMS[step.agent][2]) | (set(terms(step.text)) - _ALL_VERBS)


def _shares_file(earlier: DraftStep, files: set[str]) -> bool:
    return writes(earlier.agent) and bool(files & set(files_of(earlier.text)))


def writes(agent: str) -> bool:
    """Whether the agent changes files."""
    return packaged_agents()[agent].requires is Capability.WRITE


def files_of(text: str) -> list[str]:
    """The file names in a text, in order."""
    return list(dict.fromkeys(_FILE.findall(text)))
