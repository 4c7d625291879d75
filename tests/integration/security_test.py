"""gNBs whose clients and operators need TLS and keys: two tenants, a UE that moves, a vehicle's RAN feed."""

import json
import os
import shutil
import ssl
import tempfile
import unittest
import urllib.error
import urllib.request

from crash_test import REQUEST, prompt
from support import TRACE, ClusterTest, free_ports, run, wait_for
from transcript import Stream

CELLS = ["cell_-1_4", "cell_-1_3"]
RED, BLUE, OPERATOR = "red-key-0123456789", "blue-key-0123456789", "operators-key-0123456789"


class Security(ClusterTest):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="pallas-security-")
        self.addCleanup(shutil.rmtree, self.folder)
        status, _, err = run("certs", self.folder, "--names=gnb-a,gnb-b", "--hosts=127.0.0.1,localhost")
        self.assertEqual(status, 0, err)
        for name, text in (("keys", f"red {RED}\nblue {BLUE}\n"), ("operator", OPERATOR), ("red", RED + "\n")):
            self.write(name, text)
        self.tls = ssl.create_default_context(cafile=self.at("ca.crt"))
        self.operators = dict(zip(("gnb-a", "gnb-b"), free_ports(2)))
        self.gnbs = self.cluster(CELLS, flags_of=self.flags_of)

    def at(self, name):
        return os.path.join(self.folder, name)

    def write(self, name, text):
        with open(os.open(self.at(name), os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
            file.write(text)

    def flags_of(self, name):
        pair = {f"--{kind}-cert={self.at(name)}.crt" for kind in ("peer", "api")}
        keys = {f"--{kind}-key={self.at(name)}.key" for kind in ("peer", "api")}
        return [*pair, *keys, f"--peer-ca={self.at('ca.crt')}", f"--api-keys-file={self.at('keys')}",
                f"--operator-listen=127.0.0.1:{self.operators[name]}", f"--operator-key-file={self.at('operator')}",
                "--log-level=trace"]  # fmt: skip

    def ask(self, method, port, path, key=None, body=None, headers=None):
        """(status, text)"""
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(f"https://127.0.0.1:{port}{path}", data=data, method=method, headers=headers or {})
        if key:
            request.add_header("Authorization", f"Bearer {key}")
        try:
            with urllib.request.urlopen(request, timeout=60, context=self.tls) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()

    def map_flags(self, ports):
        flags = [f"--gnb={name}=https://127.0.0.1:{port}" for name, port in ports.items()]
        return flags + [f"--cell={cell}={name}" for cell, name in self.gnbs.cells.items()] + [f"--gnb-ca={self.at('ca.crt')}"]

    def logs(self):
        return "".join(gnb.read(gnb.err) for gnb in self.gnbs.gnbs.values())

    def test_a_ue_and_a_vehicle_with_keys_move_a_session(self):
        port = free_ports(1)[0]
        ue = self.gnbs.start("ue", "ue", "--ue=ue-2", f"--listen=127.0.0.1:{port}", f"--cell-now={CELLS[0]}",
                             f"--api-key-file={self.at('red')}", *self.map_flags(self.gnbs.http))  # fmt: skip
        ue.wait_for_line("UE ", 20)
        request = dict(REQUEST, messages=prompt(12), stream=True, max_token_rate=25, max_tokens=260)
        stream = Stream(port, request)
        stream.start()
        wait_for(lambda: stream.times or stream.errors, 60, "the first token")
        drive = self.gnbs.start("drive", "drive", "--ue=ue-2", f"--ue-endpoint=127.0.0.1:{port}", "--cell-offset=50",
                                f"--trip={TRACE}", "--vehicle=2", "--from=100", "--to=106", "--hz=10",
                                f"--operator-key-file={self.at('operator')}", *self.map_flags(self.operators))  # fmt: skip
        stream.join(timeout=90)
        self.assertEqual((stream.errors, stream.done), ([], 1))
        self.assertEqual(drive.process.wait(timeout=30), 0, drive.read(drive.err))
        status, text = self.ask("GET", self.operators["gnb-b"], "/v1/handovers", OPERATOR)
        self.assertEqual(status, 200)
        reports = json.loads(text)["data"]
        self.assertEqual(len(reports), 1, reports)
        self.assertTrue(reports[0]["exact"], reports)
        body = {k: v for k, v in request.items() if k not in ("max_token_rate", "stream")}
        status, text = self.ask("POST", self.gnbs.http["gnb-b"], "/v1/chat/completions", BLUE, body)
        self.assertEqual(status, 200, text)
        self.assertEqual(stream.text, json.loads(text)["choices"][0]["message"]["content"])
        sessions = json.loads(self.ask("GET", self.operators["gnb-b"], "/v1/sessions", OPERATOR)[1])["data"]
        self.assertIn("red", {s["tenant"] for s in sessions})
        trace = run("trace", "latest", "--table", f"--out={self.at('trace.json')}", f"--gnb-ca={self.at('ca.crt')}",
                    f"--operator-key-file={self.at('operator')}",
                    *[f"--gnb=https://127.0.0.1:{p}" for p in self.operators.values()])  # fmt: skip
        self.assertEqual(trace[0], 0, trace[2])
        said = self.logs()
        for at in self.operators.values():
            said += self.ask("GET", at, "/metrics", OPERATOR)[1]
        self.assertIn("HandoverRequest", said)  # the logs tell of every message
        for secret in (RED, BLUE, OPERATOR, "long story about a river", "PRIVATE KEY", stream.text[40:80]):
            self.assertNotIn(secret, said)

    def test_a_tenant_cannot_reach_anothers_session(self):
        port = self.gnbs.http["gnb-a"]
        body = dict(REQUEST, messages=prompt(1), stream=True, max_token_rate=10, max_tokens=100)
        request = urllib.request.Request(f"https://127.0.0.1:{port}/v1/chat/completions", data=json.dumps(body).encode(),
                                         headers={"Authorization": f"Bearer {RED}", "Pallas-Resume": "1"})  # fmt: skip
        with urllib.request.urlopen(request, timeout=60, context=self.tls) as answer:
            for line in answer:
                if line.startswith(b"data: "):
                    session = json.loads(line[6:])
                    break
            path, token = f"/v1/sessions/{session['session']}", {"Pallas-Resume-Token": session["resume_token"]}
            unknown = "/v1/sessions/" + "0" * 32
            for gnb in self.gnbs.names:
                port = self.gnbs.http[gnb]
                for method, end, content in (("GET", "/events", None), ("POST", "/attach", {"epoch": 2, "next_index": 0}),
                                             ("DELETE", "", None)):  # fmt: skip
                    mine = self.ask(method, port, path + end, BLUE, content, token)
                    other = self.ask(method, port, unknown + end, BLUE, content, token)
                    self.assertEqual((mine[0], mine), (404, other), f"{gnb} {method}")
                    self.assertEqual(self.ask(method, port, path + end, None, content, token)[0], 401)
                self.assertEqual(self.ask("GET", port, "/v1/sessions", BLUE)[0], 404)
                self.assertEqual(self.ask("GET", self.operators[gnb], "/v1/sessions", BLUE)[0], 401)
                self.assertEqual(self.ask("POST", self.operators[gnb], "/v1/predictions", BLUE, {})[0], 401)
            # It goes on as if nothing had been.
            self.assertIn(b"data: [DONE]", answer.read())
        self.assertEqual(self.ask("DELETE", self.gnbs.http["gnb-a"], path, RED, None, token)[0], 200)
        self.assertNotIn(session["resume_token"], self.logs())

    def test_what_listens_elsewhere_needs_tls_and_keys(self):
        for flags, words in (
            (["--http-listen=0.0.0.0:8080"], ["http_listen", "api_cert", "allow_remote"]),
            (["--operator-listen=0.0.0.0:8081"], ["operator_listen", "operator_key_file"]),
            (["--api-cert=a"], ["api_key"]),
            ([f"--api-keys-file={self.at('keys')}"], ["api_keys_file", "operator"]),
        ):
            status, out, err = run("gnb", "--name=a", "--dry-run", *flags)
            self.assertEqual(status, 2, out + err)
            for word in words:
                self.assertIn(word, err)


if __name__ == "__main__":
    unittest.main()
