-- MRC (Multipath Reliable Connection) for Wireshark and tshark 3.6 and later.
--
-- One file, because Wireshark loads single files. It dissects UDP payloads by the tables of docs/wire.md (in code:
-- src/wire/layout.h) and shows them as a Weft receiver reads them: the Info column is the line that
-- wire::to_string writes, and mrc.drop is the reason for which it would drop the packet. Any bytes may arrive; malformed
-- bytes give an expert info, never an error of this script.

local mrc = Proto("mrc", "Multipath Reliable Connection")

-- ---- Names ----

local OPCODES = {
  [0xc6] = "WRITE_FIRST", [0xc7] = "WRITE_MIDDLE", [0xc8] = "WRITE_LAST", [0xc9] = "WRITE_LAST_IMM",
  [0xca] = "WRITE_ONLY", [0xcb] = "WRITE_ONLY_IMM", [0xd1] = "TRANSPORT_ACK", [0xd8] = "ENDPOINT_REQUEST",
  [0xd9] = "ENDPOINT_RESPONSE", [0xdc] = "SACK", [0xdd] = "NACK", [0xde] = "PROBE",
}
local MARKS = { [0] = "none", [1] = "skip_once", [2] = "always_skip" }
local REASONS = {
  [0x01] = "trimmed", [0x02] = "trimmed_last_hop", [0x06] = "no_bitmap", [0x07] = "no_packet_buffer",
  [0x0a] = "no_resource", [0x0b] = "psn_out_of_window", [0x19] = "unexpected_event",
}
local SYNDROMES = { [0x61] = "invalid_request", [0x62] = "remote_access", [0x63] = "remote_operational" }
for credits = 0, 0x1f do SYNDROMES[credits] = "ack" end
local OPS = { [0] = "port_status_update", [1] = "ev_probe" }
local ICRC_STATES = { [0] = "bad", [1] = "good", [2] = "good, headers only", [3] = "unverified" }

-- ---- Headers: the item that holds one, its size, and rows of { offset, size, field } ----

local fields = {}
local function field(kind, ...)
  local made = ProtoField[kind](...)
  table.insert(fields, made)
  return made
end
local function flag(abbr, name, width, mask) return field("bool", abbr, name, width, nil, mask) end

-- The four bytes with the time of sending: a TSETH, and the end of a PETH and of an ERTH.
local function stamp_rows(abbr, at)
  return { at, 2, field("uint16", abbr .. ".timestamp", "Sent, in 128 ns", base.HEX) },
         { at + 2, 2, flag(abbr .. ".tsr", "Another resolution", 16, 0x8000) },
         { at + 2, 2, field("uint16", abbr .. ".ftype", "ftype", base.DEC, nil, 0x000f) }
end

