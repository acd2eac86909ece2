"""What MUSIC gives to a task: a policy to start from, a reward, an order of replay.

The release (arXiv:2103.08107) does all of it without hindsight. A recipe whose name ends in `_her`
is a control of ours. It is `ddpg_her` or `sac_her` in all other settings, so that the two differ by
what MUSIC gives.
"""

import dataclasses
from collections.abc import Mapping

from music_tf.config.fields import with_fields
from music_tf.config.settings import Config, Source
from music_tf.config.terms import TaskConfig
from music_tf.recipes import Preset
from music_tf.recipes.music import ddpg_music
from music_tf.recipes.tasks import ddpg, ddpg_her, sac, sac_her

_REACH, _PUSH = "FetchReach-v4", "FetchPush-v4"
_PICK, _SLIDE = "FetchPickAndPlace-v4", "FetchSlide-v4"
_PARTS = ("actor", "critic", "targets")


def ddpg_her_fast(preset: Preset, env_id: str = _PUSH) -> Config:
    """Hindsight relabelling after some epochs of MUSIC: learns to push and to pick in minutes.

    A policy that has never moved the object learns little from hindsight, whose goals are then
    those of a resting object. So the first epochs are paid by the mutual information between robot
    and object (MUSIC, arXiv:2103.08107), which moves it within two to six epochs. Then weight
    shifts linearly to the task's own reward. Goals are relabelled in hindsight (arXiv:1707.01495)
    all along, and random actions are held for some steps, as in `ddpg_music`. It is one run with
    one replay buffer, so that its time counts the pre-training. Once its weight is zero for good,
    the statistics network is neither trained nor computed. Its step size is 1e-3, with which the
    shift to the task was chosen. `laptop` has two critics and 160 updates a cycle. On FetchReach
    there is no object to move: no such phase, and 40 updates of one critic. All else is as in
    `ddpg_her`.
    """
    config = ddpg_her(preset, env_id)
    laptop, reach = preset == "laptop", env_id == _REACH
    if laptop:
        epochs = {_REACH: 10, _PUSH: 20, _PICK: 30, _SLIDE: 30}.get(env_id, 40)
        config = dataclasses.replace(config, epochs=epochs, updates=40 if reach else 160)
    if reach:
        return config
    begin, end = {_PUSH: (3.0, 5.0), _PICK: (8.0, 12.0), _SLIDE: (3.0, 6.0)}.get(
        env_id, (5.0, 10.0)
    )
    both = {"task": TaskConfig(), **ddpg_music("laptop", env_id).rewards}
    weight = both["music"].unit_weight
    changes = {
        "task.weight": ((0.0, 0.0), (begin, 0.0), (end, 1.0)),
        "music.weight": ((0.0, weight), (begin, weight), (end, 0.0)),
        "music.learning_rate": 1e-3,
        "exploration.random_hold": 4.0,
    }
    if laptop:
        changes["agent.critics"] = 2
    return with_fields(dataclasses.replace(config, rewards=both), changes)


def ddpg_music_finetune(preset: Preset, env_id: str = _PUSH) -> Config:
    """DDPG on the task reward, from the policy of a run of MUSIC: "MUSIC-f".

    Fine-tuning of arXiv:2103.08107 (its release): actor, critic and targets of `ddpg_music` go on
    learning under the task's goals and reward, without hindsight. The release leaves the running
    statistics behind; `laptop` brings those of observations along. On FetchSlide the release starts
    from a run of 13 epochs.
    """
    return _finetuned(preset, ddpg(preset, env_id), "ddpg_music", _PARTS, published=True)


def ddpg_music_finetune_her(preset: Preset, env_id: str = _PUSH) -> Config:
    """DDPG with hindsight relabelling, from the policy of a run of MUSIC."""
    return _finetuned(preset, ddpg_her(preset, env_id), "ddpg_music", _PARTS)


def sac_music_finetune(preset: Preset, env_id: str = _PUSH) -> Config:
    """The released "SAC" on the task reward, from the policy of a run of MUSIC: "MUSIC-f".

    As `ddpg_music_finetune`, from a run of `sac_music`, and with the larger weight of the entropy
    offset that the release gives to fine-tuning.
    """
    config = with_fields(sac(preset, env_id), {"agent.entropy_weight": ((0.0, 0.5),)})
    return _finetuned(preset, config, "sac_music", _PARTS, published=True)


def sac_music_finetune_her(preset: Preset, env_id: str = _PUSH) -> Config:
    """Soft actor-critic with hindsight relabelling, from the policy of a run of MUSIC.

    `sac_her` has two critics of soft values and `sac_music` one of another kind, so that only the
    actor is taken over.
    """
    return _finetuned(preset, sac_her(preset, env_id), "sac_music", ("actor",))


