"""A naive interpreter of `ModelSpec` in torch: what a description means, without batches or kernels."""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path

import gguf
import numpy as np
import torch
from safetensors.torch import load_file
from torch import Tensor
from torch.nn import functional

from engine.models.spec import (
    Attention,
    Experts,
    GatedDeltaNet,
    LayerSpec,
    Mamba2,
    Mlp,
    ModelSpec,
    Rope,
    ShortConv,
    TensorRef,
)


def read_weights(paths: Sequence[Path]) -> dict[str, Tensor]:
    """Every tensor of GGUF or safetensors files, in fp32."""
    weights: dict[str, Tensor] = {}
    for path in paths:
        if path.suffix == ".safetensors":
            weights |= {name: tensor.float() for name, tensor in load_file(path).items()}
            continue
        for tensor in gguf.GGUFReader(str(path)).tensors:
            values = np.array(gguf.quants.dequantize(tensor.data, tensor.tensor_type), np.float32)
            weights[tensor.name] = torch.from_numpy(values)
    return weights


class DescribedModel:
    """Computes the logits of one sequence as the description says."""

    def __init__(self, spec: ModelSpec, paths: Sequence[Path], *, max_model_len: int) -> None:
        """`max_model_len` decides which of LongRoPE's divisors are used."""
        self.spec = spec
        self.weights = read_weights(paths)
        self.max_model_len = max_model_len

    @torch.no_grad()
    def logits(self, tokens: Sequence[int]) -> Tensor:
        """[len(tokens), vocab]."""
        spec, ids = self.spec, torch.tensor(tokens)
        embedding = self._matrix(spec.tensors["embedding"], spec.vocab_size)
        x = embedding[ids] * spec.embedding_multiplier
        if "position_embedding" in spec.tensors:
            positions = self._matrix(spec.tensors["position_embedding"], spec.context_length)
            x = x + positions[: len(tokens)]
        per_layer = self._per_layer_inputs(ids, x) if spec.per_layer_width else None
        streams = self._spread(x) if spec.streams is not None else []
        rotations = [self._rotation(rope, len(tokens)) for rope in spec.ropes]
        cache: dict[int, tuple[Tensor, Tensor]] = {}
        for index, layer in enumerate(spec.layers):
            if spec.streams is not None:
                streams = self._predict(layer, streams)
                x = streams[spec.streams.active]
            if layer.mixer is not None:
                h = self._norm(layer.tensors, "mixer_norm", x)
                beside = self._laurel(layer, h) if spec.laurel_rank else None
                if isinstance(layer.mixer, Attention):
                    h = self._attention(index, layer, layer.mixer, h, rotations, cache)
                elif isinstance(layer.mixer, ShortConv):
                    h = self._short_conv(layer, layer.mixer, h)
                else:
                    h = self._state_heads(layer, layer.mixer, h)
                h = self._norm(layer.tensors, "mixer_post_norm", h)
                x = x + h * spec.residual_multiplier
                x = x if beside is None else (x + beside) * 2**-0.5
            if layer.ffn is not None:
                h = self._feed_forward(layer, x)
                h = self._norm(layer.tensors, "ffn_post_norm", h)
                x = x + h * spec.residual_multiplier
            if spec.streams is not None:
                streams = self._correct(layer, streams, x)
                x = streams[spec.streams.active]
                if "streams_scale" in layer.tensors:
                    x = x * self._vector(layer.tensors["streams_scale"], spec.hidden_size)
            if per_layer is not None:
                width, hidden = spec.per_layer_width, spec.hidden_size
                gate = x @ self._matrix(layer.tensors["per_layer_gate"], width).T
                h = functional.gelu(gate, approximate="tanh") * per_layer[:, index]
                h = h @ self._matrix(layer.tensors["per_layer_projection"], hidden).T
                h = self._norm(layer.tensors, "per_layer_norm", h)
                x = x + h
                streams = [*streams[:1], *(stream + h for stream in streams[1:])]
            if "output_scale" in layer.tensors:
                x = x * self._vector(layer.tensors["output_scale"], 1)
        if spec.streams is not None:
            x = self._merge(streams)
        x = self._norm(spec.tensors, "final_norm", x)
        head = spec.tensors.get("lm_head", spec.tensors["embedding"])
        logits = x @ self._matrix(head, spec.vocab_size).T
        if "lm_head.bias" in spec.tensors:
            logits = logits + self._vector(spec.tensors["lm_head.bias"], spec.vocab_size)
        logits = logits * spec.logit_multiplier
        return _cap(logits, spec.logit_softcap)

    def _spread(self, x: Tensor) -> list[Tensor]:
        """The streams of the input embeddings."""
        assert self.spec.streams is not None
        hidden, others = self.spec.hidden_size, self.spec.streams.count - 1
        out = x @ self._matrix(self.spec.tensors["streams_projection"], others * hidden).T
        return [x, *(_with_magnitude(part, x) for part in out.split(hidden, -1))]

    def _merge(self, streams: Sequence[Tensor]) -> Tensor:
        hidden, first = self.spec.hidden_size, streams[0]
        rows = (len(streams) - 1) * hidden
        matrices = self._matrix(self.spec.tensors["streams_merge"], rows).split(hidden)
        pairs = zip(streams[1:], matrices, strict=True)
        merged = [_with_magnitude(stream @ matrix.T, first) for stream, matrix in pairs]
        return torch.stack([first, *merged]).mean(0)

    def _modalities(self, layer: LayerSpec, x: Tensor) -> Tensor:
        assert self.spec.streams is not None
        h = self._norm(layer.tensors, "streams_norm", x) / self.spec.hidden_size
        return torch.tanh(self._project(layer, "streams_router", self.spec.streams.count, h))

    def _predict(self, layer: LayerSpec, streams: Sequence[Tensor]) -> list[Tensor]:
        assert self.spec.streams is not None
        count = len(streams)
        modalities = self._modalities(layer, streams[self.spec.streams.active])
        factors = self._project(layer, "streams_predict", count * count, modalities)
        factors = factors.view(-1, count, count)
        return [
            stream + sum(factors[:, k, i, None] * other for i, other in enumerate(streams))
            for k, stream in enumerate(streams)
        ]

    def _correct(self, layer: LayerSpec, streams: Sequence[Tensor], x: Tensor) -> list[Tensor]:
        assert self.spec.streams is not None
        factors = self._project(layer, "streams_correct", len(streams), self._modalities(layer, x))
        innovation = x - streams[self.spec.streams.active]
        return [stream + (1 + factors[:, k, None]) * innovation for k, stream in enumerate(streams)]

    def _laurel(self, layer: LayerSpec, x: Tensor) -> Tensor:
        h = self._project(layer, "laurel_left", self.spec.laurel_rank, x)
        h = self._project(layer, "laurel_right", self.spec.hidden_size, h)
        return x + self._norm(layer.tensors, "laurel_norm", h)

    def _matrix(self, ref: TensorRef, rows: int) -> Tensor:
        names = [ref.name.format(part) for part in range(ref.parts)] or [ref.name]
        stored = torch.cat([self.weights[name] for name in names])
        stored = stored.reshape(-1, stored.shape[-1])
        return (stored.T if ref.transposed else stored)[_rows(ref, rows)]

    def _vector(self, ref: TensorRef, rows: int) -> Tensor:
        return self.weights[ref.name].reshape(-1)[_rows(ref, rows)] + ref.add

    def _project(self, layer: LayerSpec, role: str, rows: int, x: Tensor) -> Tensor:
        out = x @ self._matrix(layer.tensors[role], rows).T
        bias = layer.tensors.get(f"{role}.bias")
        return out if bias is None else out + self._vector(bias, rows)

    def _norm(self, tensors: Mapping[str, TensorRef], role: str, x: Tensor) -> Tensor:
        if role not in tensors:
            return x
        weight = self._vector(tensors[role], x.shape[-1])
        if self.spec.norm == "rms" or role in ("q_norm", "k_norm"):
            return _rms(x, self.spec.norm_eps) * weight
        bias = tensors.get(f"{role}.bias")
        shift = None if bias is None else self._vector(bias, x.shape[-1])
        return functional.layer_norm(x, x.shape[-1:], weight, shift, self.spec.norm_eps)

    def _attention(
        self,
        index: int,
        layer: LayerSpec,
        attention: Attention,
        x: Tensor,
        rotations: Sequence[tuple[Tensor, Tensor]],
        cache: dict[int, tuple[Tensor, Tensor]],
    ) -> Tensor:
        count, heads, dim = len(x), attention.num_heads, attention.head_dim
        q = self._heads(layer, attention, "q", heads, self._project(layer, "q", heads * dim, x))
        q = self._rotate(attention, q, rotations)
        if (temperature := attention.temperature) is not None:
            steps = torch.floor(torch.arange(count) / temperature.original_context)
            q = q * (1 + temperature.beta * torch.log(1 + steps))[:, None, None]
        if attention.kv_layer is None:
            kv_heads = attention.num_kv_heads
            keys = self._project(layer, "k", kv_heads * dim, x)
            values = self._project(layer, "v", kv_heads * dim, x) if "v" in layer.tensors else keys
            values = values.view(count, kv_heads, dim)
            if attention.value_norm:
                values = _rms(values, self.spec.norm_eps)
            k = self._heads(layer, attention, "k", kv_heads, keys)
            cache[index] = self._rotate(attention, k, rotations), values
        k, v = cache[index if attention.kv_layer is None else attention.kv_layer]
        group = heads // k.shape[1]
        k, v = k.repeat_interleave(group, 1), v.repeat_interleave(group, 1)
        scores = _cap(torch.einsum("qhd,khd->hqk", q, k) * attention.scale, attention.softcap)
        distance = torch.arange(count)[:, None] - torch.arange(count)
        seen = (distance >= 0) & (distance < (attention.window or count))
        probabilities = scores.masked_fill(~seen, -math.inf).softmax(-1)
        out = torch.einsum("hqk,khd->qhd", probabilities, v).reshape(count, heads * dim)
        if "attention_gate" in layer.tensors:
            out = out * torch.sigmoid(self._project(layer, "attention_gate", heads * dim, x))
        return self._project(layer, "o", self.spec.hidden_size, out)

    def _short_conv(self, layer: LayerSpec, mixer: ShortConv, x: Tensor) -> Tensor:
        hidden = self.spec.hidden_size
        before, after, inputs = (
            self._project(layer, role, hidden, x)
            for role in ("conv_before", "conv_after", "conv_in")
        )
        out = after * self._convolve(layer, mixer.kernel, before * inputs)
        return self._project(layer, "o", hidden, out)

    def _convolve(self, layer: LayerSpec, kernel: int, x: Tensor) -> Tensor:
        count, channels = x.shape
        taps = self._vector(layer.tensors["conv"], channels * kernel).view(channels, kernel)
        padded = torch.cat([torch.zeros(kernel - 1, channels), x])
        out = sum(padded[at : at + count] * taps[:, at] for at in range(kernel))
        assert isinstance(out, Tensor)
        bias = layer.tensors.get("conv.bias")
        return out if bias is None else out + self._vector(bias, channels)

    def _state_heads(self, layer: LayerSpec, mixer: GatedDeltaNet | Mamba2, x: Tensor) -> Tensor:
        """Gated DeltaNet or Mamba2, token by token."""
        delta = isinstance(mixer, GatedDeltaNet)
        heads, count = mixer.num_heads, len(x)
        if isinstance(mixer, GatedDeltaNet):
            keys, key_dim, dim = mixer.num_key_heads, mixer.key_dim, mixer.value_dim
        else:
            keys, key_dim, dim = mixer.num_groups, mixer.state_dim, mixer.head_dim
        inner, width = heads * dim, keys * key_dim
        mixed = self._project(layer, "conv_in", inner + 2 * width, x)
        mixed = functional.silu(self._convolve(layer, mixer.kernel, mixed))
        if delta:
            q, k, v = mixed.split([width, width, inner], -1)
        else:
            v, k, q = mixed.split([inner, width, width], -1)
        key_of = torch.arange(heads) // (heads // keys)
        if isinstance(mixer, GatedDeltaNet) and mixer.tiled:
            key_of = torch.arange(heads) % keys
        q = q.view(count, keys, key_dim)[:, key_of]
        k = k.view(count, keys, key_dim)[:, key_of]
        v = v.view(count, heads, dim)
        time_step = functional.softplus(self._project(layer, "time_step", heads, x))
        if "rate" in layer.tensors:
            rate = self._vector(layer.tensors["rate"], heads)
        else:
            rate = -self._vector(layer.tensors["rate_log"], heads).exp()
        decay, strength = (rate * time_step).exp(), time_step
        if delta:
            strength = torch.sigmoid(self._project(layer, "beta", heads, x))
            q = _unit(q) * key_dim**-0.5
            k = _unit(k)
        state, outputs = torch.zeros(heads, key_dim, dim), []
        for t in range(count):
            state = state * decay[t, :, None, None]
            value = v[t] - torch.einsum("hkv,hk->hv", state, k[t]) if delta else v[t]
            state = state + torch.einsum("hk,hv->hkv", k[t], value * strength[t, :, None])
            outputs.append(torch.einsum("hkv,hk->hv", state, q[t]))
        out = torch.stack(outputs)
        if "skip" in layer.tensors:
            out = out + self._vector(layer.tensors["skip"], heads)[:, None] * v
        z = functional.silu(self._project(layer, "z", inner, x))
        if delta:
            weight = self._vector(layer.tensors["state_norm"], dim)
            out = (_rms(out, self.spec.norm_eps) * weight).reshape(count, inner) * z
        else:
            grouped = (out.reshape(count, inner) * z).view(count, keys, inner // keys)
            weight = self._vector(layer.tensors["state_norm"], inner)
            out = _rms(grouped, self.spec.norm_eps).reshape(count, inner) * weight
        return self._project(layer, "o", self.spec.hidden_size, out)

    def _heads(
        self, layer: LayerSpec, attention: Attention, role: str, heads: int, x: Tensor
    ) -> Tensor:
        """Normalised, as heads."""
        if attention.qk_norm_whole:
            x = self._norm(layer.tensors, f"{role}_norm", x)
        x = x.view(len(x), heads, attention.head_dim)
        return x if attention.qk_norm_whole else self._norm(layer.tensors, f"{role}_norm", x)

    def _rotate(
        self, attention: Attention, x: Tensor, rotations: Sequence[tuple[Tensor, Tensor]]
    ) -> Tensor:
        if attention.rope is None:
            return x
        rope, (cos, sin) = self.spec.ropes[attention.rope], rotations[attention.rope]
        pairs, half = cos.shape[-1], rope.dim // 2
        first = torch.arange(pairs)
        second = first + half
        if rope.style == "interleaved":
            first, second = 2 * first, 2 * first + 1
        result, a, b = x.clone(), x[..., first], x[..., second]
        result[..., first] = a * cos[:, None] - b * sin[:, None]
        result[..., second] = b * cos[:, None] + a * sin[:, None]
        return result

    def _rotation(self, rope: Rope, count: int) -> tuple[Tensor, Tensor]:
        """Cosines and sines, [count, rotated pairs]."""
        pairs = rope.dim // 2 if rope.pairs is None else rope.pairs
        frequencies = rope.theta ** (-2 * torch.arange(pairs, dtype=torch.float64) / rope.dim)
        if rope.divisors:
            frequencies = frequencies / torch.tensor(rope.divisors, dtype=torch.float64)
        frequencies, factor = self._scaled(rope, frequencies)
        angles = torch.arange(count)[:, None] * frequencies
        return (angles.cos() * factor).float(), (angles.sin() * factor).float()

    def _scaled(self, rope: Rope, frequencies: Tensor) -> tuple[Tensor, float]:
        scaling = rope.scaling
        factor, original = scaling.factor, scaling.original_context
        match scaling.kind:
            case "none":
                return frequencies, 1.0
            case "linear":
                return frequencies / factor, 1.0
            case "llama3":
                low, high = scaling.low_freq_factor, scaling.high_freq_factor
                turns = original * frequencies / (2 * math.pi)
                smooth = ((turns - low) / (high - low)).clamp(0, 1)
                return (1 - smooth) * frequencies / factor + smooth * frequencies, 1.0
            case "yarn":

                def pair_of(turns: float) -> float:
                    ratio = math.log(original / (turns * 2 * math.pi))
                    return rope.dim * ratio / (2 * math.log(rope.theta))

                low, high = pair_of(scaling.beta_fast), pair_of(scaling.beta_slow)
                if scaling.truncate:
                    low, high = math.floor(low), math.ceil(high)
                low, high = max(low, 0), min(high, rope.dim - 1)
                ramp = ((torch.arange(len(frequencies)) - low) / max(high - low, 0.001)).clamp(0, 1)
                attention = scaling.attention_factor
                if attention is None:
                    attention = 0.1 * math.log(max(factor, 1.0)) + 1.0
                return frequencies / factor * ramp + frequencies * (1 - ramp), attention
            case "longrope":
                is_long = self.max_model_len > original
                divisors = scaling.long_divisors if is_long else scaling.short_divisors
                attention = scaling.attention_factor
                if attention is None:
                    growth = math.log(max(factor, 1.0)) / math.log(original)
                    attention = math.sqrt(1 + growth)
                return frequencies / torch.tensor(divisors, dtype=torch.float64), attention

    def _feed_forward(self, layer: LayerSpec, x: Tensor) -> Tensor:
        assert layer.ffn is not None
        h = self._norm(layer.tensors, "ffn_norm", x)
        if not isinstance(layer.ffn, Experts):
            return self._network(layer, layer.ffn, "", h)
        own = "experts_norm" in layer.tensors
        of_router = self._norm(layer.tensors, "router_norm", x) if own else h
        of_experts = self._norm(layer.tensors, "experts_norm", x) if own else h
        out = self._experts(layer, layer.ffn, of_router, of_experts)
        out = self._norm(layer.tensors, "experts_post_norm", out)
        if layer.ffn.shared is None:
            return out
        shared = self._network(layer, layer.ffn.shared, "shared.", h)
        if "shared_router" in layer.tensors:
            shared = shared * self._project(layer, "shared_router", 1, h).sigmoid()
        return out + self._norm(layer.tensors, "shared_post_norm", shared)

    def _network(self, layer: LayerSpec, mlp: Mlp, prefix: str, x: Tensor) -> Tensor:
        """A network whose roles begin with `prefix`."""
        inner, hidden = mlp.intermediate_size, self.spec.hidden_size
        out = self._project(layer, f"{prefix}up", inner, x)
        if f"{prefix}gate" in layer.tensors:
            gate = self._project(layer, f"{prefix}gate", inner, x)
            if mlp.cutoff is not None:
                deviation = gate.std(-1, keepdim=True, correction=0)
                gate = functional.relu(gate - gate.mean(-1, keepdim=True) - mlp.cutoff * deviation)
            out = _activate(mlp.activation, gate) * out
        else:
            out = _activate(mlp.activation, out)
        return self._project(layer, f"{prefix}down", hidden, out)

    def _experts(self, layer: LayerSpec, experts: Experts, of_router: Tensor, x: Tensor) -> Tensor:
        """Experts without biases, of one group; `x` and `of_router` are normalised inputs."""
        routing, hidden, size = experts.routing, self.spec.hidden_size, experts.intermediate_size
        assert routing.groups == 1
        logits = self._project(layer, "router", experts.count, of_router) * routing.logit_scale
        scores = {
            "softmax": logits.softmax(-1),
            "softmax_of_used": logits,
            "sigmoid": logits.sigmoid(),
        }[routing.scores]
        best = scores
        if "router_correction" in layer.tensors:
            best = scores + self._vector(layer.tensors["router_correction"], experts.count)
        chosen = best.topk(experts.used, -1).indices
        weights = scores.gather(-1, chosen)
        if routing.scores == "softmax_of_used":
            weights = weights.softmax(-1)
        if routing.renormalise:
            weights = weights / weights.sum(-1, keepdim=True)
        weights = weights * routing.scale
        if "router_scale" in layer.tensors:
            weights = weights * self._vector(layer.tensors["router_scale"], experts.count)[chosen]
        rows = {"gate": (size, hidden), "up": (size, hidden), "down": (hidden, size)}
        matrices = {
            part: self._matrix(place, experts.count * shape[0]).view(experts.count, *shape)
            for part, shape in rows.items()
            if (place := layer.tensors.get(f"experts.{part}")) is not None
        }
        out = torch.zeros(len(x), hidden)
        for token in range(len(x)):
            for weight, expert in zip(weights[token], chosen[token], strict=True):
                inner = matrices["up"][expert] @ x[token]
                if "gate" in matrices:
                    gate = matrices["gate"][expert] @ x[token]
                    inner = _activate(experts.activation, gate) * inner
                else:
                    inner = _activate(experts.activation, inner)
                out[token] += weight * (matrices["down"][expert] @ inner)
        return out

    def _per_layer_inputs(self, ids: Tensor, x: Tensor) -> Tensor:
        """[tokens, layers, width]."""
        spec = self.spec
        width, total = spec.per_layer_width, spec.num_layers * spec.per_layer_width
        shape = (len(ids), spec.num_layers, width)
        projected = x @ self._matrix(spec.tensors["per_layer_model_projection"], total).T
        projected = (projected * spec.hidden_size**-0.5).view(shape)
        projected = self._norm(spec.tensors, "per_layer_model_norm", projected)
        embedding = self._matrix(spec.tensors["per_layer_embedding"], spec.vocab_size)
        looked_up = embedding[ids].view(shape)
        return (projected + looked_up * width**0.5) * 2**-0.5


def _activate(activation: str, x: Tensor) -> Tensor:
    match activation:
        case "silu":
            return functional.silu(x)
        case "gelu_tanh":
            return functional.gelu(x, approximate="tanh")
        case "gelu":
            return functional.gelu(x)
        case "relu2":
            return functional.relu(x) ** 2
        case other:
            raise NotImplementedError(other)


def _rows(ref: TensorRef, count: int) -> Tensor:
    j = torch.arange(count)
    rows = ref.start + (j if ref.run == 0 else j // ref.run * ref.step + j % ref.run)
    for further in ref.further:
        at = torch.arange(count - further.first)
        rows[further.first :] = further.start + at // further.run * further.step + at % further.run
    return rows


def _rms(x: Tensor, eps: float) -> Tensor:
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + eps)


def _with_magnitude(x: Tensor, other: Tensor) -> Tensor:
    """`x` with the root mean square of `other`."""
    square = x.pow(2).mean(-1, keepdim=True).clamp(min=1e-5)
    return x * (other.pow(2).mean(-1, keepdim=True) / square).sqrt()


def _unit(x: Tensor) -> Tensor:
    return x * torch.rsqrt(x.pow(2).sum(-1, keepdim=True) + 1e-6)


def _cap(x: Tensor, cap: float) -> Tensor:
    return torch.tanh(x / cap) * cap if cap else x
