"""The declarations of all ops, one family to a file.  Layer 2: arrays only, never Tensors.

Importing this package fills the registry.
"""

from clew.ops import activation as activation
from clew.ops import attention as attention
from clew.ops import bessel as bessel
from clew.ops import bilinear as bilinear
from clew.ops import choose as choose
from clew.ops import compare as compare
from clew.ops import complex as complex
from clew.ops import conv as conv
from clew.ops import ctc as ctc
from clew.ops import cumulative as cumulative
from clew.ops import decompose as decompose
from clew.ops import elementwise as elementwise
from clew.ops import elu as elu
from clew.ops import embed as embed
from clew.ops import embedding as embedding
from clew.ops import embedding_bag as embedding_bag
from clew.ops import fft as fft
from clew.ops import fractional_pool as fractional_pool
from clew.ops import gamma as gamma
from clew.ops import grid_sample as grid_sample
from clew.ops import gru as gru
from clew.ops import im2col as im2col
from clew.ops import index as index
from clew.ops import join as join
from clew.ops import linalg as linalg
from clew.ops import loss as loss
from clew.ops import margin_loss as margin_loss
from clew.ops import matrices as matrices
from clew.ops import matrix as matrix
from clew.ops import norm as norm
from clew.ops import norms as norms
from clew.ops import numeric as numeric
from clew.ops import order as order
from clew.ops import pad as pad
from clew.ops import piecewise as piecewise
from clew.ops import pool as pool
from clew.ops import power as power
from clew.ops import pseudo as pseudo
from clew.ops import random as random
from clew.ops import recurrent as recurrent
from clew.ops import reduce as reduce
from clew.ops import reflect as reflect
from clew.ops import resize as resize
from clew.ops import scatter as scatter
from clew.ops import search as search
from clew.ops import slices as slices
from clew.ops import softmax as softmax
from clew.ops import solve as solve
from clew.ops import sparse as sparse
from clew.ops import special as special
from clew.ops import statistics as statistics
from clew.ops import strided as strided
from clew.ops import unary as unary
from clew.ops import view as view
from clew.ops import write as write

# Derived from the ops above.
from clew.ops import copies as copies  # isort: skip
