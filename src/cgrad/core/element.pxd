"""One element of memory as a Python number, and back."""

cdef object item_of(int dtype, const char* data)
cdef int store_item(int dtype, char* data, object value) except -1       # OverflowError, ValueError where it does not fit
cdef int no_single_number(str how, tuple shape) except -1      # raises: inside vmap a tensor stands for many
cdef int no_leaf(bint batched, str name) except -1                       # raises if it does
