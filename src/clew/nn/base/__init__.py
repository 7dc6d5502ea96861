"""What `Module` is made of: its tree, its casts, its state, its hooks.

Each file holds one mixin class; `clew.nn.modules.module` joins them.
"""
