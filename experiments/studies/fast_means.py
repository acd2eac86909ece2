"""What each means of `ddpg_her_fast` gives on FetchPush: one is taken away at a time.

Without MUSIC (and with it the bound of 1 that its reward puts on returns from above), with half the
updates, with horizon, action penalty and targets once a cycle as the preset `paper` has them, and
without a bound on targets. Two conditions add something: the same data and batch from one worker in
place of four, and a pair of critics. A seed takes about 35 minutes of two cores.
"""

from music_tf.tools.study import Condition, Study, Task

FAST = "ddpg_her_fast"

STUDY = Study(
    question="Which means make ddpg_her_fast fast?",
    role="looked at",
    tasks=(Task(env_id="FetchPush-v4", seeds=range(3), epochs=14),),
    conditions=(
        Condition(name="all", recipe=FAST),
        Condition(name="no_music", recipe="ddpg_her"),
        Condition(name="half_the_updates", recipe=FAST, arguments="--updates 40"),
        Condition(name="discount_098", recipe=FAST, arguments="--agent.discount 0.98"),
        Condition(name="action_penalty_1", recipe=FAST, arguments="--agent.action-l2 1"),
        Condition(
            name="targets_once_a_cycle",
            recipe=FAST,
            arguments="--agent.polyak 0.95 --agent.polyak-every cycle",
        ),
        Condition(name="unbounded_targets", recipe=FAST, arguments="--agent.return-clip off"),
        Condition(
            name="one_worker",
            recipe=FAST,
            arguments="--workers 1 --rollouts 8 --replay.batch-size 256 --music.trajectories 128",
        ),
        Condition(name="two_critics", recipe=FAST, arguments="--agent.critics 2"),
    ),
)
