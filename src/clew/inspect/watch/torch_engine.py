"""The adapter of real PyTorch: the same stream of events, from its hooks and function mode.

Imports torch when it is imported itself, which only `clew.inspect.watch` does, once the program
has imported torch.

- What is kept for backward passes through `saved_tensors_hooks`.  They switch PyTorch's own check
  for writes in place off, so the version is remembered here and the check is made here, with
  PyTorch's error.  What is kept is a detached tensor: a hook that returned the tensor itself
  would keep a saved output alive for ever.
- Every call of a torch function passes a `TorchFunctionMode`; versions before and after a call
  tell what it has written to.
- Passes are seen where `backward` and `grad` enter the engine.
"""

from __future__ import annotations

import os
import weakref
import zlib
from collections.abc import Sequence
from typing import Any

import torch
from torch import nn, optim
from torch.autograd import graph as autograd_graph
from torch.overrides import TorchFunctionMode

from clew.inspect.watch.paths import Path
from clew.inspect.watch.stream import KEY, Stream
from clew.inspect.watch.wraps import Wraps

FOLDER = os.path.dirname(torch.__file__) + os.sep

_LEAVE = frozenset({
    "__contains__", "__dir__", "__format__", "__hash__", "__len__", "__reduce_ex__", "__repr__",
    "_is_view", "_nested_tensor_size", "data_ptr", "dim", "element_size", "get_device",
    "is_complex", "is_contiguous", "is_floating_point", "is_inference", "is_set_to", "is_signed",
    "is_tensor", "ndimension", "nelement", "numel", "size", "storage", "storage_offset", "stride",
    "type", "untyped_storage", "requires_grad_", "retain_grad", "__get__",
})  # fmt: skip
_CUTS = frozenset({
    "__array__", "__bool__", "__complex__", "__float__", "__index__", "__int__", "item", "numpy",
    "tolist",
})  # fmt: skip


class TorchEngine:
    """What a stream asks about PyTorch's tensors and nodes."""

    name = "torch"
    tensor_type = torch.Tensor
    parameter_type = nn.Parameter
    module_type = nn.Module
    optimizer_type = optim.Optimizer

    def is_tensor(self, value: Any) -> bool:
        """Whether it is a tensor."""
        return isinstance(value, torch.Tensor)

    def requires_grad(self, tensor: Any) -> bool:
        """Whether it requires grad."""
        return isinstance(tensor, torch.Tensor) and tensor.requires_grad

    def node(self, tensor: Any) -> Any:
        """The node that made it; None for a leaf, and where autograd refuses to say."""
        try:
            return tensor.grad_fn
        except RuntimeError:  # a view that was written to under no_grad
            return None

    def name_of(self, node: Any) -> str:
        """The node's name."""
        return node.name()

    def edges(self, node: Any) -> list[Any]:
        """The nodes that its edges lead to."""
        return [following for following, _ in node.next_functions if following is not None]

    def leaf(self, node: Any) -> Any:
        """The leaf of an `AccumulateGrad`, None for other nodes."""
        return getattr(node, "variable", None) if type(node).__name__ == "AccumulateGrad" else None

    def info(self, node: Any) -> Any:
        """What was noted on a node."""
        return node.metadata.get(KEY)

    def set_info(self, node: Any, info: Any) -> None:
        """Note something on a node."""
        node.metadata[KEY] = info

    def storage(self, tensor: Any) -> Any:
        """A key of the memory behind it."""
        try:
            return tensor.untyped_storage()._cdata
        except (NotImplementedError, RuntimeError):  # sparse and the like have none
            return id(tensor)

    def storage_bytes(self, tensor: Any) -> int:
        """The size of the memory behind it."""
        try:
            return tensor.untyped_storage().nbytes()
        except (NotImplementedError, RuntimeError):
            return self.nbytes(tensor)

    def nbytes(self, tensor: Any) -> int:
        """Its size."""
        return tensor.numel() * tensor.element_size()

    def version(self, tensor: Any) -> int:
        """Its version; inference tensors have none."""
        return -1 if tensor.is_inference() else tensor._version

    def hides(self, saved: Any, target: Any, version: int) -> bool:
        """Whether a write to `target` does not show in the version of what is kept."""
        kept = saved.tensor() if saved.tensor is not None else None
        return kept is not None and kept._version == saved.version

    def checksum(self, tensor: Any) -> int:
        """A number that changes with the values."""
        raw = tensor.detach().contiguous().view(-1).view(torch.uint8)
        return zlib.crc32(raw.numpy().tobytes())

    def grad(self, leaf: Any) -> Any:
        """Its gradient."""
        return leaf.grad if leaf.is_leaf else None

    def has_graph(self, tensor: Any) -> bool:
        """Whether an op made it and was recorded."""
        return tensor is not None and tensor.grad_fn is not None

    def is_zero(self, tensor: Any) -> bool:
        """Whether all elements are zero."""
        if tensor.layout != torch.strided:
            return False
        flat = tensor.detach().view(-1) if tensor.is_contiguous() else tensor.detach()
        return not bool(flat[:16].any()) and not bool(flat.any())

    def is_parameter(self, tensor: Any) -> bool:
        """Whether it is an `nn.Parameter`."""
        return isinstance(tensor, nn.Parameter)

    def shape(self, tensor: Any) -> str:
        """As ``float32 [2, 3]``."""
        return f"{tensor.dtype} {list(tensor.shape)}".removeprefix("torch.")

    def parameters_of(self, optimizer: Any) -> list[Any]:
        """What an optimizer updates."""
        return [p for group in optimizer.param_groups for p in group["params"]]

    def records(self) -> bool:
        """Whether operations are recorded now."""
        return torch.is_grad_enabled()

    def why_constant(self, name: str) -> str:
        """Why a result of `name` has no history although an input has."""
        return name if torch.is_grad_enabled() else "no_grad"


