"""Tiny llama-like decoders in ONNX, as optimum and onnxruntime-genai write them.

The graph is written node by node, with the weights of a checkpoint, so that tests need no exporter;
transformers runs the same weights and is the oracle.
"""

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

from tests.fakes.tiny_checkpoint import CHATML, tiny_encoder

Positions = Literal["input", "mask", "index", "restarted"]
"""Where a graph with `concat` has positions from: an input; the ones in the mask; the place in past and new
tokens together; or, which is wrong, the place in the new tokens alone."""

Attention = Literal["concat", "gqa"]
"""`concat` appends new keys and values to the past and attends under a mask; `gqa` is the fused operator of
onnxruntime-genai, which takes the lengths of the sequences from the mask."""


@dataclass
class Llama:
    """A checkpoint: its sizes and weights, named as transformers names them, [outputs, inputs]."""

    layers: int
    hidden: int
    heads: int
    kv_heads: int
    vocab: int
    context: int
    theta: float
    eps: float
    weights: dict[str, NDArray[Any]] = field(repr=False)

    @property
    def size(self) -> int:
        return self.hidden // self.heads


def random_llama(*, vocab: int = 272, hidden: int = 32, layers: int = 2) -> Llama:
    """Random weights, for tests that compute nothing."""
    rng = np.random.default_rng(0)
    shapes = {"model.embed_tokens.weight": (vocab, hidden), "model.norm.weight": (hidden,)}
    for layer in range(layers):
        before = f"model.layers.{layer}."
        shapes |= {
            f"{before}input_layernorm.weight": (hidden,),
            f"{before}post_attention_layernorm.weight": (hidden,),
            f"{before}self_attn.q_proj.weight": (hidden, hidden),
            f"{before}self_attn.k_proj.weight": (hidden // 2, hidden),
            f"{before}self_attn.v_proj.weight": (hidden // 2, hidden),
            f"{before}self_attn.o_proj.weight": (hidden, hidden),
            f"{before}mlp.gate_proj.weight": (48, hidden),
            f"{before}mlp.up_proj.weight": (48, hidden),
            f"{before}mlp.down_proj.weight": (hidden, 48),
        }
    weights = {name: rng.normal(0, 0.3, shape).astype(np.float32) for name, shape in shapes.items()}
    return Llama(layers, hidden, 2, 1, vocab, 128, 10_000.0, 1e-6, weights)


@dataclass
class GraphOptions:
    """How a graph is written.

    Attributes:
        attention: see `Attention`.
        dtype: of keys, values, weights and logits.
        positions: see `Positions`.
        last_only: whether only the logits of the last position are given.
        keeps: whether the number of positions whose logits are wanted is an input.
        batch: `1` fixes the batch to one sequence.
        int32: whether integer inputs have 32 bits.
        merged: whether a boolean input says that there is a past; without it the past is ignored.
        past: whether it has a past; without, it computes the whole text.
        continues: whether several tokens can follow a past; else the mask of all but one is wrong, as in
            graphs that were made for a prompt and then for one token at a time.
        bits: 4 packs the linear layers into `MatMulNBits`.
        extra_inputs: further inputs that nothing uses: name to type and shape.
        past_name, present_name: patterns of the names.
    """

    attention: Attention = "concat"
    dtype: Any = np.float32
    positions: Positions = "input"
    last_only: bool = False
    keeps: bool = False
    batch: int | str = "batch_size"
    int32: bool = False
    past: bool = True
    merged: bool = False
    continues: bool = True
    bits: int = 0
    extra_inputs: dict[str, tuple[int, list[Any]]] = field(default_factory=dict)
    past_name: str = "past_key_values.%d.%s"
    present_name: str = "present.%d.%s"


class _Graph:
    """Collects nodes and weights."""

    def __init__(self, dtype: Any) -> None:
        self.nodes: list[Any] = []
        self.weights: list[Any] = []
        self.dtype = dtype

    def node(
        self, operator: str, *inputs: str, domain: str = "", outputs: int = 1, **attributes: Any
    ) -> Any:
        names = [f"t{len(self.nodes)}_{at}" for at in range(outputs)]
        self.nodes.append(
            helper.make_node(operator, list(inputs), names, domain=domain, **attributes)
        )
        return names[0] if outputs == 1 else names

    def constant(self, values: Any) -> str:
        name = f"w{len(self.weights)}"
        self.weights.append(numpy_helper.from_array(np.asarray(values), name))
        return name

    def floats(self, values: Any) -> str:
        return self.constant(np.asarray(values, self.dtype))

    def ints(self, *values: int) -> str:
        return self.constant(np.array(values, np.int64))


def write_graph(
    path: Path, model: Llama, options: GraphOptions | None = None, *, external: str = ""
) -> Path:
    """Write the graph of a checkpoint; its weights go into the file `external`, if one is named."""
    proto = build_graph(model, options or GraphOptions())
    path.parent.mkdir(parents=True, exist_ok=True)
    if external:
        onnx.save_model(
            proto, str(path), save_as_external_data=True, location=external, size_threshold=64
        )
    else:
        path.write_bytes(proto.SerializeToString())
    return path


def build_graph(model: Llama, options: GraphOptions) -> Any:
    """The model as a protobuf message."""
    graph = _Graph(options.dtype)
    kind = helper.np_dtype_to_tensor_dtype(np.dtype(options.dtype))
    integer = TensorProto.INT32 if options.int32 else TensorProto.INT64
    batch = options.batch
    value = helper.make_tensor_value_info
    inputs = [value("input_ids", integer, [batch, "sequence_length"])]
    inputs.append(value("attention_mask", integer, [batch, "total_sequence_length"]))
    ids = graph.node("Cast", "input_ids", to=TensorProto.INT64)
    mask = graph.node("Cast", "attention_mask", to=TensorProto.INT64)
    new = graph.node("Gather", graph.node("Shape", ids), graph.ints(1))
    fused = options.attention == "gqa"
    if options.positions == "input" and not fused:
        inputs.append(value("position_ids", integer, [batch, "sequence_length"]))
        positions = graph.node("Cast", "position_ids", to=TensorProto.INT64)
    elif options.positions in ("index", "restarted"):
        total = graph.node("Gather", graph.node("Shape", mask), graph.ints(1))
        scalar, one = graph.ints(0), graph.constant(np.int64(1))
        end = total if options.positions == "index" else new
        start = graph.node("Squeeze", graph.node("Sub", end, new), scalar)
        positions = graph.node("Range", start, graph.node("Squeeze", end, scalar), one)
        positions = graph.node("Unsqueeze", positions, scalar)
    else:
        counted = graph.node(
            "Sub", graph.node("CumSum", mask, graph.constant(np.int64(1))), graph.ints(1)
        )
        total = graph.node("Gather", graph.node("Shape", mask), graph.ints(1))
        start = graph.node("Sub", total, new)
        positions = graph.node("Slice", counted, start, total, graph.ints(1))
    if options.merged:
        inputs.append(value("use_cache_branch", TensorProto.BOOL, [1]))
    for name, (element, dims) in options.extra_inputs.items():
        inputs.append(value(name, element, dims))
    state = graph.node("Gather", graph.floats(model.weights["model.embed_tokens.weight"]), ids)
    if fused:
        mixer: Any = _Fused(graph, model, mask)
    else:
        mixer = _Concat(graph, model, mask, positions, new, continues=options.continues)
    outputs = []
    for layer in range(model.layers):
        before = f"model.layers.{layer}."
        past = [options.past_name % (layer, part) for part in ("key", "value")]
        present = [options.present_name % (layer, part) for part in ("key", "value")]
        shape = [batch, model.kv_heads, "past_sequence_length", model.size]
        if options.past:
            inputs += [value(name, kind, shape) for name in past]
            if options.merged:
                flag = graph.node("Cast", "use_cache_branch", to=TensorProto.INT64)
                end = graph.node("Mul", flag, graph.ints(2**31))
                past = [graph.node("Slice", one, graph.ints(0), end, graph.ints(2)) for one in past]
        else:
            empty = np.zeros((1, model.kv_heads, 0, model.size), options.dtype)
            past = [graph.floats(empty)] * 2
        outputs += [
            value(name, kind, [batch, model.kv_heads, "present_sequence_length", model.size])
            for name in present
        ]
        normed = _norm(graph, state, model.weights[before + "input_layernorm.weight"], model.eps)
        query, key, val = (
            _linear(
                graph, normed, model.weights[f"{before}self_attn.{part}_proj.weight"], options.bits
            )
            for part in "qkv"
        )
        mixed = mixer.attend(query, key, val, past, present)
        mixed = _linear(
            graph, mixed, model.weights[before + "self_attn.o_proj.weight"], options.bits
        )
        state = graph.node("Add", state, mixed)
        normed = _norm(
            graph, state, model.weights[before + "post_attention_layernorm.weight"], model.eps
        )
        gate = _linear(graph, normed, model.weights[before + "mlp.gate_proj.weight"], options.bits)
        gate = graph.node("Mul", gate, graph.node("Sigmoid", gate))
        up = _linear(graph, normed, model.weights[before + "mlp.up_proj.weight"], options.bits)
        down = _linear(
            graph,
            graph.node("Mul", gate, up),
            model.weights[before + "mlp.down_proj.weight"],
            options.bits,
        )
        state = graph.node("Add", state, down)
    if options.last_only:
        state = graph.node("Slice", state, graph.ints(-1), graph.ints(2**31), graph.ints(1))
    if options.keeps:
        inputs.append(value("num_logits_to_keep", TensorProto.INT64, []))
        first = graph.node("Neg", graph.node("Unsqueeze", "num_logits_to_keep", graph.ints(0)))
        state = graph.node("Slice", state, first, graph.ints(2**31), graph.ints(1))
    state = _norm(graph, state, model.weights["model.norm.weight"], model.eps)
    head = model.weights.get("lm_head.weight", model.weights["model.embed_tokens.weight"])
    graph.nodes.append(
        helper.make_node("MatMul", [state, graph.floats(np.ascontiguousarray(head.T))], ["logits"])
    )
    logits = value("logits", kind, [batch, "sequence_length", model.vocab])
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    proto = helper.make_graph(
        graph.nodes, "decoder", inputs, [logits, *outputs], initializer=graph.weights
    )
    made = helper.make_model(proto, opset_imports=opsets)
    made.ir_version = 8
    return made


def _norm(graph: _Graph, state: str, weight: NDArray[Any], eps: float) -> str:
    """RMS norm, in float32."""
    wide = graph.node("Cast", state, to=TensorProto.FLOAT)
    square = graph.node("ReduceMean", graph.node("Mul", wide, wide), axes=[-1])
    root = graph.node("Sqrt", graph.node("Add", square, graph.constant(np.float32(eps))))
    narrow = graph.node(
        "Cast",
        graph.node("Div", wide, root),
        to=helper.np_dtype_to_tensor_dtype(np.dtype(graph.dtype)),
    )
    return graph.node("Mul", narrow, graph.floats(weight))


def _linear(graph: _Graph, state: str, weight: NDArray[Any], bits: int) -> str:
    """A linear layer; with 4 bits as `MatMulNBits`, whose zero point is 8."""
    if not bits:
        return graph.node("MatMul", state, graph.floats(np.ascontiguousarray(weight.T)))
    codes, scales = quantize_4bit(weight)
    rows, blocks = scales.shape
    packed = (codes[..., 0::2] | (codes[..., 1::2] << 4)).astype(np.uint8)
    return graph.node(
        "MatMulNBits",
        state,
        graph.constant(packed.reshape(rows, blocks, -1)),
        graph.floats(scales.ravel()),
        domain="com.microsoft",
        K=weight.shape[1],
        N=rows,
        bits=4,
        block_size=_QUANT_BLOCK,
    )


_QUANT_BLOCK = 16


def quantize_4bit(weight: NDArray[Any]) -> tuple[NDArray[np.uint8], NDArray[np.float32]]:
    """Codes [rows, blocks, 16] and scales [rows, blocks]; a weight is scale * (code - 8)."""
    grouped = weight.reshape(len(weight), -1, _QUANT_BLOCK)
    scales = np.abs(grouped).max(-1) / 7
    codes = np.round(grouped / np.maximum(scales, 1e-9)[..., None]) + 8
    return codes.clip(0, 15).astype(np.uint8), scales.astype(np.float32)


def dequantized(weight: NDArray[Any]) -> NDArray[np.float32]:
    """The weights that `MatMulNBits` computes with."""
    codes, scales = quantize_4bit(weight)
    values = (codes.astype(np.float32) - 8) * scales[..., None]
    return values.reshape(weight.shape)


def _angles(model: Llama) -> tuple[NDArray[Any], NDArray[Any]]:
    """Cosines and sines, [context, size / 2]."""
    frequencies = model.theta ** (-np.arange(0, model.size, 2, dtype=np.float64) / model.size)
    angles = np.arange(model.context)[:, None] * frequencies
    return np.cos(angles), np.sin(angles)


class _Concat:
    """Attention of plain operators."""

    def __init__(
        self,
        graph: _Graph,
        model: Llama,
        mask: str,
        positions: str,
        new: str,
        *,
        continues: bool,
    ) -> None:
        self._graph, self._model = graph, model
        cosine, sine = _angles(model)
        at = graph.ints(1)
        self._cos = graph.node(
            "Unsqueeze", graph.node("Gather", graph.floats(cosine), positions), at
        )
        self._sin = graph.node("Unsqueeze", graph.node("Gather", graph.floats(sine), positions), at)
        # Key j is visible to query i if j <= past + i, and if its mask is 1.
        total = graph.node("Gather", graph.node("Shape", mask), graph.ints(1))
        one = graph.constant(np.int64(1))
        zero = graph.constant(np.int64(0))
        scalar = graph.ints(0)
        keys = graph.node("Range", zero, graph.node("Squeeze", total, scalar), one)
        queries = graph.node("Range", zero, graph.node("Squeeze", new, scalar), one)
        past = graph.node("Sub", total, new)
        if not continues:
            is_one = graph.node("Equal", new, graph.ints(1))
            past = graph.node("Mul", past, graph.node("Cast", is_one, to=TensorProto.INT64))
        queries = graph.node("Add", queries, past)
        queries = graph.node("Unsqueeze", queries, graph.ints(1))
        causal = graph.node("LessOrEqual", graph.node("Unsqueeze", keys, graph.ints(0)), queries)
        given = graph.node(
            "Unsqueeze", graph.node("Cast", mask, to=TensorProto.BOOL), graph.ints(1, 2)
        )
        visible = graph.node("And", causal, given)
        self._bias = graph.node("Where", visible, graph.floats(0), graph.floats(-60000.0))

    def _heads(self, values: str, heads: int) -> str:
        shape = self._graph.ints(0, 0, heads, self._model.size)
        return self._graph.node(
            "Transpose", self._graph.node("Reshape", values, shape), perm=[0, 2, 1, 3]
        )

    def _rotate(self, values: str) -> str:
        graph, half = self._graph, self._model.size // 2
        first, second = graph.node("Split", values, graph.ints(half, half), outputs=2, axis=-1)
        left = graph.node(
            "Sub", graph.node("Mul", first, self._cos), graph.node("Mul", second, self._sin)
        )
        right = graph.node(
            "Add", graph.node("Mul", second, self._cos), graph.node("Mul", first, self._sin)
        )
        return graph.node("Concat", left, right, axis=-1)

    def _repeat(self, values: str) -> str:
        """Each KV head as often as query heads share it."""
        graph, model = self._graph, self._model
        group = model.heads // model.kv_heads
        wide = graph.node("Unsqueeze", values, graph.ints(2))
        wide = graph.node("Concat", *[wide] * group, axis=2)
        return graph.node("Reshape", wide, graph.ints(0, model.heads, -1, model.size))

    def attend(self, query: str, key: str, value: str, past: list[str], present: list[str]) -> str:
        graph, model = self._graph, self._model
        query = self._rotate(self._heads(query, model.heads))
        key = self._rotate(self._heads(key, model.kv_heads))
        value = self._heads(value, model.kv_heads)
        for old, fresh, name in zip(past, (key, value), present, strict=True):
            graph.nodes.append(helper.make_node("Concat", [old, fresh], [name], axis=2))
        turned = graph.node("Transpose", self._repeat(present[0]), perm=[0, 1, 3, 2])
        scores = graph.node("MatMul", query, turned)
        scores = graph.node("Mul", scores, graph.floats(model.size**-0.5))
        shares = graph.node("Softmax", graph.node("Add", scores, self._bias), axis=-1)
        mixed = graph.node("MatMul", shares, self._repeat(present[1]))
        mixed = graph.node("Transpose", mixed, perm=[0, 2, 1, 3])
        return graph.node("Reshape", mixed, graph.ints(0, 0, model.hidden))


class _Fused:
    """`GroupQueryAttention`, with its own rotation."""

    def __init__(self, graph: _Graph, model: Llama, mask: str) -> None:
        self._graph, self._model = graph, model
        cosine, sine = _angles(model)
        self._cos, self._sin = graph.floats(cosine), graph.floats(sine)
        lengths = graph.node("ReduceSum", mask, graph.ints(1), keepdims=1)
        lengths = graph.node("Sub", lengths, graph.ints(1))
        self._lengths = graph.node("Cast", lengths, to=TensorProto.INT32)
        total = graph.node("Gather", graph.node("Shape", mask), graph.constant(np.int64(1)))
        self._total = graph.node("Cast", total, to=TensorProto.INT32)

    def attend(self, query: str, key: str, value: str, past: list[str], present: list[str]) -> str:
        graph, model = self._graph, self._model
        output = f"mixed{len(graph.nodes)}"
        graph.nodes.append(
            helper.make_node(
                "GroupQueryAttention",
                [query, key, value, *past, self._lengths, self._total, self._cos, self._sin],
                [output, *present],
                domain="com.microsoft",
                num_heads=model.heads,
                kv_num_heads=model.kv_heads,
                do_rotary=1,
            )
        )
        return output


def write_tokenizer(directory: Path) -> None:
    """The tiny byte-level vocabulary, with a chat template."""
    (directory / "tokenizer.json").write_text(tiny_encoder().to_str())
    settings = {"eos_token": "<|im_end|>", "chat_template": CHATML}
    (directory / "tokenizer_config.json").write_text(json.dumps(settings))


def write_optimum(
    directory: Path, model: Llama, options: GraphOptions | None = None, *, name: str = "model.onnx"
) -> Path:
    """A folder as optimum writes it."""
    write_graph(directory / name, model, options)
    config = {
        "model_type": "llama",
        "vocab_size": model.vocab,
        "hidden_size": model.hidden,
        "num_attention_heads": model.heads,
        "num_key_value_heads": model.kv_heads,
        "max_position_embeddings": model.context,
        "eos_token_id": 2,
    }
    (directory / "config.json").write_text(json.dumps(config))
    write_tokenizer(directory)
    return directory


def write_genai(
    directory: Path, model: Llama, options: GraphOptions | None = None, **changes: Any
) -> Path:
    """A folder as onnxruntime-genai's model builder writes it; `changes` replace parts of `model`."""
    options = options or GraphOptions(attention="gqa")
    write_graph(directory / "model.onnx", model, options, external="model.onnx.data")
    decoder = {
        "session_options": {"log_id": "onnxruntime-genai", "provider_options": []},
        "filename": "model.onnx",
        "head_size": model.size,
        "hidden_size": model.hidden,
        "inputs": {
            "input_ids": "input_ids",
            "attention_mask": "attention_mask",
            "past_key_names": "past_key_values.%d.key",
            "past_value_names": "past_key_values.%d.value",
        },
        "outputs": {
            "logits": "logits",
            "present_key_names": "present.%d.key",
            "present_value_names": "present.%d.value",
        },
        "num_attention_heads": model.heads,
        "num_hidden_layers": model.layers,
        "num_key_value_heads": model.kv_heads,
    }
    described = {
        "bos_token_id": 1,
        "context_length": model.context,
        "decoder": decoder,
        "eos_token_id": [2],
        "pad_token_id": 0,
        "type": "llama",
        "vocab_size": model.vocab,
    }
    search = {"do_sample": True, "temperature": 0.6, "top_k": 20, "top_p": 0.95, "max_length": 128}
    config = {"model": described | changes, "search": search}
    (directory / "genai_config.json").write_text(json.dumps(config))
    write_tokenizer(directory)
    return directory
