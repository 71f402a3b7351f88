"""Looking at a recorded graph without running it: what did results depend on, and how much of it needs no values computed late?

Used by the engine where not all of a graph runs alike, by the transformations of cgrad.func, by checkpoint and by cgrad.show.  Needs the GIL;
walks with a stack of its own, so depth is no matter.
Next: engine.pyx, which runs graphs.
"""
from cgrad.core.dtype cimport ITEMSIZE, DType, dtype_object
from cgrad.core.hooks cimport has_accumulated_hook
from cgrad.core.primitive cimport Primitive
from cgrad.core.record cimport make_room, set_edge, set_saved
from cgrad.core.storage cimport Storage, new_storage
from cgrad.core.tape cimport FREED, PACKED, Node, new_node, node_edge, node_edge_output, node_rest, node_shape, set_node_shape, track
from cgrad.core.tensor cimport REQUIRES_GRAD, Tensor, shape_tuple, stale, storage_tensor
from cgrad.kernels.table cimport MAX_DIMS


def sources(results, known, unsigned long long since=0, bint first=False):
    """The leaves that tensors were computed from, and the nodes older than `since` at which the walk stops.

    Leaves in `known` are left out, and those that `forward_mode.close` has marked.  With `first`, the walk ends when it has found something.
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
            if id(top) not in skip and ((<Tensor>top).extra is None or "closed" not in (<Tensor>top).extra):
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


def memory_of(Tensor x not None):
    """The block of memory that a tensor lies in, as (identity, bytes)."""
    return id(x.storage), x.storage.nbytes


def share_memory(Tensor x not None, Tensor y not None):
    """Whether two tensors lie in one block of memory."""
    return x.storage is y.storage


cdef int freed(Node node) except -1:
    raise RuntimeError(f"backward: the graph through {node!r} was freed by another backward; call that one with retain_graph=True "
                       "(or compute the result anew, or detach() what needs no gradient)")


cdef bint lost(Node node, unsigned long long oldest) noexcept:
    return node.state == FREED and node.edge0 is None and node.edge1 is None and node.n_inputs > 0 and oldest < node.sequence


cdef set find_needed(dict wanted, dict found, unsigned long long oldest, bint stop, list roots):
    """The nodes from which something wanted, (node, result number) or a leaf, can be reached: depth first.

    `found` holds wanted nodes, which are kept even if nothing wanted lies behind them; with `stop`, nobody looks what does.  `oldest` is the
    sequence number of the oldest of them, 0 for leaves.
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
            if stop and node in found:
                continue
            stack.append((node, True))
            for i in range(node.n_inputs):
                edge = node_edge(node, i)
                if isinstance(edge, Node) and edge not in state:
                    stack.append((edge, False))
        else:
            hit = lost(node, oldest)
            for i in range(0 if hit else node.n_inputs):
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


# ---------------------------------------------------------------------- the end of a graph
cdef class Tail:
    """The last nodes of a graph without its values: their rules need nothing that was computed after operation number `stop`.

    When the operations up to `stop` have been repeated (none where it is -1), `rebuilt` makes the nodes again.  `needs` says whose results
    are wanted for that: the number and the name of each operation.
    """

    cdef readonly Py_ssize_t stop
    cdef readonly dict needs
    cdef list nodes         # (number, node with neither edges nor values, edges, values), the oldest first
    cdef list roots         # (number, output, dtype, shape) of each result

    cdef object place(self, Node node, dict order):
        """The number of an operation, noted as needed if it is to be repeated."""
        number = order[node.sequence][0]
        if number <= self.stop:
            self.needs[number] = node.primitive.name
        return number

    def rebuilt(self, dict made, dict inputs):
        """The results as tensors that can be differentiated but not read.

        `made` has (node, results, their versions) of what was repeated, `inputs` the leaves that stand for arguments, by place.
        """
        cdef Node node
        cdef Tensor x
        cdef dict new = {}
        for number, bare, edges, values in self.nodes:
            node = copied(<Node>bare)
            for i, edge, output in edges:
                if isinstance(edge, int):
                    edge = new[edge] if edge in new else made[edge][0]
                elif isinstance(edge, tuple):
                    edge = inputs[edge[0]]
                set_edge(node, i, edge, output)
            for i, value, version in values:
                if isinstance(value, tuple) and len(value) == 2:
                    _, results, versions = made[value[0]]
                    value, version = results[value[1]], versions[value[1]]
                elif isinstance(value, tuple):
                    x = <Tensor>inputs[value[0]]
                    value, version = x, x.storage.version
                set_saved(node, i, value, version)
            new[number] = node
        return [blind(new[number] if number in new else made[number][0], output, dtype, shape) for number, output, dtype, shape in self.roots]


