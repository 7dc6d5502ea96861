"""MyGrad: NumPy's arrays with gradients of first order."""

from typing import Any

from adapters.functional import Array, Functional

CANNOT = {
    "Hessian-vector product": "it has no second derivatives",
    "DCGAN step": "it has no transposed convolution",
    "transformer step": "it has no error function",
}


def load(threads: int) -> Functional:
    import mygrad
    from mygrad import nnet

    class MyGrad(Functional):
        def __init__(self) -> None:
            super().__init__(mygrad, CANNOT)
            # Its own has gradient 0 where both are equal, as they are in PPO's first epoch.
            self.minimum = lambda x, y: mygrad.where(x.data < y.data, x, y)

        relu = staticmethod(nnet.activations.relu)
        sigmoid = staticmethod(nnet.activations.sigmoid)
        log_softmax = staticmethod(nnet.activations.logsoftmax)
        cross_entropy = staticmethod(nnet.losses.softmax_crossentropy)

        def value_and_grad(self, function: Any) -> Any:
            def both(p: list[Array]) -> Any:
                value, back = self.vjp(function, p)
                return value, back(None)

            return both

        def vjp(self, function: Any, p: list[Array]) -> Any:
            tensors = [mygrad.tensor(a, copy=False) for a in p]
            value = function(tensors)

            def back(grad: Any) -> list[Array]:
                value.backward(grad)
                return [t.grad for t in tensors]

            return value.data, back

        def leaky_relu(self, x: Array) -> Array:
            return nnet.activations.leaky_relu(x, 0.2)

        def conv(self, x: Array, weight: Array, bias: Array, stride: int, padding: int) -> Array:
            y = nnet.layers.conv_nd(x, weight, stride=stride, padding=padding)
            return y + bias.reshape(1, -1, 1, 1)

        def max_pool(self, x: Array) -> Array:
            return nnet.layers.max_pool(x, (2, 2), 2)

        def batch_norm(self, x: Array, weight: Array, bias: Array) -> Array:
            return nnet.layers.batchnorm(x, gamma=weight, beta=bias, eps=1e-5)

    return MyGrad()
