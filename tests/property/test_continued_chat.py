"""A prompt that begins with computed tokens is the one that the template writes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.api.errors import InvalidRequest
from tests.fakes.chat_toys import ALTERNATING, CHATML, TRIMMED
from tests.server.toy_tokenizer import CONTROLS, IM_END, byte_tokenizer

texts = st.lists(
    st.sampled_from([*CONTROLS, "<|im_", "end|>", "</think>", "<", " ", "\n", "é", "hello"])
).map("".join)
answers = texts.map(str.strip).filter(bool)  # templates trim answers, computed ids are not trimmed
TEMPLATES = {"chatml": CHATML, "trimmed": TRIMMED, "alternating": ALTERNATING}


@pytest.mark.parametrize("template", TEMPLATES.values(), ids=TEMPLATES)
@given(
    turns=st.lists(st.tuples(texts, answers), min_size=1, max_size=3), last=texts, data=st.data()
)
def test_the_ids_are_those_of_the_whole_rendering(template, turns, last, data):
    tokenizer = byte_tokenizer(template=template)
    messages = []
    for question, answer in turns:
        messages += [
            {"role": "user", "content": question},
            {"role": "assistant", "content": answer},
        ]
    messages.append({"role": "user", "content": last})
    at = data.draw(
        st.sampled_from([i for i, one in enumerate(messages) if one["role"] == "assistant"])
    )
    prompt = tokenizer.encode_chat(messages[:at])
    computed = [*prompt, *tokenizer.encode(messages[at]["content"])]
    for ended in (computed, [*computed, IM_END]):
        ids = tokenizer.encode_chat_after(messages, at, ended)
        assert ids is None or ids == tokenizer.encode_chat(messages)
    if template is CHATML:
        assert ids is not None


def test_a_template_that_writes_no_earlier_answer_keeps_nothing():
    template = "{{ '<|im_start|>' + messages[-1]['content'] }}"
    tokenizer = byte_tokenizer(template=template)
    messages = [
        {"role": "user", "content": "a"},
        {"role": "assistant", "content": "b"},
        {"role": "user", "content": "c"},
    ]
    assert tokenizer.encode_chat_after(messages, 1, [1, 2]) is None


def test_a_template_that_refuses_a_result_without_its_call_keeps_nothing():
    template = (
        "{% for m in messages %}{% if m['role'] == 'tool' and not messages[loop.index0 - 1].get("
        "'tool_calls') %}{{ raise_exception('a result without its call') }}{% endif %}"
        "{{ '<|im_start|>' + m['role'] + (m['content'] or '') }}"
        "{% for c in m.get('tool_calls') or [] %}{{ c['function']['name'] }}{% endfor %}"
        "{{ '<|im_end|>' }}{% endfor %}"
    )
    tokenizer = byte_tokenizer(template=template)
    call = {"id": "abcdef123", "type": "function", "function": {"name": "f", "arguments": {}}}
    messages = [
        {"role": "user", "content": "a"},
        {"role": "assistant", "content": "", "tool_calls": [call]},
        {"role": "tool", "content": "c", "tool_call_id": "abcdef123"},
    ]
    assert tokenizer.encode_chat(messages)
    assert tokenizer.encode_chat_after(messages, 1, [1, 2]) is None


def test_a_text_that_is_no_unicode_is_refused_as_ever():
    tokenizer = byte_tokenizer()
    messages = [
        {"role": "user", "content": "a"},
        {"role": "assistant", "content": "b"},
        {"role": "user", "content": "\ud800"},
    ]
    with pytest.raises(InvalidRequest):
        tokenizer.encode_chat(messages)
    assert tokenizer.encode_chat_after(messages, 1, [1]) is None  # which leads to the call above
