"""Writing a grid of images to a file."""

import math

from PIL import Image


def save_image(tensor, path, nrow=8, padding=2, normalize=False):
    """Write a batch of images as one picture, `nrow` in a row."""
    images = tensor.detach().cpu().float()
    if images.dim() == 3:
        images = images.unsqueeze(0)
    if normalize:
        low, high = images.min(), images.max()
        images = (images - low) / (high - low + 1e-5)
    count, channels, height, width = images.shape
    columns = min(nrow, count)
    rows = math.ceil(count / columns)
    sheet = Image.new("RGB", (columns * (width + padding), rows * (height + padding)))
    pixels = images.mul(255).add(0.5).clamp(0, 255).byte().numpy()
    for number, image in enumerate(pixels):
        row, column = divmod(number, columns)
        picture = image[0] if channels == 1 else image.transpose(1, 2, 0)
        sheet.paste(
            Image.fromarray(picture), (column * (width + padding), row * (height + padding))
        )
    sheet.save(path)
