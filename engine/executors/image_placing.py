"""`place_images`: puts the tokens of images where a prompt has their placeholders.

A chat template writes one placeholder token per image. How many tokens an image takes, and which, depends
on its size and on the model's processor, so the placeholders are replaced after the text was encoded.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from engine.api.errors import InvalidRequest
from engine.api.image import MAX_IMAGES, Image, PlacedImage

if TYPE_CHECKING:
    from engine.executors.open_model import OpenModel
    from engine.executors.torch.image_processor import ImageProcessor


def place_images(
    model: "OpenModel", prompt_ids: Sequence[int], images: Sequence[Image]
) -> tuple[tuple[int, ...], tuple[PlacedImage, ...]]:
    """A prompt with the tokens of its images, and their places.

    Takes about 10 ns per pixel on the caller's thread for an image that was not processed lately.

    Args:
        model: the model.
        prompt_ids: an encoded prompt with one placeholder token per image, in their order.
        images: the images; without any, the prompt is returned as it is.

    Raises:
        InvalidRequest: the model sees no images, there are not as many placeholders as images, there
            are too many, or one is damaged or too large.
    """
    if not images:
        return tuple(prompt_ids), ()
    processor = _processor(model, len(images))
    placeholder = processor.placeholder_id
    if (count := sum(token == placeholder for token in prompt_ids)) != len(images):
        raise InvalidRequest(
            f"The prompt has {count} places for images, and {len(images)} images were given.",
            param="images",
        )
    expanded: list[int] = []
    placed: list[PlacedImage] = []
    waiting = iter(images)
    for token in prompt_ids:
        if token != placeholder:
            expanded.append(token)
            continue
        image = next(waiting)
        ids = processor.token_ids(image)
        placed.append(PlacedImage(image, len(expanded), len(ids)))
        expanded += ids
    return tuple(expanded), tuple(placed)


def check_images(
    model: "OpenModel", prompt_ids: Sequence[int], images: Sequence[PlacedImage]
) -> None:
    """Check that a prompt has the tokens of its images where it says that they are.

    Raises:
        InvalidRequest: it has not, or as `place_images`.
    """
    if not images:
        return
    processor = _processor(model, len(images))
    end = 0
    for number, placed in enumerate(images, 1):
        start, end_before, end = placed.start, end, placed.start + placed.tokens
        if start < end_before or tuple(prompt_ids[start:end]) != processor.token_ids(placed.image):
            raise InvalidRequest(
                f"The prompt does not have the tokens of image {number} at token {start}.",
                param="images",
            )


def _processor(model: "OpenModel", count: int) -> "ImageProcessor":
    """The model's image processor for a prompt with so many images.

    Raises:
        InvalidRequest: it has none, or takes fewer images.
    """
    if model.images is None:
        raise InvalidRequest(
            f"{model.name} sees no images: load a model with a vision tower.", param="images"
        )
    most = 1 if model.images.one_per_prompt else MAX_IMAGES
    if count > most:
        raise InvalidRequest(
            f"A prompt for {model.name} may have {most} {'image' if most == 1 else 'images'}, "
            f"not {count}.",
            param="images",
        )
    return model.images
