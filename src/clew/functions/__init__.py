"""Functions composed of ops, and those that make tensors.  Layer 4.

Importing this package publishes them (see ``publish.py``).
"""

from clew.functions import activation as activation
from clew.functions import arithmetic as arithmetic
from clew.functions import bilinear as bilinear
from clew.functions import complex as complex
from clew.functions import conv as conv
from clew.functions import copies as copies
from clew.functions import create as create
from clew.functions import decompose as decompose
from clew.functions import distance as distance
from clew.functions import dropout as dropout
from clew.functions import einsum as einsum
from clew.functions import embedding_bag as embedding_bag
from clew.functions import foreign as foreign
from clew.functions import gradient as gradient
from clew.functions import grid_sample as grid_sample
from clew.functions import histogram as histogram
from clew.functions import index as index
from clew.functions import indexing as indexing
from clew.functions import inplace_views as inplace_views
from clew.functions import join as join
from clew.functions import library as library
from clew.functions import linalg as linalg
from clew.functions import low_rank as low_rank
from clew.functions import lu as lu
from clew.functions import matrix as matrix
from clew.functions import memory as memory
from clew.functions import norm as norm
from clew.functions import norms as norms
from clew.functions import numeric as numeric
from clew.functions import order as order
from clew.functions import pool as pool
from clew.functions import powers as powers
from clew.functions import quantile as quantile
from clew.functions import random as random
from clew.functions import reduce as reduce
from clew.functions import reflect as reflect
from clew.functions import rules as rules
from clew.functions import search as search
from clew.functions import shape as shape
from clew.functions import softmax as softmax
from clew.functions import sparse as sparse
from clew.functions import special as special
from clew.functions import spectrum as spectrum
from clew.functions import statistics as statistics
from clew.functions import windows as windows
