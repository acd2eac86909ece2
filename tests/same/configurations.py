"""The runs that the net compares: small, and together every learner, reward and way of replay."""

import dataclasses

RENAMED_OPTIONS = {}
"""Options that the working tree calls by another name than the commit it is compared with."""

_REDUCE = "--agent.gradient-reduce"
_POINT = (
    *("--env-id", "music_tf/PointPush-v0", "--workers", "2", "--rollouts", "2", "--cycles", "2"),
    *("--updates", "3", "--threads", "1", "--agent.hidden-sizes", "16", "16"),
    *("--replay.batch-size", "32", "--evaluation.episodes", "5"),
)
_PUSH = (
    *("--env-id", "FetchPush-v4", "--workers", "2", "--rollouts", "1", "--cycles", "1"),
    *("--updates", "3", "--threads", "1", "--seed", "4", "--agent.hidden-sizes", "16", "16"),
    *("--replay.batch-size", "32", "--evaluation.episodes", "2", _REDUCE, "sum"),
)
_MUSIC = ("--music.hidden-size", "16", "--music.trajectories", "8", "--music.gain", "1000")
_DISTANCE = ("--distance.hidden-sizes", "8", "--collect.update-after", "0")
_SKILL = ("--skill.hidden-sizes", "8")
_STEPS = (
    *("--collect.steps", "20", "--collect.random-steps", "0", "--collect.update-after", "0"),
    *("--evaluation.every", "1"),
)
"""By steps, learning from the first cycle on; an epoch ends within the second episode."""
_ONE_BY_ONE = (
    *("--incremental.epochs", "1", "--workers", "2", "--cycles", "3", "--updates", "3"),
    *("--threads", "1", "--agent.hidden-sizes", "16", "16", "--replay.batch-size", "32"),
    *("--disk.rows", "64", "--collect.steps", "10", "--evaluation.episodes", "2"),
)
_WALL = '[{"set": {"wall": true}}, {"at": {"steps": 60}, "set": {"wall": false}}]'
"""Opens the toy's wall when its first skill is done."""
_WEAK = '[{}, {"at": {"steps": 40}, "gravity": 0.5, "gear": {"bthigh": 0}, "mass": {"*": 2}}]'
"""Changes a robot after its first epoch."""
_LOSES_AN_OBJECT = 23
"""A seed under which an episode of the first epoch is cut where its object is lost."""
_OVERFULL = ("--replay.capacity", "150")
"""Room for five of the eight episodes of a worker."""


@dataclasses.dataclass(frozen=True)
class Configuration:
    """A run of two epochs."""

    words: tuple[str, ...]  # RECIPE and options
    source: str | None = None  # the configuration whose run it starts from
    by_skills: bool = False  # whether each epoch is a skill, learned after the one before

    def train(self, epochs):
        return ["train", *self.words, *self.until(epochs)]

    def until(self, epochs):
        return [*(["--skills", str(epochs)] if self.by_skills else []), "--epochs", str(epochs)]


def _point(recipe, *more, source=None, seed=3):
    reduce = () if _REDUCE in more else (_REDUCE, "sum")
    return Configuration((recipe, *_POINT, *reduce, "--seed", str(seed), *more), source)


