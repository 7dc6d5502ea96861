"""The source of randomness: a Mersenne twister with PyTorch's seeding and state layout.

`Generator` hands out raw words and uniform numbers; the samplers beside this file turn them into
distributions. Layer 1: imports NumPy, the standard library and clew's device object.
"""

from __future__ import annotations

import os
import threading
from typing import Any

import numpy as np

from ..device import CPU
from ..device import device as _device

_DEFAULT_SEED = 67280421310721  # what a new torch.Generator() starts from
_STATE_WORDS = 624

_LOW_24_BITS = np.uint64(2**24 - 1)
LOW_53_BITS = np.uint64(2**53 - 1)

# PyTorch's saved state: a C struct of its older generator, then a float32 normal (never set by
# today's CPU samplers, carried through unchanged). Bytes between the fields are zero.
_STATE = np.dtype(
    {
        "names": [
            *("seed", "left", "seeded", "next", "words", "normal", "has_normal"),
            *("float_normal", "has_float_normal"),
        ],
        "formats": ["<u8", "<i4", "<i4", "<u8", ("<u8", _STATE_WORDS), "<f8", "<i4", "<f4", "?"],
        "offsets": [0, 8, 12, 16, 24, 5024, 5040, 5048, 5052],
        "itemsize": 5056,
    }
)


