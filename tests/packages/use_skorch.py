import numpy as np
import torch
from harness import main, section
from sklearn.model_selection import GridSearchCV
from skorch import NeuralNetClassifier, NeuralNetRegressor


class Net(torch.nn.Module):
    def __init__(self, width=6):
        super().__init__()
        self.layers = torch.nn.Sequential(torch.nn.Linear(4, width), torch.nn.ReLU(), torch.nn.Linear(width, 2))

    def forward(self, x):
        return self.layers(x).softmax(-1)


X = np.random.RandomState(0).randn(40, 4).astype(np.float32)
Y = (X.sum(1) > 0).astype(np.int64)


@section
def classifier():
    net = NeuralNetClassifier(Net, max_epochs=4, lr=0.1, batch_size=8, verbose=0, train_split=None)
    net.fit(X, Y)
    return [net.history[:, "train_loss"], net.predict_proba(X)[:3], net.score(X, Y)]


@section
def regressor():
    net = NeuralNetRegressor(torch.nn.Linear(4, 1), max_epochs=4, lr=0.1, batch_size=8, verbose=0, train_split=None)
    net.fit(X, X.sum(1, keepdims=True))
    return [net.history[:, "train_loss"], net.predict(X)[:3, 0]]


@section
def search():
    net = NeuralNetClassifier(Net, max_epochs=2, lr=0.1, batch_size=8, verbose=0, train_split=None)
    found = GridSearchCV(net, {"module__width": [3, 5]}, cv=2, scoring="accuracy", refit=False).fit(X, Y)
    return found.cv_results_["mean_test_score"]


main()
