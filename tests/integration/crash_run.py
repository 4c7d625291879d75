"""One cell of the crash matrix: a session moves from gnb-a to gnb-b, one fault happens at one moment, and the outcome
is judged. Everything of a run is started for it and ends with it."""

import contextlib
import json
import re
import signal
import threading
import time

from fault_relay import DOWN, TYPES, UP
from support import Cluster, http, wait_for
from transcript import Reference, Stream, breaches

CELLS = ["cell_0_0", "cell_1_0"]
UE = "ue-1"
SOURCE, TARGET = "gnb-a", "gnb-b"
# The clocks of docs/protocol.md that end what is prepared, frozen, retained or left without a UE; short here.
CLOCKS_S = {"lease-s": 2, "frozen-s": 3, "retain-s": 2, "flap-s": 1, "grace-s": 3}
FORETOLD_S = 1.0  # the prediction comes so long before the handover
# Rule 8: a lost source extends the lease once, to the predicted handover plus grace.
LAST_CLOCK_S = max(*CLOCKS_S.values(), FORETOLD_S + CLOCKS_S["grace-s"])
SLACK_S = 1.0
PATIENCE_S = 5  # the UE leaves so much later than foretold where the machine is slow
REACHED_S = 15  # a step that was not seen by then is never reached
WHOLE_S = 60
OUTAGE_S, NAP_S, RESTART_S = 2.5, 0.6, 0.3
# Mbit/s. Rows of the made-up engine are small.
GOODPUT = {"fake": 1.0, "llama": 50.0}
SLOW_GOODPUT = {"fake": 0.02, "llama": 12.0}


class NotReached(AssertionError):
    """The moment of the fault never came: the cell has shown nothing."""


def request_of(step, seed):
    story = "Tell me a long story about a river and its bridges. " * 12
    return {
        "messages": [{"role": "user", "content": story}],
        "temperature": 0.8, "seed": seed, "max_tokens": 170, "ignore_eos": True, "consistency": step.consistency,
        "stream": True, "stream_options": {"include_usage": True}, "max_token_rate": 25,
    }  # fmt: skip


def reference_of(engine, request):
    """From a gNB that knows no other, at full speed."""
    lone = Cluster(CELLS[:1], engine=engine)
    try:
        body = {k: v for k, v in request.items() if k not in ("stream", "stream_options", "max_token_rate")}
        status, text = http("POST", lone.http[SOURCE], "/v1/chat/completions", body, timeout=120)
        assert status == 200, text
        answer = json.loads(text)
    finally:
        lone.close()
    choice = answer["choices"][0]
    return Reference(choice["message"]["content"], answer["usage"]["completion_tokens"], choice["finish_reason"])


class Trip:
    """What the radio does, said to whoever has to know. A gNB that is dead or paused hears nothing, and nobody waits
    for it."""

    def __init__(self, run):
        self.run = run
        self.seq = 0

    def post(self, path, body, *ports):
        self.seq += 1

        def say(port):
            with contextlib.suppress(OSError):
                http("POST", port, path, dict(body, ue=UE, seq=self.seq), timeout=5)

        said = [threading.Thread(target=say, args=(port,), daemon=True) for port in ports]
        for thread in said:
            thread.start()
        for thread in said:
            thread.join(timeout=0.1)

    def predict(self, target):
        body = {"serving": CELLS[0], "target": target, "in_ms": int(FORETOLD_S * 1000), "valid_ms": 20000}
        self.post("/v1/predictions", body, self.run.http(SOURCE))

    def handover(self, phase, source, target, *ports):
        self.post("/v1/handovers", {"phase": phase, "source": source, "target": target}, *ports)

    def move(self, to=1, pause_s=0.0, feed=True, early=False):
        """The UE moves between the two cells; with `feed` the gNBs are told."""
        cells = (CELLS[1 - to], CELLS[to])
        gnbs = (self.run.http(SOURCE), self.run.http(TARGET))
        if feed:
            self.handover("execution", *cells, *gnbs)
        self.run.at_state("execution")
        if early:
            self.handover("completed", *cells, *gnbs)
        time.sleep(pause_s)
        self.handover("execution", *cells, self.run.ue_port)
        if feed and not early:
            self.handover("completed", *cells, *gnbs)

    def prepared(self):
        self.predict(CELLS[1])
        time.sleep(FORETOLD_S)
        if self.run.step.awaited:
            self.run.reached.wait(PATIENCE_S)
        self.move()

    def early(self):
        self.predict(CELLS[1])
        time.sleep(FORETOLD_S)
        self.move(pause_s=0.3, early=True)

    def withdrawn(self):
        self.predict(CELLS[1])
        relay = self.run.cluster.relay(SOURCE, TARGET)
        wait_for(lambda: relay.seen[UP].get(TYPES["KvBlock"]), PATIENCE_S, "a preparation")
        self.predict(None)
        time.sleep(0.3)
        self.move()

    def pull(self):
        self.move(feed=False)

    # `return` is a word of the language: "return" runs this.
    def and_return(self):
        self.prepared()
        relay = self.run.cluster.relay(SOURCE, TARGET)
        wait_for(lambda: relay.seen[UP].get(TYPES["UeContextReleaseAck"]), REACHED_S, "the release")
        time.sleep(0.5)
        self.move(to=0, feed=False)


