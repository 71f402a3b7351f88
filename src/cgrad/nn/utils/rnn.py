"""Batches of sequences of different lengths: padded, or packed step by step without padding.

Examples
--------
>>> import cgrad as cg
>>> from cgrad.nn.utils.rnn import pack_sequence, pad_packed_sequence
>>> packed = pack_sequence([cg.tensor([1.0, 2.0, 3.0]), cg.tensor([4.0])])
>>> packed.data
tensor([1., 4., 2., 3.])
>>> pad_packed_sequence(packed, batch_first=True)
(tensor([[1., 2., 3.],
        [4., 0., 0.]]), tensor([3, 1]))
"""
from __future__ import annotations

from collections import namedtuple

import cgrad as cg
from cgrad.core.tensor import Tensor
from cgrad.ops.define import open_doors

__all__ = ["PackedSequence", "invert_permutation", "pack_padded_sequence", "pack_sequence", "pad_packed_sequence", "pad_sequence",
           "unpack_sequence", "unpad_sequence"]


_Packed = namedtuple("_Packed", ("data", "batch_sizes", "sorted_indices", "unsorted_indices"))


class PackedSequence(_Packed):
    """Sequences of different lengths without padding: the first elements of all, then the second ones of those that have one, and so on.

    Made by `pack_padded_sequence` and `pack_sequence`, taken and given by the recurrent layers.

    Parameters
    ----------
    data : Tensor, shape ``(total length, *)``
        The longest sequence comes first in each step.
    batch_sizes : Tensor of int64
        How many sequences reach each step.
    sorted_indices : Tensor of int64, optional
        Which sequence was put at each place, if they were sorted.
    unsorted_indices : Tensor of int64, optional
        The place of each sequence; default: from `sorted_indices`.

    Examples
    --------
    >>> import cgrad as cg
    >>> packed = cg.nn.utils.rnn.pack_sequence([cg.ones((3, 2)), cg.ones((1, 2))])
    >>> packed.data.shape, packed.batch_sizes.tolist()
    ((4, 2), [2, 1, 1])
    """

    __slots__ = ()

    def __new__(cls, data, batch_sizes, sorted_indices=None, unsorted_indices=None):
        if unsorted_indices is None:
            unsorted_indices = invert_permutation(sorted_indices)
        return super().__new__(cls, data, batch_sizes, sorted_indices, unsorted_indices)

    def to(self, *args, **kwargs):
        """The same with `data` converted as `cgrad.Tensor.to` does it."""
        return self._replace(data=self.data.to(*args, **kwargs))

    def float(self):
        """The same with `data` as float32."""
        return self.to(cg.float32)

    def double(self):
        """The same with `data` as float64."""
        return self.to(cg.float64)


def invert_permutation(permutation):
    """The permutation that undoes one; None stays None.

    Parameters
    ----------
    permutation : Tensor of integers, shape (n,), or None

    Returns
    -------
    Tensor of int64, shape (n,), or None

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.nn.utils.rnn.invert_permutation(cg.tensor([2, 0, 1]))
    tensor([1, 2, 0])
    """
    return None if permutation is None else cg.argsort(permutation)


def _lengths(name, lengths, n, longest):
    lengths = lengths.astype(cg.int64) if isinstance(lengths, Tensor) else cg.tensor(list(lengths), dtype=cg.int64)
    if lengths.shape != (n,) or n == 0:
        raise ValueError(f"{name}: a batch of {n} sequences needs as many lengths, and at least one; got lengths of shape {tuple(lengths.shape)}")
    if lengths.min() < 1 or lengths.max() > longest:
        raise ValueError(f"{name}: lengths must lie in [1, {longest}], got {lengths.tolist()}")
    return lengths


