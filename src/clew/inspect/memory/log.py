"""What a ledger writes down: each change of each storage, as it happens.

Knows no engine: `clew_engine.py` and `torch_engine.py` call it.  Writing is all it does, for it
runs between the program's own operations; what the rows mean is worked out by `history.py`.

Note [Queue]
    The program waits while its operations are noted, and what runs between them runs on cold
    caches, at two or three times the price.  So what happens is only put into a queue, and
    `Log.flush` turns it into rows, in its order, many at a time.  A `Storage` stands in the queue
    twice: for its birth, and for its death, which it puts there itself, without any Python code of
    ours; so does a `Kept`.  All else is a tuple.  For the same reason `clew_engine.py` writes the
    few lines of `Log.born` and `Log.keep` out where every operation passes: a call costs as much.

    What stands in the queue names storages by their keys, the ids of what owns the memory.  Memory
    may be noted as born that is known already (a gradient that is passed on as it is).  When that
    is booked, its key is one of the living: then the id cannot have been given to anything else
    since, for a death is noted before the id is free.  Whoever must know at once whether a storage
    is known, or where it is booked (`Log.find`, `Log.place`), has the queue booked.

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

from clew.inspect.memory.modules import MARK
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

Made = tuple[float, Site | None, Any, Any, int]
"""A birth: when; site, module and what as of an `Origin`; and the kind.  What is born at once may
have the same.  The module may be a mapping that has it under `MARK`, and `what` something with a
``label``."""


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
        key: the id of the object that owns the memory.
        nbytes: its size, when booked.
        made: until its birth is booked, how that was.
        place: where its bytes are booked; None before and after.
        keepers: how many saved tensors stand on it, when booked.
        keeper: what describes the first of them, if there are any.
    """

    __slots__ = ("keeper", "keepers", "key", "made", "nbytes", "place")

    key: int
    nbytes: int
    made: Made | None
    place: Any  # Place | None
    keepers: int
    keeper: Described


class Kept(weakref.ref):
    """A saved tensor that stands on a storage: the weak reference that tells of its end.

    Attributes:
        key: that of the storage.
        by: until it is booked, site and node as of a `Keeper`; but the node may have a
            ``node_name`` instead of being one.
        name: as of a `Keeper`.
        storage: the storage, when booked; None if it does not count.
    """

    __slots__ = ("by", "key", "name", "storage")

    key: int
    by: tuple[Site | None, Any] | None
    name: str
    storage: Storage | None


def _key(site: Site | None, *rest: Any) -> tuple[Any, ...]:
    """A key for the line and the rest."""
    # The hash of a code object is slow, and each is kept alive by its site.
    return rest if site is None else (id(site[0]), site[1], *rest)


_ROLE, _GRADIENT, _FIRST, _SIZE, _END = range(5)
"""What a tuple in the queue tells, its first item."""


