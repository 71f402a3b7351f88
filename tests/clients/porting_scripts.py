"""Training scripts as PyTorch's tutorials write them, small; each takes the module `torch` and returns the numbers that it would print.

Run with PyTorch they give the numbers in test_porting.py: weights and data come from NumPy.
"""
import copy
import math

import numpy as np


def drawn(torch, *shape, seed=0):
    return torch.tensor(np.random.default_rng(seed).standard_normal(shape).astype(np.float32))


def numbers(torch, n, *shape, seed=0):
    return torch.tensor(np.random.default_rng(seed).integers(0, n, shape))


def filled(torch, model):
    """The model with parameters drawn by NumPy."""
    draws = np.random.default_rng(7)
    for p in model.parameters():
        p.data.copy_(torch.tensor(0.3 * draws.standard_normal(tuple(p.shape)).astype(np.float32)))
    return model


def residual_network(torch):
    nn = torch.nn

    class BasicBlock(nn.Module):
        def __init__(self, inplanes, planes, stride=1):
            super().__init__()
            self.conv1 = nn.Conv2d(inplanes, planes, kernel_size=3, stride=stride, padding=1, bias=False)
            self.bn1 = nn.BatchNorm2d(planes)
            self.relu = nn.ReLU(inplace=True)
            self.conv2 = nn.Conv2d(planes, planes, kernel_size=3, padding=1, bias=False)
            self.bn2 = nn.BatchNorm2d(planes)
            self.downsample = nn.Sequential(nn.Conv2d(inplanes, planes, 1, stride, bias=False), nn.BatchNorm2d(planes))

        def forward(self, x):
            out = self.relu(self.bn1(self.conv1(x)))
            out = self.bn2(self.conv2(out))
            out += self.downsample(x)
            return self.relu(out)

    model = filled(torch, nn.Sequential(BasicBlock(3, 4), BasicBlock(4, 6, 2), nn.AdaptiveAvgPool2d((1, 1)), nn.Flatten(), nn.Linear(6, 3)))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, weight_decay=5e-4, nesterov=True)
    scheduler = torch.optim.lr_scheduler.MultiStepLR(optimizer, milestones=[2, 4], gamma=0.1)
    x, y = drawn(torch, 8, 3, 8, 8), numbers(torch, 3, 8)
    for _ in range(5):
        loss = nn.functional.cross_entropy(model(x), y, label_smoothing=0.1)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        scheduler.step()
        yield loss.item()
    model.eval()
    with torch.no_grad():
        yield nn.functional.cross_entropy(model(x), y).item()


def wgan_with_gradient_penalty(torch):
    nn = torch.nn
    critic = filled(torch, nn.Sequential(nn.Linear(4, 16), nn.LeakyReLU(0.2, inplace=True), nn.LayerNorm(16), nn.Linear(16, 1)))
    generator = filled(torch, nn.Sequential(nn.Linear(2, 8), nn.BatchNorm1d(8, 0.8), nn.Tanh(), nn.Linear(8, 4)))
    optimizer_d = torch.optim.RMSprop(critic.parameters(), lr=1e-3)
    optimizer_g = torch.optim.Adam(generator.parameters(), lr=1e-3, betas=(0.5, 0.9))
    for step in range(4):
        real, alpha = drawn(torch, 6, 4, seed=step), torch.tensor(np.random.default_rng(step).random((6, 1)).astype(np.float32))
        fake = generator(drawn(torch, 6, 2, seed=step)).detach()
        between = (alpha * real + (1 - alpha) * fake).requires_grad_(True)
        out = critic(between)
        gradients = torch.autograd.grad(outputs=out, inputs=between, grad_outputs=torch.ones(6, 1), create_graph=True, retain_graph=True,
                                        only_inputs=True)[0]
        penalty = ((gradients.view(gradients.size(0), -1).norm(2, dim=1) - 1) ** 2).mean()
        loss = critic(fake).mean() - critic(real).mean() + 10 * penalty
        optimizer_d.zero_grad()
        loss.backward()
        optimizer_d.step()
        optimizer_g.zero_grad()
        loss_g = -critic(generator(drawn(torch, 6, 2, seed=step + 10))).mean()
        loss_g.backward()
        optimizer_g.step()
        yield loss.item()
        yield loss_g.item()


def deep_q_learning(torch):
    nn, F = torch.nn, torch.nn.functional
    policy = filled(torch, nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 2)))
    target = copy.deepcopy(policy)
    optimizer = torch.optim.AdamW(policy.parameters(), lr=1e-2, amsgrad=True)
    for step in range(5):
        state, action, reward = drawn(torch, 8, 4, seed=step), numbers(torch, 2, 8, 1, seed=step), drawn(torch, 8, seed=step + 1)
        final = torch.tensor([False, True] * 4)
        values = torch.zeros(8)
        with torch.no_grad():
            values[~final] = target(drawn(torch, 4, 4, seed=step + 2)).amax(1)
        loss = F.smooth_l1_loss(policy(state).gather(1, action), (values * 0.99 + reward).unsqueeze(1))
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_value_(policy.parameters(), 100)
        optimizer.step()
        new, old = policy.state_dict(), target.state_dict()
        for key in new:
            old[key] = new[key] * 0.05 + old[key] * 0.95
        target.load_state_dict(old)
        yield loss.item()
    yield sum(p.sum().item() for p in target.parameters())


