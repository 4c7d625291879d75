"""A rolling upgrade: gNBs of minor versions N and N-1 side by side, sessions that move both ways between them."""

import json
import unittest

from crash_test import REQUEST, Stream, prompt
from support import ClusterTest, http, run, wait_for

CELLS = ["cell_0_0", "cell_1_0"]


class Upgrade(ClusterTest):
    def carry(self, older):
        """A session goes from gnb-a to gnb-b and back, `older` speaking as of the version before."""
        gnbs = self.cluster(CELLS, flags_of=lambda name: ["--wire-minor=0"] if name == older else [])
        ue = gnbs.start_ue("ue-1", CELLS[0])
        request = dict(REQUEST, messages=prompt(12), stream=True, max_token_rate=25, max_tokens=150)
        stream = Stream(ue, request)
        stream.start()
        wait_for(lambda: stream.times or stream.errors, 60, "the first token")
        gnbs.hand_over("ue-1", ue, 1, CELLS[0], CELLS[1])
        wait_for(lambda: gnbs.reports(), 20, "a handover")
        gnbs.hand_over("ue-1", ue, 3, CELLS[1], CELLS[0])
        stream.join(timeout=90)
        self.assertEqual((stream.errors, stream.done), ([], 1))
        reports = gnbs.reports()
        self.assertEqual([r["prepared"] for r in reports], [True, True], reports)
        body = {k: v for k, v in request.items() if k not in ("max_token_rate", "stream")}
        answer = json.loads(http("POST", gnbs.http["gnb-b"], "/v1/chat/completions", body, timeout=90)[1])
        self.assertEqual(stream.text, answer["choices"][0]["message"]["content"])
        for name in gnbs.names:
            # A message that it does not know would have ended the link.
            metrics = http("GET", gnbs.http[name], "/metrics")[1]
            self.assertRegex(metrics, r"(?m)^pallas_peer_up\{[^}]*\} 1$")
            self.assertRegex(metrics, r"(?m)^pallas_peer_connects_total\{[^}]*\} 1$")
            self.assertNotIn("minor version", gnbs.gnbs[name].read(gnbs.gnbs[name].err))

    def test_the_first_gnb_is_still_the_older_one(self):
        self.carry("gnb-a")

    def test_the_second_gnb_is_still_the_older_one(self):
        self.carry("gnb-b")

    def test_no_other_version_is_offered(self):
        status, out, err = run("gnb", "--name=a", "--dry-run", "--wire-minor=7")
        self.assertEqual(status, 2, out + err)
        self.assertIn("wire_minor: must be 0 or 1", err)


if __name__ == "__main__":
    unittest.main()
