"""Convolution, pooling, padding and resizing said the same way in both libraries: results, nodes, strides, errors."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pytest
import torch

import rushlight

# x.detach(): where sizes are equal but a scale factor is not 1, PyTorch's gradient is not that of its result.
# x is (2, 2, 7, 7), row (2, 2, 7), cube (2, 2, 4, 4, 4); odd has NaN, infinities and -inf in it, ties few values.
AGREE = """
F.max_pool2d(odd, 2)
F.max_pool2d(odd, 3, 2, 1, return_indices=True)
F.max_pool2d(odd, 3, 2, 1, 2, True, True)
F.max_pool2d(odd[0], 2, return_indices=True)
F.max_pool2d(ties, 3, 1, 1, return_indices=True)
F.max_pool1d(row, 3, 2, 1, return_indices=True)
F.max_pool3d(cube, 2, 1, ceil_mode=True, return_indices=True)
F.max_pool2d(bytes_.long(), 2)
F.avg_pool2d(x, 3, 2, 1)
F.avg_pool2d(x, 3, 2, 1, True, False)
F.avg_pool2d(x, (2, 3), divisor_override=4)
F.avg_pool2d(bytes_.long() - 4, 2)
F.avg_pool1d(row, 3, 1, 1)
F.avg_pool3d(cube, 2, 2, 1, count_include_pad=False)
F.lp_pool2d(x, 3, 2)
F.lp_pool1d(row, 2.0, 3, 2, True)
F.adaptive_avg_pool2d(x, (3, 2))
F.adaptive_avg_pool2d(x, 1)
F.adaptive_avg_pool1d(row, 4)
F.adaptive_avg_pool3d(cube, (2, None, 3))
F.adaptive_max_pool2d(ties, (2, 3), return_indices=True)
F.adaptive_max_pool1d(row, 4)
torch.adaptive_max_pool1d(row, 4)
F.adaptive_max_pool3d(cube, 2)
F.max_unpool2d(*F.max_pool2d(x, 2, return_indices=True), 2, output_size=(7, 7))
F.max_unpool1d(*F.max_pool1d(row, 2, return_indices=True), 2, output_size=(7,))
F.fractional_max_pool2d(x, 2, output_size=3, return_indices=True)
F.fractional_max_pool3d(cube, 2, output_ratio=0.6)
F.conv2d(x, w, b)
F.conv2d(x, w, b, 2, 1, 2)
F.conv2d(x, w, padding="same")
F.conv2d(x, w[:, :, :2], padding="same", dilation=(1, 2))
F.conv2d(x[0], w)
F.conv2d(x, w[:, :1], groups=2)
F.conv2d(x, w[:2, :1], b[:2], groups=2, padding=1)
F.conv2d(x, w[:2, :1], groups=2, stride=2)
F.conv2d(x.half(), w.half())
F.conv2d(x.bfloat16(), w.bfloat16(), b.bfloat16())
F.conv2d(bytes_.long(), bytes_.long()[:, :, :2, :2])
F.conv2d(torch.complex(x, 2 * x), torch.complex(w, -w)).abs()
F.conv1d(row, w[:, :, 0], b)
F.conv3d(cube, w[:, :, None])
F.conv_transpose2d(x, w.transpose(0, 1), b, 2, 1, 1)
F.conv_transpose2d(x, w.transpose(0, 1), dilation=3, output_padding=2)
F.conv_transpose2d(x, w[:2], groups=2, stride=2)
F.conv_transpose1d(row[0], w[:2, :, 0])
F.conv_transpose3d(cube, w[:2, :, None])
torch.conv_tbc(row.permute(2, 0, 1).contiguous(), w[:, :, 0].permute(2, 1, 0).contiguous(), b, 1)
torch.convolution(x, w, b, [1, 1], [0, 0], [1, 1], False, [0, 0], 1)
F.unfold(x, (2, 3), 2, 1, 2)
F.unfold(x[0], 3)
F.fold(F.unfold(x, 3, stride=2, padding=1), x.shape[2:], 3, stride=2, padding=1)
F.fold(F.unfold(x[0], 2), x.shape[2:], 2)
F.pad(x, (1, 2, 0, 1), "reflect")
F.pad(x, (-1, 2, 3, -1), "replicate")
F.pad(x, (1, -2, 3, 1), "circular")
F.pad(x, (1, -2, 3, 1), "constant", 2.5)
F.pad(row[0], (2, 3), "reflect")
F.pad(bytes_, (2, 1), value=7)
F.pad(x, (0, 0))
F.pixel_shuffle(x.repeat(1, 4, 1, 1), 2)
F.pixel_shuffle(x, 1)
F.pixel_unshuffle(x[..., :6, :6], 2)
F.channel_shuffle(x.repeat(1, 3, 1, 1), 3)
F.interpolate(x, scale_factor=2)
F.interpolate(x, size=(5, 11))
F.interpolate(x, scale_factor=1.7, mode="nearest-exact")
F.interpolate(x, scale_factor=(1.3, 0.6), mode="bilinear")
F.interpolate(x, scale_factor=(1.3, 0.6), mode="bilinear", recompute_scale_factor=True)
F.interpolate(x, size=(9, 3), mode="bilinear", align_corners=True)
F.interpolate(x, size=(1, 1), mode="bilinear", align_corners=True)
F.interpolate(x, scale_factor=1.05, mode="bilinear")
F.interpolate(x.detach(), scale_factor=1.05, mode="bicubic")
F.interpolate(row.detach(), scale_factor=1.05)
F.interpolate(x, size=(9, 3), mode="bicubic")
F.interpolate(x, size=(9, 3), mode="bicubic", align_corners=True)
F.interpolate(x, size=(3, 9), mode="bilinear", antialias=True)
F.interpolate(x, size=(3, 2), mode="bicubic", antialias=True)
F.interpolate(x, size=(3, 2), mode="lanczos", antialias=True)
F.interpolate(x, size=(3, 2), mode="area")
F.interpolate(row, size=4, mode="linear")
F.interpolate(cube, size=(2, 3, 5), mode="trilinear")
F.interpolate(bytes_, scale_factor=2, mode="bilinear")
F.interpolate(bytes_, scale_factor=2, mode="bicubic")
F.interpolate(bytes_, scale_factor=2)
F.interpolate(x.double(), size=20, mode="bilinear")
F.upsample_nearest(x, scale_factor=2)
F.upsample_bilinear(x, scale_factor=2)
F.upsample(x, size=3)
F.grid_sample(x, grid)
F.grid_sample(x, grid * 3, "nearest", "border", False)
F.grid_sample(x, grid * 3, "bilinear", "reflection", True)
F.grid_sample(x, grid * 3, "bilinear", "reflection", False)
F.grid_sample(x, grid * 3, "bicubic", "border", True)
F.grid_sample(x, grid * 3, "bicubic", "zeros", False)
F.grid_sample(cube, grid3, "bilinear", "border", False)
F.affine_grid(theta, (2, 3, 4, 5), align_corners=False)
F.affine_grid(theta, (2, 3, 4, 1), align_corners=True)
nn.Upsample(scale_factor=2, mode="bilinear")(x)
nn.Conv2d(2, 4, 3, padding=1, padding_mode="circular")
nn.Conv2d(2, 4, (3, 2), 2, "valid", 2, 2, False)
nn.ConvTranspose3d(2, 4, 3, 2, 1, 1)
nn.LazyConv1d(4, 3)
nn.AvgPool1d(3)
nn.MaxUnpool2d((2, 3))
nn.FractionalMaxPool2d(2, output_ratio=0.5)
nn.ZeroPad2d((1, 2, 3, 4))
nn.Upsample((3, 4))
"""

# What is refused, and with what words; r is randn. A few that PyTorch lets pass are among them.
REFUSED = """
F.conv2d(r(1,3,8,8), r(4,2,3,3))
F.conv2d(r(1,3,2,2), r(4,3,3,3))
F.conv2d(r(3,8), r(4,3,3,3))
F.conv2d(r(1,3,8,8), r(4,3,3))
F.conv1d(r(8), r(4,3,3))
F.conv1d(r(1,3,8), r(4,2,3))
F.conv3d(r(1,3,8), r(4,2,3,3,3))
F.conv2d(r(1,3,8,8), r(4,3,3,3), r(3))
F.conv2d(r(1,3,8,8), r(4,3,3,3), r(4,1))
F.conv2d(r(1,3,8,8), r(4,3,3,3), stride=0)
F.conv2d(r(1,3,8,8), r(4,3,3,3), stride=-1)
F.conv2d(r(1,3,8,8), r(4,3,3,3), padding=-1)
F.conv2d(r(1,3,8,8), r(4,3,3,3), dilation=0)
F.conv2d(r(1,3,8,8), r(4,3,3,3), groups=0)
F.conv2d(r(1,4,8,8), r(4,2,3,3), groups=3)
F.conv2d(r(1,4,8,8), r(3,2,3,3), groups=2)
F.conv2d(r(1,3,8,8), r(4,3,3,3), stride=(1,2,3))
F.conv2d(r(1,3,8,8), r(4,3,3,3), padding=(1,2,3))
F.conv2d(r(1,3,8,8), r(4,3,3,3), dilation=(1,2,3))
F.conv2d(r(1,3,8,8), r(4,3,3,3), padding='same', stride=2)
F.conv2d(r(1,3,8,8), r(4,3,3,3), padding='foo')
F.conv2d(r(1,3,8,8), r(4,3,3,3).double())
F.conv2d(r(1,3,8,8), r(4,3,3,3), r(4).double())
F.conv2d(r(1,3,8,8).long(), r(4,3,3,3))
F.conv2d(r(1,3,8,8).long(), r(4,3,3,3).long())
F.conv2d(r(1,3,8,8), r(0,3,3,3))
F.conv2d(r(0,3,8,8), r(4,3,3,3)).shape
F.conv2d(r(1,0,8,8), r(4,0,3,3)).shape
F.conv2d(r(1,3,0,8), r(4,3,3,3)).shape
F.conv2d(r(1,3,8,8), r(4,3,0,3)).shape
F.conv_transpose2d(r(1,3,8,8), r(2,4,3,3))
F.conv_transpose2d(r(1,3,8,8), r(3,4,3,3), output_padding=1)
F.conv_transpose2d(r(1,3,8,8), r(3,4,3,3), stride=2, output_padding=2)
F.conv_transpose2d(r(1,3,8,8), r(3,4,3,3), output_padding=-1)
F.conv_transpose2d(r(1,3,8,8), r(3,4,3,3), r(3))
F.conv_transpose2d(r(1,3,1,1), r(3,4,3,3), padding=2)
F.conv_transpose2d(r(1,3,8,8), r(3,4,3,3), groups=2)
F.conv_transpose2d(r(1,3), r(3,4,3,3))
F.conv_transpose1d(r(1,3,8), r(3,4,3), padding='same')
nn.Conv2d(3,4,3,groups=2)
nn.Conv2d(4,3,3,groups=2)
nn.Conv2d(4,3,3,groups=0)
nn.Conv2d(4,3,3,padding='same',stride=2)
nn.ConvTranspose2d(4,4,3,padding_mode='reflect')
nn.Conv2d(0,4,3)
nn.Conv2d(4,4,0)
nn.Conv2d(-1,4,3)
nn.Conv2d(4,4,(3,3,3))
nn.Conv2d(4,4,3)(r(1,3,8,8))
nn.Conv2d(4,4,3)(r(4,8))
nn.Conv1d(4,4,3)(r(4,8,8,8))
nn.ConvTranspose2d(3,4,3,stride=2)(r(1,3,8,8),output_size=(20,20))
nn.ConvTranspose2d(3,4,3,stride=2)(r(1,3,8,8),output_size=(20,))
nn.ConvTranspose2d(3,4,3,stride=2)(r(1,3,8,8),output_size=(18,18)).shape
nn.LazyConv2d(4,3)(r(1,3))
nn.Conv2d(3,4,3,padding=5,padding_mode='reflect')(r(1,3,4,4))
F.max_pool2d(r(1,3,2,2), 3)
F.max_pool2d(r(3,8), 3)
F.max_pool2d(r(8), 3)
F.max_pool2d(r(1,3,8,8), 3, padding=2)
F.max_pool2d(r(1,3,8,8), 3, stride=0)
F.max_pool2d(r(1,3,8,8), 3, padding=-1)
F.max_pool2d(r(1,3,8,8), 3, dilation=0)
F.max_pool2d(r(1,3,8,8), 0)
F.max_pool2d(r(1,3,8,8), 0, 1)
F.max_pool2d(r(1,3,8,8), (1,2,3))
F.max_pool2d(r(1,3,8,8), 2, stride=(1,2,3))
F.max_pool2d(r(1,3,8,8), 2, padding=(1,2,3))
F.max_pool2d(r(1,3,8,8), 2, dilation=(1,2,3))
F.max_pool2d(r(1,0,8,8), 2)
F.max_pool2d(r(0,3,8,8), 2).shape
F.max_pool2d(r(1,3,0,8), 2)
F.max_pool2d(r(1,3,8,8).long(), 2).dtype
F.max_pool2d(r(1,3,8,8).bool(), 2).dtype
F.max_pool2d(r(1,3,8,8).to(torch.complex64), 2).dtype
F.max_pool1d(r(8), 3)
F.max_pool1d(r(1,3,2), 3)
F.max_pool1d(r(1,3,8), 3, padding=2)
F.max_pool1d(r(1,3,8), 3, stride=0)
F.max_pool1d(r(1,3,8), 3, padding=-1)
F.max_pool1d(r(1,3,8), 0)
F.max_pool1d(r(1,3,8), 2, dilation=0)
F.max_pool1d(r(1,3,8), (2,2))
F.max_pool1d(r(1,1,3,2),3)
F.max_pool3d(r(1,3,8,8), 2).shape
F.max_pool3d(r(3,8,8), 2)
F.max_pool3d(r(1,3,2,2,2), 3)
F.max_pool3d(r(1,3,8,8,8), 3, padding=2)
F.max_pool3d(r(1,3,8,8,8), 3, stride=0)
F.max_pool3d(r(1,3,8,8,8), 3, stride=(1,2))
F.avg_pool1d(r(8), 3)
F.avg_pool1d(r(1,3,2), 3)
F.avg_pool1d(r(1,3,8), 3, padding=2)
F.avg_pool1d(r(1,3,8), 3, stride=0)
F.avg_pool1d(r(1,3,8), (3,3))
F.avg_pool2d(r(1,3,2,2), 3)
F.avg_pool2d(r(3,8), 3)
F.avg_pool2d(r(1,3,8,8), 3, padding=2)
F.avg_pool2d(r(1,3,8,8), 3, stride=0)
F.avg_pool2d(r(1,3,8,8), 0)
F.avg_pool2d(r(1,3,8,8), 2, divisor_override=0)
F.avg_pool2d(r(1,3,8,8).long(), 2).dtype
F.avg_pool2d(r(1,3,8,8).int(), 2).dtype
F.avg_pool2d(r(1,3,8,8), (1,2,3))
F.avg_pool2d(r(1,0,8,8), 2)
F.avg_pool3d(r(3,8,8), 2)
F.avg_pool3d(r(1,3,8,8,8), 3, padding=2)
F.avg_pool3d(r(1,3,2,2,2), 3)
F.adaptive_avg_pool1d(r(8), 3)
F.adaptive_avg_pool1d(r(1,3,8), (3,3))
F.adaptive_avg_pool1d(r(1,3,8), -1)
F.adaptive_avg_pool1d(r(1,3,0), 2)
F.adaptive_avg_pool2d(r(8,8), 3)
F.adaptive_avg_pool2d(r(1,3,8,8), (3,3,3))
F.adaptive_avg_pool2d(r(1,3,8,8), -1)
F.adaptive_avg_pool2d(r(1,3,0,8), 2)
F.adaptive_avg_pool2d(r(1,3,8,8), (None,2)).shape
F.adaptive_avg_pool2d(r(1,3,8,8).long(), 2)
F.adaptive_avg_pool2d(r(1,3,8,8), 0).shape
F.adaptive_avg_pool3d(r(1,3,8), 2)
F.adaptive_avg_pool3d(r(1,3,8,8,0), 2)
F.adaptive_max_pool1d(r(8), 3)
F.adaptive_max_pool1d(r(1,3,8), (3,3))
F.adaptive_max_pool2d(r(8,8), 3)
F.adaptive_max_pool2d(r(1,3,0,8), 2)
F.adaptive_max_pool2d(r(1,3,8,8), -1)
F.adaptive_max_pool2d(r(1,3,8,8), 0).shape
F.adaptive_max_pool2d(r(0,3,8,8), 2).shape
F.adaptive_max_pool2d(r(1,3,8,8), (3,3,3))
F.adaptive_max_pool3d(r(1,3,8), 2)
F.adaptive_max_pool3d(r(1,3,0,8,8), 2)
F.lp_pool2d(r(1,3,2,2), 2, 3)
F.max_unpool2d(r(1,3,4,4), torch.zeros(1,3,4,4), 2)
F.max_unpool2d(r(1,3,4,4), torch.zeros(1,3,4,3).long(), 2)
F.max_unpool2d(r(1,3,4,4), torch.full((1,3,4,4),100), 2)
F.max_unpool2d(r(4,4), torch.zeros(4,4).long(), 2)
F.max_unpool2d(r(1,3,4,4), torch.zeros(1,3,4,4).long(), 2, output_size=(20,20))
F.max_unpool2d(r(1,3,4,4), torch.zeros(1,3,4,4).long(), 2, output_size=(20,))
F.max_unpool1d(r(4), torch.zeros(4).long(), 2)
F.max_unpool1d(r(1,3,4), torch.full((1,3,4),100), 2)
F.max_unpool3d(r(4,4), torch.zeros(4,4).long(), 2)
F.max_unpool3d(r(1,3,4,4,4), torch.full((1,3,4,4,4),1000), 2)
F.max_unpool3d(r(1,3,4,4,4), torch.zeros(1,3,4,4,4), 2)
F.max_unpool3d(r(1,3,4,4,4), torch.zeros(1,3,4,4,3).long(), 2)
F.fractional_max_pool2d(r(1,3,8,8), 2)
F.fractional_max_pool2d(r(1,3,8,8), 2, output_size=3, output_ratio=.5)
F.fractional_max_pool2d(r(1,3,8,8), 2, output_size=8)
F.fractional_max_pool2d(r(8,8), 2, output_size=3)
F.fractional_max_pool2d(r(1,3,8,8), (2,2,2), output_size=3)
F.fractional_max_pool2d(r(1,3,8,8), 2, output_ratio=(.5,.5,.5))
F.fractional_max_pool2d(r(1,3,8,8), 2, output_size=3, _random_samples=r(1,2,2))
F.fractional_max_pool2d(r(1,3,8,8), 2, output_size=3, _random_samples=r(1,3,2).double())
F.fractional_max_pool3d(r(1,3,8,8), 2, output_size=30)
nn.FractionalMaxPool2d(2)
nn.FractionalMaxPool2d(2,output_size=2,output_ratio=.5)
nn.FractionalMaxPool2d(2,output_ratio=1.5)
nn.FractionalMaxPool3d(2,output_ratio=1.5)
F.pad(r(1,3,8), (1,))
F.pad(r(1,3,8), (1,1,1,1,1,1,1,1))
F.pad(r(1,3,8), (1,1), mode='foo')
F.pad(r(1,3,8), (8,1), mode='reflect')
F.pad(r(1,3,8), (1,1,1,1), mode='reflect').shape
F.pad(r(1,3,8,8), (1,1), mode='reflect')
F.pad(r(1,3,8,8), (1,1,8,1), mode='reflect')
F.pad(r(1,3,8,8,8), (1,1,1,1,1,8), mode='reflect')
F.pad(r(1,3,8), (9,1), mode='circular')
F.pad(r(1,3,8), (1,1), mode='reflect', value=2)
F.pad(r(1,3,8), (1,1), mode='reflect', value=0).shape
F.pad(r(8), (1,1), mode='reflect')
F.pad(r(1,3,8), (-5,-5), mode='replicate')
F.pad(r(1,3,8), (-5,-5), mode='constant')
F.pad(r(1,3,8), (-5,-5), mode='reflect')
F.pad(r(1,3,8), (-5,-5), mode='circular')
F.pad(r(1,3,8), (-5,6), mode='circular').shape
F.pad(r(1,3,0), (1,1), mode='replicate')
F.pad(r(1,3,0), (1,1), mode='reflect')
F.pad(r(1,0,8), (1,1), mode='replicate')
F.pad(r(1,3,8), 1)
F.pad(r(1,3,8), (1.5,1))
F.pad(r(1,3,8), ('a',1))
nn.ReflectionPad2d((1,2,3))(r(1,3,8,8))
nn.ZeroPad2d(1)(r(8)).shape
nn.ZeroPad2d((1,2,3))(r(1,3,8,8))
F.unfold(r(1,3,8), 3)
F.unfold(r(1,3,8,8), 9)
F.unfold(r(1,3,8,8), 3, stride=0)
F.unfold(r(1,3,8,8), 0)
F.unfold(r(1,3,8,8), 3, dilation=0)
F.unfold(r(1,3,8,8), 3, padding=-1)
F.unfold(r(3,8,8), 3).shape
F.unfold(r(1,3,8,8), (1,2,3))
F.fold(r(1,27,30), (8,8), 3)
F.fold(r(1,26,36), (8,8), 3)
F.fold(r(1,1,27,36), (8,8), 3)
F.fold(r(1,27,36), (8,8), 3, stride=0)
F.fold(r(1,27,36), (1,1), 3)
F.fold(r(27,36), (8,8), 3).shape
F.fold(r(27,36), (8,8,8), 3)
F.pixel_shuffle(r(1,3,8,8), 2)
F.pixel_shuffle(r(8,8), 2)
F.pixel_shuffle(r(1,4,8,8), 0)
F.pixel_shuffle(r(1,4,8,8), -1)
F.pixel_unshuffle(r(1,3,7,8), 2)
F.pixel_unshuffle(r(1,3,8,7), 2)
F.pixel_unshuffle(r(8,7), 2)
F.pixel_unshuffle(r(1,3,8,8), 0)
F.channel_shuffle(r(1,3,8,8), 2)
F.channel_shuffle(r(1,3,8,8), 0)
F.channel_shuffle(r(3,8), 1)
F.channel_shuffle(r(3,8,2), 1).shape
F.interpolate(r(1,3,8,8))
F.interpolate(r(1,3,8,8), size=3, scale_factor=2)
F.interpolate(r(1,3,8,8), size=(3,3,3))
F.interpolate(r(1,3,8,8), scale_factor=(3,3,3))
F.interpolate(r(1,3,8,8), size=(2.5,2))
F.interpolate(r(1,3,8,8), size=0)
F.interpolate(r(1,3,8,8), size=-1)
F.interpolate(r(1,3,8), size=0)
F.interpolate(r(1,3,8,8,8), size=0)
F.interpolate(r(1,3,8,8), scale_factor=0.01)
F.interpolate(r(1,3,8,8), scale_factor=-1)
F.interpolate(r(1,3,8,8), size=3, mode='foo')
F.interpolate(r(3,8), size=3)
F.interpolate(r(1,3,8,8), size=3, mode='nearest', align_corners=True)
F.interpolate(r(1,3,8,8), size=3, mode='area', align_corners=True)
F.interpolate(r(1,3,8,8), size=3, mode='nearest', antialias=True)
F.interpolate(r(1,3,8,8,8), size=3, mode='trilinear', antialias=True)
F.interpolate(r(1,3,8,8), size=3, recompute_scale_factor=True)
F.interpolate(r(1,3,8,8), scale_factor=2, recompute_scale_factor=True).shape
F.interpolate(r(1,3,8,8), size=3, mode='lanczos').shape
F.interpolate(r(1,3,8,8), size=3, mode='lanczos',antialias=True).shape
F.interpolate(r(1,3,8), size=3, mode='lanczos',antialias=True).shape
F.interpolate(r(1,3,8), size=3, mode='bilinear')
F.interpolate(r(1,3,8), size=3, mode='bicubic')
F.interpolate(r(1,3,8,8).byte(), size=3).dtype
F.interpolate(r(1,3,8,8).byte(), size=3,mode='bilinear').dtype
F.interpolate(r(1,3,8,8).byte(), size=3,mode='bicubic').dtype
F.interpolate(r(1,3,0,8), size=3)
F.interpolate(r(1,0,8,8), size=3)
F.interpolate(r(0,3,8,8), size=3).shape
F.grid_sample(r(1,3,8,8), r(1,4,4,3))
F.grid_sample(r(1,3,8,8), r(2,4,4,2))
F.grid_sample(r(1,3,8), r(1,4,2))
F.grid_sample(r(1,3,8,8), r(1,4,4,2), mode='foo')
F.grid_sample(r(1,3,8,8), r(1,4,4,2), padding_mode='foo')
F.grid_sample(r(1,3,8,8,8), r(1,4,4,4,3), mode='bicubic')
F.grid_sample(r(1,3,8,8), r(1,4,4,4,3))
F.grid_sample(r(1,3,8,8), r(1,4,4,2).double())
F.grid_sample(r(1,3,0,8), r(1,4,4,2))
F.grid_sample(r(1,3,8,8).long(), r(1,4,4,2).long())
F.affine_grid(r(1,2,3), (1,3,8))
F.affine_grid(r(1,3,4), (1,3,8,8))
F.affine_grid(r(1,2,3), (1,3,8,8,8))
F.affine_grid(r(1,2,3), (2,3,8,8))
F.affine_grid(r(2,3), (2,3,8,8))
F.affine_grid(r(1,2,3).long(), (1,3,8,8))
F.affine_grid(r(1,2,3), (1,3,0,8))
torch.conv_tbc(r(5,2,4), r(3,3,6), r(6))
torch.conv_tbc(r(5,2), r(3,3,6), r(6))
torch.conv_tbc(r(5,2,4), r(3,4,6), r(5))
F.upsample(r(1,3,8,8), scale_factor=2).shape
"""


def _lines(text) -> list[str]:
    return [line for line in text.strip().splitlines() if line]


def _names(library) -> dict:
    def like(*shape):
        count = math.prod(shape)
        values = np.cos(np.arange(1.0, count + 1) * 1.7).astype(np.float32).reshape(shape)
        return library.tensor(values).requires_grad_()

    odd = np.cos(np.arange(1.0, 197) * 1.7).astype(np.float32).reshape(2, 2, 7, 7)
    ties = np.round(odd)
    odd[0, 0, 1, :3], odd[0, 1, 2, 2], odd[1, 1, 3, 4], odd[1, 0] = np.nan, np.inf, -np.inf, -np.inf
    return {
        "torch": library, "nn": library.nn, "F": library.nn.functional, "r": library.randn,
        "x": like(2, 2, 7, 7), "row": like(2, 2, 7), "cube": like(2, 2, 4, 4, 4), "w": like(4, 2, 3, 3), "b": like(4),
        "odd": library.tensor(odd).requires_grad_(), "grid": like(2, 3, 4, 2), "grid3": like(2, 2, 2, 2, 3),
        "ties": library.tensor(ties).requires_grad_(), "theta": like(2, 2, 3),
        "bytes_": library.tensor((np.arange(32) * 37 % 256).astype(np.uint8).reshape(2, 1, 4, 4)),
    }  # fmt: skip


def _run(expression, library):
    """(outcome, warnings): an exception's type and text, or what must agree of the result."""
    names = _names(library)
    library.manual_seed(0)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            outcome = _described(eval(expression, names), names, library)
        except Exception as error:
            outcome = type(error).__name__, str(error)
    return outcome, {str(w.message).split(" (Triggered")[0] for w in caught if "Lazy modules" not in str(w.message)}


