"""torchvision's classification, segmentation and detection models through cxxinductor.optimize: right beside eager, compiled between control
flow. Here with few layers each; whole on a GPU (`make gpu-test`), or here under TORCHVISION_ZOO=all or a list of names."""

from __future__ import annotations

import os
from functools import partial
from typing import Any, Callable

import pytest
import torch
from test_torchscript import leaves, regions
from torch import Tensor, nn

import cxxinductor
from cxxinductor import torchscript

models = pytest.importorskip("torchvision", reason="torchvision is not installed").models
detection, segmentation = models.detection, models.segmentation


@pytest.fixture(autouse=True)
def without_tf32():
    """Convolutions on a GPU round to ten bits otherwise, and their algorithms differ in the third digit."""
    with torch.backends.cudnn.flags(enabled=True, allow_tf32=False):
        yield


def check_equal(found: Any, expected: Any) -> None:
    assert len(leaves(found)) == len(leaves(expected))
    for a, b in zip(leaves(found), leaves(expected)):
        if isinstance(b, Tensor) and b.is_floating_point():
            torch.testing.assert_close(a, b, rtol=1e-3, atol=1e-3 * float(b.abs().max()) + 1e-6 if b.numel() else 0)
        else:
            assert torch.equal(a, b) if isinstance(b, Tensor) else a == b


def check_detections(found: list[dict[str, Tensor]], expected: list[dict[str, Tensor]]) -> None:
    """In any order, all but a few: where scores lie closer than rounding, it decides which of two boxes suppresses the other. An input changed
    by 1e-6 moves eager's own boxes of ssdlite by 90 pixels."""
    assert len(found) == len(expected)
    for ours, theirs in zip(found, expected):
        assert ours.keys() == theirs.keys()
        if len(ours["boxes"]) == 0 or len(theirs["boxes"]) == 0:
            assert len(ours["boxes"]) == len(theirs["boxes"])
            continue
        apart = (ours["boxes"][:, None] - theirs["boxes"]).abs().amax(-1) + 1e9 * (ours["labels"][:, None] != theirs["labels"])
        distance, partner = apart.min(1)
        there = distance <= 1e-3 * float(theirs["boxes"].abs().max())
        assert there.double().mean() >= 0.95 and 0.95 <= len(ours["boxes"]) / len(theirs["boxes"]) <= 1 / 0.95
        check_equal({key: value[there] for key, value in ours.items()}, {key: value[partner[there]] for key, value in theirs.items()})


def spread(module: nn.Module) -> nn.Module:
    """Batch norms as after training, so that no layer's output is a constant."""
    for part in module.modules():
        if isinstance(part, nn.BatchNorm2d):
            part.running_mean.normal_(0, 0.1)
            part.running_var.uniform_(0.5, 1.5)
    return module.eval()


def varied(module: nn.Module) -> nn.Module:
    """Weights so large that outputs vary across an image: those of ssdlite hardly do as it is made, and all its scores are ties."""
    for part in module.modules():
        if isinstance(part, nn.Conv2d):
            nn.init.kaiming_normal_(part.weight)
    return module


def efficientnet() -> nn.Module:
    block = models.efficientnet.MBConvConfig
    settings = [block(1, 3, 1, 16, 16, 1, 1, 1), block(4, 3, 2, 16, 24, 1, 1, 1), models.efficientnet.FusedMBConvConfig(4, 3, 1, 24, 24, 1)]
    return models.EfficientNet(settings, dropout=0.2, last_channel=64, num_classes=10)


def mobilenet_v3() -> nn.Module:
    block = models.mobilenetv3.InvertedResidualConfig
    settings = [block(16, 3, 16, 16, True, "RE", 2, 1, 1), block(16, 5, 32, 24, True, "HS", 1, 1, 1)]
    return models.MobileNetV3(settings, last_channel=64, num_classes=10)


def backbone() -> nn.Module:
    network = models.ResNet(models.resnet.Bottleneck, [1, 1, 1, 1], num_classes=10, replace_stride_with_dilation=[False, True, True])
    return models._utils.IntermediateLayerGetter(network, {"layer4": "out"})


def faster_rcnn() -> nn.Module:
    body = nn.Sequential(nn.Conv2d(3, 8, 3, stride=4, padding=1), nn.ReLU(), nn.Conv2d(8, 16, 3, stride=2, padding=1), nn.ReLU())
    body.out_channels = 16
    anchors = detection.anchor_utils.AnchorGenerator(sizes=((16, 32),), aspect_ratios=((0.5, 1.0, 2.0),))
    return detection.FasterRCNN(
        body, 5, min_size=64, max_size=96, rpn_anchor_generator=anchors, rpn_post_nms_top_n_test=20, box_score_thresh=0.0, box_detections_per_img=10
    )


def small_swin() -> nn.Module:
    return models.SwinTransformer([4, 4], 16, [2, 2], [2, 2], [4, 4], num_classes=10)


