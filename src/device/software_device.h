// SoftwareDevice: a Weft device as verbs show it: ibv_device, ibv_context, ibv_pd, ibv_mr of ours.
//
// Verbs objects are C structs whose layout programs know; ours begin with them. They are told from
// those of real devices by a mark in ibv_device that only ours have. A device's engine is opened
// when it is first needed, shared by all contexts of this process, and closed with the last.
#pragma once

#include <infiniband/verbs.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/ipv6.h"
#include "base/result.h"
#include "control/controller_state.h"
#include "device/async_events.h"
#include "device/device_engine.h"

namespace weft::device {

// Where RoCE has the IPv4 address of a device's first port, and so has Weft.
inline constexpr int kGidIndex = 3, kGidCount = 4;
// What a QP says of itself: the first. It uses all ports, one a plane.
inline constexpr std::uint8_t kVerbsPort = 1;
inline constexpr int kPdsMax = 65'536, kCqsMax = 65'536, kHintsMax = 1024;

class SoftwareDevice {
 public:
  explicit SoftwareDevice(EngineConfig config);
  SoftwareDevice(const SoftwareDevice&) = delete;
  SoftwareDevice& operator=(const SoftwareDevice&) = delete;

  // Null: it is a real one's.
  static SoftwareDevice* of(ibv_device* device);

  ibv_device* verbs() { return &verbs_; }
  const EngineConfig& config() const { return config_; }
  std::uint64_t guid() const { return guid_; }  // host order
  // From 1, as OCP's controller API counts them: each is a plane, can be asked for, and goes up and
  // down by itself.
  std::uint8_t port_count() const { return static_cast<std::uint8_t>(config_.world.planes.size()); }
  bool has_port(std::uint32_t port) const { return port >= 1 && port <= port_count(); }
  // The address of a port. REQUIRES has_port().
  Ipv6 gid(std::uint32_t port) const { return config_.world.planes[port - 1]; }
  // Errors: as DeviceEngine::open.
  Result<std::shared_ptr<DeviceEngine>> engine();
  // What controllers told it; opened when it is first asked for.
  control::ControllerState& controller();

 private:
  // First: a pointer to it is a pointer to this.
  ibv_device verbs_{};
  EngineConfig config_;
  std::uint64_t guid_ = 0;
  std::mutex lock_;
  std::weak_ptr<DeviceEngine> engine_;
  std::unique_ptr<control::ControllerState> controller_;
};

struct SoftwareContext {
  explicit SoftwareContext(SoftwareDevice& of);
  // Null: it is a real one's.
  static SoftwareContext* of(ibv_context* context);
  ibv_context* ibv() { return &verbs.context; }

  verbs_context verbs{};  // first
  SoftwareDevice& device;
  AsyncEvents events;
  std::atomic<int> children{0};
  // Opened with the first child that needs it.
  Result<DeviceEngine*> engine();

 private:
  std::mutex lock_;
  std::shared_ptr<DeviceEngine> engine_;
};

struct SoftwarePd {
  ibv_pd ibv{};  // first
  std::uint32_t domain = 0;
  std::atomic<int> children{0};
  // Null: it is a real one's.
  static SoftwarePd* of(ibv_pd* pd);
};

struct SoftwareMr {
  ibv_mr ibv{};  // first
};

// The devices of this process, as configured; made once, and never gone. Errors: kInvalid: the
// settings are wrong.
Result<std::vector<SoftwareDevice*>> software_devices();

}  // namespace weft::device
