"""Accuracy of each weight format and KV type, compared with fp32 on the same, dequantised weights.

    python benchmarks/accuracy.py --model FILE [--modes file,q8_0] [--context 2048,8192] [--json FILE]

Reported for a prose text (`tests/parity/data`), with teacher forcing: perplexity, its ratio to fp32, mean
KL divergence (over our 20 likeliest tokens, the rest pooled: a lower bound) and the rate at which the
likeliest token differs. For 20 greedy outputs of 48 tokens: the number equal to fp32's, and the largest
margin between fp32's two best logits at the first difference. FILE is a llama or Gemma 3 GGUF file. The
other modes are files made from its dequantised weights: F32, BF16 and Q8_0 represent them exactly or nearly,
Q4_0 rounds them again; each is compared with fp32 on its own weights. The fp32 reference is transformers.

The modes `load_*` and `permuted_*` are compared with fp32 on the weights before they were quantized:
`load_q8` and `load_q4` quantize a BF16 copy of the model with `--weights`. The demo model's weights lie on
the grid of Q4_1, which 4 bits of the same groups reproduce. So `permuted_*` are made from a copy in F32 whose
hidden, head and feed-forward dimensions are shuffled: the same function and the same values, but no group
has a grid. Beside `--weights`, `permuted_q4_1` and `permuted_q4_0` are quantized by ggml's Python package.

With `--context`, only a text is scored, in windows of that many tokens: the second half of each window, so
that every prediction has at least half that context. The text is the chapter on special method names of
Python's reference, as `pydoc_data.topics` of the running Python has it; the JSON has its checksum.
"""

import argparse
import hashlib
import platform
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from pydoc_data.topics import topics

import gguf
import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.machine import say, write_result
from engine.api.config import KvDtype, WeightMode
from engine.executors.open_model import open_model
from engine.text.tokenizer import Tokenizer
from tests.parity.accuracy import PROSE, QUESTIONS, ProseScore, departures, score_prose
from tests.parity.loading import load_stepper
from tests.parity.reference import model_from_gguf

LONG_TEXT = "specialnames"
LONG_TOKENS = 8192

BOUNDS = {"perplexity_ratio": 1.005, "mean_kl": 0.01, "largest_margin": 0.4}
"""Upper bounds for a default mode."""


@dataclass(frozen=True, slots=True)
class Mode:
    """Weights and KV cache of one row of the table.

    Attributes:
        name: as printed.
        weights: type that the matrices are converted to; None for the unmodified file.
        kv_dtype: element type of the KV cache.
        at_load: the weight mode with which the file is loaded.
        permuted: whether the model's dimensions are shuffled before anything is converted.
        original: type of the weights that fp32 computes with; None for those of the file.
    """

    name: str
    weights: gguf.GGMLQuantizationType | None
    kv_dtype: KvDtype
    at_load: WeightMode = "stored"
    permuted: bool = False
    original: gguf.GGMLQuantizationType | None = None


F32, BF16 = gguf.GGMLQuantizationType.F32, gguf.GGMLQuantizationType.BF16
Q8_0, Q4_0, Q4_1 = (gguf.GGMLQuantizationType[name] for name in ("Q8_0", "Q4_0", "Q4_1"))


MODES = {
    "file": Mode("as in the file", None, "f16"),
    "file_kv_int8": Mode("as in the file", None, "int8"),
    "file_kv_f32": Mode("as in the file", None, "f32"),
    "f32": Mode("F32", F32, "f32"),
    "bf16": Mode("BF16", BF16, "f16"),
    "q8_0": Mode("Q8_0", Q8_0, "f16"),
    "q4_0": Mode("Q4_0", Q4_0, "f16"),
    "load_q8": Mode("BF16, --weights q8", BF16, "f16", "q8"),
    "load_q4": Mode("BF16, --weights q4", BF16, "f16", "q4"),
    "permuted_bf16": Mode("permuted, BF16", BF16, "f16", permuted=True, original=F32),
    "permuted_q8": Mode("permuted, --weights q8", F32, "f16", "q8", permuted=True),
    "permuted_q4": Mode("permuted, --weights q4", F32, "f16", "q4", permuted=True),
    "permuted_q4_1": Mode("permuted, Q4_1", Q4_1, "f16", permuted=True, original=F32),
    "permuted_q4_0": Mode("permuted, Q4_0", Q4_0, "f16", permuted=True, original=F32),
}


@dataclass(frozen=True, slots=True)
class Row:
    """The results of a mode.

    Attributes:
        weight_format: as reported by the engine.
        equal_answers, answers: greedy outputs equal to fp32's, and their total number.
        largest_margin: between fp32's two best logits where an output first differs; 0 if none does.
    """

    mode: str
    weight_format: str
    kv_dtype: str
    prose: ProseScore
    equal_answers: int
    answers: int
    largest_margin: float

    @property
    def within_bounds(self) -> bool:
        """Whether the results are within `BOUNDS`."""
        return (
            self.prose.perplexity_ratio <= BOUNDS["perplexity_ratio"]
            and self.prose.mean_kl <= BOUNDS["mean_kl"]
            and self.largest_margin <= BOUNDS["largest_margin"]
        )


