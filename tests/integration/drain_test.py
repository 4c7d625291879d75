"""A gNB that is to end: SIGTERM, `pallas drain`, the limit, the second signal; and `pallas move`."""

import json
import signal
import socket
import threading
import time
import unittest

from crash_test import REQUEST, Stream, prompt
from support import ClusterTest, http, run, wait_for

CELLS = ["c1", "c2"]
SESSIONS = 5


class Drain(ClusterTest):
    def start(self, *flags_of_a):
        flags_of = lambda name: list(flags_of_a) if name == "gnb-a" else []
        return self.cluster(CELLS, flags=["--slots=12", "--goodput-mbps=50"], flags_of=flags_of)

    def talk(self, gnbs, tokens, count=SESSIONS):
        """Streams through a UE each, at gnb-a."""
        streams = []
        for i in range(count):
            ue = gnbs.start_ue(f"ue-{i}", CELLS[0])
            request = dict(REQUEST, messages=prompt(8), stream=True, max_token_rate=20, max_tokens=tokens, seed=i)
            streams.append(Stream(ue, request))
            streams[-1].start()
        wait_for(lambda: all(s.times for s in streams), 60, "the first tokens")
        return streams

    def expect_whole(self, streams, seconds):
        for stream in streams:
            stream.join(timeout=seconds)
            self.assertEqual(stream.errors, [])
            self.assertEqual(stream.done, 1)
        # The same request at one gNB, without a move.
        gnbs = self.cluster(CELLS[:1], flags=["--slots=12"])
        for i, stream in enumerate(streams):
            request = dict(REQUEST, messages=prompt(8), max_tokens=stream.request["max_tokens"], seed=i)
            request.pop("stream", None)
            request.pop("max_token_rate", None)
            status, text = http("POST", gnbs.http["gnb-a"], "/v1/chat/completions", request)
            self.assertEqual(status, 200, text)
            self.assertEqual(stream.text, json.loads(text)["choices"][0]["message"]["content"])

    def wait_for_end(self, gnb, seconds):
        code = gnb.process.wait(timeout=seconds)
        last = gnb.read(gnb.err).strip().splitlines()[-1]
        self.assertIn("ended", last)
        return code, last

    def test_sigterm_moves_five_sessions_to_the_peer_and_the_gnb_ends(self):
        gnbs = self.start("--drain-to=gnb-b", "--drain-limit-s=40")
        streams = self.talk(gnbs, 300)
        gnb = gnbs.gnbs["gnb-a"]
        gnb.process.send_signal(signal.SIGTERM)
        wait_for(lambda: http("GET", gnbs.http["gnb-a"], "/health")[0] == 503, 5, "the draining gNB")
        status, text = http("POST", gnbs.http["gnb-a"], "/v1/chat/completions", dict(REQUEST, messages=prompt(2)))
        self.assertEqual(status, 503, text)
        self.assertEqual(json.loads(text)["error"]["code"], "draining")
        code, last = self.wait_for_end(gnb, 45)
        self.assertEqual(code, 0, last)
        self.assertIn("moved=5", last)
        self.expect_whole(streams, 60)

    def test_sigterm_with_five_transfers_in_flight_lets_them_commit(self):
        gnbs = self.start("--drain-limit-s=40")
        streams = self.talk(gnbs, 200)
        threads = []
        for i, stream in enumerate(streams):
            move = lambda i=i, s=stream: gnbs.hand_over(f"ue-{i}", s.port, 1, CELLS[0], CELLS[1])
            threads.append(threading.Thread(target=move))
            threads[-1].start()
        time.sleep(0.25)  # foretold 0.4 s before: they are being prepared
        gnb = gnbs.gnbs["gnb-a"]
        gnb.process.send_signal(signal.SIGTERM)
        for thread in threads:
            thread.join(timeout=20)
        code, last = self.wait_for_end(gnb, 45)
        self.assertEqual(code, 0, last)
        self.expect_whole(streams, 60)

    def test_what_is_left_at_the_limit_hears_so_and_the_exit_code_says_it(self):
        gnbs = self.start("--drain-limit-s=1")
        stream = Stream(gnbs.http["gnb-a"], dict(REQUEST, messages=prompt(2), stream=True, max_tokens=900))
        stream.start()
        wait_for(lambda: stream.times, 30, "the first token")
        gnb = gnbs.gnbs["gnb-a"]
        began = time.monotonic()
        gnb.process.send_signal(signal.SIGTERM)
        code, last = self.wait_for_end(gnb, 10)
        self.assertEqual(code, 3, last)
        self.assertIn("left=1", last)
        self.assertGreater(time.monotonic() - began, 0.9)
        stream.join(timeout=10)
        self.assertEqual(stream.done, 0)
        self.assertIn("ended before the answer", "".join(str(error) for error in stream.errors))

    def test_a_second_signal_ends_it_at_once(self):
        gnbs = self.start("--drain-limit-s=60")
        stream = Stream(gnbs.http["gnb-a"], dict(REQUEST, messages=prompt(2), stream=True, max_tokens=900))
        stream.start()
        wait_for(lambda: stream.times, 30, "the first token")
        gnb = gnbs.gnbs["gnb-a"]
        gnb.process.send_signal(signal.SIGTERM)
        wait_for(lambda: http("GET", gnbs.http["gnb-a"], "/health")[0] == 503, 5, "the draining gNB")
        gnb.process.send_signal(signal.SIGTERM)
        code, last = self.wait_for_end(gnb, 5)
        self.assertEqual(code, 3, last)

    def test_the_command_drains_a_gnb_to_a_peer(self):
        gnbs = self.start()
        at = f"127.0.0.1:{gnbs.http['gnb-a']}"
        self.assertEqual(run("drain", at, "--to=nobody")[0], 2)
        self.assertEqual(http("GET", gnbs.http["gnb-a"], "/health")[0], 200)
        streams = self.talk(gnbs, 250, count=2)
        code, out, err = run("drain", at, "--to=gnb-b", "--limit=40", "--json", timeout=60)
        self.assertEqual(code, 0, err)
        self.assertEqual(json.loads(out)["moved"], 2)
        self.assertEqual(gnbs.gnbs["gnb-a"].process.wait(timeout=10), 0)
        self.assertEqual(run("drain", at)[0], 1)  # nobody is there
        self.expect_whole(streams, 60)

    def test_the_command_moves_one_session(self):
        gnbs = self.start()
        streams = self.talk(gnbs, 250, count=1)
        at = f"--from=127.0.0.1:{gnbs.http['gnb-a']}"
        listed = json.loads(http("GET", gnbs.http["gnb-a"], "/v1/sessions")[1])["data"]
        session = next(s["id"] for s in listed if s["role"] == "serving")
        code, out, err = run("move", session, "--to=gnb-b", at, "--dry-run", "--json")
        self.assertEqual(code, 0, err)
        plan = json.loads(out)
        self.assertEqual((plan["state"], plan["id"]), ("planned", None))
        self.assertGreater(plan["plan"]["context"], 0)
        code, out, err = run("move", session, "--to=gnb-b", at, "--wait", "--json", timeout=60)
        self.assertEqual(code, 0, out + err)
        moved = json.loads(out)
        self.assertEqual(moved["state"], "completed")
        report = json.loads(http("GET", gnbs.http["gnb-b"], "/v1/handovers/" + moved["handover"])[1])
        self.assertTrue(report["arrival"]["prepared"])
        code, out, err = run("move", session, "--to=gnb-b", at)
        self.assertEqual(code, 1)
        self.assertIn("gnb-b", err)
        self.assertEqual(run("move", "9" * 32, "--to=gnb-b", at)[0], 1)
        self.expect_whole(streams, 60)


class Crowd(ClusterTest):
    def test_connections_above_the_limit_are_refused_with_503_not_with_a_reset(self):
        gnbs = self.cluster(["c1"], flags=["--max-connections=20"])
        port = gnbs.http["gnb-a"]
        held = [socket.create_connection(("127.0.0.1", port)) for _ in range(20)]
        self.addCleanup(lambda: [s.close() for s in held])
        wait_for(lambda: self.answer(port).startswith(b"HTTP/1.1 503 "), 5, "a full gNB")
        crowd = [socket.create_connection(("127.0.0.1", port)) for _ in range(400)]
        for one in crowd:
            one.sendall(b"GET /v1/models HTTP/1.1\r\nHost: x\r\n\r\n")
        for one in crowd:
            text = self.read(one)
            self.assertTrue(text.startswith(b"HTTP/1.1 503 "), text)
            self.assertIn(b"Retry-After: ", text)

    def read(self, connection):
        connection.settimeout(20)
        text = b""
        while part := connection.recv(4096):
            text += part
        connection.close()
        return text

    def answer(self, port):
        connection = socket.create_connection(("127.0.0.1", port))
        connection.sendall(b"GET /health HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        return self.read(connection)


if __name__ == "__main__":
    unittest.main()
