"""Experience replay of episodes, steps or tasks, with hindsight goals."""
