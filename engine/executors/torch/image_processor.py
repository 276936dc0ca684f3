"""`ImageProcessor`: the tokens and pixel inputs of images, by the model's own transformers processor.

Images are decoded and scaled by Pillow; torchvision is not needed. An image is processed by itself, so
its tokens do not depend on the other images of a prompt. Models whose processors treat several images
differently take one per prompt (`one_per_prompt`).

Cost: decoding and scaling take about 10 ns per pixel of the file, on the caller's thread. The results are
kept in a cache of `CACHE_BYTES`, so that the engine's thread need not repeat the work.
"""

import hashlib
from collections import OrderedDict
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import Any

import torch
from transformers import AutoImageProcessor, AutoTokenizer, PreTrainedConfig
from transformers.models.auto.processing_auto import PROCESSOR_MAPPING

from engine.api.error_text import first_line
from engine.api.errors import InvalidRequest, ModelError
from engine.api.image import Image
from engine.executors.torch.image_decoding import decode_image
from engine.executors.torch.installed import INSTALL, pillow_installed

CACHE_BYTES = 128 << 20
"""Pixel inputs that are kept. One image may exceed it; it is then kept alone."""

_MAPPING: Any = PROCESSOR_MAPPING
_IMAGES: Any = AutoImageProcessor
_TOKENIZERS: Any = AutoTokenizer
_LOCAL = {"local_files_only": True, "trust_remote_code": False}
_TEXT_INPUTS = frozenset(
    {"input_ids", "attention_mask", "token_type_ids", "mm_token_type_ids", "position_ids"}
)
_PROBES = ((64, 48), (48, 96))
"""Sizes of the two images by which a processor is tried."""


@dataclass(frozen=True, slots=True)
class ProcessedImage:
    """An image as its model takes it.

    Attributes:
        token_ids: the tokens that stand for it, separators included.
        inputs: what the model's `forward` takes besides the tokens: pixel values, sizes, masks.
    """

    token_ids: tuple[int, ...]
    inputs: dict[str, Any]

    @property
    def nbytes(self) -> int:
        """Bytes of the inputs."""
        return sum(one.nbytes for one in self.inputs.values() if isinstance(one, torch.Tensor))


class ImageProcessor:
    """The processor of one model. Thread-safe.

    Attributes:
        placeholder_id: the token that a chat template writes for an image.
        fingerprint: differs for processors with other settings.
        one_per_prompt: whether a prompt may have one image only.
    """

    def __init__(self, processor: Any, *, placeholder_id: int) -> None:
        """Wrap a transformers processor; use `load`."""
        self.placeholder_id = placeholder_id
        self.fingerprint = hashlib.sha256(processor.to_json_string().encode()).hexdigest()
        self._processor = processor
        self._lock = Lock()
        self._cache: OrderedDict[bytes, ProcessedImage] = OrderedDict()
        self._cached_bytes = 0
        self.one_per_prompt = not self._is_separable()

    @classmethod
    def load(
        cls, directory: Path, config: PreTrainedConfig, *, vocab_size: int
    ) -> "ImageProcessor":
        """The processor in a model directory.

        Args:
            directory: contains its files.
            config: the model's configuration.
            vocab_size: rows of the model's embedding.

        Raises:
            ModelError: there is none, it cannot be used, or its tokens are not the model's.
        """
        if not pillow_installed():
            raise ModelError(f"{directory} sees images, which needs Pillow: {INSTALL}.")
        try:
            processor = _load(directory, config)
            token = processor.image_token
            placeholder = processor.tokenizer.convert_tokens_to_ids(token)
            loaded = cls(processor, placeholder_id=int(placeholder))
            token_ids = loaded._process(_blank(_PROBES[0])).token_ids
        except Exception as error:  # transformers raises many kinds
            raise ModelError(
                f"The image processor in {directory} cannot be used: {first_line(error)}."
            ) from error
        if placeholder is None or not 0 <= min(token_ids) <= max(token_ids) < vocab_size:
            raise ModelError(
                f"The image tokens of {directory} are outside its vocabulary of {vocab_size}."
            )
        return loaded

    def token_ids(self, image: Image) -> tuple[int, ...]:
        """The tokens that stand for an image, separators included.

        Raises:
            InvalidRequest: as `process`.
        """
        return self.process(image).token_ids

    def process(self, image: Image) -> ProcessedImage:
        """Decode and scale an image, or take it from the cache. Any thread.

        Raises:
            InvalidRequest: it is damaged or too large, or the model's processor rejects it.
        """
        with self._lock:
            if (cached := self._cache.get(image.digest)) is not None:
                self._cache.move_to_end(image.digest)
                return cached
            processed = self.process_pixels(decode_image(image))
            self._cache[image.digest] = processed
            self._cached_bytes += processed.nbytes
            while self._cached_bytes > CACHE_BYTES and len(self._cache) > 1:
                self._cached_bytes -= self._cache.popitem(last=False)[1].nbytes
            return processed

    def process_pixels(self, pixels: Any) -> ProcessedImage:
        """Process a `PIL.Image.Image`.

        Raises:
            InvalidRequest: the model's processor rejects it.
        """
        try:
            return self._process(pixels)
        except Exception as error:  # processors raise many kinds for sizes they cannot scale
            raise InvalidRequest(
                f"The model's image processor rejects an image: {first_line(error)}.",
                param="images",
            ) from error

    def _process(self, *images: Any) -> ProcessedImage:
        """The tokens and inputs of one call with these images."""
        output = self._processor(
            images=list(images),
            text=self._processor.image_token * len(images),
            add_special_tokens=False,
            return_tensors="pt",
        )
        ids = tuple(output["input_ids"][0].tolist())
        inputs = {name: value for name, value in output.items() if name not in _TEXT_INPUTS}
        return ProcessedImage(ids, inputs)

    def _is_separable(self) -> bool:
        """Whether two images have the same tokens together as each has by itself."""
        images = [_blank(size) for size in _PROBES]
        alone = [self._process(one).token_ids for one in images]
        return self._process(*images).token_ids == alone[0] + alone[1]


def _load(directory: Path, config: PreTrainedConfig) -> Any:
    """The model's processor with its image processor and tokenizer.

    `AutoProcessor` would load a processor of videos, too, which needs torchvision.
    """
    if type(config) not in _MAPPING:
        raise ValueError(f"transformers has no processor for {config.model_type!r}")
    base = _MAPPING[type(config)]
    settings, _ = base.get_processor_dict(directory, **_LOCAL)
    if "auto_map" in settings:
        raise ValueError("it requires custom code (auto_map), which is never run")
    parts = {
        "image_processor": lambda: _IMAGES.from_pretrained(directory, backend="pil", **_LOCAL),
        "tokenizer": lambda: _TOKENIZERS.from_pretrained(directory, **_LOCAL),
    }
    names = base.get_attributes()
    arguments = [parts[name]() if name in parts else None for name in names]
    return _for_images(base).from_args_and_dict(arguments, settings)


def _for_images(base: Any) -> Any:
    """The processor's class, built without its parts for videos and sounds."""

    def check_argument_for_proper_class(self: Any, name: str, argument: Any) -> Any:
        if argument is None:
            return None
        return base.check_argument_for_proper_class(self, name, argument)

    return type(
        base.__name__,
        (base,),
        {"check_argument_for_proper_class": check_argument_for_proper_class},
    )


def _blank(size: tuple[int, int]) -> Any:
    from PIL import Image as PilImage

    return PilImage.new("RGB", size, (120, 80, 40))
