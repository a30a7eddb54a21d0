"""Policy gradient (REINFORCE): a paddle learns to catch a falling ball."""

import argparse
import random
from collections import deque

import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.optim as optim
from torch.distributions import Categorical


class Catch:
    """A ball falls down a board of 4 rows and 3 columns; reward 1 if the paddle is under it at the end, else -1."""

    rows, columns = 4, 3

    def __init__(self, seed):
        self.random = random.Random(seed)

    def reset(self):
        self.row, self.ball, self.paddle = 0, self.random.randrange(self.columns), self.columns // 2
        return self._state()

    def step(self, action):
        self.paddle = min(max(self.paddle + action - 1, 0), self.columns - 1)
        self.row += 1
        done = self.row == self.rows - 1
        reward = (1.0 if self.paddle == self.ball else -1.0) if done else 0.0
        return self._state(), reward, done

    def _state(self):
        """The board as the policy sees it: the columns of ball and paddle, marked."""
        board = [0.0] * (2 * self.columns)
        board[self.ball] = board[self.columns + self.paddle] = 1.0
        return board


class Policy(nn.Module):
    def __init__(self):
        super().__init__()
        self.affine1 = nn.Linear(6, 32)
        self.affine2 = nn.Linear(32, 3)
        self.saved_log_probs, self.rewards = [], []

    def forward(self, x):
        return F.softmax(self.affine2(F.relu(self.affine1(x))), dim=1)


def select_action(policy, state):
    probs = policy(torch.tensor(state).float().unsqueeze(0))
    m = Categorical(probs)
    action = m.sample()
    policy.saved_log_probs.append(m.log_prob(action))
    return action.item()


def finish_episode(policy, optimizer, gamma, baseline):
    R, returns = 0, deque()
    for r in policy.rewards[::-1]:
        R = r + gamma * R
        returns.appendleft(R)
    returns = torch.tensor(returns) - baseline
    policy_loss = torch.cat([-log_prob * R for log_prob, R in zip(policy.saved_log_probs, returns)]).sum()
    optimizer.zero_grad()
    policy_loss.backward()
    optimizer.step()
    policy.rewards.clear()
    policy.saved_log_probs.clear()
    return policy_loss.item()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--gamma", type=float, default=0.95)
    parser.add_argument("--episodes", type=int, default=500)
    parser.add_argument("--seed", type=int, default=2)
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    env, policy = Catch(args.seed), Policy()
    optimizer = optim.Adam(policy.parameters(), lr=2e-2)

    running_reward = 0.0
    for episode in range(1, args.episodes + 1):
        state, done = env.reset(), False
        while not done:
            state, reward, done = env.step(select_action(policy, state))
            policy.rewards.append(reward)
        running_reward = 0.02 * sum(policy.rewards) + 0.98 * running_reward
        loss = finish_episode(policy, optimizer, args.gamma, running_reward)
        if episode % 50 == 0:
            print(f"episode {episode}: loss {loss:.4f}, average reward {running_reward:.4f}")


if __name__ == "__main__":
    main()
