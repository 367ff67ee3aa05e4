"""MRC-Client, an independent generator and parser of MRC packets, as a program for mrc_client_test.cc.

    mrc_client.py TREE generate COUNT   frames that MRC-Client builds from random fields
    mrc_client.py TREE parse FILE       the fields that MRC-Client parses from our frames, one frame per line in hexadecimal

Both print one line per frame: the frame in hexadecimal, then name=value with the names of tools/wireshark/mrc.lua and
decimal numbers, separated by tabs. Values are MRC-Client's; the test lists the points in which it reads the
specification differently from us.
"""

import random
import sys

sys.dont_write_bytecode = True  # writes no files into TREE
sys.path.insert(0, sys.argv[1])
from core.mrc_headers import AETH, BTH, EETH, ERTH, METH, NETH, PETH, RETH, SETH, TSETH, CCState, ImmDt, MrcOpcode
from core.packet_builder import IPv6Header, MRCPacket, PacketBuilder, SRv6Header, UDPHeader
from core.packet_parser import parse_packet

WRITES = range(MrcOpcode.RDMA_WRITE_FIRST, MrcOpcode.RDMA_WRITE_ONLY_IMM + 1)
IMMEDIATES = (MrcOpcode.RDMA_WRITE_LAST_IMM, MrcOpcode.RDMA_WRITE_ONLY_IMM)
DRAW = random.Random(20260321)


def bits(count):
    return DRAW.getrandbits(count)


def signed():
    return DRAW.randrange(-32768, 32768)


def draw_bth(opcode):
    return BTH(opcode=opcode, se=bits(1), m=bits(1), p_key=bits(16), var_res=bits(8), dqp=bits(24), a=bits(1),
               rtx=bits(1), ts=bits(1) if opcode in WRITES else 0, psn=bits(24))


def draw_packet(opcode):
    packet = MRCPacket(bth=draw_bth(opcode))
    if opcode in WRITES:
        packet.meth = METH(rqmsn=bits(16), msn=bits(16))
        if packet.bth.ts:
            packet.tseth = TSETH(tx_timestamp=bits(16), tsr=bits(1))
        packet.reth = RETH(va=bits(64), r_key=bits(32), dmalen=bits(32))
        if opcode in IMMEDIATES:
            packet.immdt = ImmDt(value=bits(32))
        packet.payload = DRAW.randbytes(4 * DRAW.randrange(20))
    elif opcode == MrcOpcode.ACKNOWLEDGE:
        packet.aeth = AETH(syndrome=DRAW.choice([0x1f, 0x61, 0x62, 0x63]), msn=bits(24))
    elif opcode == MrcOpcode.RELIABILITY_SACK:
        packet.seth = SETH(m=DRAW.randrange(3), pr=bits(1), ack_psn_offset=signed(), entropy=bits(32), spdcid=bits(16),
                           dpdcid=bits(16), cack_psn=bits(24), cc_type=bits(4), cc_fl=bits(4), mpr=bits(8),
                           sack_offset=signed(), sack_bitmap=bits(64),
                           cc_state=CCState(tx_timestamp=bits(16), ooo_count=bits(15), r_c=bits(1),
                                            rcv_cwnd_pen=bits(7), rcvd_bytes=bits(24)))
    elif opcode == MrcOpcode.RELIABILITY_NACK:
        packet.neth = NETH(nack_reason=bits(8), vendor_info=bits(8), entropy=bits(32), spdcid=bits(16),
                           dpdcid=bits(16), nack_psn=bits(24), cc_type=bits(4), cc_fl=bits(4), tx_timestamp=bits(16))
    elif opcode == MrcOpcode.RELIABILITY_PROBE_REQ:
        packet.peth = PETH(vendor_info=bits(8), probe_id=bits(16), spdcid=bits(16), dpdcid=bits(16),
                           tx_timestamp=bits(16), tsr=bits(1))
    elif opcode == MrcOpcode.ENDPOINT_REQUEST:
        packet.erth = ERTH(op=bits(1), vendor_info=bits(8), port_status_mask=bits(32), tx_timestamp=bits(16),
                           tsr=bits(1))
    elif opcode == MrcOpcode.ENDPOINT_RESPONSE:
        packet.eeth = EETH(op=bits(1), tx_timestamp=bits(16))
    return packet


def draw_outside(packet):
    """IP and UDP headers as its builder makes them, with the EV in Weft's layout; SRv6 with and without SRH."""
    packet.ipv6 = IPv6Header(traffic_class=4 << 2, src_addr="fd00::1", dst_addr="fd00::2")
    packet.udp = UDPHeader(dst_port=DRAW.choice([4791, 4971]))
    ev = bits(32)
    PacketBuilder().apply_ev_to_packet(packet, ev, "STRUCTURED_EV")
    form = DRAW.choice(["plain", "srv6", "srh"])
    if form != "plain":
        packet.outer_ipv6 = IPv6Header(traffic_class=4 << 2, src_addr="fd00::1", dst_addr="fd00:1:1805:582a::")
    if form == "srh":
        packet.srh = SRv6Header(segment_list=["fd00:1:1805:582a::"])
    return {"mrc.ev": ev}


