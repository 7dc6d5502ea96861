import cython

from clew.autograd.node cimport Algebra
from clew.autograd.saved cimport SavedTensor
from clew.fields cimport TensorFields
from clew.storage cimport VersionCounter


cdef class ArrayAlgebra(Algebra):
    cdef public object given

    @cython.locals(
        counter=VersionCounter, saved_one=SavedTensor, tensor=TensorFields, values=list,
    )
    cpdef list values(self, saved, node)
    cpdef fit(self, grad, meta, node, Py_ssize_t index)


cdef class TensorAlgebra(Algebra):
    cpdef list values(self, saved, node)
    cpdef fit(self, grad, meta, node, Py_ssize_t index)
