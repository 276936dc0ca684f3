"""Models that see images, in the engine, compared with transformers' `generate`."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from PIL import Image as PilImage

from engine.api.errors import InvalidRequest
from engine.api.image import Image
from engine.api.request import FinishReason, Request, SamplingParams
from engine.executors.torch import image_features
from tests.fakes.tiny_vision import random_image, tiny_vision
from tests.torch_executor.loaded import DEVICE
from tests.torch_executor.running import TIMEOUT_S, running_engine

NEW_TOKENS = 12
GREEDY = SamplingParams(temperature=0.0, max_tokens=NEW_TOKENS, ignore_eos=True, logprobs=0)
WIDE = (random_image(2, 70, 20), random_image(3, 50, 50))
SMALL = random_image(1)


@pytest.fixture(scope="module")
def llava(tmp_path_factory):
    return tiny_vision(tmp_path_factory.mktemp("llava"), "llava")


def running(seeing, **settings):
    defaults = {"max_num_seqs": 8, "max_num_batched_tokens": 16}
    return running_engine(seeing.directory, **(defaults | settings))


@pytest.fixture(scope="module")
def engine(llava):
    with running(llava) as engine:
        yield engine


@pytest.fixture
def towers(monkeypatch):
    """The images whose vision tower runs, in order."""
    seen = []
    real = image_features.embed_image

    def embed(model, processed, device):
        seen.append(processed)
        return real(model, processed, device)

    monkeypatch.setattr(image_features, "embed_image", embed)
    return seen


def request(engine, text, images, sampling=GREEDY, **fields):
    ids, placed = engine.place_images(engine.tokenizer.encode(text, special=True), images)
    return Request(ids, sampling, images=placed, **fields)


def answer(engine, text, images, sampling=GREEDY, **fields):
    handle = engine.submit(request(engine, text, images, sampling, **fields))
    return handle.wait_result(TIMEOUT_S)


@pytest.mark.parametrize("name", ["llava", "llava_onevision", "idefics3", "internvl"])
def test_concurrent_prompts_with_images_equal_generate(tmp_path, name):
    seeing = tiny_vision(tmp_path, name)
    prompts = [
        ("what is <image>?", [SMALL]),
        ("no image here, only text that is longer than a step", []),
        ("<image>", [WIDE[0]]),
        ("first <image> then <image> and text", list(WIDE)),
        ("what is <image>?", [random_image(9)]),
    ]
    with running(seeing) as engine:
        assert engine.model_info.sees_images
        requests = [request(engine, text, images) for text, images in prompts]
        handles = [engine.submit(one) for one in requests]
        for handle, one, (text, images) in zip(handles, requests, prompts, strict=True):
            prompt, expected = seeing.generate(text, images, NEW_TOKENS)
            assert list(one.prompt_ids) == prompt
            output = handle.wait_result(TIMEOUT_S)
            assert (output.error, list(output.token_ids)) == (None, expected)


def test_logprobs_and_penalties_over_image_tokens_equal_transformers(llava, engine):
    sampling = replace(GREEDY, repetition_penalty=1.4)
    output = answer(engine, "look <image> now", [SMALL], sampling)
    inputs = llava.inputs("look <image> now", [SMALL])
    expected = llava.model.generate(
        **inputs,
        max_new_tokens=NEW_TOKENS,
        min_new_tokens=NEW_TOKENS,
        do_sample=False,
        repetition_penalty=1.4,
        eos_token_id=None,
        pad_token_id=0,
        output_logits=True,
        return_dict_in_generate=True,
    )
    tokens = expected.sequences[0, inputs["input_ids"].shape[1] :].tolist()
    assert list(output.token_ids) == tokens
    raw = torch.cat(expected.logits).log_softmax(-1)
    wanted = [float(row[token]) for row, token in zip(raw, tokens, strict=True)]
    assert np.allclose(output.logprobs, wanted, atol=1e-3)


def test_equal_prompts_with_different_images_share_nothing(llava, engine):
    images = [random_image(seed) for seed in range(20, 24)]
    handles = [engine.submit(request(engine, "<image> what is it?", [one])) for one in images]
    outputs = [handle.wait_result(TIMEOUT_S) for handle in handles]
    for image, output in zip(images, outputs, strict=True):
        assert (
            list(output.token_ids) == llava.generate("<image> what is it?", [image], NEW_TOKENS)[1]
        )
        assert output.cached_tokens == 0
    assert len({output.token_ids for output in outputs}) == len(images)


def test_an_equal_image_is_found_in_the_prefix_cache_and_not_computed_again(llava, engine, towers):
    image = random_image(30)
    first = answer(engine, "describe <image> please", [image])
    assert len(towers) == 1
    copy = Image(bytes(image.data), image.media_type, image.width, image.height)
    second = answer(engine, "describe <image> please", [copy])
    assert second.cached_tokens >= 16
    assert second.token_ids == first.token_ids
    assert len(towers) == 1


def test_a_further_image_shares_the_blocks_before_it(llava, engine, towers):
    one, other, third = random_image(60), random_image(61), random_image(62)
    text = "the first is <image> and the second is "
    answer(engine, text, [one])
    shared = len(llava.inputs(text, [one])["input_ids"][0]) // 8 * 8
    outputs = []
    for further in (other, third):
        output = answer(engine, f"{text}<image>, say", [one, further])
        expected = llava.generate(f"{text}<image>, say", [one, further], NEW_TOKENS)[1]
        assert list(output.token_ids) == expected
        outputs.append(output)
    assert [output.cached_tokens for output in outputs] == [shared, shared]
    assert len(towers) == 3


def test_text_before_an_image_is_shared_with_other_prompts(llava, engine):
    text = "a text that is longer than some blocks, "
    answer(engine, text, [])
    output = answer(engine, f"{text}<image>", [random_image(63)])
    assert output.cached_tokens == len(engine.tokenizer.encode(text)) // 8 * 8
    expected = llava.generate(f"{text}<image>", [random_image(63)], NEW_TOKENS)[1]
    assert list(output.token_ids) == expected


def test_running_prompts_share_up_to_their_first_different_image(llava, engine):
    one, images = random_image(70), [random_image(seed) for seed in (71, 72, 73)]
    text = "look at <image> before you look at <image>, and then"
    requests = [request(engine, text, [one, other]) for other in images]
    outputs = [handle.wait_result(TIMEOUT_S) for handle in engine.submit_all(requests)]
    for other, output in zip(images, outputs, strict=True):
        assert list(output.token_ids) == llava.generate(text, [one, other], NEW_TOKENS)[1]
    assert outputs[1].cached_tokens > 20
    assert outputs[2].cached_tokens > 20


def test_an_image_that_is_cut_by_chunks_is_computed_once(llava, towers):
    with running(llava, max_num_batched_tokens=3) as engine:
        output = answer(engine, "a <image> b <image>", list(WIDE))
    assert (
        list(output.token_ids) == llava.generate("a <image> b <image>", list(WIDE), NEW_TOKENS)[1]
    )
    assert len(towers) == 2


def test_the_cache_of_embeddings_is_bounded_and_what_is_gone_is_computed_again(
    llava, towers, monkeypatch
):
    monkeypatch.setattr(image_features, "CACHE_BYTES", 0)  # one image
    with running(llava, max_num_batched_tokens=4) as engine:
        requests = [request(engine, "a <image>", [image]) for image in WIDE]
        outputs = [one.wait_result(TIMEOUT_S) for one in engine.submit_all(requests)]
    for image, output in zip(WIDE, outputs, strict=True):
        assert list(output.token_ids) == llava.generate("a <image>", [image], NEW_TOKENS)[1]
    assert len(towers) >= 2


def test_preempted_requests_with_images_are_recomputed_alike(llava):
    images = [random_image(seed) for seed in range(40, 46)]
    block = 3 * 2 * 2 * 8 * 8 * 4
    sampling = replace(GREEDY, max_tokens=40)
    with running(llava, kv_cache_bytes=20 * block, max_num_batched_tokens=64) as engine:
        handles = [engine.submit(request(engine, "<image> x", [one], sampling)) for one in images]
        outputs = [handle.wait_result(TIMEOUT_S) for handle in handles]
        assert engine.snapshot().totals.preemptions > 0
    for image, output in zip(images, outputs, strict=True):
        assert list(output.token_ids) == llava.generate("<image> x", [image], 40)[1]


@pytest.mark.skipif(DEVICE != "cpu", reason="a GPU's swap tier is main memory")
def test_a_restart_finds_blocks_of_the_same_image_only(llava, tmp_path):
    settings = {"swap_bytes": 16 << 20, "swap_dir": tmp_path / "swap"}
    text = "the very same question about <image>, asked again"
    cached = []
    for image in (SMALL, SMALL, random_image(50)):
        with running(llava, **settings) as engine:
            output = answer(engine, text, [image])
        assert list(output.token_ids) == llava.generate(text, [image], NEW_TOKENS)[1]
        cached.append(output.cached_tokens)
    before = text.index("<image>") // 8 * 8  # a token per character
    assert (cached[0], cached[2]) == (0, before)
    assert cached[1] >= 40


def test_forks_have_the_images_before_the_fork(llava, engine):
    sampling = replace(GREEDY, max_tokens=200)
    parent = engine.submit(request(engine, "tell me about <image> now", [SMALL], sampling))
    prompt, expected = llava.generate("tell me about <image> now", [SMALL], 30)
    start = prompt.index(llava.processor.image_token_id)
    with pytest.raises(InvalidRequest, match="inside an image"):
        engine.fork(parent.request_id, at=start + 3)
    short = replace(GREEDY, max_tokens=10)
    (after,) = engine.fork(parent.request_id, at=len(prompt), sampling=short)
    (before,) = engine.fork(parent.request_id, at=start, sampling=short)
    assert list(after.wait_result(TIMEOUT_S).token_ids) == expected[:10]
    text_only = llava.generate("tell me about ", [], 10)
    assert list(before.wait_result(TIMEOUT_S).token_ids) == text_only[1]
    engine.abort(parent.request_id)
    assert parent.wait_result(TIMEOUT_S).finish_reason is FinishReason.ABORT


def test_prompt_logprobs_of_a_prompt_with_images(llava, engine):
    sampling = replace(GREEDY, max_tokens=1, prompt_logprobs=0)
    output = answer(engine, "a b <image> c d", [SMALL], sampling)
    inputs = llava.inputs("a b <image> c d", [SMALL])
    with torch.no_grad():
        logprobs = llava.model(**inputs).logits[0].log_softmax(-1)
    ids = inputs["input_ids"][0]
    wanted = logprobs[:-1].gather(1, ids[1:, None]).squeeze(1).tolist()
    assert np.allclose(output.prompt_logprobs.logprobs, wanted, atol=1e-3)


def test_a_damaged_image_fails_its_request_alone(llava, engine):
    whole = SMALL
    cut = Image(whole.data[: len(whole.data) // 2], "image/png", 40, 30)
    healthy = engine.submit(request(engine, "what is <image>?", [whole]))
    with pytest.raises(InvalidRequest, match="damaged or incomplete"):
        request(engine, "what is <image>?", [cut])
    placed = request(engine, "what is <image>?", [whole])
    forged = replace(placed, images=(replace(placed.images[0], image=cut),))
    with pytest.raises(InvalidRequest, match="damaged or incomplete"):
        engine.submit(forged)
    expected = llava.generate("what is <image>?", [whole], NEW_TOKENS)[1]
    assert list(healthy.wait_result(TIMEOUT_S).token_ids) == expected


@pytest.mark.parametrize("change", [{"start": 0}, {"tokens": 15}, {"start": 10_000}])
def test_images_must_be_where_the_prompt_has_their_tokens(engine, change):
    placed = request(engine, "what is <image>?", [SMALL])
    wrong = replace(placed, images=(replace(placed.images[0], **change),))
    with pytest.raises(InvalidRequest, match="does not have the tokens of image 1"):
        engine.submit(wrong)
    twice = replace(placed, images=placed.images * 2)
    with pytest.raises(InvalidRequest, match="image 2"):
        engine.submit(twice)


def test_placeholders_and_images_must_be_as_many(engine):
    ids = engine.tokenizer.encode("a <image>", special=True)
    for images in ([SMALL, SMALL], [SMALL] * 65):
        with pytest.raises(InvalidRequest):
            engine.place_images(ids, images)
    assert engine.place_images(ids, []) == (tuple(ids), ())


def test_images_are_turned_as_their_file_says(engine, llava, tmp_path):
    pixels = np.random.default_rng(5).integers(0, 256, (30, 40, 3), dtype=np.uint8)
    exif = PilImage.Exif()
    exif[0x0112] = 6  # to be turned by 90 degrees
    path = tmp_path / "turned.png"
    PilImage.fromarray(pixels).save(path, exif=exif)
    turned = Image(path.read_bytes(), "image/png", 40, 30)
    PilImage.fromarray(np.rot90(pixels, -1)).save(tmp_path / "upright.png")
    upright = Image((tmp_path / "upright.png").read_bytes(), "image/png", 30, 40)
    outputs = [answer(engine, "<image>", [one]).token_ids for one in (turned, upright)]
    assert outputs[0] == outputs[1]
