"""`paged_attention`: the attention function registered in transformers' attention interface.

Every attention layer calls it with the queries, keys and values of all tokens of a step, flat in one
batch entry of length T. The step is passed through the model as the keyword argument `paged_step`,
so there is no global state and a process can have several executors.
"""

from dataclasses import dataclass
from typing import Any, Protocol

import torch
from transformers import AttentionInterface

IMPLEMENTATION = "pravaha_paged"
"""Name in the interface. transformers builds masks only for names it knows, so none for this one."""

_HANDLED = frozenset(
    {
        # Keyword arguments that layers pass and that do not change the result.
        "dropout",
        "position_ids",
        "use_cache",
        "output_attentions",
        "output_hidden_states",
        "output_router_logits",
        "logits_to_keep",
        "return_dict",
        "cache_position",
    }
)


@dataclass(frozen=True, slots=True)
class AttentionTraits:
    """Attention parameters of a layer.

    Attributes:
        scale: factor of the scores.
        sliding_window: number of last tokens that a token attends to, itself included; 0 for all.
        softcap: scores are capped smoothly to (-softcap, softcap); 0 for no cap.
        sinks: [heads], attention sinks: a learned score per head that takes part in the softmax and
            has no value; or None.
    """

    scale: float
    sliding_window: int = 0
    softcap: float = 0.0
    sinks: torch.Tensor | None = None


class PagedStep(Protocol):
    """A step as seen by the attention layers: stores keys and values and computes attention."""

    def attend(
        self,
        layer: int,
        query: torch.Tensor,
        key: torch.Tensor,
        value: torch.Tensor,
        traits: AttentionTraits,
    ) -> torch.Tensor:
        """Store keys and values in the KV pool, then compute attention.

        Args:
            layer: index of the layer.
            query: [T, heads, key size].
            key: [T, KV heads, key size].
            value: [T, KV heads, value size].
            traits: attention parameters of the layer.

        Returns:
            [T, heads, value size].
        """
        ...


class UnsupportedAttentionError(Exception):
    """A layer needs a feature that the paged attention lacks; the message names it."""


def paged_attention(
    module: torch.nn.Module,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attention_mask: torch.Tensor | None = None,
    *,
    paged_step: PagedStep | None = None,
    scaling: float | None = None,
    sliding_window: int | None = None,
    softcap: float | None = None,
    s_aux: torch.Tensor | None = None,
    is_causal: bool | None = None,
    **others: Any,
) -> tuple[torch.Tensor, None]:
    """The attention function that transformers calls in every layer.

    Args:
        module: the layer's attention module.
        query: [1, heads, T, key size].
        key: [1, KV heads, T, key size].
        value: [1, KV heads, T, value size].
        attention_mask: must be None: masks are derived from the step.
        paged_step: the current step.
        scaling: factor of the scores; None for 1/√(key size).
        sliding_window: number of last tokens attended to; None or 0 for all.
        softcap: bound of the scores; None for no cap.
        s_aux: [heads] attention sinks; None for none.
        is_causal: must not be False.
        others: rejected unless None or listed in `_HANDLED`.

    Returns:
        [1, T, heads, value size], and None for the attention probabilities.

    Raises:
        UnsupportedAttentionError: the layer needs a feature that the paged attention lacks.
    """
    if paged_step is None:
        raise UnsupportedAttentionError("it does not pass the step on to its attention")
    if attention_mask is not None:
        raise UnsupportedAttentionError("it passes its own attention mask")
    causal = getattr(module, "is_causal", True) if is_causal is None else is_causal
    if causal is False:
        raise UnsupportedAttentionError("its attention is not causal")
    for name, given in others.items():
        if given is not None and name not in _HANDLED:
            raise UnsupportedAttentionError(f"its attention uses {name}")
    layer = getattr(module, "layer_idx", None)
    if not isinstance(layer, int):
        raise UnsupportedAttentionError("its attention layers have no index")
    traits = AttentionTraits(
        scale=query.shape[-1] ** -0.5 if scaling is None else float(scaling),
        sliding_window=sliding_window or 0,
        softcap=softcap or 0.0,
        sinks=s_aux,
    )
    query, key, value = (tensor.squeeze(0).transpose(0, 1) for tensor in (query, key, value))
    return paged_step.attend(layer, query, key, value, traits).unsqueeze(0), None


AttentionInterface.register(IMPLEMENTATION, paged_attention)
