"""Programs for torch.export whose ops are of one family each; see exported_programs.py."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import nn
from torch.export import Dim

from exported_programs import Function, Program, batches, program

@program
def writes_through_views() -> Program:
    def function(x: torch.Tensor) -> torch.Tensor:
        y = x.clone()
        y[:, 1:3] = 0
        y.view(-1)[::4] += 1
        y.t()[0].relu_()
        y.masked_fill_(y > 1, 0.5)
        return y

    return Program(Function(function), (torch.randn(3, 6),), dynamic_shapes=(({0: Dim("b", min=2, max=64)},),), others=batches(5))


@program
def losses() -> Program:
    def function(x: torch.Tensor, target: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return (
            F.cross_entropy(x, target, label_smoothing=0.1),
            F.binary_cross_entropy_with_logits(x, y.sigmoid(), reduction="sum"),
            F.kl_div(x.log_softmax(-1), y.softmax(-1), reduction="batchmean"),
            F.smooth_l1_loss(x, y),
            F.huber_loss(x, y, reduction="none"),
            F.soft_margin_loss(x, y.sign()),
            F.multi_margin_loss(x, target),
            F.mse_loss(x, y),
            F.triplet_margin_loss(x, y, x + y),
            F.nll_loss(x.log_softmax(-1), target, ignore_index=2),
            F.cosine_embedding_loss(x, y, torch.ones(3)),
        )

    return Program(Function(function), (torch.randn(3, 6), torch.tensor([1, 2, 5]), torch.randn(3, 6)))


@program
def paddings_and_resizes() -> Program:
    def function(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return (
            F.pad(x, (1, 2, 2, 1), mode="reflect"),
            F.pad(x, (1, 2, 2, 1), mode="replicate"),
            F.pad(x, (1, 2, 2, 1), mode="circular"),
            F.pad(x, (1, -1), value=2.0),
            F.interpolate(x, scale_factor=2, mode="nearest"),
            F.interpolate(x, (7, 5), mode="bilinear", align_corners=False),
            F.interpolate(x, (7, 5), mode="bicubic", align_corners=True),
            F.pixel_shuffle(x.repeat(1, 4, 1, 1), 2),
            F.grid_sample(x, torch.zeros(2, 4, 4, 2), align_corners=False),
            F.unfold(x, 3, padding=1),
            F.adaptive_avg_pool2d(x, (3, 2)),
            F.adaptive_max_pool2d(x, 2),
            F.avg_pool2d(x, 3, 2, 1, count_include_pad=False),
            F.max_pool2d(x, 3, 2, 1, ceil_mode=True),
            F.lp_pool2d(x, 2, 2),
        )

    return Program(Function(function), (torch.randn(2, 3, 6, 8),))


@program
def norms() -> Program:
    layers = [nn.LayerNorm(6), nn.GroupNorm(2, 4), nn.BatchNorm1d(4), nn.InstanceNorm1d(4, affine=True), nn.RMSNorm(6), nn.LocalResponseNorm(2)]

    def function(*given: Any) -> tuple[torch.Tensor, ...]:
        *layers, x = given
        return (*(layer(x) for layer in layers), F.normalize(x, dim=1), x.renorm(2, 0, 1.0), torch.linalg.vector_norm(x, 3, dim=-1))

    return Program(Function(function, *layers), (torch.randn(2, 4, 6),))


@program
def activations() -> Program:
    names = "relu relu6 elu selu celu gelu silu mish softplus softsign tanhshrink hardtanh hardswish hardsigmoid leaky_relu logsigmoid softmin glu".split()

    def function(prelu: nn.Module, x: torch.Tensor) -> list[torch.Tensor]:
        return [getattr(F, name)(x) for name in names] + [prelu(x), F.gelu(x, approximate="tanh"), F.threshold(x, 0.1, 20), F.rrelu(x)]

    return Program(Function(function, nn.PReLU(6)), (torch.randn(3, 6),))


@program
def recurrent() -> Program:
    class Recurrent(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.lstm, self.gru = nn.LSTM(6, 4, 2, batch_first=True, bidirectional=True), nn.GRU(8, 4)

        def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
            y, (h, _) = self.lstm(x)
            return self.gru(y)[0], h

    return Program(Recurrent(), (torch.randn(2, 5, 6),))


@program
def attention() -> Program:
    def function(layer: nn.Module, block: nn.Module, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        return (*layer(x, x, x, need_weights=True, average_attn_weights=False), block(x, src_mask=nn.Transformer.generate_square_subsequent_mask(5)))

    layers = [nn.MultiheadAttention(16, 2, batch_first=True), nn.TransformerEncoderLayer(16, 2, 32, batch_first=True, norm_first=True)]
    return Program(Function(function, *layers), (torch.randn(2, 5, 16),))


@program
def indexing() -> Program:
    def function(x: torch.Tensor, i: torch.Tensor) -> tuple[torch.Tensor, ...]:
        y = x.clone()
        y[i, 1:3] = 1.0
        y.index_add_(0, i, x[:2])
        return (
            x[i],
            x[:, i],
            x[..., None, ::2],
            y,
            x.gather(1, i[None].expand(3, 2)),
            x.scatter_reduce(1, i[None].expand(3, 2), x[:, :2], "amax"),
            torch.take_along_dim(x, x.argsort(-1), -1),
            x.index_select(1, i),
            F.one_hot(i, 4),
            torch.bincount(i, minlength=4),
            torch.einsum("ij,kj->ik", x, x),
            x.tril() + x.triu(1),
            x.roll(1, 0).flip(1).rot90(),
            x.cumsum(1).diff(dim=1),
            torch.searchsorted(x[0].sort()[0], x[1]),
            *x.topk(2),
            *x.sort(stable=True),
            *x.unbind(0),
            *torch.meshgrid(x[0], x[1], indexing="ij"),
        )

    return Program(Function(function), (torch.randn(3, 6), torch.tensor([0, 2])))


@program
def dropout_training() -> Program:
    return Program(nn.Sequential(nn.Linear(6, 6), nn.Dropout(0.0), nn.ReLU()), (torch.randn(3, 6),), train=True)


@program
def linear_algebra() -> Program:
    def function(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        a = x @ x.t() + 3 * torch.eye(3)
        return torch.linalg.inv(a), torch.linalg.cholesky(a), torch.linalg.solve(a, x), torch.linalg.det(a), torch.trace(a), torch.logdet(a)

    return Program(Function(function), (torch.randn(3, 6),))
