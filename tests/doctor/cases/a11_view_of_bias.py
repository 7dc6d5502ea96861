# expect R11
from torch import nn

conv = nn.Conv2d(2, 255, 1)
b = conv.get_parameter("bias").view(3, 85)
b[:, 4] += 0.5
