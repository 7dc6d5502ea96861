import cython

from clew.autograd.modes cimport Modes
from clew.fields cimport TensorFields
from clew.op cimport Op
from clew.storage cimport VersionCounter, new_counter


@cython.locals(
    arrays=list, given=list, now=Modes, out=TensorFields, tensor=TensorFields,
)
cpdef apply(Op op, inputs, attrs=*)
