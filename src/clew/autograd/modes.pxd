cdef class Modes:
    cdef public object cut, hooks_refused, quiet, saved_hooks
    cdef public bint carries_tangents, grad_enabled, in_rules, inference, multithreading, view_replay
