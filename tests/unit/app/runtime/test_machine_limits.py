"""Settings that the machine cannot meet are refused with its figures."""

import os

import pytest

from app.runtime.machine_limits import check_machine
from app.settings.errors import ConfigurationError
from app.settings.sources import load_settings


def settings(**values):
    return load_settings(values, environ={})


def test_more_threads_than_processors_are_refused_with_their_number():
    with pytest.raises(ConfigurationError, match=rf"--threads 999 .* the {os.cpu_count()} proc"):
        check_machine(settings(threads=999))


def test_a_kv_cache_beyond_free_memory_is_refused_with_the_free_memory():
    with pytest.raises(ConfigurationError, match=r"--kv-cache asks for 900.0 GiB, .* GiB of free"):
        check_machine(settings(kv_cache="900GiB"))


def test_a_gpu_has_memory_of_its_own():
    check_machine(settings(kv_cache="900GiB", device="cuda"))


def test_ordinary_settings_pass():
    check_machine(settings(threads=1, kv_cache="16MiB"))