local BTH = { item = field("none", "mrc.bth", "Base Transport Header"), size = 12,
  { 0, 1, field("uint8", "mrc.opcode", "Opcode", base.HEX, OPCODES) },
  { 1, 1, flag("mrc.se", "Solicited event", 8, 0x80) },
  { 1, 1, flag("mrc.m", "Migrated", 8, 0x40) },
  { 1, 1, field("uint8", "mrc.pad", "Padding", base.DEC, nil, 0x30) },
  { 1, 1, field("uint8", "mrc.tver", "Version", base.DEC, nil, 0x0f) },
  { 2, 2, field("uint16", "mrc.pkey", "P_Key", base.HEX) },
  { 4, 1, field("uint8", "mrc.variant", "Reserved, switches may change it", base.HEX) },
  { 5, 3, field("uint24", "mrc.dqp", "Destination QP", base.HEX) },
  { 8, 1, flag("mrc.a", "Asks for a SACK", 8, 0x80) },
  { 8, 1, flag("mrc.rtx", "Retransmission", 8, 0x20) },
  { 8, 1, flag("mrc.ts", "Has a TSETH", 8, 0x10) },
  { 9, 3, field("uint24", "mrc.psn", "PSN", base.DEC) },
}
local METH = { item = field("none", "mrc.meth", "Message header (METH)"), size = 4,
  { 0, 2, field("uint16", "mrc.meth.rqmsn", "Messages with immediate", base.DEC) },
  { 2, 2, field("uint16", "mrc.meth.msn", "Message", base.DEC) },
}
local TSETH = { item = field("none", "mrc.tseth", "Timestamp header (TSETH)"), size = 4, stamp_rows("mrc.tseth", 0) }
local RETH = { item = field("none", "mrc.reth", "RDMA header (RETH)"), size = 16,
  { 0, 8, field("uint64", "mrc.reth.va", "Address", base.HEX) },
  { 8, 4, field("uint32", "mrc.reth.rkey", "Key", base.HEX) },
  { 12, 4, field("uint32", "mrc.reth.dmalen", "Message size", base.DEC) },
}
local IMMDT = { item = field("none", "mrc.immdt", "Immediate (ImmDt)"), size = 4,
  { 0, 4, field("uint32", "mrc.imm", "Immediate", base.HEX) },
}
local AETH = { item = field("none", "mrc.aeth", "ACK header (AETH)"), size = 4,
  { 0, 1, field("uint8", "mrc.aeth.syndrome", "Syndrome", base.HEX, SYNDROMES) },
  { 1, 3, field("uint24", "mrc.aeth.msn", "Messages completed", base.DEC) },
}
local SETH = { item = field("none", "mrc.sack", "SACK header (SETH)"), size = 28,
  { 0, 2, field("uint16", "mrc.sack.type", "type", base.DEC, nil, 0xf000) },
  { 0, 2, field("uint16", "mrc.sack.nh", "nh", base.DEC, nil, 0x0f80) },
  { 0, 2, field("uint16", "mrc.sack.m", "Mark of the path", base.DEC, MARKS, 0x0060) },
  { 0, 2, flag("mrc.sack.pr", "Answers a probe", 16, 0x0002) },
  { 4, 4, field("uint32", "mrc.sack.entropy", "EV of the packet that triggered this", base.HEX) },
  { 8, 2, field("uint16", "mrc.sack.spdcid", "spdcid", base.HEX) },
  { 10, 2, field("uint16", "mrc.sack.dpdcid", "dpdcid", base.HEX) },
  { 13, 3, field("uint24", "mrc.sack.cack", "Everything arrived up to PSN", base.DEC) },
  { 16, 1, field("uint8", "mrc.sack.cc_type", "cc_type", base.DEC, nil, 0xf0) },
  { 16, 1, field("uint8", "mrc.sack.cc_flags", "cc_flags", base.HEX, nil, 0x0f) },
  { 17, 1, field("uint8", "mrc.sack.mpr", "Window, in 128 PSNs", base.DEC) },
  { 18, 2, field("int16", "mrc.sack.offset", "Offset of the bitmap", base.DEC) },
  { 20, 8, field("uint64", "mrc.sack.bitmap", "Bitmap", base.HEX) },
}
local CC_STATE = { item = field("none", "mrc.cc_state", "Congestion (CC_STATE)"), size = 8,
  { 0, 2, field("uint16", "mrc.sack.timestamp", "Timestamp reflected", base.HEX) },
  { 2, 2, field("uint16", "mrc.sack.ooo_count", "PSNs held above", base.DEC, nil, 0x7fff) },
  { 4, 1, flag("mrc.sack.restore_cwnd", "Restore the window", 8, 0x80) },
  { 4, 1, field("uint8", "mrc.sack.cwnd_penalty", "Penalty on the window", base.DEC, nil, 0x7f) },
  { 5, 3, field("uint24", "mrc.sack.rcvd_bytes", "Received, in 256 bytes", base.DEC) },
}
local NETH = { item = field("none", "mrc.nack", "NACK header (NETH)"), size = 20,
  { 2, 1, field("uint8", "mrc.nack.reason", "Reason", base.HEX, REASONS) },
  { 3, 1, field("uint8", "mrc.nack.vendor_info", "vendor_info", base.HEX) },
  { 4, 4, field("uint32", "mrc.nack.entropy", "EV", base.HEX) },
  { 8, 2, field("uint16", "mrc.nack.spdcid", "spdcid", base.HEX) },
  { 10, 2, field("uint16", "mrc.nack.dpdcid", "dpdcid", base.HEX) },
  { 13, 3, field("uint24", "mrc.nack.psn", "PSN", base.DEC) },
  { 16, 1, field("uint8", "mrc.nack.cc_type", "cc_type", base.DEC, nil, 0xf0) },
  { 16, 1, field("uint8", "mrc.nack.cc_flags", "cc_flags", base.HEX, nil, 0x0f) },
  { 18, 2, field("uint16", "mrc.nack.timestamp", "Timestamp reflected", base.HEX) },
}
local PETH = { item = field("none", "mrc.probe", "Probe header (PETH)"), size = 16,
  { 3, 1, field("uint8", "mrc.probe.vendor_info", "vendor_info", base.HEX) },
  { 4, 2, field("uint16", "mrc.probe.id", "Probe", base.HEX) },
  { 8, 2, field("uint16", "mrc.probe.spdcid", "spdcid", base.HEX) },
  { 10, 2, field("uint16", "mrc.probe.dpdcid", "dpdcid", base.HEX) },
  stamp_rows("mrc.probe", 12)
}
local ERTH = { item = field("none", "mrc.erth", "Endpoint request header (ERTH)"), size = 16,
  { 1, 1, field("uint8", "mrc.erth.op", "Operation", base.DEC, OPS, 0x03) },
  { 3, 1, field("uint8", "mrc.erth.vendor_info", "vendor_info", base.HEX) },
  { 4, 4, field("uint32", "mrc.erth.port_status", "Ports that can be reached, from bit 1", base.HEX) },
  stamp_rows("mrc.erth", 12)
}
local EETH = { item = field("none", "mrc.eeth", "Endpoint response header (EETH)"), size = 36,
  { 1, 1, field("uint8", "mrc.eeth.op", "Operation", base.DEC, OPS, 0x0c) },
  { 28, 2, field("uint16", "mrc.eeth.timestamp", "Timestamp reflected", base.HEX) },
}
-- Weft's own: the hello by which two ends agree on keys, and the fields of a secured packet (docs/security.md).
local HELLO = { item = field("none", "mrc.hello", "Weft hello"), size = 84,
  { 4, 1, field("uint8", "mrc.hello.version", "Version", base.DEC) },
  { 5, 1, field("uint8", "mrc.hello.flags", "Flags", base.HEX) },
  { 6, 2, field("uint16", "mrc.hello.from_process", "From: process", base.DEC) },
  { 8, 8, field("uint64", "mrc.hello.from_incarnation", "From: incarnation", base.HEX) },
  { 16, 4, field("uint32", "mrc.hello.from_qpn", "From: QP", base.HEX) },
  { 20, 4, field("uint32", "mrc.hello.to_qpn", "To: QP", base.HEX) },
  { 24, 8, field("uint64", "mrc.hello.to_incarnation", "To: incarnation", base.HEX) },
  { 32, 2, field("uint16", "mrc.hello.to_process", "To: process", base.DEC) },
  { 36, 16, field("bytes", "mrc.hello.drawn", "Drawn by the sender") },
  { 52, 16, field("bytes", "mrc.hello.echo", "Drawn by the other end") },
  { 68, 16, field("bytes", "mrc.hello.tag", "Tag") },
}

