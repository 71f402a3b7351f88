"""One element of memory as a Python number, and back."""

cdef object item_of(int dtype, const char* data)
cdef int store_item(int dtype, char* data, object value) except -1       # OverflowError, ValueError where it does not fit
