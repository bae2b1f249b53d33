"""What allocators keep of freed memory: what Polars is told. Heaps of workers are an acceptance test."""

import os
import subprocess
import sys

import pytest

VARIABLE = "_RJEM_MALLOC_CONF"
ASK = f"""
from analytics_service.server.heap import bound_idle_memory
import os, sys
bound_idle_memory()
print("polars" in sys.modules, os.environ["{VARIABLE}"])
"""


@pytest.mark.parametrize(
    ("own", "expected"),
    [({}, "narenas:1,muzzy_decay_ms:0"), ({VARIABLE: "narenas:2"}, "narenas:2")],
)
def test_polars_is_told_before_it_is_loaded_unless_an_operator_has(own: dict[str, str], expected: str) -> None:
    others = {name: value for name, value in os.environ.items() if name != VARIABLE}
    asked = subprocess.run([sys.executable, "-c", ASK], env=others | own, capture_output=True, text=True, check=True)
    assert asked.stdout.split() == ["False", expected]
