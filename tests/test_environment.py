"""The environment of a worker is made without the libraries that it is for."""

from __future__ import annotations

import subprocess
import sys

import pytest

from animed.engine.environment import environment


def test_the_allocator_keeps_memory_and_threads_are_counted() -> None:
    """Memory is not given back between pictures, and each library starts the threads that it may."""
    variables = environment(threads=3)
    assert int(variables["MALLOC_MMAP_THRESHOLD_"]) == int(variables["MALLOC_TRIM_THRESHOLD_"]) == 4 * 2**30
    assert int(variables["MALLOC_TOP_PAD_"]) == 256 * 2**20
    assert variables["OMP_NUM_THREADS"] == "3"
    assert int(variables["ONEDNN_PRIMITIVE_CACHE_CAPACITY"]) < 1024
    assert all(value for value in variables.values())


def test_a_worker_without_threads_is_refused() -> None:
    """None is not a number of threads."""
    with pytest.raises(ValueError, match="at least one thread"):
        environment(threads=0)


def test_the_parent_stays_free_of_the_network() -> None:
    """Making the environment imports neither torch nor Pillow."""
    code = "import sys, animed.engine.environment; print(sorted({'torch', 'torchvision', 'PIL'} & set(sys.modules)))"
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert told.stdout.strip() == "[]"
