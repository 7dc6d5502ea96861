"""Train a tiny model for very many steps and see that nothing piles up.

    python benchmarks/soak.py [--steps 1000000] [--samples 20]

Most steps are plain ones (forward, backward, Adam).  Every hundredth step also goes through what
holds on to things elsewhere: hooks, writes to views, ``create_graph``, a kept graph, a custom
Function, saved-tensor hooks, checkpointing.  At even distances the resident
memory and the number of objects that Python's collector knows are taken; what comes before the
first sample is the warm-up.  The exit status is 1 if memory has grown by more than `--limit`
megabytes from the first sample to the last, or the number of objects by more than a hundred.

Ctrl-C, or a `kill`, ends the steps early: the verdict is then on the steps that were done, and the
exit status 2 if these were not enough for one.
"""

from __future__ import annotations

import argparse
import gc
import resource
import signal
import sys
import time
from pathlib import Path
from typing import Any

import clew
from clew import nn
from clew.utils.checkpoint import checkpoint

EVERY = 100
"""How many plain steps go between two with everything."""

OBJECTS = 100
"""By how many the objects may grow: what happens to be alive when they are counted."""


class Double(clew.autograd.Function):
    """Twice its argument."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        """Save what backward does not need, so that something is saved."""
        ctx.save_for_backward(x)
        return x * 2

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        """Twice the gradient."""
        assert len(ctx.saved_tensors) == 1
        return grads[0] * 2


class Training:
    """A model of two layers, its optimizer and its data."""

    def __init__(self) -> None:
        clew.manual_seed(0)
        self.model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
        self.optimizer = clew.optim.Adam(self.model.parameters(), lr=1e-3)
        self.x, self.y = clew.randn(16, 4), clew.randn(16, 1)

    def loss(self) -> Any:
        """The mean squared error."""
        return nn.functional.mse_loss(self.model(self.x), self.y)

    def plain(self) -> None:
        """Forward, backward, update."""
        self.optimizer.zero_grad()
        self.loss().backward()
        self.optimizer.step()

    def with_everything(self) -> None:
        """Each feature that keeps tensors, nodes or hooks somewhere, once."""
        self.optimizer.zero_grad()
        weight = self.model[0].weight
        hidden = checkpoint(self.model[0], self.x, use_reentrant=False).tanh()
        handle = hidden.register_hook(lambda grad: grad * 1)
        hidden.retain_grad()
        written = hidden.clone()
        written[0].mul_(2)
        with clew.autograd.graph.saved_tensors_hooks(lambda t: t.detach(), lambda t: t):
            loss = (Double.apply(self.model[2](written)) - self.y).square().mean()
        loss.backward(retain_graph=True)
        (slope,) = clew.autograd.grad(loss, weight, create_graph=True)
        slope.square().sum().backward()
        handle.remove()
        self.optimizer.step()


def resident() -> float:
    """Megabytes of memory that the process has for itself (its peak where /proc is missing).

    Pages of libraries are not counted: they come when code first runs, and go when others need
    memory.
    """
    status = Path("/proc/self/status")
    if status.exists():
        return int(status.read_text().partition("RssAnon:")[2].split()[0]) / 2**10
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**10


def take(steps: int) -> tuple[float, int]:
    """Resident megabytes and live objects, printed."""
    gc.collect()
    memory, objects = resident(), len(gc.get_objects())
    print(f"{steps:>9,} steps  {memory:8.2f} MB  {objects:,} objects", flush=True)
    return memory, objects


def train(steps: int, between: int, samples: list[tuple[float, int]]) -> int:
    """Go through the steps and take samples; how many were done when they ended or Ctrl-C came."""
    training = Training()
    done = 0
    try:
        while done < steps:
            if (done + 1) % EVERY:
                training.plain()
            else:
                training.with_everything()
            done += 1
            if done % between == 0:
                samples.append(take(done))
    except KeyboardInterrupt:
        samples.append(take(done))
    return done


def verdict(samples: list[tuple[float, int]], limit: float) -> int:
    """Say whether something has piled up from the first sample to the last; the exit status."""
    if len(samples) < 2:
        print("no verdict: too few steps were done after the warm-up")
        return 2
    (first, before), (last, after) = samples[0], samples[-1]
    memory, objects = last - first, after - before
    grown = memory > limit or objects > OBJECTS
    print(f"{'grown' if grown else 'flat'}: {memory:+.2f} MB, {objects:+,} objects")
    return int(grown)


def main() -> int:
    """Run the steps; 1 if something has piled up."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--steps", type=int, default=1_000_000)
    parser.add_argument("--samples", type=int, default=20, help="of memory and objects")
    parser.add_argument("--limit", type=float, default=1.0, help="megabytes")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    samples: list[tuple[float, int]] = []
    start = time.perf_counter()
    done = train(options.steps, max(1, options.steps // options.samples), samples)
    print(f"{done:,} of {options.steps:,} steps in {time.perf_counter() - start:.0f} s")
    return verdict(samples, options.limit)


if __name__ == "__main__":
    sys.exit(main())
