"""Twenty handovers of one session to and fro: each token once, and nothing left behind. And one to a cell that nobody
prepared, which begins with a part of the KV.

`ping_pong_test.py fake` needs no model, `ping_pong_test.py llama` uses the shipped one.
"""

import json
import os
import re
import sys
import time
import unittest

from crash_test import REQUEST, prompt
from support import ClusterTest, http, wait_for
from transcript import Stream

ENGINE = "fake"
CELLS = ["cell_0_0", "cell_1_0"]
HANDOVERS = 20


class PingPong(ClusterTest):
    def state(self, gnb):
        """Free slots, staged bytes, sessions that hold anything, descriptors, resident KiB."""
        metrics = http("GET", self.gnbs.http[gnb], "/metrics")[1]
        value = lambda name: float(re.search(rf"^{name}(?:{{[^}}]*}})? (\S+)$", metrics, re.M)[1])
        process = self.gnbs.gnbs[gnb].process.pid
        with open(f"/proc/{process}/status") as file:
            status = file.read()
        return {
            "free_slots": value("pallas_free_slots"),
            "staged": value("pallas_staged_bytes"),
            "live": value("pallas_sessions_live"),
            "retained": value("pallas_sessions_retained"),
            "descriptors": len(os.listdir(f"/proc/{process}/fd")),
            "resident_kib": int(re.search(r"VmRSS:\s+(\d+)", status)[1]),
        }

    def test_twenty_handovers_to_and_fro_leave_nothing_behind(self):
        self.gnbs = self.cluster(CELLS, engine=ENGINE, flags=["--goodput-mbps=50", "--retain-s=1"])
        self.ue = self.gnbs.start_ue("ue-1", CELLS[0])
        # One short session first, so that what is allocated once is there.
        warm = Stream(self.ue, dict(REQUEST, messages=prompt(12), stream=True, max_tokens=20))
        warm.start()
        warm.join(timeout=60)
        self.assertEqual(warm.done, 1)
        before = {gnb: self.state(gnb) for gnb in self.gnbs.names}

        request = dict(REQUEST, messages=prompt(12), stream=True, max_token_rate=20, max_tokens=600)
        stream = Stream(self.ue, request)
        stream.start()
        wait_for(lambda: stream.times, 60, "the first token")
        for i in range(HANDOVERS):
            self.gnbs.hand_over("ue-1", self.ue, 2 * i + 1, CELLS[i % 2], CELLS[1 - i % 2])
            time.sleep(0.5)
        stream.join(timeout=90)
        self.assertEqual(stream.errors, [])
        self.assertEqual(stream.done, 1)
        reports = self.gnbs.reports()
        self.assertEqual(len(reports), HANDOVERS)
        self.assertTrue(all(r["exact"] for r in reports))
        body = {k: v for k, v in request.items() if k not in ("max_token_rate", "stream")}
        answer = json.loads(http("POST", self.gnbs.http["gnb-b"], "/v1/chat/completions", body, timeout=90)[1])
        self.assertEqual(stream.text, answer["choices"][0]["message"]["content"])

        def same():
            after = {gnb: self.state(gnb) for gnb in self.gnbs.names}
            return all(
                all(after[g][k] == before[g][k] for k in ("free_slots", "staged", "live", "retained"))
                and after[g]["descriptors"] <= before[g]["descriptors"] + 1
                for g in after
            ) and after

        after = wait_for(same, 15, f"everything freed (before: {before}, now: { {g: self.state(g) for g in before} })")
        for gnb in before:
            growth = after[gnb]["resident_kib"] - before[gnb]["resident_kib"]
            print(f"{gnb}: resident {before[gnb]['resident_kib']} KiB before, {growth:+d} KiB after {HANDOVERS} handovers")
            self.assertLess(growth, 64 * 1024, gnb)


class UnpreparedCell(ClusterTest):
    def test_it_begins_with_a_part_of_the_kv_and_becomes_whole(self):
        # The whole takes a second or two; rows of the made-up engine are small.
        goodput = 60 if ENGINE == "llama" else 0.06
        flags = ["--scheme=partial", "--partial-fraction=0.4", f"--goodput-mbps={goodput}"]
        gnbs = self.cluster(CELLS, engine=ENGINE, flags=flags)
        ue = gnbs.start_ue("ue-1", CELLS[0])
        request = dict(REQUEST, messages=prompt(30), stream=True, max_token_rate=20, max_tokens=200, consistency="prefer-exact")
        stream = Stream(ue, request)
        stream.start()
        wait_for(lambda: len(stream.times) > 20, 60, "twenty tokens")
        # Only the UE knows that it moves.
        event = {"ue": "ue-1", "seq": 1, "phase": "execution", "source": CELLS[0], "target": CELLS[1]}
        self.assertIn(http("POST", ue, "/v1/handovers", event)[0], (200, 204))

        def partial():
            sessions = json.loads(http("GET", gnbs.http["gnb-b"], "/v1/sessions")[1])["data"]
            return any(session["partial"] for session in sessions)

        wait_for(partial, 20, "decoding on a part")
        wait_for(lambda: not partial(), 20, "the whole")
        stream.join(timeout=90)
        self.assertEqual(stream.errors, [])
        self.assertEqual(stream.done, 1)
        (report,) = gnbs.reports()
        part = report["partial"]
        print(f"partial: {json.dumps(part)}, first token after {report['first_token_ms']:.0f} ms")
        self.assertEqual((report["scheme"], report["recovery"], report["exact"]), ("partial", "retrieved", False))
        self.assertGreaterEqual(part["fraction"], 0.4)
        self.assertLess(part["fraction"], 0.6)
        self.assertTrue(part["second_slot"])
        self.assertGreater(part["tokens"], 0)
        self.assertGreaterEqual(part["tokens_replayed"], part["tokens"])
        self.assertLess(report["first_token_ms"], part["complete_ms"])
        self.assertEqual(report["tokens_recomputed"], 0)
        self.assertIsNotNone(report["release_ack_ms"])
        # Each token once and in order, as the UE saw it.
        (seen,) = json.loads(http("GET", ue, "/v1/handovers")[1])["handovers"]
        self.assertEqual(seen["last_before"] + 1 + seen["tokens"], 200)


if __name__ == "__main__":
    ENGINE = sys.argv.pop(1)
    unittest.main()
