"""`import torch` that means clew: what `clew run` and `clew.enable_torch()` turn on.

Layer 5.  Imports only the standard library; clew's own modules are imported by name, when a
program asks for the torch module whose part they play.

A finder, placed first in `sys.meta_path`, answers each import of `torch` and `torch.*` with a
`TorchModule`: a window on the clew module of the same name.  Classes and functions seen through
a window are clew's own objects (`torch.Tensor is clew.Tensor`), so what a program pickles or
prints carries clew's names.

Note [What clew lacks]
    A name that clew does not have raises where the program uses it, with Python's type and
    leading clause: AttributeError for `torch.x`, ModuleNotFoundError for `import torch.x`,
    ImportError for `from torch import x`.  So `hasattr`, `try: ... except ImportError` and
    `importlib.util.find_spec` see an ordinary module that lacks a name.

Note [Writing through a window]
    Setting or deleting a name that the clew module has reaches clew: a flag, or a function that
    a test replaces, is then the same in `torch` and in clew.  Any other name stays on the window,
    and goes when the alias is turned off.
"""

from __future__ import annotations

import importlib
import sys
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import spec_from_loader
from types import FrameType, ModuleType, TracebackType
from typing import Any

TORCH_VERSION = "2.13.0+clew"
"""The PyTorch whose behaviour clew follows, as programs compare it, and who plays it."""

COMPANIONS = {"torchviz": "inspect.dot", "safetensors.torch": "serialization.safetensors"}
"""Modules of other packages that work on torch's tensors, and which module plays their part."""

_PLAIN = (int, float, str, type(None))


def _clew_lacks(name: str) -> str:
    return (
        f"\nclew stands in for torch here and does not have {name} (yet): see docs/compatibility.md"
    )


def _is_special(name: str) -> bool:
    return name.startswith("__") and name.endswith("__")


class TorchModule(ModuleType):
    """`torch` or one of its modules: a window on the clew module that plays its part."""

    __clew_module__: ModuleType
    __clew_alias__: TorchAlias
    __clew_names__: frozenset[str]

    def __init__(self, name: str, module: ModuleType, alias: TorchAlias) -> None:
        super().__init__(name, module.__doc__)
        self.__clew_module__ = module
        self.__clew_alias__ = alias
        self.__clew_names__ = frozenset(dir(module))
        self.__file__ = getattr(module, "__file__", None)
        # A module's own __getattr__ (PEP 562): one in the class would make every access, also of
        # names that the window holds, three times as slow.
        self.__dict__["__getattr__"] = self._look_up

    def _look_up(self, name: str) -> Any:
        """Called for what the window does not hold yet: ask clew, and hold what cannot go stale.

        Plain values (a flag, say) are asked for each time; classes, functions and modules are
        kept, so that the next access costs what it costs on any module.
        """
        module = self.__clew_module__
        if _is_special(name):
            if name == "__all__":
                return getattr(module, name, None) or [n for n in dir(self) if n[0] != "_"]
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        try:
            value = getattr(module, name)
        except AttributeError as error:
            if error.obj is not module:  # a failure inside clew, not a name that it lacks
                raise
            raise self._lacks(name) from None
        if isinstance(value, ModuleType) and self.__clew_alias__.owns(value):
            value = self.__clew_alias__.window(f"{self.__name__}.{name}", value)
        if not isinstance(value, _PLAIN):
            self.__dict__[name] = value
        return value

    def __setattr__(self, name: str, value: Any) -> None:
        """See Note [Writing through a window]."""
        if isinstance(value, TorchModule):
            # The import system binds a submodule in its parent, where a function of the same
            # name (torch.autograd.gradcheck) must stay visible.
            known = getattr(self.__clew_module__, name, None)
            if known is None or isinstance(known, ModuleType):
                self.__dict__[name] = value
        elif _is_special(name) or not self._in_clew(name):
            self.__dict__[name] = value
        else:
            self.__dict__.pop(name, None)
            setattr(self.__clew_module__, name, value)

    def __delattr__(self, name: str) -> None:
        """See Note [Writing through a window]."""
        held = name in self.__dict__
        self.__dict__.pop(name, None)
        if hasattr(self.__clew_module__, name):
            delattr(self.__clew_module__, name)
        elif not held:
            raise self._lacks(name)

    def __dir__(self) -> list[str]:
        return sorted({*dir(self.__clew_module__), *self.__dict__})

    def __repr__(self) -> str:
        return f"<module {self.__name__!r}, played by {self.__clew_module__!r}>"

    def _in_clew(self, name: str) -> bool:
        # A name that was deleted a moment ago (unittest.mock deletes, then sets) is still clew's.
        return name in self.__clew_names__ or hasattr(self.__clew_module__, name)

    def _lacks(self, name: str) -> AttributeError:
        lead = f"module {self.__name__!r} has no attribute {name!r}"
        return AttributeError(
            lead + _clew_lacks(f"{self.__name__}.{name}"),
            name=name,
            obj=self,
        )


