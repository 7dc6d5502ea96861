import cython

from clew.plan cimport Plan


cdef class Algebra:
    cpdef list values(self, saved, node)
    cpdef fit(self, grad, meta, node, Py_ssize_t index)


cdef class Node:
    cdef public object hooks, info, metas, seq, site
    cdef public tuple next_nodes, next_nrs
    cdef object __weakref__

    cpdef run(self, list grads, Algebra algebra, need)


cdef class OpNode(Node):
    cdef public object attrs, saved
    cdef public Plan plan

    @cython.locals(edge=Py_ssize_t, results=list)
    cpdef run(self, list grads, Algebra algebra, need)


cdef class AccumulateGrad(Node):
    cdef public object lock, variable

    cpdef run(self, list grads, Algebra algebra, need)
