"""Fine-tuning, priorities and added reward as released, without hindsight, against plain `ddpg`.

For the record: without hindsight a sparse task is near chance by construction. Objectives are
those of the release, the preset `paper`; only the sizes are smaller, so that a run takes minutes.
"""

from music_tf.tools.study import Condition, Study, Task

MUSIC, ALL = 10, 20
PUSH = "FetchPush-v4"
SIZES = "--preset paper --workers 4 --cycles 20 --replay.batch-size 64 --evaluation.episodes 40"
WITH_MUSIC = f"{SIZES} --music.trajectories 32"


def _from_music(name: str, recipe: str, arguments: str) -> Condition:
    return Condition(name=name, recipe=recipe, arguments=arguments, start_from="music")


STUDY = Study(
    question="Do the released ways to use MUSIC for a task beat plain DDPG without hindsight?",
    role="looked at",
    tasks=(Task(env_id=PUSH, seeds=range(5), epochs=ALL - MUSIC),),
    conditions=(
        Condition(name="ddpg", recipe="ddpg", arguments=SIZES, epochs={PUSH: ALL}),
        Condition(name="music", recipe="ddpg_music", arguments=WITH_MUSIC, epochs={PUSH: MUSIC}),
        _from_music("finetuned", "ddpg_music_finetune", SIZES),
        _from_music("prioritized", "ddpg_music_prioritized", WITH_MUSIC),
        _from_music("added_reward", "ddpg_music_reward", WITH_MUSIC),
    ),
)
