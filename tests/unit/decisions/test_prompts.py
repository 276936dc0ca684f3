"""Prompts of decisions: a whole number of blocks, and tails without what all questions share."""

import pytest

from engine.api.decisions import choice, predicate, score
from engine.decisions.labels import Labels
from engine.decisions.preparing import input_ids
from engine.decisions.prompts import INSTRUCTION, filled, instructed, tails
from tests.server.toy_tokenizer import byte_tokenizer
from tests.unit.decisions.test_labels import WORDS, Words


@pytest.mark.parametrize("size", range(1, 33))
def test_a_shared_prompt_is_a_whole_number_of_blocks(size):
    tokenizer = byte_tokenizer()
    ids = input_ids(tokenizer, "a" * size)
    found = filled(ids, tokenizer.encode_rest, 16)
    assert len(found) % 16 == 0
    assert len(found) - len(ids) < 16
    kept = tokenizer.decode(found, skip_special=False)
    assert kept.replace("\n", "") == tokenizer.decode(ids, skip_special=False).replace("\n", "")
    assert kept.endswith(f"{INSTRUCTION}<|im_end|>\n<|im_start|>assistant\n")


def test_an_instruction_in_the_text_itself_is_not_mistaken_for_ours():
    tokenizer = byte_tokenizer()
    ids = input_ids(tokenizer, INSTRUCTION)
    found = tokenizer.decode(filled(ids, tokenizer.encode_rest, 64), skip_special=False)
    assert found.count(INSTRUCTION) == 2
    assert found.startswith(f"<|im_start|>user\n{INSTRUCTION}\n")


def test_a_prompt_whose_instruction_has_other_tokens_stays():
    assert filled([1, 2, 3], byte_tokenizer().encode_rest, 16) == (1, 2, 3)


def test_a_text_without_words_is_no_separator():
    assert instructed(" ") == INSTRUCTION


def test_a_statement_is_asked_once_and_without_options():
    found = tails(predicate(" It rains. "), Labels(Words(*WORDS), 2), list)
    assert ["".join(one) for one in found] == ["It rains.\nAnswer:"]


def test_options_are_asked_in_both_orders_with_their_descriptions():
    labels = Labels(Words(*WORDS), 3)
    question = choice("Which?", {"a": None, "b": "the second", "c": None})
    found = ["".join(one) for one in tails(question, labels, list)]
    assert found == [
        "Which?\nA) a\nB) b: the second\nC) c\nAnswer:",
        "Which?\nA) c\nB) b: the second\nC) a\nAnswer:",
    ]


def test_many_levels_say_what_their_labels_are():
    labels = Labels(byte_tokenizer().encode, 27)
    text = "".join(map(chr, tails(score("How?", range(27)), labels, byte_tokenizer().encode)[0]))
    assert text.endswith("\nC6) 26\nAnswer with one letter and one digit.\n")


THINKING = """
{%- for message in messages %}
    {{- '<|im_start|>' + message.role + '\\n' }}
    {%- if message.role == 'assistant' %}{{- '<think>\\n\\n</think>\\n\\n' }}{%- endif %}
    {{- message.content + '<|im_end|>\\n' }}
{%- endfor %}
{%- if add_generation_prompt %}{{- '<|im_start|>assistant\\n<think>\\n' }}{%- endif %}"""


def test_questions_stand_behind_the_reasoning():
    tokenizer = byte_tokenizer(template=THINKING)
    text = tokenizer.decode(input_ids(tokenizer, "Late!"), skip_special=False)
    assert text.endswith("<|im_start|>assistant\n<think>\n\n</think>\n\n")
    assert text.count("<think>") == 1
