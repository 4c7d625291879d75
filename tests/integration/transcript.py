"""What a UE's user received, judged: the one checker of every test that starts processes.

A reader of `pallas ue`'s stream, and the promises of a whole answer: the tokens of an undisturbed run, once and in
order, one role, one finish reason, one usage, one [DONE], nothing after it; or, where a cell allows that the session
is lost, a beginning of that text and one error event.
"""

import json
import threading
import time
import urllib.request


class Stream(threading.Thread):
    """Reads a stream of `pallas ue` beside the test, to its end."""

    def __init__(self, port, request, timeout=60):
        super().__init__(daemon=True)
        self.port, self.request, self.timeout = port, request, timeout
        self.events = []  # (monotonic time, data), in order
        self.text, self.times, self.done, self.errors = "", [], 0, []
        self.roles, self.finish_reasons, self.usages, self.after_done = 0, [], [], 0

    def run(self):
        request = urllib.request.Request(
            f"http://127.0.0.1:{self.port}/v1/chat/completions",
            data=json.dumps(self.request).encode(),
            headers={"Content-Type": "application/json"},
        )
        try:
            with urllib.request.urlopen(request, timeout=self.timeout) as answer:
                for line in answer:
                    self.take(line.decode().strip())
        except OSError as error:
            self.errors.append(str(error))

    def take(self, line):
        if not line.startswith("data: "):
            return
        self.after_done += self.done > 0
        if line == "data: [DONE]":
            self.done += 1
            return
        event = json.loads(line[6:])
        if "error" in event:
            self.errors.append(event["error"])
        if event.get("usage"):
            self.usages.append(event["usage"])
        for choice in event.get("choices", []):
            self.roles += "role" in choice["delta"]
            if choice["finish_reason"]:
                self.finish_reasons.append(choice["finish_reason"])
            if choice["delta"].get("content"):
                self.text += choice["delta"]["content"]
                self.times.append(time.monotonic())

    def longest_pause(self):
        return max((b - a for a, b in zip(self.times, self.times[1:])), default=0)


class Reference:
    """What one gNB says to the request without any handover."""

    def __init__(self, text, completion_tokens, finish_reason):
        self.text, self.completion_tokens, self.finish_reason = text, completion_tokens, finish_reason


def first_difference(one, other):
    """The index of the first character that differs, of what both have."""
    return next((i for i, (a, b) in enumerate(zip(one, other)) if a != b), min(len(one), len(other)))


def breaches(stream, reference, counters, same_until=None, may_be_lost=False):
    """Each broken promise, a sentence. `counters`: the UE's own of that session. `same_until`: the text is only compared
    so far, in characters, since the rest may differ by the session's own terms (partial KV)."""
    found = []
    if may_be_lost and stream.errors and not stream.done:
        if len(stream.errors) != 1 or not isinstance(stream.errors[0], dict):
            found.append(f"a lost session ends with one error event, not {stream.errors}")
        if not reference.text.startswith(stream.text):
            found.append("what came before the error is not the beginning of the reference")
        return found
    for what, count in (("role", stream.roles), ("finish reason", len(stream.finish_reasons)), ("[DONE]", stream.done)):
        if count != 1:
            found.append(f"{count} times a {what}")
    if stream.after_done:
        found.append(f"{stream.after_done} events after [DONE]")
    if stream.errors:
        found.append(f"errors: {stream.errors}")
    if stream.finish_reasons and set(stream.finish_reasons) != {reference.finish_reason}:
        found.append(f"finish reason {stream.finish_reasons}, not {reference.finish_reason}")
    if stream.request.get("stream_options", {}).get("include_usage"):
        told = [usage["completion_tokens"] for usage in stream.usages]
        if told != [reference.completion_tokens]:
            found.append(f"usage of {told} tokens, not one of {reference.completion_tokens}")
    end = None if same_until is None else same_until
    if stream.text[:end] != reference.text[:end]:
        at = first_difference(stream.text, reference.text)
        found.append(
            f"text differs at character {at} of {len(reference.text)}: "
            f"{stream.text[at : at + 40]!r}, not {reference.text[at : at + 40]!r}"
        )
    for what in ("duplicates", "contradictions", "skipped"):
        if counters.get(what):
            found.append(f"the UE counted {counters[what]} {what}")
    return found
