"""Generated documents of invented facts: multi-hop questions, and questions that they do not answer.

Every fact is one sentence of one document. A chain is two facts in two documents that share a name only in
the middle: who keeps a device, and where that person works. No name exists outside, so a model cannot know
an answer. Everything follows from a seed.
"""

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

CONSONANTS, VOWELS = "bdfgklmnprstvz", "aeiou"
DEVICES = ("pump", "turbine", "scanner", "press", "furnace", "loom", "crane", "centrifuge")
PLACES = ("building", "hall", "annex", "workshop", "tower", "pavilion")
COLOURS = ("red", "green", "blue", "amber", "violet", "white")
NOISE = (
    "The inventory was last counted in the spring.",
    "Visitors have to sign the book at the entrance.",
    "Reports are filed every second Thursday.",
    "The heating was renewed without interrupting the work.",
    "A copy of this page hangs beside the door.",
    "Complaints go to the office of the day.",
    "The canteen closes earlier on Fridays.",
    "Spare keys are kept in the guard's room.",
)
ELSEWHERE = (
    "How long does a medium-boiled egg take at an altitude of {0} metres?",
    "Which river flows through the old town of {1}?",
    "How many goals did {1} United score in the {0} season?",
    "What is the recommended dose of paracetamol for a child of {2} kilograms?",
    "Who composed the opera that opened the {1} festival in {0}?",
    "At which temperature should a sourdough of {2} % hydration be baked?",
    "What was the price of wheat in {1} in the year {0}?",
    "Which bird nests in the cliffs near {1}?",
)

Hidden = Literal["entity", "attribute", "elsewhere"]


@dataclass(frozen=True, slots=True)
class Question:
    """A question to the documents.

    Attributes:
        text: the question.
        answer: the words that a right answer has; None if the documents do not say.
        documents: names of the documents with the facts, in the order of the hops.
        hops: number of facts that the answer takes; 0 without an answer.
        kind: why there is no answer, or `answerable`.
    """

    text: str
    answer: str | None
    documents: tuple[str, ...] = ()
    hops: int = 0
    kind: str = "answerable"


@dataclass(frozen=True, slots=True)
class LabelledSentence:
    """A sentence that cites a passage, and whether the passage supports it.

    Attributes:
        change: what was changed: `none`, `wording`, `value`, `name`, `negation` or `topic`.
    """

    sentence: str
    passage: str
    supported: bool
    change: str


@dataclass(frozen=True, slots=True)
class FactDocuments:
    """The documents and the questions to them.

    Attributes:
        documents: name of the file → its Markdown.
    """

    documents: dict[str, str] = field(default_factory=dict)
    single_hop: tuple[Question, ...] = ()
    multi_hop: tuple[Question, ...] = ()
    unanswerable: tuple[Question, ...] = ()
    sentences: tuple[LabelledSentence, ...] = ()

    def write(self, directory: Path) -> list[Path]:
        """Write the documents as files; returns their paths."""
        directory.mkdir(parents=True, exist_ok=True)
        for name, text in self.documents.items():
            directory.joinpath(name).write_text(text)
        return [directory / name for name in self.documents]


def made_facts(chains: int = 60, unanswerable: int = 100, seed: int = 7) -> FactDocuments:
    """Documents of `chains` chains, three questions for each chain, and `unanswerable` others."""
    source = random.Random(seed)
    names = _Names(source)
    links = [_Chain.made(names, source) for _ in range(chains)]
    documents = {}
    for link in links:
        documents[link.device_file] = link.device_page(source)
        documents[link.person_file] = link.person_page(source)
    return FactDocuments(
        documents,
        tuple(question for link in links for question in link.single_hop()),
        tuple(link.multi_hop() for link in links),
        tuple(_unanswerable(links, unanswerable, names, source)),
        tuple(sentence for link in links for sentence in link.sentences(links, documents, source)),
    )


class _Names:
    """Invented names, each given once."""

    def __init__(self, source: random.Random) -> None:
        self._source, self._given = source, set[str]()

    def word(self, syllables: int) -> str:
        while True:
            parts = (
                self._source.choice(CONSONANTS) + self._source.choice(VOWELS)
                for _ in range(syllables)
            )
            word = "".join(parts).capitalize() + self._source.choice("lmnrst")
            if word not in self._given:
                self._given.add(word)
                return word

    def person(self) -> str:
        return f"{self.word(2)} {self.word(3)}"


