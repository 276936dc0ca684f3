"""`DecoderSession`: an ONNX Runtime session of a decoder's graph, called with numpy arrays.

No library of operators is ever registered, and only the CPU provider is used. ONNX Runtime's own log is
silent, because it would be written over the screen: what fails is raised.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np
import onnxruntime
from numpy.typing import NDArray

from engine._core import cpu_features
from engine.api.errors import ExecutorError, ModelError
from engine.executors.onnx.kv_store import Floats
from engine.models.onnx_spec import GraphPorts, Port

_SILENT = 4
_MAX_REASON = 300
_KIND = re.compile(r"\[ONNXRuntimeError\] : \d+ : \w+ : ")
"""Begins a message; one about an operator's error contains that error's own."""


@dataclass(frozen=True, slots=True)
class Inputs:
    """The inputs of a run, of B sequences with S new tokens each, after at most P tokens.

    Attributes:
        ids: [B, S] int32, new tokens.
        positions: [B, S] int32, their positions.
        mask: [B, P + S] int32, 1 for tokens that are attended to.
        past: the keys of each layer, then the values of each: [B, KV heads, P, size].
        keep: number of last positions whose logits are wanted; 0 for all. Graphs may give more.
    """

    ids: NDArray[np.int32]
    positions: NDArray[np.int32]
    mask: NDArray[np.int32]
    past: Sequence[Floats]
    keep: int = 0


@dataclass(frozen=True, slots=True)
class Outputs:
    """The outputs of a run.

    Attributes:
        logits: [B, L, vocab], of the last L positions.
        present: as `Inputs.past`, with the new tokens: [B, KV heads, P + S, size]; or that itself.
    """

    logits: Floats
    present: Sequence[Floats]


class DecoderSession:
    """Runs a graph. Not safe for concurrent use."""

    def __init__(self, session: Any, ports: GraphPorts, threads: int) -> None:
        """Wrap a session; use `load`."""
        self._session = session
        self._ports = ports
        self._outputs = [ports.logits, *ports.present_keys, *ports.present_values]
        self._past_names = [*ports.past_keys, *ports.past_values]
        self.threads = threads

    @classmethod
    def load(
        cls, graph: Path, ports: GraphPorts, *, threads: int | None, reuses_memory: bool = True
    ) -> Self:
        """Load a graph and its weights.

        Args:
            graph: the ONNX file, whose header was checked (`engine.models.onnx_folder`).
            ports: names of its inputs and outputs.
            threads: compute threads; None for the default of the native executor.
            reuses_memory: whether values of the graph may take the memory of others that are no longer
                needed. ONNX Runtime decides it by the shapes that the graph states, and fails if these are
                wrong.

        Raises:
            ModelError: ONNX Runtime cannot load it.
        """
        count = int(cpu_features()["threads"]) if threads is None else threads
        options = onnxruntime.SessionOptions()
        # Without a number of threads ONNX Runtime binds them to processors, which the process may not.
        options.intra_op_num_threads = count
        options.inter_op_num_threads = 1
        options.log_severity_level = _SILENT
        options.enable_mem_reuse = reuses_memory
        options.enable_mem_pattern = False  # planned for shapes that come again; here few do
        try:
            session = onnxruntime.InferenceSession(
                str(graph), options, providers=["CPUExecutionProvider"]
            )
        except Exception as error:  # its errors have no class of their own
            raise ModelError(f"ONNX Runtime cannot load {graph}: {_reason(error)}.") from error
        return cls(session, ports, count)

    def run(self, inputs: Inputs, *, in_place: bool = False) -> Outputs:
        """Compute logits, and the keys and values of the new tokens.

        Args:
            inputs: the inputs.
            in_place: whether new keys and values are written into the arrays of the past, which have room for
                them; only for graphs whose operators allow it.

        Raises:
            ExecutorError: ONNX Runtime failed.
        """
        try:
            if in_place:
                return Outputs(self._run_in_place(inputs), inputs.past)
            past = dict(zip(self._past_names, inputs.past, strict=True))
            logits, *present = self._session.run(self._outputs, self._feeds(inputs) | past)
        except Exception as error:  # its errors have no class of their own
            raise ExecutorError(f"ONNX Runtime: {_reason(error)}.") from error
        return Outputs(logits, present)

    def _run_in_place(self, inputs: Inputs) -> Floats:
        """Logits of a run in which past and present are the same memory."""
        binding = self._session.io_binding()
        for name, values in self._feeds(inputs).items():
            binding.bind_cpu_input(name, values)
        binding.bind_output(self._outputs[0], "cpu")
        names = zip(self._past_names, self._outputs[1:], inputs.past, strict=True)
        for past, present, array in names:
            place = ("cpu", 0, array.dtype.type, array.shape, array.ctypes.data)
            binding.bind_input(past, *place)
            binding.bind_output(present, *place)
        self._session.run_with_iobinding(binding)
        logits: Floats = binding.get_outputs()[0].numpy()
        return logits

    def _feeds(self, inputs: Inputs) -> dict[str, NDArray[Any]]:
        """The inputs other than the past, by name."""
        ports = self._ports
        feeds: dict[str, NDArray[Any]] = {
            ports.input_ids.name: _integers(ports.input_ids, inputs.ids)
        }
        if ports.attention_mask is not None:
            feeds[ports.attention_mask.name] = _integers(ports.attention_mask, inputs.mask)
        if ports.position_ids is not None:
            feeds[ports.position_ids.name] = _integers(ports.position_ids, inputs.positions)
        if ports.logits_to_keep is not None:
            keep = np.full((1,) * ports.logits_to_keep.rank, inputs.keep, np.int32)
            feeds[ports.logits_to_keep.name] = _integers(ports.logits_to_keep, keep)
        if ports.uses_past is not None:
            feeds[ports.uses_past] = np.array([inputs.mask.shape[1] > inputs.ids.shape[1]])
        return feeds


def _integers(port: Port, values: NDArray[np.int32]) -> NDArray[Any]:
    return values.astype(np.int64 if port.bits == 64 else np.int32, copy=False)


def _reason(error: Exception) -> str:
    """What an error of ONNX Runtime says, in one line: the innermost, which is the cause."""
    text = " ".join(_KIND.split(str(error))[-1].split())
    return text[:_MAX_REASON].rstrip(". ") or type(error).__name__
