cdef class VersionCounter:
    cdef public object _last, born
    cdef public Py_ssize_t value

    cpdef bump(self, name, site=*)


cpdef VersionCounter new_counter()
