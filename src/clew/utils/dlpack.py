"""``clew.utils.dlpack``: memory shared with other libraries by the DLPack protocol."""

from clew.functions.foreign import DLDeviceType as DLDeviceType
from clew.functions.foreign import from_dlpack as from_dlpack
from clew.functions.foreign import to_dlpack as to_dlpack
