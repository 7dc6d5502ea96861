"""Made-up data sets under the names of torchvision's; `PUBLIC_SCRIPTS_IMAGES` says how many."""

import os

import numpy as np
import torch
from PIL import Image


class _Images(torch.utils.data.Dataset):
    """Noise with a bright patch whose place is the class."""

    classes = tuple("0123456789")
    side, channels = 28, 0

    def __init__(
        self, root=None, train=True, transform=None, target_transform=None, download=False
    ):
        count = int(os.environ.get("PUBLIC_SCRIPTS_IMAGES", "1024"))
        if not train:
            count = max(count // 4, 1)
        rng = np.random.RandomState(1 if train else 2)
        shape = (count, self.side, self.side) + ((self.channels,) if self.channels else ())
        self._pixels = rng.randint(0, 64, shape).astype(np.uint8)
        self._classes = rng.randint(0, 10, count)
        for pixels, label in zip(self._pixels, self._classes, strict=True):
            row, column = divmod(int(label), 4)
            pixels[7 * row : 7 * row + 7, 7 * column : 7 * column + 7] += 160
        self.train, self.transform, self.target_transform = train, transform, target_transform

    @property
    def data(self):
        return torch.from_numpy(self._pixels)

    @property
    def targets(self):
        return torch.from_numpy(self._classes)

    train_data = test_data = data
    train_labels = test_labels = targets

    def __len__(self):
        return len(self._pixels)

    def __getitem__(self, index):
        image, label = Image.fromarray(self._pixels[index]), int(self._classes[index])
        if self.transform is not None:
            image = self.transform(image)
        if self.target_transform is not None:
            label = self.target_transform(label)
        return image, label


class MNIST(_Images):
    """Grey images, 28 by 28."""


class CIFAR10(_Images):
    """Coloured images, 32 by 32."""

    side, channels = 32, 3


class FakeData(torch.utils.data.Dataset):
    """Normal noise, a generator of its own for each image, as torchvision's."""

    def __init__(self, size=64, image_size=(3, 224, 224), num_classes=10, transform=None):
        self.size, self.image_size = size, image_size
        self.num_classes, self.transform = num_classes, transform

    def __len__(self):
        return self.size

    def __getitem__(self, index):
        rng = np.random.RandomState(1000 + index)
        pixels = rng.randint(0, 256, self.image_size).astype(np.uint8).transpose(1, 2, 0)
        image = Image.fromarray(pixels)
        return image if self.transform is None else self.transform(image), int(rng.randint(10))
