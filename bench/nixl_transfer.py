"""One end of the paths `nixl` and `nixl-thread` of `pallas bench transfer`, which starts this script.

    nixl_transfer.py source|target DESCRIPTOR SESSION_BYTES

What it is told and answers is described in apps/pallas/bench_transfer_channel.h. NIXL's UCX back-end is held
to TCP; the source writes a session's bytes, in blocks, into the target's registered memory.
"""

import base64
import contextlib
import os
import resource
import select
import socket
import sys
import time

# The library reads these when it is loaded.
os.environ.setdefault("UCX_TLS", "tcp,self")
os.environ.setdefault("UCX_LOG_LEVEL", "error")
os.environ.setdefault("NIXL_LOG_LEVEL", "ERROR")

POLL_S = 0.0002  # how often is looked, where the library's own thread moves the bytes
PATIENCE_S = 30


def pattern(numpy, size):
    return numpy.resize(numpy.arange(251, dtype=numpy.uint8), size)


class Agent:
    """One agent with one session's memory, for one path."""

    def __init__(self, nixl, numpy, role, order, session_bytes):
        self.numpy, self.role, self.order = numpy, role, order
        self.polls = order["path"] == "nixl"
        self.agent = nixl.nixl_agent(role, nixl.nixl_agent_config(enable_prog_thread=not self.polls))
        self.memory = pattern(numpy, session_bytes)
        if role == "target":
            self.memory[:] = 0
        self.registered = self.agent.register_memory([(self.memory.ctypes.data, session_bytes, 0, "")], "DRAM")
        self.handle = None
        self.runs = 0

    def blocks(self, base):
        block, size = int(self.order["block"]), len(self.memory)
        return [(base + at, min(block, size - at), 0) for at in range(0, size, block)]

    def address(self):
        metadata = base64.urlsafe_b64encode(self.agent.get_agent_metadata()).decode()
        return f"{self.memory.ctypes.data}:{metadata}"

    def connect(self, address):
        base, metadata = address.split(":", 1)
        peer = self.agent.add_remote_agent(base64.urlsafe_b64decode(metadata))
        peer = peer.decode() if isinstance(peer, bytes) else peer
        here, there = self.blocks(self.memory.ctypes.data), self.blocks(int(base))
        local = self.agent.prep_xfer_dlist("NIXL_INIT_AGENT", here, "DRAM")
        remote = self.agent.prep_xfer_dlist(peer, there, "DRAM")
        every = list(range(len(here)))
        self.handle = self.agent.make_prepped_xfer("WRITE", local, every, remote, every)

    def wait(self, done, deadline):
        while not done():
            if not self.polls:
                time.sleep(POLL_S)
            if time.monotonic() > deadline:
                raise RuntimeError("a transfer did not end")

    def written(self):
        state = self.agent.check_xfer_state(self.handle)
        if state == "ERR":
            raise RuntimeError("a transfer failed")
        return state == "DONE"

    def send(self, nbytes):
        deadline = time.monotonic() + PATIENCE_S
        self.runs += 1
        left = nbytes
        while left > 0:
            left -= len(self.memory)
            note = f"run{self.runs}.".encode() if left <= 0 else b""
            if self.agent.transfer(self.handle, note) == "ERR":
                raise RuntimeError("a transfer was refused")
            self.wait(self.written, deadline)

    def receive(self):
        self.runs += 1
        note = f"run{self.runs}.".encode()
        self.wait(
            lambda: any(note in notes for notes in self.agent.update_notifs().values()),
            time.monotonic() + PATIENCE_S,
        )

    def close(self):
        if self.role == "target" and not self.numpy.array_equal(self.memory, pattern(self.numpy, len(self.memory))):
            raise RuntimeError("other bytes came than were sent")
        if self.handle is not None:
            self.agent.release_xfer_handle(self.handle)
        self.agent.deregister_memory(self.registered)


def use_congestion_control(name, ours):
    """The library has no setting for it, so its sockets are told one by one."""
    for entry in os.listdir("/proc/self/fd"):
        with contextlib.suppress(OSError):
            copy = socket.socket(fileno=os.dup(int(entry)))
            with copy:
                if copy.family != socket.AF_UNIX and copy.fileno() != ours:
                    copy.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, name.encode())


def cpu_us():
    used = resource.getrusage(resource.RUSAGE_SELF)
    return round((used.ru_utime + used.ru_stime) * 1e6)


def next_line(channel, agent):
    """Keeps the library going meanwhile: what it still has to say to its peer must not wait."""
    if agent is not None and agent.polls:
        while not select.select([channel], [], [], 0)[0]:
            agent.agent.update_notifs()
    line = b""
    while not line.endswith(b"\n"):
        part = channel.recv(65536)
        if not part:
            return ""
        line += part
    return line.decode()


def serve(nixl, numpy, role, channel, session_bytes):
    def answer(text):
        channel.sendall((text + "\n").encode())

    answer(f"ready session_bytes={session_bytes}")
    agent = None
    while line := next_line(channel, agent):
        verb, *words = line.split()
        values = dict(word.split("=", 1) for word in words)
        if verb == "open":
            agent = Agent(nixl, numpy, role, values, session_bytes)
            if role == "source":
                agent.connect(values["at"])
            answer("opened at=" + (agent.address() if role == "target" else ""))
        elif verb == "run":
            if agent.order.get("congestion_control"):
                use_congestion_control(agent.order["congestion_control"], channel.fileno())
            before = cpu_us()
            if role == "target":
                answer("started")
            begin = time.monotonic_ns()
            if role == "target":
                agent.receive()
            else:
                agent.send(int(values["bytes"]))
            answer(f"done begin_ns={begin} end_ns={time.monotonic_ns()} cpu_us={cpu_us() - before}")
        elif verb == "close":
            agent.close()
            agent = None
            answer("closed")


def main():
    role, descriptor, session_bytes = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    with socket.socket(fileno=descriptor) as channel:
        try:
            import numpy
            import nixl_cu12 as nixl
        except ImportError as error:
            channel.sendall(f"missing module={error.name}\n".encode())
            return
        try:
            serve(nixl, numpy, role, channel, session_bytes)
        except (RuntimeError, ValueError, KeyError) as error:
            channel.sendall(f"error {error!r}\n".encode())
            sys.exit(1)


if __name__ == "__main__":
    main()
