"""Helpers for networks: PyTorch's ``torch.nn.utils``."""
