// The verbs stand-in for memory: protection domains and memory regions. Calls for devices that are
// not Weft's are passed on to the real library.
#include <infiniband/verbs.h>

#include <atomic>
#include <limits>

#include "device/c_edge.h"
#include "device/memory_map.h"
#include "device/real_verbs.h"
#include "device/software_device.h"
#include "os/log.h"

#undef ibv_reg_mr
#undef ibv_reg_mr_iova

using namespace weft;
using namespace weft::device;

namespace {

struct Wanted {
  void* at = nullptr;
  std::size_t size = 0;
  std::uint64_t named_at = 0;
  unsigned access = 0;
};

// The access flags that we accept. Those that have no effect here are only performance hints.
constexpr unsigned kAccessKnown = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
                                  IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC |
                                  IBV_ACCESS_ON_DEMAND | IBV_ACCESS_HUGETLB |
                                  IBV_ACCESS_ZERO_BASED | IBV_ACCESS_OPTIONAL_RANGE;

int check(const Wanted& wanted) {
  const auto at = reinterpret_cast<std::uintptr_t>(wanted.at);
  if (wanted.size == 0 || wanted.size > std::numeric_limits<std::uintptr_t>::max() - at)
    return EINVAL;
  if (wanted.size > std::numeric_limits<std::uint64_t>::max() - wanted.named_at) return EINVAL;
  if ((wanted.access & ~kAccessKnown) != 0) return EINVAL;
  const bool writes = (wanted.access & IBV_ACCESS_LOCAL_WRITE) != 0;
  // The rule of verbs: remote write and remote atomic need local write.
  if ((wanted.access & (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC)) != 0 && !writes)
    return EINVAL;
  return is_usable({.at = at, .size = wanted.size}, writes ? MemoryUse::kWrite : MemoryUse::kRead)
             ? 0
             : EFAULT;
}

ibv_mr* register_memory(SoftwarePd& pd, Wanted wanted) {
  if ((wanted.access & IBV_ACCESS_ZERO_BASED) != 0) wanted.named_at = 0;
  if (const int error = check(wanted)) return fail_null(error);
  auto engine = SoftwareContext::of(pd.ibv.context)->engine();
  if (!engine) return fail_null(errno_of(engine.error().kind));
  auto mr = std::make_unique<SoftwareMr>();
  const auto key = (*engine)->with_lock([&](DeviceEngine::Parts& parts) {
    return parts.memory.add({.memory = {static_cast<std::byte*>(wanted.at), wanted.size},
                             .access = (wanted.access & IBV_ACCESS_REMOTE_WRITE) != 0
                                           ? world::Access::kRemoteWrite
                                           : world::Access::kLocal,
                             .domain = pd.domain,
                             .named_at = wanted.named_at});
  });
  if (!key) return fail_null(ENOMEM);
  mr->ibv.context = pd.ibv.context;
  mr->ibv.pd = &pd.ibv;
  mr->ibv.addr = wanted.at;
  mr->ibv.length = wanted.size;
  mr->ibv.handle = mr->ibv.lkey = mr->ibv.rkey = *key;
  ++pd.children;
  return &mr.release()->ibv;
}

}  // namespace

