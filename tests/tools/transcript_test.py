"""The checker of transcripts on made-up streams: a whole one passes, and each kind of breach is named."""

import json
import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "integration"))

from transcript import Reference, Stream, breaches  # noqa: E402

WORDS = [" one", " two", " three", " four"]
REFERENCE = Reference("".join(WORDS), len(WORDS), "length")


def chunk(delta, reason=None):
    return {"choices": [{"index": 0, "delta": delta, "finish_reason": reason}]}


def whole():
    """The events of a good stream."""
    events = [chunk({"role": "assistant", "content": ""})]
    events += [chunk({"content": word}) for word in WORDS]
    events += [chunk({}, "length"), {"choices": [], "usage": {"completion_tokens": len(WORDS)}}, "[DONE]"]
    return events


def judge(events, counters=None, **options):
    stream = Stream(0, {"stream_options": {"include_usage": True}})
    for event in events:
        stream.take("data: " + (event if isinstance(event, str) else json.dumps(event)))
    return breaches(stream, REFERENCE, counters or {}, **options)


class Transcript(unittest.TestCase):
    def assert_named(self, words, events, **options):
        found = judge(events, **options)
        self.assertTrue(any(words in sentence for sentence in found), found)

    def test_a_whole_stream_passes(self):
        self.assertEqual(judge(whole()), [])

    def test_a_lost_token_is_found(self):
        events = whole()
        del events[2]
        self.assert_named("text differs at character 6", events)

    def test_a_lost_last_token_is_found(self):
        events = whole()
        del events[4]
        self.assert_named("text differs", events)

    def test_a_repeated_token_is_found(self):
        events = whole()
        events.insert(3, events[2])
        self.assert_named("text differs", events)

    def test_another_token_is_found(self):
        events = whole()
        events[4] = chunk({"content": " five"})
        self.assert_named("text differs", events)
        self.assertEqual(judge(events, same_until=8), [])

    def test_ends_that_are_missing_or_come_twice_are_found(self):
        for at, words in ((0, "0 times a role"), (5, "0 times a finish"), (6, "usage of []"), (7, "0 times a [DONE]")):
            events = whole()
            del events[at]
            self.assert_named(words, events)
        for at, words in ((0, "2 times a role"), (5, "2 times a finish"), (6, "usage of [4, 4]"), (7, "2 times a [DONE]")):
            events = whole()
            events.insert(at, events[at])
            self.assert_named(words, events)

    def test_what_follows_the_end_is_found(self):
        self.assert_named("1 events after [DONE]", [*whole(), chunk({"content": ""})])

    def test_another_finish_reason_and_another_usage_are_found(self):
        events = whole()
        events[5] = chunk({}, "stop")
        events[6] = {"choices": [], "usage": {"completion_tokens": 3}}
        self.assert_named("finish reason ['stop']", events)
        self.assert_named("usage of [3]", events)

    def test_what_the_ue_counted_is_found(self):
        for what in ("duplicates", "contradictions", "skipped"):
            self.assert_named(f"the UE counted 1 {what}", whole(), counters={what: 1})

    def test_a_lost_session_ends_with_one_error_event_where_that_is_allowed(self):
        lost = [*whole()[:3], {"error": {"message": "gone", "code": "unreachable"}}]
        self.assert_named("errors", lost)
        self.assertEqual(judge(lost, may_be_lost=True), [])
        self.assert_named("one error event", [*lost, lost[-1]], may_be_lost=True)
        wrong = [lost[0], chunk({"content": " six"}), lost[-1]]
        self.assert_named("not the beginning", wrong, may_be_lost=True)


if __name__ == "__main__":
    unittest.main()