# (model, regions): few layers of each family. Detectors read elements between their parts.
SMALL: dict[str, tuple[Callable[[], nn.Module], int]] = {
    "resnet": (partial(models.ResNet, models.resnet.BasicBlock, [1, 1, 1, 1], num_classes=10), 1),
    "densenet": (partial(models.DenseNet, 8, (2, 2), 16, num_classes=10), 1),
    "mobilenet_v2": (partial(models.MobileNetV2, 10, inverted_residual_setting=[[1, 16, 1, 1], [6, 24, 2, 2]]), 1),
    "mobilenet_v3": (mobilenet_v3, 1),
    "shufflenet": (partial(models.ShuffleNetV2, [1, 2, 1], [24, 24, 48, 96, 64], num_classes=10), 1),
    "efficientnet": (efficientnet, 1),
    "regnet": (partial(models.RegNet, models.regnet.BlockParams.from_init_params(4, 24, 24.0, 2.5, 8, se_ratio=0.25), num_classes=10), 1),
    "convnext": (partial(models.ConvNeXt, [models.convnext.CNBlockConfig(16, 32, 1), models.convnext.CNBlockConfig(32, None, 1)], num_classes=10), 1),
    "vit": (partial(models.VisionTransformer, 32, 16, 2, 2, 16, 32, num_classes=10), 1),
    "swin": (small_swin, 1),
    "fcn": (lambda: segmentation.FCN(backbone(), segmentation.fcn.FCNHead(2048, 10)), 1),
    "faster_rcnn": (faster_rcnn, 50),
}


def reference(scripted: torch.jit.ScriptModule, given: tuple[Any, ...]) -> Any:
    """Of the module as it stands: TorchScript would profile it and compile fused kernels of its own, for longer than we do."""
    with torch.inference_mode(), torch.jit.optimized_execution(False):
        return scripted(*given)


def arguments(is_detector: bool, size: int, device: str) -> tuple[Any, ...]:
    if is_detector:
        return ([torch.rand(3, size, size + 16, device=device), torch.rand(3, size + 8, size, device=device)],)
    return (torch.rand(2, 3, size, size, device=device),)


@pytest.mark.parametrize("name", SMALL)
def test_small_models(name: str, device: str) -> None:
    make, most_regions = SMALL[name]
    scripted = torch.jit.script(spread(make()).to(device))
    optimized = cxxinductor.optimize(scripted)
    given = arguments(name == "faster_rcnn", 32, device)
    expected = reference(scripted, given)
    with torch.inference_mode():
        for _ in range(2):
            check_equal(optimized(*given), expected)
    text = torchscript.describe(optimized)
    assert regions(optimized) <= most_regions, text
    if most_regions == 1:
        counters = cxxinductor.counters()
        assert counters["eager_fallback"] == counters["aten_fallback"] == 0 and counters["kernels"] > 0, text


def whole_zoo() -> list[str]:
    return [name for module in (models, segmentation, detection) for name in models.list_models(module=module)]


def make_whole(name: str, size: int) -> nn.Module:
    options: dict[str, Any] = {}
    if name.startswith("vit_"):
        options = {"image_size": size}
    if name in models.list_models(module=segmentation) or name in models.list_models(module=detection):
        options = {"weights_backbone": None}
    if name.startswith(("fasterrcnn", "maskrcnn", "keypointrcnn", "retinanet", "fcos")):
        options |= {"min_size": size, "max_size": 2 * size}
    return models.get_model(name, weights=None, **options)


WANTED = os.environ.get("TORCHVISION_ZOO", "")
HERE = whole_zoo() if WANTED == "all" else [name for name in WANTED.split(",") if name]


@pytest.mark.parametrize("name", [pytest.param(name, marks=[] if name in HERE else [pytest.mark.gpu]) for name in whole_zoo()])
def test_whole_models(name: str, device: str) -> None:
    is_detector = name in models.list_models(module=detection)
    has_ties = name.startswith("ssdlite")
    size = 224 if name.startswith("maxvit") else 112 if name == "vit_h_14" else 96
    with torch.device(device):  # weights are drawn there: a GPU takes no time for what a core takes half a minute for
        module = spread(make_whole(name, size)).to(device)
        module = varied(module) if has_ties else module
    scripted = torch.jit.script(module)
    optimized = cxxinductor.optimize(scripted)
    given = arguments(is_detector, size, device)
    expected = reference(scripted, given)
    with torch.inference_mode():
        for _ in range(2):
            found = optimized(*given)
            if has_ties:
                losses, detections = found
                check_equal(losses, expected[0])
                check_detections(detections, expected[1])
            else:
                check_equal(found, expected)
    text = torchscript.describe(optimized)
    assert regions(optimized) <= (70 if is_detector else 1), text
    if not is_detector:
        counters = cxxinductor.counters()
        assert counters["eager_fallback"] == counters["aten_fallback"] == 0 and counters["kernels"] > 0, text
        if name not in models.list_models(module=segmentation):
            traced = torch.jit.trace(module, given, check_trace=False)  # a scripted module would be returned as it is
            with torch.inference_mode():
                check_equal(cxxinductor.optimize(traced)(*given), reference(traced, given))