@dataclass(frozen=True, slots=True)
class _Chain:
    """A device, the person who keeps it, and where that person works."""

    device: str
    colour: str
    weight: int
    person: str
    place: str
    since: int

    @classmethod
    def made(cls, names: _Names, source: random.Random) -> "_Chain":
        return cls(
            f"{names.word(2)} {source.choice(DEVICES)}",
            source.choice(COLOURS),
            source.randrange(40, 9_000, 10),
            names.person(),
            f"{source.choice(PLACES)} {source.choice('ABCDEFGHK')}-{source.randrange(2, 98)}",
            source.randrange(1951, 2019),
        )

    @property
    def device_file(self) -> str:
        return self.device.lower().replace(" ", "-") + ".md"

    @property
    def person_file(self) -> str:
        return self.person.lower().replace(" ", "-") + ".md"

    @property
    def keeps(self) -> str:
        return f"The {self.device} is kept in order by {self.person}."

    @property
    def weighs(self) -> str:
        return f"The {self.device} weighs {self.weight} kilograms."

    @property
    def works(self) -> str:
        return f"{self.person} works in {self.place}."

    @property
    def joined(self) -> str:
        return f"{self.person} joined the staff in {self.since}."

    def device_page(self, source: random.Random) -> str:
        return _page(
            self.device, (self.keeps, self.weighs, f"Its housing is {self.colour}."), source
        )

    def person_page(self, source: random.Random) -> str:
        return _page(self.person, (self.works, self.joined), source)

    def single_hop(self) -> list[Question]:
        device, person = (self.device_file,), (self.person_file,)
        return [
            Question(f"Who keeps the {self.device} in order?", self.person, device, 1),
            Question(
                f"In which year did {self.person} join the staff?", str(self.since), person, 1
            ),
        ]

    def multi_hop(self) -> Question:
        return Question(
            f"Where does the person who keeps the {self.device} in order work?",
            self.place,
            (self.device_file, self.person_file),
            2,
        )

    def sentences(
        self, links: Sequence["_Chain"], documents: Mapping[str, str], source: random.Random
    ) -> list[LabelledSentence]:
        """Sentences that cite this chain's pages: two that they support and four that they do not."""
        other = next(link for link in source.sample(list(links), 2) if link is not self)
        device, person = documents[self.device_file], documents[self.person_file]
        wrong = self.weight + source.choice((10, 100, 1_000))
        return [
            LabelledSentence(self.keeps, device, True, "none"),
            LabelledSentence(
                f"{self.person} has been on the staff since {self.since}.", person, True, "wording"
            ),
            LabelledSentence(
                f"The {self.device} weighs {wrong} kilograms.", device, False, "value"
            ),
            LabelledSentence(
                f"The {self.device} is kept in order by {other.person}.", device, False, "name"
            ),
            LabelledSentence(
                f"{self.person} does not work in {self.place}.", person, False, "negation"
            ),
            LabelledSentence(other.works, device, False, "topic"),
        ]


def _page(title: str, facts: Sequence[str], source: random.Random) -> str:
    sentences = [*facts, *source.sample(NOISE, 3)]
    source.shuffle(sentences)
    return f"# {title}\n\n" + " ".join(sentences) + "\n"


def _unanswerable(
    links: Sequence[_Chain], count: int, names: _Names, source: random.Random
) -> list[Question]:
    """A third each: an unknown name, a known name with an unknown attribute, another subject."""
    made = []
    for at in range(count):
        link = links[at % len(links)]
        text, kind = (
            (f"Who keeps the {names.word(2)} {source.choice(DEVICES)} in order?", "entity"),
            (f"Which company sold the {link.device}, and for how much money?", "attribute"),
            (
                ELSEWHERE[at // 3 % len(ELSEWHERE)].format(
                    source.randrange(1700, 2020), names.word(2), source.randrange(10, 90)
                ),
                "elsewhere",
            ),
        )[at % 3]
        made.append(Question(text, None, kind=kind))
    return made
