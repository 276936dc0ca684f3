"""Float weights that are quantized while they are loaded equal those that a file has quantized.

The file's weights are then compared with transformers: see `test_weight_formats`.
"""

from pathlib import Path

import gguf
import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from transformers import AutoModelForCausalLM, PreTrainedModel

from engine import _core
from engine.api.config import WeightMode
from engine.api.errors import ModelError
from tests.fakes.tiny_gguf import write_tiny_gguf
from tests.parity.loading import load_stepper
from tests.parity.quantised_models import write_model
from tests.parity.reference import answer_logits
from tests.parity.stepper import Run, Stepper
from tests.parity.tiny_models import TINY_MODELS, save_tiny_model

PROMPT = [5, 9, 200, 41, 7, 130, 12]
TOKENS = 40
BY_NAME = {tiny.name: tiny for tiny in TINY_MODELS}


def expected_type(name: str, inputs: int, mode: WeightMode) -> str | None:
    """The type that a matrix of a tiny model is quantized to, stated once more; None for none."""
    if inputs % 32:
        return None
    if mode == "q8":
        return "Q8_0"
    more_bits = ("token_embd", "embed_tokens", "lm_head", "attn_v", "v_proj", "down")
    whole = inputs % 256 == 0
    if name == "output.weight" or any(part in name for part in more_bits):
        return "Q6_K" if whole else "Q8_0"
    return "Q4_K" if whole else "Q4_1"


def quantised_copy(path: Path, target: Path, mode: WeightMode) -> Path:
    """The GGUF file with each float matrix quantized as `mode` should."""
    reader = gguf.GGUFReader(str(path))
    writer = gguf.GGUFWriter(target, reader.fields["general.architecture"].contents())
    for name, field in reader.fields.items():
        if not name.startswith("GGUF.") and name != "general.architecture":
            kind = field.types[0]
            items = field.types[-1] if kind == gguf.GGUFValueType.ARRAY else None
            writer.add_key_value(name, field.contents(), kind, items)
    for tensor in reader.tensors:
        values = np.array(gguf.quants.dequantize(tensor.data, tensor.tensor_type), np.float32)
        dtype = expected_type(tensor.name, values.shape[-1], mode) if values.ndim == 2 else None
        if dtype is None:
            writer.add_tensor(tensor.name, values)
        else:
            kind = gguf.GGMLQuantizationType[dtype]
            writer.add_tensor(tensor.name, _core.quantize(values, dtype), raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return target


def answer(stepper: Stepper) -> Run:
    """A greedy answer with its likeliest tokens; closes the executor."""
    run = Run(PROMPT, TOKENS, sampling={"num_logprobs": 5})
    stepper.run([run])
    stepper.executor.close()
    return run


@pytest.mark.parametrize("mode", ["q8", "q4"])
@pytest.mark.parametrize(
    ("stored", "hidden"), [("F16", 256), ("BF16", 256), ("F32", 256), ("F16", 96)]
)
def test_weights_of_a_gguf_file(stored: str, hidden: int, mode: WeightMode, tmp_path: Path) -> None:
    path = write_model(tmp_path / "tiny.gguf", stored, hidden=hidden, ffn=2 * hidden)
    loaded = load_stepper(path, weights=mode, kv_dtype="auto")
    same = load_stepper(quantised_copy(path, tmp_path / "same.gguf", mode), kv_dtype="auto")
    assert loaded.executor.info == same.executor.info  # sizes, format and KV type, too
    ours, theirs = answer(loaded), answer(same)
    assert (ours.tokens, ours.top) == (theirs.tokens, theirs.top)


@pytest.mark.parametrize("mode", ["q8", "q4"])
@pytest.mark.parametrize(
    ("name", "shard"), [("llama", "1GB"), ("llama-untied-biased", "20KB"), ("qwen3", "20KB")]
)
def test_weights_of_safetensors(name: str, shard: str, mode: WeightMode, tmp_path: Path) -> None:
    """Rows of 96 and of 112 inputs; the latter are no whole groups and stay as stored."""
    save_tiny_model(BY_NAME[name], tmp_path, torch.bfloat16)
    model = AutoModelForCausalLM.from_pretrained(tmp_path, dtype=torch.bfloat16)
    model.save_pretrained(tmp_path, max_shard_size=shard)
    files = list(tmp_path.glob("*.safetensors"))
    assert (len(files) > 1) is (shard == "20KB")
    run = answer(load_stepper(tmp_path, weights=mode, max_model_len=128))
    exact = answer_logits(_quantised(model.float(), mode), PROMPT, run.tokens)
    best = exact.max(-1)
    chosen = exact[np.arange(TOKENS), run.tokens]
    # Activations are int8: a token may be one that is nearly as likely. Logits have a spread of 3.
    assert (best - chosen).mean() < 0.1
    assert (exact.argmax(-1) == run.tokens).mean() > 0.75


def _quantised(model: PreTrainedModel, mode: WeightMode) -> PreTrainedModel:
    """The model with the weights that `mode` should have, dequantised by ggml's package."""
    with torch.no_grad():
        for name, weight in model.named_parameters():
            dtype = expected_type(name, weight.shape[-1], mode) if weight.dim() == 2 else None
            if dtype is not None:
                values = _round_trip(weight.detach().numpy(), dtype)
                weight.copy_(torch.from_numpy(values))
    return model.eval()


def _round_trip(weights: NDArray[np.float32], dtype: str) -> NDArray[np.float32]:
    kind = gguf.GGMLQuantizationType[dtype]
    return gguf.quants.dequantize(_core.quantize(weights, dtype), kind).astype(np.float32)


@pytest.mark.parametrize("stored", ["Q4_K", "Q8_0", "Q4_0"])
def test_weights_that_are_quantized_stay_as_stored(stored: str, tmp_path: Path) -> None:
    path = write_model(tmp_path / "tiny.gguf", stored)
    loaded, same = load_stepper(path, weights="q4"), load_stepper(path)
    assert loaded.executor.info == same.executor.info
    assert answer(loaded).top == answer(same).top


@pytest.mark.parametrize(
    ("dtype", "plain", "bound"), [("Q8_0", "Q8_0", 1.001), ("Q4_1", "Q4_1", 0.97)]
)
def test_errors_against_ggmls_package(dtype: str, plain: str, bound: float) -> None:
    """The package divides the range of a group evenly, as ggml does without a search."""
    rng = np.random.default_rng(3)
    weights = (0.02 * rng.standard_t(5, (40, 512))).astype(np.float32)
    kind = gguf.GGMLQuantizationType[plain]
    theirs = gguf.quants.dequantize(gguf.quants.quantize(weights, kind), kind)

    def error(values: NDArray[np.float32]) -> float:
        return float(((values - weights) ** 2).mean())

    assert error(_round_trip(weights, dtype)) <= bound * error(theirs)


def test_what_cannot_be_quantized_is_refused() -> None:
    with pytest.raises(ValueError, match="weights are not quantized to Q5_K"):
        _core.quantize(np.zeros((1, 256), np.float32), "Q5_K")
    with pytest.raises(ValueError, match="rows of 100 weights are not whole Q8_0 blocks"):
        _core.quantize(np.zeros((1, 100), np.float32), "Q8_0")


def test_an_unknown_mode_is_refused_by_the_core(tmp_path: Path) -> None:
    path = write_tiny_gguf(tmp_path / "tiny.gguf")
    with pytest.raises(ModelError, match='no weight mode "q5": choose stored, q8 or q4'):
        load_stepper(path, weights="q5", max_model_len=64)  # type: ignore[arg-type]
