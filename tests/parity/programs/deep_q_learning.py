"""Deep Q-learning with a replay memory and a slowly moving target."""

import math
import random
from collections import deque, namedtuple
from itertools import count

import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.optim as optim

random.seed(0)
torch.manual_seed(0)
Transition = namedtuple("Transition", ("state", "action", "next_state", "reward"))


class ReplayMemory:
    def __init__(self, c):
        self.memory = deque(maxlen=c)

    def push(self, *a):
        self.memory.append(Transition(*a))

    def sample(self, n):
        return random.sample(self.memory, n)

    def __len__(self):
        return len(self.memory)


class Env:
    def reset(self):
        self.x = random.randint(2, 6)
        self.t = 0
        return [float(self.x), 1.0]

    def step(self, a):
        self.x += 1 if a else -1
        self.t += 1
        done = self.x in (0, 8) or self.t > 20
        return [float(self.x), 1.0], 1.0 if self.x == 8 else 0.0, done


class DQN(nn.Module):
    def __init__(self, n, m):
        super().__init__()
        self.layer1 = nn.Linear(n, 32)
        self.layer2 = nn.Linear(32, 32)
        self.layer3 = nn.Linear(32, m)

    def forward(self, x):
        return self.layer3(F.relu(self.layer2(F.relu(self.layer1(x)))))


policy, target = DQN(2, 2), DQN(2, 2)
target.load_state_dict(policy.state_dict())
opt = optim.AdamW(policy.parameters(), lr=1e-2, amsgrad=True)
memory = ReplayMemory(500)
steps = 0


def select(state):
    global steps
    eps = 0.05 + 0.85 * math.exp(-steps / 100)
    steps += 1
    if random.random() > eps:
        with torch.no_grad():
            return policy(state).max(1).indices.view(1, 1)
    return torch.tensor([[random.randrange(2)]], dtype=torch.long)


def optimize():
    if len(memory) < 32:
        return None
    batch = Transition(*zip(*memory.sample(32)))
    mask = torch.tensor(tuple(map(lambda s: s is not None, batch.next_state)), dtype=torch.bool)
    nf = torch.cat([s for s in batch.next_state if s is not None])
    s, a, r = torch.cat(batch.state), torch.cat(batch.action), torch.cat(batch.reward)
    q = policy(s).gather(1, a)
    nv = torch.zeros(32)
    with torch.no_grad():
        nv[mask] = target(nf).max(1).values
    loss = nn.SmoothL1Loss()(q, (nv * 0.95 + r).unsqueeze(1))
    opt.zero_grad()
    loss.backward()
    torch.nn.utils.clip_grad_value_(policy.parameters(), 100)
    opt.step()
    return loss.item()


env = Env()
total = 0
for ep in range(25):
    state = torch.tensor(env.reset(), dtype=torch.float32).unsqueeze(0)
    l = None
    for t in count():
        a = select(state)
        obs, r, done = env.step(a.item())
        reward = torch.tensor([r])
        total += r
        nxt = None if done else torch.tensor(obs, dtype=torch.float32).unsqueeze(0)
        memory.push(state, a, nxt, reward)
        state = nxt
        l = optimize()
        tsd, psd = target.state_dict(), policy.state_dict()
        for k in psd:
            tsd[k] = psd[k] * 0.05 + tsd[k] * 0.95
        target.load_state_dict(tsd)
        if done:
            break
    if ep % 8 == 0:
        print(ep, t, total, None if l is None else round(l, 4))
