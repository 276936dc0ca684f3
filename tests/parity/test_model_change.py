"""A change of the model with the real executor: answers before and after, and the memory given back."""

from engine.api.request import Request, SamplingParams
from engine.memory.host import resident_anonymous_memory
from tests.parity.quantised_models import write_model
from tests.parity.real_engine import TIMEOUT_S, prose, running

MIB = 2**20


def answer(engine, prompt):
    request = Request(prompt, SamplingParams(temperature=0.0, max_tokens=24, ignore_eos=True))
    return engine.submit(request).wait_result(TIMEOUT_S)


def test_the_demo_model_answers_as_before_after_another_was_loaded(demo_model, tmp_path):
    other = write_model(tmp_path / "other.gguf", "Q8_0")
    with running(demo_model) as engine:
        prompt = tuple(prose(engine, 100))
        before = answer(engine, prompt)
        fingerprint = engine.tokenizer.fingerprint
        for _ in range(2):
            engine.load_model(other)
            engine.wait_ready(TIMEOUT_S)
            assert engine.snapshot().model.weight_format == "Q8_0"
            assert engine.tokenizer.fingerprint != fingerprint
            assert len(answer(engine, tuple(engine.tokenizer.encode("hello"))).token_ids) == 24
            engine.load_model(demo_model)
            engine.wait_ready(TIMEOUT_S)
            assert engine.tokenizer.fingerprint == fingerprint
            again = answer(engine, prompt)
            assert again.token_ids == before.token_ids
            assert again.cached_tokens == 0


def test_the_weight_mode_applies_to_each_model_that_is_loaded(tmp_path):
    first = write_model(tmp_path / "first.gguf", "F16")
    stored = write_model(tmp_path / "stored.gguf", "Q4_0")
    other = write_model(tmp_path / "other.gguf", "BF16", hidden=96, ffn=192)
    with running(first, weights="q4") as engine:
        formats = []
        for model in (first, stored, other):
            if model != first:  # loaded already
                engine.load_model(model)
            engine.wait_ready(TIMEOUT_S)
            info = engine.snapshot().model
            formats.append((info.weight_format, info.kv_dtype))
            assert len(answer(engine, tuple(engine.tokenizer.encode("hello"))).token_ids) == 24
    assert formats == [("Q4_K", "int8"), ("Q4_0", "int8"), ("Q4_1", "int8")]


def test_an_unloaded_model_gives_its_memory_back(demo_model):
    with running(demo_model, pool_tokens=20_000) as engine:
        answer(engine, tuple(prose(engine, 3000)))
        loaded = resident_anonymous_memory()
        engine.unload_model()
        assert engine.wait_drained(TIMEOUT_S)
        engine._thread.wait_settled(TIMEOUT_S)
        freed = loaded - resident_anonymous_memory()
    assert freed > 60 * MIB, f"only {freed / MIB:.0f} MiB"
