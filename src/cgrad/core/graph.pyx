"""Looking at a recorded graph without running it: what did results depend on?

Used by the engine where not all of a graph runs alike, by the transformations of cgrad.func, by checkpoint and by cgrad.show.  Needs the GIL;
walks with a stack of its own, so depth is no matter.
Next: engine.pyx, which runs graphs.
"""
from cgrad.core.dtype cimport dtype_object
from cgrad.core.hooks cimport has_accumulated_hook
from cgrad.core.tape cimport Node, node_edge, node_edge_output, node_shape
from cgrad.core.tensor cimport REQUIRES_GRAD, Tensor, shape_tuple


def sources(results, known, unsigned long long since=0, bint first=False):
    """The leaves that tensors were computed from, and the nodes older than `since` at which the walk stops.

    Leaves in `known` are left out.  With `first`, the walk ends when it has found something.
    """
    cdef set seen = set()
    cdef set skip = {id(x) for x in known}
    cdef list stack = []
    cdef list leaves = []
    cdef list older = []
    cdef Node node
    cdef Tensor x
    cdef int i
    for result in results:
        x = <Tensor?>result
        if x.flags & REQUIRES_GRAD:
            stack.append(x.node if x.node is not None else x)
    while stack:
        top = stack.pop()
        if isinstance(top, Tensor):
            if id(top) not in skip:
                skip.add(id(top))
                leaves.append(top)
                if first:
                    break
            continue
        if top in seen:
            continue
        seen.add(top)
        node = <Node>top
        if node.sequence <= since:
            older.append(node)
            if first:
                break
            continue
        for i in range(node.n_inputs):
            edge = node_edge(node, i)
            if edge is not None:
                stack.append(edge)
    return leaves, older


def result_types(Node node):
    """(shape, dtype) of each result of a node."""
    cdef list types = [(shape_tuple(node.out_rank, node_shape(node)), dtype_object(node.out_dtype))]
    if node.rest is not None and node.rest.shapes is not None:
        types += [(shape, dtype_object(dtype)) for dtype, shape in node.rest.shapes]
    return types


def memory_of(Tensor x):
    """The block of memory that a tensor lies in, as (identity, bytes)."""
    return id(x.storage), x.storage.nbytes


def share_memory(Tensor x, Tensor y):
    """Whether two tensors lie in one block of memory."""
    return x.storage is y.storage


cdef set find_needed(dict wanted, dict found, list roots):
    """The nodes from which something wanted, (node, result number) or a leaf, can be reached: depth first.

    `found` holds wanted nodes, which are kept even if nothing wanted lies behind them.
    """
    cdef dict state = {}          # node -> True on the way to something wanted
    cdef list stack = []
    cdef Node node
    cdef int i
    for root in roots:
        if isinstance(root, Node):
            stack.append((root, False))
    while stack:
        top, expanded = stack.pop()
        node = <Node>top
        if not expanded:
            if node in state:
                continue
            state[node] = False
            stack.append((node, True))
            for i in range(node.n_inputs):
                edge = node_edge(node, i)
                if isinstance(edge, Node) and edge not in state:
                    stack.append((edge, False))
        else:
            hit = False
            for i in range(node.n_inputs):
                edge = node_edge(node, i)
                if edge is None:
                    continue
                if isinstance(edge, Tensor):
                    hit = edge in wanted
                else:
                    hit = state.get(edge, False) or (edge, node_edge_output(node, i)) in wanted or edge in found
                if hit:
                    break
            state[node] = hit
    return {node for node, hit in state.items() if hit or node in found}


cdef list awaited_leaves(list roots):
    """(sequence number of the oldest node that uses it, leaf) of all leaves with hooks that wait for .grad, by that number.

    A node of a lower number cannot add to the gradient of such a leaf any more.
    """
    cdef dict oldest = {}
    cdef set seen = set()
    cdef list stack = list(roots)
    cdef Node node
    cdef int i
    for root in roots:
        if isinstance(root, Tensor) and has_accumulated_hook(<Tensor>root):
            oldest[root] = 1
    while stack:
        top = stack.pop()
        if isinstance(top, Tensor) or top in seen:
            continue
        seen.add(top)
        node = <Node>top
        for i in range(node.n_inputs):
            edge = node_edge(node, i)
            if isinstance(edge, Node):
                stack.append(edge)
            elif edge is not None and has_accumulated_hook(<Tensor>edge):
                oldest[edge] = min(oldest.get(edge, node.sequence), node.sequence)
    return sorted([(sequence, leaf) for leaf, sequence in oldest.items()], key=first_of)


def first_of(pair):
    return pair[0]