def transformer_language_model(torch):
    nn = torch.nn

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.embedding = nn.Embedding(11, 8)
            position, width = torch.arange(6).unsqueeze(1), torch.exp(torch.arange(0, 8, 2) * (-math.log(10000.0) / 8))
            table = torch.zeros(6, 1, 8)
            table[:, 0, 0::2] = torch.sin(position * width)
            table[:, 0, 1::2] = torch.cos(position * width)
            self.register_buffer("table", table)
            self.encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0), 2, enable_nested_tensor=False)
            self.decoder = nn.Linear(8, 11)

        def forward(self, src):
            mask = nn.Transformer.generate_square_subsequent_mask(src.size(0))
            return self.decoder(self.encoder(self.embedding(src) * math.sqrt(8) + self.table[:src.size(0)], mask))

    model = filled(torch, Model())
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: min(1.0, (step + 1) / 3))
    text = numbers(torch, 11, 7, 3)
    for _ in range(5):
        loss = nn.CrossEntropyLoss()(model(text[:-1]).view(-1, 11), text[1:].reshape(-1))
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        norm = nn.utils.clip_grad_norm_(model.parameters(), 0.5)
        optimizer.step()
        scheduler.step()
        yield loss.item()
        yield norm.item()


def packed_tagger(torch):
    nn, rnn = torch.nn, torch.nn.utils.rnn
    sequences = [numbers(torch, 9, n, seed=n) + 1 for n in (3, 6, 4)]
    x = rnn.pad_sequence(sequences, batch_first=True)
    y = rnn.pad_sequence([s % 3 for s in sequences], batch_first=True, padding_value=-100)

    class Tagger(nn.Module):
        def __init__(self):
            super().__init__()
            self.embedding = nn.Embedding(10, 5, padding_idx=0)
            self.lstm = nn.LSTM(5, 6, num_layers=2, bidirectional=True, batch_first=True)
            self.out = nn.Linear(12, 3)

        def forward(self, x, lengths):
            packed = rnn.pack_padded_sequence(self.embedding(x), lengths, batch_first=True, enforce_sorted=False)
            out, _ = rnn.pad_packed_sequence(self.lstm(packed)[0], batch_first=True)
            return self.out(out)

    model = filled(torch, Tagger())
    optimizer = torch.optim.Adagrad(model.parameters(), lr=0.1)
    for _ in range(5):
        model.zero_grad()
        loss = nn.CrossEntropyLoss(ignore_index=-100)(model(x, torch.tensor([3, 6, 4])).permute(0, 2, 1), y)
        loss.backward()
        optimizer.step()
        yield loss.item()


def variational_autoencoder(torch):
    nn, F = torch.nn, torch.nn.functional
    encoder = filled(torch, nn.Sequential(nn.Linear(12, 8), nn.ReLU(), nn.Linear(8, 4)))
    decoder = filled(torch, nn.Sequential(nn.Linear(2, 8), nn.ReLU(), nn.Linear(8, 12)))
    optimizer = torch.optim.NAdam([{"params": encoder.parameters()}, {"params": decoder.parameters(), "lr": 1e-2}], lr=5e-3)
    data = torch.sigmoid(drawn(torch, 6, 3, 4))
    for step in range(5):
        x = data.view(-1, 12)
        mu, logvar = encoder(x).chunk(2, dim=1)
        again = torch.sigmoid(decoder(mu + torch.exp(0.5 * logvar) * drawn(torch, 6, 2, seed=step)))
        loss = F.binary_cross_entropy(again, x, reduction="sum") - 0.5 * torch.sum(1 + logvar - mu.pow(2) - logvar.exp())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        yield loss.item() / len(x)


def averaged_weights(torch):
    from importlib import import_module
    swa_utils = import_module(f"{torch.__name__}.optim.swa_utils")
    nn = torch.nn
    model = filled(torch, nn.Sequential(nn.Linear(3, 6), nn.BatchNorm1d(6), nn.ReLU(), nn.Linear(6, 1)))
    x, y = drawn(torch, 12, 3), drawn(torch, 12, 1, seed=1)
    average, moving = swa_utils.AveragedModel(model), swa_utils.AveragedModel(model, multi_avg_fn=swa_utils.get_ema_multi_avg_fn(0.8))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    schedule = swa_utils.SWALR(optimizer, swa_lr=0.02, anneal_epochs=3)
    for _ in range(5):
        for part in range(0, 12, 4):
            optimizer.zero_grad()
            loss = nn.functional.mse_loss(model(x[part:part + 4]), y[part:part + 4])
            loss.backward()
            optimizer.step()
            moving.update_parameters(model)
        average.update_parameters(model)
        schedule.step()
        yield loss.item()
    swa_utils.update_bn([x[:6], x[6:]], average)
    with torch.no_grad():
        for net in (average, moving):
            net.eval()
            yield nn.MSELoss()(net(x), y).item()


def siamese_network(torch):
    nn, F = torch.nn, torch.nn.functional
    net = filled(torch, nn.Sequential(nn.ReflectionPad2d(1), nn.Conv2d(1, 4, 3), nn.ReLU(inplace=True), nn.BatchNorm2d(4), nn.Flatten(), nn.Linear(64, 3)))
    optimizer = torch.optim.RAdam(net.parameters(), lr=1e-2)
    for step in range(4):
        a, b, c = (F.normalize(net(drawn(torch, 5, 1, 4, 4, seed=3 * step + i)), p=2, dim=1) for i in range(3))
        label = numbers(torch, 2, 5, 1, seed=step).float()
        distance = F.pairwise_distance(a, b, keepdim=True)
        contrast = torch.mean((1 - label) * torch.pow(distance, 2) + label * torch.pow(torch.clamp(2.0 - distance, min=0.0), 2))
        loss = nn.TripletMarginLoss(margin=1.0, p=2)(a, b, c) + contrast
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        yield loss.item()


SCRIPTS = [residual_network, wgan_with_gradient_penalty, deep_q_learning, transformer_language_model, packed_tagger, variational_autoencoder,
           averaged_weights, siamese_network]
