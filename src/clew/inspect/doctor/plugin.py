"""``pytest --clew-doctor``: each test runs under the doctor, and its findings stand in the summary.

Imports pytest, which has loaded it, and the doctor only when asked for.
"""

from __future__ import annotations

import sys
from collections.abc import Generator
from typing import Any

import pytest

PROPERTY = "clew_doctor"


def pytest_addoption(parser: Any) -> None:
    """The flags."""
    group = parser.getgroup("clew doctor")
    group.addoption(
        "--clew-doctor", action="store_true",
        help="watch each test for autograd mistakes, on clew and on PyTorch, and list them",
    )  # fmt: skip
    group.addoption(
        "--clew-doctor-fail", action="store_true",
        help="the same, and a test with an error or a warning of the doctor fails",
    )  # fmt: skip


def pytest_configure(config: Any) -> None:
    """Watch if asked to."""
    fails = config.getoption("--clew-doctor-fail")
    if fails or config.getoption("--clew-doctor"):
        config.pluginmanager.register(_Watch(fails), "clew-doctor-watch")


class _Watch:
    """Runs the tests under the doctor, and prints what it found."""

    def __init__(self, fails: bool) -> None:
        self.fails = fails
        self.found: list[tuple[str, dict[str, Any]]] = []

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item: Any) -> Generator[None, Any, Any]:
        """Watch one test."""
        from clew.inspect.doctor import Doctor

        doctor = Doctor(show=False).start(sys._getframe())
        try:
            result = yield
        finally:
            # A test may expect its errors, so an exception is not explained here.
            doctor.stop()
            findings = [f.as_dict() for f in doctor.findings]
            item.user_properties.append((PROPERTY, findings))
        if self.fails and doctor.status:
            worst = doctor.findings[0]
            pytest.fail(f"clew doctor: {worst}", pytrace=False)
        return result

    def pytest_runtest_logreport(self, report: Any) -> None:
        """Collect what was found, in this process or in a worker."""
        if report.when == "call":
            for name, findings in report.user_properties:
                if name == PROPERTY:
                    self.found += [(report.nodeid, finding) for finding in findings]

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        """Print it."""
        terminalreporter.section("clew doctor")
        if not self.found:
            terminalreporter.line("nothing to report")
        for test, finding in self.found:
            rule, severity = finding["rule"], finding["severity"]
            place = f"{finding['file']}:{finding['line']}"
            terminalreporter.line(f"{severity} {rule} {place} in {test}")
            terminalreporter.line(f"    {finding['message']}")
