import torch
from captum.attr import (
    DeepLift,
    FeatureAblation,
    GradientShap,
    GuidedBackprop,
    InputXGradient,
    IntegratedGradients,
    KernelShap,
    LayerConductance,
    LayerGradCam,
    LayerIntegratedGradients,
    NeuronGradient,
    NoiseTunnel,
    Occlusion,
    Saliency,
    ShapleyValueSampling,
)
from harness import main, section


def net():
    nn = torch.nn
    return nn.Sequential(
        nn.Conv2d(1, 2, 3, padding=1), nn.ReLU(), nn.Flatten(), nn.Linear(2 * 16, 5), nn.ReLU(), nn.Linear(5, 3)
    ).eval()


def x():
    return torch.randn(2, 1, 4, 4, requires_grad=True)


@section
def gradients():
    model, data = net(), x()
    return [kind(model).attribute(data, target=1)[0, 0, 1] for kind in (Saliency, InputXGradient, GuidedBackprop)]


@section
def integrated():
    given, delta = IntegratedGradients(net()).attribute(x(), target=0, n_steps=10, return_convergence_delta=True)
    return [given[0, 0, 0], delta]


@section
def deep_lift():
    return DeepLift(net()).attribute(x(), target=2)[0, 0, 2]


@section
def gradient_shap():
    return GradientShap(net()).attribute(x(), baselines=torch.zeros(2, 1, 4, 4), target=0, n_samples=4)[0, 0, 0]


@section
def noise_tunnel():
    return NoiseTunnel(Saliency(net())).attribute(x(), target=0, nt_samples=3)[0, 0, 0]


@section
def perturbations():
    model, data = net(), x()
    return [
        FeatureAblation(model).attribute(data, target=0)[0, 0, 0],
        Occlusion(model).attribute(data, sliding_window_shapes=(1, 2, 2), target=0)[0, 0, 0],
    ]


@section
def shapley():
    model, data = torch.nn.Linear(4, 2), torch.randn(1, 4)
    return [
        ShapleyValueSampling(model).attribute(data, target=0, n_samples=4),
        KernelShap(model).attribute(data, target=1, n_samples=30),
    ]


@section
def layers():
    model, data = net(), x()
    return [
        LayerConductance(model, model[3]).attribute(data, target=0, n_steps=8),
        LayerGradCam(model, model[0]).attribute(data, target=1)[0, 0, 0],
        LayerIntegratedGradients(model, model[3]).attribute(data, target=0, n_steps=8),
        NeuronGradient(model, model[3]).attribute(data, neuron_selector=1)[0, 0, 0],
    ]


main()
