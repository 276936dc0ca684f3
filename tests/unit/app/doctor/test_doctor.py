"""The doctor's findings on made-up machines."""

import pytest

from agents.sandbox import choice
from app.doctor.facts import Fact, Section, to_json, to_lines
from app.doctor.models import memory, models
from app.doctor.network import network
from app.doctor.processor import cgroup_quota, processor
from app.doctor.sandbox import sandbox
from app.doctor.scheduling import scheduling
from app.doctor.storage import storage
from app.doctor.terminal import terminal
from app.settings.settings import Settings
from engine.models.demo import SMOLLM2
from tests.fakes.tiny_gguf import write_tiny_gguf


def facts(section):
    return {fact.key: fact for fact in section.facts}


@pytest.fixture
def settings(tmp_path):
    return Settings(data_dir=tmp_path / "d", cache_dir=tmp_path / "c", config_dir=tmp_path / "k")


def write(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def test_the_processor_is_read_from_cpuinfo(settings, tmp_path):
    write(
        tmp_path / "proc/cpuinfo",
        "model name\t: Toy 9000\nflags\t\t: fpu avx2 fma avx512_vnni\n\nmodel name\t: Other\n",
    )
    found = facts(processor(settings, tmp_path))
    assert found["model"].value == "Toy 9000"
    assert found["features"].value == ["avx2", "fma", "avx512_vnni"]
    assert found["quota"].value is None


def test_a_dispatch_level_that_cannot_run_is_listed_with_the_reason(settings, monkeypatch):
    reason = "the kernel refused the AMX tiles (error 1)"
    found = {"level": "avx512", "threads": 2, "obstacles": {"amx": reason}}
    monkeypatch.setattr("engine._core.cpu_features", lambda: found)
    kernels = facts(processor(settings))
    assert kernels["dispatch"].value == "avx512"
    assert kernels["obstacles"].value == [f"amx: {reason}"]
    assert kernels["obstacles"].text == f"amx: {reason}"


def test_a_machine_that_runs_every_level_has_no_obstacles(settings, monkeypatch):
    found = {"level": "amx", "threads": 2, "obstacles": {}}
    monkeypatch.setattr("engine._core.cpu_features", lambda: found)
    assert facts(processor(settings))["obstacles"].text == "none"


def test_container_limits_of_both_kinds(tmp_path):
    assert cgroup_quota(tmp_path) is None
    write(tmp_path / "sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1\n")
    write(tmp_path / "sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n")
    assert cgroup_quota(tmp_path) is None
    write(tmp_path / "sys/fs/cgroup/cpu/cpu.cfs_quota_us", "50000\n")
    assert cgroup_quota(tmp_path) == 0.5
    write(tmp_path / "sys/fs/cgroup/cpu.max", "max 100000\n")
    assert cgroup_quota(tmp_path) is None
    write(tmp_path / "sys/fs/cgroup/cpu.max", "150000 100000\n")
    assert cgroup_quota(tmp_path) == 1.5


def test_it_says_how_requests_are_scheduled(settings):
    assert facts(scheduling(settings))["policy"].text == "fcfs: first come, first served"
    timed = settings.model_copy(
        update={"scheduling_policy": "edf", "batch_former": "timed", "step_target_ms": 50.0}
    )
    assert facts(scheduling(timed))["policy"].value == "edf"
    assert (
        "50 ms beside decodes, at most 512 tokens" in facts(scheduling(timed))["batch_former"].text
    )


def test_without_models_it_says_how_to_get_one(settings):
    found = facts(models(settings))
    assert found["installed"].value == []
    assert found["chosen"].level == "note"
    assert "pravaha models add smollm2" in found["chosen"].advice
    assert facts(memory(settings))["kv_pool"].value is None


def test_a_missing_model_that_is_not_fetched_is_a_problem(settings):
    other = settings.model_copy(update={"model": "nowhere"})
    assert facts(models(other))["chosen"].level == "problem"


def test_the_kv_pool_of_the_demo_model_is_the_one_the_engine_takes(demo_model, tmp_path):
    asked = Settings(model=str(demo_model), kv_cache="64MiB", ctx=512, cache_dir=tmp_path)
    pool = facts(memory(asked))["kv_pool"]
    assert 0 < pool.value <= 64 * 1024**2
    assert "context 512 tokens" in pool.text


def test_the_memory_of_weights_is_that_of_the_chosen_mode(tmp_path):
    model = write_tiny_gguf(tmp_path / "tiny.gguf")

    def loaded(**given):
        return facts(memory(Settings(model=str(model), cache_dir=tmp_path, **given)))["model"]

    assert "of weights in F32" in loaded().text
    assert "of weights in Q8_0" in loaded(weights="q8").text
    assert loaded(weights="q8").value < loaded().value


def test_what_of_a_models_files_is_not_used_is_a_note(tmp_path):
    fields = {"tokenizer.ggml.padding_token_id": 10**6}
    model = write_tiny_gguf(tmp_path / "odd.gguf", fields=fields)
    found = facts(memory(Settings(model=str(model), cache_dir=tmp_path)))["model"]
    assert found.level == "note"
    assert "padding_token_id is 1000000" in found.advice


def test_the_memory_of_a_draft_model_is_counted(demo_model):
    alone = Settings(model=str(demo_model), ctx=512)
    both = Settings(model=str(demo_model), ctx=512, draft_model=str(demo_model))
    counted = [facts(memory(one))["model"] for one in (alone, both)]
    assert counted[1].value > 1.9 * counted[0].value
    assert counted[1].label.count(",") == 1


def test_a_model_that_does_not_fit_in_memory_is_a_problem(demo_model, tmp_path):
    asked = Settings(model=str(demo_model), kv_cache="60TiB", ctx=512, cache_dir=tmp_path)
    pool = facts(memory(asked))["kv_pool"]
    assert pool.level == "problem"
    assert "does not fit in memory" in pool.advice


def test_the_sampling_defaults_of_the_model_are_listed(demo_model, tmp_path, settings):
    asked = Settings(model=str(demo_model), cache_dir=tmp_path)
    found = facts(models(asked))["sampling"]
    assert f"temperature {SMOLLM2.defaults.temperature:g}" in found.value
    assert len(found.value) == len(SMOLLM2.defaults.values())
    assert SMOLLM2.defaults.source in found.text
    off = asked.model_copy(update={"generation_config": "none"})
    assert facts(models(off))["sampling"].value == []
    assert facts(models(settings))["sampling"].level == "note"  # not installed


@pytest.mark.parametrize(
    ("environ", "colours", "kitty"),
    [
        ({"TERM": "xterm-kitty", "COLORTERM": "truecolor"}, 2**24, True),
        ({"TERM": "xterm-256color"}, 256, False),
        ({"TERM": "vt100"}, 16, False),
        ({"TERM": "xterm-256color", "NO_COLOR": "1"}, 0, False),
    ],
)
def test_the_terminal_is_judged_by_its_environment(settings, environ, colours, kitty):
    found = facts(terminal(settings, environ))
    assert found["colours"].value == colours
    assert found["kitty_keyboard"].value is kitty


def test_a_folder_that_cannot_be_written_to_is_a_problem(settings, tmp_path):
    write(tmp_path / "d", "a file, not a folder")
    found = facts(storage(settings, {}))
    assert found["data_dir"].level == "problem"
    assert "PRAVAHA_DATA_DIR" in found["data_dir"].advice
    assert found["cache_dir"].level == "ok"
    assert found["search"].value is True


def test_the_report_has_the_same_facts_for_people_and_programs():
    section = Section(
        "s", "Title", (Fact("a", "label", 3, "three"), Fact("b", "bb", None, "no", "note", "do."))
    )
    assert to_json([section]) == {
        "s": {"a": 3, "b": None},
        "advice": [{"key": "b", "level": "note", "advice": "do."}],
    }
    assert to_lines([section]) == [
        "Title",
        "  label  three",
        "  bb     no",
        "         note: do.",
    ]


def test_the_sandbox_and_its_layers_are_listed(settings, monkeypatch):
    section = sandbox(settings.model_copy(update={"sandbox": "off"}))
    name, layers = section.facts
    assert (name.value, layers.value) == ("off", ["environment", "limits", "privileges"])
    assert layers.advice.startswith("The sandbox is off")


def test_a_machine_without_a_sandbox_is_told_why(settings, monkeypatch):
    monkeypatch.setattr(choice, "_found", {})
    monkeypatch.setattr(choice, "bubblewrap_program", lambda: None)
    monkeypatch.setattr(choice, "_kernel", lambda: (0, False))
    (fact,) = sandbox(settings).facts
    assert (fact.value, fact.level) == (None, "note")
    assert "bubblewrap is not installed" in fact.advice


def test_what_agents_may_reach_is_listed(settings):
    found = facts(network(settings))
    assert found["http_fetch"].text == "off: no domain is listed"
    assert found["mcp"].text == "none configured"
    servers = {"servers": {"files": {"command": "x"}}}
    reaching = settings.model_validate(
        {"config_dir": settings.config_dir, "http_domains": "a.org", "mcp": servers}
    )
    found = facts(network(reaching))
    assert found["http_fetch"].value == ["a.org"]
    assert (found["mcp"].text, found["mcp"].level) == ("files (not approved)", "note")
    write(reaching.mcp_approved, "{")
    assert facts(network(reaching))["mcp"].level == "problem"


def test_packed_weights_on_disk_are_counted(settings):
    def listed():
        return facts(storage(settings, {}))["weight_cache_bytes"].text

    assert "0 files; at most 20" in listed()
    settings.weight_cache.mkdir(parents=True)
    (settings.weight_cache / "a.packed").write_bytes(bytes(3 << 20))
    assert "1 files" in listed()
    assert "clear-cache" in listed()
