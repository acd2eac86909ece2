"""Does the statistics network of PickAndPlace serve on Push as well as Push's own?

Both are frozen and pay beside the task's reward, without hindsight, as released; see
faithful_tasks.py for what to expect of that. The network of PickAndPlace learned under a gain of
5000: it is tried under that too, beside the 1000 that `laptop` has on Push.
"""

from music_tf.tools.study import Condition, Study, Task

PUSH, PICK = "FetchPush-v4", "FetchPickAndPlace-v4"
MUSIC = {PUSH: 5, PICK: 15}

STUDY = Study(
    question="Does mutual information learned on another task serve as well?",
    role="looked at",
    tasks=(
        Task(env_id=PUSH, seeds=range(5), epochs=13),
        Task(env_id=PICK, seeds=range(5)),
    ),
    conditions=(
        Condition(name="music", recipe="ddpg_music", epochs=MUSIC),
        Condition(name="own", recipe="ddpg_music_reward", tasks=(PUSH,), start_from="music"),
        *(
            Condition(
                name=name,
                recipe="ddpg_music_transfer",
                arguments=arguments,
                tasks=(PUSH,),
                start_from="music",
                start_task=PICK,
            )
            for name, arguments in (
                ("transferred", ""),
                ("transferred_gain_5000", "--music.gain 5000"),
            )
        ),
    ),
)
