"""`ImageFeatures`: the embeddings that a model computes for the tokens of an image.

The model itself computes them: it is called with the image's tokens and pixel inputs, and what it passes to
its language model is taken, vision tower, projection and merging included. So no code here knows an
architecture.

The embeddings of an image are computed when a step first needs one of them and kept for the following ones:
a prompt that is computed in chunks runs the vision tower once per image. The cache holds `CACHE_BYTES`, and
at least the last image; what was removed is computed again.
"""

from collections import OrderedDict
from collections.abc import Sequence
from typing import Any

import torch

from engine.api.errors import ExecutorError, InvalidRequest
from engine.api.image import Image
from engine.executors.base import ImageRun
from engine.executors.torch.image_processor import ImageProcessor, ProcessedImage

CACHE_BYTES = 64 << 20
"""Embeddings that are kept, in device memory."""


class _EmbeddingsTaken(Exception):
    """Ends the model's call where its language model would begin."""


def embed_image(model: Any, processed: ProcessedImage, device: torch.device) -> torch.Tensor:
    """[n, hidden size]: what the model passes to its language model for the n tokens of an image."""
    dtype = model.dtype
    taken: list[torch.Tensor] = []

    def take(_: Any, __: Any, arguments: dict[str, Any]) -> None:
        taken.append(arguments["inputs_embeds"])
        raise _EmbeddingsTaken

    hook = model.get_decoder().register_forward_pre_hook(take, with_kwargs=True)
    try:
        model(
            input_ids=torch.tensor([processed.token_ids], device=device),
            use_cache=False,
            **{name: on_device(value, device, dtype) for name, value in processed.inputs.items()},
        )
    except _EmbeddingsTaken:
        pass
    finally:
        hook.remove()
    return taken[0][0]


def on_device(value: Any, device: torch.device, dtype: torch.dtype) -> Any:
    """An input on the device; pixels in the model's type."""
    if not isinstance(value, torch.Tensor):
        return value
    return value.to(device, dtype if value.is_floating_point() else value.dtype)


class ImageFeatures:
    """The embeddings of images for one loaded model. Engine's thread only."""

    def __init__(self, processor: ImageProcessor, device: torch.device) -> None:
        self._processor = processor
        self._device = device
        self._cache: OrderedDict[bytes, torch.Tensor] = OrderedDict()
        self._cached_bytes = 0
        self.computed = 0
        """Number of runs of the vision tower."""

    def embed(self, model: Any, ids: torch.Tensor, runs: Sequence[ImageRun]) -> torch.Tensor:
        """[1, T, hidden size]: the embeddings of a step's tokens [1, T], images included.

        Raises:
            ExecutorError: a run lies outside the step or outside its image; nothing was computed.
        """
        tokens = ids.shape[1]
        embeddings: torch.Tensor = model.get_input_embeddings()(ids)
        for run in runs:
            features = self._features(model, run.image)
            end, last = run.flat + run.count, run.offset + run.count
            if run.flat < 0 or end > tokens or run.offset < 0 or last > len(features):
                raise ExecutorError("A run of image tokens lies outside the step or its image.")
            embeddings[0, run.flat : end] = features[run.offset : last].to(embeddings.dtype)
        return embeddings

    def _features(self, model: Any, image: Image) -> torch.Tensor:
        if (cached := self._cache.get(image.digest)) is not None:
            self._cache.move_to_end(image.digest)
            return cached
        try:
            processed = self._processor.process(image)
        except InvalidRequest as error:  # intake has processed it already
            raise ExecutorError(f"An image cannot be processed again: {error}") from error
        features = embed_image(model, processed, self._device)
        self.computed += 1
        self._cache[image.digest] = features
        self._cached_bytes += features.nbytes
        while self._cached_bytes > CACHE_BYTES and len(self._cache) > 1:
            self._cached_bytes -= self._cache.popitem(last=False)[1].nbytes
        return features
