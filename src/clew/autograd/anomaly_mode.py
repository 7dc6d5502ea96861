"""Anomaly mode under the name of the module that PyTorch has it in.  Layer 4."""

from clew.autograd.anomaly import detect_anomaly, set_detect_anomaly

__all__ = ["detect_anomaly", "set_detect_anomaly"]
