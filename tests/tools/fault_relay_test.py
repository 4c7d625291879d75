"""The relay of tests/integration between two sockets: frames pass unchanged, and faults come exactly where they should."""

import pathlib
import socket
import struct
import sys
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "integration"))

from fault_relay import DOWN, TYPES, UP, FaultRelay  # noqa: E402


def frame(name, body=b"", payload=b""):
    return struct.pack("<4sBBHII", b"PLS1", TYPES[name], 0, 0, len(body), len(payload)) + body + payload


REQUEST = frame("HandoverRequest", b"r" * 400)
TOKEN = frame("TokenUpdate", b"t" * 20)
BLOCK = frame("KvBlock", b"h" * 30, b"k" * 50000)
KEEP_ALIVE = frame("KeepAlive", b"\x08\x01")


class Relay(unittest.TestCase):
    def setUp(self):
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.relay = FaultRelay(self.listener.getsockname()[1])
        self.addCleanup(self.listener.close)
        self.addCleanup(self.relay.close)
        self.caller, self.callee = self.connect()

    def connect(self):
        caller = socket.create_connection(("127.0.0.1", self.relay.port), timeout=5)
        callee, _ = self.listener.accept()
        callee.settimeout(5)
        self.addCleanup(caller.close)
        self.addCleanup(callee.close)
        return caller, callee

    def read(self, end, count):
        data = b""
        while len(data) < count and (more := end.recv(count - len(data))):
            data += more
        return data

    def read_to_reset(self, end):
        data = b""
        try:
            while more := end.recv(65536):
                data += more
        except ConnectionResetError:
            pass
        return data

    def test_frames_pass_unchanged_both_ways(self):
        sent = REQUEST + TOKEN + BLOCK + KEEP_ALIVE
        self.caller.sendall(sent)
        self.assertEqual(self.read(self.callee, len(sent)), sent)
        self.callee.sendall(KEEP_ALIVE + TOKEN)
        self.assertEqual(self.read(self.caller, len(KEEP_ALIVE + TOKEN)), KEEP_ALIVE + TOKEN)

    def test_a_cut_comes_before_in_the_middle_of_or_after_the_frame_that_was_named(self):
        # What reached the other end is what had passed; a reset may still take some of it back.
        for where, passed in (("before", TOKEN), ("middle", TOKEN + BLOCK[: len(BLOCK) // 2]), ("after", TOKEN + BLOCK)):
            with self.subTest(where):
                caller, callee = self.connect()
                counted = []
                put = self.relay.put

                async def counting(connection, direction, piece):
                    await put(connection, direction, piece)
                    counted.append(piece)

                self.relay.put = counting
                trigger = self.relay.on_frame("KvBlock", self.relay.cut, direction=UP, where=where)
                caller.sendall(TOKEN + BLOCK + TOKEN)
                self.assertTrue(trigger.fired.wait(5))
                at_cut = b"".join(counted)
                self.relay.put = put
                self.assertEqual(at_cut[: len(passed)], passed)
                self.assertLessEqual(len(at_cut), len(passed) + 1)
                self.assertTrue(passed.startswith(self.read_to_reset(callee)[: len(passed)]))

    def test_a_trigger_counts_frames_of_its_direction_after_the_one_it_waits_for(self):
        fired = []
        self.relay.on_frame("TokenUpdate", lambda: fired.append(dict(self.relay.seen[UP])), UP, 2, since="KeepAlive")
        self.callee.sendall(TOKEN + TOKEN + TOKEN)
        self.read(self.caller, 3 * len(TOKEN))
        self.caller.sendall(TOKEN + TOKEN + KEEP_ALIVE + TOKEN)
        self.read(self.callee, 3 * len(TOKEN) + len(KEEP_ALIVE))
        self.assertEqual(fired, [])
        self.caller.sendall(TOKEN + TOKEN)
        self.read(self.callee, 2 * len(TOKEN))
        self.assertEqual(fired, [{TYPES["TokenUpdate"]: 4, TYPES["KeepAlive"]: 1}])

    def test_loss_is_one_way_and_ends_in_a_reset(self):
        self.relay.lose(UP)
        self.caller.sendall(TOKEN)
        self.callee.sendall(KEEP_ALIVE)
        self.assertEqual(self.read(self.caller, len(KEEP_ALIVE)), KEEP_ALIVE)
        self.callee.settimeout(0.2)
        with self.assertRaises(TimeoutError):
            self.callee.recv(1)
        self.callee.settimeout(5)
        self.relay.heal()
        self.assertEqual(self.read_to_reset(self.callee), b"")
        caller, callee = self.connect()
        caller.sendall(TOKEN)
        self.assertEqual(self.read(callee, len(TOKEN)), TOKEN)

    def test_what_was_said_is_said_again_when_the_link_stands_anew(self):
        self.caller.sendall(KEEP_ALIVE + REQUEST + TOKEN)
        self.read(self.callee, len(KEEP_ALIVE + REQUEST + TOKEN))
        self.relay.cut_and_replay(UP)
        caller, callee = self.connect()
        caller.sendall(KEEP_ALIVE)
        self.assertEqual(self.read(callee, len(KEEP_ALIVE + REQUEST + TOKEN)), KEEP_ALIVE + REQUEST + TOKEN)

    def test_delay_and_rate_hold_bytes_back(self):
        self.relay.delay[DOWN] = 0.2
        begun = time.monotonic()
        for _ in range(5):
            self.callee.sendall(TOKEN)
            time.sleep(0.01)
        self.read(self.caller, 5 * len(TOKEN))
        self.assertGreater(time.monotonic() - begun, 0.2)
        self.assertLess(time.monotonic() - begun, 0.8)  # each by itself, not one after the other
        self.relay.rate[UP] = 200_000
        begun = time.monotonic()
        self.caller.sendall(BLOCK)
        self.read(self.callee, len(BLOCK))
        self.assertGreater(time.monotonic() - begun, 0.2)


if __name__ == "__main__":
    unittest.main()
