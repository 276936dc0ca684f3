import json

import pytest
from tokenizers import AddedToken, Tokenizer, decoders, models, normalizers, processors
from transformers import PreTrainedTokenizerFast  # which imports no torch

from engine.api.errors import ModelError
from engine.files.fields import Fields
from engine.text.tokenizer_json import read_tokenizer
from tests.fakes.tiny_checkpoint import tiny_config, tiny_encoder, vocab_size, write_checkpoint
from tests.fakes.tiny_vocabulary import CHATML
from tests.fakes.tool_template import TOOL_TEMPLATE


def tokenizer_of(directory, *, size=None, config=None):
    fields = Fields(config or tiny_config(), source="config.json")
    return read_tokenizer(directory, fields, vocab_size=size or vocab_size())


def test_ids_text_and_chat_are_those_of_transformers(tmp_path):
    directory = write_checkpoint(tmp_path)
    ours, theirs = tokenizer_of(directory), PreTrainedTokenizerFast.from_pretrained(directory)
    for text in ("in the hell", "é 日本 <|im_end|>", ""):
        ids = ours.encode(text, special=True)
        assert ids == theirs.encode(text, add_special_tokens=False)
        assert ours.decode(ids, skip_special=False) == theirs.decode(ids)
    messages = [{"role": "user", "content": "the"}]
    assert ours.render_chat(messages) == theirs.apply_chat_template(
        messages, tokenize=False, add_generation_prompt=True
    )


def test_end_tokens_come_from_every_config(tmp_path):
    directory = write_checkpoint(
        tmp_path,
        settings={"eos_token": {"content": "<|im_end|>", "__type": "AddedToken"}},
        files={"generation_config.json": json.dumps({"eos_token_id": [5, 6]})},
    )
    assert tokenizer_of(directory, config=tiny_config(eos_token_id=7)).eos_ids == {0, 2, 5, 6, 7}


@pytest.mark.parametrize("ids", ["2", [None], {"a": 1}, 1.5])
def test_end_tokens_that_are_no_ids_are_refused(tmp_path, ids):
    directory = write_checkpoint(tmp_path)
    with pytest.raises(ModelError, match="eos_token_id"):
        tokenizer_of(directory, config=tiny_config(eos_token_id=ids))


@pytest.mark.parametrize(
    ("ids", "notes"),
    [
        (-1, []),
        ([0, 10**6], ["eos_token_id is 1000000, outside the vocabulary of 265: it is ignored."]),
    ],
)
def test_end_tokens_outside_the_vocabulary_are_ignored(tmp_path, ids, notes):
    tokenizer = tokenizer_of(write_checkpoint(tmp_path), config=tiny_config(eos_token_id=ids))
    assert tokenizer.eos_ids == {0, 2}
    assert list(tokenizer.notes) == notes


def test_added_tokens_without_a_row_of_the_embedding_are_text(tmp_path):
    """Training scripts add a padding token and do not resize the embedding."""
    directory = write_checkpoint(tmp_path)
    encoder = tiny_encoder()
    encoder.add_tokens([AddedToken("[PAD]", special=True, normalized=False)])
    (directory / "tokenizer.json").write_text(encoder.to_str())
    tokenizer = tokenizer_of(directory)
    ids = tokenizer.encode("[PAD]<|im_end|>", special=True)
    assert max(ids) < vocab_size()
    assert ids[-1] == 2
    assert tokenizer.decode(ids, skip_special=False) == "[PAD]<|im_end|>"
    (note,) = tokenizer.notes
    assert note == f"The embedding has {vocab_size()} rows and none for [PAD]: they are ignored."


def test_a_blank_template_file_is_as_if_missing(tmp_path):
    files = {"chat_template.jinja": "\n  "}
    directory = write_checkpoint(tmp_path, settings={"chat_template": CHATML}, files=files)
    assert tokenizer_of(directory).has_chat_template


def test_bos_is_added_if_the_post_processor_adds_it(tmp_path):
    directory = write_checkpoint(tmp_path, settings={"bos_token": "<|im_start|>"})
    assert not tokenizer_of(directory).add_bos
    encoder = tiny_encoder()
    encoder.post_processor = processors.TemplateProcessing(
        single="<|im_start|> $A", special_tokens=[("<|im_start|>", 1)]
    )
    (directory / "tokenizer.json").write_text(encoder.to_str())
    tokenizer = tokenizer_of(directory)
    assert tokenizer.add_bos
    assert tokenizer.bos_id == 1
    assert 1 not in tokenizer.encode("the", special=True)  # the caller prepends it


def test_the_config_takes_precedence_for_bos(tmp_path):
    settings = {"bos_token": "<|im_start|>", "add_bos_token": True}
    assert tokenizer_of(write_checkpoint(tmp_path, settings=settings)).add_bos


