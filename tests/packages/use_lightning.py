import logging
import os
import tempfile
import warnings

import lightning as L
import torch
from harness import main, section
from lightning.pytorch.callbacks import EarlyStopping, LearningRateMonitor, ModelCheckpoint
from lightning.pytorch.loggers import CSVLogger
from torch.utils.data import DataLoader, TensorDataset

warnings.filterwarnings("ignore")
logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
QUIET = {"enable_progress_bar": False, "enable_model_summary": False, "accelerator": "cpu", "logger": False}


class Net(L.LightningModule):
    def __init__(self, width=8):
        super().__init__()
        self.save_hyperparameters()
        self.layers = torch.nn.Sequential(torch.nn.Linear(4, width), torch.nn.ReLU(), torch.nn.Linear(width, 1))
        self.losses = []

    def training_step(self, batch, batch_idx):
        x, y = batch
        loss = torch.nn.functional.mse_loss(self.layers(x).squeeze(-1), y)
        self.log("train_loss", loss)
        self.losses.append(loss.item())
        return loss

    def validation_step(self, batch, batch_idx):
        x, y = batch
        self.log("val_loss", torch.nn.functional.mse_loss(self.layers(x).squeeze(-1), y))

    def predict_step(self, batch, batch_idx):
        return self.layers(batch[0])

    def configure_optimizers(self):
        optimizer = torch.optim.AdamW(self.parameters(), lr=1e-2)
        schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 20)
        return {"optimizer": optimizer, "lr_scheduler": schedule}


def loader(shuffle=True):
    generator = torch.Generator().manual_seed(1)
    x = torch.randn(32, 4, generator=generator)
    return DataLoader(TensorDataset(x, x.sum(1)), batch_size=8, shuffle=shuffle)


@section
def fit():
    net = Net()
    trainer = L.Trainer(max_epochs=3, enable_checkpointing=False, **QUIET)
    trainer.fit(net, loader(), loader(False))
    return [net.losses, trainer.callback_metrics["val_loss"], trainer.global_step]


@section
def checkpoint_and_resume():
    with tempfile.TemporaryDirectory() as folder:
        saver = ModelCheckpoint(folder, monitor="val_loss", save_top_k=1, filename="best")
        trainer = L.Trainer(max_epochs=2, callbacks=[saver], default_root_dir=folder, **QUIET)
        trainer.fit(Net(width=6), loader(), loader(False))
        again = Net.load_from_checkpoint(os.path.join(folder, "best.ckpt"))
        more = L.Trainer(max_epochs=3, enable_checkpointing=False, **QUIET)
        more.fit(again, loader(), loader(False), ckpt_path=os.path.join(folder, "best.ckpt"))
        return [again.hparams.width, again.losses, saver.best_model_score]


@section
def callbacks_and_logger():
    with tempfile.TemporaryDirectory() as folder:
        logger = CSVLogger(folder, name="run", version=0)
        trainer = L.Trainer(
            max_epochs=4, callbacks=[EarlyStopping("val_loss", patience=1), LearningRateMonitor("step")], logger=logger,
            log_every_n_steps=1, enable_checkpointing=False, enable_progress_bar=False, enable_model_summary=False,
            accelerator="cpu",
        )  # fmt: skip
        trainer.fit(Net(), loader(), loader(False))
        logger.save()
        with open(os.path.join(folder, "run", "version_0", "metrics.csv")) as file:
            return [trainer.current_epoch, len(file.readlines())]


@section
def predict_and_validate():
    net = Net()
    trainer = L.Trainer(**QUIET)
    return [torch.cat(trainer.predict(net, loader(False)))[:5, 0], trainer.validate(net, loader(False), verbose=False)]


@section
def accumulate_and_clip():
    net = Net()
    trainer = L.Trainer(
        max_epochs=2, accumulate_grad_batches=2, gradient_clip_val=0.1, enable_checkpointing=False, **QUIET
    )
    trainer.fit(net, loader())
    return net.losses


@section
def fabric():
    fabric = L.Fabric(accelerator="cpu", devices=1)
    fabric.launch()
    net = Net()
    model, optimizer = fabric.setup(net.layers, torch.optim.SGD(net.parameters(), lr=0.1))
    data = fabric.setup_dataloaders(loader())
    losses = []
    for x, y in data:
        optimizer.zero_grad()
        loss = (model(x).squeeze(-1) - y).square().mean()
        fabric.backward(loss)
        optimizer.step()
        losses.append(loss.item())
    return losses


main()