def shuffled(
    tensors: Mapping[str, NDArray[np.float32]], heads: int
) -> dict[str, NDArray[np.float32]]:
    """The tensors of a llama model that computes the same, with other orders of its inner dimensions."""
    rng = np.random.default_rng(5)
    hidden = rng.permutation(len(tensors["output_norm.weight"]))
    result = {}
    for name, values in tensors.items():
        part = name.split(".")[-2]
        if part in ("token_embd", "attn_q", "attn_k", "attn_v", "ffn_gate", "ffn_up"):
            values = values[:, hidden]
        elif part in ("attn_output", "ffn_down", "attn_norm", "ffn_norm", "output_norm"):
            values = values[hidden]
        else:
            raise SystemExit(f"no shuffled order of {name} is known")
        result[name] = values
    for name in [name for name in result if name.endswith("ffn_down.weight")]:
        inner = rng.permutation(result[name].shape[1])
        result[name] = result[name][:, inner]
        for other in ("ffn_gate", "ffn_up"):
            key = name.replace("ffn_down", other)
            result[key] = result[key][inner]
        # Dimensions of the values, in the same order in every head.
        output, value = (name.replace("ffn_down", other) for other in ("attn_output", "attn_v"))
        width = result[output].shape[1] // heads
        dims = rng.permutation(width)
        for key, axis in ((output, 1), (value, 0)):
            count = result[key].shape[axis] // width
            order = (np.arange(count)[:, None] * width + dims).ravel()
            result[key] = np.take(result[key], order, axis)
    return result


def rewrite(
    source: Path, target: Path, weights: gguf.GGMLQuantizationType, *, permuted: bool = False
) -> None:
    """Copy a GGUF file, converting its matrices to another type."""
    reader = gguf.GGUFReader(str(source))
    architecture = reader.fields["general.architecture"].contents()
    writer = gguf.GGUFWriter(target, architecture)
    for name, field in reader.fields.items():
        if name.startswith("GGUF.") or name in ("general.architecture", "general.file_type"):
            continue
        kind = field.types[0]
        items = field.types[-1] if kind == gguf.GGUFValueType.ARRAY else None
        writer.add_key_value(name, field.contents(), kind, items)
    tensors = {
        tensor.name: np.array(gguf.quants.dequantize(tensor.data, tensor.tensor_type), np.float32)
        for tensor in reader.tensors
    }
    if permuted:
        heads = reader.fields[f"{architecture}.attention.head_count"].contents()
        tensors = shuffled(tensors, heads)
    for name, values in tensors.items():
        if values.ndim == 1:
            writer.add_tensor(name, values)
        else:
            writer.add_tensor(name, gguf.quants.quantize(values, weights), raw_dtype=weights)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


@contextmanager
def rewritten(
    source: Path, weights: gguf.GGMLQuantizationType | None, *, permuted: bool = False
) -> Iterator[Path]:
    """The file itself, or a copy with other weights that is deleted afterwards."""
    if weights is None:
        yield source
        return
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / f"{weights.name}.gguf"
        rewrite(source, path, weights, permuted=permuted)
        yield path


def prompt_prefix(tokenizer: Tokenizer) -> list[int]:
    """What a prompt begins with: BOS, if the model expects it."""
    return [tokenizer.bos_id] if tokenizer.add_bos and tokenizer.bos_id is not None else []


def measure(key: str, model: Path, original: Path) -> Row:
    """Measure a mode; `model` is the file with its weights, `original` the one that fp32 computes with."""
    mode, opened = MODES[key], open_model(model)
    reference = model_from_gguf(original)
    prompts = [
        opened.tokenizer.encode_chat([{"role": "user", "content": question}])
        for question in QUESTIONS
    ]
    stepper = load_stepper(
        model,
        kv_dtype=mode.kv_dtype,
        weights=mode.at_load,
        rows=len(QUESTIONS),
        max_model_len=512,
        num_blocks=320,
    )
    try:
        ids = opened.tokenizer.encode(PROSE.read_text())
        (prose,) = score_prose([stepper], reference, ids, prefix=prompt_prefix(opened.tokenizer))
        margins = departures(stepper, reference, prompts)
        info = stepper.executor.info
        return Row(
            mode=mode.name,
            weight_format=info.weight_format,
            kv_dtype=info.kv_dtype,
            prose=prose,
            equal_answers=len(prompts) - len(margins),
            answers=len(prompts),
            largest_margin=max(margins, default=0.0),
        )
    finally:
        stepper.executor.close()


@dataclass(frozen=True, slots=True)
class ContextRow:
    """A mode's score of a long text.

    Attributes:
        context: tokens of a window; each prediction has at least half as many before it.
        weight_format: as reported by the engine.
    """

    context: int
    mode: str
    weight_format: str
    kv_dtype: str
    prose: ProseScore


