"""The declarations of all ops, one family to a file.  Layer 2: arrays only, never Tensors.

Importing this package fills the registry.
"""

from clew.ops import choose, compare, elementwise, index, linalg, reduce, unary, view, write
