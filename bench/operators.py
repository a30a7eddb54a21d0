"""Single operators beside PyTorch eager on the CPU, forward and backward: a line of ``TABLE`` is a case.

``python bench/operators.py [words]`` measures those whose line has one of the words, each library in its own process.

A line is an expression and, after the bar, its operands. Those made by ``r`` (normal numbers) get gradients, as the
parameters of a module do; ``c`` makes constants, ``i(n, …)`` whole numbers below n, ``b`` booleans.
"""

from __future__ import annotations

import harness

TABLE = """
norms
F.layer_norm(x, (768,), w, b) | x = r(2048, 768); w = r(768); b = r(768)
F.layer_norm(x, (64,), w, b) | x = r(128, 64); w = r(64); b = r(64)
F.layer_norm(x, (32, 32)) | x = r(64, 16, 32, 32)
F.rms_norm(x, (768,), w) | x = r(2048, 768); w = r(768)
F.rms_norm(x, (64,), w) | x = r(128, 64); w = r(64)
m(x) | x = r(64, 32, 26, 26); m = nn.GroupNorm(8, 32)
m(x) | x = r(16, 64, 8, 8); m = nn.GroupNorm(32, 64)
m(x) | x = r(16, 32, 32, 32); m = nn.InstanceNorm2d(32)
m(x) | x = r(16, 32, 32, 32); m = nn.InstanceNorm2d(32, affine=True)
m(x) | x = r(16, 32, 200); m = nn.InstanceNorm1d(32)
m(x) | x = r(64, 32, 26, 26); m = nn.BatchNorm2d(32)
m(x) | x = r(8, 512, 7, 7); m = nn.BatchNorm2d(512)
m(x) | x = r(8, 16, 8, 8); m = nn.BatchNorm2d(16)
m(x) | x = r(64, 32, 26, 26); m = nn.BatchNorm2d(32).eval()
m(x) | x = c(64, 32, 26, 26); m = frozen(nn.BatchNorm2d(32).eval())
m(x) | x = r(64, 512); m = nn.BatchNorm1d(512)
m(x) | x = r(4096, 64); m = nn.BatchNorm1d(64)
m(x) | x = r(64, 512); m = nn.BatchNorm1d(512).eval()
m(x) | x = r(32, 64, 100); m = nn.BatchNorm1d(64)
F.normalize(x) | x = r(2048, 768)
F.local_response_norm(x, 5) | x = r(8, 64, 26, 26)

softmax and losses
x.softmax(-1) | x = r(96, 128, 128)
x.softmax(-1) | x = r(64, 10)
x.softmax(1) | x = r(32, 64, 28, 28)
x.softmax(0) | x = r(512, 512)
x.log_softmax(-1) | x = r(2048, 1000)
x.log_softmax(-1) | x = r(64, 10)
x.log_softmax(1) | x = r(8, 21, 64, 64)
F.cross_entropy(x, t) | x = r(64, 10); t = i(10, 64)
F.cross_entropy(x, t) | x = r(2048, 1000); t = i(1000, 2048)
F.cross_entropy(x, t, label_smoothing=0.1) | x = r(2048, 1000); t = i(1000, 2048)
F.cross_entropy(x, t, label_smoothing=0.1) | x = r(64, 10); t = i(10, 64)
F.cross_entropy(x, t, ignore_index=3) | x = r(2048, 1000); t = i(1000, 2048)
F.cross_entropy(x, t, w) | x = r(2048, 1000); t = i(1000, 2048); w = c(1000).abs()
F.cross_entropy(x, p) | x = r(2048, 1000); p = c(2048, 1000).softmax(-1)
F.cross_entropy(x, t) | x = r(8, 21, 64, 64); t = i(21, 8, 64, 64)
F.nll_loss(x, t) | x = r(2048, 1000); t = i(1000, 2048)
F.nll_loss(x, t) | x = r(8, 21, 64, 64); t = i(21, 8, 64, 64)
F.mse_loss(x, t) | x = r(1024, 1024); t = c(1024, 1024)
F.l1_loss(x, t) | x = r(1024, 1024); t = c(1024, 1024)
F.smooth_l1_loss(x, t) | x = r(1024, 1024); t = c(1024, 1024)
F.huber_loss(x, t) | x = r(1024, 1024); t = c(1024, 1024)
F.binary_cross_entropy_with_logits(x, t) | x = r(1024, 1024); t = c(1024, 1024).sigmoid()
F.binary_cross_entropy(x.sigmoid(), t) | x = r(1024, 1024); t = c(1024, 1024).sigmoid()
F.kl_div(x, t, reduction="batchmean") | x = r(1024, 1024); t = c(1024, 1024).softmax(-1)
F.cosine_similarity(x, y) | x = r(2048, 256); y = r(2048, 256)

activations
F.relu(x) | x = r(1024, 1024)
F.relu(x) | x = r(64, 128)
F.gelu(x) | x = r(1024, 1024)
F.gelu(x, approximate="tanh") | x = r(1024, 1024)
F.silu(x) | x = r(1024, 1024)
x.sigmoid() | x = r(1024, 1024)
x.tanh() | x = r(1024, 1024)
F.leaky_relu(x) | x = r(1024, 1024)
F.elu(x) | x = r(1024, 1024)
F.selu(x) | x = r(1024, 1024)
F.celu(x) | x = r(1024, 1024)
F.softplus(x) | x = r(1024, 1024)
F.hardtanh(x) | x = r(1024, 1024)
F.relu6(x) | x = r(1024, 1024)
F.hardswish(x) | x = r(1024, 1024)
F.hardsigmoid(x) | x = r(1024, 1024)
F.mish(x) | x = r(1024, 1024)
F.prelu(x, w) | x = r(1024, 1024); w = r(1)
F.prelu(x, w) | x = r(16, 64, 32, 32); w = r(64)
F.glu(x) | x = r(1024, 1024)
F.logsigmoid(x) | x = r(1024, 1024)
F.threshold(x, 0.1, 0) | x = r(1024, 1024)
F.softsign(x) | x = r(1024, 1024)
F.hardshrink(x) | x = r(1024, 1024)
F.softshrink(x) | x = r(1024, 1024)
F.tanhshrink(x) | x = r(1024, 1024)
F.dropout(x, 0.1) | x = r(1024, 1024)
F.dropout(x, 0.5) | x = r(64, 128)
F.dropout2d(x, 0.1) | x = r(16, 64, 32, 32)
F.relu(F.linear(x, w, b)) | x = r(64, 512); w = r(512, 512); b = r(512)
F.relu(F.linear(x, w, b)) | x = r(1024, 256); w = r(1024, 256); b = r(1024)
F.gelu(F.linear(x, w, b)) | x = r(1024, 256); w = r(1024, 256); b = r(1024)
F.silu(F.linear(x, w, b)) | x = r(1024, 256); w = r(1024, 256); b = r(1024)

attention
A(q, k, v) | q = r(8, 4, 64, 32); k = r(8, 4, 64, 32); v = r(8, 4, 64, 32)
A(q, k, v, is_causal=True) | q = r(8, 4, 64, 32); k = r(8, 4, 64, 32); v = r(8, 4, 64, 32)
A(q, k, v) | q = r(4, 8, 256, 64); k = r(4, 8, 256, 64); v = r(4, 8, 256, 64)
A(q, k, v, is_causal=True) | q = r(4, 8, 256, 64); k = r(4, 8, 256, 64); v = r(4, 8, 256, 64)
A(q, k, v, m) | q = r(4, 8, 256, 64); k = r(4, 8, 256, 64); v = r(4, 8, 256, 64); m = b(256, 256)
A(q, k, v, m) | q = r(4, 8, 256, 64); k = r(4, 8, 256, 64); v = r(4, 8, 256, 64); m = c(4, 1, 256, 256)
A(q, k, v) | q = r(1, 8, 1024, 64); k = r(1, 8, 1024, 64); v = r(1, 8, 1024, 64)
A(q, k, v, is_causal=True) | q = r(1, 8, 1024, 64); k = r(1, 8, 1024, 64); v = r(1, 8, 1024, 64)
A(q, k, v) | q = r(2, 4, 512, 128); k = r(2, 4, 512, 128); v = r(2, 4, 512, 128)
A(q, k, v, is_causal=True) | q = r(2, 4, 512, 128); k = r(2, 4, 512, 128); v = r(2, 4, 512, 128)
A(q, k, v, enable_gqa=True) | q = r(4, 8, 256, 64); k = r(4, 2, 256, 64); v = r(4, 2, 256, 64)
A(q, k, v) | q = r(4, 8, 1, 64); k = r(4, 8, 512, 64); v = r(4, 8, 512, 64)
A(q, k, v) | q = c(4, 8, 256, 64); k = c(4, 8, 256, 64); v = c(4, 8, 256, 64)
m(x, x, x)[0] | x = r(16, 128, 256); m = nn.MultiheadAttention(256, 8, batch_first=True)
m(x) | x = r(16, 64, 128); m = nn.TransformerEncoderLayer(128, 4, 512, 0.0, batch_first=True)

embedding
F.embedding(t, w) | t = i(10000, 32, 128); w = r(10000, 256)
F.embedding(t, w) | t = i(100, 16); w = r(100, 32)
F.embedding(t, w, padding_idx=0) | t = i(1000, 32, 64); w = r(1000, 128)
F.embedding_bag(t, w) | t = i(10000, 256, 16); w = r(10000, 64)
F.embedding_bag(t, w, mode="sum") | t = i(10000, 256, 16); w = r(10000, 64)
F.embedding_bag(t, w, mode="max") | t = i(10000, 256, 16); w = r(10000, 64)
F.one_hot(t, 1000) | t = i(1000, 2048)

pooling
F.max_pool2d(x, 2) | x = r(64, 64, 24, 24)
F.max_pool2d(x, 3, 2, 1) | x = r(16, 64, 56, 56)
F.max_pool2d(x, 7, 1, 3) | x = r(8, 32, 28, 28)
F.max_pool2d(x, 2, return_indices=True)[0] | x = r(16, 64, 24, 24)
F.max_pool1d(x, 3, 2) | x = r(32, 64, 512)
F.max_pool3d(x, 2) | x = r(4, 16, 16, 32, 32)
F.max_pool3d(x, 3, 2, 1) | x = r(4, 16, 16, 32, 32)
F.avg_pool2d(x, 2) | x = r(64, 64, 24, 24)
F.avg_pool2d(x, 3, 2, 1) | x = r(16, 64, 56, 56)
F.avg_pool2d(x, 7) | x = r(64, 256, 7, 7)
F.avg_pool2d(x, 5, 1, 2) | x = r(8, 32, 28, 28)
F.avg_pool2d(x, 8) | x = r(16, 64, 64, 64)
F.avg_pool1d(x, 3, 2) | x = r(32, 64, 512)
F.avg_pool3d(x, 2) | x = r(4, 16, 16, 32, 32)
F.adaptive_avg_pool2d(x, 1) | x = r(32, 512, 7, 7)
F.adaptive_avg_pool2d(x, 7) | x = r(16, 64, 30, 30)
F.adaptive_avg_pool1d(x, 10) | x = r(32, 64, 512)
F.adaptive_avg_pool3d(x, 4) | x = r(4, 16, 16, 30, 30)
F.adaptive_max_pool2d(x, 1) | x = r(32, 512, 7, 7)
F.adaptive_max_pool2d(x, 7) | x = r(16, 64, 30, 30)
F.adaptive_max_pool1d(x, 10) | x = r(32, 64, 512)
F.lp_pool2d(x, 2, 2) | x = r(16, 64, 24, 24)
F.max_unpool2d(y, n, 2) | x = c(16, 64, 24, 24); y, n = F.max_pool2d(x, 2, return_indices=True); y = y.requires_grad_()
F.interpolate(x, scale_factor=2) | x = r(16, 64, 24, 24)
F.interpolate(x, scale_factor=2, mode="bilinear") | x = r(16, 64, 24, 24)
F.pixel_shuffle(x, 2) | x = r(16, 64, 32, 32)
F.pad(x, (1, 1, 1, 1)) | x = r(16, 64, 28, 28)
F.pad(x, (1, 1, 1, 1), mode="reflect") | x = r(16, 64, 28, 28)
F.unfold(x, 3, padding=1) | x = r(8, 32, 28, 28)
F.grid_sample(x, g, align_corners=False) | x = r(8, 16, 32, 32); g = c(8, 32, 32, 2).tanh()

products
x @ y | x = r(64, 64); y = r(64, 64)
x @ y | x = r(256, 256); y = r(256, 256)
x @ y | x = r(1024, 1024); y = r(1024, 1024)
x @ y | x = r(4096, 64); y = r(64, 64)
x @ y | x = r(64, 4096); y = r(4096, 64)
x @ y | x = r(16, 1024); y = r(1024, 1024)
x @ y | x = r(1, 1024); y = r(1024, 1024)
x @ y | x = r(1024, 1024); y = r(1024)
x @ y | x = r(1000, 37); y = r(37, 500)
x @ y.T | x = r(512, 512); y = r(512, 512)
x.T @ y | x = r(512, 512); y = r(512, 512)
x @ y | x = r(64, 128, 64); y = r(64, 64, 128)
x @ y.mT | x = r(64, 128, 64); y = r(64, 128, 64)
x @ y | x = r(512, 16, 16); y = r(512, 16, 16)
x @ y | x = r(32, 128, 256); y = r(256, 256)
torch.bmm(x, y) | x = r(16, 256, 256); y = r(16, 256, 256)
torch.einsum("bhtd,bhsd->bhts", x, y) | x = r(8, 8, 128, 64); y = r(8, 8, 128, 64)
torch.einsum("bthd,bshd->bhts", x, y) | x = r(8, 128, 8, 64); y = r(8, 128, 8, 64)
torch.addmm(b, x, y) | b = r(512); x = r(128, 256); y = r(256, 512)
torch.outer(x, y) | x = r(1024); y = r(1024)
F.linear(x, w, b) | x = r(64, 784); w = r(512, 784); b = r(512)
F.linear(x, w, b) | x = r(16, 128, 256); w = r(768, 256); b = r(768)
F.linear(x, w, b) | x = r(64, 512); w = r(10, 512); b = r(10)
F.linear(x, w) | x = c(1, 512); w = c(512, 512)
F.bilinear(x, y, w) | x = r(128, 32); y = r(128, 32); w = r(16, 32, 32)

convolution
F.conv2d(x, w, b) | x = r(32, 64, 28, 28); w = r(128, 64, 1, 1); b = r(128)
F.conv2d(x, w, stride=2) | x = r(32, 64, 28, 28); w = r(128, 64, 1, 1)
F.conv2d(x, w, b) | x = r(64, 32, 26, 26); w = r(64, 32, 3, 3); b = r(64)
F.conv2d(x, w, padding=1) | x = r(16, 64, 32, 32); w = r(64, 64, 3, 3)
F.conv2d(x, w, padding=1) | x = r(8, 256, 14, 14); w = r(256, 256, 3, 3)
F.conv2d(x, w, padding=1) | x = r(8, 512, 7, 7); w = r(512, 512, 3, 3)
F.conv2d(x, w, padding=1) | x = r(8, 512, 4, 4); w = r(512, 512, 3, 3)
F.conv2d(x, w, padding=1) | x = r(8, 512, 2, 2); w = r(512, 512, 3, 3)
F.conv2d(x, w, b, 2, 1) | x = r(32, 64, 28, 28); w = r(128, 64, 3, 3); b = r(128)
F.conv2d(x, w, b, 2, 1) | x = r(8, 128, 16, 16); w = r(256, 128, 3, 3); b = r(256)
F.conv2d(x, w, b, 2, 1) | x = r(8, 256, 14, 14); w = r(512, 256, 3, 3); b = r(512)
F.conv2d(x, w, b) | x = c(64, 1, 28, 28); w = r(32, 1, 3, 3); b = r(32)
F.conv2d(x, w, b, padding=1) | x = c(32, 3, 32, 32); w = r(64, 3, 3, 3); b = r(64)
F.conv2d(x, w, stride=2, padding=3) | x = c(4, 3, 112, 112); w = r(64, 3, 7, 7)
F.conv2d(x, w, stride=2, padding=3) | x = r(4, 3, 112, 112); w = r(64, 3, 7, 7)
F.conv2d(x, w, stride=16) | x = c(4, 3, 224, 224); w = r(192, 3, 16, 16)
F.conv2d(x, w, b, padding=2) | x = r(32, 16, 28, 28); w = r(32, 16, 5, 5); b = r(32)
F.conv2d(x, w, b) | x = r(64, 6, 14, 14); w = r(16, 6, 5, 5); b = r(16)
F.conv2d(x, w, padding=3) | x = r(4, 32, 28, 28); w = r(32, 32, 7, 7)
F.conv2d(x, w, padding=1, groups=64) | x = r(32, 64, 28, 28); w = r(64, 1, 3, 3)
F.conv2d(x, w, stride=2, padding=1, groups=64) | x = r(32, 64, 28, 28); w = r(64, 1, 3, 3)
F.conv2d(x, w, padding=2, groups=256) | x = r(8, 256, 14, 14); w = r(256, 1, 5, 5)
F.conv2d(x, w, padding=3, groups=96) | x = r(8, 96, 28, 28); w = r(96, 1, 7, 7)
F.conv2d(x, w, padding=1, groups=4) | x = r(16, 64, 28, 28); w = r(64, 16, 3, 3)
F.conv2d(x, w, padding=1, groups=32) | x = r(8, 128, 28, 28); w = r(128, 4, 3, 3)
F.conv2d(x, w, padding=2, dilation=2) | x = r(16, 64, 28, 28); w = r(64, 64, 3, 3)
F.conv2d(x, w, padding=1) | x = c(16, 64, 32, 32); w = c(64, 64, 3, 3)
F.conv1d(x, w, b, padding=2) | x = r(32, 64, 256); w = r(64, 64, 5); b = r(64)
F.conv1d(x, w, padding=4, dilation=4) | x = r(16, 64, 512); w = r(64, 64, 3)
F.conv1d(x, w, padding=2, groups=128) | x = r(16, 128, 512); w = r(128, 1, 5)
F.conv1d(x, w, stride=5) | x = c(8, 1, 16000); w = r(64, 1, 10)
F.conv3d(x, w, padding=1) | x = r(2, 16, 16, 16, 16); w = r(32, 16, 3, 3, 3)
F.conv3d(x, w, padding=1) | x = c(2, 3, 16, 32, 32); w = r(16, 3, 3, 3, 3)
F.conv3d(x, w, stride=2, padding=1) | x = r(2, 16, 16, 16, 16); w = r(32, 16, 3, 3, 3)
F.conv_transpose2d(x, w, stride=2, padding=1) | x = r(16, 128, 14, 14); w = r(128, 64, 4, 4)
F.conv_transpose2d(x, w, stride=2) | x = r(16, 64, 28, 28); w = r(64, 32, 2, 2)
F.conv_transpose2d(x, w, padding=1) | x = r(16, 64, 28, 28); w = r(64, 64, 3, 3)
F.conv_transpose2d(x, w) | x = r(64, 100, 1, 1); w = r(100, 256, 4, 4)
F.conv_transpose1d(x, w, stride=4, padding=2) | x = r(8, 64, 128); w = r(64, 32, 8)
F.conv_transpose3d(x, w, stride=2) | x = r(2, 32, 8, 8, 8); w = r(32, 16, 2, 2, 2)

recurrent layers
m(x)[0] | x = r(64, 32, 128); m = nn.LSTM(128, 256)
m(x)[0] | x = r(32, 64, 128); m = nn.LSTM(128, 128, 2, batch_first=True)
m(x)[0] | x = r(32, 64, 64); m = nn.LSTM(64, 128, bidirectional=True)
m(x)[0] | x = c(64, 32, 128); m = frozen(nn.LSTM(128, 256))
m(x)[0] | x = c(20, 1, 32); m = frozen(nn.LSTM(32, 64))
m(x)[0] | x = r(64, 32, 128); m = nn.GRU(128, 256)
m(x)[0] | x = r(32, 64, 128); m = nn.GRU(128, 128, 2, batch_first=True, bidirectional=True)
m(x)[0] | x = c(64, 32, 128); m = frozen(nn.GRU(128, 256))
m(x)[0] | x = r(64, 32, 128); m = nn.RNN(128, 256)
m(x)[0] | x = r(32, 16, 32); m = nn.RNN(32, 64, 2, nonlinearity="relu")
m(x)[0] | x = r(32, 128); m = nn.LSTMCell(128, 256)
m(x) | x = r(32, 128); m = nn.GRUCell(128, 256)

optimizers
o.step() | o = optimizer("SGD", 40, 256, 256)
o.step() | o = optimizer("SGD", 40, 256, 256, momentum=0.9, weight_decay=0.01)
o.step() | o = optimizer("Adam", 40, 256, 256)
o.step() | o = optimizer("Adam", 100, 64)
o.step() | o = optimizer("AdamW", 40, 256, 256)
o.step() | o = optimizer("RMSprop", 40, 256, 256)
o.step() | o = optimizer("Adagrad", 40, 256, 256)
o.step() | o = optimizer("Adadelta", 40, 256, 256)
o.step() | o = optimizer("Adamax", 40, 256, 256)
o.step() | o = optimizer("NAdam", 40, 256, 256)
o.zero_grad(set_to_none=False) | o = optimizer("SGD", 40, 256, 256)
nn.utils.clip_grad_norm_(o.param_groups[0]["params"], 1.0) | o = optimizer("SGD", 40, 256, 256)

reductions
x.sum() | x = r(1024, 1024)
x.sum(0) | x = r(1024, 1024)
x.sum(1) | x = r(1024, 1024)
x.sum((0, 2, 3)) | x = r(64, 32, 26, 26)
x.mean() | x = r(1024, 1024)
x.mean(1) | x = r(64, 256, 64)
x.mean((2, 3)) | x = r(32, 256, 14, 14)
x.argmax(-1) | x = c(2048, 1000)
x.argmax(0) | x = c(2048, 1000)
x.argmax(1) | x = c(64, 10)
x.max() | x = r(1024, 1024)
x.max(1)[0] | x = r(1024, 1024)
x.max(0)[0] | x = r(1024, 1024)
x.amax(1) | x = r(1024, 1024)
x.cumsum(1) | x = r(1024, 1024)
x.cumsum(0) | x = r(1024, 1024)
x.cumprod(1) | x = r(1024, 1024)
x.var() | x = r(1024, 1024)
x.var(0) | x = r(1024, 1024)
x.var(1) | x = r(1024, 1024)
x.std(1) | x = r(1024, 1024)
x.norm() | x = r(1024, 1024)
x.norm(dim=1) | x = r(1024, 1024)
x.norm(p=1, dim=1) | x = r(1024, 1024)
x.prod(1) | x = r(1024, 1024)
x.logsumexp(1) | x = r(1024, 1024)
x.topk(5)[0] | x = r(1024, 1000)
x.sort()[0] | x = r(256, 1000)
x.argsort() | x = c(256, 1000)
x.median(1)[0] | x = r(256, 1000)
x.any(1) | x = b(1024, 1024)
(x > 0).sum() | x = c(1024, 1024)

element by element
x + y | x = r(1024, 1024); y = r(1024, 1024)
x - y | x = r(1024, 1024); y = r(1024, 1024)
x * y | x = r(1024, 1024); y = r(1024, 1024)
x / y | x = r(1024, 1024); y = r(1024, 1024)
x * y + z | x = r(1024, 1024); y = r(1024, 1024); z = r(1024, 1024)
x * y + z | x = c(1024, 1024); y = c(1024, 1024); z = c(1024, 1024)
x + b | x = r(1024, 1024); b = r(1024)
x + b[:, None] | x = r(1024, 1024); b = r(1024)
x * b[:, None, None] | x = r(16, 64, 32, 32); b = r(64)
x + 1 | x = r(1024, 1024)
x * 2 | x = r(1024, 1024)
1 - x | x = r(1024, 1024)
-x | x = r(1024, 1024)
x * y + x | x = r(64, 64); y = r(64, 64)
torch.where(m, x, y) | m = b(1024, 1024); x = r(1024, 1024); y = r(1024, 1024)
x.masked_fill(m, 0.0) | m = b(1024, 1024); x = r(1024, 1024)
x.masked_fill(m, float("-inf")) | m = b(128, 128); x = r(64, 128, 128)
x.exp() | x = r(1024, 1024)
x.log() | x = r(1024, 1024).detach().abs().requires_grad_()
x.sqrt() | x = r(1024, 1024).detach().abs().requires_grad_()
x.rsqrt() | x = r(1024, 1024).detach().abs().requires_grad_()
x.pow(2) | x = r(1024, 1024)
x.pow(3) | x = r(1024, 1024)
x ** 0.5 | x = r(1024, 1024).detach().abs().requires_grad_()
x ** 2.5 | x = r(1024, 1024).detach().abs().requires_grad_()
x.square() | x = r(1024, 1024)
x.clamp(-1, 1) | x = r(1024, 1024)
x.abs() | x = r(1024, 1024)
x.sin() | x = r(1024, 1024)
x.erf() | x = r(1024, 1024)
x.reciprocal() | x = r(1024, 1024)
torch.maximum(x, y) | x = r(1024, 1024); y = r(1024, 1024)
torch.lerp(x, y, 0.3) | x = r(1024, 1024); y = r(1024, 1024)
torch.addcmul(x, y, z) | x = r(1024, 1024); y = r(1024, 1024); z = r(1024, 1024)
x > y | x = c(1024, 1024); y = c(1024, 1024)
x == 0 | x = c(1024, 1024)
x.isnan() | x = c(1024, 1024)
m & ~n | m = b(1024, 1024); n = b(1024, 1024)
x.add_(y) | x = c(1024, 1024); y = c(1024, 1024)
x.mul_(0.999) | x = c(1024, 1024)
x.zero_() | x = c(1024, 1024)
x.to(torch.float64) | x = r(1024, 1024)
x.to(torch.int64) | x = c(1024, 1024)
t.float() | t = i(100, 1024, 1024)
t + 1 | t = i(100, 1024, 1024)

copies
torch.cat([x, y], 0) | x = r(512, 1024); y = r(512, 1024)
torch.cat([x, y], 1) | x = r(1024, 512); y = r(1024, 512)
torch.cat([x, y], 1) | x = r(16, 32, 32, 32); y = r(16, 64, 32, 32)
torch.stack([x, y]) | x = r(512, 1024); y = r(512, 1024)
torch.stack([x, y], -1) | x = r(512, 1024); y = r(512, 1024)
x.clone() | x = r(1024, 1024)
x.T.contiguous() | x = r(1024, 1024)
x.permute(0, 2, 1, 3).contiguous() | x = r(16, 128, 8, 64)
x.permute(0, 2, 3, 1).contiguous() | x = r(16, 64, 32, 32)
x.permute(0, 3, 1, 2).contiguous() | x = r(16, 32, 32, 64)
x.repeat(4, 1) | x = r(256, 1024)
x.expand(64, -1, -1).contiguous() | x = r(1, 128, 128)
x.repeat_interleave(4, 0) | x = r(256, 1024)
x.flip(1) | x = r(1024, 1024)
x.roll(3, 1) | x = r(1024, 1024)
x.tril() | x = r(64, 128, 128)
torch.cat(x.chunk(3, -1), 0) | x = r(16, 128, 768)
x.index_select(0, t) | x = r(1024, 1024); t = i(1024, 512)
x.index_select(1, t) | x = r(1024, 1024); t = i(1024, 512)
x.gather(1, t) | x = r(1024, 1024); t = i(1024, 1024, 512)
x.gather(1, t) | x = r(2048, 1000); t = i(1000, 2048, 1)
x.scatter_add(1, t, y) | x = r(1024, 512); t = i(512, 1024, 256); y = r(1024, 256)
x.index_add(0, t, y) | x = r(1024, 256); t = i(1024, 512); y = r(512, 256)
x[t] | x = r(1024, 1024); t = i(1024, 512)
x[m] | x = r(1024, 1024); m = b(1024, 1024)
x[:, ::2] * 1 | x = r(1024, 1024)
x[:, 1:] - x[:, :-1] | x = r(1024, 1024)
"""


