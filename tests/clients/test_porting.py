"""Scripts written for PyTorch run with ``import cgrad as torch``, and what cannot run says what to write."""
import json
import pickle

import numpy as np
import pytest
from porting_scripts import SCRIPTS

import cgrad as torch

#: What the scripts give with PyTorch 2.13 on a CPU
BY_PYTORCH = {
    "residual_network": [1.14188, 1.11844, 1.08765, 1.08393, 1.07961, 1.08242],
    "wgan_with_gradient_penalty": [3.31755, 0.259128, 3.09228, 0.285072, 3.14716, 0.260297, 3.77463, 0.271057],
    "deep_q_learning": [0.383771, 0.54829, 0.785667, 0.462843, 0.361285, -5.08269],
    "transformer_language_model": [2.41653, 0.527552, 2.39575, 0.483533, 2.36579, 0.407197, 2.331, 0.358559, 2.30268, 0.31846],
    "packed_tagger": [1.12849, 0.981091, 0.901381, 0.848069, 0.750615],
    "variational_autoencoder": [8.45294, 8.43358, 8.39044, 8.47821, 8.36264],
    "averaged_weights": [0.171545, 0.0935415, 0.0985643, 0.0376912, 0.0333126, 0.357449, 0.340716],
    "siamese_network": [2.7436, 3.09185, 2.5608, 2.11522],
}


def test_a_training_script_runs_word_for_word():
    from cgrad import nn
    from cgrad.utils.data import DataLoader, TensorDataset

    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    torch.manual_seed(0)
    torch.cuda.manual_seed_all(0)
    inputs = torch.randn(96, 1, 8, 8)
    labels = (inputs.mean(dim=(1, 2, 3)) > 0).long()
    loader = DataLoader(TensorDataset(inputs, labels), batch_size=32, shuffle=True, pin_memory=True)

    class Net(nn.Module):
        def __init__(self):
            super(Net, self).__init__()                        # noqa: UP008  as the tutorials write it
            self.conv1 = nn.Conv2d(1, 4, 3)
            self.pool = nn.MaxPool2d(2)
            self.fc = nn.Linear(4 * 3 * 3, 2)

        def forward(self, x):
            x = self.pool(torch.relu(self.conv1(x)))
            return self.fc(x.view(x.size(0), -1))

    model = Net().to(device)
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.02, fused=True)
    losses = []
    for _ in range(15):
        model.train()
        running_loss = 0.0
        for data, target in loader:
            data, target = data.to(device, non_blocking=True), target.to(device)
            optimizer.zero_grad()
            loss = criterion(model(data), target)
            loss.backward()
            optimizer.step()
            running_loss += loss.item() * data.size(0)
        losses.append(running_loss / len(loader.dataset))
    model.eval()
    with torch.inference_mode():
        predicted = model(inputs.to(device)).argmax(dim=1)
        correct = predicted.eq(labels.view_as(predicted)).sum().item()
    assert losses[-1] < 0.3 < losses[0] and correct / labels.size(0) > 0.9


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.__name__)
def test_a_script_gives_pytorchs_numbers(script):
    assert list(script(torch)) == pytest.approx(BY_PYTORCH[script.__name__], rel=1e-4)


def test_size_is_a_number_that_can_be_called():
    x = torch.zeros(2, 3, 4)
    assert x.size == 24 and isinstance(x.size, int) and x.size // 2 == 12 and np.zeros(x.size).shape == (24,)
    assert x.size() == x.shape == (2, 3, 4) and x.size(0) == 2 and x.size(-1) == x.size(dim=2) == x.size(axis=2) == 4
    n, *rest = x.size()
    assert n == 2 and rest == [3, 4] and torch.tensor(1.0).size() == () and torch.zeros(0, 2).size(1) == 2
    assert json.dumps(x.size) == repr(x.size) == f"{x.size}" == "24" and type(pickle.loads(pickle.dumps(x.size))) is int
    for axis in (3, -4):
        with pytest.raises(IndexError, match=rf"axis {axis} in the shape \(2, 3, 4\)"):
            x.size(axis)


def test_there_is_one_device():
    x = torch.ones(2, requires_grad=True)
    for device in ("cpu", torch.device("cpu"), torch.device("cpu", 0), torch.device("cpu:0"), x.device):
        assert x.to(device) is x and x.to(device=device) is x and device.partition(":")[0] == "cpu"
        assert torch.zeros(2, device=device).device == x.device == "cpu" and torch.nn.Linear(1, 1).to(device).weight.device.type == "cpu"
    assert x.to(x.device, torch.float64, non_blocking=True).dtype == x.to(dtype=torch.float64).dtype == torch.float64
    assert not x.is_cuda and x.device.index is None and torch.cuda.device_count() == 0
    assert x.type(torch.float64).dtype == torch.float64 and (x.byte().dtype, x.char().dtype) == (torch.uint8, torch.int8)
    torch.cuda.manual_seed(1)
    for wrong in (lambda: torch.device("cuda"), lambda: torch.device("mps", 0), lambda: x.to("cuda:0"), lambda: x.to(device="cuda"), x.cuda,
                  torch.nn.Linear(1, 1).cuda, lambda: torch.ones(1, device="cuda")):
        with pytest.raises(ValueError, match="cgrad computes on the CPU"):
            wrong()


def test_inference_mode():
    x = torch.ones(2, requires_grad=True)

    @torch.inference_mode
    def bare(x):
        return x * 2

    @torch.inference_mode()
    def called(x):
        return x * 2

    assert not bare(x).requires_grad and not called(x).requires_grad
    with torch.inference_mode(), torch.inference_mode(False):
        assert (x * 2).requires_grad
    assert torch.is_grad_enabled()


def test_draws_of_a_tensor():
    assert torch.tensor([[0.0, 1.0], [3.0, 0.0]]).multinomial(1).tolist() == [[1], [0]]
    assert torch.tensor([0.0, 1.0]).bernoulli().tolist() == [0.0, 1.0]
    x = torch.empty(400, dtype=torch.long)
    assert x.random_(3) is x and set(x.tolist()) == {0, 1, 2} and set(x.random_(-2, 0).tolist()) == {-2, -1}
    assert set(torch.empty(400).random_(2).tolist()) == {0.0, 1.0}
    with pytest.raises(ValueError, match="random_: low must be below high"):
        x.random_(0)


def test_pytorchs_places_of_data_and_checkpoints():
    from cgrad.utils import checkpoint, data
    assert all(getattr(data, name) is getattr(torch.data, name) for name in torch.data.__all__)
    assert checkpoint.checkpoint is torch.checkpoint


@pytest.mark.parametrize(("name", "text"), [("compile", "leave it out"), ("cosine_similarity", "it is cgrad.nn.functional.cosine_similarity"),
                                            ("svd", "it is cgrad.linalg.svd"), ("LongTensor", r"write cg.tensor\(data, dtype=cg.int64\)"),
                                            ("vmap", "it is cgrad.func.vmap"), ("nothing_like_it", "'nothing_like_it'$")])
def test_a_missing_name_says_what_to_write(name, text):
    with pytest.raises(AttributeError, match=text):
        getattr(torch, name)