-- Fields with a meaning that depends on another field, and computed fields.
local f_trigger_offset = field("int16", "mrc.sack.ack_psn_offset", "PSN that triggered this, less cack", base.DEC)
local f_sack_probe = field("uint16", "mrc.sack.probe_id", "Probe", base.HEX)
local f_trigger = field("uint24", "mrc.sack.trigger_psn", "PSN that triggered this", base.DEC)
local f_received = field("uint24", "mrc.sack.received", "Arrived: PSN", base.DEC)
local f_request = field("uint16", "mrc.request_id", "Request", base.HEX)
local f_payload = field("bytes", "mrc.payload", "Payload")
local f_payload_size = field("uint32", "mrc.payload.size", "Payload size", base.DEC)
local f_padding = field("bytes", "mrc.padding", "Padding")
local f_icrc = field("uint32", "mrc.icrc", "ICRC", base.HEX)
local f_icrc_state = field("uint8", "mrc.icrc.status", "ICRC status", base.DEC, ICRC_STATES)
local f_ev = field("uint32", "mrc.ev", "EV that this packet came by", base.HEX)
local f_trimmed = field("bool", "mrc.trimmed", "Trimmed by a switch")
local f_last_hop = field("bool", "mrc.trimmed.last_hop", "Trimmed at the last hop")
local f_block = field("uint32", "mrc.srv6.block", "uSID block", base.HEX)
local f_usid = field("uint16", "mrc.srv6.usid", "uSID", base.HEX)
local f_sealed = field("bool", "mrc.sealed", "Secured by Weft")
local f_counter = field("uint64", "mrc.sealed.counter", "Counter", base.DEC)
local f_header_tag = field("bytes", "mrc.sealed.header_tag", "Header tag")
local f_tag = field("bytes", "mrc.sealed.tag", "Tag")
local f_drop = field("string", "mrc.drop", "A receiver drops this as")
mrc.fields = fields

local function note(name, text, group, severity)
  return ProtoExpert.new("mrc.expert." .. name, text, expert.group[group], expert.severity[severity])
end
local e_drop = note("drop", "A receiver drops this", "MALFORMED", "ERROR")
local e_icrc = note("icrc", "The ICRC does not match", "CHECKSUM", "ERROR")
local e_unusual = note("unusual", "Accepted, but unusual", "PROTOCOL", "WARN")
local e_cut = note("cut", "The capture holds only part of this packet", "UNDECODED", "NOTE")
local e_trimmed = note("trimmed", "A switch cut the payload off", "SEQUENCE", "NOTE")
local e_rtx = note("rtx", "This is a retransmission", "SEQUENCE", "NOTE")
local e_roce = note("roce", "Neither MRC nor a RoCE packet that its dissector can read", "MALFORMED", "ERROR")
mrc.experts = { e_drop, e_roce, e_icrc, e_unusual, e_cut, e_trimmed, e_rtx }

