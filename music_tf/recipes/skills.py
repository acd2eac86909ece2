"""Skills that can be told apart, alone and after MUSIC."""

import dataclasses
import math
from typing import Literal

from music_tf.config.fields import with_fields
from music_tf.config.settings import (
    Config,
    EvaluationConfig,
    ExplorationConfig,
    ReplayConfig,
    SacConfig,
    SkillConfig,
    Source,
    TaskConfig,
)
from music_tf.recipes import Preset
from music_tf.recipes.music import sac_music_skills

_PICK, _SLIDE = "FetchPickAndPlace-v4", "FetchSlide-v4"
_SKILLS = 5
_PARTS = ("actor", "critic", "targets")


def sac_diayn(preset: Literal["laptop", "paper", "music"], env_id: str = _PICK) -> Config:
    """Five skills that can be told apart by where the object is, without any task reward.

    Diversity is all you need (arXiv:1802.06070) as the MUSIC release (arXiv:2103.08107) has it
    (presets `paper` and `music`): the discriminator sees the object alone, at the state before the
    action, the reward is half its log-likelihood in [-1, 0] without the prior, goals are zero but
    hindsight relabels four of five of them. The preset `laptop` is nearer to the DIAYN paper:
    entropy in targets and actor, the state after the action, the prior subtracted; and it has a
    discriminator too small to know episodes by heart.
    """
    entropy_scale = 0.03 if env_id == _SLIDE else 0.02
    released = Config(
        env_id=env_id,
        goals="zero",
        skills=_SKILLS,
        agent=SacConfig(entropy_scale=entropy_scale),
        rewards={"skill": SkillConfig()},
        replay=ReplayConfig(relabel_k=4.0),
        evaluation=EvaluationConfig(episodes=320),
    )
    if preset != "laptop":
        return released
    return dataclasses.replace(
        released,
        workers=4,
        epochs=60,
        cycles=20,
        lost_object="absorb",
        agent=SacConfig(
            polyak=0.995,
            polyak_every="update",
            action_l2=0.0,
            entropy_mode="next_state",
            entropy_scale=entropy_scale,
            actor_entropy=True,
            learn_temperature=True,
            next_action="main",
        ),
        rewards={
            "skill": SkillConfig(
                scale=1.0,
                clip=(0.0, math.inf),
                state="next",
                subtract_prior=True,
                normalize_inputs=True,
                hidden_sizes=(32, 32),
            )
        },
        replay=ReplayConfig(batch_size=64),
        exploration=ExplorationConfig(sample=True, noise=0.0),
        evaluation=EvaluationConfig(episodes=40),
    )


def sac_diayn_finetune(preset: Preset, env_id: str = _PICK) -> Config:
    """The task reward for an agent of `sac_diayn`, held to its first skill; no hindsight.

    As the MUSIC release (arXiv:2103.08107) fine-tunes DIAYN: actor, critic and target networks come
    from a run of `sac_diayn` on the same environment, one pinned skill is its input throughout,
    and the entropy weighs more than in pre-training. The preset `laptop` fits runs of that preset.
    """
    before = sac_diayn(preset, env_id)
    task = dataclasses.replace(
        before, goals="environment", rewards={"task": TaskConfig()}, pinned_skill=0
    )
    if preset == "paper":
        return dataclasses.replace(
            task,
            agent=with_fields(before.agent, {"entropy_weight": ((0.0, 0.5),)}),
            replay=ReplayConfig(),
            start=Source("sac_diayn", _PARTS),
        )
    start = Source("sac_diayn", (*_PARTS, "normalizer"))
    return dataclasses.replace(task, lost_object="continue", start=start)


def sac_finetune_skill(preset: Preset, env_id: str = _PICK) -> Config:
    """The task reward for an agent of `sac_diayn`, held to the skill that is best at the task.

    As the authors of DIAYN use skills (arXiv:1802.06070): each is tried in ten episodes, the one
    with the highest return is the input throughout, and actor, critic and targets go on from there.
    `--best-of` says how many episodes, `--pinned-skill` another skill. All else is as in
    `sac_diayn_finetune`.
    """
    task = sac_diayn_finetune(preset, env_id)
    start = Source("sac_diayn", _PARTS) if task.start is None else task.start
    return dataclasses.replace(task, pinned_skill=None, start=start._replace(best_of=10))


def sac_music_diayn(preset: Preset, env_id: str = _PICK) -> Config:
    """MUSIC first, then the reward of `sac_diayn`: control of the object, then skills in using it.

    As released (arXiv:2103.08107): `sac_diayn` that starts from actor, critic and target networks
    of a run of `sac_music_skills`; mutual information is no longer rewarded. The release leaves
    the running statistics behind.

    `laptop` keeps agent, exploration and horizon of the run that it starts from, but for the action
    penalty, and brings its statistics of observations and its statistics network along. Mutual
    information goes on being learned and counts at 0.3 of its weight: without it the object is let
    go before the discriminator has found anything to tell skills by.
    """
    alone = sac_diayn(preset, env_id)
    if preset == "paper":
        return dataclasses.replace(alone, start=Source("sac_music_skills", _PARTS))
    before = sac_music_skills(preset, env_id)
    quieter = with_fields(before, {"music.weight": ((0.0, 0.3),), "agent.action_l2": 0.0})
    return dataclasses.replace(
        quieter,
        rewards={**quieter.rewards, **alone.rewards},
        start=Source("sac_music_skills", (*_PARTS, "normalizer", "statistics")),
    )