def row(packet):
    b = packet.bth
    out = {"mrc.opcode": b.opcode, "mrc.se": b.se, "mrc.m": b.m, "mrc.pad": b.pad, "mrc.tver": b.tver,
           "mrc.pkey": b.p_key, "mrc.variant": b.var_res, "mrc.dqp": b.dqp, "mrc.a": b.a, "mrc.rtx": b.rtx, "mrc.ts": b.ts,
           "mrc.psn": b.psn,
           "mrc.payload.size": len(packet.payload)}

    def stamp(prefix, h):
        out.update({prefix + ".timestamp": h.tx_timestamp, prefix + ".tsr": h.tsr, prefix + ".ftype": h.ftype})

    if (h := packet.meth) is not None:
        out.update({"mrc.meth.rqmsn": h.rqmsn, "mrc.meth.msn": h.msn})
    if packet.tseth is not None:
        stamp("mrc.tseth", packet.tseth)
    if (h := packet.reth) is not None:
        out.update({"mrc.reth.va": h.va, "mrc.reth.rkey": h.r_key, "mrc.reth.dmalen": h.dmalen})
    if packet.immdt is not None:
        out["mrc.imm"] = packet.immdt.value
    if (h := packet.aeth) is not None:
        out.update({"mrc.aeth.syndrome": h.syndrome, "mrc.aeth.msn": h.msn})
    if (h := packet.seth) is not None:
        received = [(h.sack_base_psn + i) % (1 << 24) for i in range(64) if h.sack_bitmap >> i & 1]
        out.update({"mrc.sack.type": h.res_type, "mrc.sack.nh": h.res_nxt, "mrc.sack.m": h.m, "mrc.sack.pr": h.pr,
                    "mrc.sack.entropy": h.entropy, "mrc.sack.spdcid": h.spdcid, "mrc.sack.dpdcid": h.dpdcid,
                    "mrc.sack.cack": h.cack_psn, "mrc.sack.cc_type": h.cc_type, "mrc.sack.cc_flags": h.cc_fl,
                    "mrc.sack.mpr": h.mpr, "mrc.sack.offset": h.sack_offset, "mrc.sack.bitmap": h.sack_bitmap,
                    "mrc.sack.received": ",".join(map(str, received)), "mrc.sack.timestamp": h.cc_state.tx_timestamp,
                    "mrc.sack.ooo_count": h.cc_state.ooo_count, "mrc.sack.restore_cwnd": h.cc_state.r_c,
                    "mrc.sack.cwnd_penalty": h.cc_state.rcv_cwnd_pen, "mrc.sack.rcvd_bytes": h.cc_state.rcvd_bytes})
        if h.pr:  # MRC-Client has one name for both meanings of these bytes
            out["mrc.sack.probe_id"] = h.ack_psn_offset % 65536
        else:
            out.update({"mrc.sack.ack_psn_offset": h.ack_psn_offset, "mrc.sack.trigger_psn": h.ack_psn})
    if (h := packet.neth) is not None:
        out.update({"mrc.nack.reason": h.nack_reason, "mrc.nack.vendor_info": h.vendor_info,
                    "mrc.nack.entropy": h.entropy, "mrc.nack.spdcid": h.spdcid, "mrc.nack.dpdcid": h.dpdcid,
                    "mrc.nack.psn": h.nack_psn, "mrc.nack.cc_type": h.cc_type, "mrc.nack.cc_flags": h.cc_fl,
                    "mrc.nack.timestamp": h.tx_timestamp})
    if (h := packet.peth) is not None:
        out.update({"mrc.probe.vendor_info": h.vendor_info, "mrc.probe.id": h.probe_id, "mrc.probe.spdcid": h.spdcid,
                    "mrc.probe.dpdcid": h.dpdcid})
        stamp("mrc.probe", h)
    if (h := packet.erth) is not None:
        out.update({"mrc.erth.op": h.op, "mrc.erth.vendor_info": h.vendor_info,
                    "mrc.erth.port_status": h.port_status_mask})
        stamp("mrc.erth", h)
    if (h := packet.eeth) is not None:
        out.update({"mrc.eeth.op": h.op, "mrc.eeth.timestamp": h.tx_timestamp})
    if packet.erth is not None or packet.eeth is not None:
        out["mrc.request_id"] = b.psn % 65536
    return out


def print_line(frame, values):
    print(frame.hex(), *(f"{name}={value}" for name, value in values.items()), sep="\t")


def main():
    _, _, verb, argument = sys.argv
    if verb == "generate":
        for i in range(int(argument)):
            packet = draw_packet(list(MrcOpcode)[i % len(MrcOpcode)])
            outside = draw_outside(packet)
            print_line(packet.to_bytes(), row(packet) | outside)
    elif verb == "parse":
        for line in open(argument):
            frame = bytes.fromhex(line)
            packet = parse_packet(frame)
            outside = {"mrc.ev": packet.udp.src_port << 16 | packet.ipv6.flow_label & 0xffff} if packet else {}
            print_line(frame, row(packet) | outside if packet else {})
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    main()
