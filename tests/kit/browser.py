"""A headless Chromium that opens pages and tells what it shows and says.

It is spoken to through a pipe, in the DevTools protocol (chromedevtools.github.io), so that what
is asked needs no script in a page, whose security policy forbids them.
"""

import base64
import contextlib
import fcntl
import io
import json
import os
import select
import shutil
import signal
import subprocess
import sys
import time

import numpy as np
from PIL import Image

NAMES = (
    *("chromium", "chromium-browser", "google-chrome", "google-chrome-stable"),
    *("chromium-headless-shell", "chrome-headless-shell", "headless_shell", "chrome"),
)
PROGRAM = next(filter(None, map(shutil.which, NAMES)), None)
MISSING = f"none of these browsers is installed: {', '.join(NAMES)}"
_FLAGS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--no-first-run"),
    *("--disable-dev-shm-usage", "--remote-debugging-pipe"),
)
_SECONDS = 120.0
_START = """
import os, sys
os.dup2(int(sys.argv[1]), 3)
os.dup2(int(sys.argv[2]), 4)
os.execv(sys.argv[3], sys.argv[3:])
"""
_MEDIA = """
Promise.all([...document.querySelectorAll("img, video")].map(async (element) => {
  let fault = "";
  try {
    if (element.tagName === "IMG") await element.decode();
    else await element.play().then(() => element.pause());
  } catch (error) {
    fault = String(error);
  }
  const width = element.naturalWidth || element.videoWidth || 0;
  return { kind: element.tagName, width, seconds: element.duration || 0, fault };
}))
"""


class Browser:
    """A browser with one tab; a context that ends it."""

    def __init__(self, folder):
        """Starts it with a home of its own."""
        taken, self._write = _high(os.pipe())
        self._read, given = _high(os.pipe())
        self._errors = (folder / "browser.txt").open("wb")
        flags = [*_FLAGS, f"--user-data-dir={folder / 'profile'}", "about:blank"]
        self._process = subprocess.Popen(
            [sys.executable, "-c", _START, str(taken), str(given), PROGRAM, *flags],
            stdin=subprocess.DEVNULL,
            stdout=self._errors,
            stderr=self._errors,
            env={**os.environ, "HOME": str(folder)},
            pass_fds=(taken, given),
            start_new_session=True,
        )
        os.close(taken)
        os.close(given)
        self._events, self._rest, self._count, self._session = [], b"", 0, None

    def __enter__(self):
        target = self._call("Target.createTarget", url="about:blank")["targetId"]
        attached = self._call("Target.attachToTarget", targetId=target, flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log"):
            self._call(f"{domain}.enable")
        return self

    def __exit__(self, *_):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        os.close(self._read)
        os.close(self._write)
        self._errors.close()

    def open(self, page, width):
        """Opens a file in a window of a width and of the page's own height."""
        self._events.clear()
        self._resize(width, 800)
        self._call("Page.navigate", url=page.as_uri())
        self._until(lambda: self._of("Page.loadEventFired"))
        self._resize(width, self.ask("document.documentElement.scrollHeight"))

    def complaints(self):
        """Returns what stands on the console since the page was opened: errors and warnings."""
        entries = [event["entry"] for event in self._of("Log.entryAdded")]
        calls = [event for event in self._of("Runtime.consoleAPICalled")]
        thrown = [event["exceptionDetails"] for event in self._of("Runtime.exceptionThrown")]
        return [entry["text"] for entry in entries] + [str(one) for one in [*calls, *thrown]]

    def media(self):
        """Plays all films and decodes all pictures, and returns kind, size and fault of each."""
        return self.ask(_MEDIA)

    def ask(self, expression):
        """Returns what an expression of JavaScript says about the page."""
        said = self._call(
            "Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True
        )
        assert "exceptionDetails" not in said, said
        return said["result"].get("value")

    def screenshot(self):
        """Returns all of the window, pixels [height, width, 3]."""
        shot = self._call("Page.captureScreenshot", format="jpeg")  # the quickest
        return np.asarray(Image.open(io.BytesIO(base64.b64decode(shot["data"]))).convert("RGB"))

    def _resize(self, width, height):
        self._call(
            "Emulation.setDeviceMetricsOverride",
            **{"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False},
        )

    def _call(self, method, **parameters):
        self._count += 1
        message = {"id": self._count, "method": method, "params": parameters}
        if self._session is not None:
            message["sessionId"] = self._session
        os.write(self._write, json.dumps(message).encode() + b"\0")
        number = self._count
        answer = self._until(lambda: [e for e in self._events if e.get("id") == number])[0]
        assert "error" not in answer, answer
        return answer["result"]

    def _of(self, method):
        return [e["params"] for e in self._events if e.get("method") == method]

    def _until(self, found):
        """Reads events until some are there that are looked for."""
        end = time.monotonic() + _SECONDS
        while not found():
            ready, _, _ = select.select([self._read], [], [], max(0.0, end - time.monotonic()))
            read = os.read(self._read, 2**20) if ready else b""
            if not read:
                raise TimeoutError(f"the browser is silent; {self._errors.name}")
            *messages, self._rest = (self._rest + read).split(b"\0")
            self._events += map(json.loads, messages)
        return found()


def _high(pipe):
    """Returns a pipe whose ends are none of the descriptors that the browser expects."""
    ends = [fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, 10) for end in pipe]
    for end in pipe:
        os.close(end)
    return ends
