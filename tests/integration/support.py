"""Starts the real program for integration tests: gNBs, a UE, a driver, all on loopback.

The program's path comes in PALLAS. Everything that a test starts ends with it.
"""

import contextlib
import json
import os
import random
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import unittest
import urllib.error
import urllib.request

PALLAS = os.environ.get("PALLAS", "build/release/bin/pallas")
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
TRACE = os.path.join(ROOT, "data", "sumo_grid_64ue_300s_2hz.csv.gz")


def run(*args, timeout=60):
    """The program's exit code, standard output and standard error."""
    done = subprocess.run([PALLAS, *args], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=timeout)
    return done.returncode, done.stdout, done.stderr


def free_ports(count):
    """Ports below the range that the system hands out for outgoing connections."""
    ports = []
    while len(ports) < count:
        port = random.randint(20000, 32000)
        with contextlib.closing(socket.socket()) as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
        if port not in ports:
            ports.append(port)
    return ports


def wait_for(condition, seconds, what):
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        value = condition()
        if value:
            return value
        time.sleep(0.02)
    raise AssertionError(f"{what}: not within {seconds} s")


def http(method, port, path, body=None, headers=None, timeout=30):
    """(status, text)"""
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(f"http://127.0.0.1:{port}{path}", data=data, method=method, headers=headers or {})
    if data is not None:
        request.add_header("Content-Type", "application/json")
    try:
        with urllib.request.urlopen(request, timeout=timeout) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


class Program:
    """One running `pallas`."""

    def __init__(self, folder, name, *args):
        self.name = name
        self.out = os.path.join(folder, name + ".out")
        self.err = os.path.join(folder, name + ".err")
        with open(self.out, "w") as out, open(self.err, "w") as err:
            self.process = subprocess.Popen([PALLAS, *args], stdin=subprocess.DEVNULL, stdout=out, stderr=err)

    def read(self, path):
        with open(path) as file:
            return file.read()

    def wait_for_line(self, start, seconds):
        def look():
            if self.process.poll() is not None:
                raise AssertionError(f"{self.name} ended with {self.process.returncode}: {self.read(self.err)}")
            return self.read(self.out).startswith(start)

        wait_for(look, seconds, f"{self.name} ready")

    def kill(self):
        self.process.kill()
        self.process.wait()

    def end(self):
        """SIGTERM; the exit code."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        try:
            return self.process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            self.kill()
            raise AssertionError(f"{self.name} did not end on SIGTERM")


class Cluster:
    """gNBs gnb-a, gnb-b, ..., one for each of `cells`, that know each other. `flags_of(name)`: further flags."""

    def __init__(self, cells, engine="fake", flags=(), flags_of=lambda name: []):
        self.folder = tempfile.mkdtemp(prefix="pallas-test-")
        self.programs = []
        self.cells = {cell: f"gnb-{chr(ord('a') + i)}" for i, cell in enumerate(cells)}
        self.names = list(self.cells.values())
        ports = free_ports(2 * len(self.names))
        self.http = dict(zip(self.names, ports[::2]))
        self.peer = dict(zip(self.names, ports[1::2]))
        self.engine = engine
        self.flags = list(flags)
        self.flags_of = flags_of
        self.gnbs = {}
        try:
            for name in self.names:
                self.start_gnb(name)
            for name in self.names:
                self.gnbs[name].wait_for_line("ready ", 120)
        except BaseException:
            self.close()
            raise

    def start(self, name, *args):
        program = Program(self.folder, name, *args)
        self.programs.append(program)
        return program

    def start_gnb(self, name):
        args = ["gnb", f"--name={name}", f"--engine={self.engine}", f"--http-listen=127.0.0.1:{self.http[name]}"]
        args += [f"--peer-listen=127.0.0.1:{self.peer[name]}", "--cell-size-m=100", "--cell-offset-m=50"]
        if not any(flag.startswith("--slots=") for flag in self.flags):
            args += ["--slots=3"]
        args += [f"--peer={other}=127.0.0.1:{self.peer[other]}" for other in self.names if other != name]
        args += [f"--cell={cell}={gnb}" for cell, gnb in self.cells.items()]
        self.gnbs[name] = self.start(name, *args, *self.flags, *self.flags_of(name))

    def map_flags(self):
        """--gnb and --cell of `pallas ue` and `pallas drive`."""
        flags = [f"--gnb={name}=127.0.0.1:{port}" for name, port in self.http.items()]
        return flags + [f"--cell={cell}={name}" for cell, name in self.cells.items()]

    def start_ue(self, ue, cell):
        """The port of its endpoint."""
        port = free_ports(1)[0]
        program = self.start("ue", "ue", f"--ue={ue}", f"--listen=127.0.0.1:{port}", f"--cell-now={cell}", *self.map_flags())
        program.wait_for_line("UE ", 20)
        return port

    def start_drive(self, ue, ue_port, *args):
        return self.start(
            "drive", "drive", f"--ue={ue}", f"--ue-endpoint=127.0.0.1:{ue_port}", "--cell-offset=50", *self.map_flags(), *args
        )

    def hand_over(self, ue, ue_port, seq, source, target):
        """The UE moves between two cells, foretold 0.4 s before. Uses up `seq` and the number after it."""

        def post(port, path, body):
            status, text = http("POST", port, path, body)
            if status not in (200, 204):
                raise AssertionError(f"{path}: {status} {text}")

        ports = [self.http[self.cells[cell]] for cell in (source, target)]
        prediction = {"ue": ue, "seq": seq, "serving": source, "target": target, "in_ms": 400, "valid_ms": 3000}
        post(ports[0], "/v1/predictions", prediction)
        time.sleep(0.4)
        event = {"ue": ue, "seq": seq, "phase": "execution", "source": source, "target": target}
        for port in (*ports, ue_port):
            post(port, "/v1/handovers", event)
        for port in ports:
            post(port, "/v1/handovers", dict(event, seq=seq + 1, phase="completed"))

    def reports(self, session=None):
        found = []
        for name in self.names:
            if self.gnbs[name].process.poll() is None:
                found += json.loads(http("GET", self.http[name], "/v1/handovers")[1])["data"]
        return [r for r in found if session in (None, r["session"])]

    def close(self):
        for program in reversed(self.programs):
            if program.process.poll() is None:
                program.process.send_signal(signal.SIGTERM)
        for program in self.programs:
            with contextlib.suppress(AssertionError):
                program.end()
        shutil.rmtree(self.folder, ignore_errors=True)


class ClusterTest(unittest.TestCase):
    """Gives a test a cluster that ends with it, and shows the logs when it fails."""

    def cluster(self, cells, **options):
        cluster = Cluster(cells, **options)
        self.addCleanup(cluster.close)
        return cluster
