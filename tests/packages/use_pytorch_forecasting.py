import logging
import warnings

import numpy as np
import pandas as pd
import torch
from harness import main, section
from lightning.pytorch import Trainer
from pytorch_forecasting import Baseline, DeepAR, NBeats, TemporalFusionTransformer, TimeSeriesDataSet
from pytorch_forecasting.data import GroupNormalizer, NaNLabelEncoder
from pytorch_forecasting.metrics import MAE, SMAPE, NormalDistributionLoss, QuantileLoss

warnings.simplefilter("ignore")
logging.disable(logging.CRITICAL)


def series(**options):
    t = np.tile(np.arange(30), 3)
    frame = pd.DataFrame(
        {"t": t, "group": np.repeat(["a", "b", "c"], 30), "y": np.sin(t / 3) + np.random.randn(90) * 0.1}
    )
    return TimeSeriesDataSet(
        frame, time_idx="t", target="y", group_ids=["group"], max_encoder_length=8, max_prediction_length=3,
        time_varying_unknown_reals=["y"], categorical_encoders={"group": NaNLabelEncoder().fit(frame.group)}, **options,
    )  # fmt: skip


def fitted(kind, data, **options):
    model = kind.from_dataset(data, learning_rate=1e-2, **options)
    loader = data.to_dataloader(train=True, batch_size=16, num_workers=0)
    trainer = Trainer(
        max_steps=3, accelerator="cpu", logger=False, enable_checkpointing=False, enable_progress_bar=False,
        enable_model_summary=False, gradient_clip_val=0.1,
    )  # fmt: skip
    trainer.fit(model, loader)
    x, _ = next(iter(data.to_dataloader(train=False, batch_size=4, num_workers=0)))
    return model.eval(), x, trainer.callback_metrics["train_loss_step"]


@section
def fusion_transformer():
    data = series(
        time_varying_known_reals=["t"],
        static_categoricals=["group"],
        target_normalizer=GroupNormalizer(groups=["group"]),
    )
    model, x, loss = fitted(
        TemporalFusionTransformer, data, hidden_size=8, attention_head_size=2, dropout=0.0, hidden_continuous_size=4,
        loss=QuantileLoss([0.1, 0.5, 0.9]),
    )  # fmt: skip
    return [loss, model(x)["prediction"]]


@section
def nbeats():
    model, x, loss = fitted(NBeats, series(), widths=[16, 16], num_blocks=[1, 1], backcast_loss_ratio=0.1)
    return [loss, model(x)["prediction"]]


@section
def deep_ar():
    data = series(static_categoricals=["group"])
    return fitted(DeepAR, data, hidden_size=8, rnn_layers=1, dropout=0.0, loss=NormalDistributionLoss())[2]


@section
def baseline():
    data = series()
    x, _ = next(iter(data.to_dataloader(train=False, batch_size=4, num_workers=0)))
    return Baseline()(x)["prediction"]


@section
def metrics():
    p, y = torch.rand(4, 3), torch.rand(4, 3)
    return [MAE()(p, y), SMAPE()(p, y), QuantileLoss([0.2, 0.8])(torch.rand(4, 3, 2), y)]


main()
