"""Puts a stub in the place of the training session: processes that tests start find it here."""

import os
import sys
import threading
import time
import types


def learn(command, comm, begun, draw, callbacks):
    from music_tf.storage.run_directory import link_latest

    if comm.is_root:
        link_latest(begun.path)
    mode = os.environ["STUB_MODE"]
    comm.barrier()  # what all ranks meet, they meet where they have just been together
    fail(mode, comm.rank == comm.size - 1)
    if comm.is_root:
        word = f"{command.recipe} {comm.size} {begun.path}" if mode == "fine" else "waiting"
        sys.stdout.write(f"{word}\n")
        sys.stdout.flush()
    if mode == "stuck":
        time.sleep(60)
    elif mode not in ("fine", "last fault", "last bug"):
        wait(comm)


def fail(mode, failing):
    from music_tf.errors import NumbersFault

    if mode == "fault" or (mode in ("lone fault", "last fault") and failing):
        raise NumbersFault("bad numbers\nin the actor")
    if mode == "bug" or (mode in ("lone bug", "last bug") and failing):
        raise RuntimeError("broken")
    if mode == "interrupt" or (mode == "lone interrupt" and failing):
        raise KeyboardInterrupt
    if mode == "no memory":
        raise MemoryError("Unable to allocate 9 TiB")
    if mode == "thread bug" and failing:
        threading.Thread(target=lambda: {}["missing"]).start()


def wait(comm):
    from music_tf.errors import Stopped
    from music_tf.process.signals import stop_requested

    while not comm.any(stop_requested()):
        time.sleep(0.02)
    raise Stopped("stopped and saved")


if "STUB_MODE" in os.environ:
    stub = types.ModuleType("music_tf.runs.session")
    stub.learn = learn
    sys.modules["music_tf.runs.session"] = stub
