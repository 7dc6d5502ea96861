"""What a ledger writes down: each change of each storage, as it happens.

Knows no engine: `clew_engine.py` and `torch_engine.py` call it.  Writing is all it does, for it
runs between the program's own operations; what the rows mean is worked out by `history.py`.

Note [Queue]
    The program waits while its operations are noted, and what runs between them runs on cold
    caches.  So what happens is only put into a queue: a death by the weak reference that tells of
    it, without any Python code of ours; all else as a tuple of plain values.  `Log.flush` turns
    them into rows, in their order, many at a time.  A `Storage` is a bare weak reference until
    then; whoever must know more of it (`Log.place`) has the queue flushed.

    An operation's result is noted as a birth without a look whether its memory is known.  If it
    is, the booking finds it alive and leaves it at that.

Note [Kinds of memory]
    A storage has one kind at a time, the first that holds of:

    - parameter: of a leaf that requires grad, or of an ``nn.Parameter``;
    - buffer: of a buffer of a module that was called;
    - gradient: it has been the ``grad`` of a tensor;
    - optimizer state: an optimizer's step has made it;
    - input: made from no other tensor (a factory, NumPy, a file), outside modules and backward;
    - saved for backward: a node of a graph keeps it;
    - temporary: only the program's variables, or the step that runs, hold it.

    The first five stay; a storage becomes *saved* when the first node keeps it, and *temporary*
    again when the last one has let go.  An input that a graph keeps stays an input, and the graph
    is named beside it.

Note [Places]
    A `Place` is what bytes are booked under: their kind, what made them and what keeps them.  A
    storage moves from place to place, and the places know the way: which one is next if a node
    keeps the storage, and which one if none does any more.  So most events cost one look-up.
"""

from __future__ import annotations

import struct
import threading
import weakref
from collections.abc import Callable
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np

from clew.site import Site

PARAMETER, BUFFER, GRADIENT, STATE, INPUT, SAVED, TEMPORARY = range(7)
KINDS = (
    "parameter", "buffer", "gradient", "optimizer state", "input", "saved for backward",
    "temporary",
)  # fmt: skip

MADE = "made"
"""What made those of factories: no operation."""

SEED = "first gradient"
"""What makes the gradient that a backward pass begins with."""

OFTEN = 1024
"""The queue is flushed when so much is noted."""

NOWHERE = -1
"""The number of the place of a storage before it is born and after it has died."""

ROW = np.dtype(
    [("seconds", "f8"), ("storage", "i8"), ("before", "i4"), ("after", "i4"), ("nbytes", "i8")]
)
"""A change of a storage: when, which, the places where it was and is booked, its size."""

_pack = struct.Struct("=dqiiq").pack


Described = tuple[Site | None, str, str]
"""An `Origin` or `Keeper` as a plain tuple."""


class Origin(NamedTuple):
    """What made a storage, or what it belongs to.

    Attributes:
        site: the user's line, not yet looked up, or None.
        module: the path of the module that ran, "" outside modules.
        what: the operation, in a word.
    """

    site: Site | None
    module: str
    what: str


class Keeper(NamedTuple):
    """The nodes of one kind recorded at one line, as keepers of storages for backward.

    Attributes:
        site: the line that recorded the node.
        node: the node's name, ``MulBackward0``.
        name: what the node calls what it keeps, ``self``.
    """

    site: Site | None
    node: str
    name: str


class Place:
    """What bytes are booked under; see Note [Places].

    Attributes:
        number: its index among the places.
        origin: what made them.
        kind: their kind.
        keeper: what keeps them for backward, or None.
        free: the place without the keeper.
        kept: the places with one, by what describes it.
    """

    __slots__ = ("free", "keeper", "kept", "kind", "number", "origin")

    def __init__(
        self, number: int, origin: Origin, kind: int, keeper: Keeper | None, free: Place | None
    ) -> None:
        self.number = number
        self.origin = origin
        self.kind = kind
        self.keeper = keeper
        self.free = free or self
        self.kept: dict[Any, Place] = {}


