"""A relay between two gNBs that knows the framing (docs/protocol-framing.md) and breaks links on purpose.

It stands where the gNB with the larger name listens; the other dials it. Bytes pass as they come, a frame's
header first, so the link behaves as without it until a fault is asked for. A trigger fires when a given frame
passes, on the relay's own thread: nothing of what follows on the relay has moved by then.
"""

import asyncio
import contextlib
import socket
import struct
import threading
import time

HEADER = struct.Struct("<4sBBHII")
TYPES = dict(
    Hello=1, Credit=2, KeepAlive=3, ErrorMessage=4, HandoverRequest=5, HandoverRequestAcknowledge=6,
    HandoverPreparationFailure=7, TokenUpdate=8, KvBlock=9, PreparationProgress=10, SnStatusTransfer=11,
    HandoverSuccess=12, UeContextRelease=13, UeContextReleaseAck=14, LeaseRenew=15, Moved=16, StaleEpoch=17,
    HandoverCancel=18, HandoverCancelAck=19, RetrieveUeContextRequest=20, RetrieveUeContextResponse=21,
    RetrieveUeContextFailure=22,
)  # fmt: skip
# Of the connection itself, not of a session: never repeated.
OF_THE_LINK = {TYPES[name] for name in ("Hello", "Credit", "KeepAlive", "ErrorMessage", "KvBlock")}
SEGMENT = 16 * 1024
UP, DOWN = "up", "down"  # from the gNB that dials, and back


class Trigger:
    """Fires `action` once, at the `count`-th frame called `name` that goes in `direction` (None: either) from now on,
    and, with `since`, after a frame of that name: 'before' the frame, in its 'middle' (half of it has gone on), or
    'after' it."""

    def __init__(self, name, action, direction=None, count=1, where="after", since=None):
        assert where in ("before", "middle", "after")
        self.type, self.action, self.direction = TYPES[name], action, direction
        self.left, self.where = count, where
        self.since = TYPES[since] if since else None
        self.fired = threading.Event()

    def sees(self, direction, kind):
        """Whether this frame, which begins to pass, is the one."""
        if self.fired.is_set() or self.left == 0:
            return False
        if self.since is not None:
            if kind == self.since:
                self.since = None
            return False
        if kind != self.type or self.direction not in (None, direction):
            return False
        self.left -= 1
        return self.left == 0

    def fire(self):
        if not self.fired.is_set():
            self.action()
            self.fired.set()


class Connection:
    def __init__(self, caller, callee):
        self.writers = {UP: callee, DOWN: caller}  # where a direction's bytes go
        self.kept = {UP: [], DOWN: []}  # whole frames about sessions, in order
        self.lost = {UP: False, DOWN: False}  # bytes were swallowed: it can only be closed now
        self.control = False
        self.replayed = False

    def abort(self):
        for writer in self.writers.values():
            with contextlib.suppress(Exception):
                writer.transport.abort()


class Incoming:
    """What comes from one end, held back for as long as `delay` says. Bounded, so that the sender feels a slow way."""

    LIMIT = 1 << 20

    def __init__(self, reader, delay):
        self.reader, self.delay = reader, delay
        self.chunks, self.ready = [], bytearray()
        self.ended = False
        self.changed = asyncio.Event()
        self.task = asyncio.ensure_future(self.collect())

    async def collect(self):
        with contextlib.suppress(OSError):
            while chunk := await self.reader.read(1 << 16):
                self.chunks.append((time.monotonic(), chunk))
                self.changed.set()
                while sum(len(c) for _, c in self.chunks) > self.LIMIT:
                    await asyncio.sleep(0.005)
        self.ended = True
        self.changed.set()

    async def readexactly(self, count):
        while len(self.ready) < count:
            if not self.chunks:
                if self.ended:
                    raise ConnectionResetError
                self.changed.clear()
                await self.changed.wait()
                continue
            came, chunk = self.chunks[0]
            if (wait := came + self.delay() - time.monotonic()) > 0:
                await asyncio.sleep(wait)
            self.chunks.pop(0)
            self.ready += chunk
        taken = bytes(self.ready[:count])
        del self.ready[:count]
        return taken


