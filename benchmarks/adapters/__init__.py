"""The engines that are compared.

Each has a module with ``load(threads)``, which is called in a process of the engine's own, sets
that up, and returns a `named.Named` or a `functional.Functional`.
"""

ADAPTERS = {
    "clew": ("with_clew", "clew"),
    "clew-compiled": ("with_compiled_core", "clew, compiled"),
    "torch": ("with_torch", "torch"),
    "torch-fused": ("with_fused_optimizers", "fused optimizers"),
    "torch-compile": ("with_torch_compile", "torch.compile"),
    "jax": ("with_jax", "JAX (jit)"),
    "tinygrad": ("with_tinygrad", "tinygrad"),
    "hips": ("with_hips", "HIPS autograd"),
    "mygrad": ("with_mygrad", "MyGrad"),
}
"""For each name on the command line the module and the heading, in the order of the columns."""
