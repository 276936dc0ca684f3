"""Sliding windows as the files of a family describe them."""

from engine.models.families.checkpoint_header import CheckpointHeader
from engine.models.families.gguf_header import GgufHeader
from engine.models.families.model_header import ModelHeader


def no_window(header: GgufHeader) -> None:
    """Reject a GGUF file with a window, of a family of which GGUF does not record which layers have it.

    Raises:
        ModelError: the file has a window shorter than its context.
    """
    if 0 < header.window() < header.context_length:
        raise header.fields.wrong(header.window_key, "absent for this architecture")


def qwen_windows(header: CheckpointHeader) -> tuple[int, ...]:
    """The windows of a Qwen checkpoint: off unless `use_sliding_window`, then from `max_window_layers` on.

    Raises:
        ModelError: a field is damaged, or a layer has a window whose size is missing.
    """
    config = header.text
    window = 0
    if config.flag("use_sliding_window", default=False):
        window = config.integer("sliding_window", low=1)
    if "layer_types" in config:
        sliding = header.sliding_layers(period=1)
        if any(sliding) and window == 0:
            raise config.wrong("layer_types", "full_attention everywhere without a sliding window")
        return tuple(window if slides else 0 for slides in sliding)
    first = config.integer("max_window_layers", default=28 if window else 0)
    return tuple(window if layer >= first else 0 for layer in range(header.num_layers))


def sliding_windows(header: ModelHeader, sliding: tuple[bool, ...], window: int) -> tuple[int, ...]:
    """`window` in the layers that slide.

    Raises:
        ModelError: a layer slides and there is no window.
    """
    if any(sliding) and window == 0:
        raise header.fields.wrong(header.window_key, "above 0, as layers have a window")
    return tuple(window if slides else 0 for slides in sliding)
