"""Images as layers: resized, framed, cut into patches, and channels traded for pixels; the formulas are in `functional.image` and `padding`."""
from __future__ import annotations

from cgrad.nn import functional as F
from cgrad.nn.module import Module

__all__ = [
    "ChannelShuffle", "CircularPad1d", "CircularPad2d", "CircularPad3d", "ConstantPad1d", "ConstantPad2d", "ConstantPad3d", "Fold", "PixelShuffle",
    "PixelUnshuffle", "ReflectionPad1d", "ReflectionPad2d", "ReflectionPad3d", "ReplicationPad1d", "ReplicationPad2d", "ReplicationPad3d", "Unfold",
    "Upsample", "UpsamplingBilinear2d", "UpsamplingNearest2d", "ZeroPad1d", "ZeroPad2d", "ZeroPad3d",
]


class Options(Module):
    """What layers of one function share: its options as attributes, named by `_options`."""

    _options = ()

    def __init__(self, *values):
        super().__init__()
        for name, value in zip(self._options, values, strict=True):
            setattr(self, name, value)

    def extra_repr(self):
        return ", ".join(f"{name}={getattr(self, name)}" for name in self._options)


# --------------------------------------------------------------------------------------------------------------- resizing
class Upsample(Options):
    """Signals, images or volumes resized; see `functional.interpolate`.

    Parameters
    ----------
    size, scale_factor, mode, align_corners, recompute_scale_factor
        As there.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.nn.Upsample(scale_factor=2)(cg.tensor([[[1.0, 2.0]]]))
    tensor([[[1., 1., 2., 2.]]])
    """

    _options = ("size", "scale_factor", "mode", "align_corners", "recompute_scale_factor")

    def __init__(self, size=None, scale_factor=None, mode="nearest", align_corners=None, recompute_scale_factor=None):
        super().__init__(size, scale_factor, mode, align_corners, recompute_scale_factor)

    def forward(self, input):
        return F.interpolate(input, self.size, self.scale_factor, self.mode, self.align_corners, self.recompute_scale_factor)


class UpsamplingNearest2d(Upsample):
    """Images enlarged by repeating elements.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.nn.UpsamplingNearest2d(scale_factor=2)(cg.ones(1, 1, 2, 3)).shape
    (1, 1, 4, 6)
    """

    def __init__(self, size=None, scale_factor=None):
        super().__init__(size, scale_factor)


class UpsamplingBilinear2d(Upsample):
    """Images enlarged by linear interpolation, their corners where they were.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.nn.UpsamplingBilinear2d(size=(1, 3))(cg.tensor([[[[0.0, 1.0]]]]))
    tensor([[[[0.0000, 0.5000, 1.0000]]]])
    """

    def __init__(self, size=None, scale_factor=None):
        super().__init__(size, scale_factor, "bilinear", True)


# ------------------------------------------------------------------------------------------------------- channels and pixels
class PixelShuffle(Options):
    """Channels laid out as pixels; see `functional.pixel_shuffle`.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.nn.PixelShuffle(2)(cg.ones(1, 8, 3, 5)).shape
    (1, 2, 6, 10)
    """

    _options = ("upscale_factor",)

    def __init__(self, upscale_factor):
        super().__init__(upscale_factor)

    def forward(self, input):
        return F.pixel_shuffle(input, self.upscale_factor)


class PixelUnshuffle(Options):
    """Pixels laid out as channels; see `functional.pixel_unshuffle`.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.nn.PixelUnshuffle(2)(cg.ones(1, 2, 6, 10)).shape
    (1, 8, 3, 5)
    """

    _options = ("downscale_factor",)

    def __init__(self, downscale_factor):
        super().__init__(downscale_factor)

    def forward(self, input):
        return F.pixel_unshuffle(input, self.downscale_factor)


class ChannelShuffle(Options):
    """Channels of several groups dealt out in turn; see `functional.channel_shuffle`.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.nn.ChannelShuffle(2)(cg.arange(4).reshape(1, 4, 1)).ravel()
    tensor([0, 2, 1, 3])
    """

    _options = ("groups",)

    def __init__(self, groups):
        super().__init__(groups)

    def forward(self, input):
        return F.channel_shuffle(input, self.groups)


# ---------------------------------------------------------------------------------------------------------------- patches
class Unfold(Options):
    """All patches of a batch of images, one column for each; see `functional.unfold`.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.nn.Unfold(2)(cg.ones(1, 3, 4, 4)).shape
    (1, 12, 9)
    """

    _options = ("kernel_size", "dilation", "padding", "stride")

    def __init__(self, kernel_size, dilation=1, padding=0, stride=1):
        super().__init__(kernel_size, dilation, padding, stride)

    def forward(self, input):
        return F.unfold(input, self.kernel_size, self.dilation, self.padding, self.stride)


class Fold(Options):
    """Patches added up into images; see `functional.fold`.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.nn.Fold((4, 4), 2)(cg.ones(1, 12, 9)).shape
    (1, 3, 4, 4)
    """

    _options = ("output_size", "kernel_size", "dilation", "padding", "stride")

    def __init__(self, output_size, kernel_size, dilation=1, padding=0, stride=1):
        super().__init__(output_size, kernel_size, dilation, padding, stride)

    def forward(self, input):
        return F.fold(input, self.output_size, self.kernel_size, self.dilation, self.padding, self.stride)


