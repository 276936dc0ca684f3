"""`StepTimeModel`: a linear model of a step's duration as a function of its load, fitted online.

    seconds = constant + a · prefill tokens + b · decode rows + c · KV tokens

Non-negative least squares on *relative* errors (a step of 3 ms counts like one of 300), with
exponentially decaying weights. Each fit is regularised towards the last one, so that a coefficient
that recent steps do not determine keeps its value. Outliers, such as a step during which another
program took the cores, are clipped to a multiple of the usual scatter; a lasting change widens the
scatter and is followed.

Written by the engine's thread; any thread may predict. Cost: about a microsecond per observation, and
one fit (four equations, some hundred microseconds, more with cold caches) per 32 observations.
"""

import numpy as np
from numpy.typing import NDArray

from engine.api.step_costs import StepCosts, StepLoad

_TERMS = 4
_FIT_EVERY = 32
_DECAY = 0.5 ** (1 / 128)
"""Decay of an observation's weight per step; the half-life is 128 steps."""
_WARMUP = 32
"""The first observations, which are not clipped and are fitted one by one."""
_REGULARISATION = 0.02
"""Weight of the last fit, in observations."""
_CLIP_SCATTERS = 3.0
"""Observations are clipped to the prediction ± this many times the usual relative error."""
_MIN_SCATTER = 0.05
_SCATTER_DECAY = 0.95
_MIN_SHARE = 1e-3
"""Lower bound of a prediction used as a divisor, as a fraction of the measured time."""


_FIRST_GUESS = StepCosts(1e-3, 1e-4, 5e-4, 1e-8)
"""Ratios of the initial coefficients; the first observation scales them."""


def step_load(
    num_scheduled_tokens: NDArray[np.int32],
    end: NDArray[np.int32],
    total: int,
    drafts: NDArray[np.int32] | None = None,
) -> StepLoad:
    """The load of a step. A draft token counts as a decode row.

    Args:
        num_scheduled_tokens: [R] int32, tokens each row computes, drafts included.
        end: [R] int32, tokens each row has computed after the step.
        total: the sum of `num_scheduled_tokens`.
        drafts: [R] int32, draft tokens among `num_scheduled_tokens`; None if there are none.
    """
    rows = len(num_scheduled_tokens)
    if total == rows:
        return StepLoad(0, rows, int(end.sum()))
    wide = num_scheduled_tokens.astype(np.int64)  # 2**16 tokens × 2**24 tokens exceed int32
    pairs = int((wide * end - wide * (wide - 1) // 2).sum())
    lengths = num_scheduled_tokens if drafts is None else num_scheduled_tokens - drafts
    decodes = int(num_scheduled_tokens[lengths == 1].sum())
    return StepLoad(total - decodes, decodes, pairs)


class StepTimeModel:
    """Predicts step times from past observations.

    Attributes:
        error: running mean of |measured - predicted| / predicted at the last fit; None before the
            second observation.
    """

    def __init__(self) -> None:
        self._costs = _FIRST_GUESS
        self._moments = np.zeros((_TERMS, _TERMS))
        self._targets = np.zeros(_TERMS)
        self._unfitted: list[tuple[StepLoad, float]] = []  # observations since the last fit
        self._observations = 0
        self.error: float | None = None

    @property
    def costs(self) -> StepCosts | None:
        """The coefficients; None before the first observation. Any thread."""
        return self._costs if self._observations else None

    def predict(self, load: StepLoad) -> float | None:
        """Predicted seconds of a step; None before the first observation. Any thread."""
        costs = self.costs
        return None if costs is None else costs.seconds(load)

    def observe(self, load: StepLoad, seconds: float) -> float | None:
        """Add the observation that a step took `seconds`.

        Returns:
            What `predict` returned before this observation.
        """
        predicted = self.predict(load)
        if seconds <= 0:
            return predicted
        if predicted is None:
            self._costs = self._costs.scaled(seconds / self._costs.seconds(load))
        self._unfitted.append((load, seconds))
        self._observations += 1
        if self._observations <= _WARMUP or len(self._unfitted) == _FIT_EVERY:
            self._fit()
        return predicted

    def _normalised(self, load: StepLoad, seconds: float, earlier: int) -> tuple[float, ...]:
        """Time and terms of an observation, divided by its predicted time.

        So the fit minimises relative errors. Dividing by the measured time instead would give slow
        steps less weight than fast ones.

        Args:
            load: the step.
            seconds: its measured time.
            earlier: number of observations before it.
        """
        predicted = self._costs.seconds(load)
        if earlier:
            seconds = self._clip_outlier(seconds, predicted, warm_up=earlier <= _WARMUP)
        unit = max(predicted, _MIN_SHARE * seconds)
        return (
            seconds / unit,
            1.0 / unit,
            load.prefill_tokens / unit,
            load.num_decode_rows / unit,
            load.kv_tokens / unit,
        )

    def _clip_outlier(self, seconds: float, predicted: float, *, warm_up: bool) -> float:
        """Clip the measured time to the usual scatter, and update the scatter."""
        predicted = max(predicted, _MIN_SHARE * seconds)
        error = abs(seconds - predicted) / predicted
        usual = self.error
        if usual is None:
            self.error = error
            return seconds
        reach = _CLIP_SCATTERS * max(usual, _MIN_SCATTER)
        # The error is clipped at 2 × reach, not at reach: a lasting change must widen the scatter.
        self.error = _SCATTER_DECAY * usual + (1 - _SCATTER_DECAY) * min(error, 2 * reach)
        if warm_up:
            return seconds
        return min(max(seconds, predicted / (1 + reach)), predicted * (1 + reach))

    def _fit(self) -> None:
        """Fit the pending observations; coefficients that would be negative become zero."""
        first = self._observations - len(self._unfitted)
        seen = np.array(
            [self._normalised(*one, first + at) for at, one in enumerate(self._unfitted)]
        )
        self._unfitted.clear()
        terms, times = seen[:, 1:], seen[:, 0]
        keep = _DECAY ** len(seen)
        self._moments = keep * self._moments + terms.T @ terms
        self._targets = keep * self._targets + times @ terms
        last = self._costs.vector
        sizes = np.maximum(last, 1e-3 * _FIRST_GUESS.vector)
        pull = np.diag(_REGULARISATION / sizes**2)
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
