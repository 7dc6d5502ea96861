"""The 18 rules.  Each listens to the watcher's stream; see docs/doctor for a page on each."""

from __future__ import annotations

from clew.inspect.doctor.rules.aliases import ChangedInput
from clew.inspect.doctor.rules.base import Options, Rule
from clew.inspect.doctor.rules.carried import CarriedState
from clew.inspect.doctor.rules.cycles import GraphInGrad, HookCycle, TensorOnCtx
from clew.inspect.doctor.rules.dead import DeadParameters, DeadTerm
from clew.inspect.doctor.rules.gradients import (
    LeakedLoss,
    MisplacedClear,
    MissingClear,
    UnownedGradients,
)
from clew.inspect.doctor.rules.growth import GrowingGraph
from clew.inspect.doctor.rules.parallel import Replicas
from clew.inspect.doctor.rules.retain import NeedlessRetain
from clew.inspect.doctor.rules.roots import DeadGrad, LeafRoot, ReboundParameter
from clew.inspect.doctor.rules.unused import DeadBranch, UnusedForward
from clew.inspect.doctor.rules.writes import SilentChange, WriteToSaved

RULES: tuple[type[Rule], ...] = (
    CarriedState, UnusedForward, DeadBranch, NeedlessRetain, MissingClear, MisplacedClear,
    LeakedLoss, WriteToSaved, SilentChange, ChangedInput, LeafRoot, ReboundParameter, DeadGrad,
    DeadParameters, DeadTerm, GraphInGrad, TensorOnCtx, HookCycle, Replicas, UnownedGradients,
    GrowingGraph,
)  # fmt: skip
"""In the order in which they judge at the end; a later one may give way to an earlier one."""

TITLES = {
    "R01": "graph grows across iterations",
    "R02": "recorded, and no backward ever",
    "R03": "dead branch",
    "R04": "gradients that nobody uses",
    "R05": "needless retain_graph",
    "R06": "state carried over with its graph",
    "R07": "zero_grad missing",
    "R08": "zero_grad misplaced",
    "R09": "another loss leaked into these gradients",
    "R10": "in-place write to a saved tensor",
    "R11": "in-place write to a leaf",
    "R12": "optimizer step between forward and backward",
    "R13": "silent change of a value",
    "R14": "no path from the loss",
    "R15": "dead parameters or dead term of the loss",
    "R16": "leak by a cycle",
    "R17": "DataParallel",
    "R18": "parameter that is no leaf",
}

__all__ = ["RULES", "TITLES", "Options", "Rule"]
