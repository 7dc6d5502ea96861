"""What a ledger writes down: each change of each storage, as it happens.

Knows no engine: `clew_engine.py` and `torch_engine.py` call it.  Writing is all it does, for it
runs between the program's own operations; what the rows mean is worked out by `history.py`.

Note [Queue]
    The program waits while its operations are noted, and what runs between them runs on cold
    caches.  So births, deaths and the rest only go into a queue, deaths without any Python code
    of ours; `Log.flush` turns them into rows, in their order, many at a time.  Until then only
    `made` and `roles` of a storage are up to date.

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
"""

from __future__ import annotations

import struct
import time
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np

from clew.site import Site

PARAMETER, BUFFER, GRADIENT, STATE, INPUT, SAVED, TEMPORARY = range(7)
KINDS = (
    "parameter", "buffer", "gradient", "optimizer state", "input", "saved for backward",
    "temporary",
)  # fmt: skip

NOWHERE = -1
"""The place of a storage before it is born and after it has died."""

ROW = np.dtype(
    [("seconds", "f8"), ("storage", "i8"), ("before", "i4"), ("after", "i4"), ("nbytes", "i8")]
)
"""A change of a storage: when, which, the places where it was and is booked, its size."""

_pack = struct.Struct("=dqiiq").pack


class Origin:
    """What made storages; there is one of each description, which `Log.origin` gives.

    Attributes:
        site: the user's line, not yet looked up, or None.
        module: the path of the module that ran, "" outside modules.
        what: the operation, in a word.
        places: the numbers of its places by keeper, then by kind.
    """

    __slots__ = ("module", "places", "site", "what")

    def __init__(self, site: Site | None, module: str, what: str) -> None:
        self.site = site
        self.module = module
        self.what = what
        self.places: dict[Keeper | None, list[int]] = {None: [NOWHERE] * len(KINDS)}


class Keeper:
    """The nodes of one kind recorded at one line, as keepers of storages for backward.

    There is one of each description, which `Log.keeper` gives.

    Attributes:
        site: the line that recorded the node.
        node: the node's name, ``MulBackward0``.
        name: what the node calls what it keeps, ``self``.
    """

    __slots__ = ("name", "node", "site")

    def __init__(self, site: Site | None, node: str, name: str) -> None:
        self.site = site
        self.node = node
        self.name = name


class Place:
    """Where bytes are booked: what made them, their kind, and what keeps them for backward."""

    __slots__ = ("keeper", "kind", "origin")

    def __init__(self, origin: Origin, kind: int, keeper: Keeper | None) -> None:
        self.origin = origin
        self.kind = kind
        self.keeper = keeper


class Storage(weakref.ref):
    """One storage while it is alive: the weak reference that tells of its death, with notes.

    Attributes:
        key: the id of the object that owns the memory.
        nbytes: its size.
        made: what made it.
        roles: bit k is set if it is known to be of kind k, for the kinds that stay.
        seconds: when it was born.
        place: where its bytes are booked.
        origin: what made it or what it belongs to, as far as is booked.
        booked: the roles that are booked.
        keepers: how many saved tensors stand on it, as far as is booked.
        keeper: the first of them; None if there are none.
    """

    __slots__ = (
        "booked", "keeper", "keepers", "key", "made", "nbytes", "origin", "place", "roles",
        "seconds",
    )  # fmt: skip

    key: int
    nbytes: int
    made: Origin
    roles: int
    seconds: float
    place: int
    origin: Origin
    booked: int
    keepers: int
    keeper: Keeper | None


class Kept(weakref.ref):
    """A saved tensor that stands on a storage: the weak reference that tells of its end.

    Attributes:
        storage: that storage.
        by: the node.
        is_booked: whether the storage counts it among its keepers.
    """

    __slots__ = ("by", "is_booked", "storage")

    storage: Storage
    by: Keeper
    is_booked: bool


def _first_role(roles: int) -> int:
    return next((kind for kind in range(SAVED) if roles >> kind & 1), TEMPORARY)


_KIND = tuple(_first_role(roles) for roles in range(1 << SAVED))
"""The kind of a storage by its roles, were it not saved."""

_BITS = tuple(1 << kind if kind < SAVED else 0 for kind in range(len(KINDS)))
"""The bit of a kind among the roles."""


class Event:
    """The end of a backward pass, of an optimizer's step, or a mark of the user's.

    Attributes:
        rows: the list for events of this sort, which gets the number of rows so far, and `who`.
        who: which optimizer stepped, else 0.
    """

    __slots__ = ("rows", "who")

    def __init__(self, rows: list[tuple[int, int]], who: int = 0) -> None:
        self.rows = rows
        self.who = who


class Resize:
    """A storage has another size."""

    __slots__ = ("nbytes", "storage")

    def __init__(self, storage: Storage, nbytes: int) -> None:
        self.storage = storage
        self.nbytes = nbytes


