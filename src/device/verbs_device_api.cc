// The verbs stand-in for devices: functions of libibverbs that list, open and describe devices.
// Calls for devices that are not Weft's are passed on to the real library.
#include <infiniband/verbs.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <set>

#include "device/c_edge.h"
#include "device/real_verbs.h"
#include "device/verbs_queries.h"
#include "os/log.h"

#undef ibv_query_port
#undef ibv_get_device_list

using namespace weft;
using namespace weft::device;

namespace {

// The device lists that we gave to the program. A pointer to libibverbs' list stands before the
// first entry of each; entries of devices that are not Weft's were copied from there.
struct Lists {
  std::mutex lock;
  std::set<ibv_device**> ours;
};
Lists& lists() {
  static auto* const all = new Lists();  // never destroyed
  return *all;
}

ibv_device** make_list(ibv_device** real, int real_count,
                       const std::vector<SoftwareDevice*>& devices) {
  const std::size_t count = static_cast<std::size_t>(real_count) + devices.size();
  auto** const block = static_cast<ibv_device**>(std::calloc(count + 2, sizeof(ibv_device*)));
  if (block == nullptr) return fail_null(ENOMEM);
  block[0] = reinterpret_cast<ibv_device*>(real);
  ibv_device** const list = block + 1;
  std::copy_n(real, real_count, list);
  for (std::size_t i = 0; i < devices.size(); ++i)
    list[static_cast<std::size_t>(real_count) + i] = devices[i]->verbs();
  const std::lock_guard guard(lists().lock);
  lists().ours.insert(list);
  return list;
}

}  // namespace