class _Holder:
    """What stands in the graph for a kept tensor; its death tells that it was let go of."""

    __slots__ = ("__weakref__", "made_from", "saved", "stream", "tensor")

    def __init__(self, tensor: Any, saved: Any, stream: Stream, made_from: Any) -> None:
        self.tensor = tensor
        self.saved = saved
        self.stream = stream
        self.made_from = made_from

    def __del__(self) -> None:
        if self.saved is not None:
            self.stream.dropped(self.saved)


class TorchWatch:
    """Turns what PyTorch does into the events of a stream."""

    def __init__(self, stream: Stream) -> None:
        self.stream = stream
        self.busy = 0
        # Of the call that runs.
        self.name = ""
        self.path: Path = ()
        self.inputs: tuple[Any, ...] = ()
        self.wraps = Wraps(stream, nn, optim, lambda: _Busy(self))
        self.mode = _Mode(self)
        self.hooks = autograd_graph.saved_tensors_hooks(self._pack, self._unpack)
        self.failed: tuple[str, list[Any]] | None = None

    def start(self) -> None:
        """Begin to watch."""
        self.wraps.start()
        self.wraps.replace(torch.autograd, "_engine_run_backward", self._backward)
        self._wrap_functions()
        self.hooks.__enter__()
        self.mode.__enter__()

    def stop(self) -> None:
        """End it."""
        self.mode.__exit__(None, None, None)
        self.hooks.__exit__()
        self.wraps.stop()

    def _wrap_functions(self) -> None:
        function = torch.autograd.Function
        original = vars(function)["apply"]

        def apply(cls: Any, *args: Any, **kwargs: Any) -> Any:
            path = self.stream.stack.path()
            result = original.__func__(cls, *args, **kwargs)
            with _Busy(self):
                self._note_function(cls, args, result, path)
            return result

        setattr(function, "apply", classmethod(apply))  # noqa: B010
        self.wraps._undo.append(lambda: setattr(function, "apply", original))

    def _note_function(self, cls: Any, args: Any, result: Any, path: Any) -> None:
        outputs = tensors_in((result,))
        self.stream.op(cls.__name__, tensors_in(args), outputs, path)
        for out in outputs:
            node = out.grad_fn
            if node is not None and getattr(node, "_forward_cls", None) is cls:
                info = ENGINE.info(node)
                if info is not None:
                    self.stream.tell("on_function", node, info, outputs)
                break

    # -- what is kept

    def _pack(self, tensor: Any) -> _Holder:
        with _Busy(self):
            stream = self.stream
            kept = tensor.detach()
            version = ENGINE.version(tensor)
            if not stream.open:
                return _Holder(kept, None, stream, None)
            is_input = any(tensor is x for x in self.inputs)
            path = self.path or stream.stack.path()
            saved = stream.packed(self.name, tensor, version, path, is_output=not is_input)
            saved.tensor = weakref.ref(kept)
            return _Holder(kept, saved, stream, weakref.ref(tensor) if is_input else None)

    def _unpack(self, holder: _Holder) -> Any:
        with _Busy(self):
            saved, kept = holder.saved, holder.tensor
            if saved is None:
                return kept
            if ENGINE.version(kept) != saved.version:
                if self.stream.current is not None:
                    self.stream.current.culprits = [saved]
                raise RuntimeError(_modified(holder))
            if self.stream.open:
                self.stream.unpacked(saved, kept)
            return kept

    # -- backward

    def _backward(self, original: Any, outputs: Any, *args: Any, **kwargs: Any) -> Any:
        stream = self.stream
        if stream.current is not None:
            with _Busy(self):
                for out in outputs:
                    node = getattr(out, "grad_fn", None)
                    if node is not None:
                        info = stream.register(node, stream.current.path)
                        stream.current.roots += [info] if info is not None else []
            return original(outputs, *args, **kwargs)
        result: Any = None
        retain, create = args[1], args[2]
        inputs = args[3] if len(args) > 3 else kwargs.get("inputs")
        accumulates = kwargs.get("accumulate_grad", False)
        with _Busy(self):
            roots = [_root(out) for out in outputs]
            call = stream.backward_start(
                stream.stack.path(), [r for r in roots if r is not None], keep=bool(retain),
                create=bool(create), accumulates=accumulates,
            )  # fmt: skip
        error: BaseException | None = None
        try:
            result = original(outputs, *args, **kwargs)
        except BaseException as caught:
            error = caught
            self.failed = ("backward", list(outputs))
            raise
        finally:
            with _Busy(self):
                wanted = self._leading_to(call, inputs) if inputs else None
                stream.backward_end(call, error, wanted)
        if create:
            with _Busy(self):
                for grad in tensors_in(result or ()):
                    if grad.grad_fn is not None:
                        stream.register(grad.grad_fn, call.path)
        return result

    def _leading_to(self, call: Any, inputs: Sequence[Any]) -> set[Any]:
        """The infos through which a pass reaches the inputs that it was asked for."""
        from clew.inspect.watch.records import reach

        ends, masks = set(), 0
        for x in inputs:
            node = getattr(x, "grad_fn", None)
            if node is not None:
                ends.add(ENGINE.info(node))
            elif ENGINE.is_tensor(x):
                masks |= 1 << self.stream.leaf(x).bit
        wanted: set[Any] = set()
        for info in sorted(reach(call.roots), key=lambda i: i.seq):
            if info in ends or info.leaves & masks or any(i in wanted for i in info.inputs):
                wanted.add(info)
        return wanted

    # -- calls of torch functions

    def function(self, func: Any, args: Any, kwargs: Any) -> Any:
        """A torch function is called."""
        name = getattr(func, "__name__", "")
        if name == "__get__":
            return self._property(func, args, kwargs)
        if name in _LEAVE or not self.stream.open:
            return func(*args, **kwargs)
        stream = self.stream
        outer = self.name, self.path, self.inputs
        inputs = tensors_in((args, kwargs))
        self.name, self.path = name, stream.stack.path()
        self.inputs = tuple(inputs)
        versions = [ENGINE.version(x) for x in inputs]
        path = self.path
        try:
            result = func(*args, **kwargs)
        except BaseException:
            self.failed = (name, inputs)
            raise
        finally:
            self.name, self.path, self.inputs = outer
        with _Busy(self):
            try:
                self._note(name, args, inputs, versions, result, path)
            except Exception as error:
                stream.trouble(error)
        return result

    def _property(self, func: Any, args: Any, kwargs: Any) -> Any:
        name = getattr(func.__self__, "__name__", "")
        tensor = args[0]
        if name == "grad" and not tensor.is_leaf and not tensor.retains_grad:
            self.stream.tell("on_dead_grad", tensor, self.stream.stack.path())
        result = func(*args, **kwargs)
        if name == "data":
            with _Busy(self):
                self.stream.cut(".data", tensor, result, self.stream.stack.path())
        elif name in ("T", "mT", "H", "mH", "real", "imag"):
            with _Busy(self):
                self.stream.op(name, [tensor], [result], self.stream.stack.path())
        return result

    def _note(
        self, name: str, args: Any, inputs: list[Any], versions: list[int], result: Any, path: Any
    ) -> None:
        stream = self.stream
        if name in _CUTS or name in ("detach", "detach_"):
            stream._note_reads(inputs[:1], path)
            shown = name if name[0] == "_" else name + "()"
            if name == "detach_":
                stream.note(args[0], None)
            stream.cut(shown, args[0], result, path)
            return
        if name == "register_hook":
            stream.tell("on_hook", args[0], args[1], result, path)
            return
        if name == "backward":
            return
        if name == "__set__":
            stream.poll_all(path)
            return
        written = [x for x, v in zip(inputs, versions) if ENGINE.version(x) != v]
        outputs = tensors_in((result,))
        if stream.stepping is None:
            for x in written:
                stream.write(name, x, path, [y for y in inputs if y is not x])
        new = [out for out in outputs if not any(out is x for x in written)]
        if new:
            scalars = any(isinstance(x, float) for x in args)
            stream.op(name, inputs, new, path, scalars=scalars)
        else:
            stream._fresh.clear()
            stream._note_reads([x for x in inputs if not any(x is w for w in written)], path)


