"""Inverses, determinants, solutions and decompositions of matrices."""