class Log:
    """The rows, and what their numbers stand for.

    Args:
        limit: when there are so many rows, `full` is called.
        full: may drop the oldest.

    Attributes:
        storages: those that are alive, by their keys, when booked.
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
        self._kept: dict[int, Kept] = {}  # that are booked and have not ended, by their ids
        self._free: dict[Any, Place] = {}  # the places without a keeper
        self._gradients: dict[Any, Place] = {}  # by line and the leaf's place
        self._seen = 0  # so many bytes of the rows somebody has read
        self._one_at_a_time = threading.RLock()

    # -- while the program runs

    def find(self, owner: Any) -> Storage | None:
        """The storage whose memory `owner` owns."""
        self._book()
        storage = self.storages.get(id(owner))
        return storage if storage is not None and storage() is owner else None

    def born(
        self, owner: Any, nbytes: int, site: Site | None, module: str, what: Any,
        role: int = TEMPORARY,
    ) -> Storage:  # fmt: skip
        """A storage is there, perhaps for the first time; `what` is a word or has a ``label``."""
        storage = Storage(owner, self.note)
        storage.key, storage.nbytes = id(owner), nbytes
        storage.made, storage.place = (perf_counter(), site, module, what, role), None
        self.note(storage)
        return storage

    def keep(self, storage: Storage, saved: Any, site: Site | None, node: Any, name: str) -> None:
        """`saved`, which a node has by that name, stands on the storage.

        `node` is the node's name, or something with a ``node_name``.
        """
        kept = Kept(saved, self.note)
        kept.key, kept.by, kept.name = storage.key, (site, node), name
        self.note(kept)

    def play(self, storage: Storage, role: int, origin: Described | None = None) -> None:
        """The storage is of a kind that stays (or, as `TEMPORARY`, of none after all).

        Perhaps it is known by now what made it, or what it belongs to, too.
        """
        self.note((_ROLE, storage, role, origin))

    def is_gradient(self, key: int, leaf: int | None, site: Site | None) -> None:
        """The storage of that key is that of a gradient of the leaf, given by the key of its
        storage; computed at that line if one is given."""
        self.note((_GRADIENT, key, leaf, site))

    def is_first_gradient(self, key: int, site: Site | None) -> None:
        """A backward pass, called at that line, begins with the storage of that key."""
        self.note((_FIRST, key, site))

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
        self._kept.clear()

    # -- booking

    def flush(self) -> None:
        """Turn what is noted into rows; see Note [Queue]."""
        self._book()
        if len(self._rows) > self._limit:
            self._full()

    def _book(self) -> None:
        if not self.queue:
            return
        with self._one_at_a_time:
            count = len(self.queue)
            noted = self.queue[:count]
            del self.queue[:count]
            self._book_all(noted)

    def _book_all(self, noted: list[Any]) -> None:
        storages, kept, pack = self.storages, self._kept, _pack
        rows: list[bytes] = []
        add, last, time = rows.append, None, self._time
        for note in noted:
            kind = note.__class__
            if kind is Storage:
                made, key = note.made, note.key
                if made is not None:  # its birth
                    note.made = note.place = None
                    if key in storages:
                        continue
                    storages[key] = note
                    if made is not last:
                        last, time, place = made, made[0], self._place_of(made)
                    note.place, note.keepers = place, 0
                    add(pack(time, key, NOWHERE, place.number, note.nbytes))
                elif (before := note.place) is not None:  # its death
                    note.place = None
                    del storages[key]
                    add(pack(time, key, before.number, NOWHERE, note.nbytes))
            elif kind is Kept:
                if note.by is not None:
                    kept[id(note)] = note
                    storage, after = self._begin_kept(note)
                else:
                    del kept[id(note)]
                    storage = note.storage
                    if storage is None:
                        continue
                    storage.keepers -= 1
                    if storage.keepers or storage.place is None:
                        continue
                    after = storage.place.free
                if after is not None and (before := storage.place) is not after:
                    storage.place = after
                    add(pack(time, storage.key, before.number, after.number, storage.nbytes))
            else:
                self._rows += b"".join(rows)
                rows.clear()
                self._time = time
                _BOOK[note[0]](self, *note[1:])
        self._rows += b"".join(rows)
        self._time = time

    def _place_of(self, made: Made) -> Place:
        """Where what was made so is booked at first."""
        _, site, module, what, role = made
        word = what if what.__class__ is str else what.label
        path = module if module.__class__ is str else module.get(MARK, "")
        return self._free_place(site, path, word, role)

    def _begin_kept(self, kept: Kept) -> tuple[Any, Place | None]:
        """A node keeps a storage: that, and the place that it moves to, or None."""
        by, kept.by = kept.by, None
        kept.storage = storage = self.storages.get(kept.key)
        if storage is None or storage.place.kind == PARAMETER:  # which lives anyway
            kept.storage = None
            return None, None
        storage.keepers += 1
        if storage.keepers > 1:
            return None, None
        assert by is not None
        site, node = by
        storage.keeper = (site, node if node.__class__ is str else node.node_name, kept.name)
        if storage.place.kind < INPUT:
            return None, None
        return storage, self._kept_place(storage.place, storage.keeper)

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

    def _book_gradient(self, key: int, leaf: int | None, site: Site | None) -> None:
        storage = self.storages.get(key)
        if storage is None or storage.place.free.kind <= GRADIENT:
            return
        now = storage.place
        leaf_storage = None if leaf is None else self.storages.get(leaf)
        of = None if leaf_storage is None else leaf_storage.place
        site = now.origin.site if site is None else site
        described = _key(site, of)
        place = self._gradients.get(described)
        if place is None:
            module, what = ("", "") if of is None else (of.origin.module, of.origin.what)
            place = self._free_place(site, module, f"gradient of {what}", GRADIENT)
            self._gradients[described] = place
        self._move(storage, place)

    def _book_first(self, key: int, site: Site | None) -> None:
        storage = self.storages.get(key)
        if storage is not None and storage.place.origin == (site, "", MADE):
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
    _ROLE: Log._book_role,
    _GRADIENT: Log._book_gradient,
    _FIRST: Log._book_first,
    _SIZE: Log._book_size,
    _END: Log._book_event,
}
