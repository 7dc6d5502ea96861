"""The twin of depthwise convolution at stride 1.  Layer 1; imports numba."""

from __future__ import annotations

from clew.kernels.compiled.kernel import kernel


@kernel("f[:, :, ::1]", "f[:, ::1], f[:, :, ::1], int64[::1], int64")
def add_shifted(out, x, factors, starts, length):
    """Add to the planes of out, (P, M, R), those of x, (P, R), shifted and multiplied.

    Plane p takes factors[p % C], (M, K), one for each of the K shifts that `starts` holds; only
    the first `length` elements of out are written.
    """
    for p in range(out.shape[0]):
        for m in range(out.shape[1]):
            to, factor = out[p, m, :length], factors[p % factors.shape[0], m]
            k = 0
            while k + 2 < starts.shape[0]:  # three at once: fewer passes over the output
                first, second, third = factor[k], factor[k + 1], factor[k + 2]
                near, middle, far = x[p, starts[k] :], x[p, starts[k + 1] :], x[p, starts[k + 2] :]
                for i in range(to.shape[0]):
                    to[i] += first * near[i] + second * middle[i] + third * far[i]
                k += 3
            while k < starts.shape[0]:
                first, near = factor[k], x[p, starts[k] :]
                for i in range(to.shape[0]):
                    to[i] += first * near[i]
                k += 1
