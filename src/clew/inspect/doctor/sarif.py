"""Findings as SARIF 2.1.0, the format that code-scanning services read.  Standard library only."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from clew.inspect.doctor.finding import Finding
from clew.inspect.doctor.rules import TITLES

SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
_LEVELS = {"error": "error", "warning": "warning", "info": "note"}


def as_sarif(findings: list[Finding], version: str) -> dict[str, Any]:
    """One SARIF log with one run."""
    used = sorted({f.rule for f in findings if f.rule})
    rules = [
        {"id": rule, "name": rule, "shortDescription": {"text": TITLES[rule]}} for rule in used
    ]
    return {
        "$schema": SCHEMA,
        "version": "2.1.0",
        "runs": [
            {
                "tool": {"driver": {"name": "clew doctor", "version": version, "rules": rules}},
                "results": [_result(f, used) for f in findings],
            }
        ],
    }


def _result(finding: Finding, rules: list[str]) -> dict[str, Any]:
    result: dict[str, Any] = {
        "level": _LEVELS[finding.severity],
        "message": {"text": f"{finding.message} {finding.cure}".strip()},
        "properties": dict(finding.figures),
    }
    if finding.rule:
        result["ruleId"] = finding.rule
        result["ruleIndex"] = rules.index(finding.rule)
    if finding.place is not None:
        result["locations"] = [_location(finding.place)]
    related = [
        {**_location(at), "id": number, "message": {"text": role}}
        for number, (role, at) in enumerate(finding.lines)
    ]
    if related:
        result["relatedLocations"] = related
    return result


def _location(at: Any) -> dict[str, Any]:
    region: dict[str, Any] = {"startLine": at.line}
    if at.text:
        region["snippet"] = {"text": at.text}
    return {
        "physicalLocation": {"artifactLocation": {"uri": _uri(at.file)}, "region": region},
    }


def _uri(file: str) -> str:
    """A path from the working directory where the file is below it, else a file address."""
    if not os.path.isabs(file):
        return Path(file).as_posix()
    relative = os.path.relpath(file)
    if relative.startswith(".."):
        return Path(file).as_uri()
    return Path(relative).as_posix()