-- ---- Preferences ----

local PORTS = "4791,4971,14792-15046"
mrc.prefs.udp_ports = Pref.range("UDP ports", PORTS, "4791, 4971 as the text prints it, 14791 + slot of Weft", 65535)
mrc.prefs.trimmed = Pref.uint("DSCP: trimmed", 12, "What switches write into a packet that they cut")
mrc.prefs.last_hop = Pref.uint("DSCP: trimmed at the last hop", 16, "The same, towards the receiving host")
mrc.prefs.roce = Pref.bool("RoCEv2 on port 4791", true, "Leave opcodes outside 0xC0 to 0xDF to the RoCE dissector")
mrc.prefs.verify_icrc = Pref.bool("Verify the ICRC", false, "About half a millisecond for a packet of 4 KiB")
mrc.prefs.secured = Pref.bool("Writes are secured", false, "Captured from Weft processes with a job secret")
mrc.prefs.runs = Pref.bool("Split runs", true, "With GSO, a capture at the sender holds several packets as one")
mrc.prefs.block = Pref.string("uSID block", "fd000001", "A packet without inner header to it went by a uSID list")

local udp_table = DissectorTable.get("udp.port")
local roce = udp_table:get_dissector(4791)
local registered, ports = nil, {}

local function register_ports()
  local wanted = tostring(mrc.prefs.udp_ports)
  if wanted == registered then return end
  if registered and registered ~= "" then udp_table:remove(registered, mrc) end
  if wanted ~= "" then udp_table:add(wanted, mrc) end
  registered, ports = wanted, {}
  for from, to in wanted:gmatch("(%d+)%-?(%d*)") do
    for port = tonumber(from), tonumber(to) or tonumber(from) do ports[port] = true end
  end
end
function mrc.prefs_changed() register_ports() end

-- ---- Outer headers: IP and UDP ----

local x_ipv6, x_ip, x_udp = Field.new("ipv6"), Field.new("ip"), Field.new("udp")
local x_label, x_dscp6, x_dscp4 = Field.new("ipv6.flow"), Field.new("ipv6.tclass.dscp"), Field.new("ip.dsfield.dscp")

