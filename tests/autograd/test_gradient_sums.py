"""Gradients that meet at one node are added where nobody else looks; oracle: the sum by hand."""

import clew


def test_parts_of_an_expanded_gradient_are_not_added_to_in_place():
    """The gradient of ``cat(...).sum()`` is one number seen in many places."""
    x = clew.tensor([[0.1, 0.2], [0.3, 0.4], [0.5, 0.6]], dtype=clew.float64, requires_grad=True)

    def steps():
        first = x.tanh()
        second = first.tanh()
        return [first, second, second.tanh()]

    (by_cat,) = clew.autograd.grad(clew.cat(steps()).sum(), x)
    (by_sum,) = clew.autograd.grad(sum(step.sum() for step in steps()), x)
    assert clew.isclose(by_cat, by_sum, rtol=1e-14).all()
