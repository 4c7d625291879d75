"""What the program answers to bad input: a sentence that names what is wrong, a code other than 0."""

import contextlib
import os
import socket
import tempfile
import unittest

from support import TRACE, Cluster, free_ports, http, run


class BadInput(unittest.TestCase):
    def refused(self, args, *words, code=2):
        status, out, err = run(*args)
        self.assertEqual(status, code, out + err)
        for word in words:
            self.assertIn(word, err)

    def write(self, text, suffix):
        file = tempfile.NamedTemporaryFile("w", suffix=suffix, delete=False)
        self.addCleanup(os.unlink, file.name)
        with file:
            file.write(text)
        return file.name

    def test_an_unknown_command_is_named(self):
        self.refused(["fly"], "unknown command 'fly'", "Commands:")

    def test_an_unknown_flag_is_named(self):
        self.refused(["gnb", "--wings"], "--wings")

    def test_an_unknown_scheme_is_named_with_those_that_exist(self):
        for command in (["gnb", "--name=a"], ["demo"]):
            self.refused([*command, "--scheme=teleport"], "scheme", "teleport", "two-front")

    def test_a_malformed_config_is_named_by_file_line_and_key(self):
        path = self.write('name = "gnb-a"\nslots = "many"\n', ".toml")
        self.refused(["gnb", "--config", path], f"{path}:2: slots:")
        path = self.write('name = "gnb-a"\nnmae = 1\n', ".toml")
        self.refused(["gnb", "--config", path], f"{path}:2: unknown key 'nmae'")
        path = self.write('name = "gnb-a\n', ".toml")
        self.refused(["gnb", "--config", path], f"{path}:1:")

    def test_a_missing_config_is_named(self):
        self.refused(["gnb", "--config", "/nonexistent.toml"], "/nonexistent.toml")

    def test_a_cell_of_an_unknown_gnb_is_named(self):
        self.refused(["gnb", "--name=a", "--cell=c1=b"], "cells.c1", "'b'")

    def test_other_addresses_than_loopback_need_consent(self):
        self.refused(["gnb", "--name=a", "--http-listen=0.0.0.0:8080"], "http_listen", "allow_remote")

    def test_peers_elsewhere_need_tls(self):
        args = ["gnb", "--name=a", "--peer-listen=0.0.0.0:7080", "--dry-run"]
        self.refused(args, "peer_listen", "peer_cert", "insecure_peers")
        self.assertEqual(run(*args, "--insecure-peers")[0], 0)
        self.refused([*args, "--peer-cert=a.crt", "--peer-key=a.key"], "peer_ca")

    def test_names_that_cannot_be_are_refused(self):
        with tempfile.TemporaryDirectory() as folder:
            for names in ("a,a", "ca", "a/b", "a b"):
                self.refused(["certs", folder, f"--names={names}"], "names")
            self.refused(["certs", folder, "--names=a", "--days=0"], "days")
            self.assertEqual(os.listdir(folder), [])

    def test_a_folder_is_no_configuration(self):
        self.refused(["gnb", "--name=a", "--config=/tmp"], "/tmp")

    def test_cells_below_a_metre_are_refused(self):
        self.refused(["drive", f"--trip={TRACE}", "--vehicle=2", "--cell-size=1e-9", "--dry-run"], "size")

    def test_an_unknown_model_is_named(self):
        self.refused(["gnb", "--name=a", "--model=/nonexistent.gguf"], "/nonexistent.gguf", code=1)

    def test_a_port_in_use_is_named(self):
        for flag, other in (("http-listen", "peer-listen"), ("peer-listen", "http-listen")):
            with contextlib.closing(socket.socket()) as taken:
                taken.bind(("127.0.0.1", 0))
                taken.listen()
                port = taken.getsockname()[1]
                args = ["gnb", "--name=a", "--engine=fake", f"--{flag}=127.0.0.1:{port}", f"--{other}=127.0.0.1:0"]
                self.refused(args, str(port), flag.replace("-", "_"), code=1)
                # Before the model, which may take minutes to load.
                args[2] = "--model=/nonexistent.gguf"
                self.refused(args, str(port), flag.replace("-", "_"), code=1)

    def test_a_vehicle_that_never_crosses_a_cell_is_named(self):
        for command in (["drive", f"--trip={TRACE}"], ["demo", "--engine=fake"]):
            self.refused([*command, "--vehicle=2", "--cell-size=100000", "--cell-offset=-50000"], "'2' never leaves its cell")

    def test_an_unknown_vehicle_is_answered_with_some_that_exist(self):
        self.refused(["drive", f"--trip={TRACE}", "--vehicle=zebra"], "'zebra'", "it has 0, 1, 2")

    def test_a_malformed_trace_is_named_by_file_and_line(self):
        path = self.write("t_s,ue,x_m,y_m\n0,a,0,0\n1,a,north,0\n", ".csv")
        self.refused(["drive", f"--trip={path}", "--vehicle=a"], path, "3")
        path = self.write("time,car\n", ".csv")
        self.refused(["demo", "--engine=fake", f"--trip={path}"], path, "1")

    def test_a_cell_of_the_trip_without_a_gnb_is_named(self):
        args = ["drive", f"--trip={TRACE}", "--vehicle=2", "--cell-offset=50", "--from=98", "--to=119"]
        self.refused([*args, "--gnb=a=127.0.0.1:1", "--cell=cell_-1_4=a"], "cell_-1_3")

    def test_nan_is_refused_by_name(self):
        self.refused(["demo", "--goodput-mbps=nan"], "goodput_mbps")
        self.refused(["gnb", "--name=a", "--alpha=nan"], "alpha")

    def test_a_handover_that_cannot_be_traced_is_answered_with_what_to_do(self):
        self.refused(["trace", "latest"], "--gnb", "--report")
        self.refused(["trace", "s:x", "--gnb=127.0.0.1:1"], "HANDOVER", "'x'")
        self.refused(["trace", "latest", "--gnb=nowhere"], "--gnb")
        self.refused(["trace", "latest", "--gnb=127.0.0.1:1"], "--gnb 127.0.0.1:1", "HTTP address", code=1)
        self.refused(["trace", "latest", "--report=/nonexistent.json"], "--report", "/nonexistent.json", code=1)
        self.refused(["trace", "latest", "--report", self.write("{", ".json")], "--report", "JSON", code=1)
        self.refused(["trace", "latest", "--report", self.write('{"handovers": []}', ".json")], "--gnb", code=1)


