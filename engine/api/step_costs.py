"""`StepLoad`, the work in a step, and `StepCosts`, the step-time model's coefficients in seconds."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


class StepLoad(NamedTuple):
    """The work in a step.

    Attributes:
        prefill_tokens: tokens computed by rows that compute several.
        num_decode_rows: rows that compute one token.
        kv_tokens: (computed token, attended token) pairs; in decode rows, the KV tokens read.
    """

    prefill_tokens: int
    num_decode_rows: int
    kv_tokens: int


@dataclass(frozen=True, slots=True)
class StepCosts:
    """Coefficients of the linear step-time model, in seconds.

    Attributes:
        constant: per step.
        prefill_token: per prefill token.
        decode_row: per decode row.
        kv_token: per attended token.
    """

    constant: float
    prefill_token: float
    decode_row: float
    kv_token: float

    @property
    def vector(self) -> NDArray[np.float64]:
        """[4] float64, in the order of the fields."""
        return np.array([self.constant, self.prefill_token, self.decode_row, self.kv_token])

    def scaled(self, factor: float) -> "StepCosts":
        """All coefficients multiplied by `factor`."""
        return StepCosts(*(self.vector * factor).tolist())

    def seconds(self, load: StepLoad) -> float:
        """The predicted time of a step."""
        return (
            self.constant
            + self.prefill_token * load.prefill_tokens
            + self.decode_row * load.num_decode_rows
            + self.kv_token * load.kv_tokens
        )
