"""clew: automatic differentiation with PyTorch semantics and a graph you can look at."""
