"""Pack hooks compute without recording, and must leave their tensor alone."""

from twins import assert_same


def test_pack_hook_may_compute_what_would_be_saved():
    def run(e):
        x = e.tensor([0.5, 1.5], requires_grad=True)
        with e.autograd.graph.saved_tensors_hooks(
            lambda t: (t * t).exp(), lambda t: t.log().sqrt()
        ):
            y = (x * x).exp()
        y.sum().backward()
        return x.grad

    assert_same(run)


def test_pack_hook_must_not_write():
    def run(e):
        x = e.ones(2, requires_grad=True)
        with e.autograd.graph.saved_tensors_hooks(lambda t: t.mul_(2), lambda t: t):
            x.clone().exp()

    def kind(e):
        try:
            run(e)
        except RuntimeError as error:
            return str(error).split(".")[0]

    assert "pack hook is modifying its input in place" in assert_same(kind)
