cdef class Op:
    cdef public bint mixes, tensors_only, view
    cdef public dict plans, rules
    cdef public object aliases, attr_names, attrs, default_attrs, derived_from, doc, domain
    cdef public object forward, graded, in_place, in_rules, inplace, input_defaults, inputs, jvp
    cdef public object keyword_only, label, large, module, most_plain, name, no_grad_outputs
    cdef public object node_class, node_name, number_first, order, outputs, overloads, packings
    cdef public object plain_count, promote, promotion, publish, variadic_attr, variadic_input
    cdef public object without, write
