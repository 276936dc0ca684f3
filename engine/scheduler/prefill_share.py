"""Divides the prefill tokens of a step among the prefills that do not fit into it.

In the policy's order alone, one long prompt would take all prefill tokens of every step until it is
computed, and a request of five tokens would wait for it. So `SHORT_SHARE` of the tokens goes to the
prefills with the fewest pending tokens, running or waiting. The first prefill in the policy's order
is slowed by at most that share.
"""

import numpy as np
from numpy.typing import NDArray

SHORT_SHARE = 0.1
"""Share of a step's prefill tokens for the shortest prefills; the policy decides the rest."""


def share_prefill(
    num_pending_tokens: NDArray[np.int32], budget: int, reserved: int
) -> NDArray[np.int32]:
    """Tokens to schedule for each running prefill.

    Args:
        num_pending_tokens: [P] int32, in the policy's order.
        budget: prefill tokens of the step.
        reserved: how many of them go to the shortest prefills; the others are assigned in the
            policy's order.

    Returns:
        [P] int32, at most the pending tokens; their sum is at most `budget`.
    """
    scheduled = _in_order(num_pending_tokens, budget - reserved)
    left = num_pending_tokens - scheduled
    shortest = np.argsort(num_pending_tokens, kind="stable")
    scheduled[shortest] += _in_order(left[shortest], reserved)
    return scheduled


def _in_order(num_pending_tokens: NDArray[np.int32], budget: int) -> NDArray[np.int32]:
    """As many pending tokens of each prefill as the budget covers after those before it."""
    before = np.cumsum(num_pending_tokens, dtype=np.int32) - num_pending_tokens
    scheduled: NDArray[np.int32] = np.clip(budget - before, 0, num_pending_tokens)
    return scheduled
