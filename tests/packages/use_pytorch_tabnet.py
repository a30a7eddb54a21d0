import tempfile
import warnings

import numpy as np
import torch
from harness import main, section
from pytorch_tabnet.pretraining import TabNetPretrainer
from pytorch_tabnet.tab_model import TabNetClassifier, TabNetRegressor

warnings.simplefilter("ignore")
SMALL = {"n_d": 8, "n_a": 8, "n_steps": 2, "verbose": 0, "seed": 0, "device_name": "cpu"}
FIT = {"max_epochs": 3, "batch_size": 32, "virtual_batch_size": 16, "num_workers": 0}


def table():
    x = np.random.randn(96, 5).astype("float32")
    return x, (x[:, 0] + x[:, 1] > 0).astype(int), x.sum(1, keepdims=True)


@section
def classifier():
    x, y, _ = table()
    model = TabNetClassifier(**SMALL)
    model.fit(x[:64], y[:64], eval_set=[(x[64:], y[64:])], eval_metric=["logloss"], **FIT)
    return [model.history["loss"], model.history["val_0_logloss"], model.predict_proba(x[:4])]


@section
def regressor():
    x, _, y = table()
    model = TabNetRegressor(**SMALL, optimizer_fn=torch.optim.AdamW, optimizer_params={"lr": 1e-2})
    model.fit(x, y, **FIT)
    return [model.history["loss"], model.predict(x[:4]), model.feature_importances_]


@section
def categories():
    x, y, _ = table()
    x[:, 4] = np.random.randint(3, size=96)
    model = TabNetClassifier(cat_idxs=[4], cat_dims=[3], cat_emb_dim=2, mask_type="entmax", **SMALL)
    model.fit(x, y, **FIT)
    explained, masks = model.explain(x[:4])
    return [model.history["loss"], explained, masks[0]]


@section
def saved_and_loaded():
    x, y, _ = table()
    model = TabNetClassifier(**SMALL)
    model.fit(x, y, **FIT)
    with tempfile.TemporaryDirectory() as folder:
        again = TabNetClassifier()
        again.load_model(model.save_model(folder + "/model"))
    return [again.predict_proba(x[:3]), model.predict_proba(x[:3])]


@section
def pretrained():
    x, y, _ = table()
    before = TabNetPretrainer(**SMALL)
    before.fit(x, **FIT)
    model = TabNetClassifier(**SMALL)
    model.fit(x, y, from_unsupervised=before, **FIT)
    return [before.history["loss"], model.history["loss"][0]]


main()
