"""A whole run within this process, as `music-tf train` goes through it."""

from music_tf.config.stored import StoredRun, run_to_json
from music_tf.distributed import Communicator
from music_tf.runs import session
from music_tf.storage.run_directory import open_run
from music_tf.tools.paths import paths_from_above


def run_session(command, heritage=None, comm=None):
    """Trains what `command` says in its run directory, to its end or its fault."""
    comm = comm or Communicator()
    record = heritage.record if heritage else None
    stored = StoredRun(command.recipe, command.preset, command.arguments, command.config, record)
    directory = open_run(command.run_dir, run_to_json(stored), command.resume, comm)
    try:
        session.Session(command, comm, directory, heritage, paths_from_above).run()
    finally:
        directory.close()
