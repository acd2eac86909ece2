"""Which tests `make test` leaves to `make check`, and which it runs however long they take."""

FOLDERS = {
    **dict.fromkeys(("distributed", "experiments", "faults", "hostile", "same"), "thorough"),
    "learning": "slow",
}
"""Folders whose tests have a mark, but for those of `ALWAYS`; so have tests of several ranks."""
ALWAYS = {
    "learning": "learning/test_learning.py::"
    "test_skills_of_a_point_are_soon_told_apart_by_where_it_is",
    "two ranks of MUSIC": "distributed/test_launched_runs.py::"
    "test_a_launched_run_leaves_everything",
    "a bit-equal resume": "training/test_trainer.py::test_a_restored_trainer_goes_on_bit_equal",
    "an epoch of each kind of run": "training/test_trainer.py::"
    "test_an_epoch_takes_the_updates_and_steps_it_says",
    "skills": "test_conditions.py::test_evenly_assigned_skills_train_and_are_recognised",
    "DISk": "runs/test_one_by_one.py::"
    "test_a_run_that_was_ended_within_and_between_skills_comes_to_the_same_bits",
    "PEARL": "runs/test_adapting.py::test_a_run_records_its_tasks_and_what_adapting_brings",
    "what people do": "cli/test_command_lines.py::"
    "test_a_run_from_its_start_to_its_page_answers_as_the_table_says",
}
"""One of each: they may take more CPU seconds than a test of every day may."""
