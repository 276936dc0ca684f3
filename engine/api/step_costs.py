"""The load of a step, and the coefficients of the step-time model that turn it into seconds."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


class StepLoad(NamedTuple):
    """The work in a step.

    Attributes:
        prefill_tokens: tokens computed by rows that compute several.
        num_decode_rows: rows that compute one token.
        kv_tokens: pairs of a computed token and a token it attends to; for decodes, the KV tokens
            that are read.
    """

    prefill_tokens: int
    num_decode_rows: int
    kv_tokens: int


@dataclass(frozen=True, slots=True)
class StepCosts:
    """The coefficients, seconds each.

    Attributes:
        constant: of any step.
        prefill_token: of a token in a prefill.
        decode_row: of a row that decodes.
        kv_token: of a token that is attended to.
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
        """A machine so many times as slow."""
        return StepCosts(*(self.vector * factor).tolist())

    def seconds(self, load: StepLoad) -> float:
        """The predicted time of a step."""
        return (
            self.constant
            + self.prefill_token * load.prefill_tokens
            + self.decode_row * load.num_decode_rows
            + self.kv_token * load.kv_tokens
        )
