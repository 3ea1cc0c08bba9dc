"""What a step of a random program may be: tables of templates, and functions for those that need more than a template says.

In a template, `{r}` is a floating value of any rank, `{r2}` one of rank two or more, `{e2}` one of rank two; `{same}` has the sizes of the first operand and
`{wide}` broadcasts to them; `{dim}` is a dimension of the first operand; `{mask}` are booleans that broadcast
to the first operand; `{index}` is a vector of places along {dim}, with repeats, `{index0}` along the first one, `{places}` the same in the sizes of the first operand;
`{row}` has as many elements as the last dimension. Values stay small where a step could let them grow: differences would drown.
"""

from __future__ import annotations

POINTWISE = """
torch.sin({r})
torch.tanh({r})
torch.sigmoid({r})
torch.relu({r})
-{r}
{r}.abs()
F.gelu({r})
F.gelu({r}, approximate='tanh')
F.silu({r})
F.softplus({r})
F.elu({r})
F.hardswish({r})
F.leaky_relu({r}, 0.1)
F.hardtanh({r})
{r}.clamp(-1, 1).square()
torch.exp(-{r}.abs())
torch.sqrt({r}.abs() + 1)
torch.rsqrt({r}.square() + 1)
torch.log1p({r}.abs())
torch.erf({r})
torch.expm1({r}.clamp(-2, 1))
1 / ({r}.abs() + 1)
{r}.clamp(-2, 2).pow(3)
{r} * 0.37
{r} + 2
1.5 - {r}
{r}.to(low) * 0.5
{r}.to(single) + 0.25
{r}.masked_fill({mask}, 0.5)
torch.where({mask}, {r}, 0.1)
{r1} * {r1}.shape[0] / 7
""".strip().splitlines()

JOINED = """
{r} + {wide}
{r} - {wide}
{r}.clamp(-8, 8) * {wide}.clamp(-8, 8)
torch.maximum({r}, {wide})
torch.minimum({r}, {wide})
{r} / ({wide}.abs() + 1)
torch.where({mask}, {r}, {wide})
torch.add({r}, {wide}, alpha=0.3)
torch.addcmul({r}, {same}.tanh(), {same}, value=0.5)
torch.lerp({r}, {same}, 0.3)
torch.addcdiv({r}, {same}, {same}.abs() + 1)
{r}.atan2({wide}.abs() + 1)
torch.hypot({r}, {wide}.abs() + 1)
{r} + {row}
F.mse_loss({r}, {same}, reduction='none')
F.smooth_l1_loss({r}, {same})
""".strip().splitlines()

ROWS = """
torch.softmax({r1}, {dim})
torch.softmax({r1}, -1)
torch.log_softmax({r1}, {dim})
torch.logsumexp({r1}, {dim}, keepdim=True)
F.layer_norm({r1}, {r1}.shape[-1:])
F.layer_norm({r1}, {r1}.shape[-1:], {row}, {row})
F.layer_norm({r2}, {r2}.shape[-2:])
F.rms_norm({r1}, {r1}.shape[-1:], {row})
F.normalize({r1}, dim={dim} % {r1}.dim())
{r1} - {r1}.mean({dim}, keepdim=True)
{r1} / ({r1}.norm(dim={dim} % {r1}.dim(), keepdim=True) + 1)
{r1} - {r1}.amax({dim}, keepdim=True)
{r2} - {r2}.sum((0, -1), keepdim=True) * 0.1
{r1}.cumsum({dim}) * 0.3
torch.where({mask}, {r1}, -9).softmax(-1)
F.batch_norm({r2}, None, None, training=True)
F.batch_norm({r3}, None, None, training=True)
F.group_norm({r3}, 1)
F.instance_norm({r3})
""".strip().splitlines()

REDUCTIONS = """
{r}.sum()
{r1}.sum({dim})
{r1}.mean({dim})
{r1}.amax({dim})
{r1}.amin({dim}, keepdim=True)
{r1}.var({dim})
{r1}.std({dim}, correction=0)
{r1}.tanh().prod({dim})
{r1}.norm(dim={dim} % {r1}.dim())
{r2}.mean((0, -1))
{r2}.sum((-2, -1))
torch.logsumexp({r1}, {dim})
{r1}.square().mean().sqrt() + {r1}
""".strip().splitlines()