class FaultRelay:
    """Runs on a thread of its own. All methods may be called from any thread."""

    def __init__(self, target_port):
        self.target_port = target_port
        self.rate = {UP: 0, DOWN: 0}  # bytes/s; 0: as fast as it goes
        self.delay = {UP: 0, DOWN: 0}  # seconds, of each byte
        self.swallow = {UP: False, DOWN: False}
        self.refuse = False
        self.triggers = []
        self.connections = set()
        self.replay = {UP: [], DOWN: []}  # frames of a connection that was cut, for the next one
        self.seen = {UP: {}, DOWN: {}}  # frames by type
        self.loop = asyncio.new_event_loop()
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def run(self):
        asyncio.set_event_loop(self.loop)
        self.loop.run_until_complete(asyncio.start_server(self.relay, sock=self.listener))
        self.loop.run_forever()

    def call(self, work):
        """Runs it on the relay's thread, and waits for its end unless this is that thread."""
        if threading.current_thread() is self.thread:
            return work()
        done = threading.Event()
        self.loop.call_soon_threadsafe(lambda: (work(), done.set()))
        if not done.wait(5):
            raise AssertionError("the relay does not answer")
        return None

    # --- faults ---
    def on_frame(self, *args, **options):
        trigger = Trigger(*args, **options)
        self.call(lambda: self.triggers.append(trigger))
        return trigger

    def cut(self):
        """Resets every connection. New ones are taken at once."""
        self.call(lambda: [connection.abort() for connection in list(self.connections)])

    def cut_and_replay(self, direction):
        """Cuts, and when the link stands again repeats what the old connection carried about sessions."""

        def work():
            for connection in list(self.connections):
                if connection.kept[direction]:
                    self.replay[direction] = connection.kept[direction][-50:]
                connection.abort()

        self.call(work)

    def lose(self, *directions):
        """From now on nothing that goes there arrives; the other direction works."""
        self.call(lambda: self.swallow.update({direction: True for direction in directions}))

    def heal(self):
        """No loss any more. A connection that lost bytes is reset: no TCP would go on with a gap."""

        def work():
            self.swallow.update({UP: False, DOWN: False})
            for connection in list(self.connections):
                if any(connection.lost.values()):
                    connection.abort()

        self.call(work)

    def down(self, is_down):
        """While down every connection is reset and none is taken."""

        def work():
            self.refuse = is_down
            if is_down:
                self.cut()

        self.call(work)

    def close(self):
        def work():
            self.refuse = True
            for connection in list(self.connections):
                connection.abort()
            for task in asyncio.all_tasks(self.loop):
                task.cancel()
            self.loop.call_later(0.02, self.loop.stop)

        with contextlib.suppress(AssertionError):
            self.call(work)
        self.thread.join(timeout=5)
        self.listener.close()
        if not self.thread.is_alive():
            self.loop.close()

    # --- passing bytes on ---
    async def relay(self, caller_reader, caller):
        if self.refuse:
            caller.transport.abort()
            return
        try:
            callee_reader, callee = await asyncio.open_connection("127.0.0.1", self.target_port)
        except OSError:
            caller.transport.abort()
            return
        for writer in (caller, callee):
            writer.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connection = Connection(caller, callee)
        self.connections.add(connection)
        pumps = [
            asyncio.ensure_future(self.pump(connection, UP, caller_reader)),
            asyncio.ensure_future(self.pump(connection, DOWN, callee_reader)),
        ]
        try:
            await asyncio.wait(pumps, return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            pass  # close()
        finally:
            for pump in pumps:
                pump.cancel()
            connection.abort()
            self.connections.discard(connection)

    async def pump(self, connection, direction, reader):
        """The frames of one direction, until its end."""
        incoming = Incoming(reader, lambda: self.delay[direction])
        try:
            while True:
                header = await incoming.readexactly(HEADER.size)
                magic, kind, _, _, body, payload = HEADER.unpack(header)
                if magic != b"PLS1":
                    raise AssertionError("not a frame")
                await self.frame(connection, direction, incoming, header, kind, body + payload)
        except OSError:
            pass
        finally:
            incoming.task.cancel()

    async def frame(self, connection, direction, reader, header, kind, rest):
        connection.control |= kind == TYPES["KeepAlive"]
        counts = self.seen[direction]
        counts[kind] = counts.get(kind, 0) + 1
        due = [t for t in list(self.triggers) if t.sees(direction, kind)]
        for trigger in due:
            if trigger.where == "before":
                trigger.fire()
        whole = bytearray(header)
        half = (HEADER.size + rest) // 2
        piece = header
        while True:
            await self.put(connection, direction, piece)
            if len(whole) >= half:
                for trigger in due:
                    if trigger.where == "middle":
                        trigger.fire()
            if rest == 0:
                break
            wanted = min(rest, SEGMENT, half - len(whole) if len(whole) < half else rest)
            piece = await reader.readexactly(max(wanted, 1))
            whole += piece
            rest -= len(piece)
        for trigger in due:
            trigger.fire()
        if kind not in OF_THE_LINK:
            connection.kept[direction].append(bytes(whole))
        if connection.control and not connection.replayed and kind == TYPES["KeepAlive"]:
            connection.replayed = True  # the link stands by now
            for way in (UP, DOWN):
                frames, self.replay[way] = self.replay[way], []
                for again in frames:
                    connection.writers[way].write(again)

    async def put(self, connection, direction, piece):
        if self.rate[direction] > 0:
            await asyncio.sleep(len(piece) / self.rate[direction])
        if self.swallow[direction]:
            connection.lost[direction] = True
            return
        if connection.lost[direction]:
            connection.abort()
            raise ConnectionResetError
        connection.writers[direction].write(piece)
        await connection.writers[direction].drain()