class Storage(weakref.ref):
    """One storage while it is alive: the weak reference that tells of its death.

    Attributes:
        place: where its bytes are booked; None before and after.
        key: the id of the object that owns the memory, when booked.
        nbytes: its size, when booked.
        keepers: how many saved tensors stand on it, when booked.
        keeper: what describes the first of them, if there are any.
    """

    __slots__ = ("keeper", "keepers", "key", "nbytes", "place")

    place: Any  # Place | None
    key: int
    nbytes: int
    keepers: int
    keeper: Described


class Kept(weakref.ref):
    """A saved tensor that stands on a storage: the weak reference that tells of its end.

    Attributes:
        storage: that storage, when booked.
    """

    __slots__ = ("storage",)

    storage: Storage


def _key(site: Site | None, *rest: Any) -> tuple[Any, ...]:
    """A key for the line and the rest."""
    # The hash of a code object is slow, and each is kept alive by its site.
    return rest if site is None else (id(site[0]), site[1], *rest)


_BIRTH, _KEPT, _ROLE, _GRADIENT, _FIRST, _SIZE, _END = range(7)
"""What a tuple in the queue tells, its first item."""


class Log:
    """The rows, and what their numbers stand for.

    Args:
        limit: when there are so many rows, `full` is called.
        full: may drop the oldest.

    Attributes:
        storages: those that were alive not long ago, by the id of what owns their memory.
        places: by their numbers.
        steps: (number of rows, which optimizer) at the end of each optimizer step.
        marks: the same at each mark of the user's, with 0.
        passes: the same at the end of each backward pass.
        modules: the class of the module at each path.
        dropped: how many rows have been dropped.
    """

    def __init__(self, limit: int, full: Callable[[], None]) -> None:
        self.storages: dict[int, Storage] = {}
        self.places: list[Place] = []
        self.steps: list[tuple[int, int]] = []
        self.marks: list[tuple[int, int]] = []
        self.passes: list[tuple[int, int]] = []
        self.modules: dict[str, str] = {}
        self.dropped = 0
        self.queue: list[Any] = []
        self.note = self.queue.append
        self._rows = bytearray()
        self._limit = limit * ROW.itemsize
        self._full = full
        self._start = self._time = perf_counter()
        self._alive: dict[int, Storage] = {}  # that are booked, by their keys
        self._kept: dict[int, Kept] = {}  # that are booked, by their ids
        self._free: dict[Any, Place] = {}  # the places without a keeper
        self._gradients: dict[Any, Place] = {}  # by line and the leaf's place
        self._seen = 0  # so many bytes of the rows somebody has read
        self._one_at_a_time = threading.RLock()

    # -- while the program runs

    def find(self, owner: Any) -> Storage | None:
        """The storage whose memory `owner` owns."""
        storage = self.storages.get(id(owner))
        # Dead ones stay for a while; another object may have the id by then.
        return storage if storage is not None and storage() is owner else None

    def born(
        self, owner: Any, nbytes: int, site: Site | None, module: str, what: Any,
        role: int = TEMPORARY,
    ) -> Storage:  # fmt: skip
        """A storage is there, if it was not; `what` is a word, or something with a ``label``."""
        note, key = self.note, id(owner)
        self.storages[key] = storage = Storage(owner, note)
        storage.place = None
        note((_BIRTH, storage, key, nbytes, perf_counter(), site, module, what, role))
        return storage

    def keep(self, owner: Any, saved: Any, site: Site | None, node: Any, name: str) -> None:
        """`saved`, which a node has by that name, stands on a storage that is known.

        `node` is the node's name, or something with a ``node_name``.
        """
        note = self.note
        note((_KEPT, Kept(saved, note), id(owner), site, node, name))

    def play(self, storage: Storage, role: int, origin: Described | None = None) -> None:
        """The storage is of a kind that stays (or, as `TEMPORARY`, of none after all).

        Perhaps it is known by now what made it, or what it belongs to, too.
        """
        self.note((_ROLE, storage, role, origin))

    def is_gradient(self, storage: Storage, leaf: Storage | None, site: Site | None) -> None:
        """The storage is that of a gradient of the leaf, computed at that line if one is given."""
        self.note((_GRADIENT, storage, leaf, site))

    def is_first_gradient(self, storage: Storage, site: Site | None) -> None:
        """A backward pass, called at that line, begins with the storage."""
        self.note((_FIRST, storage, site))

    def resize(self, storage: Storage, nbytes: int) -> None:
        """The storage has another size now."""
        self.note((_SIZE, storage, nbytes))

    def end(self, rows: list[tuple[int, int]], who: int = 0) -> None:
        """A backward pass, an optimizer's step or the like ends.

        Args:
            rows: the list for events of this sort, which gets the number of rows so far, and `who`.
            who: which optimizer stepped, else 0.
        """
        self.note((_END, rows, who))

    def place(self, storage: Storage) -> Place:
        """Where the storage is booked by now."""
        self._book()
        found: Place = storage.place
        return found

    def close(self) -> None:
        """Book what has happened, and listen to no deaths any more."""
        self.flush()
        self.storages.clear()
        self._alive.clear()
        self._kept.clear()

    # -- booking

    def flush(self) -> None:
        """Turn what is noted into rows; see Note [Queue]."""
        self._book()
        if len(self._rows) > self._limit:
            self._full()

    def _book(self) -> None:
        with self._one_at_a_time:
            count = len(self.queue)
            noted = self.queue[:count]
            del self.queue[:count]
            self._book_all(noted)

    def _book_all(self, noted: list[Any]) -> None:
        rows, alive, free, pack = self._rows, self._alive, self._free, _pack
        storages = self.storages
        for note in noted:
            kind = note.__class__
            if kind is Storage:
                key, place = note.key, note.place
                if place is not None:
                    note.place = None
                    del alive[key]
                    rows += pack(self._time, key, place.number, NOWHERE, note.nbytes)
            elif kind is Kept:
                self._book_end(note)
            elif note[0] == _BIRTH:
                _, storage, key, nbytes, self._time, site, module, what, role = note
                storage.key = key
                if key in alive:  # it was known
                    storages[key] = alive[key]
                    continue
                if what.__class__ is not str:
                    what = what.label
                place = free.get(
                    (module, what, role)
                    if site is None
                    else (id(site[0]), site[1], module, what, role)
                ) or self._free_place(site, module, what, role)
                alive[key] = storage
                storage.place = place
                storage.nbytes = nbytes
                storage.keepers = 0
                rows += pack(self._time, key, NOWHERE, place.number, nbytes)
            else:
                _BOOK[note[0]](self, *note[1:])
        if len(storages) > 2 * len(alive) + OFTEN:
            for key in storages.keys() - alive.keys():
                del storages[key]

    def _book_kept(self, kept: Kept, key: int, site: Site | None, node: Any, name: str) -> None:
        self._kept[id(kept)] = kept
        kept.storage = storage = self._alive[key]
        storage.keepers += 1
        if storage.keepers == 1:
            by = (site, node if node.__class__ is str else node.node_name, name)
            storage.keeper = by
            if storage.place.kind >= INPUT:
                self._move(storage, self._kept_place(storage.place, by))

    def _book_end(self, kept: Kept) -> None:
        storage = self._kept.pop(id(kept)).storage
        storage.keepers -= 1
        if not storage.keepers and storage.place is not None:
            self._move(storage, storage.place.free)

    def _book_role(self, storage: Storage, role: int, origin: Described | None) -> None:
        if storage.place is None:  # it is dead
            return
        now = storage.place.free
        kind = min(role, now.kind) if role < SAVED else role
        site, module, what = origin or now.origin
        place = self._free_place(site, module, what, kind)
        if storage.keepers and kind >= INPUT:
            place = self._kept_place(place, storage.keeper)
        birth = self._row(storage, NOWHERE, storage.place.number)
        if len(self._rows) > self._seen and self._rows.endswith(birth):  # it was born as that
            self._rows[-ROW.itemsize :] = self._row(storage, NOWHERE, place.number)
            storage.place = place
        else:
            self._move(storage, place)

    def _book_gradient(self, storage: Storage, leaf: Storage | None, site: Site | None) -> None:
        now = storage.place
        if now is None or now.free.kind <= GRADIENT:
            return
        of = None if leaf is None else leaf.place
        site = now.origin.site if site is None else site
        key = _key(site, of)
        place = self._gradients.get(key)
        if place is None:
            module, what = ("", "") if of is None else (of.origin.module, of.origin.what)
            place = self._free_place(site, module, f"gradient of {what}", GRADIENT)
            self._gradients[key] = place
        self._move(storage, place)

    def _book_first(self, storage: Storage, site: Site | None) -> None:
        if storage.place is not None and storage.place.origin == (site, "", MADE):
            # The one that backward made itself: a tensor, made from no other.
            self._book_role(storage, TEMPORARY, (site, "", SEED))

    def _book_size(self, storage: Storage, nbytes: int) -> None:
        number = storage.place.number
        self._rows += self._row(storage, number, NOWHERE)
        storage.nbytes = nbytes
        self._rows += self._row(storage, NOWHERE, number)

    def _book_event(self, rows: list[tuple[int, int]], who: int) -> None:
        rows.append((self.length, who))

    def _move(self, storage: Storage, place: Place) -> None:
        before, after = storage.place.number, place.number
        if before != after:
            storage.place = place
            self._rows += _pack(self._time, storage.key, before, after, storage.nbytes)

    def _row(self, storage: Storage, before: int, after: int) -> bytes:
        return _pack(self._time, storage.key, before, after, storage.nbytes)

    def _free_place(self, site: Site | None, module: str, what: str, kind: int) -> Place:
        """The place for storages of that origin and kind which no node keeps."""
        key = _key(site, module, what, kind)
        found = self._free.get(key)
        if found is None:
            origin = Origin(site, module, what)
            found = self._free[key] = self._new_place(origin, kind, None, None)
        return found

    def _kept_place(self, free: Place, by: Described) -> Place:
        """The place for storages like those at `free`, but kept; see Note [Kinds of memory]."""
        key = _key(*by)
        found = free.kept.get(key)
        if found is None:
            kind = SAVED if free.kind == TEMPORARY else free.kind
            found = free.kept[key] = self._new_place(free.origin, kind, Keeper(*by), free)
        return found

    def _new_place(
        self, origin: Origin, kind: int, keeper: Keeper | None, free: Place | None
    ) -> Place:
        place = Place(len(self.places), origin, kind, keeper, free)
        self.places.append(place)
        return place

    # -- reading

    @property
    def length(self) -> int:
        """The number of rows, dropped ones included."""
        return self.dropped + len(self._rows) // ROW.itemsize

    def read(self, count: int | None = None) -> np.ndarray:
        """The oldest `count` rows that are there; all by default."""
        # A copy: the rows cannot grow while somebody looks at their memory.
        end = None if count is None else count * ROW.itemsize
        self._seen = len(self._rows)
        rows = np.frombuffer(self._rows[:end], ROW)
        rows["seconds"] -= self._start
        return rows

    def drop(self, count: int) -> None:
        """Forget the oldest rows."""
        del self._rows[: count * ROW.itemsize]
        self._seen = len(self._rows)
        self.dropped += count


_BOOK: dict[int, Callable[..., None]] = {
    _KEPT: Log._book_kept,
    _ROLE: Log._book_role,
    _GRADIENT: Log._book_gradient,
    _FIRST: Log._book_first,
    _SIZE: Log._book_size,
    _END: Log._book_event,
}
