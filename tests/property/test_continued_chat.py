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


WRITES_CALLS = (
    "{{ '<|im_start|>' + m['role'] + (m['content'] or '') }}"
    "{% for c in m.get('tool_calls') or [] %}{{ c['function']['name'] }}{% endfor %}"
)
REFUSES = (
    "{% for m in messages %}{% if m['role'] == 'tool' and not messages[loop.index0 - 1].get("
    "'tool_calls') %}{{ raise_exception('a result without its call') }}{% endif %}"
    f"{WRITES_CALLS}{{{{ '<|im_end|>' }}}}{{% endfor %}}"
)
NAMES_RESULTS = (
    "{% set ns = namespace(name='none') %}{% for m in messages %}"
    "{% for c in m.get('tool_calls') or [] %}{% set ns.name = c['function']['name'] %}{% endfor %}"
    f"{WRITES_CALLS}{{% if m['role'] == 'tool' %}}{{{{ ' of ' + ns.name }}}}{{% endif %}}"
    "{{ '<|im_end|>' }}{% endfor %}"
)
CALL = {"id": "abcdef123", "type": "function", "function": {"name": "f", "arguments": {}}}
CALLED = [
    {"role": "user", "content": "a"},
    {"role": "assistant", "content": "", "reasoning_content": "b", "tool_calls": [CALL]},
    {"role": "tool", "content": "c", "tool_call_id": "abcdef123"},
]


@pytest.mark.parametrize("template", [REFUSES, NAMES_RESULTS])
@pytest.mark.parametrize("ended", [[1, 2], [1, 2, IM_END]])
def test_a_result_that_needs_its_call_follows_the_kept_tokens(template, ended):
    tokenizer = byte_tokenizer(template=template)
    ids = tokenizer.encode_chat_after(CALLED, 1, ended)
    whole = tokenizer.encode_chat(CALLED)
    assert ids[:3] == [1, 2, IM_END]
    assert ids[3:] == whole[whole.index(IM_END, whole.index(ord("f"))) + 1 :]
    assert whole[-len(ids[3:]) :] == ids[3:]


def test_a_call_that_the_template_does_not_end_keeps_nothing():
    tokenizer = byte_tokenizer(template=REFUSES.replace("<|im_end|>", ""))
    assert tokenizer.encode_chat_after(CALLED, 1, [1, 2]) is None


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
