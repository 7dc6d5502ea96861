"""Freed memory is kept for the next arrays; in processes of their own, whose setting it is."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from clew import allocator

needs_glibc = pytest.mark.skipif(not allocator.available(), reason="the C library is not glibc")

STEPS = """
import resource
import clew

x = clew.ones({size}, requires_grad=True)

def step():
    x.grad = None
    ((x * 2).exp() + 1).sum().backward()

step(), step()
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
step(), step()
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before, clew.memory.pool().limit)
"""


def run(code: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code], env={**os.environ, "CLEW_POOL": "", **environment},
        capture_output=True, text=True, check=True,
    )  # fmt: skip


@needs_glibc
@pytest.mark.parametrize("size", [2_000_000, 12_000_000])
def test_arrays_come_without_page_faults(size):
    pages = size * 4 // 4096
    faults, limit = map(int, run(STEPS.format(size=size)).stdout.split())
    assert faults < pages / 10
    assert limit == 10**9
    faults, limit = map(int, run(STEPS.format(size=size), CLEW_POOL="0").stdout.split())
    assert limit == 0
    if size * 4 > 2**25:  # smaller ones glibc may keep by itself
        # Fresh pages may be huge ones (2 MB), but not fewer than those.
        assert faults > size * 4 // 2**21


@needs_glibc
def test_what_is_freed_is_reported_and_given_back():
    code = """
import clew
x = [clew.ones(500_000) * 2 for _ in range(10)]
assert clew.memory.pool().used > 20_000_000
del x
kept = clew.memory.pool()
assert kept.limit == 10**9 and kept.free > 20_000_000 and kept.used < 20_000_000
back = clew.memory.give_back()
assert back > 15_000_000, back
clew.memory.set_pool(1_000_000)
assert clew.memory.pool().limit == 1_000_000
x = [clew.ones(500_000) * 2 for _ in range(10)]
del x
assert clew.memory.pool().free < 10_000_000
"""
    run(code)


@needs_glibc
def test_a_wrong_limit_in_the_environment_is_told():
    done = run("import clew; clew.ones(1) + 1; print(clew.memory.pool().limit)", CLEW_POOL="much")
    assert "CLEW_POOL=much is no number of MB from 0 to 2147" in done.stderr
    assert done.stdout == "1000000000\n"


@needs_glibc
def test_looking_at_pytorch_leaves_its_allocator_alone():
    pytest.importorskip("torch")
    code = """
import torch
import clew
from clew import allocator
x = torch.ones(3, requires_grad=True)
loss = (x * 2).exp().sum()
clew.graph(loss)
with clew.memory.track():
    (x * 2).exp().sum().backward()
assert allocator._limit is None
clew.ones(1) + 1
assert allocator._limit == 10**9
"""
    run(code)


@pytest.mark.parametrize("limit", [-1, 2**31])
def test_limits_that_are_refused(limit):
    with pytest.raises(ValueError, match="from 0 to 2147483647 bytes"):
        allocator.set_pool(limit)


def test_without_glibc_nothing_happens(monkeypatch):
    monkeypatch.setattr(allocator, "_find_glibc", lambda: None)
    monkeypatch.setattr(allocator, "_limit", None)
    allocator.start()
    assert allocator.pool() == (0, None, None)
    assert allocator.give_back() == 0
    allocator.set_pool(10**6)
    assert allocator.pool().limit == 0