def _described(result, names, library):
    if isinstance(result, library.Size) or not isinstance(result, (library.Tensor, tuple)):
        return str(result)
    return [_tensor(t, names, library) for t in (result if isinstance(result, tuple) else (result,))]


def _tensor(t, names, library):
    node = t.grad_fn.name() if t.grad_fn is not None else None
    numbers = [t.detach().double().numpy()]
    if t.requires_grad:
        leaves = [v for v in names.values() if isinstance(v, library.Tensor) and v.requires_grad]
        weights = library.tensor(np.sin(np.arange(1.0, t.numel() + 1)).reshape(tuple(t.shape)), dtype=t.dtype)
        grads = library.autograd.grad((t * weights).sum(), leaves, allow_unused=True)
        numbers += [None if g is None else g.double().numpy() for g in grads]
    return str(t.dtype), tuple(t.shape), t.stride(), node, numbers


ONCE = "Using padding='same' with even kernel lengths"  # a warning that comes once in a process


@pytest.mark.parametrize("expression", _lines(AGREE))
def test_the_same_in_both(expression):
    theirs, their_warnings = _run(expression, torch)
    ours, our_warnings = _run(expression, rushlight)
    assert not isinstance(theirs, tuple), theirs
    assert {w for w in our_warnings if ONCE not in w} == {w for w in their_warnings if ONCE not in w}
    if isinstance(theirs, str):
        assert ours == theirs
        return
    assert not isinstance(ours, tuple), ours
    for mine, expected in zip(ours, theirs, strict=True):
        assert mine[:3] == expected[:3]
        if "circular" not in expression:  # one node here, a chain of writes in PyTorch
            assert mine[3] == expected[3]
        tolerance = {"torch.float16": 4e-3, "torch.bfloat16": 3e-2}.get(expected[0], 2e-5)
        for a, b in zip(mine[4], expected[4], strict=True):
            assert (a is None) == (b is None)
            if b is not None:
                np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("expression", _lines(REFUSED))
