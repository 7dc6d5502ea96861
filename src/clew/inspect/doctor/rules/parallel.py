"""R17, DataParallel: what it copies in each step, and what is lost on its replicas."""

from __future__ import annotations

from typing import Any

from clew.inspect.doctor.finding import human
from clew.inspect.doctor.rules.base import Rule
from clew.inspect.watch import Path


class Replicas(Rule):
    """On several devices, each forward copies all parameters to each device and gathers the
    outputs on one (a); what a forward writes to its module is lost (b); a replica has no
    parameters (c).

    Judged by the devices that were asked for, so that it can be told on a machine without them.
    """

    id = "R17"

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.calls: dict[Path, _Calls] = {}
        self.events: dict[tuple[str, str, str], tuple[Path, int]] = {}
        self.devices: dict[int, int] = {}

    def on_replica(self, kind: str, module: Any, name: str, path: Path) -> None:
        key = (kind, type(module).__name__, name)
        self.events[key] = (path, self.events.get(key, (path, 0))[1] + 1)

    def on_parallel(self, wrapper: Any, inputs: Any, output: Any, path: Path) -> None:
        engine = self.stream.engine
        devices = asked_devices(wrapper)
        calls = self.calls.setdefault(path, _Calls(devices))
        calls.count += 1
        own = list(_state_of(wrapper.module))
        calls.parameters = sum(engine.nbytes(t) for t in own)
        calls.gathered = max(calls.gathered, sum(map(engine.nbytes, _tensors(output, engine))))

    def finish(self) -> None:
        several = [c for c in self.calls.values() if c.devices > 1]
        if not several:
            for path, calls in self.calls.items():
                self.report(
                    "info", path,
                    "DataParallel has one device here: it calls the module directly and makes no "
                    "copies.",
                    "", [("forward", path)], kind="one", replicated_bytes=0, gathered_bytes=0,
                    devices=calls.devices,
                )  # fmt: skip
            return
        for (kind, module, name), (path, count) in self.events.items():
            if kind == "write" and count >= self.options.repetitions:
                self._report_write(module, name, path, count)
            elif kind == "parameters":
                self.report_parameters(module, path)
        for path, calls in self.calls.items():
            if calls.devices > 1 and calls.count >= self.options.repetitions:
                self._report_bytes(path, calls)

    def _report_write(self, module: str, name: str, path: Path, count: int) -> None:
        self.report(
            "warning", path,
            f"{module}.{name} is set inside the forward of a DataParallel module: on several "
            f"devices each forward runs on replicas that are thrown away, so the write is lost and "
            f"{name} stays as it was ({count} writes).",
            f"Keep {name} outside of the module, return it from forward, or update a registered "
            "buffer in place on the first device.",
            [("write on a replica", path)],
            kind=f"write {name}", attribute=name, writes=count,
        )  # fmt: skip

    def report_parameters(self, module: str, path: Path) -> None:
        """A forward asks a replica for its parameters."""
        self.report(
            "warning", path,
            f"{module}.forward asks for self.parameters(), which are empty on the replicas that "
            "DataParallel makes (their parameters are results of a copy, no leaves): "
            "next(self.parameters()) raises StopIteration there.",
            "Take device and dtype from the input: x.device, x.dtype.",
            [("asked on a replica", path)],
            kind="parameters", module=module,
        )  # fmt: skip

    def _report_bytes(self, path: Path, calls: _Calls) -> None:
        n = calls.devices
        copied = calls.parameters * (n - 1)
        gathered = calls.gathered * (n - 1) // n
        self.report(
            "warning", path,
            f"Each forward of this DataParallel module copies {human(copied)} of parameters and "
            f"buffers to {n - 1} other device{'s' if n > 2 else ''}, and gathers outputs of "
            f"{human(calls.gathered)} on the first one ({human(gathered)} from the others), where "
            "the loss is then computed: that device fills up first.",
            "Compute the loss inside the wrapped module's forward, so that only numbers are "
            "gathered, or use DistributedDataParallel.",
            [("forward", path)],
            kind="bytes", devices=n, replicated_bytes=copied, gathered_bytes=calls.gathered,
            calls=calls.count,
        )  # fmt: skip


class _Calls:
    """The forwards of a DataParallel module on one line."""

    def __init__(self, devices: int) -> None:
        self.devices = devices
        self.count = self.parameters = self.gathered = 0


def asked_devices(wrapper: Any) -> int:
    """How many devices the program asked for."""
    asked = getattr(wrapper, "_clew_asked_devices", None)
    return len(asked) if asked else max(len(getattr(wrapper, "device_ids", ()) or ()), 1)


def _state_of(module: Any) -> Any:
    for table in ("_parameters", "_buffers"):
        yield from (t for t in (getattr(module, table, None) or {}).values() if t is not None)
    for child in (getattr(module, "_modules", None) or {}).values():
        if child is not None:
            yield from _state_of(child)


def _tensors(value: Any, engine: Any) -> list[Any]:
    if engine.is_tensor(value):
        return [value]
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, (list, tuple)):
        return [t for part in value for t in _tensors(part, engine)]
    return []
