"""Reading a pickle without doing what it says: by default only PyTorch's own words are understood.

Imports the standard library and, of this package, `adapter`, `rebuild`, `records` and
`safe_globals`.

A pickle is a program. It can push any importable object on a stack, call it, and overwrite
attributes of whatever it made. `WeightsUnpickler` runs such a program with three locks:

1. a name is looked up in a table, never imported;
2. only what the table marks as callable is called, only the user's own classes are instantiated or
   given state (and an OrderedDict its attributes), only plain containers are filled;
3. an instruction that is not on the list stops the load.

`read_anything` is Python's own unpickler with PyTorch's names mapped to clew: for files one
trusts.
"""

from __future__ import annotations

import _compat_pickle
import pickle
import struct
from _codecs import encode
from collections import Counter, OrderedDict
from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any, BinaryIO

from clew.serialization.adapter import Adapter
from clew.serialization.rebuild import UNSUPPORTED, Rebuilder
from clew.serialization.safe_globals import BLOCKED_MODULES, allowed_names

PersistentLoad = Callable[[Any], Any]
ReadPickle = Callable[[BinaryIO, PersistentLoad], Any]

_HARMLESS: dict[str, Any] = {
    "collections.OrderedDict": OrderedDict,
    "collections.Counter": Counter,
    "builtins.set": set,
    "builtins.bytearray": bytearray,
    "builtins.complex": complex,
    "_codecs.encode": encode,  # how protocol 2 writes bytes
}

_INSTRUCTIONS = (
    pickle.PROTO + pickle.FRAME + pickle.STOP + pickle.MARK + pickle.POP + pickle.POP_MARK
    + pickle.DUP + pickle.NONE + pickle.NEWTRUE + pickle.NEWFALSE + pickle.BININT
    + pickle.BININT1 + pickle.BININT2 + pickle.LONG1 + pickle.LONG4 + pickle.BINFLOAT
    + pickle.BINUNICODE + pickle.SHORT_BINUNICODE + pickle.BINUNICODE8 + pickle.BINSTRING
    + pickle.SHORT_BINSTRING + pickle.BINBYTES + pickle.SHORT_BINBYTES + pickle.BINBYTES8
    + pickle.EMPTY_TUPLE + pickle.TUPLE + pickle.TUPLE1 + pickle.TUPLE2 + pickle.TUPLE3
    + pickle.EMPTY_LIST + pickle.EMPTY_DICT + pickle.EMPTY_SET + pickle.FROZENSET
    + pickle.BINGET + pickle.LONG_BINGET + pickle.BINPUT + pickle.LONG_BINPUT + pickle.MEMOIZE
    + pickle.GLOBAL + pickle.STACK_GLOBAL + pickle.BINPERSID
)  # fmt: skip


# Python's own, whose methods can be overridden; the type checker's stubs do not know them.
_Unpickler: Any = pickle._Unpickler


class _Dispatch(dict[int, Callable[[Any], None]]):
    """Instruction to method, with a clear error for what is not there."""

    def __missing__(self, key: int) -> Callable[[Any], None]:
        raise pickle.UnpicklingError(
            f"Unsupported operand {key}: the file is damaged, no checkpoint, or was pickled "
            "with an instruction that checkpoints do not need"
        )