class _Mode(TorchFunctionMode):
    def __init__(self, watch: TorchWatch) -> None:
        super().__init__()
        self.watch = watch

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if self.watch.busy:
            return func(*args, **(kwargs or {}))
        return self.watch.function(func, args, kwargs or {})


class _Busy:
    """While entered, what the watcher itself does with tensors is no event."""

    __slots__ = ("guard", "watch")

    def __init__(self, watch: TorchWatch) -> None:
        self.watch = watch
        self.guard = torch._C.DisableTorchFunction()

    def __enter__(self) -> None:
        self.watch.busy += 1
        self.guard.__enter__()

    def __exit__(self, *exception: Any) -> None:
        self.guard.__exit__(*exception)
        self.watch.busy -= 1


def _root(out: Any) -> Any:
    """The node that a pass starts from, or the leaf itself, or None."""
    if not ENGINE.is_tensor(out):
        return getattr(out, "node", None)
    if out.grad_fn is not None:
        return out.grad_fn
    return out if out.requires_grad else None


def tensors_in(value: Any, depth: int = 3) -> list[Any]:
    """The tensors in nested tuples, lists and dicts."""
    found: list[Any] = []
    for part in value.values() if isinstance(value, dict) else value:
        if isinstance(part, torch.Tensor):
            found.append(part)
        elif depth and isinstance(part, (list, tuple, dict)):
            found += tensors_in(part, depth - 1)
    return found


def _modified(holder: _Holder) -> str:
    """PyTorch's text for a kept tensor that was written to."""
    saved, kept = holder.saved, holder.tensor
    kind = f"{kept.type()} {list(kept.shape)}"
    which = ""
    if saved.is_output and saved.node is not None:
        which = f", which is output 0 of {short_name(saved.node.name)},"
    elif holder.made_from is not None:
        original = holder.made_from()
        if original is not None and original.grad_fn is not None:
            which = (
                f", which is output {original.output_nr} of {short_name(original.grad_fn.name())},"
            )
    return (
        "one of the variables needed for gradient computation has been modified by an inplace "
        f"operation: [{kind}]{which} is at version {kept._version}; expected version "
        f"{saved.version} instead. Hint: enable anomaly detection to find the operation that "
        "failed to compute its gradient, with torch.autograd.set_detect_anomaly(True, "
        "check_nan=False)."
    )


def short_name(name: str) -> str:
    """``Exp`` of ``ExpBackward0``."""
    return name.rstrip("0123456789").removesuffix("Backward")


ENGINE = TorchEngine()
