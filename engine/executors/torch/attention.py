"""Our attention function in transformers' attention interface, and the backends behind it.

Every layer of every architecture calls `paged_attention` with the queries, keys and values of all
of a step's tokens, flat in one batch entry of length T. The step travels through the model as the
keyword argument `paged_step`, so nothing is global and two executors can share a process.
"""

from dataclasses import dataclass
from typing import Any, Protocol

import torch
from transformers import AttentionInterface

IMPLEMENTATION = "pravaha_paged"
"""Name in the interface. Masks are made for known names only, so models make none for ours."""

_HANDLED = frozenset(
    {
        # What a layer tells the function; the rest of what models pass along changes no result.
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
    """What a layer asks of its attention.

    Attributes:
        scale: factor of the scores.
        sliding_window: a token sees the last n tokens, itself included; 0 sees all.
        softcap: scores are squashed into (-softcap, softcap); 0 leaves them.
        sinks: [heads], a learned score a head that joins the softmax and no value; or None.
    """

    scale: float
    sliding_window: int = 0
    softcap: float = 0.0
    sinks: torch.Tensor | None = None


class PagedStep(Protocol):
    """What a step gives its layers: somewhere to keep keys and values, and a way to attend."""

    def attend(
        self,
        layer: int,
        query: torch.Tensor,
        key: torch.Tensor,
        value: torch.Tensor,
        traits: AttentionTraits,
    ) -> torch.Tensor:
        """Store keys and values, then attend.

        Args:
            layer: index of the layer.
            query: [T, heads, key size].
            key: [T, KV heads, key size].
            value: [T, KV heads, value size].
            traits: what the layer asks for.

        Returns:
            [T, heads, value size].
        """
        ...


class UnsupportedAttentionError(Exception):
    """A layer asks for something that the paged attention does not do; the message says what."""


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
    """The function transformers calls in every attention layer.

    Args:
        module: the layer's attention module.
        query: [1, heads, T, key size].
        key: [1, KV heads, T, key size].
        value: [1, KV heads, T, value size].
        attention_mask: must be None: masks follow from the step.
        paged_step: the step in progress.
        scaling: factor of the scores; None is 1/√(key size).
        sliding_window: last tokens seen; None or 0 for all.
        softcap: bound of the scores; None for none.
        s_aux: [heads] attention sinks; None for none.
        is_causal: must not be False.
        others: refused unless known to change nothing.

    Returns:
        [1, T, heads, value size], and None for the weights.
    """
    if paged_step is None:
        raise UnsupportedAttentionError("it does not pass the step on to its attention")
    if attention_mask is not None:
        raise UnsupportedAttentionError("it masks attention in a way of its own")
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