local function last(values) return values[#values] end

-- State of the current packet: EV, DSCP (of the outermost header, where switches write it), raw headers.
local function look_outside(pinfo)
  local v6, v4, udp = { x_ipv6() }, { x_ip() }, last({ x_udp() })
  local out = { ev = pinfo.src_port * 65536 }
  local inner6, inner4 = last(v6), last(v4)
  if inner6 and inner4 then
    if inner6.offset > inner4.offset then inner4 = nil else inner6 = nil end
  end
  local outer6 = v6[1] and not (v4[1] and v4[1].offset < v6[1].offset)
  local dscp = outer6 and { x_dscp6() } or { x_dscp4() }
  out.dscp = dscp[1] and dscp[1].value
  if udp then out.udp = udp.range:raw(0, 8) end
  if inner6 then
    out.ipv6 = inner6.range:raw(0, 40)
    out.ev = out.ev + last({ x_label() }).value % 65536
    if #v6 > 1 then out.carrier = v6[1].range:range(24, 16) end
    local block = inner6.range:range(24, 4)
    if tostring(block:bytes()):lower() == mrc.prefs.block:lower() and inner6.range:range(28, 2):uint() ~= 0 then
      out.carrier, out.no_inner = inner6.range:range(24, 16), true
    end
  elseif inner4 then
    out.ipv4 = inner4.range:raw()
  end
  return out
end

-- ---- ICRC ----

-- Bit operators are syntax from Lua 5.3 on, and a library before.
local bxor = bit32 and bit32.bxor or load("return function(a, b) return a ~ b end")()
local CRC = {}
for i = 0, 255 do
  local value = i
  for _ = 1, 8 do
    local half = math.floor(value / 2)
    value = value % 2 == 1 and bxor(half, 0xedb88320) or half
  end
  CRC[i] = value
end

local function crc32(state, bytes)
  local byte, floor = string.byte, math.floor
  for i = 1, #bytes do
    state = bxor(CRC[bxor(state % 256, byte(bytes, i))], floor(state / 256))
  end
  return state
end

-- The possible pseudo headers of the ICRC: IP and UDP with their mutable fields set to ones. A socket of Weft does not
-- see the IPv4 header, so its IPv4 packet counts as IPv6 between mapped addresses. `size` is the size of a packet inside
-- a run, because the capture does not have the lengths of such packets.
local function icrc_starts(out, size)
  local size16 = size and string.char(math.floor((size + 8) / 256), (size + 8) % 256)
  local udp_size, ones = size16 or out.udp:sub(5, 6), "\111\255\255\255"
  local udp = out.udp:sub(1, 4) .. udp_size .. "\255\255"
  if out.ipv6 then
    return { ones .. (size16 or out.ipv6:sub(5, 6)) .. out.ipv6:sub(7, 7) .. "\255" .. out.ipv6:sub(9, 40) .. udp }
  end
  local ip, mapped = out.ipv4, ("\0"):rep(10) .. "\255\255"
  return {
    ip:sub(1, 1) .. "\255" .. ip:sub(3, 8) .. "\255" .. ip:sub(10, 10) .. "\255\255" .. ip:sub(13) .. udp,
    ones .. udp_size .. "\17\255" .. mapped .. ip:sub(13, 16) .. mapped .. ip:sub(17, 20) .. udp,
  }
end

-- 0 bad, 1 good, 2 good over the headers only (between ends of Weft), 3 not verified.
local function icrc_state(out, size, header, body, icrc)
  if not mrc.prefs.verify_icrc or out.no_inner or not out.udp or not (out.ipv6 or out.ipv4) then return 3 end
  for _, start in ipairs(icrc_starts(out, size)) do
    local state = crc32(0xdebb20e3, start .. header:sub(1, 4) .. "\255" .. header:sub(6))
    if 0xffffffff - state == icrc then return #body == 0 and 1 or 2 end
    if #body > 0 and 0xffffffff - crc32(state, body) == icrc then return 1 end
  end
  return 0
end

-- ---- One packet ----
-- `p` is the state of a packet: tvb, pinfo, tree; at: the current offset; there: captured bytes; size: bytes on
-- the wire; trimmed; words: the text of the Info column.

local function say(p, format, ...) table.insert(p.words, format:format(...)) end
local function unusual(p, text) p.tree:add_proto_expert_info(e_unusual, text) end
local function generated(tree, ...) tree:add(...):set_generated() end

-- Shows the next header; shows nothing if its last byte was not captured.
local function take(p, layout)
  if p.at + layout.size > p.there then return nil end
  local range = p.tvb:range(p.at, layout.size)
  local tree = p.tree:add(layout.item, range)
  for _, row in ipairs(layout) do tree:add(row[3], range:range(row[1], row[2])) end
  p.at = p.at + layout.size
  return range, tree
end

local function check_stamp(p, range)
  if range:range(2, 2):uint() % 16 ~= 1 then unusual(p, "ftype is not 1") end
end

local function hex64(range) return (range:uint64():tohex():gsub("^0+(.)", "%1")) end
local function named(names, value) return names[value] or ("0x%02x"):format(value) end

-- METH [TSETH] RETH [ImmDt]; a trimmed one may end anywhere.
local function show_write(p)
  local meth, stamp, reth, imm = take(p, METH), nil, nil, nil
  if meth and p.ts then stamp = take(p, TSETH) end
  if meth and (stamp or not p.ts) then reth = take(p, RETH) end
  if reth and p.has_imm then imm = take(p, IMMDT) end
  if stamp then
    check_stamp(p, stamp)
    say(p, stamp:range(2, 2):uint() >= 0x8000 and "ts(coarse)" or "ts")
  end
  say(p, "msn=%d rqmsn=%d", meth and meth:range(2, 2):uint() or 0, meth and meth:range(0, 2):uint() or 0)
  say(p, "va=0x%s len=%d", reth and hex64(reth:range(0, 8)) or "0", reth and reth:range(12, 4):uint() or 0)
  if p.has_imm then say(p, "imm=0x%08x", imm and imm:range(0, 4):uint() or 0) end
  if not reth or (p.has_imm and not imm) then say(p, "truncated") end
end

local function show_ack(p)
  local aeth = take(p, AETH)
  if not aeth then return end
  local syndrome = aeth:range(0, 1):uint()
  if not SYNDROMES[syndrome] then p.drop = p.drop or "bad_header" end
  say(p, syndrome <= 0x1f and "ack" or "nak=" .. named(SYNDROMES, syndrome))
  say(p, "msn=%d", aeth:range(1, 3):uint())
end

-- The PSNs with set bits, lowest first.
local function show_received(tree, range, first)
  for i = 0, 63 do
    if range:bitfield(63 - i, 1) == 1 then generated(tree, f_received, range, (first + i) % 0x1000000) end
  end
end

local function show_sack(p)
  local seth, tree = take(p, SETH)
  local cc = seth and take(p, CC_STATE)
  if not cc then return end
  local cack, mark, slot = seth:range(13, 3):uint(), seth:bitfield(9, 2), seth:range(2, 2)
  say(p, "cack=%d", cack)
  if seth:bitfield(14, 1) == 1 then
    tree:add(f_sack_probe, slot)
    say(p, "probe=0x%04x", slot:uint())
  else
    tree:add(f_trigger_offset, slot)
    generated(tree, f_trigger, slot, (cack + slot:int()) % 0x1000000)
    say(p, "trigger=%+d", slot:int())
  end
  if mark == 3 then unusual(p, "m is 3, which is reserved") end
  say(p, "ev=0x%08x mark=%s mpr=%d", seth:range(4, 4):uint(), MARKS[mark] or "none", seth:range(17, 1):uint())
  local offset = seth:range(18, 2):int()
  show_received(tree, seth:range(20, 8), cack + offset)
  say(p, "bitmap=%+d:0x%s", offset, seth:range(20, 8):uint64():tohex())
  say(p, "echo=0x%04x ooo=%d", cc:range(0, 2):uint(), cc:range(2, 2):uint() % 0x8000)
  say(p, "rcvd=%d", cc:range(5, 3):uint())
  if cc:bitfield(32, 1) == 1 then say(p, "restore_cwnd") end
  if cc:bitfield(33, 7) ~= 0 then say(p, "penalty=%d", cc:bitfield(33, 7)) end
  if cack ~= p.psn then unusual(p, "the PSN of the BTH is not the cumulative one") end
end

local function show_nack(p)
  local neth = take(p, NETH)
  if not neth then return end
  local reason = neth:range(2, 1):uint()
  if not REASONS[reason] then unusual(p, "a reason without a name") end
  if neth:range(13, 3):uint() ~= p.psn then unusual(p, "the PSN of the BTH is another") end
  say(p, "reason=%s nack_psn=%d ev=0x%08x echo=0x%04x", named(REASONS, reason), neth:range(13, 3):uint(),
      neth:range(4, 4):uint(), neth:range(18, 2):uint())
end

local function show_probe(p)
  local peth = take(p, PETH)
  if not peth then return end
  check_stamp(p, peth:range(12, 4))
  say(p, "probe=0x%04x sent=0x%04x", peth:range(4, 2):uint(), peth:range(12, 2):uint())
end

local function show_request_id(p)
  p.tree:add(f_request, p.tvb:range(10, 2))
  say(p, "id=0x%04x", p.psn % 65536)
  if p.dqp ~= 2 then unusual(p, "endpoint packets go to QP 2") end
end

local function show_endpoint_request(p)
  local erth = take(p, ERTH)
  if not erth then return end
  local op = erth:bitfield(14, 2)
  if op > 1 then p.drop = p.drop or "bad_header" end
  show_request_id(p)
  check_stamp(p, erth:range(12, 4))
  say(p, "op=%s", OPS[op] or op)
  if op == 0 then say(p, "ports=0x%08x", erth:range(4, 4):uint()) end
  say(p, "sent=0x%04x", erth:range(12, 2):uint())
end

local function show_endpoint_response(p)
  local eeth = take(p, EETH)
  if not eeth then return end
  local op = eeth:bitfield(12, 2)
  show_request_id(p)
  say(p, "op=%s echo=0x%04x", OPS[op] or op, eeth:range(28, 2):uint())
end

-- How each opcode is shown, and the size of its header (for a write without TSETH).
local KINDS = {
  [0xd1] = { show_ack, 16 }, [0xd8] = { show_endpoint_request, 28 }, [0xd9] = { show_endpoint_response, 48 },
  [0xdc] = { show_sack, 48 }, [0xdd] = { show_nack, 32 }, [0xde] = { show_probe, 28 },
}
for opcode = 0xc6, 0xcb do
  local has_imm = opcode == 0xc9 or opcode == 0xcb
  KINDS[opcode] = { show_write, has_imm and 36 or 32, is_write = true, has_imm = has_imm }
end

-- The reason for which a receiver would drop the packet, by sizes, opcode and version, in the receiver's order of
-- checks.
local function reason_to_drop(p, kind, header_size)
  if p.size < BTH.size then return "too_short" end
  if p.there < BTH.size then return nil end
  if not kind then return "bad_opcode" end
  if not p.trimmed then
    if p.size < header_size + 4 then return "too_short" end
    if p.size - header_size - 4 < p.pad then return "bad_header" end
  end
  if p.tver ~= 0 then return "bad_version" end
  return nil
end

-- ---- Payload, padding and tags ----

local function show_sealed(p, is_write)
  local function rest(size) return p.at + size <= p.there and p.tvb:range(p.at, size) or nil end
  generated(p.tree, f_sealed, p.tvb:range(0, 0), true)
  if rest(8) then p.tree:add(f_counter, rest(8)) end
  p.at = p.at + 8
  if is_write then
    if rest(8) then p.tree:add(f_header_tag, rest(8)) end
    p.at = p.at + 8
    local size = p.size - p.at - 16
    if size > 0 and rest(size) then p.tree:add(f_payload, rest(size)) end
    p.at = p.at + math.max(size, 0)
  end
  if rest(16) then p.tree:add(f_tag, rest(16)) end
  p.at = p.at + 16
end

local function show_payload_and_icrc(p, out, header_size)
  local body_size = p.size - header_size - 4
  local payload_size = body_size - p.pad
  local whole = p.there >= p.size
  generated(p.tree, f_payload_size, p.tvb:range(0, 0), payload_size)
  local seen = math.min(payload_size, p.there - header_size)
  if seen > 0 then p.tree:add(f_payload, p.tvb:range(header_size, seen)) end
  if whole and p.pad > 0 then p.tree:add(f_padding, p.tvb:range(header_size + payload_size, p.pad)) end
  if not whole then return end
  local range = p.tvb:range(p.size - 4, 4)
  local item = p.tree:add_le(f_icrc, range)
  local body = body_size > 0 and p.tvb:range(header_size, body_size):raw() or ""
  local state = icrc_state(out, p.in_run and p.size, p.tvb:range(0, header_size):raw(), body, range:le_uint())
  generated(p.tree, f_icrc_state, range, state)
  if state == 0 then item:add_proto_expert_info(e_icrc) end
end

local function show_rest(p, out, kind, header_size)
  if p.trimmed then
    if p.there > p.at then p.tree:add(f_payload, p.tvb:range(p.at, p.there - p.at)) end
  elseif kind.is_write and mrc.prefs.secured or not kind.is_write and p.size == header_size + 24 then
    show_sealed(p, kind.is_write)
  else
    show_payload_and_icrc(p, out, header_size)
    if not kind.is_write and p.size > header_size + 4 then unusual(p, "payload in a control packet") end
  end
end

local function show_outside(p, out)
  generated(p.tree, f_ev, p.tvb:range(0, 0), out.ev)
  if p.trimmed then
    generated(p.tree, f_trimmed, p.tvb:range(0, 0), true)
    generated(p.tree, f_last_hop, p.tvb:range(0, 0), out.dscp == mrc.prefs.last_hop)
    p.tree:add_proto_expert_info(e_trimmed)
  end
  if not out.carrier then return end
  generated(p.tree, f_block, out.carrier:range(0, 4))
  for at = 4, 14, 2 do
    local usid = out.carrier:range(at, 2)
    if usid:uint() == 0 then break end
    generated(p.tree, f_usid, usid)
  end
end

local function show_bth(p)
  local bth = take(p, BTH)
  if not bth then return nil end
  p.pad, p.tver, p.psn, p.dqp = bth:bitfield(10, 2), bth:bitfield(12, 4), bth:range(9, 3):uint(), bth:range(5, 3):uint()
  p.ts = bth:bitfield(67, 1) == 1
  local opcode = bth:range(0, 1):uint()
  p.words = { OPCODES[opcode] or ("opcode 0x%02x"):format(opcode), ("qp=0x%06x psn=%d"):format(p.dqp, p.psn) }
  if bth:bitfield(8, 1) == 1 then say(p, "SE") end
  if bth:bitfield(64, 1) == 1 then say(p, "A") end
  if bth:bitfield(66, 1) == 1 then
    say(p, "rtx")
    if KINDS[opcode] and KINDS[opcode].is_write then p.tree:add_proto_expert_info(e_rtx) end
  end
  return KINDS[opcode]
end

local function show_packet(p)
  local out = look_outside(p.pinfo)
  local kind = show_bth(p)
  local header_size = kind and kind[2] + (kind.is_write and p.ts and 4 or 0)
  local is_marked = out.dscp == mrc.prefs.trimmed or out.dscp == mrc.prefs.last_hop
  p.trimmed = is_marked and kind ~= nil and kind.is_write == true
  p.has_imm = kind and kind.has_imm
  p.drop = reason_to_drop(p, kind, header_size)
  local has_all_parts = p.drop == nil or p.drop == "bad_version"
  show_outside(p, out)
  if kind then kind[1](p) end
  if kind and has_all_parts then
    show_rest(p, out, kind, header_size)
  elseif p.at < p.there then
    p.tree:add(f_payload, p.tvb:range(p.at, p.there - p.at))
  end
  if p.there < p.size and not p.trimmed then p.tree:add_proto_expert_info(e_cut) end
  if p.drop then
    generated(p.tree, f_drop, p.tvb:range(0, 0), p.drop)
    p.tree:add_proto_expert_info(e_drop, "A receiver drops this as " .. p.drop)
    say(p, "[%s]", p.drop)
  end
  return table.concat(p.words, " ")
end

-- ---- Runs ----
-- A sender gives the kernel several packets of one size (the last may be shorter) as one run, and a capture on its
-- interface sees the run before it is cut. The packet size is not in the capture: it follows from the next BTH.

-- Whether a BTH with the same P_Key may begin at offset `at`.
local function is_next(bytes, at, is_write)
  local kind = KINDS[bytes:byte(at + 1)]
  if not kind or (kind.is_write or false) ~= is_write then return false end
  return bytes:byte(at + 2) % 16 == 0 and bytes:sub(at + 3, at + 4) == bytes:sub(3, 4)
end

-- A control packet ends after its header and ICRC, or after its counter and tag. The next packet may be for another QP.
local function control_size(bytes, kind)
  for _, size in ipairs({ kind[2] + 4, kind[2] + 24 }) do
    if #bytes >= size + BTH.size and is_next(bytes, size, false) then return size end
  end
  return nil
end

local function psn_of(bytes, at)
  local high, middle, low = bytes:byte(at + 10, at + 12)
  return high * 65536 + middle * 256 + low
end

-- The next write is for the same QP, and its PSN is only a little higher.
local function write_size(bytes)
  local from = 36
  while true do
    local at = bytes:find(bytes:sub(3, 8), from, true)
    if not at or at + 9 > #bytes then return nil end
    local size = at - 3
    local ahead = (psn_of(bytes, size) - psn_of(bytes, 0)) % 0x1000000
    if size % 4 == 0 and is_next(bytes, size, true) and ahead > 0 and ahead < 4096 then return size end
    from = at + 1
  end
end

-- The size of each packet of a run except the last; nil for a single packet.
local function run_size(tvb)
  if not mrc.prefs.runs or tvb:len() < tvb:reported_len() or tvb:len() < BTH.size then return nil end
  local kind = KINDS[tvb:range(0, 1):uint()]
  if not kind then return nil end
  if kind.is_write then return write_size(tvb:range():raw()) end
  return control_size(tvb:range():raw(), kind)
end

local function show_all(tvb, pinfo, tree)
  local segment = run_size(tvb)
  local lines, at, whole = {}, 0, tvb:len()
  repeat
    local part = segment and tvb:range(at, math.min(segment, whole - at)):tvb() or tvb
    local p = { tvb = part, pinfo = pinfo, at = 0, there = part:len(), size = part:len(), words = {} }
    if segment then p.in_run = true else p.size = tvb:reported_len() end
    p.tree = tree:add(mrc, part:range())
    table.insert(lines, show_packet(p))
    at = at + part:len()
  until not segment or at >= whole
  pinfo.cols.info = table.concat(lines, " | ")
end

local function is_hello(tvb) return tvb:len() >= HELLO.size and tvb:range(0, 4):string() == "WEFT" end

function mrc.dissector(tvb, pinfo, tree)
  if tvb:len() == 0 then return 0 end
  -- The source port is an EV and may have any value, so only the destination port decides.
  if ports[pinfo.src_port] and not ports[pinfo.dst_port] then return 0 end
  local first = tvb:range(0, 1):uint()
  local hello = is_hello(tvb)
  if pinfo.dst_port == 4791 and mrc.prefs.roce and roce and not hello and (first < 0xc0 or first > 0xdf) then
    if not pcall(roce.call, roce, tvb, pinfo, tree) then
      tree:add(mrc, tvb:range()):add_proto_expert_info(e_roce)
    end
    return tvb:len()
  end
  pinfo.cols.protocol = "MRC"
  if hello then
    take({ tvb = tvb, at = 0, there = tvb:len(), tree = tree:add(mrc, tvb:range()) }, HELLO)
    pinfo.cols.info = "WEFT_HELLO"
  else
    show_all(tvb, pinfo, tree)
  end
  return tvb:len()
end

-- For packets with an EV that is the port of another protocol; see README.md.
mrc:register_heuristic("udp", function(tvb, pinfo, tree)
  if tvb:len() < BTH.size or not ports[pinfo.dst_port] then return false end
  if not OPCODES[tvb:range(0, 1):uint()] and not is_hello(tvb) then return false end
  mrc.dissector(tvb, pinfo, tree)
  return true
end)

register_ports()