class Help(unittest.TestCase):
    def test_every_command_explains_itself_with_examples(self):
        status, out, _ = run("--help")
        self.assertEqual(status, 0)
        for command in ("gnb", "ue", "drive", "demo", "model", "trace", "certs"):
            self.assertIn(f"  {command} ", out)
            status, text, err = run(command, "--help")
            self.assertEqual(status, 0, err)
            self.assertIn("Examples:", text)

    def test_the_version_is_told(self):
        status, out, _ = run("--version")
        self.assertEqual(status, 0)
        self.assertRegex(out, r"^pallas \d+\.\d+\.\d+\n$")

    def test_a_printed_configuration_is_good(self):
        status, text, err = run("gnb", "--name=gnb-a", "--scheme=pallas", "--peer=gnb-b=127.0.0.1:9", "--print-config")
        self.assertEqual(status, 0, err)
        with tempfile.NamedTemporaryFile("w", suffix=".toml") as file:
            file.write(text)
            file.flush()
            status, again, err = run("gnb", "--config", file.name, "--print-config")
            self.assertEqual((status, again), (0, text), err)
            self.assertEqual(run("gnb", "--config", file.name, "--dry-run")[0], 0)

    def test_a_dry_run_of_the_driver_lists_the_handovers(self):
        status, out, err = run(
            "drive", f"--trip={TRACE}", "--vehicle=2", "--cell-offset=50", "--from=98", "--to=119", "--dry-run"
        )
        self.assertEqual(status, 0, err)
        self.assertIn("cell_-1_4 -> cell_-1_3", out)
        self.assertIn("3 handovers", out)


class OneGnb(unittest.TestCase):
    def test_it_ends_cleanly_on_sigterm(self):
        cluster = Cluster(["c1"])
        self.addCleanup(cluster.close)
        self.assertEqual(http("GET", cluster.http["gnb-a"], "/health")[0], 200)
        self.assertEqual(cluster.gnbs["gnb-a"].end(), 0)

    def test_the_ready_line_can_be_json(self):
        port = free_ports(1)[0]
        cluster = Cluster(["c1"])
        self.addCleanup(cluster.close)
        program = cluster.start(
            "json", "gnb", "--name=x", "--engine=fake", f"--http-listen=127.0.0.1:{port}", "--peer-listen=127.0.0.1:0", "--json"
        )
        program.wait_for_line('{"ready":true,"name":"x"', 20)


if __name__ == "__main__":
    unittest.main()