extern "C" {

ibv_pd* ibv_alloc_pd(ibv_context* context) {
  SoftwareContext* const ours = SoftwareContext::of(context);
  return guarded_pointer<ibv_pd>(ours != nullptr, [&]() -> ibv_pd* {
    if (ours == nullptr) {
      auto* const next = WEFT_REAL(ibv_alloc_pd, "IBVERBS_1.1");
      return next == nullptr || context == nullptr ? fail_null(EINVAL) : next(context);
    }
    // Each domain gets a new number, unique in the process. No domain has the number 0.
    static std::atomic<std::uint32_t> domains{0};
    auto* const pd = new SoftwarePd();
    pd->ibv.context = context;
    pd->domain = pd->ibv.handle = ++domains;
    ++ours->children;
    return &pd->ibv;
  });
}

int ibv_dealloc_pd(ibv_pd* pd) {
  SoftwarePd* const ours = SoftwarePd::of(pd);
  const int error = guarded(ours != nullptr, [&] {
    if (ours == nullptr) {
      auto* const next = WEFT_REAL(ibv_dealloc_pd, "IBVERBS_1.1");
      return next == nullptr || pd == nullptr ? EINVAL : next(pd);
    }
    if (ours->children.load() != 0) return EBUSY;
    --SoftwareContext::of(pd->context)->children;
    delete ours;
    return 0;
  });
  return returned(error, fail_value);
}

ibv_mr* ibv_reg_mr_iova2(ibv_pd* pd, void* addr, std::size_t length, std::uint64_t iova,
                         unsigned access) {
  SoftwarePd* const ours = SoftwarePd::of(pd);
  return guarded_pointer<ibv_mr>(ours != nullptr, [&]() -> ibv_mr* {
    if (ours != nullptr)
      return register_memory(*ours,
                             {.at = addr, .size = length, .named_at = iova, .access = access});
    auto* const next = WEFT_REAL(ibv_reg_mr_iova2, "IBVERBS_1.8");
    return next == nullptr || pd == nullptr ? fail_null(EINVAL)
                                            : next(pd, addr, length, iova, access);
  });
}

ibv_mr* ibv_reg_mr(ibv_pd* pd, void* addr, std::size_t length, int access) {
  SoftwarePd* const ours = SoftwarePd::of(pd);
  return guarded_pointer<ibv_mr>(ours != nullptr, [&]() -> ibv_mr* {
    if (ours != nullptr)
      return register_memory(*ours, {.at = addr,
                                     .size = length,
                                     .named_at = reinterpret_cast<std::uintptr_t>(addr),
                                     .access = static_cast<unsigned>(access)});
    auto* const next = WEFT_REAL(ibv_reg_mr, "IBVERBS_1.1");
    return next == nullptr || pd == nullptr ? fail_null(EINVAL) : next(pd, addr, length, access);
  });
}

ibv_mr* ibv_reg_mr_iova(ibv_pd* pd, void* addr, std::size_t length, std::uint64_t iova,
                        int access) {
  SoftwarePd* const ours = SoftwarePd::of(pd);
  return guarded_pointer<ibv_mr>(ours != nullptr, [&]() -> ibv_mr* {
    if (ours != nullptr)
      return register_memory(
          *ours,
          {.at = addr, .size = length, .named_at = iova, .access = static_cast<unsigned>(access)});
    auto* const next = WEFT_REAL(ibv_reg_mr_iova, "IBVERBS_1.7");
    return next == nullptr || pd == nullptr ? fail_null(EINVAL)
                                            : next(pd, addr, length, iova, access);
  });
}

// Writes from the region that are still in flight fail. After this call the device does not touch
// the memory.
int ibv_dereg_mr(ibv_mr* mr) {
  SoftwarePd* const pd = mr == nullptr ? nullptr : SoftwarePd::of(mr->pd);
  const int error = guarded(pd != nullptr, [&] {
    if (pd == nullptr) {
      auto* const next = WEFT_REAL(ibv_dereg_mr, "IBVERBS_1.1");
      return next == nullptr || mr == nullptr ? EINVAL : next(mr);
    }
    auto engine = SoftwareContext::of(mr->context)->engine();
    if (!engine) return errno_of(engine.error().kind);
    const bool known = (*engine)->with_lock([&](DeviceEngine::Parts& parts) {
      const bool removed = parts.memory.remove(mr->rkey);
      if (removed) parts.node.on_region_gone(parts.now, mr->rkey);
      return removed;
    });
    if (!known) return EINVAL;
    --pd->children;
    delete reinterpret_cast<SoftwareMr*>(mr);
    return 0;
  });
  return returned(error, fail_value);
}

}  // extern "C"