class TorchAlias(MetaPathFinder, Loader):
    """Finds and loads `torch` and `torch.*` as windows on `package`."""

    def __init__(self, package: str = "clew") -> None:
        self.package = package
        self._windows: dict[str, TorchModule] = {}
        self._set_aside: dict[str, ModuleType] = {}

    def install(self) -> None:
        """Answer imports of torch from now on; a torch imported earlier is set aside."""
        self._set_aside = _take_torch_modules()
        sys.meta_path.insert(0, self)

    def remove(self) -> None:
        """Stop answering, and bring back the torch that was set aside."""
        if self in sys.meta_path:
            sys.meta_path.remove(self)
        _take_torch_modules()
        sys.modules.update(self._set_aside)
        self._set_aside = {}

    def owns(self, module: ModuleType) -> bool:
        """Whether a module belongs to the package, so that a window must stand before it."""
        return f"{module.__name__}.".startswith(f"{self.package}.")

    def window(self, name: str, module: ModuleType) -> TorchModule:
        """The one window of that torch name."""
        if name not in self._windows:
            self._windows[name] = TorchModule(name, module, self)
            if name == "torch":
                self._windows[name].__version__ = TORCH_VERSION
        return self._windows[name]

    def find_spec(
        self, fullname: str, path: Any = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """See Note [What clew lacks] for what is raised when clew has no such module."""
        if fullname in COMPANIONS:
            part = _import_or_none(f"{self.package}.{COMPANIONS[fullname]}")
            if part is None:
                return None
            self.window(fullname, part)
            return spec_from_loader(fullname, self)
        if fullname.partition(".")[0] != "torch":
            return None
        module = self._module_behind(fullname)
        if module is not None:
            self.window(fullname, module)
            return spec_from_loader(fullname, self, is_package=True)
        question = _question(sys._getframe(1))
        if question == "find_spec":
            return None
        parent, _, name = fullname.rpartition(".")
        if question == "from":
            lead = f"cannot import name {name!r} from {parent!r}"
            raise ImportError(lead + _clew_lacks(fullname), name=parent)
        lead = f"No module named {fullname!r}"
        raise ModuleNotFoundError(lead + _clew_lacks(fullname), name=fullname)

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return self._windows[spec.name]

    def exec_module(self, module: ModuleType) -> None:
        """Nothing to run: a window asks the clew module whenever it is asked."""

    def _module_behind(self, fullname: str) -> ModuleType | None:
        """The clew module that plays the torch module's part, or None."""
        module = importlib.import_module(self.package)
        for part in fullname.split(".")[1:]:
            value = getattr(module, part, None)
            if not isinstance(value, ModuleType):
                value = _import_or_none(f"{module.__name__}.{part}")
            if value is None or not self.owns(value):
                return None
            module = value
        return module


def _import_or_none(name: str) -> ModuleType | None:
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is not None and f"{name}.".startswith(f"{error.name}."):
            return None
        raise  # the module is there; something that it needs is not


def _question(frame: FrameType | None) -> str:
    """What a finder is asked for: "import", "from" (`from torch import x`) or "find_spec".

    Python tells a finder only the name; which of its own functions asks is on the stack.
    """
    while frame is not None and frame.f_code.co_filename.startswith("<frozen importlib"):
        if frame.f_code.co_name == "find_spec":
            return "find_spec"
        if frame.f_code.co_name == "_handle_fromlist":
            return "from"
        frame = frame.f_back
    return "import"


def _take_torch_modules() -> dict[str, ModuleType]:
    """Take `torch`, `torch.*` and the companions out of `sys.modules`."""
    names = [n for n in sys.modules if n.partition(".")[0] == "torch" or n in COMPANIONS]
    return {name: sys.modules.pop(name) for name in names}


_active: TorchAlias | None = None


class EnabledTorch:
    """What `enable_torch` returns; leaving it as a context manager turns the alias off again.

    Inside another `enable_torch`, leaving changes nothing: the outer one decides.
    """

    def __init__(self, alias: TorchAlias | None) -> None:
        self._alias = alias

    def __enter__(self) -> EnabledTorch:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._alias is not None and self._alias is _active:
            disable_torch()


def enable_torch(*, replace: bool = False) -> EnabledTorch:
    """Let `import torch`, in any module imported from now on, mean clew.

    Call it before anything imports torch, or use it around the imports::

        with clew.enable_torch():
            import torch
            from torch import nn

    Modules keep what they imported when the alias is turned off.  A second call changes nothing.
    The alias holds in this process and in those forked from it.  A process that is started afresh
    (multiprocessing's "spawn") must call it again, unless the program runs under `clew run`.

    Args:
        replace: set a real torch that is already imported aside until the alias is turned off.
            Modules that imported it earlier keep it.

    Raises:
        RuntimeError: real torch is already imported, and `replace` is false.
    """
    global _active
    if _active is not None:
        return EnabledTorch(None)
    real = sys.modules.get("torch")
    if real is not None and not replace:
        raise RuntimeError(
            f"torch is already imported, from {getattr(real, '__file__', None)}\n"
            "Call clew.enable_torch() before the first `import torch`, or pass replace=True to "
            "set that one aside; modules that imported it keep it."
        )
    _active = TorchAlias()
    _active.install()
    return EnabledTorch(_active)


def disable_torch() -> None:
    """Turn the alias off: `import torch` means real torch again.  Without effect when it is off."""
    global _active
    if _active is not None:
        _active.remove()
        _active = None
