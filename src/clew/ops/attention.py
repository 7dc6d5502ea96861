"""Scaled dot-product attention as one op, which keeps no matrix of weights.

PyTorch's node of that name cannot be differentiated twice; this one can, see
Note [Second order of attention].

Note [Second order of attention]
    With weights P = softmax(Z), Z = scale * q k' + mask, and a cotangent g of the output P v, the
    gradients are  dq = scale * S k,  dk = scale * S' q,  dv = P' g,  where  S = J(g v')  and
    J(X) = P * (X - rowsum(P * X)), symmetric, is the derivative of the softmax.
    Let uq, uk, uv be cotangents of dq, dk, dv and  W = scale * (uq k' + q uk').  Then g gets
    J(W) v + P uv,  v gets  J(W)' g,  q gets  scale * (S uk + T k)  and  k gets
    scale * (S' uq + T' q).  T is the part that came through P: with D = g v', the matrix of
    derivatives by P is  A = W * (D - rowsum(P * D)) - D * rowsum(P * W) + g uv',  and T = J(A).
"""

from __future__ import annotations

from typing import Any

from clew import kernels
from clew.op import op

_NAME = "scaled_dot_product_flash_attention_for_cpu"


@op(f"{_NAME}(query, key, value, attn_mask=None; is_causal, scale) -> output, logsumexp",
    publish=(), no_grad_outputs=(1,))  # fmt: skip
def attention(
    q: Any, k: Any, v: Any, mask: Any, *, is_causal: bool, scale: float
) -> tuple[Any, Any]:
    """``softmax(scale * query @ key.T + mask) @ value``, and the logarithms of the softmax's sums.

    Shapes: query ``(N, H, L, E)``, key and value ``(N, H', S, E)`` where H' divides H; the mask
    broadcasts to ``(N, H, L, S)``.
    """
    return kernels.attention.attention(q, k, v, mask, is_causal, scale)


@attention.grad("query", "key", "value")
def _(
    F: Any, grad: Any, query: Any, key: Any, value: Any, attn_mask: Any, output: Any,
    logsumexp: Any, *, is_causal: bool, scale: float, need: Any,
) -> Any:  # fmt: skip
    return F.scaled_dot_product_flash_attention_for_cpu_backward(
        grad, query, key, value, attn_mask, output, logsumexp,
        is_causal=is_causal, scale=scale, need=tuple(need),
    )  # fmt: skip


@op(f"{_NAME}_backward(grad_output, query, key, value, attn_mask=None, output=None, "
    "logsumexp=None; is_causal, scale, need) -> of_query, of_key, of_value",
    publish=())  # fmt: skip
def attention_backward(
    grad: Any, q: Any, k: Any, v: Any, mask: Any, out: Any, logs: Any, *,
    is_causal: bool, scale: float, need: Any,
) -> Any:  # fmt: skip
    """Gradients of query, key and value."""
    return kernels.attention.attention_backward(
        grad, q, k, v, mask, out, logs, is_causal, scale, need
    )


@attention_backward.grad("grad_output", "query", "key", "value")
def _(
    F: Any, grads: Any, grad_output: Any, query: Any, key: Any, value: Any, attn_mask: Any, *,
    is_causal: bool, scale: float, need: Any,
) -> Any:  # fmt: skip
    batch, heads, length, size = query.shape
    shared, keys = key.shape[1:3]

    def rows(x: Any) -> Any:
        """(N, H, ...) as (N * H, ...)."""
        return F.reshape(x, (batch * heads, *x.shape[2:]))

    def per_head(x: Any) -> Any:
        """What groups of heads share, for each head."""
        group = F.reshape(x, (batch, shared, 1, keys, size))
        each = F.expand(group, (batch, shared, heads // shared, keys, size))
        return F.reshape(each, (batch * heads, keys, size))

    def summed(x: Any) -> Any:
        """The adjoint of `per_head`."""
        group = F.reshape(x, (batch, shared, heads // shared, keys, size))
        return F.sum(group, 2)

    uq, uk, uv = (F.zeros_like(x) if u is None else u for u, x in zip(grads, (query, key, value)))
    q, k = rows(query), per_head(key)
    # As ops, not operators: an array of bfloat16 times a number would become one of float32.
    logits = F.mul(F.bmm(q, F.transpose(k, 1, 2)), scale)
    logits = F.reshape(logits, (batch, heads, length, keys))
    if is_causal:
        logits = logits + F.causal_mask(logits)
    elif attn_mask is not None:
        logits = logits + attn_mask
    weights = rows(F.safe_softmax(logits, dim=-1))
    to_g, to_q, to_k, to_v = _second_order(
        F, weights, scale, rows(grad_output), q, k, per_head(value),
        rows(uq), per_head(uk), per_head(uv),
    )  # fmt: skip
    shape = (batch, heads, length, size)
    return [F.reshape(to_g, shape), F.reshape(to_q, shape), summed(to_k), summed(to_v)]


def _second_order(
    F: Any, p: Any, scale: float, g: Any, q: Any, k: Any, v: Any, uq: Any, uk: Any, uv: Any
) -> tuple[Any, Any, Any, Any]:
    """Gradients of g, q, k and v by Note [Second order of attention], in its letters."""

    def turned(x: Any) -> Any:
        return F.transpose(x, 1, 2)

    def mean(x: Any) -> Any:
        return F.sum(p * x, -1, keepdim=True)

    d = F.bmm(g, turned(v))
    w = F.mul(F.bmm(uq, turned(k)) + F.bmm(q, turned(uk)), scale)
    centred_d, mean_w = d - mean(d), mean(w)
    s, of_w = p * centred_d, p * (w - mean_w)
    a = w * centred_d - d * mean_w + F.bmm(g, turned(uv))
    t = p * (a - mean(a))
    return (
        F.bmm(of_w, v) + F.bmm(p, uv),
        (F.bmm(s, uk) + F.bmm(t, k)) * scale,
        (F.bmm(turned(s), uq) + F.bmm(turned(t), q)) * scale,
        F.bmm(turned(of_w), g),
    )


@op("causal_mask(self)", publish=())
def causal_mask(x: Any) -> Any:
    """What makes logits ``(..., L, S)`` causal when added to them; a constant."""
    return kernels.attention.causal_mask(x.shape[-2], x.shape[-1], x.dtype)
