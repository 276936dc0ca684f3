"""`top_tokens`: a top-k with a deterministic order of ties."""

import torch


def top_tokens(values: torch.Tensor, count: int) -> torch.Tensor:
    """Ids of the `count` largest values per row, largest first, ties by lowest id: [N, count] int64.

    `torch.topk` does not define the order of ties, so it is applied to unique int64 keys: the float's
    bits as an ordered integer in the high half, the descending id in the low half.

    Args:
        values: [N, V] float32 without NaN, V below 2³².
        count: at most V.
    """
    bits = (values + 0.0).view(torch.int32)  # + 0.0 makes -0.0 equal to 0.0
    ordered = torch.where(bits < 0, bits ^ 0x7FFFFFFF, bits).long()
    ids = torch.arange(values.shape[1], device=values.device)
    keys = ordered * 2**32 + (2**32 - 1 - ids)
    return keys.topk(count, dim=1).indices
