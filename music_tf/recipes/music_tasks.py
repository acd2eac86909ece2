"""Uses of MUSIC in a task: a policy for a warm start, an added reward, priorities of replay.

The release (arXiv:2103.08107) has no hindsight in any of them. A recipe whose name ends in `_her`
is our variant with hindsight. All its other settings are those of `ddpg_her` or `sac_her`, so that
the two differ by the use of MUSIC alone.
"""

import dataclasses
from collections.abc import Mapping

from music_tf.config.fields import with_fields
from music_tf.config.names import FETCH_PICK, FETCH_PUSH, FETCH_REACH, FETCH_SLIDE, episode_steps
from music_tf.config.settings import Config
from music_tf.config.terms import TaskConfig
from music_tf.config.warm_start import AGENT_PARTS, Source
from music_tf.recipes import Preset
from music_tf.recipes.music import ddpg_music, sac_music
from music_tf.recipes.tasks import ddpg, ddpg_her, sac, sac_her


def ddpg_her_fast(preset: Preset, env_id: str = FETCH_PUSH) -> Config:
    """Hindsight after MUSIC: pushes or picks in minutes.

    A policy that has never moved the object learns little from hindsight, because all relabelled
    goals are then those of a resting object. So mutual information is rewarded first, then the
    task, in one run with one replay. The statistics network has the step size with which
    the schedule was chosen. FetchReach has no object, and no such phase.
    """
    config = ddpg_her(preset, env_id)
    laptop, reach = preset == "laptop", env_id == FETCH_REACH
    if laptop:
        epochs = {FETCH_REACH: 10, FETCH_PUSH: 20, FETCH_PICK: 20, FETCH_SLIDE: 30}.get(env_id, 40)
        config = dataclasses.replace(config, epochs=epochs, updates=40 if reach else 160)
    if reach:
        return config
    by, begin, end, latest = {
        FETCH_PUSH: ("epoch", 3.0, 5.0, None),
        FETCH_PICK: ("lifted", 0.4, 0.55, 12),  # shares of training episodes
        FETCH_SLIDE: ("epoch", 3.0, 6.0, None),
    }.get(env_id, ("epoch", 5.0, 10.0, None))
    both = {"task": TaskConfig(), **ddpg_music("laptop", env_id).rewards}
    weight = both["music"].unit_weight
    changes = {
        "task.weight": ((0.0, 0.0), (begin, 0.0), (end, 1.0)),
        "music.weight": ((0.0, weight), (begin, weight), (end, 0.0)),
        "music.learning_rate": 1e-3,
        "exploration.random_hold": 4.0,
    }
    for name in both:
        changes |= {f"{name}.weight_by": by, f"{name}.weight_latest": latest}
    if laptop:
        changes["agent.critics"] = 2
    return with_fields(dataclasses.replace(config, rewards=both), changes)


def ddpg_music_finetune(preset: Preset, env_id: str = FETCH_PUSH) -> Config:
    """MUSIC-f: the task, from the policy of a MUSIC run.

    The running statistics of observations are new in the release; `laptop` loads them too. On tasks
    without goals it is `ddpg` with the network sizes of `ddpg_music`, without random steps.
    """
    config = _on_networks_of(ddpg_music(preset, env_id), ddpg(preset, env_id))
    return _finetuned(preset, config, "ddpg_music", AGENT_PARTS, published=True)


def ddpg_music_finetune_her(preset: Preset, env_id: str = FETCH_PUSH) -> Config:
    """Hindsight, from the policy of a MUSIC run."""
    return _finetuned(preset, ddpg_her(preset, env_id), "ddpg_music", AGENT_PARTS)


def sac_music_finetune(preset: Preset, env_id: str = FETCH_PUSH) -> Config:
    """MUSIC-f with a stochastic actor.

    The released "SAC", with the larger weight of the entropy offset that the release gives to
    fine-tuning. On tasks without goals only the actor is loaded, as in `sac_music_finetune_her`.
    """
    config = with_fields(sac(preset, env_id), {"agent.entropy_weight": ((0.0, 0.5),)})
    config = _on_networks_of(sac_music(preset, env_id), config)
    parts = AGENT_PARTS if config.collect.steps is None else ("actor",)
    return _finetuned(preset, config, "sac_music", parts, published=True)


def sac_music_finetune_her(preset: Preset, env_id: str = FETCH_PUSH) -> Config:
    """SAC with hindsight, from the policy of a MUSIC run.

    Critics of `sac_her` estimate soft values, those of `sac_music` do not: they are not loaded.
    """
    return _finetuned(preset, sac_her(preset, env_id), "sac_music", ("actor",))