CONFIGURATIONS = {
    "ddpg": _point("ddpg", _REDUCE, "mean"),
    "ddpg_her_future": _point("ddpg_her", *_OVERFULL, "--replay.overwrite", "random"),
    "ddpg_her_final": _point(
        *("ddpg_her", *_OVERFULL, "--replay.overwrite", "oldest", "--replay.strategy", "final"),
        *("--agent.critics", "2", "--preset", "paper"),
    ),
    "ddpg_her_fast": _point(
        *("ddpg_her_fast", *_MUSIC, "--music.weight", "0", "1", "1", "0"),
        *("--task.weight", "0", "0", "1", "1"),
    ),
    "ddpg_music": _point("ddpg_music", *_MUSIC),
    "ddpg_music_paper": _point("ddpg_music", *_MUSIC, "--preset", "paper"),
    "ddpg_music_pairs": _point(
        *("ddpg_music", *_MUSIC, "--music.pair-negatives", "all_pairs"),
        *("--music.trajectory-negatives", "independent", "--music.normalize-inputs", "true"),
        *("--lost-object", "continue"),
    ),
    "ddpg_music_finetune": _point("ddpg_music_finetune", source="ddpg_music"),
    "ddpg_music_transfer": _point("ddpg_music_transfer", *_MUSIC, source="ddpg_music"),
    "ddpg_music_prioritized": _point(
        "ddpg_music_prioritized", *_MUSIC, *_OVERFULL, source="ddpg_music"
    ),
    "ddpg_joint_motion": _point("ddpg_joint_motion"),
    "sac": _point("sac"),
    "sac_per_sample": _point(
        *("sac", "--agent.entropy-mode", "per_sample", "--agent.critics", "3"),
        *("--agent.return-clip", "symmetric", _REDUCE, "mean"),
    ),
    "sac_her": _point("sac_her"),
    "sac_music": _point("sac_music", *_MUSIC, seed=_LOSES_AN_OBJECT),
    "sac_diayn": _point("sac_diayn", *_SKILL),
    "sac_diayn_released": _point(
        *("sac_diayn", *_SKILL, "--skill.state", "current", "--skill.subtract-prior", "False"),
        *("--skill.scale", "0.5", "--skill.clip", "-1", "0", "--replay.relabel-k", "4"),
    ),
    "sac_diayn_qdax": _point(*("sac_diayn", "--preset", "qdax", *_SKILL, "--skills", "4", *_STEPS)),
    "sac_diayn_torch": _point("sac_diayn", "--preset", "diayn_torch", *_SKILL, *_STEPS),
    "sac_diayn_sequential": _point(
        *("sac_diayn", "--preset", "paper", *_SKILL, *_STEPS),
        *("--agent.update-order", "sequential"),
    ),
    "sac_disk": Configuration(
        (*("sac_disk", *_ONE_BY_ONE, "--incremental.replay", "purge", "--seed", "3"),),
        by_skills=True,
    ),
    "sac_disk_changing": Configuration(
        (
            *("sac_disk", *_ONE_BY_ONE, "--incremental.begin", "nearest", "--seed", "5"),
            *("--incremental.replay", "reset", "--env.changes", _WALL),
        ),
        by_skills=True,
    ),
    "sac_changing": Configuration(
        (
            *("sac", "--env-id", "HalfCheetah-v5", *_STEPS, "--workers", "2", "--cycles", "2"),
            *("--updates", "3", "--threads", "1", "--agent.hidden-sizes", "16", "16"),
            *("--seed", "3", "--replay.batch-size", "32", "--evaluation.episodes", "1"),
            *("--env.max-episode-steps", "20", "--env.changes", _WEAK),
        )
    ),
    "sac_metra": _point("sac_metra", *_DISTANCE, seed=_LOSES_AN_OBJECT),
    "sac_csd": _point(
        *("sac_csd", *_DISTANCE, "--distance.every", "2", "--distance.columns", "0", "1", "2"),
        *("--condition.kind", "one_hot", "--condition.size", "None", "--skills", "3"),
    ),
    "sac_lsd": _point("sac_lsd", *_DISTANCE, "--agent.update-order", "sequential"),
    "sac_place": _point(
        *("sac_place", "--collect.update-after", "0", "--agent.discount", "0.98"),
        *("--condition.kind", "sphere", "--condition.size", "3"),
        seed=_LOSES_AN_OBJECT,
    ),
    "sac_diayn_finetune": _point("sac_diayn_finetune", source="sac_diayn"),
    "sac_music_skills": _point("sac_music_skills", *_MUSIC),
    "sac_music_diayn": _point("sac_music_diayn", *_MUSIC, *_SKILL, source="sac_music_skills"),
    "sac_pearl": Configuration(
        (
            *("sac_pearl", "--workers", "2", "--cycles", "2", "--updates", "3", "--threads", "1"),
            *("--agent.hidden-sizes", "16", "16", "--agent.encoder-sizes", "8", "--seed", "3"),
            *("--agent.posterior", "diagonal"),
            *("--agent.meta-batch", "4", "--agent.context-rows", "10", "--replay.batch-size", "16"),
            *("--tasks.train", "4", "--tasks.test", "2", "--tasks.initial", "1"),
            *("--evaluation.episodes", "1", "--evaluation.every", "1", "--tasks.adapt", "2"),
        )
    ),
    "every_reward": _point(
        *("sac_diayn", *_MUSIC, *_SKILL, "--goals", "environment"),
        *("--rewards", "task", "music", "joint_motion", "skill"),
    ),
    "push_her": Configuration(("ddpg_her", *_PUSH)),
    "push_music": Configuration(("ddpg_music", *_PUSH, *_MUSIC)),
}
