"""Tiny random models that see, saved with their processors, and images for them."""

import io
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
import transformers
from PIL import Image as PilImage
from tokenizers import AddedToken
from transformers import CONFIG_MAPPING, AutoModelForImageTextToText, PreTrainedTokenizerFast

from engine.api.image import Image
from tests.fakes.tiny_checkpoint import tiny_encoder
from tests.fakes.tiny_transformers import COMMON

VOCAB = 288
CONTEXT = 512

PARTS_TEMPLATE = (
    "{% for message in messages %}<|im_start|>{{ message['role'] }}\n"
    "{% for part in message['content'] %}"
    "{% if part['type'] == 'image' %}<image>{% elif part['type'] == 'text' %}{{ part['text'] }}"
    "{% endif %}{% endfor %}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
"""Iterates over the parts of every content, as the templates of such models do."""

_SIZE = 32
_TEXT: dict[str, Any] = COMMON | {"vocab_size": VOCAB, "max_position_embeddings": CONTEXT}
_TOWER: dict[str, Any] = {
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "image_size": _SIZE,
    "patch_size": 8,
    "initializer_range": 0.3,
}
_MROPE = {"rope_type": "default", "mrope_section": [1, 1, 2], "rope_theta": 1e4}
_HALF: dict[str, Any] = {"image_mean": [0.5] * 3, "image_std": [0.5] * 3}
_CONTROLS: dict[str, list[str]] = {
    "llava": ["<image>"],
    "llava_onevision": ["<image>", "<video>"],
    "idefics3": ["<fake_token_around_image>", "<image>", "<global-img>", "<end_of_utterance>"]
    + [f"<row_{row}_col_{column}>" for row in (1, 2) for column in (1, 2)],
    "internvl": ["<image>", "<img>", "</img>", "<video>"],
    "gemma3": ["<image>", "<start_of_image>", "<end_of_image>"],
    "qwen2_vl": ["<|image_pad|>", "<|video_pad|>", "<|vision_start|>", "<|vision_end|>"],
}


@dataclass(frozen=True)
class SeeingModel:
    """A random model under transformers' own attention, its processor, and the directory of both."""

    directory: Path
    model: Any
    processor: Any

    def inputs(self, text: str, images: list[Image]) -> Any:
        """What transformers' processor passes to the model for a text with images."""
        opened = [PilImage.open(io.BytesIO(image.data)).convert("RGB") for image in images]
        return self.processor(images=opened or None, text=text, return_tensors="pt")

    def generate(self, text: str, images: list[Image], count: int) -> tuple[list[int], list[int]]:
        """The ids of transformers' processor for a text with images, and `generate`'s greedy tokens."""
        inputs = self.inputs(text, images)
        prompt = inputs["input_ids"][0].tolist()
        return prompt, self.greedy(prompt, inputs, count)

    def greedy(self, prompt: list[int], inputs: Any, count: int) -> list[int]:
        """`generate`'s greedy tokens after a prompt with the pixels of `inputs`."""
        tokens = torch.tensor([prompt])
        given = dict(inputs) | {"input_ids": tokens, "attention_mask": torch.ones_like(tokens)}
        output = self.model.generate(
            **given,
            max_new_tokens=count,
            min_new_tokens=count,
            do_sample=False,
            eos_token_id=None,
            pad_token_id=0,
        )
        answer: list[int] = output[0, len(prompt) :].tolist()
        return answer


def random_image(seed: int, width: int = 40, height: int = 30, kind: str = "PNG") -> Image:
    """An image of random pixels."""
    pixels = np.random.default_rng(seed).integers(0, 256, (height, width, 3), dtype=np.uint8)
    buffer = io.BytesIO()
    PilImage.fromarray(pixels).save(buffer, kind)
    media_type: Any = f"image/{kind.lower()}"
    return Image(buffer.getvalue(), media_type, width, height)


def tiny_vision(directory: Path, name: str, *, seed: int = 0) -> SeeingModel:
    """A random model of one of the `_CONTROLS`, saved with its processor."""
    tokenizer = _tokenizer(name)
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        config = _config(name, tokenizer)
        model = AutoModelForImageTextToText.from_config(config, dtype=torch.float32)
        with torch.no_grad():
            for parameter in model.parameters():
                if parameter.ndim == 1:  # biases and norms start as constants
                    parameter.add_(torch.randn_like(parameter) * 0.2)
                elif not parameter.any():  # as do some positions and separators
                    parameter.add_(torch.randn_like(parameter) * 0.3)
    model.save_pretrained(directory)
    processor = _processor(name, tokenizer)
    _save_processor(directory, processor)
    return SeeingModel(directory, model.eval(), processor)


def _tokenizer(name: str) -> PreTrainedTokenizerFast:
    encoder = tiny_encoder()
    encoder.add_tokens(
        [AddedToken(text, special=True, normalized=False) for text in _CONTROLS[name]]
    )
    extra = {}
    if name == "internvl":
        extra = {
            "start_image_token": "<img>",
            "end_image_token": "</img>",
            "context_image_token": "<image>",
            "video_token": "<video>",
        }
    if name == "gemma3":
        extra = {
            "image_token": "<image>",
            "boi_token": "<start_of_image>",
            "eoi_token": "<end_of_image>",
        }
    return PreTrainedTokenizerFast(
        tokenizer_object=encoder,
        eos_token="<|im_end|>",
        pad_token="<|im_end|>",
        chat_template=PARTS_TEMPLATE,
        extra_special_tokens=extra,
    )


def _config(name: str, tokenizer: Any) -> Any:
    image = tokenizer.convert_tokens_to_ids("<|image_pad|>" if name == "qwen2_vl" else "<image>")
    llama = CONFIG_MAPPING["llama"](**_TEXT)
    clip = transformers.CLIPVisionConfig(**_TOWER)
    siglip = transformers.SiglipVisionConfig(**_TOWER)
    match name:
        case "llava":
            return transformers.LlavaConfig(
                vision_config=clip, text_config=llama, image_token_id=image, vision_feature_layer=-1
            )
        case "llava_onevision":
            return transformers.LlavaOnevisionConfig(
                vision_config=siglip,
                text_config=CONFIG_MAPPING["qwen2"](**_TEXT),
                image_token_id=image,
                video_token_id=tokenizer.convert_tokens_to_ids("<video>"),
                vision_feature_layer=-1,
                vision_feature_select_strategy="full",
                image_grid_pinpoints=[
                    [_SIZE, 2 * _SIZE],
                    [2 * _SIZE, _SIZE],
                    [2 * _SIZE, 2 * _SIZE],
                ],
            )
        case "idefics3":
            return transformers.Idefics3Config(
                vision_config=transformers.models.idefics3.Idefics3VisionConfig(**_TOWER).to_dict(),
                text_config=llama,
                image_token_id=image,
                scale_factor=2,
                pad_token_id=0,
            )
        case "internvl":
            return transformers.InternVLConfig(
                vision_config=transformers.InternVLVisionConfig(
                    **(_TOWER | {"image_size": [_SIZE, _SIZE], "patch_size": [8, 8]})
                ),
                text_config=CONFIG_MAPPING["qwen2"](**_TEXT),
                image_token_id=image,
                image_seq_length=4,
                vision_feature_layer=-1,
            )
        case "gemma3":
            return transformers.Gemma3Config(
                vision_config=siglip,
                text_config=CONFIG_MAPPING["gemma3_text"](**_TEXT, head_dim=8, sliding_window=64),
                mm_tokens_per_image=4,
                boi_token_index=tokenizer.convert_tokens_to_ids("<start_of_image>"),
                eoi_token_index=tokenizer.convert_tokens_to_ids("<end_of_image>"),
                image_token_id=image,
            )
        case "qwen2_vl":
            return transformers.Qwen2VLConfig(
                text_config=_TEXT | {"rope_parameters": _MROPE},
                vision_config={
                    "depth": 2,
                    "embed_dim": 32,
                    "hidden_size": 32,
                    "num_heads": 2,
                    "patch_size": 8,
                    "mlp_ratio": 2,
                },
                image_token_id=image,
                video_token_id=tokenizer.convert_tokens_to_ids("<|video_pad|>"),
                vision_start_token_id=tokenizer.convert_tokens_to_ids("<|vision_start|>"),
                vision_end_token_id=tokenizer.convert_tokens_to_ids("<|vision_end|>"),
            )
    raise ValueError(name)


def _save_processor(directory: Path, processor: Any) -> None:
    """Save a processor; one without its video processor in the separate files of older checkpoints."""
    if not hasattr(processor, "video_processor"):
        processor.save_pretrained(directory)
        return
    processor.tokenizer.save_pretrained(directory)
    processor.image_processor.save_pretrained(directory)
    scalars = {
        key: value for key, value in vars(processor).items() if isinstance(value, int | float | str)
    }
    scalars.pop("chat_template", None)
    settings = scalars | {"processor_class": type(processor).__name__}
    (directory / "processor_config.json").write_text(json.dumps(settings))


class _WithoutVideo:
    """Lets a processor be built without its video processor, which needs torchvision."""

    def check_argument_for_proper_class(self, name: str, argument: Any) -> Any:
        if name != "video_processor":
            return super().check_argument_for_proper_class(name, argument)  # type: ignore[misc]
        return None


def _processor(name: str, tokenizer: Any) -> Any:
    from transformers.models.clip.image_processing_pil_clip import CLIPImageProcessorPil
    from transformers.models.gemma3.image_processing_pil_gemma3 import Gemma3ImageProcessorPil
    from transformers.models.got_ocr2.image_processing_pil_got_ocr2 import GotOcr2ImageProcessorPil
    from transformers.models.idefics3.image_processing_pil_idefics3 import Idefics3ImageProcessorPil
    from transformers.models.llava_onevision.image_processing_pil_llava_onevision import (
        LlavaOnevisionImageProcessorPil,
    )
    from transformers.models.qwen2_vl.image_processing_pil_qwen2_vl import Qwen2VLImageProcessorPil

    square = {"height": _SIZE, "width": _SIZE}
    template = {"chat_template": PARTS_TEMPLATE}
    match name:
        case "llava":
            return transformers.LlavaProcessor(
                CLIPImageProcessorPil(size={"shortest_edge": _SIZE}, crop_size=square),
                tokenizer,
                patch_size=8,
                vision_feature_select_strategy="default",
                num_additional_image_tokens=1,
                **template,
            )
        case "llava_onevision":
            grid = [[_SIZE, 2 * _SIZE], [2 * _SIZE, _SIZE], [2 * _SIZE, 2 * _SIZE]]
            images = LlavaOnevisionImageProcessorPil(
                size=square, image_grid_pinpoints=grid, **_HALF
            )
            kind = type("P", (_WithoutVideo, transformers.LlavaOnevisionProcessor), {})
            kind.__name__ = "LlavaOnevisionProcessor"
            return kind(
                images,
                tokenizer,
                None,
                num_image_tokens=16,
                vision_feature_select_strategy="full",
                **template,
            )
        case "idefics3":
            images = Idefics3ImageProcessorPil(
                size={"longest_edge": 2 * _SIZE}, max_image_size={"longest_edge": _SIZE}, **_HALF
            )
            return transformers.Idefics3Processor(images, tokenizer, image_seq_len=4, **template)
        case "internvl":
            kind = type("P", (_WithoutVideo, transformers.InternVLProcessor), {})
            kind.__name__ = "InternVLProcessor"
            images = GotOcr2ImageProcessorPil(
                size=square, crop_to_patches=True, min_patches=1, max_patches=4, **_HALF
            )
            return kind(images, tokenizer, None, image_seq_length=4, **template)
        case "gemma3":
            return transformers.Gemma3Processor(
                Gemma3ImageProcessorPil(size=square, **_HALF),
                tokenizer,
                image_seq_length=4,
                **template,
            )
        case "qwen2_vl":
            images = Qwen2VLImageProcessorPil(
                patch_size=8, min_pixels=256, max_pixels=4096, merge_size=2, **_HALF
            )
            kind = type("P", (_WithoutVideo, transformers.Qwen2VLProcessor), {})
            kind.__name__ = "Qwen2VLProcessor"
            return kind(images, tokenizer, None, **template)
    raise ValueError(name)
