#include "engine/process_config.h"

#include <algorithm>

#include "os/waiter.h"
#include "settings/secret_file.h"
#include "transport/software_ends.h"

namespace weft::engine {
namespace {

constexpr Rate kRateMax = Rate::gbps(40);
constexpr std::uint32_t kShmSackBytes = 1u << 20;
constexpr std::uint32_t kShmWindow = 8u << 20;
constexpr Duration kShmRtt = Duration::ms(1);

}  // namespace

Result<net::UdpWorldConfig> world_config(const settings::NetSettings& settings) {
  WEFT_TRY(const auto planes, settings::planes_of(settings));
  net::UdpWorldConfig world;
  world.planes.clear();
  for (const os::PlaneChoice& plane : planes) world.planes.push_back(plane.address);
  if (settings.mtu != 0) world.mtu = settings.mtu;
  world.evs_per_plane = settings.evs;
  world.ev_carrier = settings.ev_carrier;
  world.peers = settings.peers;
  if (settings.icrc) world.icrc = *settings.icrc;
  if (settings.peers == wire::PeerKind::kNic && settings.icrc == wire::IcrcCover::kHeaders) {
    return Error{
        ErrorKind::kInvalid,
        "peers = mrc and icrc = headers: who is not Weft checks the payload too; leave icrc "
        "(WEFT_ICRC) out, or take full"};
  }
  world.spin = settings.spin ? *settings.spin : os::usual_spin();
  world.rate_cap = settings.rate;
  world.shared_memory = settings.shared_memory != settings::SharedMemory::kOff;
  if (!settings.secret_file.empty()) {
    WEFT_TRY(world.job_secret, settings::read_secret_file(settings.secret_file));
  }
  return world;
}

transport::EndpointConfig endpoint_config(const net::UdpWorld& world, const EndpointBounds& bounds,
                                          Prng& prng) {
  const auto ports = world.addresses();
  transport::EndpointConfig config;
  config.port_count = world.port_count();
  config.unlisted_ports = world.shared_memory_port();
  // On the shared memory port a process has the address of plane 0.
  config.ports.fill(ports[0]);
  std::copy(ports.begin(), ports.end(), config.ports.begin());
  config.mtu = bounds.mtu;
  config.burst = bounds.burst;
  config.qp_count_max = config.peer_count_max = bounds.qps_max;
  config.ev_count_max = bounds.evs_max;
  config.psn_block_count_max = bounds.psn_blocks_max;
  config.send_queue_max = bounds.send_queue_max;
  config.completion_queue_max = bounds.completions_max;
  config.control_queue_max = bounds.control_queue_max;
  config.answers_delay = transport::kAnswersDelay;
  transport::set_process_qpns(config, world.process(), prng);
  config.seed = prng.next();
  return config;
}

transport::NsccConfig plane_congestion() {
  transport::QpConfig config;
  configure_for_process(config, transport::PeerKind::kSoftware);
  config.nscc.rate = kRateMax;
  config.nscc.trimming = false;
  return config.nscc;
}

transport::QpConfig plane_config(std::span<const fabric::Ev> evs, transport::PeerKind peer) {
  transport::QpConfig config;
  config.peer = peer;
  config.evs = evs;
  config.ev_active = static_cast<std::uint32_t>(evs.size());
  config.nscc = plane_congestion();
  return config;
}

void use_shared_memory(const fabric::Ev& ring, transport::QpConfig& config) {
  config.evs = {&ring, 1};
  config.ev_active = 1;
  config.ev_min_active = 0;
  config.mtu = net::kShmPayloadMax;
  config.sack_bytes = kShmSackBytes;
  config.receive_budget = false;
  config.nscc.enabled = false;
  config.nscc.base_rtt = kShmRtt;
  config.nscc.cwnd_bytes_max = config.nscc.cwnd_bytes_initial = kShmWindow;
}

}  // namespace weft::engine
