"""The transforms of images that the listed scripts use, on PIL images and on tensors."""

import numpy as np
import torch
from PIL import Image, ImageOps


class Compose:
    def __init__(self, transforms):
        self.transforms = transforms

    def __call__(self, image):
        for transform in self.transforms:
            image = transform(image)
        return image


class ToTensor:
    def __call__(self, image):
        pixels = np.array(image)
        if pixels.ndim == 2:
            pixels = pixels[:, :, None]
        return torch.from_numpy(pixels.transpose(2, 0, 1).copy()).float().div(255)


class Normalize:
    def __init__(self, mean, std):
        self.mean = torch.tensor(mean).view(-1, 1, 1)
        self.std = torch.tensor(std).view(-1, 1, 1)

    def __call__(self, tensor):
        return (tensor - self.mean) / self.std


class Lambda:
    def __init__(self, function):
        self.function = function

    def __call__(self, image):
        return self.function(image)


class Pad:
    def __init__(self, padding):
        self.padding = padding

    def __call__(self, image):
        return ImageOps.expand(image, self.padding)


class Resize:
    def __init__(self, size):
        self.size = size

    def __call__(self, image):
        width, height = image.size
        scale = self.size / min(width, height)
        return image.resize(
            (round(width * scale), round(height * scale)), Image.Resampling.BILINEAR
        )


class CenterCrop:
    def __init__(self, size):
        self.size = size

    def __call__(self, image):
        left, top = ((length - self.size) // 2 for length in image.size)
        return image.crop((left, top, left + self.size, top + self.size))


class RandomCrop:
    def __init__(self, size, padding=0):
        self.size, self.padding = size, padding

    def __call__(self, image):
        image = ImageOps.expand(image, self.padding) if self.padding else image
        left, top = (
            int(torch.randint(0, length - self.size + 1, (1,)).item()) for length in image.size
        )
        return image.crop((left, top, left + self.size, top + self.size))


class RandomHorizontalFlip:
    def __call__(self, image):
        return ImageOps.mirror(image) if torch.rand(1).item() < 0.5 else image
