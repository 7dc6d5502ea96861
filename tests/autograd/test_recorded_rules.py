"""Rules record what PyTorch's formulas record: the graphs of gradients under ``create_graph``."""

from __future__ import annotations

from typing import Any

import pytest

from twins import assert_same

CALLS = [
    "a.neg()", "a.abs()", "a.exp()", "a.sin()", "a.cos()", "a.tanh()", "a.sigmoid()", "a.relu()",
    "a.sqrt()", "a.reciprocal()", "a.log()", "a.square()", "a.sign()", "a.floor()", "a.round()",
    "a.erf()", "a.log1p()", "a.expm1()", "a.rsqrt()", "a.logit()", "a.softmax(-1)",
    "a.log_softmax(0)", "a.clamp(-1, 1)", "a.clamp(min=0)", "a.angle()",
    "z.angle()", "z.sgn()", "a.isnan()",
    "a.nan_to_num()", "torch.nn.functional.leaky_relu(a)", "torch.nn.functional.gelu(a)",
    "torch.nn.functional.silu(a)", "torch.nn.functional.softplus(a)", "a.frac()", "a.tan()",
    "a.atan()", "a.asinh()", "a.exp2()", "a.log2()", "a.deg2rad()", "a.trunc()", "a.positive()",
    "a ** 2", "a ** 3", "a ** 0.5", "a ** -1", "a ** 0", "a ** 1", "a ** b", "a ** 0.3", "2 ** a",
    "a + 2", "2 - a", "a - 2", "a * 3", "a / 2", "2 / a", "a + b", "a - b", "a * b", "a / b",
    "a+v", "a*v", "a/v", "a-v", "torch.maximum(a, b)", "torch.minimum(a, b)", "torch.fmax(a, b)",
    "torch.hypot(a, b)", "torch.atan2(a, b)", "torch.xlogy(a, b)", "torch.copysign(a, b)",
    "torch.mul(a, b)", "torch.true_divide(a, b)", "torch.remainder(a, b)", "torch.fmod(a, b)",
    "torch.addcmul(a, b, b, value=2)", "torch.addcmul(c, a, b, value=2)",
    "torch.addcmul(c, a, b)", "torch.addcdiv(a, b, b)", "torch.addcdiv(c, a, b)",
    "torch.addcdiv(c, b, a)", "torch.lerp(a,b,0.5)", "torch.lerp(a,b,b)", "torch.lerp(c,b,a)",
    "torch.where(a>0,a,b)", "torch.where(a>0,b,a)", "torch.where(a>0,a,2)",
    "torch.add(a,b,alpha=2)", "torch.sub(a,b,alpha=0.5)", "torch.rsub(a,b)",
    "torch.add(b,a,alpha=2)", "torch.sub(b,a,alpha=0.5)", "torch.rsub(b,a)", "torch.clamp(a,b,c)",
    "torch.clamp(c,a,b)", "torch.clamp(c,b,a)", "a.sum()", "a.sum(1)", "a.sum(1, keepdim=True)",
    "a.mean()", "a.mean(1)", "a.mean(1, keepdim=True)", "a.amax()", "a.amax(1)",
    "a.amax(1, keepdim=True)", "a.amin()", "a.amin(1)", "a.amin(1, keepdim=True)", "a.max()",
    "a.max(1)[0]", "a.max(1, keepdim=True)[0]", "a.min()", "a.min(1)[0]",
    "a.min(1, keepdim=True)[0]", "a.std()", "a.std(1)", "a.std(1, keepdim=True)", "a.var()",
    "a.var(1)", "a.var(1, keepdim=True)", "a.norm()", "a.norm(1, 1)", "a.norm(2, 1)",
    "a.norm(3, 1)", "a.norm(1, 1, keepdim=True)", "a.norm(2, 1, keepdim=True)",
    "a.norm(3, 1, keepdim=True)", "a.median()", "a.median(1)[0]", "a.median(1, keepdim=True)[0]",
    "a.nanmean()", "a.nanmean(1)", "a.nanmean(1, keepdim=True)", "a.nansum()", "a.nansum(1)",
    "a.nansum(1, keepdim=True)", "a.cumsum(1)", "a.logsumexp(1)", "a.flip(1)", "a.roll(1,1)",
    "a.sort(1)[0]", "a.topk(1,1)[0]", "a.cummax(1)[0]", "a.logcumsumexp(1)", "a.tril()",
    "a.triu(1)", "a.sum((1,))", "a @ b.t()", "a @ v", "v @ b.t()", "torch.outer(v,v)",
    "torch.mm(a,b.t())", "torch.mv(a,v)", "torch.dot(v,v)", "torch.bmm(a[None], b[None].mT)",
    "torch.addmm(s,s,s)", "torch.addmm(s[0],s,s)", "torch.nn.functional.linear(a,b)",
    "torch.nn.functional.linear(v,b)", "torch.kron(a,b)", "torch.cat([a,b],0)",
    "torch.cat([a,a],1)", "torch.stack([a,b],1)", "torch.vstack([a,b])", "torch.hstack([a,b])",
    "torch.hstack([v,v])", "a.repeat(2,1)", "a.tile((2,))", "a.repeat_interleave(2,1)",
    "torch.nn.functional.pad(a,(1,0))", "a.diag_embed()", "a.expand(2,*a.shape).clone()",
    "a[[0,1]]", "a[torch.tensor([0,1,0])]", "a[a>0]", "a[[0],0]", "a[...,[0,1]]", "a[None,[0]]",
    "a[[0],[0]]", "a[0,[0]]", "a[torch.tensor(0)]", "a.index_select(1, torch.tensor([0, 0]))",
    "a.gather(1, torch.zeros_like(a,dtype=torch.int64))", "a.take(torch.tensor([0, -1]))",
    "a.masked_select(a > 0)", "a.masked_fill(a > 0, 2)",
    "torch.take_along_dim(a, torch.zeros_like(a,dtype=torch.int64), 1)",
    "a.index_fill(1, torch.tensor([0]), 2)",
    "a.scatter(1, torch.zeros_like(a,dtype=torch.int64), 2)",
    "a.index_add(1, torch.arange(a.shape[1]), a)",
    "a.scatter_add(1, torch.zeros_like(a,dtype=torch.int64), a)",
    "a.select_scatter(a.select(1, 0), 1, 0)", "a.index_put((torch.tensor([0]),), a[0])",
    "a.double()", "a.to(torch.complex64).abs()", "z.abs()", "z*z", "z/z", "z**2", "z**3",
    "z.exp()", "z.sin()", "z.cos()", "z.tanh()", "z.reciprocal()", "z@z", "z.real", "z.imag",
    "z.sum()", "z.mean()", "(z*2)", "z+2", "z-2", "2-z", "z/2", "z.log()", "z.sqrt()",
    "z.sigmoid()", "z*a[:,:2]", "z+a[:,:2]", "z/a[:,:2]", "a[:,:2]/z", "z ** a[:,:2]",
    "a.view(-1)", "a.reshape(3,2)", "a.unsqueeze(0)", "a.squeeze()", "a[:]", "a[0]", "a[1:]",
    "a[...,0]", "a.select(1,0)", "a.narrow(1,0,1)", "a.transpose(0,1)", "a.unfold(1,2,1)", "a.mT",
    "a.permute(1,0)", "a.movedim(1,0)", "a.unflatten(1,(1,-1))", "a.diagonal()", "a.flatten()",
    "a.t().flatten()", "a.t().reshape(-1)", "a.unbind(0)[0]", "a.split(1,0)[0]",
    "a.chunk(2,0)[0]", "a.tensor_split(2,0)[0]", "torch.view_as_complex(s)",
    "torch.view_as_real(z)", "torch.atleast_2d(v)", "a.t().contiguous()", "a.clone()",
    "a.expand(2,2,3)", "a.data", "(a*1).relu_()", "(a*1).exp_()", "(a*1).sin_()", "(a*1).tanh_()",
    "(a*1).sigmoid_()", "(a*1).neg_()", "(a*1).abs_()", "(a*1).sqrt_()", "(a*1).clamp_(0, 1)",
    "(a*1).clamp_(min=0)", "(a*1).square_()", "(a*1).reciprocal_()", "(a*1).log_()",
    "(a*1).tril_()", "(a*1).cos_()", "(a*1).erf_()", "(a*1).masked_fill_(a > 0, 2)",
    "(a*1).index_fill_(0, torch.tensor([0]), 3)", "(a*1).index_add_(0, torch.tensor([0]), a[:1])",
    "(a*1).index_copy_(0, torch.tensor([0]), a[:1] * 2)",
    "(a*1).index_put_((torch.tensor([0]),), v)", "(a*1).masked_scatter_(a > 0, a * 2)",
    "(a*1).cumsum_(0)", "(a*1).addcmul_(a, b)", "(a*1).addcdiv_(b, a)", "(a*1).lerp_(b, 0.5)",
    "(a*1).lerp_(a * 2, b)", "(a*1).clamp_(b, b)", "(a*1).fmod_(2)", "(a*1).remainder_(2)",
    "(a*1).expm1_()", "(a*1).masked_fill_(a > 0, v[0])", "(a*1).copysign_(b)", "(a*1).hypot_(b)",
    "(a*1).xlogy_(b)", "(a*1).add_(b)", "(a*1).sub_(b)", "(a*1).mul_(b)", "(a*1).div_(b)",
    "(a*1).pow_(b)", "(a*1).add_(2)", "(a*1).mul_(2)", "(a*1).sub_(2)", "(a*1).div_(2)",
    "(a*1).pow_(2)", "(a*1).zero_()", "(a*1).fill_(v[0])", "(a*1).copy_(b)", "(a*1).copy_(v)",
    "torch.nn.functional.elu(a)", "torch.nn.functional.hardtanh(a)",
    "torch.nn.functional.hardswish(a)", "torch.nn.functional.relu6(a)",
    "torch.nn.functional.mish(a)", "torch.nn.functional.threshold(a,1,0)",
    "torch.nn.functional.elu(a*1,inplace=True)", "torch.nn.functional.silu(a*1,inplace=True)",
    "torch.nn.functional.hardswish(a*1,inplace=True)",
    "torch.nn.functional.mish(a*1,inplace=True)", "torch.nn.functional.leaky_relu_(a*1,0.1)",
    "torch.nn.functional.dropout(a*1,0.0,inplace=True)",
    "torch.logaddexp(a, b)", "torch.logaddexp2(a, b)", "torch.ldexp(a, b)", "a.sinc()",
    "z.sinc()", "a.erfinv()", "torch.special.erfcx(a)", "torch.special.log_ndtr(a)",
    "torch.special.ndtri(a)", "torch.special.xlog1py(a, b)", "a.asin()", "a.acos()", "a.atanh()",
    "(a+1).acosh()", "a.sinh()", "a.cosh()", "z.asin()", "z.acos()", "z.tan()",
    "a.lgamma()", "a.digamma()", "torch.polygamma(1, a)", "a.i0()", "torch.special.entr(a)",
    "torch.nn.functional.mse_loss(a, b)", "torch.nn.functional.mse_loss(b, a, reduction='none')",
    "torch.nn.functional.smooth_l1_loss(a, b)", "torch.nn.functional.huber_loss(b, a)",
    "torch.nn.functional.l1_loss(a, b)", "torch.nn.functional.soft_margin_loss(a, b)",
    "torch.nn.functional.kl_div(a, b, reduction='sum')", "torch.nn.functional.logsigmoid(a)",
    "torch.nn.functional.glu(s)", "torch.celu(a)", "torch.selu(a)", "torch.dist(a, b)",
    "torch.cosine_similarity(a, b)", "torch.nn.functional.normalize(a)",
    "torch.linalg.cross(a, b)",
]  # fmt: skip

