"""Functions that PyTorch has at its top level and here, the very same."""

from __future__ import annotations

from clew.publish import FUNCTIONS

pixel_shuffle = FUNCTIONS["pixel_shuffle"]
pixel_unshuffle = FUNCTIONS["pixel_unshuffle"]
channel_shuffle = FUNCTIONS["channel_shuffle"]
native_channel_shuffle = FUNCTIONS["native_channel_shuffle"]