def test_refused_in_the_same_words(expression):
    theirs, _ = _run(expression, torch)
    ours, _ = _run(expression, rushlight)
    if isinstance(theirs, (tuple, str)):
        assert ours == theirs
    else:
        assert [t[:2] for t in ours] == [t[:2] for t in theirs]


LAYERS = [
    "Conv1d(4, 6, 3)", "Conv2d(4, 6, (3, 2), groups=2)", "Conv3d(4, 6, 2, bias=False)", "ConvTranspose1d(4, 6, 3)",
    "ConvTranspose2d(4, 6, 3, groups=2)", "ConvTranspose3d(4, 6, 2)",
]  # fmt: skip


@pytest.mark.parametrize("layer", LAYERS)
def test_initial_weights(layer):
    made = []
    for library in (torch, rushlight):
        library.manual_seed(3)
        made.append(eval(f"nn.{layer}", {"nn": library.nn}).state_dict())
    for (name, expected), (ours_name, ours) in zip(made[0].items(), made[1].items(), strict=True):
        assert name == ours_name
        np.testing.assert_array_equal(ours.numpy(), expected.numpy())


@pytest.mark.parametrize("antialias", [False, True])
@pytest.mark.parametrize("mode", ["bilinear", "bicubic"])
def test_pictures_of_bytes_are_resized_to_the_same_bytes(mode, antialias):
    """Weights and sums of bytes are rounded as in PyTorch: no pixel differs, halfway cases included."""
    rng = np.random.default_rng(0)
    for trial in range(100):
        channels, height, width, new_height = rng.integers(1, 9, 4)
        new_width = rng.integers(2, 12)  # PyTorch's rows of one pixel are wrong where there are many channels
        pixels = rng.integers(0, [4, 256][trial % 2], (2, channels, height, width)).astype(np.uint8)
        options = {"mode": mode, "antialias": antialias, "align_corners": trial % 3 == 0}
        ours, theirs = [
            library.nn.functional.interpolate(library.from_numpy(pixels), (new_height, new_width), **options).numpy()
            for library in (rushlight, torch)
        ]
        np.testing.assert_array_equal(ours, theirs, f"{pixels.shape} to {(new_height, new_width)}, {options}")
