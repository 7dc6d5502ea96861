"""Run by `import torch` in a process that has no alias yet: turns it on and gives way to it.

Imports `clew.torch_alias`.  A module that replaces itself in `sys.modules` while it is imported
is, for Python, the module that was imported.
"""

import importlib

from clew.torch_alias import enable_torch

enable_torch(replace=True)
importlib.import_module("torch")
