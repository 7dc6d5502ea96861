"""Proximal policy optimisation (PPO) learns to balance the pole of CartPole-v1.

Run: python examples/ppo.py

What the old policy did is data, not graph: it is gathered under no_grad. What gathering it with
a graph would hold, and the error that follows, is measured first.
"""

import time

import gymnasium
import torch
from common import SavedBytes, arguments, error_of, kib, save_losses
from torch import nn
from torch.distributions import Categorical

ENVS, LENGTH, EPOCHS, MINIBATCH = 8, 256, 8, 256
DISCOUNT, TRACE, CLIP, ENTROPY, REWARD = 0.99, 0.95, 0.2, 0.01, 0.1


class Policy(nn.Module):
    """Two networks on the state: what to do, and how much reward to expect."""

    def __init__(self):
        super().__init__()
        self.actor = self.network(2)
        self.critic = self.network(1)
        with torch.no_grad():
            self.actor[-1].weight.mul_(0.01)  # to start with, both actions are equally likely

    @staticmethod
    def network(outputs):
        return nn.Sequential(
            nn.Linear(4, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, outputs)
        )

    def forward(self, states):
        return Categorical(logits=self.actor(states)), self.critic(states).squeeze(-1)


class CartPoles:
    """Several CartPoles side by side; one that ends starts again at once."""

    def __init__(self, count, seed):
        self.envs = [gymnasium.make("CartPole-v1") for _ in range(count)]
        self.states = [env.reset(seed=seed + i)[0].tolist() for i, env in enumerate(self.envs)]
        self.lengths = [0] * count
        self.finished = []  # the lengths, which are the returns, of the episodes that ended

    def step(self, actions):
        """Act in each; return the states reached, which poles fell, and which episodes ended."""
        reached, fell, ended = [], [], []
        for i, (env, action) in enumerate(zip(self.envs, actions.tolist(), strict=True)):
            state, _, terminated, truncated, _ = env.step(action)
            reached.append(state.tolist())
            fell.append(terminated)
            ended.append(terminated or truncated)
            self.lengths[i] += 1
            if ended[i]:
                self.finished.append(self.lengths[i])
                self.lengths[i] = 0
                state, _ = env.reset()
            self.states[i] = state.tolist()
        return torch.tensor(reached), torch.tensor(fell), torch.tensor(ended)


def gather(policy, poles, length):
    """Play `length` steps; return the states, actions, log-probabilities, values and outcomes."""
    steps = []
    for _ in range(length):
        states = torch.tensor(poles.states)
        actor, values = policy(states)
        actions = actor.sample()
        steps.append((states, actions, actor.log_prob(actions), values, *poles.step(actions)))
    return [torch.stack(column) for column in zip(*steps, strict=True)]


def advantages(policy, values, reached, fell, ended):
    """Generalised advantage estimation (Schulman et al. 2016, arXiv 1506.02438, eq. 16)."""
    # An episode cut by its time limit would have gone on: only a fallen pole is worth nothing.
    next_values = policy(reached)[1] * ~fell
    surprise = REWARD + DISCOUNT * next_values - values
    result, running = torch.zeros_like(values), torch.zeros(values.shape[1])
    for t in reversed(range(len(values))):
        running = surprise[t] + DISCOUNT * TRACE * ~ended[t] * running
        result[t] = running
    return result


def ppo_loss(policy, states, actions, old_log_probs, advantage, returns):
    """The clipped objective (Schulman et al. 2017, arXiv 1707.06347, eq. 7 and 9)."""
    actor, values = policy(states)
    ratio = (actor.log_prob(actions) - old_log_probs).exp()
    advantage = (advantage - advantage.mean()) / (advantage.std() + 1e-8)
    gain = torch.min(ratio * advantage, ratio.clamp(1 - CLIP, 1 + CLIP) * advantage).mean()
    return (values - returns).pow(2).mean() - gain - ENTROPY * actor.entropy().mean()


def improve(policy, optimizer, data):
    """Some epochs of minibatches over the gathered data; return the losses."""
    losses = []
    for _ in range(EPOCHS):
        for batch in torch.randperm(len(data[0])).split(MINIBATCH):
            loss = ppo_loss(policy, *(column[batch] for column in data))
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(policy.parameters(), 0.5)
            optimizer.step()
            losses.append(loss.item())
    return losses


@torch.no_grad()
def evaluate(policy, episodes, seed):
    """The mean return of `episodes` episodes, the likelier action taken each time."""
    poles = CartPoles(episodes, seed)
    first = [None] * episodes
    while None in first:
        actions = policy.actor(torch.tensor(poles.states)).argmax(1)
        lengths = [length + 1 for length in poles.lengths]
        _, _, ended = poles.step(actions)
        for i in ended.nonzero().flatten().tolist():
            first[i] = first[i] or lengths[i]
    return sum(first) / episodes


def show_why_detached(args):
    """Measure the graph that the old policy's data would hold, and the error it leads to."""
    policy, poles = Policy(), CartPoles(ENVS, args.seed)
    with SavedBytes(leave_out=policy.parameters()) as saved:
        states, actions, log_probs, _, _, _, _ = gather(policy, poles, LENGTH)
    print(f"{LENGTH} steps gathered with a graph hold {kib(saved.held)}; ", end="")

    def two_passes(log_probs):
        for _ in range(2):
            (policy(states)[0].log_prob(actions) - log_probs).exp().mean().backward()

    attached = error_of(lambda: two_passes(log_probs))
    del log_probs
    with SavedBytes(leave_out=policy.parameters()) as saved, torch.no_grad():
        states, actions, log_probs, _, _, _, _ = gather(policy, poles, LENGTH)
    print(f"under no_grad {kib(saved.held)}")
    print("Two passes over data gathered with a graph:", attached)
    print("Two passes over data gathered under no_grad:", error_of(lambda: two_passes(log_probs)))


def main():
    args = arguments(__doc__, iterations=60, episodes=100)
    torch.manual_seed(args.seed)
    show_why_detached(args)

    policy, poles = Policy(), CartPoles(ENVS, args.seed)
    optimizer = torch.optim.Adam(policy.parameters(), lr=1e-3)
    losses, start = [], time.perf_counter()
    for iteration in range(1, args.iterations + 1):
        with torch.no_grad():
            states, actions, log_probs, values, *outcome = gather(policy, poles, LENGTH)
            advantage = advantages(policy, values, *outcome)
        data = (states, actions, log_probs, advantage, advantage + values)
        losses += improve(policy, optimizer, [column.flatten(0, 1) for column in data])

        recent = poles.finished[-50:]
        mean = sum(recent) / max(len(recent), 1)
        print(f"{iteration * ENVS * LENGTH:7} steps: mean return of the last episodes {mean:.1f}")
        if mean > 490:
            break
    print(f"trained for {time.perf_counter() - start:.0f} s")
    mean = evaluate(policy, args.episodes, seed=args.seed + 1000)
    print(f"mean return over {args.episodes} evaluation episodes: {mean:.1f} of 500")
    save_losses(args, losses[:100])


if __name__ == "__main__":
    main()
