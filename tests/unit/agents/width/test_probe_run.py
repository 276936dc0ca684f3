"""What candidates can do when they are run, each as an outcome."""

import sys
from pathlib import Path

import pytest

from agents.width.probe_run import Call, ProbeFailed, Setting, run_calls

SETTING = Setting(call_s=0.3)


async def outcomes(code, *calls, setting=SETTING):
    (run,) = await run_calls(setting, [code], [Call(one) for one in calls])
    assert not run.problem
    return run.outcomes


async def test_a_value_is_an_outcome_with_what_was_printed():
    (one,) = await outcomes("def f(x):\n    print('hey')\n    return [x, (1.5, None)]\n", "f('a')")
    assert one.value == [
        "list",
        [["str", "a"], ["tuple", [["float", "1.5"], ["NoneType", "None"]]]],
    ]
    assert one.shown == "['a', (1.5, None)]"
    assert one.printed == "hey\n"


async def test_a_text_may_have_half_of_a_surrogate_pair():
    code = "def f():\n    print(chr(0xD800))\n    return chr(0xD800)\n"
    (one,) = await outcomes(code, "f()")
    assert (one.shown, one.printed) == (r"'\ud800'", "?\n")


async def test_a_result_that_a_candidate_wrote_is_refused():
    code = """def f():
    import os, signal, sys
    open(sys.argv[2], "w").write("[{}]")
    os.kill(os.getppid(), signal.SIGKILL)
"""
    with pytest.raises(ProbeFailed, match="not usable"):
        await outcomes(code, "f()")


async def test_one_start_serves_all_candidates():
    codes = [f"def f():\n    return {number}\n" for number in range(5)]
    runs = await run_calls(SETTING, codes, [Call("f()")])
    assert [run.outcomes[0].shown for run in runs] == ["0", "1", "2", "3", "4"]


async def test_an_exception_is_an_outcome_with_its_line():
    (one,) = await outcomes("def f(x):\n    y = x\n    return y[5]\n", "f([1])")
    assert (one.error, one.message, one.line) == ("IndexError", "list index out of range", 3)


@pytest.mark.parametrize(
    ("body", "error"),
    [
        ("while True: pass", "TooSlow"),
        ("while True:\n        try: pass\n        except: pass", "TooSlow"),
        ("import time; time.sleep(60)", "TooSlow"),
        ("return 10 ** 10 ** 9", "TooSlow"),
        ("import sys; sys.exit(0)", "SystemExit"),
        ("raise KeyboardInterrupt", "KeyboardInterrupt"),
        ("import os; os._exit(0)", "Ended"),
        ("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", "Ended"),
        ("return bytearray(10 ** 10)", "MemoryError"),
        ("return f(x)", "RecursionError"),
        ("return input()", "EOFError"),
        ("open('/etc/shadow')", "PermissionError"),
        ("import socket; socket.create_connection(('1.1.1.1', 80))", "PermissionError"),
    ],
)
async def test_whatever_ends_a_call_leaves_the_others(body, error):
    setting = Setting(call_s=0.2, silence_s=1.0)
    code = f"def f(x):\n    {body}\n\ndef g():\n    return 1\n"
    first, second = await outcomes(code, "f(1)", "g()", setting=setting)
    assert first.error == error
    assert second.shown == "1"


async def test_a_candidate_that_keeps_hanging_is_given_up():
    setting = Setting(call_s=0.2, silence_s=0.5)
    code = "import time\n\ndef f():\n    time.sleep(60)\n"
    found = await outcomes(code, *["f()"] * 6, setting=setting)
    assert {one.error for one in found} == {"TooSlow"}


async def test_code_that_cannot_be_loaded_is_a_problem():
    broken, missing, endless, ended = await run_calls(
        SETTING,
        ["def f(:", "import nothing_of_this_name", "while True: pass", "import os; os._exit(1)"],
        [Call("f()")],
    )
    assert broken.problem.startswith("SyntaxError")
    assert broken.line == 1
    assert missing.problem.startswith("ModuleNotFoundError")
    assert endless.problem.startswith("TooSlow")
    assert ended.problem == "Ended: the process ended"


async def test_a_main_guard_does_not_run():
    (one,) = await outcomes("x = 1\nif __name__ == '__main__':\n    x = 2\n", "x")
    assert one.shown == "1"