def measure_context(keys: list[str], model: Path, context: int) -> list[ContextRow]:
    """Score the long text with modes that share the weights of the file `model`."""
    reference = model_from_gguf(model)
    tokenizer = open_model(model).tokenizer
    ids, prefix = tokenizer.encode(topics[LONG_TEXT])[: LONG_TOKENS + 1], prompt_prefix(tokenizer)
    modes = [MODES[key] for key in keys]
    windows = LONG_TOKENS // context
    steppers = [
        load_stepper(
            model,
            kv_dtype=mode.kv_dtype,
            rows=windows,
            max_model_len=context,
            num_blocks=windows * -(-context // 32),
        )
        for mode in modes
    ]
    try:
        # A window's last token has nothing to predict.
        length = context - 1 - len(prefix)
        scores = score_prose(
            steppers, reference, ids, prefix=prefix, length=length, first=context // 2
        )
        infos = [stepper.executor.info for stepper in steppers]
    finally:
        for stepper in steppers:
            stepper.executor.close()
    return [
        ContextRow(context, mode.name, info.weight_format, info.kv_dtype, score)
        for mode, info, score in zip(modes, infos, scores, strict=True)
    ]


def print_contexts(rows: list[ContextRow], console: Console) -> None:
    table = Table(title=f"against fp32, {LONG_TEXT}", title_justify="left")
    for heading in ("context", "tokens"):
        table.add_column(heading, justify="right")
    for heading in ("weights", "KV"):
        table.add_column(heading)
    for heading in ("perplexity", "÷ fp32", "mean KL", "top-1 changed"):
        table.add_column(heading, justify="right")
    for row in rows:
        table.add_row(
            f"{row.context:,}",
            f"{row.prose.tokens:,}",
            row.weight_format,
            row.kv_dtype,
            f"{row.prose.perplexity:.3f}",
            f"{row.prose.perplexity_ratio:.4f}",
            f"{row.prose.mean_kl:.5f}",
            f"{row.prose.top1_changed:.2%}",
        )
    console.print(table)


def print_table(rows: list[Row], console: Console) -> None:
    table = Table(title=f"against fp32, {rows[0].prose.tokens:,} tokens", title_justify="left")
    table.add_column("weights")
    table.add_column("KV")
    for heading in ("perplexity", "÷ fp32", "mean KL", "top-1 changed", "equal", "margin"):
        table.add_column(heading, justify="right")
    for row in rows:
        table.add_row(
            f"{row.mode} ({row.weight_format})",
            row.kv_dtype,
            f"{row.prose.perplexity:.3f}",
            f"{row.prose.perplexity_ratio:.4f}",
            f"{row.prose.mean_kl:.5f}",
            f"{row.prose.top1_changed:.2%}",
            f"{row.equal_answers} of {row.answers}",
            f"{row.largest_margin:.3f}",
        )
    console.print(table)


def run_contexts(keys: list[str], options: argparse.Namespace) -> None:
    """Measure and print the long text; modes with the same weights share the reference."""
    rows: list[ContextRow] = []
    for weights in dict.fromkeys(MODES[key].weights for key in keys):
        group = [key for key in keys if MODES[key].weights is weights]
        with rewritten(options.model, weights) as model:
            for context in map(int, options.context.split(",")):
                say(f"{', '.join(group)} at {context} …")
                rows += measure_context(group, model, context)
                if options.json:
                    text = {
                        "topic": LONG_TEXT,
                        "python": platform.python_version(),
                        "sha256": hashlib.sha256(topics[LONG_TEXT].encode()).hexdigest(),
                    }
                    write_result(
                        options.json, {"text": text, "modes": [asdict(row) for row in rows]}
                    )
    print_contexts(rows, Console(width=None if sys.stdout.isatty() else 120))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--model", type=Path, required=True, help="a llama or Gemma 3 GGUF file")
    parser.add_argument("--modes", default=",".join(MODES), help="modes, separated by commas")
    parser.add_argument(
        "--context", metavar="N[,N]", help="score a long text in windows of N tokens instead"
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the result to FILE")
    options = parser.parse_args()
    keys = [key for key in options.modes.split(",") if key]
    if unknown := sorted(set(keys) - set(MODES)):
        parser.error(f"unknown mode {', '.join(unknown)}: choose from {', '.join(MODES)}")
    if options.context:
        run_contexts(keys, options)
        return
    rows: list[Row] = []
    for key in keys:
        say(f"{key} …")
        mode = MODES[key]
        with (
            rewritten(options.model, mode.weights, permuted=mode.permuted) as model,
            rewritten(options.model, mode.original, permuted=mode.permuted) as original,
        ):
            rows.append(measure(key, model, original if mode.original is not None else model))
        if options.json:
            figures = [asdict(row) | {"within_bounds": row.within_bounds} for row in rows]
            write_result(options.json, {"bounds": BOUNDS, "modes": figures})
    print_table(rows, Console(width=None if sys.stdout.isatty() else 120))
    if outside := [row for row in rows if not row.within_bounds]:
        names = ", ".join(f"{row.weight_format} with KV {row.kv_dtype}" for row in outside)
        print(f"outside the bounds of a default {BOUNDS}: {names}")


if __name__ == "__main__":
    main()
