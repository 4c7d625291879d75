"""`pallas bench transfer` with the made-up engine and without the library: what it measures and refuses."""

import json
import os
import tempfile
import unittest

from support import run

QUICK = ["--engine=fake", "--context=64", "--megabytes=1", "--plain"]
NO_PYTHON = "/nonexistent/python"
MEASURED = ["memcpy", "tcp", "tcp-xxh3", "tls", "tls-xxh3", "pallas", "pallas-tls"]


class BenchTransfer(unittest.TestCase):
    def bench(self, *flags, python=NO_PYTHON):
        status, out, err = run("bench", "transfer", *QUICK, f"--python={python}", *flags, timeout=100)
        self.assertEqual(status, 0, out + err)
        return out, err

    def test_every_path_moves_the_same_bytes_in_two_processes(self):
        with tempfile.TemporaryDirectory() as folder:
            out, err = self.bench("--block-tokens=16,64", "--repeat=3", "--json", f"--out={folder}")
            rows = json.loads(out)
            with open(os.path.join(folder, "transfer.json")) as file:
                self.assertEqual(json.load(file), rows)
            with open(os.path.join(folder, "transfer.txt")) as file:
                table = file.read()
        self.assertEqual([row["block_tokens"] for row in rows], [16] * 9 + [64] * 9)
        by_path = {}
        for row in rows:
            by_path.setdefault(row["path"], []).append(row)
        self.assertEqual(len({row["bytes"] for row in rows}), 1)
        self.assertGreaterEqual(rows[0]["bytes"], 1_000_000)
        for path in MEASURED:
            for row in by_path[path]:
                with self.subTest(path, block=row["block_tokens"]):
                    self.assertEqual((row["samples"], len(row["seconds"]), row["why_not"]), (3, 3, ""))
                    self.assertAlmostEqual(row["bytes_per_s"], row["bytes"] / sorted(row["seconds"])[1], delta=1)
                    if path != "memcpy":  # a megabyte is copied faster than the system accounts for
                        self.assertGreater(row["cpu_s_per_gb"], 0)
                    self.assertGreater(row["bytes_per_s_over_tcp_xxh3"], 0)
                    self.assertGreater(row["bytes_per_s_over_tls_xxh3"], 0)
        for row in by_path["pallas"] + by_path["pallas-tls"]:
            self.assertIs(row["rows_equal"], True)
        for row in by_path["tls"]:
            self.assertIn("TLS_", row["detail"])
        self.assertGreater(by_path["memcpy"][1]["bytes_per_s"], by_path["tls"][1]["bytes_per_s"])
        for path in ("nixl", "nixl-thread"):
            for row in by_path[path]:
                self.assertIsNone(row["bytes_per_s"])
                self.assertNotEqual(row["why_not"], "")
        self.assertIn("blocks of 64 tokens", table)
        self.assertIn("round 3", err)

    def test_without_the_library_its_row_says_how_to_install_it(self):
        with tempfile.TemporaryDirectory() as folder:
            # An interpreter that finds no packages but its own.
            python = os.path.join(folder, "python")
            with open(python, "w") as file:
                file.write('#!/bin/sh\nexec /usr/bin/python3 -I -S "$@"\n')
            os.chmod(python, 0o755)
            out, _ = self.bench("--path=nixl,tcp-xxh3", "--block-tokens=16", "--repeat=1", python=python)
        self.assertIn("bench/nixl-requirements.txt", out)
        self.assertRegex(out, r"tcp-xxh3 +[0-9.]+ +1.00 +-")

    def test_congestion_control_is_stated_and_the_same_for_all(self):
        with open("/proc/sys/net/ipv4/tcp_congestion_control") as file:
            default = file.read().strip()
        for flags, name in (([], default), (["--congestion-control=reno"], "reno")):
            out, _ = self.bench("--path=tcp-xxh3,pallas", "--block-tokens=32", "--repeat=1", "--json", *flags)
            self.assertEqual({row["congestion_control"] for row in json.loads(out)}, {name})

    def test_bad_input_is_refused_by_name(self):
        for flag, field in (
            ("--path=pigeon", "path"),
            ("--block-tokens=0", "block_tokens"),
            ("--block-tokens=65", "block_tokens"),
            ("--megabytes=0", "megabytes"),
            ("--repeat=0", "repeat"),
            ("--engine=vllm", "engine"),
            ("--congestion-control=nosuch", "congestion_control"),
        ):
            with self.subTest(flag):
                status, out, err = run("bench", "transfer", *QUICK, "--block-tokens=16", flag)
                self.assertEqual(status, 2, out + err)
                self.assertIn(field, err)
                self.assertEqual(out, "")


if __name__ == "__main__":
    unittest.main()
