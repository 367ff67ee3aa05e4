#include "control/controller_state.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <linux/capability.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include "control/ctl_codec.h"
#include "os/random_seed.h"
#include "os/system_error.h"

namespace weft::control {
namespace {

using os::system_error;

CtlError io_error(const std::string& what) {
  const int code = errno == EACCES || errno == EPERM || errno == EROFS ? EPERM : EIO;
  return ctl_error(code, fmt::format("{}: {}", what, std::strerror(errno)));
}

bool has_net_admin() {
  __user_cap_header_struct header{.version = _LINUX_CAPABILITY_VERSION_3, .pid = 0};
  __user_cap_data_struct data[2]{};
  if (syscall(SYS_capget, &header, data) != 0) return false;
  return (data[CAP_NET_ADMIN / 32].effective >> (CAP_NET_ADMIN % 32) & 1) != 0;
}

bool is_good_name(const std::string& name) {
  const auto good = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '_' || c == '.';
  };
  return !name.empty() && name.size() <= 64 && name[0] != '.' &&
         std::all_of(name.begin(), name.end(), good);
}

template <typename Profiles>
bool is_online(const Profiles& profiles, std::uint64_t id) {
  return id < profiles.size() && profiles[id].state == ProfileState::kOnline;
}

}  // namespace

Result<std::unique_ptr<ControllerState>> ControllerState::open(const Options& options) {
  if (!is_good_name(options.device)) {
    return Error{ErrorKind::kInvalid,
                 fmt::format("\"{}\" is no name of a device; expected letters, digits, - _ .",
                             options.device)};
  }
  std::unique_ptr<ControllerState> state(new ControllerState(options));
  WEFT_CHECK(state->attach());
  return state;
}

ControllerState::~ControllerState() = default;

