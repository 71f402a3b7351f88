"""Networks: modules, layers, losses, initialisation. Names and meaning are PyTorch's.

Examples
--------
>>> import cgrad as cg
>>> net = cg.nn.Sequential(cg.nn.Linear(4, 16), cg.nn.ReLU(), cg.nn.Linear(16, 3))
>>> loss = cg.nn.CrossEntropyLoss()(net(cg.randn(8, 4)), cg.zeros(8, dtype=cg.int64))
>>> loss.backward()
"""
from cgrad.nn import functional, init, utils
from cgrad.nn.activation import ELU, GELU, LeakyReLU, LogSoftmax, ReLU, Sigmoid, SiLU, Softmax, Softplus, Tanh
from cgrad.nn.container import ModuleDict, ModuleList, Sequential
from cgrad.nn.dropout import Dropout
from cgrad.nn.embedding import Embedding
from cgrad.nn.linear import Flatten, Identity, Linear, Unflatten
from cgrad.nn.loss import (
    BCELoss, BCEWithLogitsLoss, CrossEntropyLoss, HuberLoss, KLDivLoss, L1Loss, MSELoss, NLLLoss, SmoothL1Loss,
)
from cgrad.nn.module import Module
from cgrad.nn.norm import LayerNorm, RMSNorm
from cgrad.nn.parameter import Parameter

__all__ = [
    "BCELoss", "BCEWithLogitsLoss", "CrossEntropyLoss", "Dropout", "ELU", "Embedding", "Flatten", "GELU", "HuberLoss", "Identity", "KLDivLoss", "L1Loss",
    "LayerNorm", "LeakyReLU", "Linear", "LogSoftmax", "MSELoss", "Module", "ModuleDict", "ModuleList", "NLLLoss", "Parameter", "RMSNorm", "ReLU", "Sequential",
    "SiLU", "Sigmoid", "SmoothL1Loss", "Softmax", "Softplus", "Tanh", "Unflatten", "functional", "init", "utils",
]
