"""What the processes of test_multiprocessing.py run; here so that a spawned one can import it."""

from __future__ import annotations

from typing import Any

import clew


def add_to(index: int, total: Any) -> None:
    total[index] += index + 5


def answer(questions: Any, answers: Any) -> None:
    """Double what comes in, in place and as a new tensor, until None comes."""
    while (tensor := questions.get()) is not None:
        with clew.no_grad():
            tensor.mul_(2)
        answers.put(tensor.detach() + 1)
    questions.get()  # shared memory lives as long as its sender, who must wait for the reader


def fail(index: int) -> None:
    raise ValueError(f"bad {index}")


def leave(index: int) -> None:
    raise SystemExit(3)
