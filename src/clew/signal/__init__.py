"""``clew.signal``: signal processing, PyTorch's ``torch.signal``."""

from clew.signal import windows as windows
