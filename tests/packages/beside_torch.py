"""Run a script of this folder on PyTorch itself, to record its numbers: ``beside_torch.py use_timm.py out.json``.

torchvision's wheel on PyPI is built for PyTorch with CUDA. Beside PyTorch for the CPU its kernels do not load, and its
Python part stops at the first that is missing; they are named here, so that packages can import torchvision.
"""

import runpy
import sys

import torch

library = torch.library.Library("torchvision", "DEF")
for name in ("nms", "qnms"):
    library.define(f"{name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
for name in ("roi_align", "_roi_align_backward", "ps_roi_align", "_ps_roi_align_backward", "roi_pool",
             "_roi_pool_backward", "ps_roi_pool", "_ps_roi_pool_backward", "deform_conv2d",
             "_deform_conv2d_backward"):  # fmt: skip
    library.define(f"{name}(Tensor input) -> Tensor")
sys.argv = sys.argv[1:]
sys.path[0] = sys.path[0] or "."
runpy.run_path(sys.argv[0], run_name="__main__")