Result<void> ControllerState::attach() {
  if (options_.directory.empty()) return {};
  std::error_code made;
  // If this user may not create the directory, this fails, and the open() below reports it. A new
  // directory is writable only by its owner, whatever the umask.
  if (std::filesystem::create_directories(options_.directory, made)) {
    std::filesystem::permissions(options_.directory, std::filesystem::perms{0755}, made);
  }
  directory_ =
      os::FileDescriptor(::open(options_.directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!directory_.is_open()) {
    if (errno == ENOENT) return {};  // no controller has changed this device's state yet
    Error error = system_error(options_.directory);
    error.message += "; set WEFT_STATE_DIR to a directory that this user may read";
    return error;
  }
  struct stat info {};
  if (fstat(directory_.get(), &info) != 0) return system_error(options_.directory);
  if ((info.st_uid != 0 && info.st_uid != geteuid()) || (info.st_mode & (S_IWGRP | S_IWOTH)) != 0) {
    return Error{ErrorKind::kSystem,
                 fmt::format("{}: others may write to it; expected a directory of this user or of "
                             "root, mode 0755",
                             options_.directory)};
  }
  const auto opened =
      live_.open({.directory = directory_.get(),
                  .name = file(".live"),
                  .create = info.st_uid == geteuid() &&
                            (options_.scope == DeviceScope::kUser || has_net_admin())});
  if (!opened && opened.error().kind != ErrorKind::kNotFound) {
    return Error{opened.error().kind, options_.directory + "/" + opened.error().message};
  }
  return {};
}

CtlResult<CtlModel> ControllerState::read() const {
  const std::string name = file(".state");
  const os::FileDescriptor in(
      openat(directory_.get(), name.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  if (!in.is_open()) {
    if (errno == ENOENT) return CtlModel();
    return io_error(options_.directory + "/" + name);
  }
  struct stat info {};
  if (fstat(in.get(), &info) != 0) return io_error(options_.directory + "/" + name);
  const bool sized = S_ISREG(info.st_mode) && info.st_size >= 0 &&
                     info.st_size <= static_cast<off_t>(kCtlFileBytesMax);
  std::vector<std::byte> bytes(sized ? static_cast<std::size_t>(info.st_size) : 0);
  std::size_t have = 0;
  while (have < bytes.size()) {
    const ssize_t got = ::read(in.get(), bytes.data() + have, bytes.size() - have);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    have += static_cast<std::size_t>(got);
  }
  auto model = ctl_model_from(ConstBytes(bytes).first(have));
  if (!model) {
    return ctl_error(EIO, fmt::format("{}/{}: {}; remove it to begin anew", options_.directory,
                                      name, model.error().message));
  }
  return std::move(model).value();
}

CtlResult<ControllerState::Snapshot> ControllerState::snapshot() {
  if (!is_attached()) return std::make_shared<const CtlModel>();
  const std::lock_guard hold(mutex_);
  const std::uint64_t number = live_.number();
  if (cached_ != nullptr && number == cached_number_ && number % 2 == 0) return cached_;
  WEFT_TRY(CtlModel model, read());
  cached_ = std::make_shared<const CtlModel>(std::move(model));
  cached_number_ = number;
  return cached_;
}

// --- changing ----------------------------------------------------------------------------------

CtlResult<void> ControllerState::check_permission() const {
  const char* const who = options_.scope == DeviceScope::kSystem
                              ? "root with CAP_NET_ADMIN"
                              : "the owner of its state directory";
  if (!is_attached()) {
    if (options_.directory.empty()) {
      return ctl_error(EPERM, fmt::format("there is no state directory for {} (the log says why)",
                                          options_.device));
    }
    return ctl_error(EPERM, fmt::format("{}: the state of {} cannot be made there; {} may",
                                        options_.directory, options_.device, who));
  }
  struct stat info {};
  if (fstat(directory_.get(), &info) != 0) return io_error(options_.directory);
  const bool owner = info.st_uid == geteuid();
  if (owner && (options_.scope == DeviceScope::kUser || has_net_admin())) return {};
  return ctl_error(EPERM, fmt::format("{} may be changed only by {}", options_.device, who));
}

CtlResult<os::FileDescriptor> ControllerState::lock() const {
  const std::string name = file(".lock");
  os::FileDescriptor out(openat(directory_.get(), name.c_str(),
                                O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600));
  if (!out.is_open()) return io_error(options_.directory + "/" + name);
  struct flock want {};
  want.l_type = F_WRLCK;
  want.l_whence = SEEK_SET;
  for (int tries = 0; fcntl(out.get(), F_OFD_SETLK, &want) != 0; ++tries) {
    if (errno != EAGAIN && errno != EACCES && errno != EINTR)
      return io_error(options_.directory + "/" + name);
    if (tries == 5000)
      return ctl_error(EIO,
                       fmt::format("{}/{}: another controller holds it", options_.directory, name));
    usleep(1000);
  }
  return out;
}

CtlResult<void> ControllerState::write(const CtlModel& model) {
  // Only the process that holds the lock writes, so it overwrites a file left by a writer that
  // died.
  const std::string temporary = file(".state.new"), name = file(".state");
  const std::vector<std::byte> bytes = to_bytes(model);
  {
    const os::FileDescriptor out(openat(directory_.get(), temporary.c_str(),
                                        O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW,
                                        0644));
    if (!out.is_open() || fchmod(out.get(), 0644) != 0)
      return io_error(options_.directory + "/" + temporary);
    for (std::size_t done = 0; done < bytes.size();) {
      const ssize_t put = ::write(out.get(), bytes.data() + done, bytes.size() - done);
      if (put < 0 && errno == EINTR) continue;
      if (put <= 0) return io_error(options_.directory + "/" + temporary);
      done += static_cast<std::size_t>(put);
    }
  }
  const std::uint64_t after = 2 * model.generation;
  const auto io = [](const Error& error) { return ctl_error(EIO, error.message); };
  if (const auto set = live_.set_number(after - 1); !set) return io(set.error());
  if (renameat(directory_.get(), temporary.c_str(), directory_.get(), name.c_str()) != 0) {
    return io_error(options_.directory + "/" + name);
  }
  // The change is complete, so a failure of set_number() is ignored: the number stays odd, and
  // readers read the file again.
  (void)live_.set_number(after);
  return {};
}

CtlResult<void> ControllerState::change(const Body& body, Partly partly) {
  WEFT_CHECK(check_permission());
  WEFT_TRY(const os::FileDescriptor held, lock());
  WEFT_TRY(const Snapshot before, snapshot());
  Changes changes(*this, *before);
  CtlModel& model = changes.model_;
  if (model.generation == 0) model.seed = os::random_seed();
  const auto done = body(changes);
  if (!done && !(partly == Partly::kYes && changes.is_partly_done_)) return done.error();
  model.generation = std::max(model.generation, (live_.number() + 1) / 2) + 1;
  WEFT_CHECK(write(model));
  generation_made_ = model.generation;
  return done;
}

CtlResult<bool> ControllerState::Changes::is_in_use(const Leaving& profile) {
  const std::pair key(profile.kind, profile.id);
  if (!profile.leaves || excluded_.contains(key)) return false;
  auto taken = state_.live_.exclude(profile.kind, static_cast<std::uint32_t>(profile.id));
  if (!taken && taken.error().code == EBUSY) return true;
  if (!taken) return taken.error();
  excluded_.emplace(key, std::move(taken).value());
  return false;
}

CtlResult<void> ControllerState::Changes::modify_format(std::uint64_t id,
                                                        const FormatChange& wanted) {
  return control::modify_format(model_, id, wanted);
}

CtlResult<void> ControllerState::Changes::modify_ev(std::uint64_t id, const EvChange& wanted) {
  const bool leaves = wanted.state && is_online(model_.evs, id);
  WEFT_TRY(const bool in_use, is_in_use({ProfileKind::kEv, id, leaves}));
  return modify_ev_profile(model_, id, wanted, {.device = state_.options_.shape, .in_use = in_use},
                           is_partly_done_);
}

CtlResult<void> ControllerState::Changes::modify_cc(std::uint64_t id, const CcChange& wanted) {
  const bool leaves = wanted.state && is_online(model_.ccs, id);
  WEFT_TRY(const bool in_use, is_in_use({ProfileKind::kCc, id, leaves}));
  return modify_cc_profile(model_, id, wanted, {.in_use = in_use});
}

CtlResult<void> ControllerState::Changes::modify_port(const PortChange& wanted) {
  return control::modify_port(model_, state_.options_.shape, wanted);
}

CtlResult<void> ControllerState::modify_format(std::uint64_t id, const FormatChange& wanted) {
  return change([&](Changes& to) { return to.modify_format(id, wanted); }, Partly::kNo);
}
CtlResult<void> ControllerState::modify_ev(std::uint64_t id, const EvChange& wanted) {
  return change([&](Changes& to) { return to.modify_ev(id, wanted); }, Partly::kYes);
}
CtlResult<void> ControllerState::modify_cc(std::uint64_t id, const CcChange& wanted) {
  return change([&](Changes& to) { return to.modify_cc(id, wanted); }, Partly::kNo);
}
CtlResult<void> ControllerState::modify_port(const PortChange& wanted) {
  return change([&](Changes& to) { return to.modify_port(wanted); }, Partly::kNo);
}
CtlResult<void> ControllerState::touch() {
  return change([](Changes&) -> CtlResult<void> { return {}; }, Partly::kNo);
}

Result<os::FileDescriptor> ControllerState::events_directory(Make make) const {
  const std::string name = file(".events");
  if (!is_attached()) return Error{ErrorKind::kNotFound, "there is no state directory"};
  if (make == Make::kYes && mkdirat(directory_.get(), name.c_str(), 0755) != 0 && errno != EEXIST) {
    return system_error(name);
  }
  os::FileDescriptor out(
      openat(directory_.get(), name.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW));
  if (out.is_open()) return out;
  const bool missing = errno == ENOENT;
  Error error = system_error(name);
  if (missing) error.kind = ErrorKind::kNotFound;
  return error;
}

}  // namespace weft::control