def cases(torch, gpu=False):
    if gpu:
        return
    family = ""
    for text in filter(None, TABLE.splitlines()):
        expression, bar, operands = text.partition(" | ")
        if not bar:
            family = text
        else:
            yield f"{family}: {text}", lambda e=expression, o=operands: _case(torch, e, o)


def _case(torch, expression, operands):
    torch.manual_seed(0)
    names = _names(torch)
    exec(operands, names)  # a line of the table above
    leaves = [value for value in names.values() if isinstance(value, torch.Tensor) and value.requires_grad]
    for module in filter(lambda value: isinstance(value, torch.nn.Module), names.values()):
        leaves += module.parameters()
    forward = eval(f"lambda: {expression}", names)
    result = forward()
    if not getattr(result, "requires_grad", False):
        return forward
    cotangent = torch.randn_like(result)

    def both():
        for leaf in leaves:
            leaf.grad = None
        forward().backward(cotangent)

    return both


def _names(torch) -> dict:
    def frozen(module):
        return module.requires_grad_(False)

    def optimizer(name, count, *shape, **options):
        params = [torch.randn(*shape).requires_grad_() for _ in range(count)]
        for p in params:
            p.grad = torch.randn(*shape)
        return getattr(torch.optim, name)(params, lr=1e-3, **options)

    return {
        "torch": torch,
        "nn": torch.nn,
        "F": torch.nn.functional,
        "A": torch.nn.functional.scaled_dot_product_attention,
        "r": lambda *shape: torch.randn(*shape).requires_grad_(),
        "c": torch.randn,
        "i": lambda bound, *shape: torch.randint(0, bound, shape),
        "b": lambda *shape: torch.rand(*shape) > 0.5,
        "frozen": frozen,
        "optimizer": optimizer,
    }


if __name__ == "__main__":
    harness.apart(__file__, cases)
