"""The rows and columns of the crash matrix: at which moment of the protocol, which fault, whose.

Source is gnb-a, which dials; target is gnb-b. UP is from source to target.
"""

import dataclasses

from fault_relay import DOWN, UP


@dataclasses.dataclass(frozen=True)
class Step:
    """`trip`: what the radio does (crash_run.Trip). The moment: a frame that passes, or, where `state` says so, what a
    gNB shows of the session; `trip.execution`: between the radio's word and the UE's attach."""

    name: str
    what: str
    trip: str = "prepared"
    frame: tuple = None  # name, direction, count, where, since
    state: str = None
    scheme: str = "two-front"
    slow: bool = False  # a link on which rows take seconds
    consistency: str = "exact"
    awaited: bool = False  # belongs to the preparation: the UE does not leave before it was seen
    around_handover: bool = False  # also on the real engine


STEPS = [
    Step("request", "HandoverRequest has come", frame=("HandoverRequest", UP, 1, "after", None), awaited=True),
    Step("acknowledge", "HandoverRequestAcknowledge has come",
         frame=("HandoverRequestAcknowledge", DOWN, 1, "after", None), awaited=True),
    Step("streaming", "in the middle of the third KvBlock", frame=("KvBlock", UP, 3, "middle", None), awaited=True),
    Step("token", "before a TokenUpdate of the preparation",
         frame=("TokenUpdate", UP, 4, "before", "HandoverRequestAcknowledge"), awaited=True),
    Step("shadow", "the target holds all KV and decodes along", state="shadow", awaited=True, around_handover=True),
    Step("cancel", "before HandoverCancel; the UE comes all the same", trip="withdrawn",
         frame=("HandoverCancel", UP, 1, "before", None)),
    Step("execution", "the radio has executed, the UE has not attached yet", state="execution", around_handover=True),
    Step("early-status", "SnStatusTransfer has come, the UE has not", trip="early",
         frame=("SnStatusTransfer", UP, 1, "after", None), around_handover=True),
    Step("attached", "the UE has attached, before HandoverSuccess", frame=("HandoverSuccess", DOWN, 1, "before", None),
         around_handover=True),
    Step("claimed", "HandoverSuccess has come", frame=("HandoverSuccess", DOWN, 1, "after", None), around_handover=True),
    Step("status", "before SnStatusTransfer", frame=("SnStatusTransfer", UP, 1, "before", None)),
    Step("synced", "SnStatusTransfer has come", frame=("SnStatusTransfer", UP, 1, "after", None), around_handover=True),
    Step("frozen", "the source is frozen, in the middle of a KvBlock of the rest", scheme="full-copy", slow=True,
         frame=("KvBlock", UP, 2, "middle", "SnStatusTransfer"), around_handover=True),
    Step("release", "before UeContextRelease", frame=("UeContextRelease", DOWN, 1, "before", None), around_handover=True),
    Step("retained", "UeContextReleaseAck has come; the UE returns", trip="return",
         frame=("UeContextReleaseAck", UP, 1, "after", None), around_handover=True),
    Step("return", "the UE is back, before the source's RetrieveUeContextRequest", trip="return",
         frame=("RetrieveUeContextRequest", UP, 1, "before", None)),
    Step("relay", "the target relays what the source decodes", scheme="detour",
         frame=("TokenUpdate", UP, 5, "before", "HandoverSuccess")),
    Step("pull", "nobody was prepared; before RetrieveUeContextRequest", trip="pull",
         frame=("RetrieveUeContextRequest", DOWN, 1, "before", None)),
    Step("pulled", "RetrieveUeContextResponse has come", trip="pull",
         frame=("RetrieveUeContextResponse", UP, 1, "after", None)),
    Step("pull-rows", "in the middle of a KvBlock after the pull", trip="pull", slow=True,
         frame=("KvBlock", UP, 2, "middle", "RetrieveUeContextResponse"), around_handover=True),
    Step("partial", "the target decodes on a part and fills the rest in", trip="pull", scheme="partial", slow=True,
         state="partial", consistency="prefer-exact"),
]  # fmt: skip


@dataclasses.dataclass(frozen=True)
class Fault:
    name: str
    what: str
    of: str  # source, target or link
    kills: bool = False


FAULTS = [
    fault
    for of in ("source", "target")
    for fault in (
        Fault(f"kill-{of}", f"kill -9 of the {of}", of, True),
        Fault(f"restart-{of}", f"kill -9 of the {of}, which is started again 0.3 s later", of, True),
        Fault(f"nap-{of}", f"SIGSTOP of the {of}, SIGCONT after 0.6 s: too short for its peer to notice", of),
        Fault(f"pause-{of}", f"SIGSTOP of the {of}, SIGCONT after 2.5 s: its peer has given it up", of),
    )
] + [
    Fault("cut", "both connections are reset, and can be made anew at once", "link"),
    Fault("replay", "as cut, and all that was said about sessions is said again afterwards", "link"),
    Fault("down", "no connection for 2.5 s", "link"),
    Fault("lose-up", "for 2.5 s nothing from the source arrives", "link"),
    Fault("lose-down", "for 2.5 s nothing from the target arrives", "link"),
]

# What a cell may end in. A session is lost only where its ids are nowhere: whoever lives of source, target and UE has
# them, and the UE always lives here. So nothing but the whole text passes, and why it may differ is in the step.
def allowed(step):
    if step.consistency != "exact":
        return "whole, in order; tokens decoded on a part of the KV may be others than the reference's"
    return "whole, every token the reference's"
