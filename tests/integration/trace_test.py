"""`pallas trace` over handovers of real processes: from a demo's report, and asked of gNBs and a UE."""

import json
import os
import tempfile
import unittest

from crash_test import REQUEST, prompt
from support import ClusterTest, http, run, wait_for
from transcript import Stream

CELLS = ["cell_0_0", "cell_1_0"]
# What a prepared handover has, in the order in which it must happen. The radio's word that the UE has left
# may end the source's step before the claim comes, or reach the source when all is over.
PREPARATION = [
    ("source", "HandoverRequest sent"),
    ("target", "HandoverRequest received"),
    ("target", "acknowledge sent"),
    ("source", "acknowledged"),
    ("target", "UE attached"),
]
CLAIM = [("target", "UE attached"), ("target", "HandoverSuccess sent"), ("source", "claimed")]
COMPLETION = [
    ("source", "engine stands"),
    ("source", "SnStatusTransfer sent"),
    ("target", "SnStatusTransfer received"),
    ("target", "coverage complete"),
    ("target", "first own token written"),
    ("UE", "first token of the target's engine"),
]
MESSAGES = ["HandoverRequest", "HandoverRequestAcknowledge", "HandoverSuccess", "SnStatusTransfer"]
MESSAGES += ["UeContextRelease", "UeContextReleaseAck", "attach", "first token"]


class Trace(ClusterTest):
    def check(self, trace):
        """One time line: every process is there, phases follow each other, every arrow has two ends."""
        events = trace["traceEvents"]
        roles = {e["pid"]: e["args"]["name"].split()[0] for e in events if e["name"] == "process_name"}
        self.assertEqual(sorted(roles.values()), ["UE", "source", "target"])
        when = {(roles[e["pid"]], e["name"]): e["ts"] for e in events if e["ph"] in "Xi"}
        self.assertTrue(all(ts >= 0 for ts in when.values()))
        for order in (PREPARATION, CLAIM, COMPLETION):
            times = [when[step] for step in order]
            self.assertEqual(times, sorted(times), list(zip(order, times)))
        # The first own token was sampled here after the handover, or beside the source before it.
        stepped = when.get(("target", "first step ends"))
        if stepped is None:
            self.assertIn(("target", "decoding beside the source"), when)
        else:
            self.assertLessEqual(when["target", "coverage complete"], stepped)
            self.assertLessEqual(stepped, when["target", "first own token written"])
        for phase in ("s", "f"):
            names = [e["name"] for e in events if e["ph"] == phase]
            for message in MESSAGES:
                self.assertIn(message, names)
        for event in events:
            if event["ph"] == "X":
                self.assertGreaterEqual(event["dur"], 0)
        self.assertEqual(trace["otherData"]["clock"], "one monotonic clock")

    def test_the_handovers_of_a_demo(self):
        with tempfile.TemporaryDirectory() as folder:
            report, out = os.path.join(folder, "trip.json"), os.path.join(folder, "trace.json")
            status, text, err = run("demo", "--engine=fake", "--plain", "--to=106", f"--report={report}", timeout=120)
            self.assertEqual(status, 0, text + err)
            status, table, err = run("trace", "latest", "--report", report, "--out", out, "--table")
            self.assertEqual((status, err), (0, ""))
            with open(out) as file:
                self.check(json.load(file))
            for phase in ("two-front: ", "blocks before the UE came", "fronts met", "first own token written"):
                self.assertIn(phase, table)
            # Without --out the trace is all that standard output gets.
            status, text, err = run("trace", "latest", "--report", report)
            self.assertEqual((status, err), (0, ""))
            self.check(json.loads(text))

    def test_a_handover_between_running_gnbs(self):
        gnbs = self.cluster(CELLS, flags=["--goodput-mbps=50"])
        ue = gnbs.start_ue("ue-1", CELLS[0])
        request = dict(REQUEST, messages=prompt(12), stream=True, max_token_rate=20, max_tokens=60)
        stream = Stream(ue, request)
        stream.start()
        wait_for(lambda: stream.times, 60, "the first token")
        a, b = gnbs.http.values()
        move = {"ue": "ue-1", "source": CELLS[0], "target": CELLS[1]}
        prediction = {"ue": "ue-1", "seq": 1, "serving": CELLS[0], "target": CELLS[1], "in_ms": 400, "valid_ms": 3000}
        self.assertEqual(http("POST", a, "/v1/predictions", prediction)[0], 204)
        wait_for(lambda: "preparing" in http("GET", b, "/v1/sessions")[1], 10, "the preparation")
        for port in (a, b, ue):
            self.assertLess(http("POST", port, "/v1/handovers", dict(move, seq=1, phase="execution"))[0], 300)
        for port in (a, b):
            http("POST", port, "/v1/handovers", dict(move, seq=2, phase="completed"))
        stream.join(timeout=60)
        self.assertEqual(stream.done, 1)

        everybody = [f"--gnb=127.0.0.1:{a}", f"--gnb=127.0.0.1:{b}", f"--ue=127.0.0.1:{ue}"]
        status, text, err = run("trace", "latest", *everybody)
        self.assertEqual((status, err), (0, ""))
        self.check(json.loads(text))

        session = gnbs.reports()[0]["session"]
        status, text, _ = run("trace", f"{session}:2", *everybody)
        self.assertEqual(status, 0)
        status, text, err = run("trace", f"{session}:9", *everybody)
        self.assertEqual(status, 1)
        self.assertIn(f"{session}:2", err)
        # One end only: what is there is drawn, and what to ask for is said.
        status, text, err = run("trace", session, f"--gnb=127.0.0.1:{b}")
        self.assertEqual(status, 0)
        self.assertIn("no report of the source gnb-a", err)
        self.assertIn("--ue", err)
        self.assertTrue(json.loads(text)["traceEvents"])


if __name__ == "__main__":
    unittest.main()