VIEWS = """
{r2}.transpose(0, -1)
{r2}.transpose(-2, -1)
{e3}.permute(2, 0, 1)
{r2}.flatten(0, 1)
{r2}.flatten(-2)
{r}.reshape(-1)
{e2}.t().reshape({e2}.shape)
{r1}.unflatten({dim}, (2, -1))
{r1}.unflatten({dim}, (-1, 3))
{r1}[1:]
{r1}[..., :-1]
{r1}[..., ::2]
{r1}[1::3]
{r1}.narrow({dim}, 1, 2)
{r1}[-1]
{r2}[:, 0]
{r1}[..., None]
{r1}.unsqueeze({dim})
{r1}[None].expand(3, *{r1}.shape)
{r1}.flip({dim})
{r1}.roll(1, {dim})
{r1}.repeat(2, *[1] * ({r1}.dim() - 1))
{r1}.repeat_interleave(2, {dim})
{r1}.unfold({dim}, 2, 1)
{r2}.diagonal(0, 0, -1)
{r2}.tril()
{r2}.triu(1)
{r}.clone()
{r}.contiguous()
{r}.detach() + {r}
{r1}[torch.arange({r1}.shape[0] - 1, -1, -1, device={r1}.device)]
""".strip().splitlines()

PARTS = """
torch.cat([{r1}, {same}], {dim})
torch.cat([{r1}[1:], {r1}[:1]], 0)
torch.cat([{r1}, {same} * 2, {r1}.flip(0)], -1)
torch.stack([{r}, {same}], 0)
torch.stack([{r1}, {same}, {r1}], -1)
F.pad({r1}, (1, 2))
F.pad({r1}, (2, 0), value=0.5)
F.pad({r1}, (-1, 1))
F.pad({r2}, (1, 0, 0, 2))
F.pad({r2}, (1, 1), mode='reflect')
F.pad({r3}, (1, 1), mode='replicate')
torch.cat(torch.chunk({r1}, 2, {dim})[::-1], {dim})
""".strip().splitlines()

# With two results.
SPLITS = """
torch.split({r1}, [1, {r1}.shape[{dim}] - 1], {dim})
{r2}.aminmax(dim={dim})
torch.var_mean({r1}, {dim})
torch.chunk({r1}, 2, -1)
{r1}.unflatten(-1, (2, -1)).unbind(-2)
{r1}.max({dim})[0], {r1}.min({dim})[0]
""".strip().splitlines()

# The scatters of views get dense tensors: eager keeps the gaps between the rows of others, in memory nobody can tell from a copy.
INDEXING = """
{r1}.index_select({dim}, {index})
{r1}[{index0}]
{r2}[:, {index1}]
{r2}[{index0}, {index1}]
{r1}.gather({dim}, {places})
torch.take_along_dim({r1}, {places}, {dim})
F.embedding({index0}, {e2})
F.embedding({index0} % 3, {e2}) * 2
{r1}.index_add({dim}, {index}, {r1}.index_select({dim}, {index}))
{r1}.scatter_add({dim}, {places}, {same})
{r1}.scatter({dim}, {places}, 0.5)
{r1}.scatter_reduce({dim}, {places}, {same}, 'sum', include_self=False)
{r1}.index_fill({dim}, {index}, 0.25)
{r1}.index_put(({index0},), torch.full((), 0.5, dtype={r1}.dtype, device={r1}.device))
{r1}.index_put(({index0},), {r1}[{index0}] * 0.1, accumulate=True)
torch.ops.aten.index_put({r2}, [None, {index1}], {r2}[:, {index1}] * 0.1, True)
torch.slice_scatter({r1}.contiguous(), {r1}[1:] * 2, 0, 1)
torch.select_scatter({r1}.contiguous(), {r1}.select({dim}, 0) * 2, {dim}, -1)
torch.diagonal_scatter({r2}.contiguous(), {r2}.diagonal(0, 0, -1) * 2, 0, 0, -1)
F.cross_entropy({e2}, {classes})
F.nll_loss({e2}.log_softmax(1), {e2}.detach().argmin(1) * 0 + 1)
torch.zeros_like({r1}).index_copy(0, torch.arange({r1}.shape[0], device={r1}.device).flip(0), {r1})
torch.topk({r1}, 2, {dim})[0]
torch.sort({r1}, {dim})[0]
""".strip().splitlines()

PRODUCTS = """
{r2} @ {weight}
F.linear({r2}, {weight}.t(), {bias})
torch.addmm({bias}, {r2}.flatten(0, -2), {weight})
F.relu({r2} @ {weight} + {bias})
{r2} @ {r2}.transpose(-1, -2) * 0.2
torch.softmax({r2} @ {r2}.transpose(-1, -2), -1) @ {r2}
torch.bmm({e3}, {e3}.transpose(1, 2)) * 0.2
torch.einsum('...ij,...kj->...ik', {r2}, {r2} * 0.2)
F.scaled_dot_product_attention({r3}, {r3} * 0.5, {r3})
{e1} @ {e1}.flip(0).reshape(-1) * 0.2
F.conv1d({e3}, {filters1}, {bias4}, padding=1)
F.conv2d({e4}, {filters2}, {bias4}, padding=1)
F.conv2d({e4}, {filters2}, stride=2)
F.batch_norm(F.conv2d({e4}, {filters2}, padding=1), None, None, {bias4}, {bias4}, True).relu()
F.max_pool2d({e4}, 2)
F.avg_pool2d({e4}, 3, 1, 1)
F.max_pool1d({e3}, 3, 2, 1)
F.adaptive_avg_pool2d({e4}, 1)
F.interpolate({e4}, scale_factor=2)
F.interpolate({e4}, scale_factor=2.0, mode='bilinear')
""".strip().splitlines()

