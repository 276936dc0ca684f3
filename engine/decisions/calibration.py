"""`Calibration`: what a model answers to questions about an input without content.

A model prefers some answers whatever it reads. Contextual calibration (Zhao et al. 2021, arXiv:2102.09690)
subtracts the log-probabilities of the same question about an input that says nothing. They depend on the
question and the model alone, so they are computed once and kept for the `SIZE` questions used last.
"""

import threading
from collections import OrderedDict
from collections.abc import Hashable

from engine.decisions.probabilities import Scores

SIZE = 4096


class Calibration:
    """Scores by question; any thread. A new model begins with none."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._model: Hashable = None
        self._scores: OrderedDict[Hashable, Scores] = OrderedDict()

    def get(self, model: Hashable, question: Hashable) -> Scores | None:
        """The scores of a question, or None if they have to be computed.

        Args:
            model: identifies the model and its tokenizer; those of another one are dropped.
            question: identifies the question as that model reads it.
        """
        with self._lock:
            if model != self._model:
                self._model = model
                self._scores.clear()
            found = self._scores.get(question)
            if found is not None:
                self._scores.move_to_end(question)
            return found

    def put(self, model: Hashable, question: Hashable, scores: Scores) -> None:
        """Keep the scores of a question, unless the model is another one by now."""
        with self._lock:
            if model != self._model:
                return
            self._scores[question] = scores
            while len(self._scores) > SIZE:
                self._scores.popitem(last=False)
