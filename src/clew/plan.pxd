from clew.op cimport Op


cdef class Plan:
    cdef public bint holds_tensors, mixes, saves_by_edge, saves_first_input
    cdef public dict metas
    cdef public object calls, packings, plain_calls
    cdef public tuple inputs, places, saves, zeros


cpdef Plan plan_for(Op op, mask, count)