extern "C" {

ibv_device** ibv_get_device_list(int* count) {
  auto* const next = WEFT_REAL(ibv_get_device_list, "IBVERBS_1.1");
  if (is_forked_child()) return next == nullptr ? fail_null(EPERM) : next(count);
  return guarded_pointer<ibv_device*>([&]() -> ibv_device** {
    int real_count = 0;
    ibv_device** list = nullptr;
    if (next != nullptr) list = next(&real_count);
    const auto devices = software_devices();
    if (!devices) {
      os::log(os::LogLevel::kError, "no Weft device: {}", devices.error().message);
      if (count != nullptr) *count = real_count;
      return list != nullptr ? list : fail_null(errno_of(devices.error().kind));
    }
    if (list == nullptr) real_count = 0;
    ibv_device** const all = make_list(list, real_count, *devices);
    if (all != nullptr && count != nullptr) *count = real_count + static_cast<int>(devices->size());
    return all;
  });
}

void ibv_free_device_list(ibv_device** list) {
  if (list == nullptr) return;
  ibv_device** real = list;
  {
    // Do not take the lock in a forked child: at the fork another thread of the parent may have
    // held it.
    std::unique_lock guard(lists().lock, std::defer_lock);
    if (!is_forked_child())
      guard.lock();
    else if (!guard.try_lock())
      return;
    if (lists().ours.erase(list) > 0) {
      real = reinterpret_cast<ibv_device**>(list[-1]);
      std::free(list - 1);
    }
  }
  auto* const next = WEFT_REAL(ibv_free_device_list, "IBVERBS_1.1");
  if (real != nullptr && next != nullptr) next(real);
}

const char* ibv_get_device_name(ibv_device* device) {
  return device == nullptr ? nullptr : device->name;
}

__be64 ibv_get_device_guid(ibv_device* device) {
  if (SoftwareDevice* const ours = SoftwareDevice::of(device)) return htobe64(ours->guid());
  auto* const next = WEFT_REAL(ibv_get_device_guid, "IBVERBS_1.1");
  return next == nullptr ? 0 : next(device);
}

int ibv_get_device_index(ibv_device* device) {
  if (SoftwareDevice::of(device) != nullptr) return -1;  // the kernel has no index for our devices
  auto* const next = WEFT_REAL(ibv_get_device_index, "IBVERBS_1.9");
  return next == nullptr ? -1 : next(device);
}

ibv_context* ibv_open_device(ibv_device* device) {
  SoftwareDevice* const ours = SoftwareDevice::of(device);
  return guarded_pointer<ibv_context>(ours != nullptr, [&]() -> ibv_context* {
    if (ours != nullptr) return (new SoftwareContext(*ours))->ibv();
    auto* const next = WEFT_REAL(ibv_open_device, "IBVERBS_1.1");
    return next == nullptr ? fail_null(ENODEV) : next(device);
  });
}

int ibv_close_device(ibv_context* context) {
  SoftwareContext* const ours = SoftwareContext::of(context);
  const int error = guarded(ours != nullptr, [&] {
    if (ours == nullptr) {
      auto* const next = WEFT_REAL(ibv_close_device, "IBVERBS_1.1");
      return next == nullptr || context == nullptr ? EINVAL : next(context);
    }
    if (ours->children.load() != 0) return EBUSY;
    delete ours;
    return 0;
  });
  return returned(error, fail_minus_one);
}

int ibv_query_device(ibv_context* context, ibv_device_attr* attr) {
  SoftwareContext* const ours = SoftwareContext::of(context);
  const int error = guarded(ours != nullptr, [&] {
    if (ours == nullptr) {
      auto* const next = WEFT_REAL(ibv_query_device, "IBVERBS_1.1");
      return next == nullptr || context == nullptr ? EINVAL : next(context, attr);
    }
    if (attr == nullptr) return EINVAL;
    *attr = device_attributes(ours->device);
    return 0;
  });
  return returned(error, fail_value);
}

// Called only by programs compiled with old headers; newer programs use the context's function
// table.
int ibv_query_port(ibv_context* context, std::uint8_t port, _compat_ibv_port_attr* attr) {
  if (SoftwareContext::of(context) == nullptr) {
    auto* const next = WEFT_REAL(ibv_query_port, "IBVERBS_1.1");
    return next == nullptr || context == nullptr ? fail_value(EINVAL) : next(context, port, attr);
  }
  return query_port_op(context, port, reinterpret_cast<ibv_port_attr*>(attr),
                       offsetof(ibv_port_attr, port_cap_flags2));
}

int ibv_query_gid(ibv_context* context, std::uint8_t port, int index, ibv_gid* gid) {
  SoftwareContext* const ours = SoftwareContext::of(context);
  const int error = guarded(ours != nullptr, [&] {
    if (ours == nullptr) {
      auto* const next = WEFT_REAL(ibv_query_gid, "IBVERBS_1.1");
      return next == nullptr || context == nullptr || next(context, port, index, gid) != 0 ? EINVAL
                                                                                           : 0;
    }
    if (gid == nullptr || !ours->device.has_port(port) || index < 0 || index >= kGidCount)
      return EINVAL;
    *gid = gid_entry(ours->device, port, index);
    return 0;
  });
  return returned(error, fail_minus_one);
}

int _ibv_query_gid_ex(ibv_context* context, std::uint32_t port, std::uint32_t index,
                      ibv_gid_entry* entry, std::uint32_t flags, std::size_t entry_size) {
  SoftwareContext* const ours = SoftwareContext::of(context);
  const int error = guarded(ours != nullptr, [&] {
    if (ours == nullptr) {
      auto* const next = WEFT_REAL(_ibv_query_gid_ex, "IBVERBS_1.11");
      return next == nullptr || context == nullptr
                 ? EINVAL
                 : next(context, port, index, entry, flags, entry_size);
    }
    if (entry == nullptr || !ours->device.has_port(port) || index >= kGidCount || flags != 0 ||
        entry_size < sizeof(*entry))
      return EINVAL;
    if (index != kGidIndex) return ENODATA;
    *entry = {.gid = gid_entry(ours->device, port, kGidIndex),
              .gid_index = index,
              .port_num = port,
              .gid_type = IBV_GID_TYPE_ROCE_V2,
              .ndev_ifindex = 0};
    return 0;
  });
  return returned(error, fail_value);
}

// No header declares this function, but ibv_devinfo calls it. *type is 0 for RoCE v1 (also for an
// empty entry) and 1 for RoCE v2.
int ibv_query_gid_type(ibv_context* context, std::uint8_t port, unsigned index, int* type);
int ibv_query_gid_type(ibv_context* context, std::uint8_t port, unsigned index, int* type) {
  SoftwareContext* const ours = SoftwareContext::of(context);
  const int error = guarded(ours != nullptr, [&] {
    if (ours == nullptr) {
      auto* const next = WEFT_REAL(ibv_query_gid_type, "IBVERBS_PRIVATE_34");
      return next == nullptr || context == nullptr || next(context, port, index, type) != 0 ? EINVAL
                                                                                            : 0;
    }
    if (type == nullptr || !ours->device.has_port(port) || index >= kGidCount) return EINVAL;
    *type = index == kGidIndex ? 1 : 0;
    return 0;
  });
  return returned(error, fail_minus_one);
}

ssize_t _ibv_query_gid_table(ibv_context* context, ibv_gid_entry* entries, std::size_t max,
                             std::uint32_t flags, std::size_t entry_size) {
  SoftwareContext* const ours = SoftwareContext::of(context);
  if (ours != nullptr && is_forked_child()) return -fail_value(EPERM);
  if (ours == nullptr) {
    auto* const next = WEFT_REAL(_ibv_query_gid_table, "IBVERBS_1.11");
    return next == nullptr || context == nullptr ? -fail_value(EINVAL)
                                                 : next(context, entries, max, flags, entry_size);
  }
  if (max == 0 || entries == nullptr) return -fail_value(EINVAL);
  const auto count =
      static_cast<std::uint32_t>(std::min<std::size_t>(max, ours->device.port_count()));
  for (std::uint32_t port = 1; port <= count; ++port) {
    // A program built for a later libibverbs may use longer entries: `entry_size` is the stride.
    auto* const at = reinterpret_cast<ibv_gid_entry*>(reinterpret_cast<char*>(entries) +
                                                      (port - 1) * entry_size);
    const int error = _ibv_query_gid_ex(context, port, kGidIndex, at, flags, entry_size);
    if (error != 0) return -error;
  }
  return static_cast<ssize_t>(count);
}

int ibv_query_pkey(ibv_context* context, std::uint8_t port, int index, __be16* pkey) {
  SoftwareContext* const ours = SoftwareContext::of(context);
  const int error = guarded(ours != nullptr, [&] {
    if (ours == nullptr) {
      auto* const next = WEFT_REAL(ibv_query_pkey, "IBVERBS_1.1");
      return next == nullptr || context == nullptr || next(context, port, index, pkey) != 0 ? EINVAL
                                                                                            : 0;
    }
    if (pkey == nullptr || !ours->device.has_port(port) || index != 0) return EINVAL;
    *pkey = htobe16(0xffff);
    return 0;
  });
  return returned(error, fail_minus_one);
}

int ibv_get_pkey_index(ibv_context* context, std::uint8_t port, __be16 pkey) {
  SoftwareContext* const ours = SoftwareContext::of(context);
  if (ours == nullptr) {
    auto* const next = WEFT_REAL(ibv_get_pkey_index, "IBVERBS_1.5");
    return next == nullptr || context == nullptr ? fail_minus_one(EINVAL)
                                                 : next(context, port, pkey);
  }
  return ours->device.has_port(port) && pkey == htobe16(0xffff) ? 0 : fail_minus_one(EINVAL);
}

}  // extern "C"
