"""`DecisionBatch`: the questions of one call as rows of the engine, and their answers.

A row is a prompt whose next token's probabilities are read; no text is generated or parsed. All rows begin
with the same tokens, which the engine computes once: the first row computes them, the others wait for it and
share its blocks. Submit the rows in their order and give their outputs back in it.

Cost: a predicate is one row, a question with up to 26 options two, one with 255 options 54.
"""

from collections.abc import Callable, Hashable, Iterator, Sequence
from itertools import islice

from engine.api.decisions import DecisionAnswer, DecisionQuestion, DecisionRules, Decisions
from engine.api.image import PlacedImage
from engine.api.request import Request, SamplingParams
from engine.decisions.calibration import Calibration
from engine.decisions.labels import Labels
from engine.decisions.probabilities import Scores, label_mass, option_probabilities
from engine.decisions.prompts import is_answered_by_word, tails

_WORD_ROWS = [()]


class DecisionBatch:
    """The rows of one call.

    Attributes:
        shared: token ids that the rows about the input begin with.
        images: those that the model sees among them.
        tails: of each question, token ids behind the input, one for each order of its options.
    """

    def __init__(
        self,
        questions: Sequence[DecisionQuestion],
        rules: DecisionRules,
        labels: Labels,
        encode_rest: Callable[[str], list[int]],
        *,
        shared: tuple[int, ...],
        without_content: tuple[int, ...],
        model: Hashable,
        calibration: Calibration,
        images: tuple[PlacedImage, ...] = (),
        cache_salt: str | None = None,
    ) -> None:
        """Encode the questions.

        Args:
            questions: at least one.
            rules: how probabilities are read.
            labels: of the model, for as many options as a question has.
            encode_rest: token ids of text that continues another.
            shared: the prompt of the input, without a question.
            without_content: the same of the input of calibration.
            model: identifies the model, for `calibration`.
            calibration: where the scores without content are kept.
            images: those of the input, in their places.
            cache_salt: as `Request.cache_salt`.
        """
        self.shared = shared
        self.images = images
        self._questions = questions
        self._rules = rules
        self._labels = labels
        self._without_content = without_content
        self._model = model
        self._calibration = calibration
        self._cache_salt = cache_salt
        self.tails = [tails(one, labels, encode_rest) for one in questions]
        self._empty: dict[int, Scores | None] = {}
        for at, question in enumerate(questions):
            if rules.calibrate and question.kind != "score":
                self._empty[at] = self._calibration.get(model, self._key(at))

    @property
    def longest(self) -> int:
        """Index of the question with the longest tail."""
        lengths = [max(map(len, one)) for one in self.tails]
        return max(range(len(lengths)), key=lengths.__getitem__)

    def requests(self) -> Iterator[Request]:
        """The rows: those about the input, then those without content; each is built when it is needed."""
        for at in range(len(self._questions)):
            yield from self._rows(at, self.shared, self.images)
        for at in self._unknown():
            yield from self._rows(at, self._without_content, ())

    def decisions(self, model: str, rows: Sequence[tuple[Sequence[float], int]]) -> Decisions:
        """The answers with their cost.

        Args:
            model: its name.
            rows: of each row the log-probabilities of the labels that it asked for, and how many of its
                tokens were not computed.
        """
        about_input = sum(len(tails) * len(self._begun(at)) for at, tails in enumerate(self.tails))
        cached = min(tokens for _, tokens in rows[:about_input])
        return Decisions(
            model,
            self._answers([values for values, _ in rows]),
            len(self.shared) + sum(len(one[0]) for one in self.tails),
            min(cached, len(self.shared)),
            len(rows),
        )

    def _answers(self, rows: Sequence[Sequence[float]]) -> tuple[DecisionAnswer, ...]:
        following = iter(rows)
        scores = [self._scores(at, following) for at in range(len(self._questions))]
        for at in self._unknown():
            self._empty[at] = found = self._scores(at, following)
            self._calibration.put(self._model, self._key(at), found)
        return tuple(
            self._answer(question, scores[at], self._empty.get(at))
            for at, question in enumerate(self._questions)
        )

    def _unknown(self) -> list[int]:
        return [at for at, scores in self._empty.items() if scores is None]

    def _key(self, at: int) -> Hashable:
        return self._without_content, tuple(self.tails[at])

    def _begun(self, at: int) -> Sequence[tuple[int, ...]]:
        question = self._questions[at]
        if is_answered_by_word(question, self._labels):
            return _WORD_ROWS
        return self._labels.begun(len(question.options))

    def _rows(
        self, at: int, shared: tuple[int, ...], images: tuple[PlacedImage, ...]
    ) -> Iterator[Request]:
        by_word = is_answered_by_word(self._questions[at], self._labels)
        sampling = SamplingParams(
            temperature=0.0,
            max_tokens=1,
            ignore_eos=True,
            logprob_token_ids=self._labels.word_ids if by_word else self._labels.letter_ids,
        )
        for tail in self.tails[at]:
            for begun in self._begun(at):
                yield Request(
                    (*shared, *tail, *begun), sampling, cache_salt=self._cache_salt, images=images
                )

    def _scores(self, at: int, following: Iterator[Sequence[float]]) -> Scores:
        """The next rows' log-probabilities of a question's options, by order."""
        question = self._questions[at]
        if is_answered_by_word(question, self._labels):
            return (self._labels.word_log_probabilities(next(following)),)
        count, number = len(question.options), len(self._begun(at))
        forward, backward = (
            self._labels.log_probabilities(count, list(islice(following, number))) for _ in range(2)
        )
        return forward, backward[::-1]

    def _answer(
        self, question: DecisionQuestion, scores: Scores, empty: Scores | None
    ) -> DecisionAnswer:
        probabilities = option_probabilities(scores, empty)
        return self._rules.read(question, probabilities, label_mass(scores))
