import cython

from clew.autograd.node cimport Node, OpNode
from clew.autograd.saved cimport SavedTensor, saved_tensor
from clew.fields cimport TensorFields
from clew.op cimport Op
from clew.plan cimport Plan, plan_for


@cython.locals(nodes=tuple, nrs=tuple, plan=Plan)
cpdef record(Op op, inputs, attrs, mask, outs)

@cython.locals(out=TensorFields)
cpdef metas_of(Op op, Plan plan, outs)

@cython.locals(at=Py_ssize_t, i=Py_ssize_t, nodes=list, x=TensorFields)
cpdef edges_of(Plan plan, inputs, mask)

@cython.locals(index=Py_ssize_t, kind=Py_ssize_t, saved=list, tensor=TensorFields)
cpdef _save(Plan plan, inputs, outs)
