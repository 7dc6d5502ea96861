from clew.storage cimport VersionCounter


cdef class Saved:
    pass


cdef class SavedTensor(Saved):
    cdef public object output_nr, packed, tensor
    cdef public Py_ssize_t version
    cdef object __weakref__


cpdef SavedTensor saved_tensor(tensor, VersionCounter counter, output_nr=*)