def ddpg_music_reward(preset: Preset, env_id: str = _PUSH) -> Config:
    """DDPG on the task reward, with mutual information as an added reward: "MUSIC-r".

    Of arXiv:2103.08107 (its release): the statistics network of a run of `ddpg_music`, frozen, pays
    beside the task, at half the weight on FetchSlide. No hindsight.
    """
    return _rewarded(preset, ddpg(preset, env_id), "ddpg_music")


def ddpg_music_reward_her(preset: Preset, env_id: str = _PUSH) -> Config:
    """DDPG with hindsight, with mutual information as an added reward."""
    return _rewarded(preset, ddpg_her(preset, env_id), "ddpg_music")


def sac_music_reward(preset: Preset, env_id: str = _PUSH) -> Config:
    """The released "SAC" on the task reward, with mutual information as an added reward: "MUSIC-r".

    As `ddpg_music_reward`, with the statistics network of a run of `sac_music`.
    """
    return _rewarded(preset, sac(preset, env_id), "sac_music")


def sac_music_reward_her(preset: Preset, env_id: str = _PUSH) -> Config:
    """Soft actor-critic with hindsight, with mutual information as an added reward."""
    return _rewarded(preset, sac_her(preset, env_id), "sac_music")


def ddpg_music_transfer(preset: Preset, env_id: str = _PUSH) -> Config:
    """DDPG on the task reward, with the mutual information of another environment added: "MUSIC-t".

    As `ddpg_music_reward`, but the statistics network comes from a run on FetchPickAndPlace, as
    released for FetchPush and FetchSlide (arXiv:2103.08107). Any run on positions of as many
    components serves.
    """
    start = Source("ddpg_music", ("statistics",), env_id=_PICK)
    return dataclasses.replace(ddpg_music_reward(preset, env_id), start=start)


def ddpg_music_prioritized(preset: Preset, env_id: str = _PUSH) -> Config:
    """DDPG on the task reward, replaying episodes by their mutual information: "MUSIC-p".

    Prioritised replay of arXiv:2103.08107 (its release): the frozen statistics network of a run of
    `ddpg_music` measures each new episode. Actor and critic learn from episodes drawn by the dense
    rank of that. It pays no reward: its weight is 0. No hindsight.
    """
    return _prioritized(preset, ddpg(preset, env_id), "ddpg_music")


def ddpg_music_prioritized_her(preset: Preset, env_id: str = _PUSH) -> Config:
    """DDPG with hindsight, replaying episodes by their mutual information."""
    return _prioritized(preset, ddpg_her(preset, env_id), "ddpg_music")


def sac_music_prioritized(preset: Preset, env_id: str = _PUSH) -> Config:
    """The released "SAC" on the task, replaying episodes by their mutual information: "MUSIC-p".

    As `ddpg_music_prioritized`, with the statistics network of a run of `sac_music`.
    """
    return _prioritized(preset, sac(preset, env_id), "sac_music")


def sac_music_prioritized_her(preset: Preset, env_id: str = _PUSH) -> Config:
    """Soft actor-critic with hindsight, replaying episodes by their mutual information."""
    return _prioritized(preset, sac_her(preset, env_id), "sac_music")


def _finetuned(
    preset: Preset, config: Config, source: str, parts: tuple[str, ...], published: bool = False
) -> Config:
    """Starts from a policy; the release leaves its running statistics behind."""
    if preset == "laptop":
        start = Source(source, (*parts, "normalizer"))
        return with_fields(dataclasses.replace(config, start=start), {"agent.critics": 2})
    epochs = 13 if published and config.env_id == _SLIDE else None
    return dataclasses.replace(config, start=Source(source, parts, epochs=epochs))


def _rewarded(preset: Preset, config: Config, source: str) -> Config:
    """Adds the reward of a statistics network that learns no more."""
    music = ddpg_music(preset, config.env_id).rewards["music"]
    weight = (0.5 if config.env_id == _SLIDE else 1.0) * music.unit_weight
    changes = {"music.weight": ((0.0, weight),)} if weight < 1.0 else {}
    return _with_frozen_music(preset, config, source, changes)


def _prioritized(preset: Preset, config: Config, source: str) -> Config:
    """Draws episodes by what a statistics network that learns no more sees in them."""
    measured = {"music.weight": ((0.0, 0.0),), "replay.priority": "music"}
    return _with_frozen_music(preset, config, source, measured)


def _with_frozen_music(
    preset: Preset, config: Config, source: str, changes: Mapping[str, object]
) -> Config:
    both = {**config.rewards, **ddpg_music(preset, config.env_id).rewards}
    frozen = dataclasses.replace(config, rewards=both, start=Source(source, ("statistics",)))
    return with_fields(frozen, {"music.train": False, **changes})
