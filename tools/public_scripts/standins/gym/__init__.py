"""gym as gymnasium, with environments whose first reset is seeded, so that runs can be compared."""

import gymnasium
from gymnasium import *  # noqa: F403


def make(name, **options):
    env = gymnasium.make(name, **options)
    env.reset(seed=0)
    env.action_space.seed(0)
    return env