def tail_of(results, dict order, dict places, arguments):
    """The tail of the graph behind tensors that a function computed, or None.

    `order` holds of each operation, by sequence number, (how many came before, versions and addresses of its results); `places` and
    `arguments` the ids of the tensors that will be there again: leaves by their places, and others.
    """
    cdef Tail tail = Tail()
    cdef set seen = set()
    cdef list nodes = []
    cdef Node node
    cdef Tensor x
    cdef Py_ssize_t number
    stack = []
    tail.stop, tail.needs, tail.nodes, tail.roots = -1, {}, [], []
    for result in results:
        x = <Tensor>result
        if x.node is None or stale(x) or x.node.sequence not in order:
            return None
        stack.append(x.node)
    while stack:
        node = <Node>stack.pop()
        if node in seen:
            continue
        seen.add(node)
        if node.sequence not in order:
            return None
        nodes.append(node)
        number = last_needed(node, order, arguments)
        tail.stop = max(tail.stop, number)
        stack += [edge for edge in [node_edge(node, i) for i in range(node.n_inputs)] if isinstance(edge, Node)]
    nodes = sorted([(order[(<Node>n).sequence][0], n) for n in nodes if order[(<Node>n).sequence][0] > tail.stop], key=lambda pair: pair[0])
    if not nodes:
        return None
    for number, n in nodes:
        node = <Node>n
        edges, values = [], []
        for i in range(node.n_inputs):
            edge, output = node_edge(node, i), node_edge_output(node, i)
            if isinstance(edge, Node):
                edge = tail.place(edge, order)
            elif edge is not None and id(edge) in places:
                edge = (places[id(edge)],)
            if edge is not None:
                edges.append((i, edge, output))
        for i, value, version in saved_by(node):
            if isinstance(value, Tensor) and (<Tensor>value).node is not None:
                value = tail.place((<Tensor>value).node, order), (<Tensor>value).output_number
            elif id(value) in places:
                value = (places[id(value)],)
            values.append((i, value, version))
        tail.nodes.append((number, copied(node), edges, values))
    for result in results:
        x = <Tensor>result
        tail.roots.append((tail.place(x.node, order), x.output_number, x.dtype_id, shape_tuple(x.rank, x.dims)))
    return tail


cdef Py_ssize_t last_needed(Node node, dict order, arguments) except -2:
    """The number of the operation that gives the last of what a node's rules need; -1: they need inputs alone."""
    cdef Py_ssize_t own = order[node.sequence][0], last = -1
    cdef Tensor x
    if not isinstance(node.primitive, Primitive) or node.saved_out is not None or node.state == PACKED or not plain(node.options):
        return own
    for _, value, version in saved_by(node):
        if not isinstance(value, Tensor):
            continue
        x = <Tensor>value
        if x.node is None:
            if not x.flags & REQUIRES_GRAD and id(x) not in arguments:
                return own              # a constant made on the way
        elif x.node.sequence not in order:
            return own
        else:
            number, results = order[x.node.sequence]
            if results[x.output_number] != (version, <size_t>x.data):
                return own              # written since it was made
            last = max(last, number)
    return last


cdef bint plain(object options) except -1:
    """Whether call options hold no tensors, nor anything that might."""
    if isinstance(options, (tuple, list)):
        return all([plain(x) for x in options])
    return options is None or options is Ellipsis or isinstance(options, (int, float, str, slice, DType))


cdef list saved_by(Node node):
    """(number of the input, value, version) of what a node keeps of its inputs."""
    cdef list found = []
    cdef int i
    if node.saved0 is not None:
        found.append((0, node.saved0, node.version0))
    if node.saved1 is not None:
        found.append((1, node.saved1, node.version1))
    if node.rest is not None and node.rest.saved is not None:
        for i in range(node.n_inputs - 2):
            if node.rest.saved[i] is not None:
                found.append((i + 2, node.rest.saved[i], node.rest.versions[i]))
    return found


cdef Node copied(Node source):
    """A new node for the same operation, with neither edges nor saved values."""
    cdef Node node = new_node(source.primitive, source.n_inputs)
    if source.n_inputs > 2:
        make_room(node, source.n_inputs)
    node.n_outputs = source.n_outputs
    node.options = source.options
    set_node_shape(node, source.out_dtype, source.out_rank, node_shape(source))
    if source.rest is not None:
        node_rest(node).shapes = source.rest.shapes
        node.rest.hooks, node.rest.watchers, node.rest.source = source.rest.hooks, source.rest.watchers, source.rest.source
        track(node)
    return node


cdef Tensor blind(Node node, int output, int dtype, tuple shape):
    """A tensor at the place of a node's result in the graph, whose elements are all one."""
    cdef Storage storage = new_storage(ITEMSIZE[dtype])
    cdef Py_ssize_t dims[MAX_DIMS]
    cdef Py_ssize_t none[MAX_DIMS]
    cdef Tensor x
    cdef int k
    for k in range(len(shape)):
        dims[k], none[k] = shape[k], 0
    x = storage_tensor(storage, storage.data, dtype, len(shape), dims, none)
    x.node, x.output_number = node, output
    x.flags |= REQUIRES_GRAD
    track(x)
    return x