async def test_arguments_are_kept_as_they_are_after_the_call():
    code = "def f(x):\n    x.append(1)\n"
    call = Call("f(*a)", setup="a = ([0],)", after="a")
    (run,) = await run_calls(SETTING, [code], [call])
    assert run.outcomes[0].after == ["tuple", [["list", [["int", "0"], ["int", "1"]]]]]


async def test_calls_do_not_see_each_others_names():
    calls = [Call("x", setup="x = 1"), Call("x")]
    (run,) = await run_calls(SETTING, ["y = 1\n"], calls)
    assert [one.error for one in run.outcomes] == ["", "NameError"]


async def test_random_numbers_are_the_same_for_all_candidates():
    code = "import random\n\ndef f():\n    return random.random()\n"
    first, second = await run_calls(SETTING, [code, f"# other\n{code}"], [Call("f()")])
    assert first.outcomes[0].same(second.outcomes[0])


async def test_sets_and_dictionaries_have_no_order():
    codes = [
        "def f():\n    return {'a': {1, 2}, 'b': 0}",
        "def f():\n    return {'b': 0, 'a': {2, 1}}",
    ]
    first, second = await run_calls(SETTING, codes, [Call("f()")])
    assert first.outcomes[0].same(second.outcomes[0])


async def test_generators_and_objects_are_compared_by_what_they_hold():
    codes = [
        "class P:\n    def __init__(self):\n        self.x = 1\n\ndef f():\n    yield from [1, 2]\n\ndef g():\n    return P()\n",
        "class P:\n    def __init__(self):\n        self.x = 1\n\ndef f():\n    return iter([1, 2])\n\ndef g():\n    return P()\n",
    ]
    first, second = await run_calls(SETTING, codes, [Call("f()"), Call("g()")])
    assert first.outcomes[0].same(second.outcomes[0])
    assert first.outcomes[1].same(second.outcomes[1])


async def test_an_endless_generator_and_a_huge_value_are_cut():
    code = "import itertools\n\ndef f():\n    return itertools.count()\n\ndef g():\n    return list(range(100_000))\n"
    first, second = await outcomes(code, "f()", "g()")
    assert first.value[0] == "iterator"
    assert ["cut", ""] in second.value[1]
    assert not second.same(second)


async def test_a_recursive_value_is_cut():
    (one,) = await outcomes("def f():\n    x = []\n    x.append(x)\n    return x\n", "f()")
    assert one.value[0] == "list"


async def test_a_value_whose_representation_fails_is_an_outcome():
    code = "class P:\n    def __repr__(self):\n        raise ValueError('no')\n\ndef f():\n    return P()\n"
    (one,) = await outcomes(code, "f()")
    assert one.error == "ValueError"


async def test_printing_without_end_is_bounded():
    (one,) = await outcomes("def f():\n    print('x' * 1_000_000)\n", "f()")
    assert len(one.printed) == 20_000


async def test_modules_of_the_project_can_be_imported(tmp_path):
    package = tmp_path / "shop"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "rates.py").write_text("RATE = 3\n")
    setting = Setting(module="shop.prices", folders=(tmp_path,))
    (one,) = await outcomes("from .rates import RATE\n", "RATE", setting=setting)
    assert one.shown == "3"


async def test_the_project_is_not_written_to(tmp_path):
    code = f"def f():\n    open({str(tmp_path / 'new')!r}, 'w')\n"
    (one,) = await outcomes(code, "f()", setting=Setting(folders=(tmp_path,)))
    assert one.error in ("PermissionError", "OSError")
    assert list(tmp_path.iterdir()) == []


async def test_the_text_around_a_candidate_is_given():
    setting = Setting(module_text=lambda code: f"RATE = 4\n{code}")
    (one,) = await outcomes("def f():\n    return RATE\n", "f()", setting=setting)
    assert one.shown == "4"


async def test_an_interpreter_that_is_not_there_is_an_error():
    with pytest.raises(ProbeFailed):
        await run_calls(Setting(python="/nothing/here"), ["x = 1"], [Call("x")])


async def test_all_calls_together_end_in_time():
    setting = Setting(call_s=30.0, total_s=1.0)
    (run,) = await run_calls(setting, ["def f():\n    while True: pass\n"], [Call("f()")])
    assert run.problem == "the candidates took too long together"


def test_the_probe_runs_by_itself():
    """It is a script for any interpreter: it imports nothing of the program."""
    import agents.width.probe as probe

    text = Path(probe.__file__).read_text()
    imports = [
        line.split()[1] for line in text.splitlines() if line.startswith(("import ", "from "))
    ]
    assert set(imports) <= sys.stdlib_module_names