# ----------------------------------------------------------------------------------------------------------------- frames
class _Pad(Module):
    """A frame of one width, or of (before, after) for each axis from the last one on."""

    def __init__(self, padding):
        super().__init__()
        self.padding = (padding,) * (2 * self._axes) if isinstance(padding, int) else tuple(padding)
        if len(self.padding) != 2 * self._axes:
            raise ValueError(f"{type(self).__name__}: padding must be one width or {2 * self._axes}, got {padding!r}")

    def forward(self, input):
        return F.pad(input, self.padding, self._mode)

    def extra_repr(self):
        return f"{self.padding}"


class _ConstantPad(_Pad):
    _mode = "constant"

    def __init__(self, padding, value):
        super().__init__(padding)
        self.value = value

    def forward(self, input):
        return F.pad(input, self.padding, value=self.value)

    def extra_repr(self):
        return f"padding={self.padding}, value={self.value}"


class ZeroPad1d(_Pad):
    """A frame of zeros around the last axis; see `functional.pad`.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.nn.ZeroPad1d(1)(cg.tensor([[1.0, 2.0, 3.0]]))
    tensor([[0., 1., 2., 3., 0.]])
    """

    _axes = 1
    _mode = "constant"


class ZeroPad2d(_Pad):
    """A frame of zeros around the last two axes; see `functional.pad`.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.nn.ZeroPad2d(1)(cg.ones(1, 2, 3)).shape
    (1, 4, 5)
    """

    _axes = 2
    _mode = "constant"


class ZeroPad3d(_Pad):
    """A frame of zeros around the last three axes; see `functional.pad`.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.nn.ZeroPad3d(1)(cg.ones(1, 2, 2, 3)).shape
    (1, 4, 4, 5)
    """

    _axes = 3
    _mode = "constant"


class ConstantPad1d(_ConstantPad):
    """A frame of one value around the last axis; see `functional.pad`.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.nn.ConstantPad1d(1, 7.0)(cg.tensor([[1.0, 2.0, 3.0]]))
    tensor([[7., 1., 2., 3., 7.]])
    """

    _axes = 1


class ConstantPad2d(_ConstantPad):
    """A frame of one value around the last two axes; see `functional.pad`.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.nn.ConstantPad2d(1, 7.0)(cg.ones(1, 2, 3)).shape
    (1, 4, 5)
    """

    _axes = 2


class ConstantPad3d(_ConstantPad):
    """A frame of one value around the last three axes; see `functional.pad`.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.nn.ConstantPad3d(1, 7.0)(cg.ones(1, 2, 2, 3)).shape
    (1, 4, 4, 5)
    """

    _axes = 3


class ReflectionPad1d(_Pad):
    """A frame of the elements mirrored at the last one around the last axis; see `functional.pad`.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.nn.ReflectionPad1d(1)(cg.tensor([[1.0, 2.0, 3.0]]))
    tensor([[2., 1., 2., 3., 2.]])
    """

    _axes = 1
    _mode = "reflect"


class ReflectionPad2d(_Pad):
    """A frame of the elements mirrored at the last one around the last two axes; see `functional.pad`.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.nn.ReflectionPad2d(1)(cg.ones(1, 2, 3)).shape
    (1, 4, 5)
    """

    _axes = 2
    _mode = "reflect"


class ReflectionPad3d(_Pad):
    """A frame of the elements mirrored at the last one around the last three axes; see `functional.pad`.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.nn.ReflectionPad3d(1)(cg.ones(1, 2, 2, 3)).shape
    (1, 4, 4, 5)
    """

    _axes = 3
    _mode = "reflect"


class ReplicationPad1d(_Pad):
    """A frame of copies of the last element around the last axis; see `functional.pad`.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.nn.ReplicationPad1d(1)(cg.tensor([[1.0, 2.0, 3.0]]))
    tensor([[1., 1., 2., 3., 3.]])
    """

    _axes = 1
    _mode = "replicate"


class ReplicationPad2d(_Pad):
    """A frame of copies of the last element around the last two axes; see `functional.pad`.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.nn.ReplicationPad2d(1)(cg.ones(1, 2, 3)).shape
    (1, 4, 5)
    """

    _axes = 2
    _mode = "replicate"


class ReplicationPad3d(_Pad):
    """A frame of copies of the last element around the last three axes; see `functional.pad`.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.nn.ReplicationPad3d(1)(cg.ones(1, 2, 2, 3)).shape
    (1, 4, 4, 5)
    """

    _axes = 3
    _mode = "replicate"


class CircularPad1d(_Pad):
    """A frame of the elements of the other end around the last axis; see `functional.pad`.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.nn.CircularPad1d(1)(cg.tensor([[1.0, 2.0, 3.0]]))
    tensor([[3., 1., 2., 3., 1.]])
    """

    _axes = 1
    _mode = "circular"


class CircularPad2d(_Pad):
    """A frame of the elements of the other end around the last two axes; see `functional.pad`.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.nn.CircularPad2d(1)(cg.ones(1, 2, 3)).shape
    (1, 4, 5)
    """

    _axes = 2
    _mode = "circular"


class CircularPad3d(_Pad):
    """A frame of the elements of the other end around the last three axes; see `functional.pad`.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.nn.CircularPad3d(1)(cg.ones(1, 2, 2, 3)).shape
    (1, 4, 4, 5)
    """

    _axes = 3
    _mode = "circular"
