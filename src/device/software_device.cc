#include "device/software_device.h"

#include <algorithm>
#include <cstring>

#include "base/hash.h"
#include "engine/process_config.h"
#include "os/log.h"
#include "settings/net_settings.h"

namespace weft::device {
namespace {

// Never called. Each of our devices has this function's address in its ibv_device, as a mark.
ibv_context* mark(ibv_device*, int) { return nullptr; }

void copy_name(char* to, std::size_t size, const std::string& name) {
  const std::size_t count = std::min(size - 1, name.size());
  std::memcpy(to, name.data(), count);
  to[count] = '\0';
}

std::uint64_t guid_from(const std::string& name, const Ipv6& address) {
  std::uint64_t h = address.high * 0x9e3779b97f4a7c15u ^ address.low;
  for (const char c : name) h = (h ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  // set the bit "locally administered"
  return (h & 0x00ff'ffff'ffff'ffffu) | 0x0200'0000'0000'0000u;
}

Result<EngineConfig> configured(const std::string& name) {
  WEFT_TRY(const settings::NetSettings set, settings::load_settings({}, name));
  EngineConfig config;
  config.name = name;
  WEFT_TRY(config.world, engine::world_config(set));
  config.burst = set.burst;
  config.cpus = set.cpus;
  config.must_share_memory = set.shared_memory == settings::SharedMemory::kMust;
  config.poll_gap = set.poll_gap;
  return config;
}

}  // namespace

SoftwareDevice::SoftwareDevice(EngineConfig config)
    : config_(std::move(config)), guid_(guid_from(config_.name, config_.world.planes[0])) {
  verbs_._ops._dummy1 = mark;
  verbs_.node_type = IBV_NODE_CA;
  verbs_.transport_type = IBV_TRANSPORT_IB;
  copy_name(verbs_.name, sizeof(verbs_.name), config_.name);
  copy_name(verbs_.dev_name, sizeof(verbs_.dev_name), "uverbs_" + config_.name);
}

SoftwareDevice* SoftwareDevice::of(ibv_device* device) {
  return device != nullptr && device->_ops._dummy1 == mark
             ? reinterpret_cast<SoftwareDevice*>(device)
             : nullptr;
}

Result<std::shared_ptr<DeviceEngine>> SoftwareDevice::engine() {
  const std::lock_guard guard(lock_);
  if (auto open = engine_.lock()) return open;
  auto opened = DeviceEngine::open(config_);
  if (!opened) {
    os::log(os::LogLevel::kError, "{}: {}", config_.name, opened.error().message);
    return opened.error();
  }
  std::shared_ptr<DeviceEngine> shared = std::move(opened).value();
  engine_ = shared;
  return shared;
}

control::ControllerState& SoftwareDevice::controller() {
  const std::lock_guard guard(lock_);
  if (controller_ == nullptr)
    controller_ = control::open_controller(config_.name, config_.world.planes);
  return *controller_;
}

SoftwareContext* SoftwareContext::of(ibv_context* context) {
  if (context == nullptr || SoftwareDevice::of(context->device) == nullptr) return nullptr;
  return reinterpret_cast<SoftwareContext*>(reinterpret_cast<char*>(context) -
                                            offsetof(verbs_context, context));
}

Result<DeviceEngine*> SoftwareContext::engine() {
  const std::lock_guard guard(lock_);
  if (engine_ == nullptr) {
    WEFT_TRY(engine_, device.engine());
  }
  return engine_.get();
}

SoftwarePd* SoftwarePd::of(ibv_pd* pd) {
  return pd != nullptr && SoftwareContext::of(pd->context) != nullptr
             ? reinterpret_cast<SoftwarePd*>(pd)
             : nullptr;
}

Result<std::vector<SoftwareDevice*>> software_devices() {
  static std::mutex lock;
  static auto* const devices = new std::vector<SoftwareDevice*>();  // never destroyed
  const std::lock_guard guard(lock);
  if (devices->empty()) {
    WEFT_TRY(const auto names, settings::configured_devices({}));
    // If one device is wrong, report none: a program could not find out which one is missing.
    std::vector<EngineConfig> configs;
    for (const std::string& name : names) {
      WEFT_TRY(EngineConfig config, configured(name));
      configs.push_back(std::move(config));
    }
    for (EngineConfig& config : configs) devices->push_back(new SoftwareDevice(std::move(config)));
  }
  return *devices;
}

}  // namespace weft::device