# Exact: what integers and comparisons of integers give is equal to eager's.
INTEGERS = """
{i} + 3
{i} * {i}
{i} // 3
{i} % 5 - 2
{i} - {i}.flip(0)
{i}.cumsum(0)
{i}.sum()
{i}.amax(0)
{i}.argmax(0)
({i} % 3 == 1)
({i} > 7).any(0)
({i} < 9).sum(0)
({i} & 6) ^ 1
{i} << 2
torch.where({i} > 5, {i}, -{i})
({i} % 7).to(single) * 0.5
F.one_hot({i} % 4, 4)
torch.arange({i}.shape[0], device={i}.device) + {i}
torch.bitwise_not({i}) >> 1
{i}.to(torch.int32) - 5
({i} % 11).to(torch.uint8)
torch.div({i}, 4, rounding_mode='trunc')
{i}.unique_consecutive().sum() * 0 + {i}
""".strip().splitlines()

# Statements: {t} is written to. Its companions begin with a t.
WRITES = """
{t}.add_({twide})
{t}.mul_(0.5)
{t}.clamp_(-1, 1)
{t}.tanh_()
{t}.copy_({twide})
{t}.zero_()
{t}.fill_(0.75)
{t1}[1:] += 1
{t1}[1:3] += {t1}.flip(0)[1:3].clone()
{t1}[..., ::2] *= 0.5
{t1}[..., 0] = 0.25
{t1}[-1].sub_(1)
{t1}.select({tdim}, 0).sigmoid_()
{t1}.narrow({tdim}, 1, 1).copy_({t1}.narrow({tdim}, 0, 1).clone())
{t2}.transpose(0, -1).mul_(1.5)
{t2}.transpose(0, -1)[1:].zero_()
{t2}[1:, :-1].add_({t2}[:-1, 1:].clone())
{t2}.diagonal().add_(1)
{t}.view(-1)[1:3] = 0.5
{t1}[{tindex0}] = 0.5
{t1}.index_put_(({tindex0},), {t1}[{tindex0}] * 0.1, accumulate=True)
{t1}.index_add_({tdim}, {tindex}, {t1}.index_select({tdim}, {tindex}) * 0.1)
{t1}.scatter_add_({tdim}, {tplaces}, {tsame}.clone())
{t1}.scatter_({tdim}, {tplaces}, 0.5)
{t1}.index_fill_({tdim}, {tindex}, 0.5)
{t}.masked_fill_({tmask}, 0.125)
{t1}.index_copy_(0, torch.arange({t1}.shape[0], device={t1}.device).flip(0), {t1}.clone())
{t2}[:, {tindex1}] = 0.1
{t1}[:, None].sub_(0.5)
{t}.add_(1).mul_({twide}.tanh())
{t}.detach().mul_(0.9)
{t1}[1:][:2].neg_()
{t1}.flatten()[1:].add_(1)
{t1}.unflatten({tdim}, (2, -1)).mul_(0.5)
{t2}.expand(2, *{t2}.shape)[0].mul_(0.5)
torch.add({t}, 1, out={t})
{t}.lerp_({tsame}, 0.25)
""".strip().splitlines()

# Sizes that are data, and back to known ones.
DATA = """
torch.masked_select({r}, {mask}).exp().sum() * 0.01 + {r}
torch.zeros_like({r}).masked_scatter({mask}.expand({r}.shape), torch.masked_select({r}, {mask}).tanh())
{r1}.index_select(0, {index0}).repeat_interleave({index0} % 3, 0).sum(0) * 0.1
{r1}[torch.where({index0} > 1)[0] % 1].sum(0) * 0.1
{r1}[({index0} % 2).nonzero().squeeze(1) % 1].softmax(-1).sum(0)
{r} * (({mask}.sum() % 5).item() * 0.1)
{r} + torch.arange(({mask}.sum() % 5).item(), device={r}.device).sum()
torch.masked_select({r}, {mask})[:0].sum() + {r}
{r} + torch.unique({index0}, return_counts=True)[1].sum()
{i}.unique(return_inverse=True)[1] + {i}
""".strip().splitlines()

RANDOM = """
F.dropout({r}, 0.3)
F.dropout({r} * 2, 0.5) + {r}
torch.rand_like({r}) * {r}
{r} + torch.randn_like({r})
{r} * (torch.rand({r}.shape, device={r}.device) < 0.7).to({r}.dtype)
{r} + torch.randint(0, 9, {r}.shape, device={r}.device) * 0.1
F.alpha_dropout({r}, 0.2)
{r} + torch.bernoulli(torch.full_like({r}, 0.25))
""".strip().splitlines()
