"""Tensor methods that are written by hand: conversion, copying, printing, the legacy constructor.

Layer 4.  Importing this package publishes them.
"""

from clew.methods import convert as convert
from clew.methods import graph as graph
from clew.methods import inspect as inspect
from clew.methods import legacy as legacy
from clew.methods import storage as storage
