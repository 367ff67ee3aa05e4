#include "settings/setting_table.h"

#include <algorithm>
#include <array>
#include <charconv>

#include "config/units.h"
#include "os/address.h"
#include "world/world.h"

namespace weft::settings {
namespace {

std::vector<std::string> split(std::string_view text) {
  std::vector<std::string> out;
  for (;;) {
    const std::size_t comma = text.find(',');
    out.emplace_back(text.substr(0, comma));
    if (comma == std::string_view::npos) return out;
    text.remove_prefix(comma + 1);
  }
}

bool has_empty(const std::vector<std::string>& words) {
  return std::any_of(words.begin(), words.end(), [](const std::string& w) { return w.empty(); });
}

bool set_planes(std::string_view text, NetSettings& out) {
  const auto words = split(text);
  if (has_empty(words) || words.size() > world::kPortsMax) return false;
  for (const std::string& word : words) {
    const auto address = os::parse_address(word);
    if (!address || !base::is_unicast(*address)) return false;
  }
  out.planes = words;
  out.interfaces.clear();
  return true;
}

bool set_interfaces(std::string_view text, NetSettings& out) {
  const auto words = split(text);
  if (has_empty(words) || words[0] == "^") return false;
  out.interfaces = words;
  out.planes.clear();
  return true;
}

bool set_number(std::string_view text, std::uint32_t most, std::uint32_t& out) {
  std::uint32_t value = 0;
  const char* const end = text.data() + text.size();
  const auto parsed = std::from_chars(text.data(), end, value);
  if (parsed.ec != std::errc() || parsed.ptr != end || value < 1 || value > most) return false;
  out = value;
  return true;
}

bool set_mtu(std::string_view text, NetSettings& out) {
  out.mtu = 0;
  if (text == "auto") return true;
  if (text != "1024" && text != "2048" && text != "4096") return false;
  return set_number(text, 4096, out.mtu);
}

bool set_ev_mode(std::string_view text, NetSettings& out) {
  out.ev_carrier = text == "stev" ? fabric::EvCarrier::kPortAndLabel : fabric::EvCarrier::kUdpPort;
  return text == "port" || text == "stev";
}

bool set_evs(std::string_view text, NetSettings& out) { return set_number(text, 4096, out.evs); }
bool set_burst(std::string_view text, NetSettings& out) { return set_number(text, 60, out.burst); }

bool set_shared_memory(std::string_view text, NetSettings& out) {
  if (text == "auto" || text == "on" || text == "1") {
    out.shared_memory = SharedMemory::kAuto;
  } else if (text == "off" || text == "0") {
    out.shared_memory = SharedMemory::kOff;
  } else if (text == "must") {
    out.shared_memory = SharedMemory::kMust;
  } else {
    return false;
  }
  return true;
}

bool set_peers(std::string_view text, NetSettings& out) {
  out.peers = text == "mrc" ? wire::PeerKind::kNic : wire::PeerKind::kSoftware;
  return text == "weft" || text == "mrc";
}

bool set_icrc(std::string_view text, NetSettings& out) {
  out.icrc = text == "full" ? wire::IcrcCover::kFull : wire::IcrcCover::kHeaders;
  return text == "full" || text == "headers";
}

bool set_secret_file(std::string_view text, NetSettings& out) {
  out.secret_file = text;
  return !text.empty();  // an empty value is an error: it is usually an unset shell variable
}

bool set_spin(std::string_view text, NetSettings& out) {
  if (text == "forever") {
    out.spin = Duration::s(1'000'000);
    return true;
  }
  const auto spin = config::duration_from(text);
  if (spin) out.spin = *spin;
  return spin.has_value();
}

bool set_poll_gap(std::string_view text, NetSettings& out) {
  const auto gap = config::duration_from(text);
  if (!gap || *gap < Duration::us(1) || *gap > Duration::s(60)) return false;
  out.poll_gap = *gap;
  return true;
}

bool set_log(std::string_view text, NetSettings& out) {
  const auto level = os::log_level_from(text);
  if (level) out.log = *level;
  return level.has_value();
}

bool set_rate(std::string_view text, NetSettings& out) {
  out.rate.reset();
  if (text == "none") return true;
  const auto rate = config::rate_from(text);
  if (!rate || rate->bits_per_second() < 1'000'000) return false;
  out.rate = *rate;
  return true;
}

bool set_srv6(std::string_view text, NetSettings& out) {
  if (text != "auto" && text != "carrier" && text != "mrc") return false;
  out.srv6 = text == "auto"      ? fabric::Srv6Form::kAuto
             : text == "carrier" ? fabric::Srv6Form::kCarrier
                                 : fabric::Srv6Form::kMrc;
  return true;
}

bool set_cpus(std::string_view text, NetSettings& out) {
  const auto cpus = os::cpus_from(text);
  if (cpus) out.cpus = *cpus;
  if (text == "all") out.cpus.clear();
  return cpus || text == "all";
}

constexpr std::array kSettings = {
    Setting{"planes", "--planes", "WEFT_PLANES",
            "this end's address in each plane, as 10.0.1.7,10.0.2.7; the other end gives as many "
            "(default: the loopback's four)",
            "1 to 8 addresses, as 10.0.1.7,10.0.2.7 or fd00:1::7", set_planes},
    Setting{
        "interfaces", "--ifname", "WEFT_IFNAME",
        "or the interfaces, one a plane: eth0,eth1, or eth for all that begin so, or ^docker "
        "for all others",
        "names of interfaces, as eth0,eth1, or what they begin with, or ^ and what to leave out",
        set_interfaces},
    Setting{"mtu", "--mtu", "WEFT_MTU", "payload of a packet (default auto: the largest that fits)",
            "1024, 2048, 4096 or auto", set_mtu},
    Setting{"evs", "--evs", "WEFT_EVS",
            "EVs (paths) in each plane, at most 64, and 4096 with --ev-mode stev or in a lab "
            "(--fabric) (default 4)",
            "1 to 64, and up to 4096 with --ev-mode stev or in a lab (--fabric)", set_evs},
    Setting{"ev_mode", "--ev-mode", "WEFT_EV_MODE",
            "what an EV is, the same at both ends: port (a UDP source port, the default) or stev "
            "(port and IPv6 flow label)",
            "port or stev", set_ev_mode},
    Setting{"burst", "--burst", "WEFT_BURST", "full packets in a row on one path (default 15)",
            "1 to 60", set_burst},
    Setting{"shared_memory", nullptr, "WEFT_SHM", "", "auto, off (0) or must", set_shared_memory},
    Setting{"peers", nullptr, "WEFT_PEERS", "", "weft or mrc", set_peers},
    Setting{"icrc", nullptr, "WEFT_ICRC", "", "headers or full", set_icrc},
    Setting{"secret_file", "--secret-file", "WEFT_SECRET_FILE",
            "a file of 32 bytes or more that only you may read, the same at both ends: packets are "
            "authenticated and encrypted (default: none, they go in clear)",
            "the name of a file", set_secret_file},
    Setting{"spin", "--spin", "WEFT_SPIN",
            "with nothing to do look that long before sleeping, as 0us, 50us or forever (default "
            "200us, under a CPU quota 0us)",
            "a duration up to 1000s, as 0us or 50us, or forever", set_spin},
    Setting{"poll_gap", "--poll-gap", "WEFT_POLL_GAP",
            "a device's own thread works once its program polled nothing for that long, as 1ms "
            "(default 50us)",
            "a duration from 1us to 60s, as 50us or 1ms", set_poll_gap},
    Setting{"log", "--log", "WEFT_LOG",
            "what is told on stderr: error, warn (the default), info or debug",
            "error, warn, info or debug", set_log},
    Setting{"rate", "--rate", "WEFT_RATE",
            "send at most so many payload bits a second over all planes, as 2Gbps (default none)",
            "a rate from 1Mbps to 100Tbps, as 500Mbps or 2Gbps, or none", set_rate},
    Setting{"srv6", "--srv6", "WEFT_SRV6",
            "how uSIDs are carried in a fabric: carrier (veth links), mrc (IPv6 in IPv6), or auto "
            "(the default)",
            "auto, carrier or mrc", set_srv6},
    Setting{"cpus", "--cpus", "WEFT_CPUS",
            "the CPUs to run on, as 0-3,8 (default all: those that the process has anyway)",
            "CPUs, as 0-3,8, or all", set_cpus},
};

}  // namespace

std::span<const Setting> settings_table() { return kSettings; }

const Setting* find_setting(std::string_view key) {
  for (const Setting& setting : kSettings) {
    if (setting.key == key) return &setting;
  }
  return nullptr;
}

}  // namespace weft::settings
