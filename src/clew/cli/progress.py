"""A progress bar for the tasks of a pool.  Imports the standard library; rich when it runs."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Executor, Future, as_completed
from typing import Any


def wait_for_all(tasks: Sequence[Future[Any]], pool: Executor, what: str) -> None:
    """Show on the standard error how many of the tasks of a pool are done, until all are.

    Raises:
        BaseException: what a task raised; no other begins then.
    """
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    columns = (TextColumn(what), BarColumn(), MofNCompleteColumn())
    with Progress(*columns, console=Console(stderr=True)) as progress:
        bar = progress.add_task("", total=len(tasks))
        for finished in as_completed(tasks):
            try:
                finished.result()
            except BaseException:
                pool.shutdown(wait=False, cancel_futures=True)
                raise
            progress.advance(bar)
