import cython

from clew.autograd.node cimport AccumulateGrad, Algebra, Node


cdef class GraphTask:
    cdef public Algebra algebra
    cdef public bint keep_graph
    cdef public dict captures, reached
    cdef public list callbacks, captured
    cdef public object freed, goals, id, node, root, wanted
    cdef object __weakref__


@cython.locals(dependencies=dict, node=Node, parents=dict, stack=list)
cpdef _explore(list roots, bint want_parents)

@cython.locals(buffers=dict, grads=list, node=Node, ready=list)
cpdef _run(GraphTask task, roots, dict dependencies)

@cython.locals(algebra=Algebra)
cpdef _run_node(GraphTask task, Node node, list grads, dict buffers, dict dependencies)

@cython.locals(
    buffer=list, following=Node, index=Py_ssize_t, left=Py_ssize_t, output_nr=Py_ssize_t, ready=list,
)
cpdef list _deliver(
    Node node, results, needed, Algebra algebra, dict buffers, dict dependencies
)

cpdef _accumulate(AccumulateGrad node, list grads, GraphTask task)
