"""Reading the header of an ONNX file: what it states, and bytes that are none."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.api.errors import ModelError
from engine.models.onnx_header import (
    ExternalData,
    PackedMatrix,
    StoredTensor,
    ValueInfo,
    parse_onnx_header,
    read_onnx_header,
)

onnx = pytest.importorskip("onnx")

from onnx import TensorProto, helper, numpy_helper  # noqa: E402

from tests.fakes.tiny_onnx import GraphOptions, build_graph, random_llama, write_graph  # noqa: E402


def model_of(nodes, *, inputs=(), weights=(), functions=(), domain=""):
    value = helper.make_tensor_value_info
    graph = helper.make_graph(
        nodes,
        "graph",
        [value("x", TensorProto.FLOAT, ["batch", 4]), *inputs],
        [value("y", TensorProto.FLOAT, None)],
        initializer=list(weights),
    )
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid(domain or "com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=opsets, functions=list(functions))


def header_of(model):
    return parse_onnx_header(model.SerializeToString())


def test_inputs_outputs_weights_and_operators():
    weight = numpy_helper.from_array(np.zeros((4, 3), np.float16), "w")
    stated = helper.make_tensor_value_info("w", TensorProto.FLOAT16, [4, 3])
    header = header_of(
        model_of(
            [helper.make_node("MatMul", ["x", "w"], ["y"], domain="ai.onnx")],
            inputs=[stated],
            weights=[weight],
        )
    )
    assert header.inputs == (ValueInfo("x", 1, ("batch", 4)),)  # weights are no inputs
    assert header.outputs == (ValueInfo("y", 1, ()),)
    assert header.tensors == (StoredTensor("w", 10, (4, 3), None),)
    assert header.tensors[0].nbytes == 24
    assert header.operators == {("", "MatMul")}


def test_graphs_and_tensors_in_attributes_count():
    inner = helper.make_graph(
        [helper.make_node("Rare", [], ["z"], domain="own.ops")],
        "inner",
        [],
        [helper.make_tensor_value_info("z", TensorProto.FLOAT, None)],
        initializer=[numpy_helper.from_array(np.zeros(5, np.float32), "hidden")],
    )
    constant = numpy_helper.from_array(np.zeros(7, np.int8))
    sparse = helper.make_sparse_tensor(
        numpy_helper.from_array(np.zeros(2, np.float32), "values"),
        numpy_helper.from_array(np.zeros(2, np.int64), "indices"),
        [9],
    )
    header = header_of(
        model_of(
            [
                helper.make_node("If", ["x"], ["y"], then_branch=inner, else_branch=inner),
                helper.make_node("Constant", [], ["c"], value=constant),
                helper.make_node("Constant", [], ["s"], sparse_value=sparse),
            ]
        )
    )
    names = [tensor.name for tensor in header.tensors]
    assert names == ["hidden", "hidden", "", "values", "indices"]
    assert ("own.ops", "Rare") in header.operators


def test_functions_of_the_model_count_and_their_domains_are_known():
    function = helper.make_function(
        "local",
        "Twice",
        ["a"],
        ["b"],
        [helper.make_node("Foreign", ["a"], ["b"], domain="other.ops")],
        [helper.make_opsetid("", 17), helper.make_opsetid("other.ops", 1)],
    )
    header = header_of(
        model_of(
            [helper.make_node("Twice", ["x"], ["y"], domain="local")],
            functions=[function],
            domain="local",
        )
    )
    assert header.own_domains == {"local"}
    assert header.operators == {("local", "Twice"), ("other.ops", "Foreign")}


def test_external_weights_and_their_place(tmp_path):
    path = write_graph(tmp_path / "m.onnx", random_llama(), external="m.data")
    header = read_onnx_header(path)
    outside = [tensor for tensor in header.tensors if tensor.external is not None]
    assert {tensor.external.location for tensor in outside} == {"m.data"}
    end = max(tensor.external.offset + tensor.external.length for tensor in outside)
    assert end <= (tmp_path / "m.data").stat().st_size
    tensor = TensorProto(name="w", data_type=1, dims=[2], data_location=TensorProto.EXTERNAL)
    tensor.external_data.add(key="location", value="here")
    header = header_of(model_of([], weights=[tensor]))
    assert header.tensors[0].external == ExternalData("here", 0, None)


def test_packed_matrices_have_their_own_number_of_elements():
    model = random_llama()
    header = header_of(build_graph(model, GraphOptions(attention="gqa", bits=4)))
    assert len(header.packed) == 7 * model.layers
    sizes = {(one.elements, one.bits) for one in header.packed}
    assert sizes == {(32 * 32, 4), (16 * 32, 4), (48 * 32, 4)}
    assert all(isinstance(one, PackedMatrix) and len(one.tensors) == 2 for one in header.packed)


@pytest.mark.parametrize(
    ("raw", "words"),
    [
        (b"", "is empty"),
        (b"GGUF\3\0\0\0", "is not an ONNX model"),
        (b"\x08\x07", "it has no graph"),
        (b"\x3a\x7f\x0a", "longer than its message"),
        (b"\x3a" + b"\xff" * 12, "cut off or too long"),
        (b"\x3a\x05\x5a\x03\x0a\x7f\x00", "longer than its message"),
        (b"\x3a\x05\x5a\x03\x0a\x01\xff", "not UTF-8"),
        (b"\x38\x01", "a field that is a message has a number"),
    ],
)
def test_what_is_no_model_is_refused_in_one_sentence(tmp_path, raw, words):
    path = tmp_path / "m.onnx"
    path.write_bytes(raw)
    with pytest.raises(ModelError, match=words) as caught:
        read_onnx_header(path)
    assert "\n" not in str(caught.value)
    assert str(path) in str(caught.value)


@pytest.mark.parametrize(
    ("entries", "words"),
    [
        ({"location": "w", "offset": "x"}, "no number"),
        ({"location": "w", "offset": "-4"}, "negative number"),
        ({"location": "w", "length": "-1"}, "negative number"),
    ],
)
def test_a_damaged_place_is_refused(entries, words):
    tensor = TensorProto(name="w", data_type=1, dims=[2], data_location=TensorProto.EXTERNAL)
    for key, value in entries.items():
        tensor.external_data.add(key=key, value=value)
    with pytest.raises(ValueError, match=words):
        header_of(model_of([], weights=[tensor]))


def test_graphs_nested_without_end_are_refused():
    def part(number, content):
        size = len(content)  # two bytes hold sizes below 16,384
        return bytes([number << 3 | 2, size & 0x7F | 0x80, size >> 7]) + content

    graph = b""
    for _ in range(40):  # node, attribute, graph
        graph = part(1, part(5, part(6, graph)))
    with pytest.raises(ValueError, match="nested too deep"):
        parse_onnx_header(part(7, graph))


def test_a_file_that_is_missing_or_a_folder_is_refused(tmp_path):
    for path in (tmp_path / "none.onnx", tmp_path):
        with pytest.raises(ModelError, match="cannot be read"):
            read_onnx_header(path)


GOOD = build_graph(
    random_llama(vocab=8, hidden=16, layers=1), GraphOptions(attention="gqa", bits=4)
).SerializeToString()


@given(st.lists(st.tuples(st.integers(0, len(GOOD) - 1), st.integers(0, 255)), max_size=8))
def test_changed_bytes_are_read_or_refused(changes):
    raw = bytearray(GOOD)
    for at, byte in changes:
        raw[at] = byte
    _read(bytes(raw))


@given(st.integers(0, len(GOOD)), st.binary(max_size=40))
def test_bytes_cut_and_replaced_are_read_or_refused(end, tail):
    _read(GOOD[:end] + tail)


@given(st.binary(max_size=200))
def test_arbitrary_bytes_are_read_or_refused(raw):
    _read(raw)


def _read(raw):
    try:
        header = parse_onnx_header(raw)
    except ValueError:
        return
    assert all(tensor.elements >= 0 and tensor.nbytes >= 0 for tensor in header.tensors)
