"""Who spoke last: what agents' clients add after results is not said by the user."""

import pytest

from engine.text.tool_calls.last_speaker import follows_result, is_of_user

USER = {"role": "user", "content": "Run the tests."}
CALL = {"role": "assistant", "content": "", "tool_calls": []}
RESULT = {"role": "tool", "content": "2 failed", "tool_call_id": "c1"}
REMINDER = "<system-reminder>\nThe list of tasks is empty.\n</system-reminder>"


def user(*texts):
    return {"role": "user", "content": [{"type": "text", "text": text} for text in texts]}


@pytest.mark.parametrize(
    ("added", "about_result"),
    [
        ([], True),
        ([user(REMINDER)], True),
        ([user(REMINDER, "\n\n" + REMINDER)], True),
        ([{"role": "system", "content": "Be brief."}], True),
        ([user(REMINDER), {"role": "system", "content": "Be brief."}], True),
        ([user("Now stop.")], False),
        ([user(REMINDER, "\n\nNow stop.")], False),
        ([user("Now stop."), {"role": "system", "content": "Be brief."}], False),
        ([user("")], False),
        ([{"role": "assistant", "content": "Two tests failed."}], False),
    ],
)
def test_the_answer_is_about_results_until_the_user_speaks(added, about_result):
    assert follows_result([USER, CALL, RESULT, *added]) is about_result


@pytest.mark.parametrize(
    "messages", [[], [USER], [{"role": "system", "content": "Be brief."}, USER]]
)
def test_without_a_result_the_answer_is_about_none(messages):
    assert not follows_result(messages)


@pytest.mark.parametrize(
    "text", ["<system-reminder>", REMINDER[:-1], REMINDER + "x", "x" + REMINDER]
)
def test_a_text_that_only_looks_like_a_reminder_is_of_the_user(text):
    assert is_of_user({"role": "user", "content": text})


def test_an_image_is_of_the_user():
    assert is_of_user({"role": "user", "content": [{"type": "image"}]})


def test_many_reminders_are_read_in_one_pass():
    assert not is_of_user({"role": "user", "content": REMINDER * 20_000})
    assert is_of_user({"role": "user", "content": REMINDER * 20_000 + "x"})