def pack_padded_sequence(input, lengths, batch_first=False, enforce_sorted=True):
    """Padded sequences without their padding.

    Parameters
    ----------
    input : Tensor, shape ``(T, B, *)``
        ``(B, T, *)`` if `batch_first`.
    lengths : Tensor of integers or list of int, length B
        Each at least 1 and at most T.
    batch_first : bool, default False
    enforce_sorted : bool, default True
        Whether the lengths must not rise; otherwise the sequences are sorted, and unsorted again by what takes the packed sequence.

    Returns
    -------
    PackedSequence

    Raises
    ------
    ValueError
        If lengths do not fit, or rise although `enforce_sorted`.

    Examples
    --------
    >>> import cgrad as cg
    >>> padded = cg.tensor([[1.0, 2.0, 0.0], [3.0, 4.0, 5.0]])
    >>> packed = cg.nn.utils.rnn.pack_padded_sequence(padded, [2, 3], batch_first=True, enforce_sorted=False)
    >>> packed.data, packed.batch_sizes
    (tensor([3., 1., 4., 2., 5.]), tensor([2, 2, 1]))
    """
    if input.ndim < 2:
        raise ValueError(f"pack_padded_sequence: the input needs an axis of steps and one of sequences, got shape {tuple(input.shape)}")
    x = input.transpose(0, 1) if batch_first else input
    lengths, order = _lengths("pack_padded_sequence", lengths, x.shape[1], x.shape[0]), None
    if not enforce_sorted:
        order = cg.argsort(lengths, descending=True, stable=True)
        lengths, x = lengths[order], cg.take(x, order, axis=1)
    elif (lengths[1:] > lengths[:-1]).any():
        raise ValueError(f"pack_padded_sequence: lengths must not rise, got {lengths.tolist()}; enforce_sorted=False sorts the sequences")
    there = cg.arange(int(lengths[0])).unsqueeze(1) < lengths
    data = cg.take(x.reshape(x.shape[0] * x.shape[1], *x.shape[2:]), there.reshape(-1).nonzero()[0], axis=0)
    return PackedSequence(data, there.sum(axis=1, dtype=cg.int64), order)


def pad_packed_sequence(sequence, batch_first=False, padding_value=0.0, total_length=None):
    """What was packed, padded again: the reverse of `pack_padded_sequence`.

    Parameters
    ----------
    sequence : PackedSequence
    batch_first : bool, default False
    padding_value : float, default 0.0
    total_length : int, optional
        Pad to this length instead of that of the longest sequence.

    Returns
    -------
    padded : Tensor, shape ``(T, B, *)``
        ``(B, T, *)`` if `batch_first`; sequences in the order in which they were packed.
    lengths : Tensor of int64, shape (B,)

    Raises
    ------
    ValueError
        If a sequence is longer than `total_length`.

    Examples
    --------
    >>> import cgrad as cg
    >>> packed = cg.nn.utils.rnn.pack_sequence([cg.tensor([1.0, 2.0]), cg.tensor([3.0])])
    >>> cg.nn.utils.rnn.pad_packed_sequence(packed, batch_first=True, total_length=3)[0]
    tensor([[1., 2., 0.],
            [3., 0., 0.]])
    """
    data, sizes, _, unsorted = sequence
    n_steps, n_batch = sizes.shape[0], int(sizes[0])
    there = cg.arange(n_batch) < sizes.unsqueeze(1)
    lengths = there.sum(axis=0, dtype=cg.int64)
    if total_length is not None:
        if total_length < n_steps:
            raise ValueError(f"pad_packed_sequence: total_length={total_length} is less than the longest sequence, {n_steps}")
        there = cg.concat([there, cg.zeros((total_length - n_steps, n_batch), dtype=cg.bool)])
    place = cg.cumsum(there.reshape(-1), axis=0, dtype=cg.int64) - 1
    padded = cg.take(data, cg.maximum(place, 0), axis=0)
    there = there.reshape(place.shape[0], *(1,) * (data.ndim - 1))
    padded = cg.where(there, padded, cg.full((), padding_value, dtype=data.dtype)).reshape(-1, n_batch, *data.shape[1:])
    if unsorted is not None:
        padded, lengths = cg.take(padded, unsorted, axis=1), lengths[unsorted]
    return padded.transpose(0, 1) if batch_first else padded, lengths


