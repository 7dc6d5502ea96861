"""PyTorch's CPU random streams, number for number, as NumPy code.

For one seed, every sampler here returns what PyTorch 2.13 returns on an x86-64 CPU and leaves its
generator in the state that PyTorch's would be in, so programs that mix calls stay in step. Layer 1:
this package knows ndarrays, imports NumPy and the dtype and device objects, and never a Tensor.

**The engine.** One Mersenne twister (MT19937) per `Generator`. It hands out 32-bit words. A
32-bit sample is one word; a 64-bit sample is two, the first in the high half. Two uniform numbers
in [0, 1) are built from them, and nearly everything below from these two:

- *u24*: the low 24 bits of one word, times 2**-24; exact in float32;
- *u53*: the low 53 bits of two words, times 2**-53; exact in float64.

**What each sampler draws, per element.**

| sampler | draws | value |
|---|---|---|
| `uniform_`, `rand` | u24 (u53 for float64) | `low + u * (high - low)`, one rounding |
| `normal_`, `randn` | see below | `mean + std * z`, one rounding |
| `log_normal_` | see below | `exp(mean + std * z)` |
| `exponential_` | u53 | `-log(1 - u) / lambd` |
| `cauchy_` | u53 | `median + sigma * tan(pi * (u - 1/2))` |
| `geometric_` | u53 | `ceil(log(u) / log(1 - p))` |
| `bernoulli_` with a number, dropout | u53 | `u < p` |
| `bernoulli_` with an array | u24 (u53 for a float64 array) | `u < p` |
| `random_`, `randint` | a word; two when the range reaches 2**28 | `low + word % range` |
| `random_` without bounds | a word; two for int64 and float64 | `word % (largest + 1)` |
| `randperm` | a word for all but the last | Fisher-Yates: swap i with `i + word % (n - i)` |
| `multinomial`, replacement | u53 per sample | first category whose running sum reaches u |
| `multinomial`, else or one sample | u53 per category | by falling `p / q`, q exponential |
| `poisson` | u53, as many as it takes | product of uniforms, or rejection from rate 10 on |
| `standard_gamma` | u53 and single normals, as many as it takes | rejection |
| `dirichlet` | as `standard_gamma` in float64 | gamma numbers over their sum |
| `binomial` | u53, as many as it takes | sum of waiting times, or rejection from mean 10 on |

**Normal numbers** come in pairs (Box and Muller, 1958): a radius and an angle give a cosine and a
sine. A contiguous array of 16 elements or more is cut into blocks of 16: the first eight uniforms
make the radii, the last eight the angles; cosines fill the first half, sines the second. When the
size is no multiple of 16, the last 16 elements are drawn anew, over what stood there. Any other
array, and `log_normal_` always, takes numbers one by one in float64: angle first, then radius; the
sine is kept in the generator and is the next number, even if another call asks for it.

**Order.** Elements are drawn in the order in which PyTorch's loops visit the target: by falling
stride, which for a transposed array is the order of memory and not that of the indices.

**How exact.** Equal to the bit, with two notes. float32 normals follow the AVX2 code that PyTorch
runs on any recent x86-64 (Cephes polynomials with fused multiply-adds), replayed here step by step;
PyTorch on other machines differs from that in the last digits. Other transcendental functions are
the C library's, as in PyTorch: called once per element where the result is float64, through NumPy's
faster loops where the result is rounded to float32 or less.
"""

from .continuous import (
    cauchy_,
    exponential_,
    log_normal_,
    normal,
    normal_,
    rand,
    randn,
    uniform_,
)
from .discrete import (
    bernoulli_,
    dropout_noise,
    dropout_scale,
    geometric_,
    poisson,
    randint,
    random_,
)
from .gamma import binomial, dirichlet, standard_gamma
from .generator import Generator, default_generator, initial_seed, manual_seed, seed
from .selection import multinomial, randperm
from .target import dense_like

__all__ = [
    "Generator",
    "bernoulli_",
    "binomial",
    "cauchy_",
    "default_generator",
    "dense_like",
    "dirichlet",
    "dropout_noise",
    "dropout_scale",
    "exponential_",
    "geometric_",
    "initial_seed",
    "log_normal_",
    "manual_seed",
    "multinomial",
    "normal",
    "normal_",
    "poisson",
    "rand",
    "randint",
    "randn",
    "random_",
    "randperm",
    "seed",
    "standard_gamma",
    "uniform_",
]
