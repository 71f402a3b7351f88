"""g = exp(a·b + c·d), differentiated twice over: first by hand, then by the tape
=================================================================================

Three operations are written as classes.  Each knows two things: how to compute its result (`forward`), and how a change of
the result follows from a change of each input (`backward`: the incoming gradient times the local slope).  That is all
automatic differentiation needs; the tape adds the book-keeping.

Run it: ``python examples/walkthrough.py``
"""
import math

import cgrad as cg
from cgrad import Op


class Add(Op):
    def forward(self, x, y):
        return x + y

    def backward(self, g):
        return g, g                         # d(x+y)/dx = d(x+y)/dy = 1


class Multiply(Op):
    def forward(self, x, y):
        self.x, self.y = x, y               # the slopes need the inputs: keep them
        return x * y

    def backward(self, g):
        return g * self.y, g * self.x       # d(xy)/dx = y,  d(xy)/dy = x


class Exponential(Op):
    def forward(self, x):
        self.out = math.exp(x)
        return self.out

    def backward(self, g):
        return g * self.out                 # exp is its own slope


def by_hand(a, b, c, d):
    """The value of g and its four partial derivatives, one step at a time on plain numbers."""
    times_ab, times_cd, plus, e = Multiply(), Multiply(), Add(), Exponential()

    # Forward: from the inputs to the result.
    ab = times_ab(a, b)
    cd = times_cd(c, d)
    s = plus(ab, cd)
    g = e(s)

    # Backward: from the result to the inputs, each operation asked once, in the opposite order.
    ds = e.backward(1.0)                    # dg/dg = 1 starts the chain
    dab, dcd = plus.backward(ds)
    dc, dd = times_cd.backward(dcd)
    da, db = times_ab.backward(dab)
    return g, (da, db, dc, dd)


def on_the_tape(a, b, c, d):
    """The same with tensors: the calls are recorded, and `backward` walks the record for us."""
    inputs = [cg.tensor(v, dtype=cg.float64, requires_grad=True) for v in (a, b, c, d)]
    a, b, c, d = inputs
    times, plus, e = Multiply(), Add(), Exponential()     # one Multiply serves twice: the tape keeps each call apart
    g = e(plus(times(a, b), times(c, d)))
    g.backward()
    return g.item(), tuple(t.grad.item() for t in inputs)


def built_in(a, b, c, d):
    """And with cgrad's own operations, as one would write it."""
    inputs = [cg.tensor(v, dtype=cg.float64, requires_grad=True) for v in (a, b, c, d)]
    a, b, c, d = inputs
    g = cg.exp(a * b + c * d)
    g.backward()
    return g.item(), tuple(t.grad.item() for t in inputs)


def main():
    point = (2.0, 3.0, 2.0, 2.0)
    print("g = exp(a*b + c*d) at a, b, c, d = 2, 3, 2, 2")
    for title, way in (("by hand", by_hand), ("on the tape", on_the_tape), ("with built-in operations", built_in)):
        g, partials = way(*point)
        print(f"\n{title}:\n  g     = {g!r}")
        for name, value in zip("abcd", partials, strict=True):
            print(f"  dg/d{name} = {value!r}")


if __name__ == "__main__":
    main()