def pad_sequence(sequences, batch_first=False, padding_value=0.0, padding_side="right"):
    """Sequences of different lengths as one tensor.

    Parameters
    ----------
    sequences : list of Tensor, shape ``(length, *)``
        Equal but for the length.
    batch_first : bool, default False
    padding_value : float, default 0.0
    padding_side : {"right", "left"}
        Where the padding goes.

    Returns
    -------
    Tensor, shape ``(T, B, *)``
        ``(B, T, *)`` if `batch_first`, with the length T of the longest.

    Raises
    ------
    ValueError
        If there is no sequence, shapes do not fit, or `padding_side` is another word.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.nn.utils.rnn.pad_sequence([cg.tensor([1, 2, 3]), cg.tensor([4])], batch_first=True, padding_value=9)
    tensor([[1, 2, 3],
            [4, 9, 9]])
    """
    if padding_side not in ("right", "left"):
        raise ValueError(f"pad_sequence: padding_side must be 'right' or 'left', got {padding_side!r}")
    sequences = list(sequences.unbind(0) if isinstance(sequences, Tensor) else sequences)
    if not sequences or any(x.ndim == 0 or x.shape[1:] != sequences[0].shape[1:] for x in sequences):
        raise ValueError("pad_sequence: needs at least one sequence, and shapes that agree but for the first axis; got "
                         f"{[tuple(x.shape) for x in sequences]}")
    length = max(x.shape[0] for x in sequences)
    padded = []
    for x in sequences:
        rest = [cg.full((length - x.shape[0], *x.shape[1:]), padding_value, dtype=x.dtype)] if x.shape[0] < length else []
        padded.append(cg.concat([x, *rest] if padding_side == "right" else [*rest, x]))
    return cg.stack(padded, 0 if batch_first else 1)


def pack_sequence(sequences, enforce_sorted=True):
    """Sequences of different lengths as a packed sequence.

    Parameters
    ----------
    sequences : list of Tensor, shape ``(length, *)``
    enforce_sorted : bool, default True
        As for `pack_padded_sequence`.

    Returns
    -------
    PackedSequence

    Raises
    ------
    ValueError
        As `pad_sequence` and `pack_padded_sequence`.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.nn.utils.rnn.pack_sequence([cg.tensor([1, 2, 3]), cg.tensor([4, 5])]).data
    tensor([1, 4, 2, 5, 3])
    """
    return pack_padded_sequence(pad_sequence(sequences), [x.shape[0] for x in sequences], enforce_sorted=enforce_sorted)


def unpad_sequence(padded_sequences, lengths, batch_first=False):
    """The sequences of a padded batch, each with its length: the reverse of `pad_sequence`.

    Parameters
    ----------
    padded_sequences : Tensor, shape ``(T, B, *)``
        ``(B, T, *)`` if `batch_first`.
    lengths : Tensor of integers or list of int, length B
    batch_first : bool, default False

    Returns
    -------
    list of Tensor, shape ``(length, *)``

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.nn.utils.rnn.unpad_sequence(cg.tensor([[1, 2, 3], [4, 0, 0]]), [3, 1], batch_first=True)
    [tensor([1, 2, 3]), tensor([4])]
    """
    x = padded_sequences if batch_first else padded_sequences.transpose(0, 1)
    return [row[:n] for row, n in zip(x.unbind(0), lengths.tolist() if isinstance(lengths, Tensor) else lengths, strict=True)]


def unpack_sequence(packed_sequences):
    """The sequences of a packed sequence: the reverse of `pack_sequence`.

    Parameters
    ----------
    packed_sequences : PackedSequence

    Returns
    -------
    list of Tensor, shape ``(length, *)``

    Examples
    --------
    >>> import cgrad as cg
    >>> rnn = cg.nn.utils.rnn
    >>> rnn.unpack_sequence(rnn.pack_sequence([cg.tensor([1, 2]), cg.tensor([3])]))
    [tensor([1, 2]), tensor([3])]
    """
    return unpad_sequence(*pad_packed_sequence(packed_sequences, batch_first=True), batch_first=True)


open_doors(globals())
