// SoftwareDevice: a Weft device as a program sees it through verbs, with our ibv_device,
// ibv_context, ibv_pd and ibv_mr.
//
// Programs know the layout of the C structs of verbs, so each of our objects begins with its
// struct. A function pointer in ibv_device, which only our devices have, distinguishes them from
// hardware devices. A device's engine is opened when first needed, shared by all contexts of this
// process, and closed with the last context.
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

// The index of a port's address in its GID table: 3, where RoCE v2 NICs have the IPv4 address.
inline constexpr int kGidIndex = 3, kGidCount = 4;
// The port number that a QP reports. The QP uses all ports, one in each plane.
inline constexpr std::uint8_t kVerbsPort = 1;
inline constexpr int kPdsMax = 65'536, kCqsMax = 65'536, kHintsMax = 1024;

class SoftwareDevice {
 public:
  explicit SoftwareDevice(EngineConfig config);
  SoftwareDevice(const SoftwareDevice&) = delete;
  SoftwareDevice& operator=(const SoftwareDevice&) = delete;

  // Null if the device is not a Weft device.
  static SoftwareDevice* of(ibv_device* device);

  ibv_device* verbs() { return &verbs_; }
  const EngineConfig& config() const { return config_; }
  std::uint64_t guid() const { return guid_; }  // in host byte order
  // Ports count from 1, as in OCP's controller API. There is one port in each plane; each can be
  // queried, and goes down and comes up independently.
  std::uint8_t port_count() const { return static_cast<std::uint8_t>(config_.world.planes.size()); }
  bool has_port(std::uint32_t port) const { return port >= 1 && port <= port_count(); }
  // The address of a port. REQUIRES has_port().
  Ipv6 gid(std::uint32_t port) const { return config_.world.planes[port - 1]; }
  // Errors: as DeviceEngine::open.
  Result<std::shared_ptr<DeviceEngine>> engine();
  // The controller's state for this device; opened when first needed.
  control::ControllerState& controller();

 private:
  // Must be the first member: a pointer to it is a pointer to this object.
  ibv_device verbs_{};
  EngineConfig config_;
  std::uint64_t guid_ = 0;
  std::mutex lock_;
  std::weak_ptr<DeviceEngine> engine_;
  std::unique_ptr<control::ControllerState> controller_;
};

struct SoftwareContext {
  explicit SoftwareContext(SoftwareDevice& of);
  // Null if the context belongs to a device that is not Weft's.
  static SoftwareContext* of(ibv_context* context);
  ibv_context* ibv() { return &verbs.context; }

  verbs_context verbs{};  // must be the first member
  SoftwareDevice& device;
  AsyncEvents events;
  std::atomic<int> children{0};
  // Opened when the first child object needs it.
  Result<DeviceEngine*> engine();

 private:
  std::mutex lock_;
  std::shared_ptr<DeviceEngine> engine_;
};

struct SoftwarePd {
  ibv_pd ibv{};  // must be the first member
  std::uint32_t domain = 0;
  std::atomic<int> children{0};
  // Null if the protection domain belongs to a device that is not Weft's.
  static SoftwarePd* of(ibv_pd* pd);
};

struct SoftwareMr {
  ibv_mr ibv{};  // must be the first member
};

// The configured devices of this process; made once, and never destroyed. Errors: kInvalid if the
// settings are wrong.
Result<std::vector<SoftwareDevice*>> software_devices();

}  // namespace weft::device
