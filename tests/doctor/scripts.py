"""Run a script under `clew doctor` in this process, on clew or on real PyTorch."""

import contextlib
import io
import json
import tempfile
import textwrap
import warnings
from pathlib import Path

import pytest

from clew.cli.doctor import main

ENGINES = ("clew", "torch")


class Report:
    """What `clew doctor --json` said.

    Attributes:
        status: the exit status.
        findings: the findings.
        log: what the script and the doctor wrote beside that.
    """

    def __init__(self, status, text, log):
        self.status = status
        self.log = log
        self.findings = json.loads(text)["findings"]

    @property
    def rules(self):
        """The rules of what was found, infos left out."""
        return {f["rule"] for f in self.findings if f["severity"] != "info"}


def examine(path, engine, *options):
    """The report on a script."""
    if engine == "torch":
        pytest.importorskip("torch")
    output, log = io.StringIO(), io.StringIO()
    with (
        contextlib.redirect_stdout(output),
        contextlib.redirect_stderr(log),
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("ignore")  # which are errors here otherwise
        status = main(["--json", "--engine", engine, *options, str(path)])
    assert "a failure of the doctor itself" not in log.getvalue(), log.getvalue()
    return Report(status, output.getvalue(), log.getvalue())


def examine_text(text, engine, *options):
    """The report on a program that is given as text; torch, nn and F are imported for it."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "program.py"
        path.write_text(HEADER + textwrap.dedent(text))
        return examine(path, engine, *options)


HEADER = """\
import torch
from torch import nn
from torch.nn import functional as F
torch.manual_seed(0)
"""
