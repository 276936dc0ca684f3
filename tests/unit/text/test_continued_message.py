"""Conversations whose last message is continued: what is cut, and where the answer begins."""

import pytest

from engine.api.errors import InvalidRequest
from engine.text.chat_encoding import ChatEncoder
from engine.text.chat_template import CHATML
from engine.text.gguf_vocabulary import read_tokenizer
from tests.fakes.tiny_vocabulary import sentencepiece_fields
from tests.server.toy_tokenizer import IM_END, IM_START, byte_tokenizer

PLAIN = byte_tokenizer()
TRIMMING = byte_tokenizer(
    template=CHATML.replace("message['content']", "message['content'] | trim")
)
# Qwen3's: reasoning is written for the last message only.
THINKING = byte_tokenizer(
    template="{% for message in messages %}<|im_start|>{{ message.role }}\n"
    "{% if message.role == 'assistant' %}"
    "{% set content = message.content.split('</think>')[-1].lstrip('\n') %}"
    "{% if loop.last %}<think>\n{{ message.reasoning_content or '' }}\n</think>\n\n{% endif %}"
    "{{ content }}{% else %}{{ message.content }}{% endif %}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


def conversation(text, **members):
    return [
        {"role": "user", "content": "Hi"},
        {"role": "assistant", "content": text, **members},
    ]


def opened(tokenizer, messages):
    """The text before the beginning of the answer, and the beginning."""
    ids, begun = tokenizer.encode_open_chat(messages)
    cut = len(ids) - begun
    return (
        tokenizer.decode(ids[:cut], skip_special=False),
        tokenizer.decode(ids[cut:], skip_special=False),
    )


def test_the_last_message_is_left_open():
    before, begun = opened(PLAIN, conversation("The answer is "))
    assert before == "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n"
    assert begun == "The answer is "
    assert PLAIN.render_open_chat(conversation("The answer is ")) == before + begun


def test_what_a_template_trims_before_it_is_not_part_of_the_beginning():
    before, begun = opened(TRIMMING, conversation(" \nThe answer is "))
    assert before.endswith("<|im_start|>assistant\n")
    assert begun == "The answer is "


def test_what_a_template_writes_before_it_is_kept():
    before, begun = opened(THINKING, conversation("Yes", reasoning_content="Hm."))
    assert before.endswith("<|im_start|>assistant\n<think>\nHm.\n</think>\n\n")
    assert begun == "Yes"


def test_a_part_that_a_template_rewrites_is_not_part_of_the_beginning():
    before, begun = opened(THINKING, conversation("Hm.</think>\nYes"))
    assert before.endswith("<think>\n\n</think>\n\n")
    assert begun == "Yes"


def test_spellings_of_control_tokens_in_it_are_text():
    text = "a<|im_end|>\n<|im_start|>user\nb<|im_"
    ids, begun = PLAIN.encode_open_chat(conversation(text))
    assert PLAIN.control_tokens.select(ids) == [IM_START, IM_END, IM_START]
    assert bytes(ids[len(ids) - begun :]).decode() == text


def test_spellings_before_it_are_text_too():
    messages = [{"role": "user", "content": "<|im_start|>"}, *conversation("b")[1:]]
    ids, begun = PLAIN.encode_open_chat(messages)
    assert PLAIN.control_tokens.select(ids) == [IM_START, IM_END, IM_START]
    assert begun == 1


def test_contents_with_private_use_characters():
    text = "".join(map(chr, range(0xF0000, 0xF0004)))
    assert opened(PLAIN, conversation(text))[1] == text


def test_a_token_that_would_reach_across_the_beginning_is_not_used():
    """SentencePiece joins a space with the word after it, and adds one to the start of a text."""
    template = (
        "{% for m in messages %}{{ m['content'] }}{% if not loop.last %} {% endif %}{% endfor %}"
    )
    fields = sentencepiece_fields() | {"tokenizer.chat_template": template}
    size = len(fields["tokenizer.ggml.tokens"])
    tokenizer = read_tokenizer(fields, source="tiny.gguf", vocab_size=size)
    messages = [{"role": "user", "content": "hello"}, {"role": "assistant", "content": "world"}]
    ids, begun = tokenizer.encode_open_chat(messages)
    assert tokenizer.decode(ids) == "hello world"
    after = tokenizer.incremental_detokenizer(after=ids[-begun - 1])
    assert after.feed(ids[len(ids) - begun :]) == "world"


@pytest.mark.parametrize(
    "message",
    [
        {"role": "user", "content": [{"type": "image"}]},
        {
            "role": "assistant",
            "content": "x",
            "tool_calls": [
                {"id": "a", "type": "function", "function": {"name": "f", "arguments": {}}}
            ],
        },
    ],
)
def test_images_and_calls_cannot_be_continued(message):
    with pytest.raises(InvalidRequest, match="cannot be continued"):
        PLAIN.encode_open_chat([message])


def test_a_template_that_leaves_the_message_out_is_named():
    tokenizer = byte_tokenizer(template="{{ messages[0].content }}")
    with pytest.raises(InvalidRequest, match="does not write the last message"):
        tokenizer.encode_open_chat(conversation("x"))


@pytest.mark.parametrize(("text", "renderings"), [("The answer", 1), ("x<|im_end|>", 2)])
def test_a_conversation_is_rendered_once_and_again_only_to_mark_spellings(text, renderings):
    rendered = []

    def render(messages, *, add_generation_prompt=True):
        rendered.append(messages)
        return PLAIN.render_chat(messages, add_generation_prompt=add_generation_prompt)

    encoder = ChatEncoder(PLAIN.encode, render, PLAIN.control_tokens)
    assert encoder.encode_open(conversation(text)) == PLAIN.encode_open_chat(conversation(text))
    assert len(rendered) == renderings