class Generator:
    """A stream of pseudo-random numbers equal to that of a CPU `torch.Generator`.

    Hold `lock` while drawing more than once for one result, so that threads do not interleave.
    Generators pickle and copy with their state.
    """

    __slots__ = (
        "__weakref__",
        "_float_normal",
        "_fresh",
        "_seed",
        "_engine",
        "lock",
        "spare_normal",
    )

    lock: threading.RLock
    spare_normal: float | None
    """The second number of the last normal pair, if nobody has used it yet."""

    def __init__(self, device: Any = "cpu") -> None:
        """Start a stream from PyTorch's fixed default seed.

        Raises RuntimeError for a device other than the CPU.
        """
        kind = _device(device).type
        if kind != "cpu":
            raise RuntimeError(
                f"Cannot get {kind.upper()} generator: clew draws random numbers on the CPU only"
            )
        self.lock = threading.RLock()
        self._engine: Any = None
        self.manual_seed(_DEFAULT_SEED)

    def manual_seed(self, seed: int, /) -> Generator:
        """Restart the stream from `seed` and return this generator.

        A negative seed counts back from 2**64. Only the low 32 bits reach the engine, as in
        PyTorch. Raises RuntimeError if `seed` is not an integer, ValueError if it lies outside
        [-2**63, 2**64).
        """
        if isinstance(seed, bool) or not isinstance(seed, int | np.integer):
            raise RuntimeError(f"manual_seed expected a long, but got {type(seed).__name__}")
        if not -(2**63) <= seed < 2**64:
            raise ValueError(
                f"Overflow when unpacking long long: a seed lies in [-2**63, 2**64), got {seed}"
            )
        with self.lock:
            self._seed = int(seed) % 2**64
            if self._engine is not None:
                self._engine._legacy_seeding(self._seed % 2**32)
            self._fresh = True
            self.spare_normal = None
            self._float_normal: float | None = None
        return self

    @property
    def _twister(self) -> Any:
        """NumPy's Mersenne twister; made when first needed, for importing numpy.random is slow."""
        if self._engine is None:
            self._engine = np.random.MT19937(0)
            self._engine._legacy_seeding(self._seed % 2**32)
        return self._engine

    @property
    def device(self) -> _device:
        """The CPU."""
        return CPU

    def seed(self) -> int:
        """Restart the stream from 64 unpredictable bits and return them as an integer."""
        fresh = int.from_bytes(os.urandom(8), "little")
        self.manual_seed(fresh)
        return fresh

    def initial_seed(self) -> int:
        """The seed that the stream was last started from, in [0, 2**64)."""
        return self._seed

    def words32(self, count: int) -> np.ndarray:
        """The next `count` 32-bit words, as uint64 values."""
        if count:
            self._fresh = False
        return self._twister.random_raw(count)

    def words64(self, count: int) -> np.ndarray:
        """The next `count` 64-bit words; each takes two 32-bit words, the high half first."""
        halves = self.words32(2 * count)
        words = halves[0::2] << np.uint64(32)
        words |= halves[1::2]
        return words

    def uniform24(self, count: int) -> np.ndarray:
        """The next `count` multiples of 2**-24 in [0, 1), float32."""
        bits = (self.words32(count) & _LOW_24_BITS).view(np.int64)
        return bits.astype(np.float32) * np.float32(2.0**-24)

    def uniform53(self, count: int) -> np.ndarray:
        """The next `count` multiples of 2**-53 in [0, 1), float64."""
        return (self.words64(count) & LOW_53_BITS).view(np.int64) * 2.0**-53

    def next_uniform53(self) -> float:
        """What `uniform53(1)` would hold, as a float and several times sooner."""
        self._fresh = False
        high = self._twister.random_raw()
        low = self._twister.random_raw()
        return ((high << 32 | low) & (2**53 - 1)) * 2.0**-53

    def state_array(self) -> np.ndarray:
        """The state in the 5056 bytes of `torch.get_rng_state()`, a new uint8 array."""
        with self.lock:
            twister = self._twister.state["state"]
            record = np.zeros((), _STATE)
            record["seed"] = self._seed
            record["seeded"] = 1
            # The engine refills when its words are used up; PyTorch marks one that has not been
            # filled at all by a zero index.
            record["next"] = 0 if self._fresh else twister["pos"]
            record["left"] = _STATE_WORDS + 1 - twister["pos"]
            record["words"] = twister["key"]
            if self.spare_normal is not None:
                record["has_normal"], record["normal"] = 1, self.spare_normal
            if self._float_normal is not None:
                record["has_float_normal"], record["float_normal"] = True, self._float_normal
        return np.frombuffer(record.tobytes(), np.uint8).copy()

    def load_state_array(self, state: np.ndarray) -> None:
        """Continue from a state written by `state_array()` or `torch.get_rng_state()`.

        Raises TypeError unless `state` is a uint8 array, RuntimeError if it is not contiguous, has
        not 5056 bytes, or holds no valid engine.
        """
        if not isinstance(state, np.ndarray) or state.dtype != np.uint8:
            raise TypeError("RNG state must be a torch.ByteTensor")
        if not state.flags.c_contiguous:
            raise RuntimeError("RNG state must be contiguous")
        if state.size != _STATE.itemsize:
            raise RuntimeError(
                f"Expected a CPUGeneratorImplState of size {_STATE.itemsize} but found the input "
                f"RNG state size to be {state.size}"
            )
        record = np.frombuffer(state.tobytes(), _STATE)[0]
        left, position = int(record["left"]), int(record["next"])
        used_up = left == 1
        consistent = used_up or left + position == _STATE_WORDS + 1
        if not (record["seeded"] and 0 < left <= _STATE_WORDS >= position and consistent):
            raise RuntimeError("Invalid mt19937 state")
        words = record["words"].astype(np.uint32)
        position = _STATE_WORDS if used_up else position
        with self.lock:
            self._twister.state = {
                "bit_generator": "MT19937",
                "state": {"key": words, "pos": position},
            }
            self._seed = int(record["seed"])
            self._fresh = used_up and int(record["next"]) == 0
            self.spare_normal = float(record["normal"]) if record["has_normal"] else None
            self._float_normal = (
                float(record["float_normal"]) if record["has_float_normal"] else None
            )

    def clone_state(self) -> Generator:
        """A new generator that will draw the same numbers as this one from here on."""
        clone = type(self)()
        clone.load_state_array(self.state_array())
        return clone

    def get_offset(self) -> int:
        """Raises RuntimeError: only counter-based generators have an offset."""
        raise RuntimeError("CPU Generator does not use offset")

    def set_offset(self, offset: int, /) -> None:
        """Raises RuntimeError: only counter-based generators have an offset."""
        raise RuntimeError("CPU Generator does not use offset")

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (), self.state_array()

    def __setstate__(self, state: np.ndarray) -> None:
        self.load_state_array(state)


default_generator = Generator()
"""The generator that samplers use when none is given; starts from an unpredictable seed."""
default_generator.seed()


def manual_seed(seed: Any) -> Generator:
    """Restart the default generator from `int(seed)` and return it.

    Raises ValueError if the seed lies outside [-2**63, 2**64).
    """
    return default_generator.manual_seed(int(seed))


def seed() -> int:
    """Restart the default generator from unpredictable bits and return them."""
    return default_generator.seed()


def initial_seed() -> int:
    """The seed that the default generator was last started from."""
    return default_generator.initial_seed()
