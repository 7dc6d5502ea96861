cpdef here(Py_ssize_t skip=*)