def ddpg_music_reward(preset: Preset, env_id: str = FETCH_PUSH) -> Config:
    """MUSIC-r: the task, with mutual information added."""
    return _rewarded(preset, ddpg(preset, env_id), "ddpg_music")


def ddpg_music_reward_her(preset: Preset, env_id: str = FETCH_PUSH) -> Config:
    """Hindsight, with mutual information added."""
    return _rewarded(preset, ddpg_her(preset, env_id), "ddpg_music")


def sac_music_reward(preset: Preset, env_id: str = FETCH_PUSH) -> Config:
    """MUSIC-r with a stochastic actor."""
    return _rewarded(preset, sac(preset, env_id), "sac_music")


def sac_music_reward_her(preset: Preset, env_id: str = FETCH_PUSH) -> Config:
    """SAC with hindsight and mutual information."""
    return _rewarded(preset, sac_her(preset, env_id), "sac_music")


def ddpg_music_transfer(preset: Preset, env_id: str = FETCH_PUSH) -> Config:
    """MUSIC-t: MUSIC-r with the network of another task.

    Any environment will do in which robot and surroundings have the same columns.
    """
    start = Source("ddpg_music", ("statistics",), env_id=FETCH_PICK)
    return dataclasses.replace(ddpg_music_reward(preset, env_id), start=start)


def ddpg_music_prioritized(preset: Preset, env_id: str = FETCH_PUSH) -> Config:
    """MUSIC-p: the task, replayed by mutual information.

    The network's reward has weight 0. Tasks without goals are collected by episodes, with
    as many updates for each step; an unknown environment counts as having episodes of 1000 steps.
    """
    return _prioritized(preset, ddpg(preset, env_id), "ddpg_music")


def ddpg_music_prioritized_her(preset: Preset, env_id: str = FETCH_PUSH) -> Config:
    """Hindsight, replayed by mutual information."""
    return _prioritized(preset, ddpg_her(preset, env_id), "ddpg_music")


def sac_music_prioritized(preset: Preset, env_id: str = FETCH_PUSH) -> Config:
    """MUSIC-p with a stochastic actor."""
    return _prioritized(preset, sac(preset, env_id), "sac_music")


def sac_music_prioritized_her(preset: Preset, env_id: str = FETCH_PUSH) -> Config:
    """SAC with hindsight, replayed by information."""
    return _prioritized(preset, sac_her(preset, env_id), "sac_music")


def _finetuned(
    preset: Preset, config: Config, source: str, parts: tuple[str, ...], published: bool = False
) -> Config:
    """Adds a warm start from a policy; only `laptop` also loads its running statistics."""
    if preset == "laptop":
        start = Source(source, (*parts, "normalizer"))
        return with_fields(dataclasses.replace(config, start=start), {"agent.critics": 2})
    epochs = 13 if published and config.env_id == FETCH_SLIDE else None
    return dataclasses.replace(config, start=Source(source, parts, epochs=epochs))


def _rewarded(preset: Preset, config: Config, source: str) -> Config:
    music = ddpg_music(preset, config.env_id).rewards["music"]
    weight = (0.5 if config.env_id == FETCH_SLIDE else 1.0) * music.unit_weight
    changes = {"music.weight": ((0.0, weight),)} if weight < 1.0 else {}
    return _with_frozen_music(preset, config, source, changes)


def _prioritized(preset: Preset, config: Config, source: str) -> Config:
    measured: dict[str, object] = {"music.weight": ((0.0, 0.0),), "replay.priority": "music"}
    steps = config.collect.steps
    if steps is not None:  # a task without goals
        episodes = steps * config.cycles // episode_steps(config.env_id)
        measured |= {"collect.steps": None, "cycles": episodes, "replay.draw": "episodes"}
    return _with_frozen_music(preset, config, source, measured)


def _on_networks_of(music: Config, config: Config) -> Config:
    """Gives a task without goals the networks of a run of MUSIC, which act from the first step."""
    if config.collect.steps is None:
        return config
    shape = {"hidden_sizes", "linear_features"} & vars(music.agent).keys()
    same = {f"agent.{name}": getattr(music.agent, name) for name in shape}
    return with_fields(config, {**same, "collect.random_steps": 0})


def _with_frozen_music(
    preset: Preset, config: Config, source: str, changes: Mapping[str, object]
) -> Config:
    both = {**config.rewards, **ddpg_music(preset, config.env_id).rewards}
    frozen = dataclasses.replace(config, rewards=both, start=Source(source, ("statistics",)))
    return with_fields(frozen, {"music.train": False, **changes})
