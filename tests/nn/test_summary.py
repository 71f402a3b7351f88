"""Module.summary: its figures by hand, what it leaves untouched, how it prints."""
import re

import pytest

import cgrad as cg
from cgrad import nn


def net():
    return nn.Sequential(nn.Conv2d(2, 6, 3, groups=2, padding=1), nn.BatchNorm2d(6), nn.ReLU(), nn.Dropout(0.5), nn.Flatten(), nn.Linear(6 * 20, 10))


def test_figures_of_a_convolutional_network():
    s = net().summary((3, 2, 5, 4))
    rows = {row.path: row for row in s.layers}
    assert [row.kind for row in s.layers] == ["Sequential", "Conv2d", "BatchNorm2d", "ReLU", "Dropout", "Flatten", "Linear"]
    assert rows["0"].output_shapes == [(3, 6, 5, 4)] and rows[""].output_shapes == [(3, 10)]
    assert rows["0"].parameters == 6 * 1 * 9 + 6 and rows["0"].multiply_adds == 3 * 6 * 20 * 9
    assert rows["5"].parameters == 1210 and rows["5"].multiply_adds == 3 * 10 * 120
    assert rows["1"].nbytes == 4 * 12 + 4 * 12 + 8 and rows["2"].multiply_adds is None
    assert (s.parameters, s.trainable) == (60 + 12 + 1210,) * 2 and s.parameter_bytes == 4 * 1282 and s.buffer_bytes == 56
    assert s.multiply_adds == 3240 + 3600 and s.flops == 2 * s.multiply_adds
    assert s.output_bytes == 4 * 3 * (5 * 120 + 10)


@pytest.mark.parametrize(("layer", "args", "want"), [
    (nn.Linear(3, 5), ((2, 7, 3),), 2 * 7 * 3 * 5),
    (nn.Bilinear(3, 4, 5), ((2, 3), (2, 4)), 2 * 5 * 3 * 4),
    (nn.Conv1d(4, 6, 3, stride=2), ((2, 4, 9),), 2 * 6 * 4 * 4 * 3),
    (nn.ConvTranspose2d(4, 6, 3, groups=2), ((2, 4, 5, 5),), 2 * 4 * 25 * 3 * 9),
    (nn.MultiheadAttention(8, 2, batch_first=True), ((3, 5, 8), (3, 7, 8), (3, 7, 8)),
     3 * 5 * 64 + 3 * 7 * 128 + 2 * 3 * 5 * 7 * 8 + 3 * 5 * 64),
    (nn.MultiheadAttention(8, 2, kdim=3, vdim=4), ((5, 3, 8), (7, 3, 3), (7, 3, 4)),
     3 * 5 * 64 + 3 * 7 * 8 * 7 + 2 * 3 * 5 * 7 * 8 + 3 * 5 * 64),
    (nn.LSTM(3, 5, batch_first=True), ((2, 7, 3),), 2 * 7 * 4 * 5 * (3 + 5)),
    (nn.GRU(3, 5, num_layers=2, bidirectional=True), ((7, 2, 3),), 2 * 7 * 3 * 5 * 2 * ((3 + 5) + (10 + 5))),
    (nn.RNNCell(3, 5), ((2, 3),), 2 * 5 * (3 + 5)),
])
def test_multiply_adds_of_each_layer(layer, args, want):
    assert layer.summary(*args).multiply_adds == want


def test_nothing_is_changed():
    model = net()
    model[1].eval()
    cg.manual_seed(3)
    model.summary(cg.ones(2, 2, 5, 4))
    drawn = cg.rand(3).tolist()
    cg.manual_seed(3)
    assert drawn == cg.rand(3).tolist()
    assert [part.training for part in model.modules()] == [True, True, False, True, True, True, True]
    assert not any(part._hooks for part in model.modules())
    assert model[1].num_batches_tracked.item() == 0 and all(p.grad is None for p in model.parameters())
    with pytest.raises(ValueError):
        model.summary((2, 3, 5, 4))
    assert not any(part._hooks for part in model.modules()) and model.training


def test_shared_parameters_and_modules_count_once():
    class Tied(nn.Module):
        def __init__(self):
            super().__init__()
            self.embedding = nn.Embedding(7, 3)
            self.block = nn.Linear(3, 3)
            self.out = nn.Linear(3, 7, bias=False)
            self.out.weight = self.embedding.weight

        def forward(self, index):
            return self.out(self.block(self.block(self.embedding(index))))

    model = Tied()
    s = model.summary(cg.tensor([[1, 2]]))
    assert s.parameters == 21 + 12 and s.parameter_bytes == 4 * 33
    rows = {row.path: row for row in s.layers}
    assert rows["out"].shared == 21 and rows["out"].parameters == 0 and rows["block"].calls == 2
    assert rows["block"].multiply_adds == 2 * 2 * 9 and s.multiply_adds == 36 + 2 * 21
    assert re.search(r"block: Linear +\(1, 2, 3\) x2 +12", repr(s)) and re.search(r"out: Linear .*\(21\) +shared", repr(s))


def test_frozen_parameters_and_models_without_a_call():
    model = nn.Sequential(nn.Linear(2, 3), nn.Linear(3, 1))
    model[0].requires_grad_(False)
    model[1].bias.requires_grad_(False)
    s = model.summary()
    assert (s.parameters, s.trainable, s.multiply_adds) == (13, 3, 0) and all(row.output_shapes is None for row in s.layers)
    lines = repr(s).splitlines()
    assert lines[3].split() == ["0:", "Linear", "-", "9", "no", "36", "-"] and lines[4].split()[4] == "3"


def test_inputs_by_shape_by_keyword_and_of_other_dtypes():
    assert nn.Linear(3, 2).summary(input_size=(5, 3)).layers[0].output_shapes == [(5, 2)]
    assert nn.Bilinear(3, 2, 1).summary(input_size=[(5, 3), (5, 2)]).layers[0].output_shapes == [(5, 1)]
    assert nn.Embedding(4, 2).summary((3,), dtype=cg.int64).layers[0].output_shapes == [(3, 2)]
    attention = nn.MultiheadAttention(4, 1)
    x = cg.ones(3, 1, 4)
    assert attention.summary(x, x, value=x).layers[0].output_shapes == [(3, 1, 4), (1, 3, 3)]
    with pytest.raises(ValueError, match="not both"):
        nn.Linear(3, 2).summary((1, 3), input_size=(1, 3))


def test_the_table_is_aligned_and_also_html():
    s = net().summary((1, 2, 5, 4))
    lines = repr(s).splitlines()
    end = lines[0].index("parameters") + len("parameters")
    assert all(line[end:end + 2] in ("  ", "") and line[end - 1] != " " for line in lines[2:9])
    assert len(lines[1]) == max(map(len, lines[:9])) and set(lines[1]) == {"-"}
    page = s._repr_html_()
    assert page.count("<tr>") == 1 + 7 + 4 and "1,282" in page and "padding-left:2.0em" in page


def test_a_child_may_not_hide_a_method():
    model = nn.Module()
    with pytest.raises(KeyError, match="method of every Module"):
        model.summary = nn.Linear(1, 1)


def test_nothing_is_loaded_before_it_is_asked_for():
    import subprocess
    import sys
    code = "import sys, cgrad.nn; assert 'cgrad.nn.summary' not in sys.modules and 'cgrad.nn.utils.parametrize' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_results_in_dicts():
    class Two(nn.Module):
        def forward(self, x):
            return {"a": x, "b": [x[0], None]}

    row, = Two().summary(cg.zeros(2, 3)).layers
    assert row.output_shapes == [(2, 3), (3,)]
