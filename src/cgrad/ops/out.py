"""Which public functions take no ``out=``, and why.

All others that compute tensors from tensors take it: the result is written into the given tensor, which is returned (core/inplace.pyx).  What
makes tensors of sizes, data or random numbers has methods that write in place (``x.zero_()``, ``x.uniform_()``), and `cgrad.nn.functional`
has PyTorch's signatures.  Next: define.py, whose doors ask here.
"""

_REASONS = {
    "gives a view of its operand wherever it can; write with out.copy_(...)": """
        as_strided atleast_1d atleast_2d atleast_3d broadcast_arrays broadcast_tensors broadcast_to chunk conj contiguous diagonal dsplit expand
        expand_as expand_dims flatten flip fliplr flipud hsplit matrix_transpose moveaxis narrow permute_dims ravel real reshape reshape_as rot90 select
        split split_with_sizes squeeze swapaxes t tensor_split transpose unflatten unfold unstack view view_as vsplit""",
    "gives no tensor": "allclose array_equal broadcast_shapes",
    "is a copy of its operand; write with out.copy_(x)": "astype clone",
    "writes into its operand": "fill_diagonal put_along_axis",
    "makes a tensor of sizes alone": "fftfreq rfftfreq",
}
#: name -> why, in words that go on from "since it"
NO_OUT = {name: reason for reason, names in _REASONS.items() for name in names.split()}