OF_OWN_NODES = [
    "a.prod()", "a.cumprod(1)", "a.renorm(2,1,1.0)", "a.prelu(w)", "a.trace()",
    "a.as_strided((2,),(1,))", "a.diff(dim=1)",
]  # fmt: skip
"""Those whose rules record other nodes than PyTorch's; see "The graph of a gradient" in
``docs/differences.md``."""


def operands(t: Any) -> dict[str, Any]:
    values = {
        "a": [[0.5, 0.25, 0.75], [0.125, 0.375, 0.625]],
        "b": [[0.5, 0.75, 0.25], [0.625, 0.375, 0.5]],
        "c": [[0.25, 0.5, 0.25], [0.5, 0.5, 0.5]],
        "v": [0.5, 0.25, 0.75],
        "s": [[0.5, 0.25], [0.75, 1.0]],
        "w": [0.25],
        "z": [[0.5 + 1j, 0.25], [0.75 - 1j, 1.0]],
    }
    return {name: t.tensor(value, requires_grad=True) for name, value in values.items()}


def nodes(tensor: Any) -> list[Any]:
    """The graph behind a tensor: for each node its name and where its edges lead."""
    if tensor.grad_fn is None:
        return []
    found = {tensor.grad_fn: 0}
    rows = []
    for node in found_while_growing(found):
        following = []
        for other, nr in node.next_functions:
            if other is not None:
                found.setdefault(other, len(found))
            following.append((None if other is None else found[other], nr))
        rows.append([node.name(), following])
    return rows


def found_while_growing(found: dict[Any, int]) -> Any:
    done = 0
    while done < len(found):
        yield list(found)[done]
        done += 1


def gradients(t: Any, call: str, squared: bool) -> list[Any]:
    names = operands(t)
    result = eval(call, {"torch": t, **names})
    total = (result * result if squared else result).sum()
    total = total.abs() if total.is_complex() else total
    found = t.autograd.grad(total, list(names.values()), create_graph=True, allow_unused=True)
    return [g for g in found if g is not None]


@pytest.mark.parametrize("call", CALLS)
def test_graph_of_gradients(call: str) -> None:
    def program(t: Any) -> Any:
        try:
            found = [g for squared in (False, True) for g in gradients(t, call, squared)]
        except RuntimeError as error:
            return type(error).__mro__[-3].__name__
        return [(g.detach(), nodes(g)) for g in found]

    assert_same(program)


@pytest.mark.parametrize("call", OF_OWN_NODES)
def test_same_values(call: str) -> None:
    assert_same(lambda t: [g.detach() for s in (False, True) for g in gradients(t, call, s)])