@pytest.mark.parametrize(
    ("settings", "files"),
    [
        ({"chat_template": CHATML}, {}),
        ({"chat_template": "nonsense"}, {"chat_template.jinja": CHATML}),
        (
            {
                "chat_template": [
                    {"name": "tool_use", "template": "nonsense"},
                    {"name": "default", "template": CHATML},
                ]
            },
            {},
        ),
        (
            {"eos_token": "<|im_end|>"},
            {"chat_template.json": json.dumps({"chat_template": CHATML})},
        ),
    ],
    ids=["string", "file", "named", "processor"],
)
def test_templates_are_found_in_all_files_of_transformers(tmp_path, settings, files):
    tokenizer = tokenizer_of(write_checkpoint(tmp_path, settings=settings, files=files))
    assert tokenizer.has_chat_template
    rendered = tokenizer.render_chat([{"role": "user", "content": "x"}])
    assert rendered == "<|im_start|>user\nx<|im_end|>\n<|im_start|>assistant\n"


NAMED = [{"name": "default", "template": CHATML}, {"name": "tool_use", "template": TOOL_TEMPLATE}]


@pytest.mark.parametrize(
    ("settings", "files"),
    [
        ({"chat_template": NAMED}, {}),
        (
            {"chat_template": CHATML},
            {"additional_chat_templates/tool_use.jinja": TOOL_TEMPLATE},
        ),
    ],
    ids=["named", "file"],
)
def test_the_template_for_tools_is_found(tmp_path, settings, files):
    directory = write_checkpoint(tmp_path, settings=settings, files=files)
    tokenizer = tokenizer_of(directory)
    assert tokenizer.chat_template == CHATML
    assert tokenizer.tool_template == TOOL_TEMPLATE
    plain = write_checkpoint(tmp_path / "plain", settings={"chat_template": CHATML})
    assert tokenizer_of(plain).tool_template == CHATML
    assert tokenizer_of(plain).fingerprint != tokenizer.fingerprint


def test_without_a_template_there_is_none(tmp_path):
    assert not tokenizer_of(
        write_checkpoint(tmp_path, settings={"eos_token": "x"})
    ).has_chat_template


def test_custom_tokenizer_code_is_rejected(tmp_path):
    directory = write_checkpoint(tmp_path, settings={"auto_map": {"AutoTokenizer": "x.Y"}})
    with pytest.raises(ModelError, match="auto_map"):
        tokenizer_of(directory)


def test_a_vocabulary_beyond_the_embedding_is_refused(tmp_path):
    with pytest.raises(ModelError, match=r"tokenizer\.json has token"):
        tokenizer_of(write_checkpoint(tmp_path), size=10)


def test_added_tokens_of_a_gap_are_found_by_their_ids(tmp_path):
    encoder = tiny_encoder()
    encoder.add_tokens([AddedToken("<tool>", special=False), AddedToken("<|x|>", special=True)])
    directory = write_checkpoint(tmp_path)
    (directory / "tokenizer.json").write_text(encoder.to_str())
    tokenizer = tokenizer_of(directory, size=vocab_size() + 8)
    tool, control = tokenizer.encode("<tool><|x|>", special=True)
    assert tokenizer.token_bytes(tool) == b"<tool>"
    assert tokenizer.encode("<tool>") == [tool]  # not a control token: always one word
    assert control not in tokenizer.encode("<|x|>")
    assert tokenizer.decode([tool, control]) == "<tool>"


def sentencepiece_encoder():
    words = ["<unk>", "<0x0A>", "▁", "a", "b", "▁a", "ab"]
    encoder = Tokenizer(
        models.BPE(
            {word: i for i, word in enumerate(words)},
            [("▁", "a"), ("a", "b")],
            unk_token="<unk>",
            byte_fallback=True,
            fuse_unk=True,
        )
    )
    encoder.normalizer = normalizers.Sequence(
        [normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")]
    )
    encoder.decoder = decoders.Sequence(
        [
            decoders.Replace("▁", " "),
            decoders.ByteFallback(),
            decoders.Fuse(),
            decoders.Strip(" ", 1, 0),
        ]
    )
    return encoder


def test_sentencepiece_vocabularies(tmp_path):
    encoder = sentencepiece_encoder()
    directory = write_checkpoint(tmp_path)
    (directory / "tokenizer.json").write_text(encoder.to_str())
    tokenizer = tokenizer_of(directory)
    ids = tokenizer.encode("a ab\n")
    assert ids == encoder.encode("a ab\n").ids
    assert tokenizer.decode(ids) == "a ab\n" == encoder.decode(ids)


def test_other_kinds_are_refused_by_name(tmp_path):
    encoder = tiny_encoder()
    encoder.decoder = decoders.WordPiece()
    directory = write_checkpoint(tmp_path)
    (directory / "tokenizer.json").write_text(encoder.to_str())
    with pytest.raises(ModelError, match="WordPiece"):
        tokenizer_of(directory)


def test_the_fingerprint_depends_on_tokens_and_template(tmp_path):
    first = tokenizer_of(write_checkpoint(tmp_path / "a")).fingerprint
    assert tokenizer_of(write_checkpoint(tmp_path / "b")).fingerprint == first
    other = write_checkpoint(tmp_path / "c", files={"chat_template.jinja": "x"})
    assert tokenizer_of(other).fingerprint != first
