"""Drives a headless Chromium over its debugging pipe (Chrome DevTools Protocol), with the standard library alone."""

import fcntl
import json
import os
import select
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PROGRAMS = ("chromium", "chromium-browser", "google-chrome")
SKIPPED = 77  # the exit code of a check that needs a browser, where there is none


def find_chromium():
    """The path of a Chromium, or None."""
    return next((path for path in map(shutil.which, PROGRAMS) if path), None)


class Failure(Exception):
    """The page is wrong, or the browser does not answer."""


def check(condition, what):
    """Fails with the message `what` unless the condition holds."""
    if not condition:
        raise Failure(what)


class Browser:
    """One page in a browser without a network. `problems` collects the page's exceptions, warnings and network
    requests. open() shows a file, open_from() what a server on this machine sends; only requests to this server are then
    right."""

    def __init__(self, program, timeout=240):
        self.timeout = timeout
        self.problems = []
        self._answers = {}
        self._n_loads = 0  # pages that were loaded
        self._number = 0
        self._unread = b""
        self._profile = tempfile.TemporaryDirectory(prefix="zoo-chromium-")
        # The browser reads commands from its file 3 and writes answers to its file 4. The copies get numbers from 10 on,
        # so that moving one to 3 or 4 cannot overwrite the other.
        ends = [end for pipe in (os.pipe(), os.pipe()) for end in pipe]
        theirs_in, self._to, self._from, theirs_out = [fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, 10) for end in ends]
        for end in ends:
            os.close(end)

        def take_pipes():
            os.dup2(theirs_in, 3)
            os.dup2(theirs_out, 4)

        self._process = subprocess.Popen(
            [program, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
             "--use-fake-device-for-media-stream", "--use-fake-ui-for-media-stream",  # a microphone that beeps
             "--disable-background-networking", "--disable-component-update", "--hide-scrollbars",
             "--remote-debugging-pipe", f"--user-data-dir={self._profile.name}", "about:blank"],
            preexec_fn=take_pipes, pass_fds=(3, 4), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL, start_new_session=True)
        os.close(theirs_in)
        os.close(theirs_out)
        page = next(target for target in self._ask("Target.getTargets")["targetInfos"] if target["type"] == "page")
        self._session = None
        self._session = self._ask("Target.attachToTarget", targetId=page["targetId"], flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.send(f"{domain}.enable")
        self.send("Network.emulateNetworkConditions", offline=True, latency=0, downloadThroughput=0, uploadThroughput=0)

    _session = None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        try:
            self._ask("Browser.close")
        except (Failure, OSError):
            pass
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        os.close(self._to)
        os.close(self._from)
        # The browser's children may still be writing to the profile.
        for _ in range(20):
            try:
                self._profile.cleanup()
                return
            except OSError:
                time.sleep(0.1)

    def send(self, method, **parameters):
        """Sends a command to the page and returns its result."""
        return self._ask(method, **parameters)

    def _ask(self, method, **parameters):
        self._number += 1
        message = {"id": self._number, "method": method, "params": parameters}
        if self._session and not method.startswith(("Target.", "Browser.")):
            message["sessionId"] = self._session
        os.write(self._to, json.dumps(message).encode() + b"\0")
        deadline = time.monotonic() + self.timeout
        while self._number not in self._answers:
            self._read(deadline, method)
        answer = self._answers.pop(self._number)
        if "error" in answer:
            raise Failure(f"{method}: {answer['error'].get('message')}")
        return answer["result"]

    def _read(self, deadline, what):
        """Reads one piece of the browser's output."""
        left = deadline - time.monotonic()
        if left <= 0 or not select.select([self._from], [], [], left)[0]:
            raise Failure(f"the browser gave no answer to {what} within {self.timeout} s")
        piece = os.read(self._from, 1 << 20)
        if not piece:
            raise Failure(f"the browser ended during: {what}")
        *messages, self._unread = (self._unread + piece).split(b"\0")
        for message in map(json.loads, messages):
            if "id" in message:
                self._answers[message["id"]] = message
            else:
                self._note(message["method"], message.get("params", {}))

    def _note(self, event, details):
        if event == "Page.loadEventFired":
            self._n_loads += 1
        elif event == "Runtime.exceptionThrown":
            thrown = details["exceptionDetails"]
            text = thrown.get("exception", {}).get("description") or thrown["text"]
            self.problems.append(f"exception: {text} (line {thrown['lineNumber'] + 1})")
        elif event == "Runtime.consoleAPICalled" and details["type"] in ("error", "warning", "assert"):
            values = [str(value.get("value", value.get("description"))) for value in details["args"]]
            self.problems.append(f"console {details['type']}: {' '.join(values)}")
        elif event == "Log.entryAdded" and details["entry"]["level"] in ("error", "warning"):
            self.problems.append(f"log {details['entry']['level']}: {details['entry']['text']}")
        elif event == "Network.requestWillBeSent":
            url = details["request"]["url"]
            is_own = self._origin is not None and (url == self._origin or url.startswith(self._origin + "/"))
            if not is_own and not url.startswith(("file:", "data:", "about:", "blob:")) or (url.startswith("file:") and url != self._address):
                self.problems.append(f"request: {url[:200]}")

    _address = ""
    _origin = None

    def open(self, path, width=1280, height=900, media="light"):
        """Loads a file in a window of this size; `media` is the colour scheme, light or dark."""
        self.resize(width, height)
        self.send("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": media}])
        self._address = "file://" + os.path.abspath(path)
        self._wait_for_load(lambda: self.send("Page.navigate", url=self._address))

    def open_from(self, origin, path="/", width=1280, height=900, media="light"):
        """Loads a page from a server, such as http://127.0.0.1:8080, which its program has started."""
        self.resize(width, height)
        self.send("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": media}])
        if self._origin is None:
            self.send("Network.emulateNetworkConditions", offline=False, latency=0, downloadThroughput=-1, uploadThroughput=-1)
        self._origin = origin
        self._wait_for_load(lambda: self.send("Page.navigate", url="about:blank"))  # else another fragment loads nothing
        self._wait_for_load(lambda: self.send("Page.navigate", url=origin + path))

    def wait_for(self, expression, what, seconds=30):
        """Waits until a JavaScript expression is true."""
        deadline = time.monotonic() + seconds
        while not self.run(f"Boolean({expression})"):
            if time.monotonic() > deadline:
                raise Failure(f"{what}: it did not come within {seconds} s")
            time.sleep(0.02)
        self.settle()

    def _wait_for_load(self, action):
        """Does what makes the page load, and waits until it has loaded."""
        n_loads = self._n_loads
        action()
        deadline = time.monotonic() + self.timeout
        while self._n_loads == n_loads:
            self._read(deadline, "loading the page")
        self.settle()

    def resize(self, width, height):
        self.send("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1,
                  mobile=width < 600)

    def settle(self):
        """Waits until all changes are drawn."""
        self.run("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(done, 30))))")

    def run(self, expression):
        """The value of a JavaScript expression in the page; promises are awaited."""
        result = self.send("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True,
                           userGesture=True)
        if "exceptionDetails" in result:
            details = result["exceptionDetails"]
            raise Failure(f"{expression[:120]}: {details.get('exception', {}).get('description', details['text'])}")
        return result["result"].get("value")

    def load(self, module, name):
        """Makes the exports of a module of the sources, such as pages/page.js, members of a global `name`. The page keeps
        its own to itself."""
        program = subprocess.run(["esbuild", "--bundle", "--format=iife", f"--global-name={name}", ROOT / module],
                                 capture_output=True, text=True, check=True).stdout
        self.run(program)

    def press(self, key, ctrl=False):
        """Presses and releases a key, such as ArrowRight, Enter, Escape or +, in the focused element."""
        codes = {"ArrowLeft": 37, "ArrowUp": 38, "ArrowRight": 39, "ArrowDown": 40, "Home": 36, "End": 35, "Enter": 13,
                 "Escape": 27, "Tab": 9, " ": 32, "+": 187, "-": 189, "0": 48}
        press = {"key": key, "code": {" ": "Space"}.get(key, key), "windowsVirtualKeyCode": codes[key], "modifiers": 2 if ctrl else 0}
        text = {} if ctrl else {"Enter": {"text": "\r"}, " ": {"text": " "}}.get(key, {})
        self.send("Input.dispatchKeyEvent", type="keyDown", **press, **text)
        self.send("Input.dispatchKeyEvent", type="keyUp", **press)
        self.settle()

    def type(self, text):
        """Types a text into the focused element."""
        self.send("Input.insertText", text=text)

    def tab_to(self, selector, most=80):
        """Presses Tab until the element that a selector names has the focus."""
        for _ in range(most):
            self.press("Tab")
            if self.run(f"document.activeElement.matches({json.dumps(selector)})"):
                return
        raise Failure(f"Tab does not lead to {selector}")

    def choose_file(self, selector, path):
        """Chooses a file in an <input type=file>."""
        found = self.send("Runtime.evaluate", expression=f"document.querySelector({json.dumps(selector)})")
        self.send("DOM.setFileInputFiles", files=[str(path)], objectId=found["result"]["objectId"])

    def drag(self, start, end):
        """Presses the mouse at a point (x, y) in the window, moves it to another one, and releases it there."""
        for kind, (x, y), buttons in (("mouseMoved", start, 0), ("mousePressed", start, 1), ("mouseMoved", end, 1),
                                      ("mouseReleased", end, 0)):
            self.send("Input.dispatchMouseEvent", type=kind, x=x, y=y, buttons=buttons, clickCount=1,
                      button="none" if kind == "mouseMoved" else "left")
        self.settle()

    def download(self, action, attempts=4, seconds=15):
        """The text of the file that the page saves during `action`. A browser on a busy machine may refuse a download that
        comes long after its click, so there are several attempts."""
        for _ in range(attempts):
            with tempfile.TemporaryDirectory(prefix="zoo-download-", ignore_cleanup_errors=True) as folder:
                self._ask("Browser.setDownloadBehavior", behavior="allow", downloadPath=folder)
                action()
                deadline = time.monotonic() + seconds
                while time.monotonic() < deadline:
                    for name in os.listdir(folder):
                        if name.startswith(".") or name.endswith(".crdownload"):
                            continue  # not yet whole
                        with open(os.path.join(folder, name), encoding="utf-8") as file:
                            text = file.read()
                        if text:
                            return text
                    time.sleep(0.05)
        raise Failure("the page saves no file")

    def stop_clock(self, now):
        """The clock of the pages that are opened from now on stands still at a time that Date.parse() understands. Repeated
        actions come only when let_time_pass() is called."""
        self.send("Page.addScriptToEvaluateOnNewDocument", source=f"""{{
            const now = Date.parse({json.dumps(now)});
            Date.now = () => now;
            window.repeated = [];
            window.setInterval = action => window.repeated.push(action);
        }}""")

    def let_time_pass(self):
        """Calls the page's repeated actions, and waits until it has loaded itself again."""
        self._wait_for_load(lambda: self.run("void setTimeout(() => window.repeated.forEach(action => action()))"))

    def move_to(self, x, y):
        """Moves the pointer to a point in the window."""
        self.send("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)
        self.settle()


def at_widths(page, path, before_print=""):
    """Opens the page as wide as a phone, a window and paper, checks that nothing is wider, and yields (width, media) each time.
    Paper follows a dark page. `before_print`: a program that runs before the page is laid out for paper."""
    for width, height, media in ((390, 844, ""), (1400, 1000, ""), (717, 1000, "print")):
        page.open(path, width=width, height=height, media="dark" if media else "light")
        if media:
            page.run(before_print)
            page.send("Emulation.setEmulatedMedia", media=media)
            page.run("dispatchEvent(new Event('beforeprint'))")
            page.settle()
        check(page.run("document.documentElement.scrollWidth") <= width, f"the page is wider than {width} pixels {media}")
        yield width, media
        if media:
            page.send("Page.printToPDF")
            page.send("Emulation.setEmulatedMedia", media="")


def check_widths(page, path):
    """Nothing is wider than a phone, a window or paper."""
    for _ in at_widths(page, path):
        pass


def check_dark(page, path):
    """There is a dark page for those who want one."""
    page.open(path, media="dark")
    check(page.run("getComputedStyle(document.body).backgroundColor") == "rgb(15, 17, 21)", "there is no dark page")


def check_pages(pages, check_page):
    """Calls check_page(page, path, ...) in a browser of its own for each tuple (path, ...) of `pages`, and checks that the page
    logged no error and requested nothing. The exit code is 0, 1 after a failure, which is printed, and SKIPPED without a
    Chromium, or 1 if ZOO_REQUIRE_REFERENCES is set."""
    program = find_chromium()
    if not program:
        print("no chromium, chromium-browser or google-chrome on PATH: scripts/setup.sh --tests installs one")
        return 1 if os.environ.get("ZOO_REQUIRE_REFERENCES") else SKIPPED
    for path, *arguments in pages:
        try:
            with Browser(program) as page:
                check_page(page, path, *arguments)
                check(not page.problems, "; ".join(dict.fromkeys(page.problems)))
        except Failure as failure:
            print(f"{path}: {failure}")
            return 1
        print(f"{path}: as it should be")
    return 0


def check_arguments(check_page, usage):
    """The exit code of a program whose arguments are the pages to check: that of check_pages, or 2 without any."""
    paths = sys.argv[1:]
    if not paths:
        print(usage, file=sys.stderr)
        return 2
    return check_pages([(path,) for path in paths], check_page)
