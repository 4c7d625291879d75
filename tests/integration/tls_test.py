"""gNBs that know each other by certificates: `pallas certs` makes them, a session moves, strangers stay out."""

import json
import os
import shutil
import stat
import tempfile
import unittest

from crash_test import REQUEST, prompt
from support import ClusterTest, http, run, wait_for
from transcript import Stream

CELLS = ["cell_0_0", "cell_1_0"]


class Tls(ClusterTest):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="pallas-certs-")
        self.addCleanup(shutil.rmtree, self.folder)
        self.certs("gnb-a,gnb-b")

    def certs(self, names, folder=""):
        status, out, err = run("certs", os.path.join(self.folder, folder), f"--names={names}")
        self.assertEqual(status, 0, err)
        return out.split()

    def flags_of(self, name, folder=""):
        at = os.path.join(self.folder, folder)
        return [f"--peer-cert={at}/{name}.crt", f"--peer-key={at}/{name}.key", f"--peer-ca={at}/ca.crt"]

    def log(self, gnbs, name):
        return gnbs.gnbs[name].read(gnbs.gnbs[name].err)

    def test_keys_are_for_their_owner_and_the_authority_stays(self):
        ca = os.path.join(self.folder, "ca.crt")
        with open(ca) as file:
            before = file.read()
        written = self.certs("gnb-c")
        self.assertEqual([os.path.basename(path) for path in written], ["gnb-c.key", "gnb-c.crt"])
        with open(ca) as file:
            self.assertEqual(file.read(), before)
        for name in os.listdir(self.folder):
            if name.endswith(".key"):
                self.assertEqual(stat.S_IMODE(os.stat(os.path.join(self.folder, name)).st_mode), 0o600, name)

    def test_a_session_moves_under_tls_and_certificates_change_meanwhile(self):
        gnbs = self.cluster(CELLS, flags_of=self.flags_of)
        ue = gnbs.start_ue("ue-1", CELLS[0])
        request = dict(REQUEST, messages=prompt(12), stream=True, max_token_rate=25, max_tokens=200)
        stream = Stream(ue, request)
        stream.start()
        wait_for(lambda: stream.times, 60, "the first token")
        gnbs.hand_over("ue-1", ue, 1, CELLS[0], CELLS[1])
        wait_for(lambda: gnbs.reports(), 10, "a handover")
        self.certs("gnb-a,gnb-b")
        for name in gnbs.names:
            wait_for(lambda: "were read again" in self.log(gnbs, name), 10, "new certificates")
        gnbs.hand_over("ue-1", ue, 3, CELLS[1], CELLS[0])
        stream.join(timeout=60)
        self.assertEqual((stream.errors, stream.done), ([], 1))
        reports = gnbs.reports()
        self.assertEqual(len(reports), 2)
        self.assertTrue(all(r["exact"] and r["prepared"] for r in reports), reports)
        body = {k: v for k, v in request.items() if k not in ("max_token_rate", "stream")}
        answer = json.loads(http("POST", gnbs.http["gnb-b"], "/v1/chat/completions", body, timeout=90)[1])
        self.assertEqual(stream.text, answer["choices"][0]["message"]["content"])
        metrics = http("GET", gnbs.http["gnb-a"], "/metrics")[1]
        self.assertRegex(metrics, r"(?m)^pallas_peer_certificate_end_seconds \d")
        for name in gnbs.names:
            self.assertIn("over TLS 1.3", self.log(gnbs, name))
            self.assertNotIn("PRIVATE KEY", self.log(gnbs, name))

    def test_gnbs_of_different_authorities_do_not_meet(self):
        self.certs("gnb-b", "other")
        gnbs = self.cluster(CELLS, flags_of=lambda name: self.flags_of(name, "other" if name == "gnb-b" else ""))
        # The dialling side looks first.
        wait_for(lambda: "certificate is refused" in self.log(gnbs, "gnb-a"), 10, "gnb-a's word")
        wait_for(lambda: "refused us by the TLS alert" in self.log(gnbs, "gnb-b"), 10, "gnb-b's word")
        self.assertRegex(http("GET", gnbs.http["gnb-a"], "/metrics")[1], r'(?m)^pallas_peer_up\{peer="gnb-b"\} 0$')

    def test_a_gnb_without_tls_and_one_with_it_say_so(self):
        gnbs = self.cluster(CELLS, flags_of=lambda name: self.flags_of(name) if name == "gnb-b" else [])
        wait_for(lambda: "the caller speaks no TLS" in self.log(gnbs, "gnb-a"), 10, "gnb-a's word")
        wait_for(lambda: "the caller speaks no TLS" in self.log(gnbs, "gnb-b"), 10, "gnb-b's word")

    def test_wrong_files_are_named_before_the_model_is_loaded(self):
        good = self.flags_of("gnb-a")
        for name, words in (("gnb-z", ["peer_cert", "'gnb-a'", "'gnb-z'"]), ("gnb-a", ["nonexistent.gguf"])):
            status, out, err = run("gnb", f"--name={name}", "--model=/nonexistent.gguf", "--http-listen=127.0.0.1:0",
                                   "--peer-listen=127.0.0.1:0", *good)  # fmt: skip
            self.assertEqual(status, 1, out + err)
            for word in words:
                self.assertIn(word, err)


if __name__ == "__main__":
    unittest.main()
