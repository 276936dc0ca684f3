"""Images: rows read the KV of their own images only, and share what they have in common.

The toy executor marks the KV of image tokens by the images of the step's plan, and fails a step whose rows
read KV of another image than theirs.
"""

from dataclasses import replace
from types import SimpleNamespace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine._core import BlockAllocator
from engine.api.errors import InvalidRequest
from engine.api.image import Image, PlacedImage
from tests.fakes.naive_allocator import NaiveAllocator
from tests.fakes.toy_engine import ask
from tests.fakes.toy_executor import oracle
from tests.fakes.toy_pipeline import ToyPipeline

BLOCK, TOKENS, IMAGE = 4, 6, 77
RED, BLUE, GREEN = (Image(name, "image/png", 1, 1) for name in (b"red", b"blue", b"green"))


def seeing_toy(**changes):
    toy = ToyPipeline(**{"allocator": BlockAllocator, "block_size": BLOCK} | changes)
    toy.opened.model.images = SimpleNamespace(
        one_per_prompt=False, placeholder_id=IMAGE, token_ids=lambda image: (IMAGE,) * TOKENS
    )
    return toy


def asked(*parts, **params):
    """A request; a part is a number of text tokens or an image."""
    tokens, images = [], []
    for part in parts:
        if isinstance(part, Image):
            images.append(PlacedImage(part, len(tokens), TOKENS))
            tokens += [IMAGE] * TOKENS
        else:
            tokens += [(len(tokens) + i) % 70 for i in range(part)]
    return replace(ask(tokens, **{"max_tokens": 5} | params), images=tuple(images))


def cached_tokens(toy, request):
    handle = toy.submit(request)
    toy.run()
    output = handle.wait_result()
    assert output.token_ids == oracle(request)
    return output.cached_tokens


def test_a_step_says_which_of_its_tokens_are_whose_image():
    toy = seeing_toy(budget=5, allocator=NaiveAllocator)
    runs = []

    def watch(plan):
        for one in plan.images:
            part = slice(one.flat, one.flat + one.count)
            assert set(plan.token_ids[part].tolist()) == {IMAGE}
            runs.append((one.image, one.offset, one.count, int(plan.positions[one.flat])))

    toy.executor.watch = watch
    toy.submit(asked(3, RED, 2, BLUE, 2))
    toy.run()
    assert runs == [(RED, 0, 2, 3), (RED, 2, 4, 5), (BLUE, 0, 4, 11), (BLUE, 4, 2, 15)]
    assert toy.table.images == toy.table.uncomputed_images == {}


def test_decode_steps_do_not_look_for_images():
    toy = seeing_toy()
    toy.submit(asked(3, RED, 2, max_tokens=20))
    toy.step(3)
    assert toy.table.images
    assert not toy.table.uncomputed_images
    toy.run()


@pytest.mark.parametrize("swap", [0, 64])
def test_a_preempted_row_computes_or_finds_its_images_again(swap):
    toy = seeing_toy(swap=swap)
    request = asked(3, RED, 9, max_tokens=9)
    handle = toy.submit(request)
    toy.step(4)
    toy.pipeline.scheduler.preempt(toy.row(handle))
    toy.run()
    assert handle.wait_result().token_ids == oracle(request)


def test_what_comes_before_the_first_different_image_is_shared():
    toy = seeing_toy()
    assert cached_tokens(toy, asked(9, RED, 5)) == 0
    assert cached_tokens(toy, asked(9, RED, 5)) == 19
    assert cached_tokens(toy, asked(9, BLUE, 5)) == 8
    assert cached_tokens(toy, asked(20)) == 8
    assert cached_tokens(toy, asked(9, RED, 5, GREEN)) == 20
    assert cached_tokens(toy, asked(9, RED, 5, BLUE)) == 20
    raw = asked(9, RED, 5)
    assert cached_tokens(toy, replace(raw, images=())) == 8


def test_running_rows_share_up_to_their_first_different_image():
    toy = seeing_toy()
    requests = [asked(9, RED, 5, other, 3) for other in (BLUE, GREEN, RED)]
    handles = [toy.submit(one) for one in requests]
    toy.run()
    outputs = [handle.wait_result() for handle in handles]
    assert [one.token_ids for one in outputs] == [oracle(one) for one in requests]
    assert [one.cached_tokens for one in outputs] == [0, 20, 20]


def test_a_fork_has_the_images_before_it():
    toy = seeing_toy()
    handle = toy.submit(asked(5, RED, 3, BLUE, 2, max_tokens=30))
    toy.step(3)
    for inside in (6, 10, 15):
        with pytest.raises(InvalidRequest, match="inside an image"):
            toy.fork(handle, at=inside)
    children = {at: toy.fork(handle, at=at)[0] for at in (5, 11, 14, 20, 22)}
    images = {at: len(toy.sequences[one.request_id].request.images) for at, one in children.items()}
    assert images == {5: 0, 11: 1, 14: 1, 20: 2, 22: 2}
    toy.run()
    for child in children.values():
        assert child.wait_result().finish_reason is not None
    assert cached_tokens(toy, asked(5, RED, 3, BLUE, 2)) == 20


def test_a_text_model_refuses_images():
    toy = ToyPipeline()
    with pytest.raises(InvalidRequest, match="toy sees no images"):
        toy.submit(asked(3, RED))


PARTS = st.lists(st.one_of(st.integers(1, 7), st.sampled_from([RED, BLUE, GREEN])), max_size=5)


@settings(max_examples=60)
@given(
    prompts=st.lists(PARTS, min_size=1, max_size=7),
    blocks=st.integers(24, 40),
    budget=st.integers(2, 24),
    swap=st.sampled_from([0, 32]),
)
def test_any_prompts_with_images_are_answered_from_their_own_kv(prompts, blocks, budget, swap):
    toy = seeing_toy(blocks=blocks, budget=budget, swap=swap, rows=4)
    requests = [asked(2, *parts, max_tokens=12) for parts in prompts]
    handles = []
    for request in requests:
        handles.append(toy.submit(request))
        toy.step()
    toy.run()
    for request, handle in zip(requests, handles, strict=True):
        assert handle.wait_result().token_ids == oracle(request)