class CellRun:
    def __init__(self, engine, step, fault, seed, reference):
        self.engine, self.step, self.fault, self.seed, self.reference = engine, step, fault, seed, reference
        self.fault_over = None  # monotonic time; set once the fault has happened and, if it ends, has ended
        self.fault_at = None
        self.kills = 0
        self.dead = set()
        self.reached = threading.Event()
        self.over = threading.Event()
        self.lock = threading.Lock()

    def http(self, gnb):
        return self.cluster.http[gnb]

    # --- the moment ---
    def strike(self):
        """The fault, at this very moment; what undoes it later has a thread of its own."""
        with self.lock:
            if self.reached.is_set():
                return
            self.fault_at = time.monotonic()
            self.reached.set()
        undo, after = self.begin_fault()

        def end():
            time.sleep(after)
            undo()
            self.fault_over = time.monotonic()
            self.over.set()

        threading.Thread(target=end, daemon=True).start()

    def begin_fault(self):
        """(how it ends, after how many seconds)"""
        relay = self.cluster.relay(SOURCE, TARGET)
        kind = self.fault.name.split("-")[0]
        if self.fault.of != "link":
            gnb = SOURCE if self.fault.of == "source" else TARGET
            process = self.cluster.gnbs[gnb].process
            if kind in ("kill", "restart"):
                process.kill()
                self.kills += 1
                self.dead.add(gnb)
                if kind == "kill":
                    return process.wait, 0
                return lambda: (process.wait(), self.start_again(gnb)), RESTART_S
            process.send_signal(signal.SIGSTOP)
            return lambda: process.send_signal(signal.SIGCONT), NAP_S if kind == "nap" else OUTAGE_S
        if kind == "cut":
            relay.cut()
            return lambda: None, 0
        if kind == "replay":
            relay.cut_and_replay(UP)
            relay.cut_and_replay(DOWN)
            return lambda: None, 0
        if kind == "down":
            relay.down(True)
            return lambda: relay.down(False), OUTAGE_S
        relay.lose(UP if self.fault.name == "lose-up" else DOWN)
        return relay.heal, OUTAGE_S

    def start_again(self, gnb):
        self.cluster.start_gnb(gnb)
        self.cluster.gnbs[gnb].wait_for_line("ready ", 60)
        self.dead.discard(gnb)

    def at_state(self, name):
        if self.step.state == name:
            self.strike()

    def watch_state(self):
        """Strikes when a gNB shows the state."""
        looks = {"shadow": (SOURCE, self.in_shadow), "partial": (TARGET, lambda s: s["partial"])}
        gnb, look = looks[self.step.state]
        while not self.reached.is_set() and not self.ended:
            with contextlib.suppress(OSError):
                for session in json.loads(http("GET", self.http(gnb), "/v1/sessions", timeout=5)[1])["data"]:
                    if look(session):
                        self.strike()
            time.sleep(0.01)

    @staticmethod
    def in_shadow(session):
        return session["role"] == "serving" and session["target_front"] >= session["prompt_tokens"]

    # --- the run ---
    def run(self):
        """The breaches, each a sentence."""
        goodput = (SLOW_GOODPUT if self.step.slow else GOODPUT)[self.engine]
        flags = [f"--{name}={value}" for name, value in CLOCKS_S.items()]
        flags += [f"--goodput-mbps={goodput}", f"--initial-goodput-mbps={goodput}", f"--scheme={self.step.scheme}"]
        if self.step.scheme == "partial":
            flags += ["--partial-fraction=0.4"]
        self.cluster = Cluster(CELLS, engine=self.engine, flags=flags, relays=True)
        self.ended = False
        try:
            wait_for(self.link_up, 10, "the link between the gNBs")
            self.at_start = {gnb: self.left_over(gnb) for gnb in self.cluster.names}
            self.ue_port = self.cluster.start_ue(UE, CELLS[0], "--json")
            self.stream = Stream(self.ue_port, request_of(self.step, self.seed))
            self.stream.start()
            wait_for(lambda: len(self.stream.times) >= 5, 30, "the first tokens")
            return self.judge_trip()
        finally:
            self.ended = True
            self.logs = {program.name: program.read(program.err)[-20000:] for program in self.cluster.programs}
            for program in self.cluster.programs:
                if program.alive():
                    program.process.send_signal(signal.SIGCONT)
            self.cluster.close()

    def judge_trip(self):
        if self.step.frame:
            name, direction, count, where, since = self.step.frame
            relay = self.cluster.relay(SOURCE, TARGET)
            relay.on_frame(name, self.strike, direction=direction, count=count, where=where, since=since)
        elif self.step.state != "execution":
            threading.Thread(target=self.watch_state, daemon=True).start()
        text_before = len(self.stream.text)
        trip = Trip(self)
        getattr(trip, {"return": "and_return"}.get(self.step.trip, self.step.trip))()
        if not self.reached.wait(REACHED_S):
            raise NotReached(f"{self.step.name}: {self.step.what}: never")
        self.stream.join(timeout=WHOLE_S)
        if self.stream.is_alive():
            return ["the stream never ended"]
        stream_end = time.monotonic()
        if not self.over.wait(60):
            return ["the fault never ended"]
        found = breaches(
            self.stream, self.reference, self.ue_counters(),
            same_until=None if self.step.consistency == "exact" else text_before,
        )  # fmt: skip
        found += self.judge_nodes(max(stream_end, self.fault_over) + LAST_CLOCK_S + SLACK_S)
        return found

    # --- what is left ---
    def link_up(self):
        return "pallas_peer_up{" in self.metrics(TARGET) and re.search(r"pallas_peer_up\{.*\} 1", self.metrics(TARGET))

    def metrics(self, gnb):
        return http("GET", self.http(gnb), "/metrics", timeout=5)[1]

    def left_over(self, gnb):
        """What a gNB holds for sessions, in slots of the engine and bytes of host memory."""
        metrics = self.metrics(gnb)
        names = ("free_slots", "staged_bytes", "sessions_live", "sessions_prepared", "sessions_frozen", "sessions_retained")
        return {name: int(re.search(rf"^pallas_{name} (\d+)$", metrics, re.M)[1]) for name in names}

    def ue_counters(self):
        """Of the UE's own report, which it prints when it ends."""
        program = next(p for p in self.cluster.programs if p.name == UE)
        program.end()
        (session,) = json.loads(program.read(program.out).splitlines()[-1])["sessions"]
        return session["counters"]

    def judge_nodes(self, deadline):
        found = []
        for gnb in self.cluster.names:
            program = self.cluster.gnbs[gnb]
            if gnb in self.dead:
                continue
            if not program.alive():
                found.append(f"{gnb} ended by itself with {program.process.returncode}: {program.read(program.err)[-400:]}")
                continue
            while (left := self.left_over(gnb)) != self.at_start[gnb] and time.monotonic() < deadline:
                time.sleep(0.05)
            if left != self.at_start[gnb]:
                found.append(f"{gnb} still holds {left}; at the start {self.at_start[gnb]}")
        for gnb in self.cluster.names:
            if gnb in self.dead or not self.cluster.gnbs[gnb].alive():
                continue
            body = {"messages": [{"role": "user", "content": "Hello"}], "max_tokens": 3}
            status, text = http("POST", self.http(gnb), "/v1/chat/completions", body, timeout=30)
            if status != 200:
                found.append(f"{gnb} does not serve any more: {status} {text[:200]}")
        return found
