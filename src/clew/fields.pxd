cdef class TensorFields:
    cdef public object _array, _counter, _cut, _grad, _meta, _node, _output_nr
    cdef public bint _requires_grad
