"""Writes the embedding model as sentence-transformers, ONNX Runtime and OpenVINO read it: the same weights.

    python minilm_formats.py MINILM MODELS    # in the environment of the peers of retrieval

MINILM has config.json, model.safetensors and tokenizer.json. Written below MODELS: `minilm` for
sentence-transformers, `minilm.onnx` in fp32, `minilm_int8.onnx` by ONNX Runtime's dynamic quantization, and
`minilm_ov` and `minilm_ov_int8` for OpenVINO, the latter quantized by NNCF with paragraphs of this
repository's documentation.
"""

import json
import shutil
import sys
from pathlib import Path

import nncf
import openvino as ov
import torch
from onnxruntime.quantization import QuantType, quantize_dynamic
from tokenizers import Tokenizer
from transformers import BertModel, PreTrainedTokenizerFast

CALIBRATION_TEXTS = 200
MODULES = [
    {"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.models.Transformer"},
    {"idx": 1, "name": "1", "path": "1_Pooling", "type": "sentence_transformers.models.Pooling"},
    {
        "idx": 2,
        "name": "2",
        "path": "2_Normalize",
        "type": "sentence_transformers.models.Normalize",
    },
]


class States(torch.nn.Module):
    """The last layer's states: pooling is left to the caller, as in optimum's export."""

    def __init__(self, model: BertModel) -> None:
        super().__init__()
        self.model = model

    def forward(
        self, input_ids: torch.Tensor, attention_mask: torch.Tensor, token_type_ids: torch.Tensor
    ) -> torch.Tensor:
        """States, `[batch, length, width]`."""
        return self.model(input_ids, attention_mask, token_type_ids).last_hidden_state


def sentence_transformers_folder(source: Path, target: Path) -> None:
    """The folder with the modules that the published model has: mean pooling and normalisation."""
    if (target / "modules.json").exists():
        return
    target.mkdir(parents=True, exist_ok=True)
    for name in ("config.json", "model.safetensors"):
        shutil.copy(source / name, target / name)
    tokenizer = Tokenizer.from_file(str(source / "tokenizer.json"))
    # The file enables padding and truncation at 128 tokens; the published limit is 256.
    tokenizer.no_padding()
    tokenizer.no_truncation()
    PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        model_max_length=256,
        cls_token="[CLS]",
        sep_token="[SEP]",
        pad_token="[PAD]",
        unk_token="[UNK]",
        mask_token="[MASK]",
    ).save_pretrained(target)
    (target / "sentence_bert_config.json").write_text(
        json.dumps({"max_seq_length": 256, "do_lower_case": False})
    )
    for folder in ("1_Pooling", "2_Normalize"):
        (target / folder).mkdir(exist_ok=True)
    (target / "1_Pooling" / "config.json").write_text(
        json.dumps({"word_embedding_dimension": 384, "pooling_mode_mean_tokens": True})
    )
    (target / "modules.json").write_text(json.dumps(MODULES))


def onnx_model(source: Path, target: Path) -> None:
    """The encoder in fp32."""
    if target.exists():
        return
    model = States(BertModel.from_pretrained(source, attn_implementation="eager").eval())
    ids = torch.ones(2, 16, dtype=torch.int64)
    axes = {0: "batch", 1: "length"}
    names = ["input_ids", "attention_mask", "token_type_ids"]
    torch.onnx.export(
        model,
        (ids, ids, ids * 0),
        str(target),
        input_names=names,
        output_names=["states"],
        dynamic_axes=dict.fromkeys((*names, "states"), axes),
        dynamo=False,
        opset_version=17,
    )


def openvino_models(onnx: Path, folder: Path, models: Path) -> None:
    """The encoder for OpenVINO in fp32, and in int8 after calibration."""
    plain, quantized = models / "minilm_ov", models / "minilm_ov_int8"
    if not plain.exists():
        ov.save_model(ov.convert_model(onnx), plain / "model.xml", compress_to_fp16=False)
    if quantized.exists():
        return
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.enable_truncation(256)
    data = nncf.Dataset([inputs(tokenizer, text) for text in calibration_texts()])
    model = nncf.quantize(
        ov.Core().read_model(plain / "model.xml"),
        data,
        model_type=nncf.ModelType.TRANSFORMER,
        subset_size=CALIBRATION_TEXTS,
    )
    ov.save_model(model, quantized / "model.xml")


def inputs(tokenizer: Tokenizer, text: str) -> dict[str, object]:
    """One text as the model's inputs."""
    ids = torch.tensor([tokenizer.encode(text).ids])
    return {
        "input_ids": ids.numpy(),
        "attention_mask": torch.ones_like(ids).numpy(),
        "token_type_ids": torch.zeros_like(ids).numpy(),
    }


def calibration_texts() -> list[str]:
    """Paragraphs of this repository's documentation, none of which is in the benchmark."""
    pages = sorted(Path(__file__).resolve().parents[2].joinpath("docs").glob("*.md"))
    texts = [text for page in pages for text in page.read_text().split("\n\n") if len(text) > 80]
    return texts[:: max(1, len(texts) // CALIBRATION_TEXTS)][:CALIBRATION_TEXTS]


def main() -> None:
    source, models = Path(sys.argv[1]), Path(sys.argv[2])
    models.mkdir(parents=True, exist_ok=True)
    sentence_transformers_folder(source, models / "minilm")
    onnx_model(source, models / "minilm.onnx")
    if not (models / "minilm_int8.onnx").exists():
        quantize_dynamic(
            models / "minilm.onnx",
            models / "minilm_int8.onnx",
            weight_type=QuantType.QInt8,
            per_channel=True,
        )
    openvino_models(models / "minilm.onnx", models / "minilm", models)


if __name__ == "__main__":
    main()
