"""`StepTimeModel`: how long a step takes, as a linear function of its load, fitted while it runs.

    seconds = constant + a · prefill tokens + b · decode rows + c · KV tokens

Least squares on *relative* errors (a step of 3 ms counts like one of 300), over observations that
are forgotten exponentially. Each fit is pulled weakly towards the last one, so that a coefficient
about which recent steps say nothing stays where it was. Coefficients are never negative. A single
observation far off, as when another program takes the cores, moves the fit no more than one at the
edge of the usual scatter; a lasting change widens the scatter and is followed.

Written by the engine's thread; any thread may predict. Cost: a microsecond an observation, and a fit
(four equations, some hundred microseconds, more with cold caches) at every thirty-second.
"""

import numpy as np
from numpy.typing import NDArray

from engine.api.step_costs import StepCosts, StepLoad

_TERMS = 4
_FIT_EVERY = 32
_KEEP = 0.5 ** (1 / 128)
"""An observation's weight halves in 128 steps."""
_TRUSTED = 32
"""Observations until every one of which counts in full and is fitted at once."""
_PULL = 0.02
"""Weight of the last fit, in observations."""
_SCATTERS = 3.0
"""Observations further off than so many times the usual scatter are drawn in to there."""
_LEAST_SCATTER = 0.05
_SCATTER_KEEP = 0.95
_LEAST_SHARE = 1e-3
"""A prediction below this share of what was measured is taken for this share: it may be zero."""


_FIRST_GUESS = StepCosts(1e-3, 1e-4, 5e-4, 1e-8)
"""Proportions to start the fit from; the first observation gives them their size."""


def load_of(
    num_scheduled_tokens: NDArray[np.int32],
    end: NDArray[np.int32],
    total: int,
    drafts: NDArray[np.int32] | None = None,
) -> StepLoad:
    """The load of a step. A draft token counts as another decode.

    Args:
        num_scheduled_tokens: [R] int32, tokens each row computes.
        end: [R] int32, tokens each row has computed after it.
        total: the sum of `num_scheduled_tokens`.
        drafts: [R] int32, how many of them are draft tokens; None if there are none.
    """
    rows = len(num_scheduled_tokens)
    if total == rows:
        return StepLoad(0, rows, int(end.sum()))
    wide = num_scheduled_tokens.astype(np.int64)  # a chunk of 2**16 tokens at the end of 2**24
    pairs = int((wide * end - wide * (wide - 1) // 2).sum())
    known = num_scheduled_tokens if drafts is None else num_scheduled_tokens - drafts
    decodes = int(num_scheduled_tokens[known == 1].sum())
    return StepLoad(total - decodes, decodes, pairs)


class StepTimeModel:
    """Learns a machine's step times.

    Attributes:
        error: usual size of (measured - predicted) / predicted when the model was last fitted, or None
            before the second observation.
    """

    def __init__(self) -> None:
        self._costs = _FIRST_GUESS
        self._moments = np.zeros((_TERMS, _TERMS))
        self._targets = np.zeros(_TERMS)
        self._seen: list[tuple[StepLoad, float]] = []  # and not fitted yet
        self._observations = 0
        self.error: float | None = None

    @property
    def costs(self) -> StepCosts | None:
        """The coefficients, or None before the first observation; any thread."""
        return self._costs if self._observations else None

    def predict(self, load: StepLoad) -> float | None:
        """Seconds that a step would take, or None if that is not known yet; any thread."""
        costs = self.costs
        return None if costs is None else costs.seconds(load)

    def observe(self, load: StepLoad, seconds: float) -> float | None:
        """Learn from a step that took `seconds`; what `predict` had said of it."""
        predicted = self.predict(load)
        if seconds <= 0:
            return predicted
        if predicted is None:
            self._costs = self._costs.scaled(seconds / self._costs.seconds(load))
        self._seen.append((load, seconds))
        self._observations += 1
        if self._observations <= _TRUSTED or len(self._seen) == _FIT_EVERY:
            self._fit()
        return predicted

    def _terms_of(self, load: StepLoad, seconds: float, earlier: int) -> tuple[float, ...]:
        """Time and terms of an observation, in units of what was expected of it.

        So the fit minimises relative errors; in units of what was measured, slow steps would count less
        than fast ones.

        Args:
            load: the step.
            seconds: what it took.
            earlier: observations before it.
        """
        predicted = self._costs.seconds(load)
        if earlier:
            seconds = self._drawn_in(seconds, predicted, trusted=earlier <= _TRUSTED)
        unit = max(predicted, _LEAST_SHARE * seconds)
        return (
            seconds / unit,
            1.0 / unit,
            load.prefill_tokens / unit,
            load.num_decode_rows / unit,
            load.kv_tokens / unit,
        )

    def _drawn_in(self, seconds: float, predicted: float, *, trusted: bool) -> float:
        """The measured time, or the edge of the usual scatter if it is beyond; notes the scatter."""
        predicted = max(predicted, _LEAST_SHARE * seconds)
        error = abs(seconds - predicted) / predicted
        usual = self.error
        if usual is None:
            self.error = error
            return seconds
        reach = _SCATTERS * max(usual, _LEAST_SCATTER)
        # Drawn in as well, but not to where it was: a change that lasts must become usual.
        self.error = _SCATTER_KEEP * usual + (1 - _SCATTER_KEEP) * min(error, 2 * reach)
        if trusted:
            return seconds
        return min(max(seconds, predicted / (1 + reach)), predicted * (1 + reach))

    def _fit(self) -> None:
        """Take in what was observed and solve; coefficients that would be negative are zero."""
        first = self._observations - len(self._seen)
        seen = np.array([self._terms_of(*one, first + at) for at, one in enumerate(self._seen)])
        self._seen.clear()
        terms, times = seen[:, 1:], seen[:, 0]
        keep = _KEEP ** len(seen)
        self._moments = keep * self._moments + terms.T @ terms
        self._targets = keep * self._targets + times @ terms
        last = self._costs.vector
        sizes = np.maximum(last, 1e-3 * _FIRST_GUESS.vector)
        pull = np.diag(_PULL / sizes**2)
        moments, targets = self._moments + pull, self._targets + pull @ last
        used = np.ones(_TERMS, np.bool_)
        costs: NDArray[np.float64] = np.zeros(_TERMS)
        while used.any():
            costs = np.zeros(_TERMS)
            costs[used] = np.linalg.solve(moments[np.ix_(used, used)], targets[used])
            if (costs >= 0).all():
                break
            used &= costs > 0
        self._costs = StepCosts(*costs.tolist())
