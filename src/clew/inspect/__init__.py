"""Look at a graph: as plain data, in a terminal, as a picture.  `clew.memory` has what it holds.

A client of the core: it reads public attributes of nodes and listens as an observer.
"""

from clew.inspect.dot import Dot, make_dot
from clew.inspect.model import Graph, GraphNode, Saved, Scope
from clew.inspect.recorder import record
from clew.inspect.render import NoGraphviz
from clew.inspect.timing import timed_backward
from clew.inspect.trace import trace
from clew.inspect.walk import graph

__all__ = [
    "Dot", "Graph", "GraphNode", "NoGraphviz", "Saved", "Scope", "graph",
    "make_dot", "record", "timed_backward", "trace",
]  # fmt: skip
