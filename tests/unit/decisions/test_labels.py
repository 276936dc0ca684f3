"""Labels of answers: words, letters, letters with digits."""

import math

import pytest

from engine.decisions.labels import Labels, NoLabels, letters


class Words:
    """A tokenizer whose tokens are words with the space before them; others are split into characters."""

    def __init__(self, *words):
        self.ids = {word: 1000 + at for at, word in enumerate(words)}

    def __call__(self, text):
        found, left = [], text
        while left:
            word = next((one for one in self.ids if left.startswith(one)), left[0])
            found.append(self.ids[word] if word in self.ids else ord(word))
            left = left[len(word) :]
        return found


LETTERS = [f" {chr(65 + at)}" for at in range(26)]
WORDS = (" yes", " Yes", " no", " No", "Answer", *LETTERS)


def test_a_word_is_read_in_all_its_spellings():
    tokenize = Words(*WORDS)
    labels = Labels(tokenize, 2)
    assert labels.prefix == "Answer:"
    assert labels.word_ids == tuple(tokenize.ids[one] for one in WORDS[:4])
    yes, no = labels.word_log_probabilities([math.log(one) for one in (0.1, 0.3, 0.2, 0.0001)])
    assert math.exp(yes) == pytest.approx(0.4)
    assert math.exp(no) == pytest.approx(0.2001)


def test_masked_spellings_count_nothing():
    labels = Labels(Words(*WORDS), 2)
    yes, no = labels.word_log_probabilities([-math.inf, -math.inf, -1.0, -math.inf])
    assert (yes, no) == (-math.inf, -1.0)


def test_a_tokenizer_without_one_of_the_words_has_letters():
    labels = Labels(Words(" yes", "Answer", *LETTERS), 2)
    assert labels.word_ids == ()
    assert len(labels.letter_ids) == 26


def test_letters_stand_at_the_start_where_the_prefix_does_not_keep_its_tokens():
    found = letters(lambda text: [ord(one) for one in text])
    assert (found.prefix, found.ids[:2]) == ((), (65, 66))


def test_a_tokenizer_without_letters_is_refused():
    with pytest.raises(NoLabels, match="letters") as caught:
        letters(lambda text: [1, 2, 3])
    assert (caught.value.param, caught.value.code) == ("model", "model_not_supported")


def test_more_options_have_a_letter_and_a_digit():
    labels = Labels(lambda text: [ord(one) for one in text], 30)
    assert labels.names(30)[:11] == [*(f"A{digit}" for digit in range(10)), "B0"]
    assert labels.begun(30) == [(), (65,), (66,), (67,)]
    row = [math.log(1 / 26)] * 26 + [math.log(0.1)] * 10
    found = labels.log_probabilities(30, [row] * 4)
    assert [math.exp(one) for one in found] == pytest.approx([1 / 260] * 30)


def test_a_tokenizer_that_joins_digits_to_letters_is_refused_where_they_are_needed():
    tokenize = Words("Answer", " A1", *LETTERS)
    assert len(Labels(tokenize, 26).letter_ids) == 26
    with pytest.raises(NoLabels, match="digits"):
        Labels(tokenize, 27)