class Log:
    """The rows, and what their numbers stand for.

    Args:
        limit: when there are so many rows, `full` is called.
        full: may drop the oldest.

    Attributes:
        storages: those that are alive, by the id of what owns their memory.
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
        self._start = self._time = time.perf_counter()
        self._origins: dict[Any, Origin] = {}
        self._keepers: dict[Any, Keeper] = {}
        self._kept: dict[int, Kept] = {}

    # -- while the program runs

    def find(self, owner: Any) -> Storage | None:
        """The storage whose memory `owner` owns."""
        storage = self.storages.get(id(owner))
        # A dead one stays until it is booked; another object may have its id by then.
        return storage if storage is not None and storage() is owner else None

    def origin(self, site: Site | None, module: str, what: str) -> Origin:
        """The one origin of that description."""
        # The hash of a code object is slow, and each is kept alive by its site.
        key = (module, what) if site is None else (id(site[0]), site[1], module, what)
        found = self._origins.get(key)
        if found is None:
            found = self._origins[key] = Origin(site, module, what)
        return found

    def keeper(self, site: Site | None, node: str, name: str) -> Keeper:
        """The one keeper of that description."""
        key = (node, name) if site is None else (id(site[0]), site[1], node, name)
        found = self._keepers.get(key)
        if found is None:
            found = self._keepers[key] = Keeper(site, node, name)
        return found

    def born(self, owner: Any, nbytes: int, made: Origin, role: int = TEMPORARY) -> Storage:
        """A storage is there."""
        note = self.note
        storage = Storage(owner, note)
        key = storage.key = id(owner)
        storage.nbytes = nbytes
        storage.made = made
        storage.roles = _BITS[role]
        storage.seconds = time.perf_counter()
        storage.place = NOWHERE
        self.storages[key] = storage
        note(storage)
        return storage

    def play(self, storage: Storage, role: int, made: Origin | None = None) -> None:
        """The storage is of a kind that stays (or, as `TEMPORARY`, of none after all).

        Perhaps it is known by now what made it, too.
        """
        storage.roles = storage.roles | _BITS[role] if role < SAVED else 0
        if made is not None:
            storage.made = made
        if storage.place != NOWHERE:  # else its birth is not yet booked, and will be as this
            self.note((storage, role, made))

    def keep(self, storage: Storage, by: Keeper, saved: Any) -> Kept:
        """`saved`, which a node of `by` has, stands on the storage."""
        kept = Kept(saved, self.note)
        kept.storage = storage
        kept.by = by
        kept.is_booked = False
        self.note(kept)  # which holds it until it is booked
        return kept

    def resize(self, storage: Storage, nbytes: int) -> None:
        """The storage has another size now."""
        self.note(Resize(storage, nbytes))

    def close(self) -> None:
        """Book what has happened, and listen to no deaths any more."""
        self.flush()
        self.storages.clear()
        self._kept.clear()

    # -- booking

    def flush(self) -> None:
        """Turn what is noted into rows; see Note [Queue]."""
        count = len(self.queue)
        noted = self.queue[:count]
        del self.queue[:count]
        rows, storages, pack = self._rows, self.storages, _pack
        for note in noted:
            kind = note.__class__
            if kind is Storage:
                place = note.place
                if place == NOWHERE:
                    self._time = note.seconds
                    origin = note.origin = note.made
                    roles = note.booked = note.roles
                    note.keeper = None
                    place = origin.places[None][_KIND[roles]]
                    if place == NOWHERE:
                        place = self._place(origin, _KIND[roles], None)
                    note.place = place
                    rows += pack(note.seconds, note.key, NOWHERE, place, note.nbytes)
                else:
                    key = note.key
                    rows += pack(self._time, key, place, NOWHERE, note.nbytes)
                    note.place = NOWHERE
                    if storages.get(key) is note:
                        del storages[key]
            elif kind is Kept:
                self._count(note)
            elif kind is tuple:
                storage, role, made = note
                booked = storage.booked | _BITS[role] if role < SAVED else 0
                if made is None:
                    made = storage.origin
                storage.booked, storage.origin = booked, made
                self._book(storage)
            elif kind is Event:
                note.rows.append((self.length, note.who))
            else:
                storage = note.storage
                rows += pack(self._time, storage.key, storage.place, NOWHERE, storage.nbytes)
                storage.place, storage.nbytes = NOWHERE, note.nbytes
                self._book(storage)
        if len(rows) > self._limit:
            self._full()

    def _count(self, kept: Kept) -> None:
        storage = kept.storage
        if kept.is_booked:
            del self._kept[id(kept)]
            storage.keepers -= 1
            if storage.keepers:
                return
            storage.keeper = None
        else:
            kept.is_booked = True
            self._kept[id(kept)] = kept
            if storage.keeper is not None:
                storage.keepers += 1
                return
            storage.keepers = 1
            storage.keeper = kept.by
        if storage.place != NOWHERE:  # a packed form may go before what kept it does
            self._book(storage)

    def _book(self, storage: Storage) -> None:
        """Find the place that the storage belongs to by now; see Note [Kinds of memory]."""
        kind, keeper = _KIND[storage.booked], storage.keeper
        if keeper is not None:
            if kind == TEMPORARY:
                kind = SAVED
            elif kind < INPUT:
                keeper = None
        by_kind = storage.origin.places.get(keeper)
        place = NOWHERE if by_kind is None else by_kind[kind]
        if place == NOWHERE:
            place = self._place(storage.origin, kind, keeper)
        if place != storage.place:
            rows = self._rows
            rows += _pack(self._time, storage.key, storage.place, place, storage.nbytes)
            storage.place = place

    def _place(self, origin: Origin, kind: int, keeper: Keeper | None) -> int:
        """The number of a place that is new."""
        by_kind = origin.places.setdefault(keeper, [NOWHERE] * len(KINDS))
        place = by_kind[kind] = len(self.places)
        self.places.append(Place(origin, kind, keeper))
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
        rows = np.frombuffer(self._rows[:end], ROW)
        rows["seconds"] -= self._start
        return rows

    def drop(self, count: int) -> None:
        """Forget the oldest rows."""
        del self._rows[: count * ROW.itemsize]
        self.dropped += count