class WeightsUnpickler(_Unpickler):
    """An unpickler for files that nobody vouches for.

    Raises (from `load`):
        pickle.UnpicklingError: the file names or does something that is not allowed.
    """

    dispatch = _Dispatch((key, _Unpickler.dispatch[key]) for key in _INSTRUCTIONS)

    def __init__(
        self, stream: BinaryIO, persistent_load: PersistentLoad, adapter: Adapter, encoding: str
    ) -> None:
        super().__init__(stream, encoding=encoding)
        self._load_persistent = persistent_load
        self.is_outside = False
        rebuilder = Rebuilder(adapter)
        words = adapter.words()
        own = allowed_names()
        self._names = {**own, **_HARMLESS, **words, **rebuilder.names()}
        callables = [*_HARMLESS.values(), *rebuilder.functions.values()]
        callables += [words[name] for name in adapter.callable_words()]
        # By identity: equality could be redefined by the class of an object that the file made.
        self._callable = {id(function) for function in callables}
        self._own = {id(function) for function in own.values()}

    def persistent_load(self, pid: Any) -> Any:
        return self._outside(self._load_persistent, pid)

    def _outside(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Call code of the user's, whose errors are no signs of a damaged file."""
        self.is_outside = True
        result = function(*arguments)
        self.is_outside = False
        return result

    def find_class(self, module: str, name: str) -> Any:
        module, name = _modern_name(module, name)
        path = f"{module}.{name}"
        if module in BLOCKED_MODULES:
            raise pickle.UnpicklingError(
                f"Trying to load unsupported GLOBAL {path} whose module {module} is blocked: a "
                "checkpoint has no honest use for it, the file may well be an attack."
            )
        if path in self._names:
            return self._names[path]
        raise pickle.UnpicklingError(_forbidden(path))

    def load_reduce(self) -> None:
        arguments = self.stack.pop()
        function = self.stack[-1]
        if id(function) in self._own:
            self.stack[-1] = self._outside(function, *arguments)
        elif id(function) in self._callable and type(arguments) is tuple:
            self.stack[-1] = function(*arguments)
        else:
            raise pickle.UnpicklingError(
                f"Trying to call reduce for unrecognized function {function!r}"
            )

    def load_newobj(self) -> None:
        arguments = self.stack.pop()
        kind = self.stack.pop()
        if id(kind) not in self._own or not isinstance(kind, type):
            raise pickle.UnpicklingError(
                "Can only create new object for classes allowlisted via `add_safe_globals` but got "
                f"{kind!r}"
            )
        self.append(self._outside(kind.__new__, kind, *arguments))

    def load_build(self) -> None:
        kind = type(self.stack[-2])
        if kind is OrderedDict and type(self.stack[-1]) is dict:
            # A state_dict carries its `_metadata` this way.
            attributes = self.stack.pop()
            self.stack[-1].__dict__.update(attributes)
        elif id(kind) in self._own:
            self._outside(super().load_build)
        else:
            raise pickle.UnpicklingError(
                "Can only build OrderedDict or types allowlisted via `add_safe_globals`, but got "
                f"{kind}"
            )

    def load_append(self) -> None:
        self._require("append to", self.stack[-2], list)
        super().load_append()

    def load_appends(self) -> None:
        self._require("extend", self.metastack[-1][-1], list)
        super().load_appends()

    def load_setitem(self) -> None:
        self._require("SETITEM for", self.stack[-3], dict, OrderedDict, Counter)
        super().load_setitem()

    def load_setitems(self) -> None:
        self._require("SETITEMS for", self.metastack[-1][-1], dict, OrderedDict, Counter)
        super().load_setitems()

    def load_additems(self) -> None:
        self._require("ADDITEMS for", self.metastack[-1][-1], set)
        super().load_additems()

    def _require(self, action: str, target: object, *kinds: type) -> None:
        if type(target) not in kinds:
            names = ", ".join(kind.__name__ for kind in kinds)
            raise pickle.UnpicklingError(f"Can only {action} {names}, but got {type(target)}")

    dispatch[pickle.REDUCE[0]] = load_reduce
    dispatch[pickle.NEWOBJ[0]] = load_newobj
    dispatch[pickle.BUILD[0]] = load_build
    dispatch[pickle.APPEND[0]] = load_append
    dispatch[pickle.APPENDS[0]] = load_appends
    dispatch[pickle.SETITEM[0]] = load_setitem
    dispatch[pickle.SETITEMS[0]] = load_setitems
    dispatch[pickle.ADDITEMS[0]] = load_additems


_SIGNS_OF_DAMAGE = (
    LookupError,
    TypeError,
    ValueError,
    AttributeError,
    OverflowError,
    struct.error,
)


def read_weights(
    adapter: Adapter, encoding: str, stream: BinaryIO, persistent_load: PersistentLoad
) -> Any:
    """The object in the next pickle of `stream`, or an error; never code of the file's choice.

    Raises:
        pickle.UnpicklingError: the file uses what is not allowed, or is damaged.
        EOFError: the stream ends within the pickle.
    """
    unpickler = WeightsUnpickler(stream, persistent_load, adapter, encoding)
    try:
        return unpickler.load()
    except pickle.UnpicklingError as error:
        raise pickle.UnpicklingError(f"Weights only load failed. {error}") from error
    except EOFError:
        raise EOFError("Ran out of input: the file is empty or was cut off") from None
    except _SIGNS_OF_DAMAGE as error:
        if unpickler.is_outside:
            raise
        raise pickle.UnpicklingError(
            "Weights only load failed. The file is damaged or no checkpoint "
            f"({type(error).__name__}: {error})"
        ) from error


def read_anything(
    adapter: Adapter,
    pickle_module: ModuleType,
    pickle_load_args: Mapping[str, Any],
    stream: BinaryIO,
    persistent_load: PersistentLoad,
) -> Any:
    """The object in the next pickle of `stream`, by the unpickler of `pickle_module`.

    It does whatever the file says; PyTorch's names mean clew's objects.
    """
    names = {**adapter.words(), **Rebuilder(adapter).names()}
    base: Any = pickle_module.Unpickler

    class PlainUnpickler(base):
        def persistent_load(self, pid: Any) -> Any:
            return persistent_load(pid)

        def find_class(self, module: str, name: str) -> Any:
            path = f"{module}.{name}"
            if path in names:
                return names[path]
            if path in UNSUPPORTED:
                raise pickle.UnpicklingError(_unsupported(path))
            if module.partition(".")[0] == "torch":
                return adapter.twin(module, name)
            return super().find_class(module, name)

    return PlainUnpickler(stream, **pickle_load_args).load()


def _modern_name(module: str, name: str) -> tuple[str, str]:
    """Python 3's name for what protocol 2 calls by Python 2's."""
    if (module, name) in _compat_pickle.NAME_MAPPING:
        return _compat_pickle.NAME_MAPPING[module, name]
    return _compat_pickle.IMPORT_MAPPING.get(module, module), name


def _unsupported(path: str) -> str:
    return f"The file holds {UNSUPPORTED[path]} ({path}), which clew does not have."


def _forbidden(path: str) -> str:
    """The error text for a name that is not in the table."""
    if path in UNSUPPORTED:
        return _unsupported(path)
    name = path.removeprefix("builtins.")
    return (
        f"Unsupported global: GLOBAL {name} was not an allowed global by default. load() has "
        "weights_only=True as its default: it makes tensors, plain Python values and "
        f"containers, and runs nothing else that a file asks for, here {name}. If you trust "
        "the file, load it with weights_only=False, which can run any code that the file "
        f"contains. If you know that {name} is harmless whatever it is called with, allow it "
        f"with `clew.serialization.add_safe_globals([{name}])` or the "
        f"`clew.serialization.safe_globals([{name}])` context manager."
    )
