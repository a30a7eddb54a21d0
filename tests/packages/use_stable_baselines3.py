import gymnasium
import numpy as np
from harness import main, section
from stable_baselines3 import A2C, DQN, PPO, SAC


def weights(model):
    return [float(p.detach().abs().sum()) for p in list(model.policy.parameters())[:3]]


@section
def ppo():
    model = PPO("MlpPolicy", "CartPole-v1", n_steps=32, batch_size=16, n_epochs=2, seed=0, device="cpu").learn(64)
    return [weights(model), model.predict(np.zeros(4, np.float32), deterministic=True)[0]]


@section
def a2c():
    return weights(A2C("MlpPolicy", "CartPole-v1", seed=0, device="cpu").learn(20))


@section
def dqn():
    return weights(DQN("MlpPolicy", "CartPole-v1", learning_starts=10, buffer_size=100, seed=0, device="cpu").learn(40))


@section
def sac():
    environment = gymnasium.make("Pendulum-v1")
    return weights(SAC("MlpPolicy", environment, learning_starts=5, buffer_size=100, batch_size=8, seed=0).learn(15))


main()
